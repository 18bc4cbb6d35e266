//! Identifies the files of a log by device and inode number instead of by name, so that a link
//! can't get around a check. Also has the lock that lets one process at a time write to a file,
//! even if the file has several names.
//!
//! On Linux the lock is on the log's file itself, by `flock`. SQLite has POSIX locks on the same
//! file, and the system drops all POSIX locks when the process closes any descriptor of the file.
//! So one descriptor is opened for `flock`, and closed only when no connection of this process has
//! the file open. To know when, this module counts the connections. On Linux the two kinds of locks
//! ignore each other. On other systems they may not, and only the lock on the file beside the log
//! is used.

use std::collections::HashMap;
use std::fs::{File, Metadata, TryLockError};
use std::io;
use std::ops::{Deref, DerefMut};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rusqlite::Connection;

use crate::log::error::Error;
use crate::log::sqlite::whole;

/// The suffixes of the files beside a log.
const BESIDE: [&str; 5] = ["-wal", "-shm", "-lock", "-failed", "-journal"];

/// The path of a file beside another: the same path with a suffix.
pub(super) fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

/// Identifies a file by its device and its inode number, independently of its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct FileId(u64, u64);

impl FileId {
    #[cfg(unix)]
    fn new(metadata: &Metadata) -> FileId {
        use std::os::unix::fs::MetadataExt as _;
        FileId(metadata.dev(), metadata.ino())
    }

    /// On systems without inode numbers, only whether a file exists can be known.
    #[cfg(not(unix))]
    fn new(_: &Metadata) -> FileId {
        FileId(0, 0)
    }

