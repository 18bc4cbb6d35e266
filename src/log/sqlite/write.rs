//! The writer thread. Batches that queued up during a commit are written together in the next one
//! (group commit).

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;

use flume::{Receiver, Sender};
use rusqlite::{CachedStatement, Connection, OptionalExtension};
use uuid::Uuid;

use crate::clock;
use crate::id::{EntryId, ThreadId};
use crate::log::admit;
use crate::log::admit::{Admitted, Job, Records, Row, ThreadTip};
use crate::log::chain::Commit;
use crate::log::chain::Link;
use crate::log::chain::Origin;
use crate::log::entry::{Entry, Receipt};
use crate::log::error::Error;
use crate::log::head::Head;
use crate::log::interface::Health;
use crate::log::mark_bytes::MarkWriter;
use crate::log::sqlite::checkpoint;
use crate::log::sqlite::checkpoint::{CHECKPOINT_FAILED, Checkpointer, Due, WalBounds};
use crate::log::sqlite::connect;
use crate::log::sqlite::connect::Lock;
use crate::log::sqlite::files::Db;
use crate::log::sqlite::limits::{COPY_WAIT, NAMES_MAX, RETRY_TIME, THREADS_MAX};
use crate::log::sqlite::queue::{Command, Next, Queue, QueuedBatch};
use crate::log::sqlite::read::{CLIENT_ID, READERS, ReadRequest};
use crate::log::sqlite::retry::{Retry, retry};
use crate::log::sqlite::shared_state::Shared;
use crate::log::sqlite::shared_text;
use crate::log::sqlite::sources::Sources;
use crate::log::sqlite::wal;
use crate::name::Name;

/// The end of the log: its last commit, and the last numbers of entries, threads and names.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tip {
    pub(super) head: Head,
    pub(super) position: u64,
    pub(super) thread: u64,
    pub(super) name: i64,
}

/// The writer thread's state.
pub(super) struct Writer {
    pub(super) db: Db,
    pub(super) path: PathBuf,
    pub(super) writer: Uuid,
    pub(super) tip: Tip,
    pub(super) shared: Arc<Shared>,
    /// The shortest duration of recent commits.
    pub(super) commits: Commits,
    pub(super) caches: Caches,
    /// With this sender and the handles in `readers`, the writer ends the readers. So the writer is
    /// the last to close the file.
    pub(super) read_requests: Sender<ReadRequest>,
    pub(super) readers: Vec<JoinHandle<()>>,
    pub(super) checkpointer: Checkpointer,
    /// The length of the write-ahead log, in pages, when the writer last copied its last pages (see
    /// [`Due::End`]).
    pub(super) ended_at: i64,
    /// The lengths at which the write-ahead log is copied. They were last computed when the
    /// write-ahead log had `looked_at` pages.
    pub(super) bounds: WalBounds,
    pub(super) looked_at: i64,
    pub(super) lock: Lock,
}

/// The writer's caches. They may be emptied between two commits.
#[derive(Default)]
pub(super) struct Caches {
    threads: HashMap<ThreadId, ThreadTip>,
    names: HashMap<Name, i64>,
    sources: Sources,
}

/// The outcome of a commit for each of its batches: the position of the batch's first entry, or the
/// reason why the batch was refused.
type Outcomes = Vec<Result<u64, Error>>;

impl Writer {
    /// Runs the writer until the log is closed.
    pub(super) fn run(mut self, inbox: &Receiver<Command>) {
        let _watch = Watch(self.shared.clone());
        let mut queue = Queue::default();
        let closed = loop {
            match queue.next(inbox, self.commits.least_us(), clock::now_us) {
                Next::Group(group) => self.commit(group),
                Next::Close(closed) => break closed,
            }
        };
        for command in inbox.drain() {
            if let Command::Append(_, waiting) = command {
                let _ = waiting.answer.send(Err(Error::Closed));
            }
        }
        let outcome = self.leave();
        if let Some(closed) = closed {
            let _ = closed.send(outcome);
        }
    }

