//! A choice as the root's content, recursive too.

use pumphouse::Payload;

/// What was said.
#[derive(Payload)]
#[payload(ns = "urn:shapes", rename = "said", live)]
pub(super) enum Root {
    /// The same again.
    Again(Box<Root>),
    Nothing,
    Word(String),
    Sum {
        a: i64,
        b: i64,
    },
}
