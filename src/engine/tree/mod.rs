//! A tree of threads: a pure state machine. An event comes in; a batch for the log and effects
//! come out.
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
