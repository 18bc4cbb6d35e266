//! The reader threads, which answer queries while the writer writes.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use flume::{Receiver, Sender};
use rusqlite::{OptionalExtension, Params};
use rustc_hash::FxHashMap;

use crate::id::{EntryId, ThreadId};
use crate::log::chain;
use crate::log::entry::{Entry, Flags, State, ThreadRecord, ThreadSummary};
use crate::log::error::{Boxed, Error, ready};
use crate::log::head::Head;
use crate::log::sqlite::files::Db;
use crate::log::sqlite::limits::{READ_REQUESTS_MAX, REMEMBERED_MAX};
use crate::log::sqlite::row::{COLUMNS, Raw, THREADS, Thread, Words, text};
use crate::log::sqlite::{connect, schema};
use crate::name::Name;

/// How many readers there are. While one of them is busy with a long walk over the log, the other
/// answers.
pub(super) const READERS: usize = 2;
/// How many commits are read in one transaction. Between two transactions, the writer can start the
/// write-ahead log from its beginning again.
pub(super) const COMMITS_AT_ONCE: u64 = 64;

/// The beginning of a query that needs the numbers of a thread, `?1`, and its descendants.
pub(super) const BELOW: &str = "WITH RECURSIVE below (number) AS (VALUES (?1) UNION ALL
    SELECT t.number FROM threads t JOIN below b ON t.parent = b.number)";

/// The message that is traced if a read failed and then succeeded.
pub(super) const FAILED_ONCE: &str =
    "the disk failed a reading, and didn't when it was tried again; look after the disk";

type Query = Box<dyn FnOnce(Result<&mut Reader, Error>) + Send>;

/// A message to the readers.
pub(super) enum ReadRequest {
    /// Run a query and answer it.
    Query(Query),
    /// Stop the reader that receives this message.
    Stop,
}

/// The handle that sends queries to the readers.
pub(super) struct Readers {
    read_requests: Sender<ReadRequest>,
}

impl Readers {
    pub(super) fn start(
        path: &Path,
        stop: &Arc<AtomicBool>,
        digests: Digests,
    ) -> Result<(Readers, Vec<JoinHandle<()>>), Error> {
        let (read_requests, inbox) = flume::bounded(READ_REQUESTS_MAX);
        let mut threads = Vec::new();
        for number in 0..READERS {
            let (inbox, path, stop) = (inbox.clone(), path.to_owned(), stop.clone());
            let thread = std::thread::Builder::new()
                .name(format!("log-read-{number}"))
                .spawn(move || serve(&inbox, &path, &stop, digests))
                .map_err(|error| Error::Io(error.to_string().into()))?;
            threads.push(thread);
        }
        Ok((Readers { read_requests }, threads))
    }

    /// Sends a query to a reader. If the reader finds damage, it runs the query once more.
    pub(super) fn ask<T: Send + 'static>(
        &self,
        work: impl Fn(&mut Reader) -> Result<T, Error> + Send + 'static,
    ) -> Boxed<'static, T> {
        let (answer, answered) = flume::bounded(1);
        let request = ReadRequest::Query(Box::new(move |reader| {
            // The caller may have stopped waiting.
            let _ = answer.send(reader.and_then(|it| twice(|| work(it))));
        }));
        match self.read_requests.try_send(request) {
            Ok(()) => {
                Box::pin(async move { answered.recv_async().await.unwrap_or(Err(Error::Closed)) })
            }
            Err(flume::TrySendError::Disconnected(_)) => ready(Err(Error::Closed)),
            Err(flume::TrySendError::Full(request)) => {
                let read_requests = self.read_requests.clone();
                Box::pin(async move {
                    let sent = read_requests.send_async(request).await;
                    drop(read_requests);
                    sent.map_err(|_| Error::Closed)?;
                    answered.recv_async().await.unwrap_or(Err(Error::Closed))
                })
            }
        }
    }

    /// A sender with which the writer stops the readers.
    pub(super) fn read_requests(&self) -> Sender<ReadRequest> {
        self.read_requests.clone()
    }
}