    /// Ends the other threads and closes the log. If everything can be copied, no write-ahead log
    /// is left.
    fn leave(self) -> Result<(), Error> {
        for _ in 0..READERS {
            let _ = self.read_requests.send(ReadRequest::Stop);
        }
        for reader in self.readers {
            let _ = reader.join();
        }
        self.checkpointer.stop();
        let copied = match self.shared.health() {
            Health::Poisoned(why) => Err(Error::Poisoned(why)),
            Health::Well | Health::Full => match wal::truncate(&self.db) {
                Err(error) if retry(&error) == Retry::Never => {
                    Err(self.shared.poison(&format!("{CHECKPOINT_FAILED}: {error}")))
                }
                // The write-ahead log is empty now, and is removed when the connection is closed.
                Ok(true) => {
                    let _ = connect::keeps_its_log(&self.db, false);
                    Ok(())
                }
                // Another process reads the write-ahead log, or the disk is full. The pages that
                // can't be copied now stay in the write-ahead log.
                Ok(false) | Err(_) => checkpoint::sync(&self.path, &self.shared),
            },
        };
        let closed = self.db.close();
        drop(self.lock);
        copied?;
        closed.map_err(|error| Error::Io(format!("{}: {error}", self.path.display()).into()))
    }

    /// Commits a group of batches, and answers their callers. If the disk is full or another
    /// program holds the file, the writer waits and tries again. Any other error poisons the log:
    /// it takes no more appends.
    fn commit(&mut self, mut group: Vec<QueuedBatch>) {
        let (outcomes, head) = loop {
            // While this group waited, the checkpointer thread may have poisoned the log.
            if let Health::Poisoned(why) = self.shared.health() {
                return refuse(group, &Error::Poisoned(why));
            }
            let before = self.tip;
            let error = match self.attempt(&mut group) {
                Ok(outcomes) => break (outcomes, self.tip.head),
                Err(error) => error,
            };
            self.tip = before;
            self.caches = Caches::default();
            if !self.db.is_autocommit() && self.db.execute_batch("ROLLBACK").is_err() {
                let why = self.shared.poison("a rollback failed");
                return refuse(group, &why);
            }
            match retry(&error) {
                Retry::Never => {
                    let why = self.shared.poison(&format!("a write failed: {error}"));
                    return refuse(group, &why);
                }
                Retry::WhenThereIsRoom => {
                    self.shared.note_full(&self.path);
                    // Once all of the write-ahead log is copied, SQLite writes it from its
                    // beginning again, which needs no more room.
                    let _ = wal::passive(&self.db);
                }
                Retry::Soon => {
                    let file = self.path.display();
                    tracing::warn!(%file, "somebody else holds the log's file; what comes waits");
                }
            }
            if self.shared.closing.load(Ordering::Relaxed) {
                let full = self.shared.full.load(Ordering::Relaxed);
                return refuse(group, if full { &Error::Full } else { &Error::Closed });
            }
            std::thread::park_timeout(RETRY_TIME);
        };
        // If one of the log's files was removed, renamed or replaced, the group is refused, since
        // its entries may be lost with that file.
        if let Err(gone) = self.shared.look(&self.db) {
            return refuse(group, &gone);
        }
        let shared_us = self.commits.least_us();
        self.shared.note_room(&self.path);
        self.shared.unsynced.store(true, Ordering::Release);
        for (waiting, outcome) in group.into_iter().zip(outcomes) {
            let receipt = outcome.map(|first_position| {
                let entries = waiting.job.entries;
                Receipt { first_position, entries, head, shared_us }
            });
            debug_assert!(receipt.iter().all(Receipt::is_in_order), "positions have a gap");
            // The caller may have stopped waiting.
            let _ = waiting.answer.send(receipt);
        }
        self.tidy();
    }

    /// Tries to write a group of batches in one transaction, as one commit.
    fn attempt(&mut self, group: &mut [QueuedBatch]) -> rusqlite::Result<Outcomes> {
        #[cfg(test)]
        self.shared.trouble.before(&self.db)?;
        self.db.execute_batch("BEGIN IMMEDIATE")?;
        let before = self.tip;
        let mut books = SqlRecords::new(&self.db, &mut self.caches, &mut self.tip)?;
        let mut marks = MarkWriter::default();
        let mut admitted = Admitted::default();
        let mut outcomes = Vec::with_capacity(group.len());
        for waiting in group.iter_mut() {
            let first = books.tip.position + 1;
            let kept = books.keep(&mut waiting.job, &mut admitted, &mut marks)?;
            outcomes.push(kept.map(|()| first));
        }
        drop(books);
        debug_assert_eq!(outcomes.len(), group.len(), "each batch of a commit has an outcome");
        let marks = marks.finish();
        let tip = self.tip;
        if (tip.position, tip.thread, marks.len()) == (before.position, before.thread, 0) {
            self.db.execute_batch("ROLLBACK")?;
            return Ok(outcomes);
        }
        let commit = Commit {
            number: before.head.number + 1,
            writer: self.writer,
            last_position: tip.position,
            last_thread: tip.thread,
        };
        let mut link = Link::new(before.head.chain, commit);
        let kept = || group.iter().zip(&outcomes).filter(|(_, outcome)| outcome.is_ok());
        for new in kept().flat_map(|(waiting, _)| &waiting.job.threads) {
            let origin = Origin::of(new.parent.clone(), new.fork.clone());
            link.thread(&new.id, origin.as_deref());
        }
        for entry in kept().flat_map(|(waiting, _)| &waiting.job.entries) {
            link.entry(&entry.digest);
        }
        let chain = link.finish(&marks);
        self.db.prepare_cached("INSERT INTO commits VALUES (?1, ?2, ?3, ?4, ?5, ?6)")?.execute(
            (
                commit.number.cast_signed(),
                &self.writer.as_bytes()[..],
                commit.last_position.cast_signed(),
                commit.last_thread.cast_signed(),
                &chain[..],
                &marks,
            ),
        )?;
        debug_assert!(is_last_row(&self.db, commit.number), "a commit's row is its number");
        let since_us = clock::now_us();
        self.db.execute_batch("COMMIT")?;
        self.commits.add(clock::now_us().saturating_sub(since_us));
        self.tip.head = Head { number: commit.number, chain };
        Ok(outcomes)
    }

