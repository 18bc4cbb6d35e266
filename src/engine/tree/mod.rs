//! A tree of threads is a state machine: an event comes in, a batch for the log and effects come
//! out.
//!
//! A step has no clock, no task and no disk, and changes no shared state. A step reads some values
//! that other parts of the pump change: the free places of listeners, whether a client still
//! listens, and whether a handler still waits for its reservation. Three functions in this folder
//! aren't part of a step, and read the log: `budget_ledger::read`, `budget_ledger::charged` and
//! `Lineage::read`.
//!
//! - `observer`: the trait `PushObserver`, which receives the events of pushes.
//! - `route`: finds the receivers of a payload, by name, by address or as a reply.
//!
//! - `no_receiver_reasons`: says why a payload has no receiver.
//! - `lineage`: the entries that a fork shares with the threads that it continues.
//! - `loop_guard`: detects messages that go round in a circle.
//!
//! - `due_time`: the time that a delivery waits for, and its form in the log.
//! - `event`, `effect`: the input and the output of a step.
//!
//! - `request`: the requests of a thread to its tree.
//! - `budget_ledger`, `budget_rules`: the budget accounts of a tree, and the rules on them.
//! - `reserved_amounts`, `reservations`: the parts of a budget that running handlers have reserved.
//! - `folds`: the folds of one thread.
//! - `thread`: the state of one thread.
//!
//! - `sending`: an entry without a number yet, and the handling that sends the entry.
//! - `admit`: accepts pushes and appends entries.
//! - `delivery`: starts and ends deliveries, makes them wait for a time or an entry, and settles
//!   pushes.
//! - `emit`: sends the emissions of handlers to their receivers.
//! - `undelivered_report`: tells senders if no listener got an emission.
//! - `shared_answers`, `coalesce`: one answer to several messages or pushes.
//! - `parked`: messages that a serial listener keeps unconsumed.
//! - `trial`: messages whose handling may be what ends the process.
//! - `resume`: continues a thread's unfinished work after a stop.
//! - `child_threads`: opens and ends child threads, and hands their results to the parent.
//! - `stopped_listeners`: listeners that are stopped in a thread, since a fold panicked.
//! - `step`: the state machine itself.
//!
//! Each module uses only the modules that stand above its `mod` line, and nothing else of the
//! engine.

pub(crate) mod observer;
pub(crate) mod route;
mod no_receiver_reasons;
pub(crate) mod lineage;
pub(crate) mod loop_guard;
pub(crate) mod due_time;
pub(crate) mod event;
pub(crate) mod reserved_amounts;
pub mod budget_ledger;
pub(crate) mod folds;
pub(crate) mod thread;
mod sending;
mod request;
pub(crate) mod effect;
mod admit;
mod undelivered_report;
mod shared_answers;
mod coalesce;
mod parked;
mod withdraw;
mod delivery;
mod emit;
pub(crate) mod trial;
mod resume;
pub(crate) mod step;
mod reservations;
mod child_threads;
mod budget_rules;
mod stopped_listeners;
