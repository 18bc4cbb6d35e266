//! Doors: clients connect to them over TCP, TLS or a Unix socket and speak XML. One more kind of
//! door shows metrics over HTTP.
//!
//! A session is a connection's state machine without a socket. Bytes from the client go in. Pushes,
//! which are payloads from outside, come out. So do requests to follow threads, and bytes for the
//! client. A session knows no listeners and no log. The pump's events tell the session how each
//! push goes.

extern crate self as pumphouse;

// The modules name each other, and those of the crates below, by their paths in `pumphouse`.
#[doc(hidden)]
pub use crate as door;
#[doc(hidden)]
pub use pumphouse_core::{builder, engine, listener, wire};
use pumphouse_ground::{clock, id, limits, name, regular_file, xml};

mod client_tokens;
mod wrong_tokens;
mod error;
mod egress;
mod eviction;
mod push_shares;
mod push_events;
mod session;
mod follow;
mod connection;
mod acceptor;
mod peer;
mod tls;
mod tcp;
mod metrics;
#[cfg(unix)]
mod unix;
#[path = "../scene/mod.rs"]
pub mod scene;

#[cfg(test)]
mod tests;

pub use crate::listener::keep_programs_out;
pub use client_tokens::{Tokens, Wrong};
pub use error::Error;
pub use metrics::{Family, Metrics};
use tcp::is_local;
pub use tcp::{Options, Tcp};
pub use tls::{Tls, Unusable};
#[cfg(unix)]
pub use unix::Unix;