/// Runs `work`, and runs it once more if it reports damage. SQLite reports damage also when the
/// disk failed a single read.
pub(super) fn twice<T>(mut work: impl FnMut() -> Result<T, Error>) -> Result<T, Error> {
    let first = work();
    let Err(Error::Damaged { path, .. }) = &first else { return first };
    let again = work();
    if again.is_ok() {
        tracing::error!(file = %path.display(), "{FAILED_ONCE}");
    }
    again
}

fn serve(inbox: &Receiver<ReadRequest>, path: &Path, stop: &Arc<AtomicBool>, digests: Digests) {
    let mut reader = None;
    while let Ok(ReadRequest::Query(query)) = inbox.recv() {
        if reader.is_none() {
            reader = match connect::reading(path) {
                Ok(db) => Some(Reader::new(db, path, stop.clone(), digests)),
                Err(error) => {
                    query(Err(error));
                    continue;
                }
            };
        }
        if let Some(reader) = &mut reader {
            query(Ok(reader));
        }
    }
}

/// A reader's connection, and its caches of rows that never change.
pub(super) struct Reader {
    pub(super) db: Db,
    pub(super) path: PathBuf,
    names: FxHashMap<i64, Name>,
    threads: FxHashMap<i64, Thread>,
    words: Words,
    stop: Arc<AtomicBool>,
    digests: Digests,
    space: Vec<u8>,
}

/// How a reader treats an entry that doesn't match its digest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Digests {
    /// Reading the entry is an error, so that nothing acts on it.
    Checked,
    /// The entry is returned as it is in the file, for people who want to see it. `verify` reports
    /// the damage.
    Unchecked,
}

impl Reader {
    pub(super) fn new(db: Db, path: &Path, stop: Arc<AtomicBool>, digests: Digests) -> Reader {
        let (names, threads, words, space) = Default::default();
        Reader { db, path: path.to_owned(), names, threads, words, stop, digests, space }
    }

    /// Returns an error if the log is being closed. Long walks over the log call this between their
    /// steps, so that they end early.
    pub(super) fn go_on(&self) -> Result<(), Error> {
        if self.stop.load(Ordering::Relaxed) { Err(Error::Closed) } else { Ok(()) }
    }

    pub(super) fn sql<T>(&self, outcome: rusqlite::Result<T>) -> Result<T, Error> {
        outcome.map_err(|error| schema::opening(&self.path, &error))
    }

    /// Checks that the keys of rows rise, and that the first one is larger than `after`. If not,
    /// the file's pages are damaged, and a walk might never end.
    pub(super) fn in_order<T: Ord>(
        &self,
        after: T,
        keys: impl Iterator<Item = T>,
    ) -> Result<(), Error> {
        let mut last = after;
        for key in keys {
            if key <= last {
                return Err(schema::damaged(&self.path, "its rows are out of order"));
            }
            last = key;
        }
        Ok(())
    }

    /// Empties the caches, so that everything is read from the file again.
    pub(super) fn forget(&mut self) {
        self.names.clear();
        self.threads.clear();
    }

    /// A thread's number. `None` if there is no such thread.
    pub(super) fn number(&self, id: &ThreadId) -> Result<Option<i64>, Error> {
        let mut find =
            self.sql(self.db.prepare_cached("SELECT number FROM threads WHERE id = ?1"))?;
        self.sql(find.query_row([id.as_str()], |row| row.get(0)).optional())
    }

    fn known(&self, id: &ThreadId) -> Result<i64, Error> {
        self.number(id)?.ok_or_else(|| Error::UnknownThread(id.clone()))
    }

