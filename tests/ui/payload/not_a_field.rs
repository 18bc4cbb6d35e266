//! The type of a field must have a form in XML.

extern crate pumphouse_core as pumphouse;

use std::time::Duration;

use pumphouse::Payload;

/// Takes a while.
#[derive(Payload)]
#[payload(ns = "urn:test")]
struct Wait {
    time: Duration,
}

/// Takes many whiles.
#[derive(Payload)]
struct Waits {
    times: Vec<Duration>,
}

/// Takes a while or not.
#[derive(Payload)]
enum Perhaps {
    Not,
    For(Duration),
}

fn main() {}