    /// Copies the write-ahead log now. If another copy is under way, the writer waits for its end
    /// first.
    fn checkpoint(&self) -> rusqlite::Result<()> {
        while wal::passive(&self.db)? {
            std::thread::park_timeout(COPY_WAIT);
        }
        Ok(())
    }

    fn checkpoint_if_due(&mut self) -> rusqlite::Result<()> {
        let wal = wal::wal(&self.db)?;
        if wal.pages < self.ended_at {
            // The write-ahead log has started from its beginning since the writer last copied its
            // end.
            self.ended_at = 0;
        }
        if !(self.looked_at..self.looked_at + checkpoint::MEASURE_PAGES).contains(&wal.pages) {
            self.looked_at = wal.pages;
            self.measure_room()?;
        }
        let is_settled = self.shared.is_settled.load(Ordering::Relaxed);
        match checkpoint::due(wal, is_settled, self.ended_at, self.bounds) {
            Due::Nothing => {}
            Due::InBackground => self.checkpointer.request(),
            // If the checkpointer thread is copying, the next commit tries again.
            Due::End if wal::passive(&self.db)? => {}
            Due::End => {
                self.ended_at = wal.pages;
                self.shared.is_settled.store(false, Ordering::Relaxed);
            }
            Due::All => self.checkpoint()?,
        }
        Ok(())
    }

    /// Measures the free room on the disk. If there is little room, the write-ahead log is kept
    /// short.
    fn measure_room(&mut self) -> rusqlite::Result<()> {
        #[cfg(test)]
        let room = self.shared.trouble.room();
        #[cfg(not(test))]
        let room = checkpoint::room(&self.path);
        let bounds = room.map_or(WalBounds::default(), WalBounds::for_disk);
        if bounds != self.bounds {
            self.db.pragma_update(None, "journal_size_limit", bounds.bytes_kept().cast_signed())?;
            self.bounds = bounds;
        }
        Ok(())
    }

    /// Between commits, keeps the caches and the write-ahead log within their bounds.
    fn tidy(&mut self) {
        if self.caches.threads.len() > THREADS_MAX {
            self.caches.threads.clear();
        }
        if self.caches.names.len() > NAMES_MAX {
            self.caches.names.clear();
        }
        if let Err(error) = self.checkpoint_if_due()
            && retry(&error) == Retry::Never
        {
            self.shared.poison(&format!("{CHECKPOINT_FAILED}: {error}"));
        }
    }
}

/// The shortest duration of recent commits, in microseconds. This counts as the fixed cost of a
/// commit.
#[derive(Default)]
pub(super) struct Commits {
    least_us: Option<u64>,
    /// The shortest duration of the [`Commits::LATE`] commits before those of `least_us`.
    before_us: Option<u64>,
    count: u32,
}

impl Commits {
    /// After this many commits `least_us` starts afresh, so that old durations are forgotten.
    const LATE: u32 = 64;

    fn add(&mut self, took_us: u64) {
        self.least_us = Some(self.least_us.map_or(took_us, |it| it.min(took_us)));
        self.count += 1;
        if self.count == Commits::LATE {
            self.before_us = self.least_us.take();
            self.count = 0;
        }
    }

    fn least_us(&self) -> u64 {
        self.least_us.into_iter().chain(self.before_us).min().unwrap_or(0)
    }
}

/// Poisons the log if the writer panics.
struct Watch(Arc<Shared>);

impl Drop for Watch {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.poison("the writer ended unexpectedly; please report it");
        }
    }
}

