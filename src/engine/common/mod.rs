//! The parts of a running pump that its workers, its handle and the arguments of handlers share.
//!
//! - `gate`: bounds how many handlers of one listener run at once, over all workers.
//! - `unread_bytes`: counts the bytes that clients haven't read yet, over all connections.
//! - `counts`: counts the pump's own work.
//! - `live_queue`: a queue of live payloads for a follower of the whole log.
//! - `followers`: the followers of threads and of the whole log.
//! - `refusals`: counts the pushes that doors refuse, by sender and reason.
//! - `inbox`: a worker's inbox and its kinds of mail.
//! - `runtime`: the port's clock, sleep and random numbers, without the port's type.
//! - `shared`: the state that all parts of a running pump share: the organism, its log, workers and
//!   clients.
//! - `metrics`: reads all counters at once.
//! - `lifecycle`: posts entries about starts, heartbeats and stops to the organism's own thread.
//! - `refusal_report`: reports refusals in the organism's own thread.
//!
//! Each module uses only the modules that stand above it in this list, and the modules that stand
//! above `common` in `engine/mod.rs`.

pub(crate) mod gate;
pub(crate) mod unread_bytes;
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
