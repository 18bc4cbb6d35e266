//! What a pump counts of its own work: numbers that grow where something happens anyway, and a
//! reading of all of them for whoever asks. No payload, no token and no identity is in it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::engine::shared::Shared;
use crate::log::{self, Flags, Health};
use crate::wire::Code;

/// What a pump counted since it started, and how it is now.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Metrics {
    /// How long it has been there.
    pub uptime: Duration,
    /// Entries appended to the log.
    pub entries: u64,
    /// Pushes that were accepted; one that only repeats another counts once.
    pub accepted: u64,
    /// Pushes that were refused, by the fault's number.
    pub refused: BTreeMap<Code, u64>,
    /// How handlers came to their end, for each listener, in the order of registration.
    pub handled: Vec<Handled>,
    /// Connections that are open, at all doors.
    pub connections: u64,
    /// Bytes that wait in memory for the clients of all connections, under `owed_bytes_max`.
    pub owed_bytes: u64,
    /// What lies in the workers' inboxes.
    pub inbox: u64,
    /// Trees of threads that are awake.
    pub trees_awake: u64,
    /// The number of the log's last commit.
    pub commit: u64,
    /// How the log is.
    pub health: Health,
}

/// How a listener's handlers came to their end.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Handled {
    /// The listener.
    pub listener: Arc<str>,
    /// How many returned, be it with an error of their own.
    pub returned: u64,
    /// How many failed before they began: what they ask for wasn't there.
    pub failed: u64,
    /// How many panicked.
    pub panicked: u64,
    /// How many were stopped: their time was up, or their thread or the pump was ended.
    pub stopped: u64,
}

/// How one handler came to its end.
#[derive(Clone, Copy)]
pub(crate) enum Outcome {
    Returned,
    Failed,
    Panicked,
    Stopped,
}

/// The numbers themselves. Each is exact by itself; two that are read together may be of moments
/// that lie a little apart.
pub(crate) struct Counts {
    started_us: u64,
    entries: AtomicU64,
    accepted: AtomicU64,
    connections: AtomicU64,
    commit: AtomicU64,
    handled: Vec<[AtomicU64; 4]>,
}

impl Counts {
    pub(crate) fn new(now_us: u64, listeners: usize) -> Counts {
        Counts {
            started_us: now_us,
            entries: AtomicU64::new(0),
            accepted: AtomicU64::new(0),
            connections: AtomicU64::new(0),
            commit: AtomicU64::new(0),
            handled: (0..listeners).map(|_| Default::default()).collect(),
        }
    }

    /// A batch landed in the log.
    pub(crate) fn landed(&self, receipt: &log::Receipt) {
        let is_push = |it: &&Arc<log::Entry>| it.flags.contains(Flags::FROM_IDENTITY);
        let pushes = receipt.entries.iter().filter(is_push).count();
        self.entries.fetch_add(receipt.entries.len() as u64, Ordering::Relaxed);
        self.accepted.fetch_add(pushes as u64, Ordering::Relaxed);
        self.head(receipt.head);
    }

    /// The log has come this far; workers may say so out of order.
    pub(crate) fn head(&self, head: log::Head) {
        self.commit.fetch_max(head.number, Ordering::Relaxed);
    }

    pub(crate) fn handled(&self, listener: usize, outcome: Outcome) {
        if let Some(counts) = self.handled.get(listener) {
            counts[outcome as usize].fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// A connection that is open, until it is dropped.
pub(crate) struct Connected(Arc<Shared>);

impl Connected {
    pub(crate) fn new(shared: Arc<Shared>) -> Connected {
        shared.counts.connections.fetch_add(1, Ordering::Relaxed);
        Connected(shared)
    }
}

impl Drop for Connected {
    fn drop(&mut self) {
        self.0.counts.connections.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Shared {
    /// Reads all the numbers.
    pub(crate) fn metrics(&self) -> Metrics {
        let counts = &self.counts;
        let read = |it: &AtomicU64| it.load(Ordering::Relaxed);
        let handled = self.routes.listeners.iter().zip(&counts.handled).map(|(it, of)| Handled {
            listener: it.name.clone(),
            returned: read(&of[Outcome::Returned as usize]),
            failed: read(&of[Outcome::Failed as usize]),
            panicked: read(&of[Outcome::Panicked as usize]),
            stopped: read(&of[Outcome::Stopped as usize]),
        });
        Metrics {
            uptime: Duration::from_micros((self.now_us)().saturating_sub(counts.started_us)),
            entries: read(&counts.entries),
            accepted: read(&counts.accepted),
            refused: self.refusals().into_iter().collect(),
            handled: handled.collect(),
            connections: read(&counts.connections),
            owed_bytes: self.owed.total() as u64,
            inbox: self.inboxes.iter().map(|it| it.len() as u64).sum(),
            trees_awake: self.awake.iter().map(read).sum(),
            commit: read(&counts.commit),
            health: self.log.health(),
        }
    }
}
