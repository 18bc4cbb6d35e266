//! A log in one SQLite file. One thread writes, a few threads read, and one copies the write-ahead
//! log into the database file.

mod limits;
#[cfg(test)]
mod simulated_disk_errors;
mod retry;
mod files;
mod schema;
mod connect;
mod wal;
mod shared_state;
mod checkpoint;
mod row;
mod read;
mod shared_text;
mod sources;
mod tail;
mod marks;
mod queue;
mod write;
mod check;
mod open_entries;
mod backup;
#[cfg(test)]
mod tests;

use std::future::Future as _;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Waker};
use std::thread::JoinHandle;

use flume::{Sender, TrySendError};
use futures_util::future::try_join;

use crate::atomic_file::{AtomicFile, IfExists};
use crate::id::ThreadId;
use crate::log::admit::{Job, Origins};
use crate::log::durability::Durability;
use crate::log::entry::{Batch, Entry, Noted, Open, Receipt, ThreadRecord, ThreadSummary};
use crate::log::error::{Boxed, Error, ready};
use crate::log::head::Head;
use crate::log::identity::Identity;
use crate::log::interface::Health;
use crate::log::interface::Log;
use crate::log::sqlite::limits::BATCHES_MAX;
use crate::log::verify::Report;

pub use backup::{Copied, Existing};
use checkpoint::{Checkpointer, WalBounds};
use connect::{Lock, Mark};
use files::Files;
use queue::{Command, Precedence, QueuedBatch};
use read::{Digests, Reader, Readers, twice};
use schema::FileKind;
use shared_state::Shared;
use write::{Caches, Commits, Writer};

/// Two readers read one half each of a page if a half may have at least this many entries. A read
/// that begins with the first entry and has no upper bound is left to one reader.
const PART_ENTRIES_MIN: usize = 256;

/// A log in one SQLite file.
pub struct SqliteLog {
    identity: Identity,
    durability: Durability,
    path: PathBuf,
    origins: Origins,
    shared: Arc<Shared>,
    readers: Readers,
    /// `None` if the log was opened for reading.
    writer: Option<Handle>,
}

