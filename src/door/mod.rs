//! Ways in for whoever speaks XML: who it is, what it sent, and what it is to hear.
//!
//! A session is a state machine without a socket: bytes in, pushes and bytes out. It knows no
//! listeners and no log; what becomes of a push the pump tells it.

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
