//! Optional fields and repeated fields.

use pumphouse::Payload;

/// A list of things to buy.
#[derive(Payload)]
#[payload(ns = "urn:shapes", rename = "shopping")]
pub(super) struct Root {
    /// Where to buy it.
    pub(super) shop: Option<String>,
    /// Each thing.
    pub(super) thing: Vec<String>,
    pub(super) note: Option<String>,
}
