//! Doors: connections of clients that speak XML over TCP, TLS or a Unix socket, and metrics over
//! HTTP.
//!
//! A session is a state machine without a socket: bytes in, pushes and bytes out. It knows no
//! listeners and no log. The pump tells it what becomes of each push.

mod connection;
mod egress;
mod error;
mod follow;
mod guesses;
mod silence;
mod mailbox;
mod metrics;
mod reception;
mod session;
mod share;
mod tcp;
mod tls;
mod tokens;
#[cfg(unix)]
mod unix;

#[cfg(test)]
mod tests;

pub use error::Error;
pub use metrics::Metrics;
use tcp::is_local;
pub use tcp::{Options, Tcp};
pub use tls::{Tls, Unusable};
pub use tokens::{Tokens, Wrong};
#[cfg(unix)]
pub use unix::Unix;