struct Handle {
    commands: Sender<Command>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl SqliteLog {
    /// Opens a log. If the file is missing or empty, makes a new log.
    ///
    /// From a log that was opened in this way, reading an entry that doesn't match its digest is an
    /// error.
    ///
    /// # Errors
    /// If another process writes to the file; if the file isn't a log, is damaged, or was written
    /// by a later version; if `durability` is [`Durability::Memory`]; if the operating system
    /// refuses.
    pub fn open(path: impl AsRef<Path>, durability: Durability) -> Result<SqliteLog, Error> {
        if durability == Durability::Memory {
            return Err(Error::Invalid("a log of durability memory has no file".into()));
        }
        let path = whole(path.as_ref())?;
        twice(|| SqliteLog::open_at(&path, durability))
    }

    fn open_at(path: &Path, durability: Durability) -> Result<SqliteLog, Error> {
        let path = path.to_owned();
        let db = connect::writing(&path)?;
        if let Err(error) = schema::inspect(&db, &path) {
            connect::leave_as_it_was(&db, &path);
            return Err(error);
        }
        let lock = Lock::take(&path)?;
        let writer = crate::log::identity::fresh_uuid();
        if let FileKind::Nothing = schema::inspect(&db, &path)? {
            // The new log is synced whatever its durability is, so that its identity survives a
            // power cut.
            connect::tune(&db, &path, Durability::Full)?;
            schema::create(&db, &Identity::fresh())
                .and_then(|()| wal::passive(&db))
                .map_err(|error| schema::opening(&path, &error))?;
            sync_directory(&path)?;
        }
        let mark = Mark::of(&path);
        if mark.is_there() {
            connect::tune(&db, &path, Durability::Full)?;
            trust(&db, &path)?;
            mark.remove()?;
        }
        connect::tune(&db, &path, durability)?;
        let identity = schema::identity(&db, &path)?;
        let shared = Arc::new(Shared::default());
        let _ = shared.mark.set(mark); // Nothing is stored there yet, so this can't fail.
        let (db_read, stop) = (connect::reading(&path)?, shared.closing.clone());
        let mut reader = Reader::new(db_read, &path, stop, Digests::Checked);
        let tip = check::tip(&mut reader)?;
        drop(reader);
        if durability == Durability::Normal {
            // The write-ahead log may be a new file, whose name must survive a power cut. SQLite
            // itself syncs the name only if each commit is synced.
            sync_directory(&path)?;
        }
        let (readers, threads) = Readers::start(&path, &shared.closing, Digests::Checked)?;
        let read_requests = readers.read_requests();
        let caches = Caches::default();
        let (commands, inbox) = flume::bounded(BATCHES_MAX);
        let file = path.clone();
        let writer = Writer {
            db,
            path: file,
            writer,
            tip,
            shared: shared.clone(),
            commits: Commits::default(),
            caches,
            read_requests,
            readers: threads,
            checkpointer: Checkpointer::start(&path, durability, &shared)?,
            ended_at: 0,
            bounds: WalBounds::default(),
            looked_at: i64::MIN / 2,
            lock,
        };
        let files = Files::of(&writer.path).map_err(|it| Error::Io(it.to_string().into()))?;
        // Nothing is stored there yet, so this can't fail.
        let _ = writer.shared.files.set(files);
        let thread = std::thread::Builder::new()
            .name("log-write".to_owned())
            .spawn(move || writer.run(&inbox))
            .map_err(|error| Error::Io(error.to_string().into()))?;
        let writer = Some(Handle { commands, thread: Mutex::new(Some(thread)) });
        let origins = Origins::default();
        Ok(SqliteLog { identity, durability, path, origins, shared, readers, writer })
    }

    /// Opens a log for reading. Another process may write to it meanwhile.
    ///
    /// Entries are returned even if they don't match their digests, so that people can look at a
    /// damaged log. [`Log::verify`] finds the damage.
    ///
    /// # Errors
    /// If the file is missing, isn't a log, is damaged, or was written by a later version; if the
    /// operating system refuses.
    pub fn open_read_only(path: impl AsRef<Path>) -> Result<SqliteLog, Error> {
        let path = whole(path.as_ref())?;
        twice(|| SqliteLog::open_to_read(&path))
    }

    fn open_to_read(path: &Path) -> Result<SqliteLog, Error> {
        let path = path.to_owned();
        let db = connect::reading(&path)?;
        if let FileKind::Nothing = schema::inspect(&db, &path)? {
            return Err(Error::NotALog { path });
        }
        let identity = schema::identity(&db, &path)?;
        drop(db);
        let shared = Arc::new(Shared::default());
        let (readers, _) = Readers::start(&path, &shared.closing, Digests::Unchecked)?;
        let durability = Durability::Full;
        let origins = Origins::default();
        Ok(SqliteLog { identity, durability, path, origins, shared, readers, writer: None })
    }

    /// The path of the log's file. Links in the path are resolved.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Copies the log into another file, and verifies the copy. The log may be written to
    /// meanwhile: the copy has the contents that the log had when the copying began. The report's
    /// head is the head of the copy. The copy appears at its path only once it is complete and
    /// verified. `watch` is called with the progress.
    ///
    /// If the future is dropped before it is ready, the unfinished copy is removed.
    ///
    /// # Errors
    /// If a file exists at the path and `existing` is [`Existing::Keep`]; if a pump uses a log
    /// there; if the path is one of this log's own files; if the copy can't be written; if the log
    /// is damaged.
    ///
    /// ```no_run
    /// # extern crate pumphouse_log as pumphouse;
    /// # async fn example() -> Result<(), pumphouse::log::Error> {
    /// use pumphouse::log::{Existing, SqliteLog};
    ///
    /// let log = SqliteLog::open_read_only("data/pumphouse.db")?;
    /// let report = log.backup("backup.db", Existing::Keep, |_| {}).await?;
    /// println!("keep this elsewhere: {}", report.head);
    /// # Ok(())
    /// # }
    /// ```
    pub fn backup(
        &self,
        to: impl AsRef<Path>,
        existing: Existing,
        watch: impl FnMut(Copied) + Send + 'static,
    ) -> Boxed<'static, Report> {
        backup::start(&self.path, to.as_ref(), existing, watch)
    }

    /// Begins a file that isn't one of the log's own files, nor a link to one.
    ///
    /// # Errors
    /// If the path is one of the log's own, or if the file can't be made.
    pub fn file_outside(&self, path: &Path, if_exists: IfExists) -> io::Result<AtomicFile> {
        files::spare(&self.path, path).map_err(|error| match error {
            Error::Io(why) => io::Error::other(why.to_string()),
            other => io::Error::other(other.to_string()),
        })?;
        AtomicFile::begin(path, if_exists)
    }