    /// A thread's row, by its number.
    pub(super) fn thread_of(&mut self, number: i64) -> Result<Thread, Error> {
        if let Some(thread) = self.threads.get(&number) {
            return Ok(thread.clone());
        }
        let sql = format!("{THREADS} t.number = ?1");
        let mut find = self.sql(self.db.prepare_cached(&sql))?;
        let thread = find.query_row([number], Thread::of);
        let missing = || schema::damaged(&self.path, &format!("thread number {number} is missing"));
        let thread = self.sql(thread.optional())?.ok_or_else(missing)?;
        drop(find);
        if self.threads.len() >= REMEMBERED_MAX {
            self.threads.clear();
        }
        self.threads.insert(number, thread.clone());
        Ok(thread)
    }

    fn name_of(&mut self, id: i64) -> Result<Name, Error> {
        if let Some(name) = self.names.get(&id) {
            return Ok(name.clone());
        }
        let mut find =
            self.sql(self.db.prepare_cached("SELECT namespace, local FROM names WHERE id = ?1"))?;
        let name =
            find.query_row([id], |row| Ok(Name::new(text(row.get_ref(0)?), text(row.get_ref(1)?))));
        let missing = || schema::damaged(&self.path, &format!("name number {id} is missing"));
        let name = self.sql(name.optional())?.ok_or_else(missing)?;
        drop(find);
        if self.names.len() >= REMEMBERED_MAX {
            self.names.clear();
        }
        self.names.insert(id, name.clone());
        Ok(name)
    }

    /// Makes an entry from a row of [`COLUMNS`].
    pub(super) fn entry(&mut self, row: Raw) -> Result<Entry, Error> {
        if row.odd {
            let what = format!("entry {} holds what no log writes", row.position);
            return Err(schema::damaged(&self.path, &what));
        }
        let thread = self.thread_of(row.thread)?.id;
        let name = self.name_of(row.name)?;
        let mut link = |to: Option<(i64, u64)>| -> Result<Option<EntryId>, Error> {
            match to {
                None => Ok(None),
                Some((number, seq)) if number == row.thread => {
                    Ok(Some(EntryId { thread: thread.clone(), seq }))
                }
                Some((number, seq)) => {
                    Ok(Some(EntryId { thread: self.thread_of(number)?.id, seq }))
                }
            }
        };
        let (cause, reply_to) = (link(row.cause)?, link(row.reply_to)?);
        Ok(Entry {
            position: row.position,
            id: EntryId { thread, seq: row.seq },
            at_us: row.at_us,
            from: row.from,
            to: row.to,
            name,
            cause,
            reply_to,
            flags: Flags::of_bits(row.flags),
            receivers: row.receivers,
            client_id: row.client_id,
            meta: row.meta,
            body: row.body,
            key: row.key,
            digest: row.digest,
        })
    }

    /// Reads entries by a condition. `numbers` has the condition's three parameters and the limit.
    fn entries(&mut self, condition: &str, numbers: [i64; 4]) -> Result<Vec<Arc<Entry>>, Error> {
        let rows = self.rows(&format!("{condition} LIMIT ?4"), numbers)?;
        rows.into_iter().map(|row| self.fitting(row).map(Arc::new)).collect()
    }

    /// Reads raw rows of entries by a condition and its numbers. Text that a body shares with
    /// earlier bodies is filled in.
    pub(super) fn rows(
        &mut self,
        condition: &str,
        numbers: impl Params,
    ) -> Result<Vec<Raw>, Error> {
        let sql = format!("SELECT {COLUMNS} FROM entries WHERE {condition}");
        self.at_once(|reader| {
            let mut find = reader.sql(reader.db.prepare_cached(&sql))?;
            let words = &mut reader.words;
            let rows = find.query_map(numbers, |row| Raw::of(row, words));
            let rows = rows.and_then(Iterator::collect);
            drop(find);
            let mut rows: Vec<Raw> = reader.sql(rows)?;
            reader.complete(&mut rows)?;
            Ok(rows)
        })
    }

