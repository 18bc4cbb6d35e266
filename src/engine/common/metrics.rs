//! Reads all counters of a pump at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::engine::common::counts::{Handled, Metrics, Outcome};
use crate::engine::common::shared::Shared;

/// Counts an open connection until it is dropped.
pub struct Connected(Arc<Shared>);

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
    /// Counts a message that waits for a place of a listener. The first such message of each
    /// listener is traced.
    pub(crate) fn hold_up(&self, listener: usize) {
        if !self.counts.hold_up(listener) {
            return;
        }
        let registered = &self.routes.listeners[listener];
        let (limit, most) = match registered.traits.agent {
            true => ("agents_at_once", self.limits.agents_at_once),
            false => ("handlers_max", self.limits.handlers_max),
        };
        let listener = &*registered.name;
        tracing::info!(
            listener,
            "a message waits, since as many handlers run as may; the limit {limit} is {most}"
        );
    }

    /// Reads all counters, and the present state.
    pub(crate) fn metrics(&self) -> Metrics {
        let counts = &self.counts;
        let read = |it: &AtomicU64| it.load(Ordering::Relaxed);
        let ends = counts.handled.iter().zip(&counts.held_up);
        let handled =
            self.routes.listeners.iter().zip(ends).map(|(listener, (of, held_up))| Handled {
                held_up: read(held_up),
                listener: listener.name.clone(),
                returned: read(&of[Outcome::Returned as usize]),
                failed: read(&of[Outcome::Failed as usize]),
                panicked: read(&of[Outcome::Panicked as usize]),
                stopped: read(&of[Outcome::Stopped as usize]),
            });
        Metrics {
            uptime: Duration::from_micros(self.runtime.now_us().saturating_sub(counts.started_us)),
            entries: read(&counts.entries),
            accepted: read(&counts.accepted),
            refused: counts.refusals(),
            handled: handled.collect(),
            connections: read(&counts.connections),
            owed_bytes: self.clients.unread.total() as u64,
            inbox: self.workers.inboxes.iter().map(|it| it.len() as u64).sum(),
            trees_awake: self.workers.awake.iter().map(read).sum(),
            commit: read(&counts.commit),
            health: self.log.health(),
        }
    }
}
