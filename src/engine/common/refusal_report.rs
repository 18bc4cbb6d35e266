//! The task that reports refusals in the organism's own thread.

use std::sync::{Arc, Weak};

use crate::engine::common::refusals::Refusals;
use crate::engine::common::shared::{Shared, Stage};
use crate::engine::runtime_port::Port;
use crate::engine::tree::event::Words;
use crate::log::Health;

/// How long refusals are gathered before they are reported.
const GATHERED_US: u64 = 1_000_000;

/// How long the task waits after a report before it gathers refusals again.
const APART_US: u64 = 60_000_000;

/// Starts the task that reports refusals.
pub(crate) fn begin(shared: &Weak<Shared>, port: &impl Port) {
    if let Some(refusals) = shared.upgrade().map(|it| it.refusals.clone()) {
        port.spawn(tell(refusals, shared.clone(), port.clone()));
    }
}

/// Reports refusals in the organism's own thread until the pump is drained or dropped.
async fn tell(refusals: Arc<Refusals>, shared: Weak<Shared>, port: impl Port) {
    loop {
        refusals.arrived.notified().await;
        if refusals.lock().is_over {
            return;
        }
        port.sleep_until(port.now_us().saturating_add(GATHERED_US)).await;
        let Some(shared) = shared.upgrade() else { return };
        if *shared.state.stage.borrow() == Stage::Drained {
            return;
        }
        // While the log can't be written, as with a full disk, refusals are only counted. The
        // report follows once the log can be written.
        if shared.log.health() != Health::Well {
            refusals.arrived.notify_one();
        } else if let Some(report) = refusals.take(port.now_us()) {
            let mut words = Words::default();
            words.say(&report);
            words.post(&shared);
        }
        drop(shared);
        port.sleep_until(port.now_us().saturating_add(APART_US)).await;
    }
}
