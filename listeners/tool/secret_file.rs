//! Reads files of secrets, such as tokens and keys of other servers.

use std::fs::File;
use std::io::Read as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

/// The maximum number of bytes of a file of secrets.
const FILE_BYTES_MAX: u64 = 64 * 1024;

/// Reads a file of secrets. The path must name a regular file, and not a link. The file's mode must
/// have none of the bits in `refused_modes`. The text must be UTF-8 of at most `FILE_BYTES_MAX`
/// bytes. Otherwise the result is an error, which contains no text of the file.
pub(super) fn read(path: &Path, refused_modes: u32) -> Result<String, String> {
    let named = path.symlink_metadata().map_err(|error| error.to_string())?;
    if !named.is_file() {
        return Err("it is no file".to_owned());
    }
    let file = File::open(path).map_err(|error| error.to_string())?;
    let opened = file.metadata().map_err(|error| error.to_string())?;
    if (named.dev(), named.ino()) != (opened.dev(), opened.ino()) {
        return Err("it was exchanged while it was opened".to_owned());
    }
    let mode = opened.mode() & 0o777;
    if mode & refused_modes != 0 {
        return Err(format!("its mode is {mode:04o}, so others may read or change it: chmod 600"));
    }
    if opened.len() > FILE_BYTES_MAX {
        return Err(format!("it is larger than {FILE_BYTES_MAX} bytes"));
    }
    let mut text = String::new();
    let read = file.take(FILE_BYTES_MAX).read_to_string(&mut text);
    read.map_err(|error| error.to_string())?;
    Ok(text)
}
