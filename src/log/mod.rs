//! The log: the only durable memory. It has threads of entries, which are appended and never
//! changed.
//!
//! The log knows no XML. It keeps bytes and positions.

mod admit;
pub(crate) mod atomic_file;
mod chain;
mod entry;
mod memory;
mod open;
mod pages;
mod sqlite;
#[cfg(test)]
pub(crate) mod suite;
mod verify;

use std::fmt;
use std::future::Future;
use std::path::PathBuf;
use std::pin::Pin;
use std::str::FromStr;
use std::sync::Arc;

use uuid::Uuid;

use crate::id::{EntryId, ThreadId};

pub use chain::{Head, NoHead};
pub use entry::{
    Batch, Draft, Entry, Flags, Mark, NewThread, Noted, Open, Receipt, State, ThreadRecord,
    ThreadSummary,
};
pub use memory::MemoryLog;
pub use pages::{Pages, ThreadPages};
pub use sqlite::{Copied, Existing, SqliteLog};
pub use verify::{Finding, Report, Wrong};

/// A log's answer, which comes later and may be an error.
pub type Boxed<'a, T> = Pin<Box<dyn Future<Output = Result<T, Error>> + Send + 'a>>;

/// Where entries are kept. Every implementation passes the same suite of tests.
pub trait Log: Send + Sync + 'static {
    /// Which log this is.
    fn identity(&self) -> Identity;

    /// What an appended batch survives.
    fn durability(&self) -> Durability;

    /// Keeps a batch, whole or not at all.
    ///
    /// The batch takes its place in the order when this is called. The future tells when the batch
    /// is kept; a caller that drops it early doesn't learn whether it was.
    fn append(&self, batch: Batch) -> Boxed<'static, Receipt>;

    /// Keeps a batch ahead of the batches that [`append`](Log::append) was given and that aren't
    /// being written yet. This is the priority lane: such batches don't wait behind bulk writers,
    /// and keep their order among themselves.
    ///
    /// In a log without a queue this is the same as [`append`](Log::append).
    fn append_ahead(&self, batch: Batch) -> Boxed<'static, Receipt>;

    /// Whether appends are likely to succeed.
    fn health(&self) -> Health;

    /// A thread's record.
    fn thread<'a>(&'a self, id: &'a ThreadId) -> Boxed<'a, Option<ThreadRecord>>;

    /// The first of a thread's own entries. In a fork that is the entry after its link.
    fn opening<'a>(&'a self, thread: &'a ThreadRecord) -> Boxed<'a, Option<Arc<Entry>>> {
        let link_seq = thread.fork.as_ref().map_or(0, |it| it.seq);
        let own = self.read(&thread.id, link_seq, link_seq + 1, 1);
        Box::pin(async move { Ok(own.await?.into_iter().next()) })
    }

    /// A thread and its descendants, in the order in which they were opened. Empty if there is no
    /// such thread. First entries are read for live threads only.
    fn tree<'a>(&'a self, root: &'a ThreadId) -> Boxed<'a, Vec<ThreadRecord>>;

    /// The entries of a thread and of all below it that have to do with their budget, by position.
    fn charges<'a>(&'a self, root: &'a ThreadId) -> Boxed<'a, Vec<Arc<Entry>>>;

    /// How many entries of a thread and its descendants had a receiver, not counting those of one
    /// sender.
    fn count<'a>(&'a self, root: &'a ThreadId, but_from: &'a str) -> Boxed<'a, u64>;

    /// The marks of a thread's entries and its descendants', in their order: which listeners
    /// started on them and consumed them.
    fn marks<'a>(&'a self, root: &'a ThreadId) -> Boxed<'a, Vec<Noted>>;

    /// The entries of a thread with `after < seq <= upto`, the first `limit` of them.
    ///
    /// A fork has the entries of its source up to its link, then its own.
    fn read<'a>(
        &'a self,
        thread: &'a ThreadId,
        after: u64,
        upto: u64,
        limit: usize,
    ) -> Boxed<'a, Vec<Arc<Entry>>>;

    /// One entry, where its thread has it.
    fn entry<'a>(&'a self, id: &'a EntryId) -> Boxed<'a, Option<Arc<Entry>>> {
        let found = self.read(&id.thread, id.seq.saturating_sub(1), id.seq, 1);
        Box::pin(async move { Ok(found.await?.into_iter().next()) })
    }

    /// The entries of all threads after a position, the first `limit` of them.
    fn tail(&self, after_position: u64, limit: usize) -> Boxed<'_, Vec<Arc<Entry>>>;

    /// Threads in the order in which they were opened, after one of them or from the first.
    fn threads<'a>(
        &'a self,
        after: Option<&'a ThreadId>,
        limit: usize,
    ) -> Boxed<'a, Vec<ThreadSummary>>;

    /// The entry that an identity sent under a client id.
    fn client_id<'a>(&'a self, identity: &'a str, id: &'a str) -> Boxed<'a, Option<Arc<Entry>>>;

    /// The entries that aren't consumed yet, by position: a start has to give them back to their
    /// trees.
    fn open_entries(&self) -> Boxed<'_, Vec<Open>>;

    /// The last commit. A copy of it, kept elsewhere, proves that nothing before it was changed.
    fn head(&self) -> Boxed<'_, Head>;

    /// Recomputes every digest and the chain, checks every link, and that `expect` is on it.
    fn verify(&self, expect: Option<Head>) -> Boxed<'_, Report>;

    /// Finishes appends that are under way, then takes no more.
    fn close(&self) -> Boxed<'_, ()>;
}