fn is_last_row(db: &Connection, number: u64) -> bool {
    db.last_insert_rowid() == number.cast_signed()
}

fn refuse(group: Vec<QueuedBatch>, why: &Error) {
    for waiting in group {
        let _ = waiting.answer.send(Err(why.clone()));
    }
}

/// The log's file as the rules of `admit` see it, within one transaction.
struct SqlRecords<'a> {
    db: &'a Connection,
    caches: &'a mut Caches,
    tip: &'a mut Tip,
    insert: CachedStatement<'a>,
    thread_tip: CachedStatement<'a>,
    client_id: CachedStatement<'a>,
    /// An error of SQLite that occurred within the rules of `admit`. The rules can't return such an
    /// error, since they don't know SQLite.
    failure: Option<rusqlite::Error>,
}

impl<'a> SqlRecords<'a> {
    fn new(
        db: &'a Connection,
        caches: &'a mut Caches,
        tip: &'a mut Tip,
    ) -> rusqlite::Result<SqlRecords<'a>> {
        Ok(SqlRecords {
            insert: db.prepare_cached(
                "INSERT INTO entries VALUES
                 (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18)",
            )?,
            thread_tip: db.prepare_cached(
                "SELECT t.number, p.id, f.id, t.fork_seq,
                   (SELECT max(seq) FROM entries WHERE thread = t.number)
                 FROM threads t
                 LEFT JOIN threads p ON p.number = t.parent
                 LEFT JOIN threads f ON f.number = t.fork_thread WHERE t.id = ?1",
            )?,
            client_id: db.prepare_cached(CLIENT_ID)?,
            db,
            caches,
            tip,
            failure: None,
        })
    }

    /// Accepts a batch and inserts it, or refuses it and leaves everything as it was.
    fn keep(
        &mut self,
        job: &mut Job,
        admitted: &mut Admitted,
        marks: &mut MarkWriter,
    ) -> rusqlite::Result<Result<(), Error>> {
        admitted.clear();
        let outcome = admit::admit(self, job, admitted);
        if let Some(failure) = self.failure.take() {
            return Err(failure);
        }
        if let Err(error) = outcome {
            self.tip.thread -= admitted.opened as u64;
            for id in job.threads.iter().map(|it| &it.id) {
                self.caches.threads.remove(id);
            }
            for entry in &job.entries {
                self.caches.threads.remove(&entry.id.thread);
            }
            return Ok(Err(error));
        }
        self.insert_threads(job)?;
        for (entry, row) in job.entries.iter_mut().zip(&admitted.rows) {
            self.tip.position += 1;
            Arc::make_mut(entry).position = self.tip.position;
            let name = self.name(&entry.name)?;
            self.insert_entry(entry, *row, name)?;
        }
        for (mark, thread) in job.marks.iter().zip(&admitted.marks) {
            marks.put(mark, *thread);
        }
        Ok(Ok(()))
    }

    fn insert_threads(&mut self, job: &Job) -> rusqlite::Result<()> {
        let mut insert =
            self.db.prepare_cached("INSERT INTO threads VALUES (?1, ?2, ?3, ?4, ?5)")?;
        for new in &job.threads {
            let mut number = |id: &ThreadId| -> rusqlite::Result<Option<i64>> {
                let thread_tip =
                    self.thread_tip(id).ok().flatten().map(|it| it.number.cast_signed());
                self.failure.take().map_or(Ok(thread_tip), Err)
            };
            let own = number(&new.id)?;
            let parent = new.parent.as_ref().map(&mut number).transpose()?.flatten();
            let source = new.fork.as_ref().map(|it| number(&it.thread)).transpose()?.flatten();
            let seq = new.fork.as_ref().map(|it| it.seq.cast_signed());
            insert.execute((own, new.id.as_str(), parent, source, seq))?;
        }
        Ok(())
    }

    fn insert_entry(&mut self, entry: &Entry, row: Row, name: i64) -> rusqlite::Result<()> {
        let thread = |link: Option<(u64, u64)>| link.map(|it| it.0.cast_signed());
        let seq = |link: Option<(u64, u64)>| link.map(|it| it.1.cast_signed());
        let (parts, rest) = self.caches.sources.part(row.thread, entry);
        let insert = &mut self.insert;
        insert.raw_bind_parameter(1, entry.position.cast_signed())?;
        insert.raw_bind_parameter(2, row.thread.cast_signed())?;
        insert.raw_bind_parameter(3, entry.id.seq.cast_signed())?;
        insert.raw_bind_parameter(4, entry.at_us.cast_signed())?;
        insert.raw_bind_parameter(5, &*entry.from)?;
        insert.raw_bind_parameter(6, entry.to.as_deref())?;
        insert.raw_bind_parameter(7, name)?;
        insert.raw_bind_parameter(8, thread(row.cause))?;
        insert.raw_bind_parameter(9, seq(row.cause))?;
        insert.raw_bind_parameter(10, thread(row.reply_to))?;
        insert.raw_bind_parameter(11, seq(row.reply_to))?;
        insert.raw_bind_parameter(12, entry.flags.bits())?;
        insert.raw_bind_parameter(13, entry.receivers)?;
        insert.raw_bind_parameter(14, entry.client_id.as_deref())?;
        insert.raw_bind_parameter(15, entry.key.map(u64::cast_signed))?;
        insert.raw_bind_parameter(16, &entry.digest[..])?;
        insert.raw_bind_parameter(17, entry.meta.as_deref())?;
        insert.raw_bind_parameter(18, &*rest)?;
        insert.raw_execute()?;
        debug_assert!(is_last_row(self.db, entry.position), "an entry's row is its position");
        shared_text::keep(self.db, entry.position, &parts)
    }

    /// The number of a payload's name. A new name gets the next number.
    fn name(&mut self, name: &Name) -> rusqlite::Result<i64> {
        if let Some(id) = self.caches.names.get(name) {
            return Ok(*id);
        }
        let words = (name.namespace(), name.local());
        let mut find =
            self.db.prepare_cached("SELECT id FROM names WHERE namespace = ?1 AND local = ?2")?;
        let id = match find.query_row(words, |row| row.get(0)).optional()? {
            Some(id) => id,
            None => {
                self.tip.name += 1;
                let mut insert = self.db.prepare_cached("INSERT INTO names VALUES (?1, ?2, ?3)")?;
                insert.execute((self.tip.name, words.0, words.1))?;
                self.tip.name
            }
        };
        self.caches.names.insert(name.clone(), id);
        Ok(id)
    }

    fn look_up(&mut self, thread: &ThreadId) -> rusqlite::Result<Option<ThreadTip>> {
        let found = self.thread_tip.query_row([thread.as_str()], |row| {
            let id = |at| row.get::<_, Option<String>>(at);
            let parent = id(1)?.map(|it| ThreadId::new(&it));
            let seq = row.get::<_, Option<i64>>(3)?;
            let fork = id(2)?
                .zip(seq)
                .map(|(id, seq)| EntryId { thread: ThreadId::new(&id), seq: seq.cast_unsigned() });
            let number = row.get::<_, i64>(0)?.cast_unsigned();
            let mut thread_tip = ThreadTip::new(number, Origin::of(parent, fork));
            if let Some(last) = row.get::<_, Option<i64>>(4)? {
                thread_tip.last_seq = last.cast_unsigned();
            }
            Ok(thread_tip)
        });
        found.optional()
    }

    fn fail(&mut self, error: rusqlite::Error) -> Error {
        let told = Error::Io(error.to_string().into());
        self.failure = Some(error);
        told
    }
}

