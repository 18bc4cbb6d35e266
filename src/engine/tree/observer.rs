//! The trait [`PushObserver`], which receives the events of pushes.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use crate::id::EntryId;
use crate::listener::Entry;
use crate::wire::Fault;

/// Receives the events of pushes, for a connection or for a program. Workers call `hear` between
/// their steps, and tasks that push call it too. So `hear` must neither block nor panic.
pub trait PushObserver: Send + Sync {
    /// Receives an event of a push. `push` is the sender's own number for the push.
    fn hear(&self, push: u64, news: PushEvent);
}

/// Passes an event to an observer. A panic of the observer is caught and traced.
pub(crate) fn tell(observer: &dyn PushObserver, push: u64, news: PushEvent) {
    if catch_unwind(AssertUnwindSafe(|| observer.hear(push, news))).is_err() {
        tracing::error!(push, "an observer of a push panicked");
    }
}

/// An event of a push.
#[derive(Clone, Debug)]
// Exhaustive, since a door must treat every event.
pub enum PushEvent {
    /// The push is in the log.
    Accepted {
        /// The push's entry.
        id: EntryId,
        /// The sender's own id for the push, if it gave one.
        client_id: Option<Arc<str>>,
    },
    /// The push was refused, for this reason.
    Refused(Fault),
    /// The push was accepted, and then the log failed. Entries that the push caused may be lost.
    /// The sender isn't told which entries are lost. `Settled` follows.
    Lost(Fault),
    /// An entry for the identity that pushed: an answer, or another message of the thread to this
    /// identity.
    Reply(Entry),
    /// The push is settled: nothing that it caused is left to do.
    Settled,
}
