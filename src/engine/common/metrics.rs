//! A reading of all that a pump counts.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::engine::common::counts::{Handled, Metrics, Outcome};
use crate::engine::common::shared::Shared;

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
            uptime: Duration::from_micros(self.runtime.now_us().saturating_sub(counts.started_us)),
            entries: read(&counts.entries),
            accepted: read(&counts.accepted),
            refused: counts.refusals(),
            handled: handled.collect(),
            connections: read(&counts.connections),
            owed_bytes: self.clients.owed.total() as u64,
            inbox: self.workers.inboxes.iter().map(|it| it.len() as u64).sum(),
            trees_awake: self.workers.awake.iter().map(read).sum(),
            commit: read(&counts.commit),
            health: self.log.health(),
        }
    }
}
