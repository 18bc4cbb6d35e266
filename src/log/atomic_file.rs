//! A file that is there only once it is whole: what fails on the way leaves nothing behind, and
//! what was there stays as it was.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use crate::log::{Error, SqliteLog};

/// Whether a file is there already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum There {
    /// One that is stays as it is.
    Stays,
    /// It is written over.
    GivesWay,
}

/// A file that is being written.
pub(crate) struct AtomicFile {
    file: BufWriter<File>,
    /// What is there until it is whole, to be taken away if that fails.
    unfinished: Option<PathBuf>,
    /// Whose place that takes then.
    place: Option<PathBuf>,
}

impl AtomicFile {
    /// A file beside a log: never one that is the log's own, or a link to one.
    pub(crate) fn beside(log: &SqliteLog, path: &Path, there: There) -> io::Result<AtomicFile> {
        log.spares(path).map_err(|error| match error {
            Error::Io(why) => io::Error::other(why.to_string()),
            other => io::Error::other(other.to_string()),
        })?;
        match there {
            There::Stays => AtomicFile::new(path),
            There::GivesWay => AtomicFile::over(path),
        }
    }

    /// A file where there is none.
    fn new(path: &Path) -> io::Result<AtomicFile> {
        let file = BufWriter::new(File::create_new(path)?);
        Ok(AtomicFile { file, unfinished: Some(path.to_owned()), place: None })
    }

    /// A file, also where there is one: it is written beside it, and takes its place and its
    /// permissions. What is no file, such as `/dev/stdout`, is written to.
    pub(crate) fn over(path: &Path) -> io::Result<AtomicFile> {
        let there = match fs::metadata(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return match fs::symlink_metadata(path) {
                    Ok(_) => Err(io::Error::other("it is a link that leads nowhere; remove it")),
                    Err(_) => AtomicFile::new(path),
                };
            }
            there => there?,
        };
        if !there.is_file() {
            let file = BufWriter::new(File::options().write(true).open(path)?);
            return Ok(AtomicFile { file, unfinished: None, place: None });
        }
        // The file that a link leads to, so that the link stays.
        let place = fs::canonicalize(path)?;
        let beside = unfinished(&place);
        let file = BufWriter::new(File::create_new(&beside)?);
        let written = AtomicFile { file, unfinished: Some(beside), place: Some(place) };
        written.file.get_ref().set_permissions(there.permissions())?;
        Ok(written)
    }

    /// It is whole: it stays, on the disk and in its place.
    pub(crate) fn keep(mut self) -> io::Result<()> {
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
            // Why it failed is told already.
            let _ = fs::remove_file(unfinished);
        }
    }
}

/// A name that nobody else has, in the same folder.
fn unfinished(place: &Path) -> PathBuf {
    let mut name = OsString::from(".");
    name.push(place.file_name().unwrap_or_default());
    name.push(format!(".{}.part", std::process::id()));
    place.with_file_name(name)
}
