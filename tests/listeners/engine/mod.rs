//! The engine's promises, rule by rule, tested through the public API alone.
#![allow(clippy::disallowed_methods, reason = "handlers in tests sleep as users' do")]

mod asked;
mod broken;
mod budgets;
mod build;
mod clocks;
mod composed;
mod crash;
mod damaged;
mod early;
mod forks;
mod handlers;
mod joins;
mod life;
mod loops;
mod order;
mod parked;
mod replies;
mod replay;
mod rude;
mod state;
mod stopped;
mod stuck;
mod threads;
mod timers;
mod todos;
mod together;
mod push_answers;
mod up_to_date;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use pumphouse::engine::Port as _;
use pumphouse::log::Log;
use pumphouse::prelude::*;
use pumphouse::sim::Sim;

/// A step down a chain.
#[derive(Clone, Debug, PartialEq, Payload)]
#[payload(ns = "urn:test")]
pub(crate) struct Down {
    pub(crate) n: u64,
}

/// A question with a number.
#[derive(Clone, Debug, PartialEq, Payload)]
#[payload(ns = "urn:test")]
pub(crate) struct Question {
    pub(crate) n: u64,
}

/// An answer with a number.
#[derive(Clone, Debug, PartialEq, Payload)]
#[payload(ns = "urn:test")]
pub(crate) struct Answer {
    pub(crate) n: u64,
}

pub(crate) fn start(plugin: impl Plugin) -> Pump {
    pumphouse::builder().with(plugin).workers(2).build().unwrap().start()
}

/// The same in virtual time, where nobody comes late: what rests there can't go on.
pub(crate) fn start_in(sim: &Sim, plugin: impl Plugin) -> Pump {
    pumphouse::builder().with(plugin).workers(2).build().unwrap().start_on(sim)
}

/// Lets a second of virtual time pass: all happens that can, and no handler's time is up.
pub(crate) fn pass(sim: &Sim) {
    sim.run(sim.sleep(Duration::from_secs(1))).unwrap();
}

/// Waits beside all others in virtual time; what it came to, once it has.
pub(crate) fn beside<T: Send + 'static>(
    sim: &Sim,
    waits: impl Future<Output = T> + Send + 'static,
) -> Arc<Mutex<Option<T>>> {
    let came = Arc::new(Mutex::new(None));
    let slot = came.clone();
    sim.spawn(async move {
        let it = waits.await;
        *slot.lock().unwrap() = Some(it);
    });
    came
}

/// A thread as lines: who, to whom, what, whether it was refused.
pub(crate) async fn story(log: &Arc<dyn Log>, thread: &ThreadId) -> Vec<String> {
    let entries = log.read(thread, 0, u64::MAX, 10_000).await.unwrap();
    let line = |it: &Arc<pumphouse::log::Entry>| {
        let refused = it.flags.contains(pumphouse::log::Flags::REFUSED);
        let refused = if refused { " refused" } else { "" };
        let to = it.to.as_deref().unwrap_or("*");
        format!("{} > {to}: {}{refused}", it.from, it.name.local())
    };
    entries.iter().map(line).collect()
}

/// The thread that the log has, where it has one.
pub(crate) async fn only_thread(pump: &Pump) -> ThreadId {
    let threads = pump.log().threads(None, 10).await.unwrap();
    assert_eq!(threads.len(), 1, "one thread");
    threads[0].id.clone()
}
