//! An entry on its way into a thread, and the handling that it comes of.

use std::sync::Arc;

use bytes::Bytes;

use crate::engine::tree::event::CORE_NAME;
use crate::engine::tree::loop_guard::Chain;
use crate::engine::tree::route::Receiver;
use crate::engine::tree::thread::Running;
use crate::engine::tree::until::Until;
use crate::id::EntryId;
use crate::listener::Entry;
use crate::log::Flags;
use crate::wire::core::ThreadStatus;
use crate::wire::{Checked, Payload};

/// The handling that something comes of: which message, which listener, under which push.
#[derive(Clone)]
pub(crate) struct Part {
    pub(crate) message: Entry,
    pub(crate) listener: usize,
    pub(crate) root: u64,
    pub(crate) chain: Chain,
    /// The push that a message to oneself is for, where that is another.
    pub(crate) next_root: Option<u64>,
    /// Whether what it keeps in hand is settled where the thread is over budget, too.
    pub(crate) settles: bool,
    pub(super) emitted: usize,
    /// What is said of the emission at hand beside its payload.
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

    /// Whether the pump itself sent the message: nobody answers it, or the two would never stop.
    pub(crate) fn is_from_core(&self) -> bool {
        self.message.from() == CORE_NAME
    }

    /// How a thread ends with what is emitted here.
    pub(super) fn ending(&self) -> ThreadStatus {
        match self.flags.contains(Flags::ERROR) {
            true => ThreadStatus::Failed,
            false => ThreadStatus::Completed,
        }
    }
}

/// An entry to be, before the thread gives it its place.
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
    pub(crate) root: u64,
    /// The messages that it comes at the end of.
    pub(crate) chain: Chain,
    /// The time before which it isn't to start.
    pub(crate) until: Option<Until>,
}

/// A word of the pump's own.
pub(crate) fn word<P: Payload>(it: &P) -> Option<Checked> {
    match it.encode() {
        Ok(element) => Some(Checked::typed(P::NAME, element)),
        Err(error) => {
            tracing::error!(%error, name = %P::NAME, "a word of the pump's can't be written");
            None
        }
    }
}
