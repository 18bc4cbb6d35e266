//! What goes live says so.

use pumphouse::{Live, Payload};

/// A payload that goes through the log.
#[derive(Payload)]
#[payload(ns = "urn:test")]
struct Kept;

fn show<P: Live>(_: P) {}

fn main() {
    show(Kept);
}
