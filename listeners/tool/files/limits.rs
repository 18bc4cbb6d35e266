//! The limits of `files`. A refusal names its limit.

use serde::Deserialize;

/// One kibibyte.
const KIB: usize = 1024;
/// One mebibyte.
const MIB: usize = 1024 * KIB;

/// What one request may come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct FileLimits {
    /// Bytes of the lines that one `read` shows: a good part of what a model reads at once.
    pub read_bytes_max: usize,
    /// Bytes of a file that `read` goes over to find its first line.
    pub scan_bytes_max: usize,
    /// Bytes of a file that is written or edited: it is in memory meanwhile.
    pub file_bytes_max: usize,
    /// Bytes of the diff that an `edit` answers; what is longer is cut.
    pub diff_bytes_max: usize,
    /// Things that one `list` shows.
    pub items_max: usize,
    /// Bytes of the pattern of a `search`.
    pub pattern_bytes_max: usize,
    /// Lines that one `search` shows.
    pub hits_max: usize,
    /// Bytes of one such line; what is longer is cut.
    pub hit_bytes_max: usize,
    /// Files that one `search` looks into.
    pub searched_files_max: usize,
    /// Bytes that one `search` reads, of all files together.
    pub searched_bytes_max: usize,
    /// Bytes of one file that a `search` looks into; larger ones it leaves out.
    pub searched_file_bytes_max: usize,
}

impl Default for FileLimits {
    fn default() -> FileLimits {
        FileLimits {
            read_bytes_max: 128 * KIB,
            scan_bytes_max: 64 * MIB,
            file_bytes_max: MIB,
            diff_bytes_max: 16 * KIB,
            items_max: 1_000,
            pattern_bytes_max: KIB,
            hits_max: 200,
            hit_bytes_max: 300,
            searched_files_max: 20_000,
            searched_bytes_max: 256 * MIB,
            searched_file_bytes_max: 8 * MIB,
        }
    }
}