    /// Runs queries in one transaction. Outside of a transaction, SQLite locks the file for each
    /// query, and then drops the pages that it has in memory if the writer has written meanwhile.
    pub(super) fn at_once<T>(
        &mut self,
        work: impl FnOnce(&mut Reader) -> Result<T, Error>,
    ) -> Result<T, Error> {
        if !self.db.is_autocommit() {
            return work(self);
        }
        self.control("BEGIN")?;
        let found = work(self);
        if let Err(error) = self.control("COMMIT") {
            // If this fails, too, the next transaction reports it.
            let _ = self.control("ROLLBACK");
            return found.and(Err(error));
        }
        found
    }

    /// Begins or ends a transaction.
    fn control(&self, sql: &str) -> Result<(), Error> {
        let done = self.db.prepare_cached(sql).and_then(|mut it| it.execute([]));
        self.sql(done).map(drop)
    }

    /// Makes an entry from its row. If digests are checked, an entry that doesn't match its digest
    /// is an error.
    fn fitting(&mut self, row: Raw) -> Result<Entry, Error> {
        let thread = row.thread;
        let entry = self.entry(row)?;
        if self.digests == Digests::Unchecked {
            return Ok(entry);
        }
        let origin = self.thread_of(thread)?.origin;
        if chain::of_entry(&entry, origin.as_deref(), &mut self.space) != entry.digest {
            let what = format!("{} doesn't fit its digest: it was changed", entry.id);
            return Err(schema::damaged(&self.path, &what));
        }
        Ok(entry)
    }

    pub(super) fn thread(&mut self, id: &ThreadId) -> Result<Option<ThreadRecord>, Error> {
        let Some(number) = self.number(id)? else { return Ok(None) };
        Ok(Some(self.record(number, |_| true)?))
    }

    fn record(
        &mut self,
        number: i64,
        with_first: fn(State) -> bool,
    ) -> Result<ThreadRecord, Error> {
        let thread = self.thread_of(number)?;
        let last_seq = self.last_seq(number, &thread)?;
        let (state, is_charged) = self.state(number)?;
        let first = usize::from(with_first(state));
        let first = self.read(&thread.id, 0, 1, first)?.into_iter().next();
        let origin = thread.origin.as_deref();
        Ok(ThreadRecord {
            id: thread.id.clone(),
            parent: origin.and_then(|it| it.parent.clone()),
            fork: origin.and_then(|it| it.fork.clone()),
            last_seq,
            first,
            state,
            is_charged,
        })
    }

