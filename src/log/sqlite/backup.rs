//! Backups: a copy of a log in another file, made while the log may be written to.
//!
//! SQLite copies the pages in steps, within one read transaction. So the copy is the file as it was
//! when the transaction began. With a transaction for each step, the copy would start over after
//! every commit, and never end while a writer is busy. `VACUUM INTO` uses one transaction as well,
//! but it builds every index again and can't report progress. One transaction has a price: the
//! write-ahead log grows by all commits that are written meanwhile.
//!
//! The copy is made under another name, synced and verified, and only then moved to its path. So
//! that path never has an unfinished copy.

use std::fs::File;
use std::io::{Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rusqlite::backup::{Backup, StepResult};
use rusqlite::{Connection, OpenFlags};

use crate::log::error::{Boxed, Error, ready};
use crate::log::sqlite::check;
use crate::log::sqlite::connect;
use crate::log::sqlite::connect::Lock;
use crate::log::sqlite::files;
use crate::log::sqlite::files::Db;
use crate::log::sqlite::files::beside;
use crate::log::sqlite::read::{Digests, Reader};
use crate::log::sqlite::schema;
use crate::log::sqlite::{sync_directory, whole};
use crate::log::verify::Report;

/// Pages (4 MiB) that are copied at a time. Between two steps the backup can be cancelled.
const PAGES_AT_ONCE: i32 = 1_024;
/// The wait before a step is retried because another connection blocked it.
const BUSY_WAIT: Duration = Duration::from_millis(10);

/// What happens to a file that is at the copy's path already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
// Exhaustive, since a file can only stay or be replaced.
pub enum Existing {
    /// The file stays, and nothing is copied.
    Keep,
    /// The copy replaces the file, once it is verified.
    Replace,
}

/// The progress of a backup. After the last page the copy is verified.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Copied {
    /// How many bytes are copied so far.
    pub bytes: u64,
    /// How many bytes there are to copy.
    pub of: u64,
}

/// Starts a backup on a thread of its own.
pub(super) fn start(
    log: &Path,
    to: &Path,
    existing: Existing,
    watch: impl FnMut(Copied) + Send + 'static,
) -> Boxed<'static, Report> {
    let begin = || {
        let to = whole(to)?;
        let lock = is_free(log, &to, existing)?;
        let half = Half::make(&to)?;
        let work = Work { log: log.to_owned(), half: half.path.clone(), ended: half.ended.clone() };
        let (answer, answered) = flume::bounded(1);
        std::thread::Builder::new()
            .name("log-backup".to_owned())
            .spawn(move || {
                // The caller may have stopped waiting.
                let _ = answer.send(work.run(watch));
            })
            .map_err(|error| Error::Io(error.to_string().into()))?;
        Ok((half, to, lock, answered))
    };
    let log = log.to_owned();
    let (half, to, lock, answered) = match begin() {
        Ok(begun) => begun,
        Err(error) => return ready(Err(error)),
    };
    Box::pin(async move {
        let report = answered.recv_async().await.unwrap_or(Err(Error::Closed))?;
        let lock = match lock {
            // A log may have been made at the path meanwhile.
            None => is_free(&log, &to, existing)?,
            lock => lock,
        };
        half.put(&to, existing)?;
        drop(lock);
        Ok(report)
    })
}

/// Checks that a copy may be put at a path. If the path has a lock file, but no process writes to
/// the log there, takes the log's lock and returns it.
fn is_free(log: &Path, to: &Path, existing: Existing) -> Result<Option<Lock>, Error> {
    let refuse = |why: &str| Err(Error::Io(format!("{}: {why}", to.display()).into()));
    files::spare(log, to)?;
    if to.is_dir() {
        return refuse("it is a folder; name a file in it");
    }
    if existing == Existing::Keep && to.exists() {
        return refuse("it is there already; name another file");
    }
    // Only a pump makes the lock file. If there is none, a pump may still have opened the file by
    // another name, so the lock on the file itself is tried.
    let taken = match beside(to, "-lock").exists() {
        true => Lock::take(to).map(Some),
        false => Lock::of_file(to).map(|_| None),
    };
    let lock = match taken {
        Err(Error::Locked { .. }) => {
            return refuse("a pump writes to a log there; name another file");
        }
        lock => lock?,
    };
    // SQLite would read this write-ahead log as part of the copy.
    if std::fs::metadata(beside(to, "-wal")).is_ok_and(|it| it.len() > 0) {
        return refuse("entries of a log are in the write-ahead log beside it; name another file");
    }
    Ok(lock)
}

