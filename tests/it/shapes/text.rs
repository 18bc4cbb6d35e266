//! Attributes beside a text.

use pumphouse::Payload;

/// A step, done or not.
#[derive(Payload)]
#[payload(ns = "urn:shapes", rename = "step")]
pub(super) struct Root {
    /// Whether it is done.
    #[payload(attribute)]
    pub(super) done: bool,
    #[payload(attribute)]
    pub(super) by: Option<String>,
    /// What is to be done.
    #[payload(text, max_length = 80)]
    pub(super) what: String,
}
