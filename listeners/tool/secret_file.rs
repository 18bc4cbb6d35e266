//! Reads files of secrets, such as tokens and keys of other servers.

use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use pumphouse::regular_file;

/// The maximum number of bytes of a file of secrets.
const FILE_BYTES_MAX: u64 = 64 * 1024;

/// Reads a file of secrets. The path must lead to a regular file; mounted secrets are links. The
/// file's mode must have none of the bits in `refused_modes`. The text must be UTF-8 of at most
/// `FILE_BYTES_MAX` bytes. Otherwise the result is an error, which contains no text of the file.
pub(super) fn read(path: &Path, refused_modes: u32) -> Result<String, String> {
    let file = regular_file::open(path).map_err(|error| error.to_string())?;
    let opened = file.metadata().map_err(|error| error.to_string())?;
    let mode = opened.mode() & 0o777;
    if mode & refused_modes != 0 {
        return Err(format!("its mode is {mode:04o}, so others may read or change it: chmod 600"));
    }
    let bytes = regular_file::rest(file, FILE_BYTES_MAX).map_err(|error| error.to_string())?;
    String::from_utf8(bytes).map_err(|_| "it is no text in UTF-8".to_owned())
}
