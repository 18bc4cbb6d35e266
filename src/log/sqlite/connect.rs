//! Opens connections to a log's file, for writing and for reading, and takes the lock that lets one
//! process at a time write.

use std::fmt::Write as _;
use std::fs::{File, TryLockError};
use std::io::{ErrorKind, Read as _, Seek as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags};

use crate::log::durability::Durability;
use crate::log::error::Error;
use crate::log::sqlite::files::{Db, FileLock, beside};
use crate::log::sqlite::limits::STATEMENTS_MAX;
use crate::log::sqlite::schema;

/// The size to which SQLite truncates the write-ahead log. The size is larger than writing alone
/// needs, because a file that is truncated and grows again delays commits by 0.1 s.
pub(super) const WAL_BYTES_KEPT: u32 = 320 << 20;
/// How long a statement waits for other programs that have locked the file.
const BUSY_TIME_MAX: Duration = Duration::from_secs(5);

/// Opens a connection for writing, and makes an empty file if there is none. The caller checks what
/// kind of file it is.
pub(super) fn writing(path: &Path) -> Result<Db, Error> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let wal = beside(path, "-wal");
    // Without a database file, SQLite would remove this write-ahead log, and with it entries that
    // were acknowledged but not copied into the database file.
    if !path.exists() && std::fs::metadata(&wal).is_ok_and(|it| it.len() > 0) {
        let text = format!(
            "{} isn't there, but {} is, which has entries of it: put the file back, or move the \
             other away to begin an empty log",
            path.display(),
            wal.display(),
        );
        return Err(Error::Io(text.into()));
    }
    // A new file may be read by its owner only, and SQLite makes the files beside it with the same
    // permissions. A file that exists isn't opened here, since closing it would free the locks that
    // SQLite has on it in this process.
    match own().create_new(true).open(path) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => {
            return Err(Error::Io(format!("{}: {error}", path.display()).into()));
        }
        _ => {}
    }
    let db = opened(path, || Connection::open_with_flags(path, flags))?;
    common(&db).and_then(|()| keeps_its_log(&db, true)).map_err(|it| schema::opening(path, &it))?;
    Ok(db)
}

/// Sets whether closing the connection leaves the write-ahead log as it is. Otherwise the last
/// connection that is closed copies and removes the write-ahead log, and doesn't report a failure.
pub(super) fn keeps_its_log(db: &Connection, keeps: bool) -> rusqlite::Result<()> {
    db.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, keeps).map(drop)
}

/// Lets a connection that wrote nothing remove an empty write-ahead log when the connection is
/// closed.
pub(super) fn leave_as_it_was(db: &Connection, path: &Path) {
    if std::fs::metadata(beside(path, "-wal")).is_ok_and(|it| it.len() == 0) {
        // If this fails, the empty file remains.
        let _ = keeps_its_log(db, false);
    }
}

/// Sets up a connection for writing with this durability.
pub(super) fn tune(db: &Connection, path: &Path, durability: Durability) -> Result<(), Error> {
    let (synchronous, fullfsync) = match durability {
        Durability::Full => ("FULL", true),
        Durability::Normal | Durability::Memory => ("NORMAL", false),
    };
    let tune = || -> rusqlite::Result<String> {
        let mode = db.pragma_update_and_check(None, "journal_mode", "WAL", |row| row.get(0))?;
        db.pragma_update(None, "synchronous", synchronous)?;
        // On macOS, a plain fsync leaves bytes in the drive's cache.
        db.pragma_update(None, "fullfsync", fullfsync)?;
        db.pragma_update(None, "checkpoint_fullfsync", fullfsync)?;
        // SQLite must not copy the write-ahead log by itself. The writer and the checkpointer
        // thread copy it, and notice failures.
        db.pragma_update(None, "wal_autocheckpoint", 0)?;
        // If a long read made the write-ahead log grow, SQLite truncates that file once it writes
        // the file from the beginning again.
        db.pragma_update(None, "journal_size_limit", WAL_BYTES_KEPT)?;
        db.pragma_update(None, "cache_size", -65_536)?;
        // The triggers protect the log from other programs. This connection needs none: it only
        // inserts, never with REPLACE, and SQLite still checks UNIQUE. Without the triggers, an
        // insert takes two thirds of the time.
        db.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_TRIGGER, false)?;
        Ok(mode)
    };
    let mode = tune().map_err(|error| schema::opening(path, &error))?;
    if mode != "wal" {
        let why = format!("{}: its file system can't hold a log; use a local one", path.display());
        return Err(Error::Io(why.into()));
    }
    Ok(())
}

/// Opens a connection for reading. Another process may write to the file meanwhile. The directory
/// may be read-only.
pub(super) fn reading(path: &Path) -> Result<Db, Error> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let db = opened(path, || Connection::open_with_flags(path, flags))?;
    common(&db).map_err(|it| schema::opening(path, &it))?;
    let first = db.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get::<_, i64>(0));
    let error = match first {
        Ok(_) => {
            db.pragma_update(None, "query_only", true).map_err(|it| schema::opening(path, &it))?;
            return Ok(db);
        }
        Err(error) => error,
    };
    match error.sqlite_error_code() {
        Some(ErrorCode::CannotOpen | ErrorCode::ReadOnly | ErrorCode::PermissionDenied) => {
            unchanging(path)
        }
        _ => Err(schema::opening(path, &error)),
    }
}

