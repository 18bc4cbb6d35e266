//! The listener `echo` answers each message with the message's own payload. It is the smallest
//! listener, and a good one to copy.

use pumphouse::listener::Effects;
use pumphouse::prelude::*;

/// Says something that comes back as it is.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/echo/v1")]
pub struct Echo {
    /// What is said.
    #[payload(example = "Hello")]
    pub text: String,
}

/// The listener `echo`.
#[must_use]
pub fn echo() -> Listener {
    Listener::new("echo")
        .on(say)
        .reaction()
        .effects(Effects::None)
        .describe("Returns what it is told.")
}

async fn say(echo: Echo) -> Echo {
    echo
}
