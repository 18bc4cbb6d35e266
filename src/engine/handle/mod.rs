//! The handle of a running pump, for programs and doors.
//!
//! - `follow`: reads a thread's entries as it grows.
//! - `pump`: the handle itself, with push, tell, ask, follow and shutdown.
//! - `fork`: opens sessions that continue from an entry of another thread.
//! - `push`: checks and routes a push, and looks up its client id.
//! - `push_lane`: keeps the order of a connection's pushes.

pub(crate) mod follow;
pub(crate) mod pump;
mod fork;
mod push;
pub(crate) mod push_lane;