impl Records for SqlRecords<'_> {
    fn thread_tip(&mut self, thread: &ThreadId) -> Result<Option<&mut ThreadTip>, Error> {
        if !self.caches.threads.contains_key(thread) {
            match self.look_up(thread) {
                Ok(None) => return Ok(None),
                Ok(Some(thread_tip)) => {
                    self.caches.threads.insert(thread.clone(), thread_tip);
                }
                Err(error) => return Err(self.fail(error)),
            }
        }
        Ok(self.caches.threads.get_mut(thread))
    }

    fn open(&mut self, thread: &ThreadId, origin: Option<Arc<Origin>>) {
        self.tip.thread += 1;
        let thread_tip = ThreadTip::new(self.tip.thread, origin);
        self.caches.threads.insert(thread.clone(), thread_tip);
    }

    fn client_id(&mut self, identity: &str, id: &str) -> Result<Option<EntryId>, Error> {
        let found = self.client_id.query_row([identity, id], |row| row.get::<_, i64>(0));
        let entry = found.optional().and_then(|position| {
            let Some(position) = position else { return Ok(None) };
            let sql = "SELECT t.id, e.seq FROM entries e
                JOIN threads t ON t.number = e.thread WHERE e.position = ?1";
            self.db.prepare_cached(sql)?.query_row([position], |row| {
                let thread = ThreadId::new(&row.get::<_, String>(0)?);
                Ok(Some(EntryId { thread, seq: row.get::<_, i64>(1)?.cast_unsigned() }))
            })
        });
        entry.map_err(|error| self.fail(error))
    }
}
