//! The log: threads of entries, which are appended and never changed. A pump has no other durable
//! memory.
//!
//! The log doesn't parse XML: to it, a payload is a name and bytes. [`SqliteLog`] keeps a log in a
//! file, [`MemoryLog`] in memory.

extern crate self as pumphouse;

// The modules name each other, and those of the crates below, by their paths in `pumphouse`.
use crate as log;
#[cfg(feature = "sqlite")]
use pumphouse_ground::limits;
use pumphouse_ground::{clock, id, name};

mod admit;
#[cfg(feature = "sqlite")]
pub mod atomic_file;
mod chain;
mod durability;
mod entry;
mod mark_bytes;
mod memory;
mod open_entries;
mod pages;
#[cfg(feature = "sqlite")]
mod sqlite;
#[cfg(any(test, feature = "conformance"))]
pub mod conformance;
mod verify;

use std::fmt;
use std::future::Future;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;

use uuid::Uuid;

use crate::id::{EntryId, ThreadId};

pub use chain::digest_of;
pub use chain::{Head, NoHead};
pub use durability::{Durability, NoDurability};
pub use entry::{
    Batch, Draft, Entry, Flags, LastStart, Mark, NewThread, Noted, Open, Receipt, State,
    ThreadRecord, ThreadSummary,
};
pub use memory::MemoryLog;
pub use pages::{Pages, ThreadPages};
#[cfg(feature = "sqlite")]
pub use sqlite::{Copied, Existing, SqliteLog};
pub use verify::{Finding, Report, Wrong};

/// A future with a log's answer, which may be an error.
pub type Boxed<'a, T> = Pin<Box<dyn Future<Output = Result<T, Error>> + Send + 'a>>;

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

    /// The entries of a thread and of its descendants that have the flag [`Flags::CHARGES`], by
    /// position. Empty if there is no such thread.
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
    /// of one of the commits. [`SqliteLog`] also checks links, marks and the file.
    fn verify(&self, expect: Option<Head>) -> Boxed<'_, Report>;

    /// Closes the log. Earlier appends are still written, unless the disk is full or another
    /// program has locked the file. Later appends are refused.
    fn close(&self) -> Boxed<'_, ()>;
}

/// How many bytes an entry has that can be many: those of its payload and of its `<meta>`.
pub fn bytes_of(entry: &Entry) -> usize {
    entry.body.len().saturating_add(entry.meta.as_ref().map_or(0, bytes::Bytes::len))
}

/// The fixed values of a log, which tell it from every other log.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Identity {
    /// The number of the file format that the log was made with. A later version may have upgraded
    /// the file since.
    pub format: u32,
    /// The log's UUID.
    pub uuid: Uuid,
    /// The secret that handlers' random numbers are derived from.
    pub key: [u8; 32],
    /// When the log was made, in microseconds since the epoch.
    pub created_us: u64,
}

impl Identity {
    /// The number of the file format that this version reads and writes. Numbers never come back: a
    /// change of the format takes the next.
    pub const FORMAT: u32 = 3;

    /// The identity of a new log, with random numbers and the time of the clock.
    #[must_use]
    pub fn fresh() -> Identity {
        Identity::new(fresh_uuid(), clock::random_bytes(), clock::wall_us())
    }

    /// The identity of a log of this version's format.
    #[must_use]
    pub fn new(uuid: Uuid, key: [u8; 32], created_us: u64) -> Identity {
        Identity { format: Identity::FORMAT, uuid, key, created_us }
    }
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Identity {{ format: {}, uuid: {}, key: … }}", self.format, self.uuid)
    }
}