/// An unfinished copy, which is removed when this value is dropped.
struct Half {
    path: PathBuf,
    ended: Arc<AtomicBool>,
}

impl Half {
    fn make(to: &Path) -> Result<Half, Error> {
        let path = beside(to, &format!("-{:016x}", crate::clock::random()));
        let made = connect::own().create_new(true).open(&path);
        made.map_err(|error| trouble(&path, &error))?;
        Ok(Half { path, ended: Arc::default() })
    }

    /// Moves a copy to its path.
    fn put(self, to: &Path, existing: Existing) -> Result<(), Error> {
        let put = match existing {
            // Unlike a rename, a hard link doesn't replace a file that was made there meanwhile.
            Existing::Keep => match std::fs::hard_link(&self.path, to) {
                // The file system has no hard links.
                Err(_) if !to.exists() => std::fs::rename(&self.path, to),
                linked => linked,
            },
            Existing::Replace => std::fs::rename(&self.path, to),
        };
        put.map_err(|error| trouble(to, &error))?;
        sync_directory(to)
    }
}

impl Drop for Half {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Relaxed);
        // After a rename, this path has no file any more. After a hard link, this removes the first
        // of the file's two names.
        let _ = std::fs::remove_file(&self.path);
    }
}

/// The work of the backup's thread.
struct Work {
    log: PathBuf,
    half: PathBuf,
    ended: Arc<AtomicBool>,
}

impl Work {
    fn run(&self, watch: impl FnMut(Copied)) -> Result<Report, Error> {
        let from = self.reader(connect::reading(&self.log)?);
        let look = from.db.unchecked_transaction();
        let look = from.sql(look)?;
        let head = from.head()?;
        self.copy(&from, watch)?;
        from.sql(look.finish())?;
        self.settle()?;
        let mut copy = self.reader(connect::unchanging(&self.half)?);
        let report = check::verify(&mut copy, Some(head))?;
        match report.findings.first() {
            None => Ok(report),
            Some(finding) => Err(schema::damaged(&self.log, &finding.to_string())),
        }
    }

    fn reader(&self, db: Db) -> Reader {
        Reader::new(db, &self.log, self.ended.clone(), Digests::Unchecked)
    }

    fn copy(&self, from: &Reader, mut watch: impl FnMut(Copied)) -> Result<(), Error> {
        let page = from.db.pragma_query_value(None, "page_size", |row| row.get::<_, i64>(0));
        let page = from.sql(page)?.cast_unsigned();
        let trouble = |error: rusqlite::Error| match schema::opening(&self.log, &error) {
            Error::Io(_) => Error::Io(format!("{}: {error}", self.half.display()).into()),
            other => other,
        };
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let mut to = Connection::open_with_flags(&self.half, flags).map_err(trouble)?;
        // Copying doesn't sync: an unfinished copy is removed, and a complete copy is synced once.
        to.pragma_update(None, "synchronous", "OFF").map_err(trouble)?;
        to.pragma_update(None, "journal_mode", "OFF").map_err(trouble)?;
        let copying = Backup::new(&from.db, &mut to).map_err(trouble)?;
        loop {
            from.go_on()?;
            match copying.step(PAGES_AT_ONCE).map_err(trouble)? {
                StepResult::Done | StepResult::More => {}
                _ => std::thread::park_timeout(BUSY_WAIT),
            }
            let progress = copying.progress();
            let pages = |count: i32| u64::from(count.unsigned_abs()) * page;
            let (left, of) = (pages(progress.remaining), pages(progress.pagecount));
            watch(Copied { bytes: of - left, of });
            if left == 0 && of > 0 {
                break;
            }
        }
        Ok(())
    }

    /// Marks the copy as a database without a write-ahead log, so that readers make no files beside
    /// it. Then syncs the copy.
    fn settle(&self) -> Result<(), Error> {
        /// The offset of two bytes in SQLite's header: the file format's write version and read
        /// version. Both are 2 with a write-ahead log, and 1 without one.
        const VERSIONS: u64 = 18;
        let settle = || {
            let mut file = File::options().write(true).open(&self.half)?;
            file.seek(SeekFrom::Start(VERSIONS))?;
            file.write_all(&[1, 1])?;
            file.sync_all()
        };
        settle().map_err(|error| trouble(&self.half, &error))
    }
}

fn trouble(path: &Path, error: &std::io::Error) -> Error {
    Error::Io(format!("{}: {error}", path.display()).into())
}
