//! Where a push came from, and what its sender hears of it.

use std::sync::Arc;

use crate::id::EntryId;
use crate::listener::Entry;
use crate::wire::Fault;

/// Someone who pushes: a connection, a program that asks. It must neither wait nor panic in `hear`:
/// it runs where messages are routed.
pub trait PushObserver: Send + Sync {
    /// Hears what became of a push, by the number it gave it.
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
    /// It isn't, and this is why.
    Refused(Fault),
    /// It was accepted, and then the log failed: what came of it since may never have been, and
    /// nobody is told of it. `Settled` follows.
    Lost(Fault),
    /// Something for its sender: an answer, or something later in its thread.
    Reply(Entry),
    /// All that it caused is done.
    Settled,
}