/// Which log this is.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Identity {
    /// The layout that the log was made with. It may have a later layout now.
    pub format: u32,
    /// The log's UUID.
    pub uuid: Uuid,
    /// The secret that handlers' random numbers are derived from.
    pub key: [u8; 32],
    /// The time at which it was made, in microseconds since the epoch.
    pub created_us: u64,
}

impl Identity {
    /// The layout that this version writes.
    pub const FORMAT: u32 = 2;

    /// The identity of a new log.
    pub(crate) fn fresh() -> Identity {
        Identity {
            format: Identity::FORMAT,
            uuid: fresh_uuid(),
            key: crate::clock::random_bytes(),
            created_us: crate::clock::wall_us(),
        }
    }
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Identity {{ format: {}, uuid: {}, key: … }}", self.format, self.uuid)
    }
}

/// A UUID of version 7, from our own clock and random numbers.
fn fresh_uuid() -> Uuid {
    let millis = crate::clock::wall_us() / 1_000;
    uuid::Builder::from_unix_timestamp_millis(millis, &crate::clock::random_bytes()).into_uuid()
}

/// What an append survives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
// Exhaustive: the three that the manifest has.
pub enum Durability {
    /// A power cut. The batch is on the disk before any client hears of it.
    #[default]
    Full,
    /// A killed process. A power cut loses about the last second.
    Normal,
    /// Nothing. The log is in memory only.
    Memory,
}

impl Durability {
    /// The word for it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Durability::Full => "full",
            Durability::Normal => "normal",
            Durability::Memory => "memory",
        }
    }
}

impl fmt::Display for Durability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The text is no durability.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoDurability;

impl fmt::Display for NoDurability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("durability is full, normal or memory")
    }
}

impl std::error::Error for NoDurability {}

impl FromStr for Durability {
    type Err = NoDurability;

    fn from_str(text: &str) -> Result<Durability, NoDurability> {
        [Durability::Full, Durability::Normal, Durability::Memory]
            .into_iter()
            .find(|it| it.as_str() == text)
            .ok_or(NoDurability)
    }
}

/// The state of a log.
#[derive(Clone, Debug, PartialEq, Eq)]
// Exhaustive, since a door must treat every state.
pub enum Health {
    /// It takes appends.
    Well,
    /// The disk is full. The log tries again by itself; until it succeeds, doors should refuse.
    Full,
    /// It takes no more until it is opened again, for this reason.
    Poisoned(Arc<str>),
}

/// An error of a log.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// The log was closed.
    Closed,
    /// The thread's next number isn't the expected one: another writer appended to it.
    Conflict {
        /// What was to be appended.
        entry: EntryId,
        /// The sequence that is next.
        next: u64,
    },
    /// The identity has used this id before.
    ClientIdTaken {
        /// The entry that has it.
        entry: EntryId,
    },
    /// The file is a log, but broken.
    Damaged {
        /// Which file.
        path: PathBuf,
        /// What is wrong with it.
        why: Arc<str>,
    },
    /// The disk is full, and the log was closed before there was room.
    Full,
    /// The batch contradicts itself or the log; nothing of it was kept.
    Invalid(Arc<str>),
    /// The operating system refused.
    Io(Arc<str>),
    /// Another process writes to the file.
    Locked {
        /// Which file.
        path: PathBuf,
        /// The other process, where it is known.
        process: Option<u32>,
    },
    /// The file was written by a later version.
    Newer {
        /// Which file.
        path: PathBuf,
        /// The layout it has.
        format: u32,
    },
    /// The file is something else.
    NotALog {
        /// Which file.
        path: PathBuf,
    },
    /// A write failed, so what the disk has is unknown. Open the log again.
    Poisoned(Arc<str>),
    /// The log was opened for reading.
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
            Error::Newer { path, format } => write!(
                f,
                "{} has format {format}, and this version reads up to {}; upgrade pumphouse",
                path.display(),
                Identity::FORMAT
            ),
            Error::NotALog { path } => {
                write!(f, "{} is not a Pumphouse log; give another path", path.display())
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
    fn the_key_is_not_printed() {
        let identity = Identity { key: [201; 32], ..Identity::fresh() };
        let text = format!("{identity:?}");
        assert!(!text.contains("201, 201") && !text.contains("c9c9"), "{text}");
    }
}
