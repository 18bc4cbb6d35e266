//! The errors of a log.

use std::fmt;
use std::future::Future;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;

use crate::id::{EntryId, ThreadId};
use crate::log::identity::Identity;

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
    /// nothing of the batch. [`SqliteLog::open`](crate::log::SqliteLog::open) returns this error
    /// for [`Durability::Memory`](crate::log::Durability::Memory).
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

/// A future with a log's answer, which may be an error.
pub type Boxed<'a, T> = Pin<Box<dyn Future<Output = Result<T, Error>> + Send + 'a>>;

/// A future that is ready at once.
pub(super) fn ready<'a, T: Send + 'a>(answer: Result<T, Error>) -> Boxed<'a, T> {
    Box::pin(std::future::ready(answer))
}
