//! The observer of a push, which hears what becomes of the push.

use std::sync::Arc;

use crate::id::EntryId;
use crate::listener::Entry;
use crate::wire::Fault;

/// Hears what becomes of pushes, for a connection or a program that asks. `hear` runs in a worker,
/// so it must neither wait nor panic.
pub trait PushObserver: Send + Sync {
    /// Hears what became of a push, by the number that the sender gave it.
    fn hear(&self, push: u64, news: PushEvent);
}

/// What becomes of a push.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum PushEvent {
    /// It is in the log.
    Accepted {
        /// As this entry.
        id: EntryId,
        /// The sender's own id for it.
        client_id: Option<Arc<str>>,
    },
    /// It was refused, for this reason.
    Refused(Fault),
    /// It was accepted, and then the log failed. What came of it may be lost, and nobody is told of
    /// that. `Settled` follows.
    Lost(Fault),
    /// An entry for its sender: an answer, or a later message of its thread.
    Reply(Entry),
    /// All that the push caused is done.
    Settled,
}