    fn put(&self, batch: Batch, place: Precedence) -> Boxed<'static, Receipt> {
        let Some(writer) = &self.writer else { return ready(Err(Error::ReadOnly)) };
        if self.shared.closing.load(Ordering::Relaxed) {
            return ready(Err(Error::Closed));
        }
        if let Health::Poisoned(why) = self.shared.health() {
            return ready(Err(Error::Poisoned(why)));
        }
        self.send(writer, batch, place)
    }

    fn send(&self, writer: &Handle, batch: Batch, place: Precedence) -> Boxed<'static, Receipt> {
        let job = Job::seal(batch, &self.origins);
        let (answer, answered) = flume::bounded(1);
        let shared = self.shared.clone();
        let outcome = move || match shared.health() {
            Health::Poisoned(why) => Error::Poisoned(why),
            Health::Well | Health::Full => Error::Closed,
        };
        let command =
            match writer.commands.try_send(Command::Append(place, QueuedBatch { job, answer })) {
                Ok(()) => {
                    return Box::pin(async move {
                        answered.recv_async().await.unwrap_or_else(|_| Err(outcome()))
                    });
                }
                Err(TrySendError::Disconnected(_)) => return ready(Err(Error::Closed)),
                Err(TrySendError::Full(command)) => command,
            };
        // The first poll gives the batch its place in the queue. The caller awaits the future
        // later.
        let mut sending = Box::pin(writer.commands.clone().into_send_async(command));
        let _ = sending.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        Box::pin(async move {
            let sent = sending.await;
            sent.map_err(|_| outcome())?;
            answered.recv_async().await.unwrap_or_else(|_| Err(outcome()))
        })
    }
}

impl std::fmt::Debug for SqliteLog {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SqliteLog").field("path", &self.path).finish_non_exhaustive()
    }
}

impl Log for SqliteLog {
    fn identity(&self) -> Identity {
        self.identity.clone()
    }

    fn durability(&self) -> Durability {
        self.durability
    }

    fn append(&self, batch: Batch) -> Boxed<'static, Receipt> {
        self.put(batch, Precedence::Behind)
    }

    fn append_ahead(&self, batch: Batch) -> Boxed<'static, Receipt> {
        self.put(batch, Precedence::Ahead)
    }

    fn health(&self) -> Health {
        self.shared.health()
    }

    fn thread<'a>(&'a self, id: &'a ThreadId) -> Boxed<'a, Option<ThreadRecord>> {
        let id = id.clone();
        self.readers.ask(move |reader| reader.thread(&id))
    }

    fn tree<'a>(&'a self, root: &'a ThreadId) -> Boxed<'a, Vec<ThreadRecord>> {
        let root = root.clone();
        self.readers.ask(move |reader| reader.tree(&root))
    }

    fn charges<'a>(&'a self, root: &'a ThreadId) -> Boxed<'a, Vec<Arc<Entry>>> {
        let root = root.clone();
        self.readers.ask(move |reader| reader.charges(&root))
    }

    fn count<'a>(&'a self, root: &'a ThreadId, but_from: &'a str) -> Boxed<'a, u64> {
        let (root, but_from) = (root.clone(), but_from.to_owned());
        self.readers.ask(move |reader| reader.count(&root, &but_from))
    }

    fn marks<'a>(&'a self, root: &'a ThreadId) -> Boxed<'a, Vec<Noted>> {
        let root = root.clone();
        self.readers.ask(move |reader| reader.marks(&root))
    }

    fn read<'a>(
        &'a self,
        thread: &'a ThreadId,
        after: u64,
        upto: u64,
        limit: usize,
    ) -> Boxed<'a, Vec<Arc<Entry>>> {
        let part = move |after, upto, limit| {
            let thread = thread.clone();
            self.readers.ask(move |reader| reader.read(&thread, after, upto, limit))
        };
        let half = limit / 2;
        let middle = after.saturating_add(half as u64);
        let is_walk = after > 0 || upto < u64::MAX;
        if half < PART_ENTRIES_MIN || upto <= middle || !is_walk {
            return part(after, upto, limit);
        }
        // Two readers read one half each of a long page at the same time.
        let halves = try_join(part(after, middle, half), part(middle, upto, limit - half));
        Box::pin(async move {
            let (mut page, rest) = halves.await?;
            if page.len() == half {
                page.extend(rest);
            } else if page.is_empty() && !rest.is_empty() {
                // The first half is empty, but the second isn't: the entries were appended between
                // the two reads, or some entries are missing.
                page = part(after, upto, limit).await?;
            }
            Ok(page)
        })
    }

    fn tail(&self, after_position: u64, limit: usize) -> Boxed<'_, Vec<Arc<Entry>>> {
        self.readers.ask(move |reader| reader.tail(after_position, limit))
    }

    fn tail_within(
        &self,
        after_position: u64,
        limit: usize,
        bytes_max: usize,
    ) -> Boxed<'_, Vec<Arc<Entry>>> {
        self.readers.ask(move |reader| reader.tail_within(after_position, limit, bytes_max))
    }

    fn threads<'a>(
        &'a self,
        after: Option<&'a ThreadId>,
        limit: usize,
    ) -> Boxed<'a, Vec<ThreadSummary>> {
        let after = after.cloned();
        self.readers.ask(move |reader| reader.threads(after.as_ref(), limit))
    }

    fn client_id<'a>(&'a self, identity: &'a str, id: &'a str) -> Boxed<'a, Option<Arc<Entry>>> {
        let (identity, id) = (identity.to_owned(), id.to_owned());
        self.readers.ask(move |reader| reader.client_id(&identity, &id))
    }

    fn open_entries(&self) -> Boxed<'_, Vec<Open>> {
        self.readers.ask(Reader::open_entries)
    }

    fn head(&self) -> Boxed<'_, Head> {
        self.readers.ask(|reader| reader.head())
    }

    fn verify(&self, expect: Option<Head>) -> Boxed<'_, Report> {
        self.readers.ask(move |reader| check::verify(reader, expect))
    }

    fn close(&self) -> Boxed<'_, ()> {
        let first = !self.shared.closing.swap(true, Ordering::Relaxed);
        let Some(writer) = &self.writer else { return ready(Ok(())) };
        let (answer, answered) = flume::bounded(1);
        Box::pin(async move {
            if !first {
                return Ok(());
            }
            if let Some(thread) = &*writer.thread.lock().unwrap_or_else(PoisonError::into_inner) {
                thread.thread().unpark();
            }
            let sent = writer.commands.send_async(Command::Close(answer)).await;
            sent.map_err(|_| Error::Closed)?;
            answered.recv_async().await.unwrap_or(Err(Error::Closed))
        })
    }
}

