//! An entry before its thread has given it a number, and the handling that sends the entry.

use std::sync::Arc;

use bytes::Bytes;

use crate::engine::tree::due_time::Until;
use crate::engine::tree::loop_guard::Chain;
use crate::engine::tree::route::Receiver;
use crate::engine::tree::thread::Running;
use crate::id::EntryId;
use crate::listener::Entry;
use crate::log::Flags;
use crate::wire::core::ThreadStatus;
use crate::wire::{Checked, Payload};

/// A handling that emits something: its message, its listener and its push.
#[derive(Clone)]
pub(crate) struct Part {
    pub(crate) message: Entry,
    pub(crate) listener: usize,
    /// The number of the push that the emissions belong to, or 0 if they belong to none.
    pub(crate) root: u64,
    pub(crate) chain: Chain,
    /// The push that the listener's next message to itself belongs to. None stands for `root`.
    pub(crate) next_root: Option<u64>,
    /// Whether the listener continues even if the thread is over budget.
    pub(crate) settles: bool,
    pub(super) emitted: usize,
    /// The flags of the emission that is being sent.
    pub(crate) flags: Flags,
    pub(super) meta: Option<Bytes>,
}

impl Part {
    pub(crate) fn of(running: &Running, listener: usize) -> Part {
        Part {
            message: running.first.entry.clone(),
            listener,
            root: running.root,
            chain: running.first.chain,
            next_root: None,
            settles: false,
            emitted: running.emitted,
            flags: Flags::NONE,
            meta: None,
        }
    }

    /// Returns whether the pump itself sent the message. No faults are sent about the handling of
    /// such a message. Such a fault would be one more message of the pump, and its handling might
    /// fail again, without end.
    pub(crate) fn is_from_core(&self) -> bool {
        self.message.is_from_core()
    }

    /// Returns the status of a child thread that ends with the emission that is being sent.
    pub(super) fn ending(&self) -> ThreadStatus {
        match self.flags.contains(Flags::ERROR) {
            true => ThreadStatus::Failed,
            false => ThreadStatus::Completed,
        }
    }
}

/// An entry before its thread has given it a number.
#[derive(Clone)]
pub(crate) struct Sending<'a> {
    pub(crate) from: &'a Arc<str>,
    pub(crate) to: Option<Arc<str>>,
    pub(crate) checked: Checked,
    pub(crate) cause: Option<EntryId>,
    pub(crate) reply_to: Option<EntryId>,
    pub(crate) flags: Flags,
    pub(crate) receivers: &'a [Receiver],
    pub(crate) client_id: Option<Arc<str>>,
    pub(crate) meta: Option<Bytes>,
    /// The number of the push that the entry belongs to, or 0 if it belongs to none.
    pub(crate) root: u64,
    /// The chain of messages that led to the entry.
    pub(crate) chain: Chain,
    /// If the entry has to wait: the time at which its wait ends, unless another entry ends the
    /// wait earlier.
    pub(crate) until: Option<Until>,
}

/// Encodes a payload of the pump itself. If encoding fails, the error is traced, and the result is
/// None.
pub(crate) fn word<P: Payload>(payload: &P) -> Option<Checked> {
    match payload.encode() {
        Ok(element) => Some(Checked::typed(P::NAME, element)),
        Err(error) => {
            tracing::error!(%error, name = %P::NAME, "a word of the pump's can't be written");
            None
        }
    }
}
