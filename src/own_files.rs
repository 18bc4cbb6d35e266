//! Files and folders that only their owner may read.

use std::fs::{DirBuilder, OpenOptions};
use std::io;
use std::path::Path;

/// Options for making a file. On Unix, only the file's owner may read it, since it may contain
/// messages.
pub fn own_options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.write(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

/// Makes a folder and those above it. On Unix, only the owner may look into them. A folder that
/// exists stays as it is.
pub fn make_own_folders(path: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.recursive(true).create(path)
}
