//! The simplest shape: fields in their order.

use pumphouse::Payload;

/// Adds two integers.
#[derive(Payload)]
#[payload(ns = "urn:shapes", rename = "add")]
pub(super) struct Root {
    /// The first.
    pub(super) a: i64,
    /// The second.
    pub(super) b: i64,
}