/// A UUID of version 7, made from the time and the random numbers of `crate::clock`.
fn fresh_uuid() -> Uuid {
    let millis = clock::wall_us() / 1_000;
    uuid::Builder::from_unix_timestamp_millis(millis, &clock::random_bytes()).into_uuid()
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

/// An error of a log.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// The log was closed.
    Closed,
    /// The entry's number isn't the next one of its thread, for example because another writer
    /// appended to the thread.
    Conflict {
        /// The entry that was to be appended.
        entry: EntryId,
        /// The number that is next in the thread.
        next: u64,
    },
    /// The identity has used this client id before.
    ClientIdTaken {
        /// The entry that has this client id.
        entry: EntryId,
    },
    /// The file is a log, but it is damaged.
    Damaged {
        /// The file's path.
        path: PathBuf,
        /// A description of the damage.
        why: Arc<str>,
    },
    /// The disk is full. An append returns this error only if the log is closed while the append
    /// waits for room.
    Full,
    /// The batch contradicts itself or the log, or one of its values is too large. The log kept
    /// nothing of the batch. [`SqliteLog::open`] returns this error for [`Durability::Memory`].
    Invalid(Arc<str>),
    /// The operating system refused an operation, or a path can't be used.
    Io(Arc<str>),
    /// Another process, or another log object in this process, writes to the file.
    Locked {
        /// The file's path.
        path: PathBuf,
        /// The id of the process that writes, if it is known.
        process: Option<u32>,
    },
    /// The file isn't a log.
    NotALog {
        /// The file's path.
        path: PathBuf,
    },
    /// The file was written by a version of another format.
    OtherFormat {
        /// The file's path.
        path: PathBuf,
        /// The number of the file's format.
        format: u32,
    },
    /// The log takes no appends until it is opened again. The text says why: for example, a write
    /// failed, or one of the log's files was removed, renamed or replaced.
    Poisoned(Arc<str>),
    /// The log was opened for reading only.
    ReadOnly,
    /// A thread of this id exists.
    ThreadExists(ThreadId),
    /// No thread of this id exists.
    UnknownThread(ThreadId),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Closed => f.write_str("the log is closed"),
            Error::Conflict { entry, next } => {
                write!(f, "{entry} can't be appended: {next} is next in its thread")
            }
            Error::ClientIdTaken { entry } => write!(f, "the client's id is taken by {entry}"),
            Error::Damaged { path, why } => write!(
                f,
                "{} is a damaged log: {why}; restore a backup (`pumphouse verify` tells more)",
                path.display()
            ),
            Error::Full => f.write_str("the disk is full"),
            Error::Invalid(why) => write!(f, "the log refuses the batch: {why}"),
            Error::Io(why) => write!(f, "the log can't be read or written: {why}"),
            Error::Locked { path, process } => {
                write!(f, "{} is being written to by ", path.display())?;
                match process {
                    Some(process) => write!(f, "process {process}")?,
                    None => f.write_str("another process")?,
                }
                f.write_str("; stop it, or open the log for reading")
            }
            Error::NotALog { path } => {
                write!(f, "{} is not a Pumphouse log; give another path", path.display())
            }
            Error::OtherFormat { path, format } => {
                let advice = match *format > Identity::FORMAT {
                    true => "upgrade pumphouse",
                    false => "the program that wrote it reads it, and so does sqlite3",
                };
                let (path, ours) = (path.display(), Identity::FORMAT);
                write!(f, "{path} has format {format}, and this version reads {ours}; {advice}")
            }
            Error::Poisoned(why) => {
                write!(f, "the log takes no more until it is opened again: {why}")
            }
            Error::ReadOnly => f.write_str("the log was opened for reading"),
            Error::ThreadExists(thread) => write!(f, "thread {thread} exists already"),
            Error::UnknownThread(thread) => write!(f, "there is no thread {thread}"),
        }
    }
}

impl std::error::Error for Error {}

/// A future that is ready at once.
fn ready<'a, T: Send + 'a>(answer: Result<T, Error>) -> Boxed<'a, T> {
    Box::pin(std::future::ready(answer))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_durability_is_read_as_it_is_written() {
        for one in [Durability::Full, Durability::Normal, Durability::Memory] {
            assert_eq!(one.to_string().parse(), Ok(one));
        }
        assert_eq!("relaxed".parse::<Durability>(), Err(NoDurability));
    }

    #[test]
    fn a_page_ends_at_its_bytes_and_has_one_entry_at_least() {
        let log = MemoryLog::new();
        let body = |bytes: usize| vec![b'x'; bytes].into();
        let sizes = [(1, 10), (2, 30), (3, 10), (4, 10)];
        let entries = sizes.map(|(seq, bytes)| Draft {
            body: body(bytes),
            ..conformance::note(&format!("a/{seq}"))
        });
        let all = Batch { entries: entries.into(), ..conformance::batch(&["a"], &[]) };
        conformance::wait(log.append(all)).unwrap();
        let count = |after, limit, bytes_max| {
            conformance::wait(log.tail_within(after, limit, bytes_max)).unwrap().len()
        };
        let counts = [10, 11, 40, 41].map(|it| count(0, 9, it));
        assert_eq!(counts, [1, 2, 2, 3]);
        assert_eq!([count(1, 9, 1), count(0, 9, usize::MAX), count(0, 3, 99)], [1, 4, 3]);
        assert_eq!([count(4, 9, 1), count(0, 0, 1)], [0, 0]);
    }

    #[test]
    fn the_key_is_not_printed() {
        let identity = Identity { key: [201; 32], ..Identity::fresh() };
        let text = format!("{identity:?}");
        assert!(!text.contains("201, 201") && !text.contains("c9c9"), "{text}");
    }
}
