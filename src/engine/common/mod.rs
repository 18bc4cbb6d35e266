//! What the workers, the handle and the arguments of handlers share.
//!
//! - `gate`: how many handlers of one listener may run at once, over all workers.
//! - `owed`: bytes that clients haven't read yet, over all connections.
//! - `counts`: what a pump counts of its own work.
//! - `followers`: the threads that clients follow.
//! - `refusals`: what doors refuse, counted by sender and reason.
//! - `inbox`: a worker's inbox, and what may lie in it.
//! - `runtime`: time, chance and tasks of the port.
//! - `shared`: the organism, its log, workers and clients, by purpose.
//! - `metrics`: a reading of all that a pump counts.
//! - `lifecycle`: the organism's own thread: its start, its signs of life, its stop.
//! - `refusal_report`: reports refusals in the organism's own thread.
//!
//! Each module uses only those that stand above it here, the rooms above this one, and nothing
//! else of the engine.

pub(crate) mod gate;
pub(crate) mod owed;
pub(crate) mod counts;
pub(crate) mod live_queue;
pub(crate) mod followers;
pub(crate) mod refusals;
pub(crate) mod inbox;
pub(crate) mod runtime;
pub(crate) mod shared;
pub(crate) mod metrics;
pub(crate) mod lifecycle;
pub(crate) mod refusal_report;