/// Closes a log that wasn't closed, and waits until its appends are finished.
impl Drop for SqliteLog {
    fn drop(&mut self) {
        self.shared.closing.store(true, Ordering::Relaxed);
        let Some(writer) = &self.writer else { return };
        let thread = writer.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(thread) = thread else { return };
        thread.thread().unpark();
        let (answer, _) = flume::bounded(1);
        let _ = writer.commands.send(Command::Close(answer));
        let _ = thread.join();
    }
}

/// Copies the write-ahead log into the database file, and syncs that file. This is done when a log
/// is opened after a failed write of an earlier process. After such a failure, the operating system
/// may treat the write-ahead log as written although parts of it aren't on the disk. Without the
/// copy, later commits would follow a lost part of the write-ahead log, and be lost with it.
fn trust(db: &rusqlite::Connection, path: &Path) -> Result<(), Error> {
    let copied = || -> rusqlite::Result<bool> {
        // SQLite doesn't copy a page twice. Another process that has the file open may have copied
        // some pages already, and the disk may not have them. So the copy counts only if no page
        // was copied before.
        Ok(wal::wal(db)?.copied() == 0 && wal::truncate(db)?)
    };
    if copied().map_err(|error| schema::opening(path, &error))? {
        return Ok(());
    }
    let why = format!(
        "{}: its last writing failed, and it must be copied before it is written to again; \
         end whoever reads it",
        path.display()
    );
    Err(Error::Io(why.into()))
}

/// Resolves the links in a path, so that a link and its target are treated as one log.
fn whole(path: &Path) -> Result<PathBuf, Error> {
    let trouble = |error: io::Error| Error::Io(format!("{}: {error}", path.display()).into());
    match path.canonicalize() {
        Ok(path) => Ok(path),
        Err(_) => {
            let path = std::path::absolute(path).map_err(trouble)?;
            let (Some(directory), Some(name)) = (path.parent(), path.file_name()) else {
                return Err(Error::NotALog { path });
            };
            Ok(directory.canonicalize().map_err(trouble)?.join(name))
        }
    }
}

/// Syncs the folder of a new file, so that the file's name survives a power cut.
fn sync_directory(path: &Path) -> Result<(), Error> {
    let Some(directory) = path.parent().filter(|_| cfg!(unix)) else { return Ok(()) };
    let sync = std::fs::File::open(directory).and_then(|it| it.sync_all());
    sync.map_err(|error| Error::Io(format!("{}: {error}", directory.display()).into()))
}