    /// The file at this path, if there is one. Links are followed.
    pub(super) fn of(path: &Path) -> io::Result<Option<FileId>> {
        match std::fs::metadata(path) {
            Ok(it) => Ok(Some(FileId::new(&it))),
            Err(error) if is_not_found(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

fn is_not_found(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

/// Refuses a path that is one of a log's files, or a link to one.
pub(super) fn spare(log: &Path, to: &Path) -> Result<(), Error> {
    let refuse = |why: &str| Err(Error::Io(format!("{}: {why}", to.display()).into()));
    let own = std::iter::once(log.to_owned()).chain(BESIDE.map(|it| beside(log, it)));
    let (place, is) = (whole(to)?, FileId::of(to).ok().flatten());
    for (index, own) in own.enumerate() {
        let is_same = cfg!(unix) && is.is_some() && FileId::of(&own).ok().flatten() == is;
        match index {
            _ if !is_same && place != own => {}
            0 => return refuse("it is the log itself; name another file"),
            _ => return refuse("it belongs to the log; name another file"),
        }
    }
    Ok(())
}

/// The files of a log as they were when it was opened.
#[derive(Debug)]
pub(super) struct Files {
    path: PathBuf,
    file: Resolved,
    wal: Resolved,
}

/// The ids of a path: that of the file or link itself, and that of the file that a link leads to.
/// Both matter, since SQLite looks for the files beside a log by the log's path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Resolved {
    itself: Option<FileId>,
    file: Option<FileId>,
}

impl Resolved {
    fn of(path: &Path) -> io::Result<Resolved> {
        let found = match std::fs::symlink_metadata(path) {
            Ok(it) => it,
            Err(error) if is_not_found(&error) => return Ok(Resolved { itself: None, file: None }),
            Err(error) => return Err(error),
        };
        let itself = Some(FileId::new(&found));
        // Each commit looks at the paths, so a plain file is looked up once only.
        let file = if found.is_symlink() { FileId::of(path)? } else { itself };
        Ok(Resolved { itself, file })
    }
}

/// A file of the log that was removed, renamed or replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MissingFile {
    /// The database file.
    File,
    /// Only the write-ahead log. Its content can still be copied.
    Wal,
}

impl Files {
    pub(super) fn of(path: &Path) -> io::Result<Files> {
        let wal = Resolved::of(&beside(path, "-wal"))?;
        Ok(Files { path: path.to_owned(), file: Resolved::of(path)?, wal })
    }

    /// Returns the file that is missing, if one is. A file that can't be checked counts as present.
    pub(super) fn missing(&self) -> Option<MissingFile> {
        let is_moved = |path: &Path, was| Resolved::of(path).is_ok_and(|is| is != was);
        if is_moved(&self.path, self.file) {
            return Some(MissingFile::File);
        }
        is_moved(&beside(&self.path, "-wal"), self.wal).then_some(MissingFile::Wal)
    }

    /// The error's text for a missing file.
    pub(super) fn missing_text(&self, gone: MissingFile) -> String {
        let path = match gone {
            MissingFile::File => self.path.clone(),
            MissingFile::Wal => beside(&self.path, "-wal"),
        };
        format!("{} was removed, renamed or replaced under the pump", path.display())
    }
}

/// The connections and the lock of this process on one file.
#[derive(Default)]
struct OpenFile {
    connections: usize,
    /// The descriptor for the lock. It stays open while there are connections: see the head of this
    /// module.
    file: Option<File>,
    is_locked: bool,
}

static FILES: Mutex<Option<HashMap<FileId, OpenFile>>> = Mutex::new(None);

fn with_files<T>(work: impl FnOnce(&mut HashMap<FileId, OpenFile>) -> T) -> T {
    let mut files: MutexGuard<'_, _> = FILES.lock().unwrap_or_else(PoisonError::into_inner);
    work(files.get_or_insert_default())
}

/// Closes a file that neither a connection nor the lock needs any more.
fn tidy(files: &mut HashMap<FileId, OpenFile>, id: FileId) {
    if files.get(&id).is_some_and(|it| it.connections == 0 && !it.is_locked) {
        files.remove(&id);
    }
}

/// A connection that is counted. The order of the fields matters: the connection is closed before
/// the count goes down.
pub(super) struct Db {
    db: Connection,
    counted: Counted,
}

/// Counts one connection to a file until it is dropped. `None` if the file isn't known.
struct Counted(Option<FileId>);

impl Db {
    /// Opens a connection to an existing file.
    pub(super) fn open(
        path: &Path,
        open: impl FnOnce() -> rusqlite::Result<Connection>,
    ) -> rusqlite::Result<Db> {
        with_files(|files| {
            let db = open()?;
            let id = FileId::of(path).ok().flatten().filter(|_| cfg!(unix));
            id.into_iter().for_each(|id| files.entry(id).or_default().connections += 1);
            Ok(Db { db, counted: Counted(id) })
        })
    }

    /// Closes the connection. Returns an error if closing failed.
    pub(super) fn close(self) -> rusqlite::Result<()> {
        let Db { db, counted } = self;
        let closed = db.close().map_err(|(_, error)| error);
        drop(counted);
        closed
    }
}

impl Deref for Db {
    type Target = Connection;

    fn deref(&self) -> &Connection {
        &self.db
    }
}

impl DerefMut for Db {
    fn deref_mut(&mut self) -> &mut Connection {
        &mut self.db
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        let Some(id) = self.0 else { return };
        with_files(|files| {
            if let Some(own) = files.get_mut(&id) {
                own.connections = own.connections.saturating_sub(1);
            }
            tidy(files, id);
        });
    }
}

/// The lock on a log's file.
#[derive(Debug)]
pub(super) struct FileLock(Option<FileId>);

impl FileLock {
    /// Takes the lock. `None` if this or another process has the lock already. If the system has no
    /// such locks, this succeeds without a lock.
    pub(super) fn take(path: &Path) -> io::Result<Option<FileLock>> {
        if !cfg!(target_os = "linux") {
            return Ok(Some(FileLock(None)));
        }
        with_files(|files| {
            let Some(id) = FileId::of(path)?.filter(|_| path.is_file()) else {
                return Ok(Some(FileLock(None)));
            };
            if files.get(&id).is_some_and(|own| own.is_locked) {
                return Ok(None);
            }
            if files.get(&id).is_none_or(|own| own.file.is_none()) {
                let file = File::open(path)?;
                let opened = FileId::new(&file.metadata()?);
                // The path may lead to another file by now.
                files.entry(opened).or_default().file.get_or_insert(file);
                if opened != id {
                    return Err(io::Error::other("it was replaced while it was opened"));
                }
            }
            let own = files.entry(id).or_default();
            let taken = own.file.as_ref().map_or(Ok(()), File::try_lock);
            own.is_locked = taken.is_ok();
            tidy(files, id);
            match taken {
                Ok(()) => Ok(Some(FileLock(Some(id)))),
                Err(TryLockError::WouldBlock) => Ok(None),
                // The file system has no such locks.
                Err(TryLockError::Error(error)) if error.kind() == io::ErrorKind::Unsupported => {
                    Ok(Some(FileLock(None)))
                }
                Err(TryLockError::Error(error)) => Err(error),
            }
        })
    }
}

impl Drop for FileLock {
    fn drop(&mut self) {
        let Some(id) = self.0 else { return };
        with_files(|files| {
            if let Some(own) = files.get_mut(&id) {
                own.is_locked = false;
                // The file is unlocked explicitly, since a child process that is just being started
                // may still have copies of our descriptors.
                let _ = own.file.as_ref().map(File::unlock);
            }
            tidy(files, id);
        });
    }
}
