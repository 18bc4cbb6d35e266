//! Counters of the pump's own work. The counters hold no payload, no token and no identity.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::log;
use crate::log::{Flags, Health};
use crate::wire::{Code, Fault};

/// The counters of a pump since its start, and its present state.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Metrics {
    /// How long the pump has been running.
    pub uptime: Duration,
    /// Entries appended to the log.
    pub entries: u64,
    /// Pushes that were accepted. A push and its repetitions with the same client id count once.
    pub accepted: u64,
    /// Maps a fault's number to the number of refusals with this fault.
    pub refused: BTreeMap<Code, u64>,
    /// For each listener, in the order of registration: how its handlers ended.
    pub handled: Vec<Handled>,
    /// Open connections at all doors.
    pub connections: u64,
    /// Bytes that wait in memory for clients to read them, over all connections. `owed_bytes_max`
    /// bounds them.
    pub owed_bytes: u64,
    /// Messages in the workers' inboxes.
    pub inbox: u64,
    /// Trees of threads that are in memory.
    pub trees_awake: u64,
    /// The number of the log's last commit.
    pub commit: u64,
    /// The state of the log.
    pub health: Health,
}

/// How a listener's handlers ended.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Handled {
    /// The listener's name.
    pub listener: Arc<str>,
    /// How many handlers returned. A handler that returned its own error counts here, too.
    pub returned: u64,
    /// How many handlers failed before they began, because one of their arguments couldn't be
    /// provided.
    pub failed: u64,
    /// How many handlers panicked.
    pub panicked: u64,
    /// How many handlers were stopped because their time was up, or because their thread or the
    /// pump ended.
    pub stopped: u64,
    /// How often messages had to wait because the largest allowed number of the listener's handlers
    /// was running.
    pub held_up: u64,
}

/// How one handler ended.
#[derive(Clone, Copy)]
pub(crate) enum Outcome {
    Returned,
    Failed,
    Panicked,
    Stopped,
}

/// The counters. Each counter is exact. Two counters that are read together may belong to slightly
/// different moments.
pub(crate) struct Counts {
    pub(super) started_us: u64,
    pub(super) entries: AtomicU64,
    pub(super) accepted: AtomicU64,
    pub(super) connections: AtomicU64,
    pub(super) commit: AtomicU64,
    pub(super) handled: Vec<[AtomicU64; 4]>,
    pub(super) held_up: Vec<AtomicU64>,
    /// The number of refusals with each fault. The index is the fault's number.
    refused: Vec<AtomicU64>,
}

impl Counts {
    pub(crate) fn new(now_us: u64, listeners: usize) -> Counts {
        let codes = Code::ALL.iter().map(|code| *code as usize).max().unwrap_or(0) + 1;
        Counts {
            started_us: now_us,
            entries: AtomicU64::new(0),
            accepted: AtomicU64::new(0),
            connections: AtomicU64::new(0),
            commit: AtomicU64::new(0),
            handled: (0..listeners).map(|_| Default::default()).collect(),
            held_up: (0..listeners).map(|_| AtomicU64::new(0)).collect(),
            refused: (0..codes).map(|_| AtomicU64::new(0)).collect(),
        }
    }

    /// Counts a batch that the log has.
    pub(crate) fn landed(&self, receipt: &log::Receipt) {
        // A child thread that an identity opened begins with a message from this identity. This
        // message isn't a push.
        let opens_child = |it: &log::Entry| it.id.seq == 1 && it.id.thread.tree() != it.id.thread;
        let is_push =
            |it: &&Arc<log::Entry>| it.flags.contains(Flags::FROM_IDENTITY) && !opens_child(it);
        let pushes = receipt.entries.iter().filter(is_push).count();
        self.entries.fetch_add(receipt.entries.len() as u64, Ordering::Relaxed);
        self.accepted.fetch_add(pushes as u64, Ordering::Relaxed);
        self.head(receipt.head);
    }

    /// Notes the log's last commit. Workers may call this out of order.
    pub(crate) fn head(&self, head: log::Head) {
        self.commit.fetch_max(head.number, Ordering::Relaxed);
    }

    /// Counts a refusal.
    pub(crate) fn refused(&self, fault: &Fault) {
        if let Some(count) = self.refused.get(fault.code as usize) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Maps a fault's number to the number of refusals with this fault.
    pub(crate) fn refusals(&self) -> BTreeMap<Code, u64> {
        let count = |code: Code| {
            let count = self.refused.get(code as usize)?.load(Ordering::Relaxed);
            (count > 0).then_some((code, count))
        };
        Code::ALL.iter().filter_map(|code| count(*code)).collect()
    }

    /// Counts a message that waits for a place of a listener. Returns true for the listener's first
    /// such message.
    pub(crate) fn hold_up(&self, listener: usize) -> bool {
        let count = self.held_up.get(listener);
        count.is_some_and(|it| it.fetch_add(1, Ordering::Relaxed) == 0)
    }

    pub(crate) fn handled(&self, listener: usize, outcome: Outcome) {
        if let Some(counts) = self.handled.get(listener) {
            counts[outcome as usize].fetch_add(1, Ordering::Relaxed);
        }
    }
}