    /// A thread's state, which is that of the last entry that sets one. Also whether one of the
    /// thread's entries is about the budget.
    fn state(&self, number: i64) -> Result<(State, bool), Error> {
        let sql = "SELECT (SELECT flags FROM entries WHERE thread = ?1 AND flags & 8128
              AND flags & 4032 ORDER BY seq DESC LIMIT 1),
            EXISTS (SELECT 1 FROM entries WHERE thread = ?1 AND flags & 8128 AND flags & 4096)";
        let mut find = self.sql(self.db.prepare_cached(sql))?;
        let found =
            find.query_row([number], |row| Ok((row.get::<_, Option<i64>>(0)?, row.get(1)?)));
        let (flags, is_charged) = self.sql(found)?;
        let flags = flags.and_then(|it| u32::try_from(it).ok());
        Ok((flags.and_then(|it| Flags::of_bits(it).state()).unwrap_or_default(), is_charged))
    }

    pub(super) fn tree(&mut self, root: &ThreadId) -> Result<Vec<ThreadRecord>, Error> {
        let Some(number) = self.number(root)? else { return Ok(Vec::new()) };
        let numbers = {
            let sql = format!("{BELOW} SELECT number FROM below ORDER BY number");
            let mut find = self.sql(self.db.prepare_cached(&sql))?;
            let rows = find.query_map([number], |row| row.get(0)).and_then(Iterator::collect);
            self.sql::<Vec<i64>>(rows)?
        };
        numbers.into_iter().map(|number| self.record(number, State::is_live)).collect()
    }

    pub(super) fn charges(&mut self, root: &ThreadId) -> Result<Vec<Arc<Entry>>, Error> {
        let Some(number) = self.number(root)? else { return Ok(Vec::new()) };
        let charged = "flags & 8128 AND flags & 4096 AND ?2 = ?3 ORDER BY +position";
        let sql = format!("thread IN ({BELOW} SELECT number FROM below) AND {charged}");
        self.entries(&sql, [number, 0, 0, i64::MAX])
    }

    pub(super) fn count(&mut self, root: &ThreadId, but_from: &str) -> Result<u64, Error> {
        let Some(number) = self.number(root)? else { return Ok(0) };
        let given = "thread = number AND receivers > 0 AND \"from\" <> ?2";
        let sql = format!("{BELOW} SELECT count(*) FROM below, entries WHERE {given}");
        let mut find = self.sql(self.db.prepare_cached(&sql))?;
        let count = find.query_row(rusqlite::params![number, but_from], |row| row.get(0));
        self.sql(count).map(i64::cast_unsigned)
    }

    fn last_seq(&self, number: i64, thread: &Thread) -> Result<u64, Error> {
        let sql = "SELECT max(seq) FROM entries WHERE thread = ?1";
        let mut find = self.sql(self.db.prepare_cached(sql))?;
        let last: Option<i64> = self.sql(find.query_row([number], |row| row.get(0)))?;
        let link_seq = thread.fork.map_or(0, |(_, seq)| seq);
        Ok(last.map_or(link_seq, i64::cast_unsigned))
    }

    pub(super) fn read(
        &mut self,
        id: &ThreadId,
        after: u64,
        upto: u64,
        limit: usize,
    ) -> Result<Vec<Arc<Entry>>, Error> {
        self.at_once(|reader| reader.read_parts(id, after, upto, limit))
    }

    fn read_parts(
        &mut self,
        id: &ThreadId,
        after: u64,
        upto: u64,
        limit: usize,
    ) -> Result<Vec<Arc<Entry>>, Error> {
        let mut number = self.known(id)?;
        let mut upto = upto.min(i64::MAX.cast_unsigned());
        // The parts of a thread's history, each with the range of numbers to read: first the
        // thread's own part, then the part of the thread that it was forked from, and so on.
        let mut parts = Vec::new();
        loop {
            let fork = self.thread_of(number)?.fork;
            let link_seq = fork.map_or(0, |(_, seq)| seq);
            if upto > link_seq.max(after) {
                parts.push((number, link_seq.max(after), upto));
            }
            upto = upto.min(link_seq);
            match fork {
                Some((source, _)) if upto > after => number = source,
                _ => break,
            }
        }
        let mut all = Vec::new();
        for (number, after, upto) in parts.into_iter().rev() {
            let left = signed(limit - all.len());
            if left == 0 {
                break;
            }
            let bounds = [number, after.cast_signed(), upto.cast_signed(), left];
            let condition = "thread = ?1 AND seq > ?2 AND seq <= ?3 ORDER BY seq";
            all.extend(self.entries(condition, bounds)?);
        }
        self.in_order(after, all.iter().map(|it| it.id.seq))?;
        Ok(all)
    }

    pub(super) fn tail(&mut self, after: u64, limit: usize) -> Result<Vec<Arc<Entry>>, Error> {
        let after = i64::try_from(after).unwrap_or(i64::MAX);
        let condition = "position > ?1 AND ?2 = ?3 ORDER BY position";
        let all = self.entries(condition, [after, 0, 0, signed(limit)])?;
        self.in_order(after, all.iter().map(|it| it.position.cast_signed()))?;
        Ok(all)
    }

    pub(super) fn threads(
        &mut self,
        after: Option<&ThreadId>,
        limit: usize,
    ) -> Result<Vec<ThreadSummary>, Error> {
        let after = match after {
            None => 0,
            Some(id) => self.known(id)?,
        };
        let rows = {
            let mut find = self.sql(self.db.prepare_cached(
                "WITH t AS (SELECT number, fork_seq FROM threads WHERE number > ?1
                   ORDER BY number LIMIT ?2),
                 s AS (SELECT t.number, coalesce(t.fork_seq, 0) AS link,
                   (SELECT max(seq) FROM entries WHERE thread = t.number) AS last FROM t)
                 SELECT s.number, s.last - s.link,
                   (SELECT time FROM entries WHERE thread = s.number AND seq = s.link + 1),
                   (SELECT time FROM entries WHERE thread = s.number AND seq = s.last)
                 FROM s ORDER BY s.number",
            ))?;
            let rows = find.query_map([after, signed(limit)], |row| {
                let number =
                    |at| row.get::<_, Option<i64>>(at).map(|it| it.map(i64::cast_unsigned));
                Ok((row.get::<_, i64>(0)?, number(1)?, number(2)?, number(3)?))
            });
            let rows = rows.and_then(Iterator::collect);
            self.sql::<Vec<_>>(rows)?
        };
        self.in_order(after, rows.iter().map(|it| it.0))?;
        let summary = |(number, entries, first_us, last_us): (i64, Option<u64>, _, _)| {
            let thread = self.thread_of(number)?;
            let origin = thread.origin.as_deref();
            Ok(ThreadSummary {
                id: thread.id.clone(),
                parent: origin.and_then(|it| it.parent.clone()),
                fork: origin.and_then(|it| it.fork.clone()),
                entries: entries.unwrap_or(0),
                first_us,
                last_us,
            })
        };
        rows.into_iter().map(summary).collect()
    }

    pub(super) fn client_id(
        &mut self,
        identity: &str,
        id: &str,
    ) -> Result<Option<Arc<Entry>>, Error> {
        let position = {
            let mut find = self.sql(self.db.prepare_cached(CLIENT_ID))?;
            self.sql(find.query_row([identity, id], |row| row.get::<_, i64>(0)).optional())?
        };
        match position {
            None => Ok(None),
            Some(position) => Ok(self.at(position)?),
        }
    }

    pub(super) fn at(&mut self, position: i64) -> Result<Option<Arc<Entry>>, Error> {
        let one = self.entries("position = ?1 AND ?2 = ?3", [position, 0, 0, 1])?;
        Ok(one.into_iter().next())
    }

    pub(super) fn head(&self) -> Result<Head, Error> {
        let sql = format!("SELECT {} FROM commits ORDER BY number DESC LIMIT 1", schema::COMMIT);
        let row = self.sql(self.db.query_row(&sql, [], schema::commit).optional())?;
        let row = row.ok_or_else(|| schema::damaged(&self.path, "it has no commits"))?;
        Ok(row.head())
    }
}

