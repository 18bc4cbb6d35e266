//! Writes a file so that a failed write leaves nothing behind. The unfinished file is removed, and
//! a file that was to be replaced stays as it was.
//!
//! A file that may replace another is written beside its path first. A file that must not replace
//! another is written at its own path, so a process that is killed may leave an unfinished file
//! there.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use crate::own_files::own_options;

/// What happens to a file that is at the path already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IfExists {
    /// An existing file stays as it is.
    Keep,
    /// An existing file is replaced.
    Replace,
}

/// A file that is being written.
pub struct AtomicFile {
    file: BufWriter<File>,
    /// The unfinished file, which is removed if writing fails. `None` for a device.
    unfinished: Option<PathBuf>,
    /// The path that the unfinished file is renamed to. `None` if the file isn't written beside its
    /// path.
    place: Option<PathBuf>,
}

impl AtomicFile {
    /// Begins a file.
    pub fn begin(path: &Path, if_exists: IfExists) -> io::Result<AtomicFile> {
        match if_exists {
            IfExists::Keep => AtomicFile::create_in_place(path),
            IfExists::Replace => AtomicFile::replacing(path),
        }
    }

    /// Begins a file at a path where there is none.
    fn create_in_place(path: &Path) -> io::Result<AtomicFile> {
        let file = BufWriter::new(File::create_new(path)?);
        Ok(AtomicFile { file, unfinished: Some(path.to_owned()), place: None })
    }

    /// Begins a file that may replace another. The new file is written beside its path, and moved
    /// there in the end. It has the permissions of the old file, if there is one. A device, such as
    /// `/dev/stdout`, is written to directly. A link that leads nowhere is refused.
    pub fn replacing(path: &Path) -> io::Result<AtomicFile> {
        let there = match fs::metadata(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return match fs::symlink_metadata(path) {
                    Ok(_) => Err(io::Error::other("it is a link that leads nowhere; remove it")),
                    Err(_) => AtomicFile::beside(path.to_owned()),
                };
            }
            there => there?,
        };
        if !there.is_file() {
            let file = BufWriter::new(File::options().write(true).open(path)?);
            return Ok(AtomicFile { file, unfinished: None, place: None });
        }
        // If the path is a link, its target is replaced, so that the link stays.
        let written = AtomicFile::beside(fs::canonicalize(path)?)?;
        written.file.get_ref().set_permissions(there.permissions())?;
        Ok(written)
    }

    /// Begins a file in a folder that others may write, too. What stands at its path is replaced,
    /// whatever it is: a link isn't followed, and a FIFO isn't written to.
    pub fn in_place_of_anything(path: &Path) -> io::Result<AtomicFile> {
        AtomicFile::beside(path.to_owned())
    }

    /// Begins a file beside the path that [`AtomicFile::commit`] renames it to.
    fn beside(place: PathBuf) -> io::Result<AtomicFile> {
        let beside = unfinished(&place);
        let file = BufWriter::new(own_options().create_new(true).open(&beside)?);
        Ok(AtomicFile { file, unfinished: Some(beside), place: Some(place) })
    }

    /// Syncs the complete file. A file that was written beside its path is renamed after the sync.
    /// A device is not synced.
    pub fn commit(mut self) -> io::Result<()> {
        self.file.flush()?;
        let Some(unfinished) = &self.unfinished else { return Ok(()) };
        self.file.get_ref().sync_all()?;
        if let Some(place) = &self.place {
            fs::rename(unfinished, place)?;
        }
        self.unfinished = None;
        Ok(())
    }
}

impl Write for AtomicFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write_all(bytes).map(|()| bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Drop for AtomicFile {
    fn drop(&mut self) {
        if let Some(unfinished) = &self.unfinished {
            // The caller has reported the error already.
            let _ = fs::remove_file(unfinished);
        }
    }
}

/// The path of the unfinished file: in the same folder, with the process's id in its name.
fn unfinished(place: &Path) -> PathBuf {
    let mut name = OsString::from(".");
    name.push(place.file_name().unwrap_or_default());
    name.push(format!(".{}.part", std::process::id()));
    place.with_file_name(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_may_replace_another_is_at_its_path_once_it_is_complete() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("position.json");
        for text in ["1", "2"] {
            let before = fs::read_to_string(&path).ok();
            let mut file = AtomicFile::replacing(&path).unwrap();
            file.write_all(text.as_bytes()).unwrap();
            file.flush().unwrap();
            assert_eq!(fs::read_to_string(&path).ok(), before);
            file.commit().unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), text);
        }
        drop(AtomicFile::replacing(&path).unwrap());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}
