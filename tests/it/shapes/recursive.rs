//! A shape that contains itself.

use pumphouse::Payload;

/// A tree of names.
#[derive(Payload)]
#[payload(ns = "urn:shapes", rename = "tree")]
pub(super) struct Root {
    #[payload(attribute)]
    pub(super) name: String,
    pub(super) child: Vec<Root>,
    pub(super) twin: Option<Box<Root>>,
}
