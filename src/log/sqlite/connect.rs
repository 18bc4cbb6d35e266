//! The connections to a file: one writes, the others read.

use std::fmt::Write as _;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{ErrorKind, Read as _, Seek as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags};

use crate::log::sqlite::files::{Db, Held};
use crate::log::sqlite::schema;
use crate::log::{Durability, Error};

/// The size to which SQLite truncates the write-ahead log. It is more than writing alone needs,
/// since truncating and growing again delays commits by 0.1 s.
pub(super) const WAL_BYTES_KEPT: u32 = 320 << 20;
/// How long a statement waits for other tools that have the file open.
const BUSY_TIME_MAX: Duration = Duration::from_secs(5);
/// How many prepared statements a connection caches.
const STATEMENTS_MAX: usize = 64;

/// The connection that writes; what the file is has been looked at.
pub(super) fn writing(path: &Path) -> Result<Db, Error> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let wal = beside(path, "-wal");
    // SQLite would remove it, and with it what was acknowledged and not copied yet.
    if !path.exists() && std::fs::metadata(&wal).is_ok_and(|it| it.len() > 0) {
        let text = format!(
            "{} isn't there, but {} is, which has entries of it: put the file back, or move the \
             other away to begin an empty log",
            path.display(),
            wal.display(),
        );
        return Err(Error::Io(text.into()));
    }
    // What SQLite makes beside it is readable to whom the file is. One that is there isn't opened:
    // closing it would free SQLite's locks.
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

/// Whether a connection leaves the write-ahead log to the next one when it is closed. SQLite would
/// copy it, say nothing of a failure, and remove it.
pub(super) fn keeps_its_log(db: &Connection, keeps: bool) -> rusqlite::Result<()> {
    db.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, keeps).map(drop)
}

/// Has a connection that wrote nothing leave nothing behind, where there was nothing beside the
/// file.
pub(super) fn leave_as_it_was(db: &Connection, path: &Path) {
    if std::fs::metadata(beside(path, "-wal")).is_ok_and(|it| it.len() == 0) {
        // What is left is empty.
        let _ = keeps_its_log(db, false);
    }
}

/// Makes a connection keep what it is told, as durably as it is told.
pub(super) fn tune(db: &Connection, path: &Path, durability: Durability) -> Result<(), Error> {
    let synchronous = if durability == Durability::Full { "FULL" } else { "NORMAL" };
    let tune = || -> rusqlite::Result<String> {
        let mode = db.pragma_update_and_check(None, "journal_mode", "WAL", |row| row.get(0))?;
        db.pragma_update(None, "synchronous", synchronous)?;
        // Where a plain fsync leaves bytes in the drive's cache (macOS).
        db.pragma_update(None, "fullfsync", durability == Durability::Full)?;
        db.pragma_update(None, "checkpoint_fullfsync", durability == Durability::Full)?;
        // The writer does it, where a failure is seen.
        db.pragma_update(None, "wal_autocheckpoint", 0)?;
        // What a long reading made it grow to isn't kept.
        db.pragma_update(None, "journal_size_limit", WAL_BYTES_KEPT)?;
        db.pragma_update(None, "cache_size", -65_536)?;
        // They are for others. We only insert, never with REPLACE, and UNIQUE holds for us too;
        // without them a row costs two thirds.
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

/// A connection that reads: beside a writer, after one, or from a directory nobody may write to.
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

/// A file that was closed well, in a directory where SQLite can't make its index.
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

/// One process writes to a file. It holds this while it does.
#[derive(Debug)]
pub(super) struct Lock {
    beside: File,
    /// Held as long as this is: it lets go of itself.
    _file: Held,
}

impl Lock {
    /// Takes the lock of a log; it is freed when the process ends, however it does.
    ///
    /// There are two. The one on a file beside the log says who has it, and is all there is where
    /// the system has no other; the one on the log itself holds whatever name it is opened by.
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
                // Who holds it is a courtesy.
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
        // A full disk must not keep a log from being opened.
        drop(courtesy);
        Ok(lock)
    }

    /// The lock on the file alone, where nothing is to be made beside it.
    pub(super) fn of_file(path: &Path) -> Result<Held, Error> {
        let held = Held::take(path);
        let held = held.map_err(|it| Error::Io(format!("{}: {it}", path.display()).into()))?;
        held.ok_or_else(|| Error::Locked { path: path.to_owned(), process: None })
    }
}

/// Closing the file alone would leave the lock with whatever program is just being started: until
/// it is another, it has our files.
impl Drop for Lock {
    fn drop(&mut self) {
        // It goes with the process at the latest.
        let _ = self.beside.unlock();
    }
}

/// Word for the next process that what this one wrote can't be trusted: a file of its own. Where
/// the power is cut it may be lost, but then what is read next is what the disk has.
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

/// How to make a file that only its owner may read: messages are nobody else's.
pub(super) fn own() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.write(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

/// The path of a file that belongs to another.
pub(super) fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

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
