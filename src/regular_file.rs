//! Reads files that a manifest or a setting names. Such a file may be a link, as mounted secrets
//! and system authorities are, but what it leads to must be a regular file of a bounded size: a
//! FIFO would wait for its other end, and a device may never end.
//!
//! ```
//! # extern crate pumphouse_ground as pumphouse;
//! use pumphouse::regular_file;
//!
//! # fn main() -> std::io::Result<()> {
//! let folder = tempfile::tempdir()?;
//! let path = folder.path().join("prompt.md");
//! std::fs::write(&path, "You greet people.")?;
//! assert_eq!(regular_file::text(&path, 1_024)?, "You greet people.");
//! let told = regular_file::bytes(&path, 10).unwrap_err().to_string();
//! assert_eq!(told, "it has more than 10 bytes");
//! let told = regular_file::bytes(folder.path(), 10).unwrap_err().to_string();
//! assert_eq!(told, "it is no regular file");
//! # Ok(()) }
//! ```

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Read as _};
use std::path::Path;

/// Opens a regular file for reading, without waiting.
///
/// # Errors
/// If the file can't be opened, or is no regular file.
pub fn open(path: impl AsRef<Path>) -> io::Result<File> {
    opened(OpenOptions::new().read(true), path)
}

/// As [`open`], with other options, such as those for writing.
pub fn opened(options: &mut OpenOptions, path: impl AsRef<Path>) -> io::Result<File> {
    let file = with_flags(options, no_waiting_flags()).open(path)?;
    regular(file)
}

/// As [`opened`], but follows no link at the end of the path.
pub fn opened_no_link(options: &mut OpenOptions, path: &Path) -> io::Result<File> {
    let link = || {
        let text = "it is a link, which is not followed; name the file that it leads to";
        io::Error::new(ErrorKind::InvalidInput, text)
    };
    let file = with_flags(options, no_waiting_flags() | no_following_flags()).open(path);
    regular(file.map_err(|error| if path.is_symlink() { link() } else { error })?)
}

fn regular(file: File) -> io::Result<File> {
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(io::Error::new(ErrorKind::InvalidInput, "it is no regular file")),
    }
}

/// Reads a regular file of at most so many bytes.
///
/// # Errors
/// If the file can't be read, is no regular file, or has more bytes.
pub fn bytes(path: impl AsRef<Path>, bytes_max: u64) -> io::Result<Vec<u8>> {
    rest(open(path)?, bytes_max)
}

/// Reads the rest of an open file, of at most so many bytes.
///
/// # Errors
/// If the file can't be read, or has more bytes.
pub fn rest(file: File, bytes_max: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.take(bytes_max.saturating_add(1)).read_to_end(&mut bytes)?;
    match bytes.len() as u64 > bytes_max {
        true => {
            let text = format!("it has more than {bytes_max} bytes");
            Err(io::Error::new(ErrorKind::FileTooLarge, text))
        }
        false => Ok(bytes),
    }
}

/// Reads a regular file of at most so many bytes, as text.
///
/// # Errors
/// If the file can't be read, is no regular file, has more bytes, or isn't UTF-8.
pub fn text(path: impl AsRef<Path>, bytes_max: u64) -> io::Result<String> {
    let no_text = |_| io::Error::new(ErrorKind::InvalidData, "it is no text in UTF-8");
    String::from_utf8(bytes(path, bytes_max)?).map_err(no_text)
}

/// The flags with which opening a file returns at once, even if the file is a FIFO.
#[cfg(unix)]
#[must_use]
pub fn no_waiting_flags() -> i32 {
    let flags = rustix::fs::OFlags::NONBLOCK | rustix::fs::OFlags::NOCTTY;
    i32::try_from(flags.bits()).unwrap_or(0)
}

#[cfg(unix)]
fn no_following_flags() -> i32 {
    i32::try_from(rustix::fs::OFlags::NOFOLLOW.bits()).unwrap_or(0)
}

#[cfg(unix)]
fn with_flags(options: &mut OpenOptions, flags: i32) -> &mut OpenOptions {
    use std::os::unix::fs::OpenOptionsExt as _;
    options.custom_flags(flags)
}

/// The flags with which opening a file returns at once: none on this system.
#[cfg(not(unix))]
#[must_use]
pub fn no_waiting_flags() -> i32 {
    0
}

#[cfg(not(unix))]
fn no_following_flags() -> i32 {
    0
}

#[cfg(not(unix))]
fn with_flags(options: &mut OpenOptions, _: i32) -> &mut OpenOptions {
    options
}

#[cfg(all(test, unix))]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn what_is_no_regular_file_holds_nothing_up() {
        let folder = tempfile::tempdir().unwrap();
        let fifo = folder.path().join("fifo");
        let mode = rustix::fs::Mode::from_bits_truncate(0o600);
        rustix::fs::mknodat(rustix::fs::CWD, &fifo, rustix::fs::FileType::Fifo, mode, 0).unwrap();
        let link = folder.path().join("link");
        std::os::unix::fs::symlink("/dev/zero", &link).unwrap();
        for path in [&fifo, &link] {
            let (path, (to, told)) = (path.clone(), std::sync::mpsc::sync_channel(1));
            std::thread::spawn(move || to.send(bytes(path, 10).unwrap_err().to_string()));
            let told = told.recv_timeout(Duration::from_secs(30)).unwrap();
            assert_eq!(told, "it is no regular file");
        }
    }

    #[test]
    fn a_link_to_a_regular_file_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let (file, link) = (folder.path().join("file"), folder.path().join("link"));
        std::fs::write(&file, "x").unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        assert_eq!(text(&link, 1).unwrap(), "x");
        std::fs::write(&file, b"\xFF").unwrap();
        assert_eq!(text(&link, 1).unwrap_err().to_string(), "it is no text in UTF-8");
    }
}
