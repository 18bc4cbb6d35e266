//! State that several folds have in common: [`CurrentThread`] tells a fold where a fork begins, and
//! the other types are for the folds of `action` and `feed`. Each of these two folds reads the
//! messages to its listener from the log, in their order, and computes the effects of the newest
//! message. The handler of that message carries out these effects.
//!
//! The two folds handle timers in different ways. A timer's message is in the log twice: when the
//! message begins to wait, and when it is due. `action` tells these two entries apart by the time
//! in the message, and `feed` by the cause of the message. Existing logs need both ways.

use std::collections::BTreeMap;
use std::sync::Arc;

use pumphouse::prelude::*;
use pumphouse::wire::core::ThreadSpawned;

/// The thread of the last entry that a fold has applied. The thread changes at the first entry of a
/// fork.
#[derive(Clone, Debug, Default)]
pub(super) struct CurrentThread(Option<ThreadId>);

impl CurrentThread {
    /// Sets the thread to that of `entry`. Returns whether the entry is the first one of a fork.
    pub(super) fn enter(&mut self, entry: &Entry) -> bool {
        self.0.as_ref() != Some(entry.thread()) && self.0.replace(entry.thread().clone()).is_some()
    }
}

/// The effects of the newest entry, for the handler of that entry.
#[derive(Clone, Debug)]
pub(super) struct Latest<E> {
    seq: u64,
    effects: Arc<[E]>,
}

impl<E> Latest<E> {
    /// Replaces the effects by those of the next entry.
    pub(super) fn set(&mut self, entry: &Entry, effects: Vec<E>) {
        *self = Latest { seq: entry.seq(), effects: effects.into() };
    }

    /// The effects of the entry with this number. Empty if another entry is the newest.
    pub(super) fn of(&self, seq: u64) -> Arc<[E]> {
        if self.seq == seq { self.effects.clone() } else { Arc::default() }
    }
}

impl<E> Default for Latest<E> {
    fn default() -> Latest<E> {
        Latest { seq: 0, effects: Arc::default() }
    }
}

/// Calls that have no answer yet. A call is found by the entry that made the call, or by the thread
/// in which the call continues.
#[derive(Clone, Debug)]
pub(super) struct OpenCalls<C> {
    entries: BTreeMap<u64, C>,
    threads: BTreeMap<String, C>,
}

impl<C> Default for OpenCalls<C> {
    fn default() -> OpenCalls<C> {
        OpenCalls { entries: BTreeMap::new(), threads: BTreeMap::new() }
    }
}

impl<C: Clone> OpenCalls<C> {
    /// Records a call. If the entry says that a thread was opened for the call, the call is found
    /// by this thread. Otherwise it is found by the entry.
    pub(super) fn record(&mut self, entry: &Entry, call: C) {
        match entry.decode_if::<ThreadSpawned>() {
            Some(spawned) => self.threads.insert(spawned.assigned_id, call),
            None => self.entries.insert(entry.seq(), call),
        };
    }

    /// The call that an entry replies to.
    pub(super) fn replied(&self, entry: &Entry) -> Option<&C> {
        self.entries.get(&entry.reply_to()?.seq)
    }

    /// The call that continues in a thread.
    pub(super) fn in_thread(&self, thread: &str) -> Option<&C> {
        self.threads.get(thread)
    }

    /// The thread in which a call continues.
    pub(super) fn thread_of(&self, is_call: impl Fn(&C) -> bool) -> Option<&str> {
        self.threads.iter().find(|(_, call)| is_call(call)).map(|(thread, _)| &**thread)
    }

    /// The number of the entry that made a call.
    pub(super) fn entry_of(&self, is_call: impl Fn(&C) -> bool) -> Option<u64> {
        self.entries.iter().find(|(_, call)| is_call(call)).map(|(seq, _)| *seq)
    }

    /// Removes the call that an entry replies to.
    pub(super) fn take_replied(&mut self, entry: &Entry) -> Option<C> {
        self.entries.remove(&entry.reply_to()?.seq)
    }

    /// Removes the call that continues in a thread.
    pub(super) fn take_in_thread(&mut self, thread: &str) -> Option<C> {
        self.threads.remove(thread)
    }

    /// Keeps the calls that are still open, and removes all others.
    pub(super) fn retain(&mut self, is_open: impl Fn(&C) -> bool) {
        self.entries.retain(|_, call| is_open(call));
        self.threads.retain(|_, call| is_open(call));
    }
}
