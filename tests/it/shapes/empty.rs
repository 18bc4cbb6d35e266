//! A shape without any content.

use pumphouse::Payload;

/// Asks whether anyone is there.
#[derive(Payload)]
#[payload(ns = "urn:shapes", rename = "ping", reserved)]
pub(super) struct Root;
