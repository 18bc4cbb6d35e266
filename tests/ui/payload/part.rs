//! A type without a namespace is a part of payloads and can't be a payload itself.

extern crate pumphouse_core as pumphouse;

use pumphouse::Payload;

/// A part.
#[derive(Payload)]
struct Part {
    a: i64,
}

/// Says what only a payload can.
#[derive(Payload)]
#[payload(live, reserved, bookkeeping, rename = "other")]
struct Said {
    a: i64,
}

fn send<P: Payload>(_: P) {}

fn main() {
    send(Part { a: 1 });
}
