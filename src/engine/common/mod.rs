//! What the workers, the handle and the arguments of handlers share.
//!
//! - `gate`: bounds how many handlers of one listener run at once, over all workers.
//! - `unread_bytes`: counts the bytes that clients haven't read yet, over all connections.
//! - `counts`: counters of the pump's own work.
//!
//! - `live_queue`: live payloads that wait for a follower of all threads.
//! - `followers`: the threads that clients follow.
//! - `refusals`: counts the pushes that doors refuse, by sender and reason.
//! - `inbox`: a worker's inbox and its kinds of mail.
//! - `runtime`: the port's clock, sleep and random numbers, without the port's type.
//! - `shared`: what all parts of a running pump share: the organism, its log, workers and clients.
//! - `metrics`: reads all counters at once.
//! - `lifecycle`: entries of the organism's own thread about start, heartbeat and stop.
//! - `refusal_report`: reports refusals in the organism's own thread.
//!
//! Each module uses only the modules that stand above it here and the rooms above this one.

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
