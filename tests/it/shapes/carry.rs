//! A shape with elements of any name.

use pumphouse::Payload;
use pumphouse::xml::Element;

/// Carries something to somebody.
#[derive(Payload)]
#[payload(ns = "urn:shapes", rename = "carry")]
pub(super) struct Root {
    pub(super) to: String,
    /// What is carried.
    pub(super) what: Element,
    pub(super) then: Option<String>,
    pub(super) more: Vec<Element>,
}
