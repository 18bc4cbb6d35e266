//! The handle of a pump.
//!
//! - `follow`: reads a thread's entries as it grows.
//! - `pump`: push, tell, ask, follow and shut down.
//! - `fork`: new threads that continue from an entry of another thread.
//! - `push`: a push is checked and routed, and its client id is looked up.

pub(crate) mod follow;
pub(crate) mod pump;
mod fork;
pub(crate) mod push;
