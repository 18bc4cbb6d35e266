//! What every log does.

use std::sync::Arc;

use bytes::Bytes;

use crate::id::{EntryId, ThreadId};
use crate::log::durability::Durability;
use crate::log::entry::{Batch, Entry, Noted, Open, Receipt, ThreadRecord, ThreadSummary};
use crate::log::error::Boxed;
use crate::log::head::Head;
use crate::log::identity::Identity;
use crate::log::verify::Report;

/// A place where entries are kept. All logs of this crate pass the same tests.
pub trait Log: Send + Sync + 'static {
    /// The identity of the log.
    fn identity(&self) -> Identity;

    /// The failures that an appended batch survives.
    fn durability(&self) -> Durability;

    /// Appends a batch, whole or not at all.
    ///
    /// The log keeps batches in the order of the calls of this function, even if their futures are
    /// polled in another order. The future is ready once the batch is kept or refused. A caller
    /// that drops the future early doesn't learn whether the batch was kept.
    fn append(&self, batch: Batch) -> Boxed<'static, Receipt>;

    /// Appends a batch ahead of the batches that [`append`](Log::append) has queued. This is the
    /// priority lane: its batches overtake bulk writers. Batches of this lane keep their order.
    ///
    /// A log without a queue treats both kinds of append alike.
    fn append_ahead(&self, batch: Batch) -> Boxed<'static, Receipt>;

    /// The state of the log: whether appends are likely to succeed.
    fn health(&self) -> Health;

    /// A thread's record. `None` if there is no such thread.
    fn thread<'a>(&'a self, id: &'a ThreadId) -> Boxed<'a, Option<ThreadRecord>>;

    /// The first of a thread's own entries. A fork's own entries begin after the last entry that it
    /// shares with its source.
    fn opening<'a>(&'a self, thread: &'a ThreadRecord) -> Boxed<'a, Option<Arc<Entry>>> {
        let link_seq = thread.fork.as_ref().map_or(0, |it| it.seq);
        let own = self.read(&thread.id, link_seq, link_seq + 1, 1);
        Box::pin(async move { Ok(own.await?.into_iter().next()) })
    }

    /// A thread and its descendants, in the order in which they were opened. Empty if there is no
    /// such thread. The field `first` is filled in only for live threads: those that are open,
    /// paused or over their budget.
    fn tree<'a>(&'a self, root: &'a ThreadId) -> Boxed<'a, Vec<ThreadRecord>>;

    /// The entries of a thread and of its descendants that have the flag
    /// [`CHARGES`](crate::log::Flags::CHARGES), by position. Empty if there is no such thread.
    fn charges<'a>(&'a self, root: &'a ThreadId) -> Boxed<'a, Vec<Arc<Entry>>>;

    /// How many entries of a thread and its descendants had receivers. Entries that `but_from` sent
    /// aren't counted.
    fn count<'a>(&'a self, root: &'a ThreadId, but_from: &'a str) -> Boxed<'a, u64>;

    /// The marks of the entries of a thread and its descendants, in the order in which they were
    /// appended. A mark says that a listener started on an entry, gets the entry later, or consumed
    /// it.
    fn marks<'a>(&'a self, root: &'a ThreadId) -> Boxed<'a, Vec<Noted>>;

    /// The first `limit` entries of a thread with `after < seq <= upto`. An unknown thread is an
    /// error.
    ///
    /// A fork begins with the entries of its source, up to and including the entry that it was
    /// forked at. The fork's own entries follow.
    fn read<'a>(
        &'a self,
        thread: &'a ThreadId,
        after: u64,
        upto: u64,
        limit: usize,
    ) -> Boxed<'a, Vec<Arc<Entry>>>;

    /// An entry by its id. `None` if the thread doesn't have that number. An unknown thread is an
    /// error.
    fn entry<'a>(&'a self, id: &'a EntryId) -> Boxed<'a, Option<Arc<Entry>>> {
        let found = self.read(&id.thread, id.seq.saturating_sub(1), id.seq, 1);
        Box::pin(async move { Ok(found.await?.into_iter().next()) })
    }

    /// The first `limit` entries of all threads after a position.
    fn tail(&self, after_position: u64, limit: usize) -> Boxed<'_, Vec<Arc<Entry>>>;

    /// The first `limit` entries of all threads after a position, up to the entry with which they
    /// have `bytes_max` bytes. So one entry comes in any case, however large it is.
    fn tail_within(
        &self,
        after_position: u64,
        limit: usize,
        bytes_max: usize,
    ) -> Boxed<'_, Vec<Arc<Entry>>> {
        let all = self.tail(after_position, limit);
        Box::pin(async move {
            let mut all = all.await?;
            let mut bytes = 0_usize;
            let end = all.iter().position(|it| {
                bytes = bytes.saturating_add(bytes_of(it));
                bytes >= bytes_max
            });
            all.truncate(end.map_or(limit, |it| it + 1));
            Ok(all)
        })
    }

    /// The first `limit` threads after `after`, in the order in which they were opened. `None`
    /// begins with the first thread. An unknown `after` is an error.
    fn threads<'a>(
        &'a self,
        after: Option<&'a ThreadId>,
        limit: usize,
    ) -> Boxed<'a, Vec<ThreadSummary>>;

    /// The entry that an identity pushed with this client id.
    fn client_id<'a>(&'a self, identity: &'a str, id: &'a str) -> Boxed<'a, Option<Arc<Entry>>>;

    /// The entries that some receiver hasn't consumed yet, by position. A pump that starts hands
    /// them to their threads again.
    fn open_entries(&self) -> Boxed<'_, Vec<Open>>;

    /// The head of the last commit. Keep a copy of it elsewhere: with the copy,
    /// [`verify`](Log::verify) finds later changes of everything up to this commit.
    fn head(&self) -> Boxed<'_, Head>;

    /// Recomputes every digest and the chain. If `expect` is given, also checks that it is the head
    /// of one of the commits. [`SqliteLog`](crate::log::SqliteLog) also checks links, marks and the
    /// file.
    fn verify(&self, expect: Option<Head>) -> Boxed<'_, Report>;

    /// Closes the log. Earlier appends are still written, unless the disk is full or another
    /// program has locked the file. Later appends are refused.
    fn close(&self) -> Boxed<'_, ()>;
}

/// The state of a log.
#[derive(Clone, Debug, PartialEq, Eq)]
// Exhaustive, since a door must treat every state.
pub enum Health {
    /// The log takes appends.
    Well,
    /// The disk is full. The log tries again by itself. Until an append succeeds, doors should
    /// refuse pushes.
    Full,
    /// The log takes no appends until it is opened again, for this reason.
    Poisoned(Arc<str>),
}

impl Health {
    /// Every state by its name, with whether the log is in it.
    #[must_use]
    pub fn states(&self) -> [(&'static str, bool); 3] {
        [
            ("well", matches!(self, Health::Well)),
            ("full", matches!(self, Health::Full)),
            ("poisoned", matches!(self, Health::Poisoned(_))),
        ]
    }
}

/// How many bytes an entry has that can be many: those of its payload and of its `<meta>`.
pub fn bytes_of(entry: &Entry) -> usize {
    entry.body.len().saturating_add(entry.meta.as_ref().map_or(0, Bytes::len))
}
