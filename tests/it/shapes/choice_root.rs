//! A choice as the content of the root, also a recursive one.

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
