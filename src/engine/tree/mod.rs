//! A tree of threads: a pure state machine. An event comes in; a batch for the log and effects
//! come out.
//!
//! - `observer`: where a push came from, and what its sender hears of it.
//! - `route`: receivers of a payload, by name, by address or as a reply.
//! - `lineage`: what a fork shares with the threads that it continues from.
//! - `loop_guard`: detects messages that go round in a circle.
//! - `event`, `effect`: the input and the output of a step.
//! - `budget`, `budget_rules`: the budget accounts of a tree, and the rules on them.
//! - `reserved`, `reservations`: amounts of a budget that running handlers hold.
//! - `thread`: one thread's own state.
//! - `admit`: pushes are accepted, and entries are appended.
//! - `dispatch`: deliveries start, return, wait for a time and settle.
//! - `emit`: what a handler emits goes to its receivers.
//! - `undelivered`, `reasons`: emissions that no listener got, and why.
//! - `askers`, `coalesce`: one answer to several messages or pushes.
//! - `parked`: messages of a serial listener that wait unconsumed.
//! - `recover`: a thread's unfinished work after a stop.
//! - `children`: parent and child threads.
//! - `step`: the state machine itself.
//!
//! Each module uses only those that stand above it here, and nothing else of the engine.

pub(crate) mod observer;
pub(crate) mod route;
mod reasons;
pub(crate) mod lineage;
pub(crate) mod loop_guard;
pub(crate) mod until;
pub(crate) mod event;
pub(crate) mod reserved;
pub(crate) mod budget;
pub(crate) mod thread;
mod sending;
mod request;
pub(crate) mod effect;
mod admit;
mod undelivered;
mod askers;
mod coalesce;
mod parked;
mod dispatch;
mod emit;
mod recover;
pub(crate) mod step;
mod reservations;
mod children;
mod budget_rules;
