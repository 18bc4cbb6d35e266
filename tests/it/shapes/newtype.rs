//! A struct around one text.

use pumphouse::Payload;

/// A ticket by its number.
#[derive(Payload)]
#[payload(ns = "urn:shapes", rename = "ticket")]
pub(super) struct Root(#[payload(pattern = "T[0-9]{4}")] pub(super) String);