/// Opens a file that nobody writes to and that has no write-ahead log. SQLite makes no file beside
/// it, so opening it also works in a directory that can't be written to.
pub(super) fn unchanging(path: &Path) -> Result<Db, Error> {
    let rest = std::fs::metadata(beside(path, "-wal")).map_or(0, |it| it.len());
    if rest > 0 {
        let why = format!(
            "{}: its last entries stand in the file beside it, and its directory can't be \
             written to; copy both elsewhere",
            path.display()
        );
        return Err(Error::Io(why.into()));
    }
    let mut uri = "file:".to_owned();
    for byte in path.as_os_str().as_encoded_bytes() {
        match byte {
            b'/' | b'.' | b'-' | b'_' | b'0'..=b'9' | b'A'..=b'Z' | b'a'..=b'z' => {
                uri.push(char::from(*byte));
            }
            // Writing to a string can't fail.
            _ => write!(uri, "%{byte:02x}").unwrap_or_default(),
        }
    }
    uri.push_str("?immutable=1");
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY
        | OpenFlags::SQLITE_OPEN_NO_MUTEX
        | OpenFlags::SQLITE_OPEN_URI;
    let db = opened(path, || Connection::open_with_flags(uri, flags))?;
    common(&db).map_err(|it| schema::opening(path, &it))?;
    Ok(db)
}

fn opened(path: &Path, open: impl FnOnce() -> rusqlite::Result<Connection>) -> Result<Db, Error> {
    Db::open(path, open).map_err(|error| schema::opening(path, &error))
}

fn common(db: &Connection) -> rusqlite::Result<()> {
    db.busy_timeout(BUSY_TIME_MAX)?;
    db.set_prepared_statement_cache_capacity(STATEMENTS_MAX);
    db.pragma_update(None, "mmap_size", 0)
}

/// The lock that a process holds while it may write to a log.
#[derive(Debug)]
pub(super) struct Lock {
    beside: File,
    /// The lock on the log's file itself. It is released when this field is dropped.
    _file: FileLock,
}

impl Lock {
    /// Takes the lock of a log. When the process ends in any way, the system frees the lock.
    ///
    /// There are two locks. The first is on a file beside the log. This file contains the id of the
    /// process that holds the lock. The second is on the log's file itself, so it works under every
    /// name of the file. Systems other than Linux have only the first lock.
    pub(super) fn take(path: &Path) -> Result<Lock, Error> {
        let beside = beside(path, "-lock");
        let trouble =
            |error: std::io::Error| Error::Io(format!("{}: {error}", beside.display()).into());
        let mut file =
            own().create(true).truncate(false).read(true).open(&beside).map_err(trouble)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let mut text = String::new();
                // An error is ignored, since the process's id only makes the message more helpful.
                let _ = file.read_to_string(&mut text);
                let process = text.trim().parse().ok();
                return Err(Error::Locked { path: path.to_owned(), process });
            }
            Err(TryLockError::Error(error)) => return Err(trouble(error)),
        }
        let mut lock = Lock { beside: file, _file: Lock::of_file(path)? };
        let file = &mut lock.beside;
        let courtesy = file
            .set_len(0)
            .and_then(|()| file.rewind())
            .and_then(|()| writeln!(file, "{}", std::process::id()));
        // A failure is ignored: a full disk must not keep a log from being opened.
        drop(courtesy);
        Ok(lock)
    }

    /// Takes only the lock on the log's file itself, and makes no file beside it.
    pub(super) fn of_file(path: &Path) -> Result<FileLock, Error> {
        let held = FileLock::take(path);
        let held = held.map_err(|it| Error::Io(format!("{}: {it}", path.display()).into()))?;
        held.ok_or_else(|| Error::Locked { path: path.to_owned(), process: None })
    }
}

/// Unlocks the file explicitly. A child process that is just being started has copies of our open
/// descriptors until it runs its own program. If the file were only closed, the child would still
/// hold the lock.
impl Drop for Lock {
    fn drop(&mut self) {
        // If this fails, the lock is freed when the process ends.
        let _ = self.beside.unlock();
    }
}

/// A file beside the log. It tells the next process that a write failed, and that the write-ahead
/// log can't be trusted. A power cut may lose this file. That does no harm, since after a power cut
/// the next process reads what is really on the disk.
#[derive(Debug)]
pub(super) struct Mark(PathBuf);

impl Mark {
    pub(super) fn of(path: &Path) -> Mark {
        Mark(beside(path, "-failed"))
    }

    pub(super) fn is_there(&self) -> bool {
        self.0.exists()
    }

    pub(super) fn make(&self) {
        if let Err(error) = own().create(true).truncate(false).open(&self.0) {
            let file = self.0.display();
            tracing::error!(%file, %error, "before the next start, make this file by hand");
        }
    }

    pub(super) fn remove(&self) -> Result<(), Error> {
        let removed = std::fs::remove_file(&self.0);
        removed.map_err(|error| Error::Io(format!("{}: {error}", self.0.display()).into()))
    }
}

pub(super) use crate::own_files::own_options as own;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_is_free_though_a_program_that_is_being_started_has_its_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pumphouse.db");
        let lock = Lock::take(&path).unwrap();
        let child = lock.beside.try_clone().unwrap();
        assert!(matches!(Lock::take(&path), Err(Error::Locked { .. })));
        drop(lock);
        drop(Lock::take(&path).unwrap());
        drop(child);
    }
}
