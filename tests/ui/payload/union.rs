//! A union can't be a payload, because it doesn't know which of its fields is set.

extern crate pumphouse_core as pumphouse;

use pumphouse::Payload;

/// One or the other.
#[derive(Payload)]
#[payload(ns = "urn:test")]
union Either {
    a: i64,
    b: f64,
}

fn main() {}
