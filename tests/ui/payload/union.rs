//! A union doesn't know what it holds.

use pumphouse::Payload;

/// One or the other.
#[derive(Payload)]
#[payload(ns = "urn:test")]
union Either {
    a: i64,
    b: f64,
}

fn main() {}
