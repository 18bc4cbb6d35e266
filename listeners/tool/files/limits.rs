//! The limits of `files`. A refusal because of a limit names the limit.

use serde::Deserialize;

/// One kibibyte.
const KIB: usize = 1024;
/// One mebibyte.
const MIB: usize = 1024 * KIB;

/// The limits of one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct FileLimits {
    /// The maximum number of bytes of the lines that one `read` shows. The default is a large share
    /// of the text that a model reads at once.
    pub read_bytes_max: usize,
    /// The maximum number of bytes that a `read` skips to find its first line.
    pub scan_bytes_max: usize,
    /// The maximum number of bytes of a file that is written or edited. The whole file is in memory
    /// during an edit.
    pub file_bytes_max: usize,
    /// The maximum number of bytes of the diff that an `edit` answers. A longer diff is cut.
    pub diff_bytes_max: usize,
    /// The maximum number of names that one `list` shows.
    pub items_max: usize,
    /// The maximum number of bytes of the pattern of a `search`.
    pub pattern_bytes_max: usize,
    /// The maximum number of lines that one `search` shows.
    pub hits_max: usize,
    /// The maximum number of bytes of a line that a `search` shows. A longer line is cut.
    pub hit_bytes_max: usize,
    /// The maximum number of entries of folders that one `search` or one `tree` looks at: files,
    /// folders, links and all others, hidden and ignored ones, too.
    pub searched_files_max: usize,
    /// The maximum number of bytes that one `search` reads, in all files together.
    pub searched_bytes_max: usize,
    /// The maximum number of bytes of a file that a `search` in a folder reads. Larger files are
    /// left out.
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