/// The query for an entry by its client id. It repeats the condition of the index
/// `entries_client_id`, so that SQLite uses this index.
pub(super) const CLIENT_ID: &str = "SELECT position FROM entries
    WHERE \"from\" = ?1 AND client_id = ?2 AND client_id IS NOT NULL AND flags & 1";

/// Converts a count to a signed integer, which is the only kind that SQLite has.
pub(super) fn signed(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::conformance::batch;
    use crate::log::durability::Durability;
    use crate::log::interface::Log as _;
    use crate::log::sqlite::SqliteLog;

    #[tokio::test]
    async fn a_read_ends_its_transaction_even_if_it_fails() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log.db");
        let log = SqliteLog::open(&path, Durability::Normal).unwrap();
        log.append(batch(&["a"], &["a/1"])).await.unwrap();
        let db = connect::reading(&path).unwrap();
        let mut reader = Reader::new(db, &path, Arc::default(), Digests::Checked);
        let (known, unknown) = (ThreadId::new("a"), ThreadId::new("b"));
        assert!(reader.read(&unknown, 0, u64::MAX, 9).is_err() && reader.db.is_autocommit());
        assert_eq!(reader.read(&known, 0, u64::MAX, 9).unwrap().len(), 1);
        log.append(batch(&[], &["a/2"])).await.unwrap();
        assert_eq!(reader.read(&known, 0, u64::MAX, 9).unwrap().len(), 2, "a new transaction");
        log.close().await.unwrap();
    }
}
