//! Maps of scalars, of parts, of restricted scalars, and of the shape that has the map.

use std::collections::BTreeMap;

use pumphouse::Payload;

/// What is known of something.
#[derive(Payload)]
#[payload(ns = "urn:shapes", rename = "known")]
pub(super) struct Root {
    /// Words about it.
    pub(super) words: BTreeMap<String, String>,
    pub(super) marks: Option<BTreeMap<String, Mark>>,
    pub(super) steps: BTreeMap<String, Step>,
    pub(super) parts: BTreeMap<String, Root>,
}

/// From one to five.
#[derive(Payload)]
pub(super) struct Mark(#[payload(min = 1, max = 5)] pub(super) u8);

/// A step of it.
#[derive(Payload)]
pub(super) struct Step {
    #[payload(attribute)]
    pub(super) done: bool,
    pub(super) what: String,
}
