//! A map's entries have the attribute that its parts would have.

use std::collections::BTreeMap;

use pumphouse::Payload;

/// A part with a key of its own.
#[derive(Payload)]
struct Keyed {
    #[payload(attribute)]
    key: String,
}

/// A map of them.
#[derive(Payload)]
#[payload(ns = "urn:test")]
struct Map {
    all: BTreeMap<String, Keyed>,
}

fn main() {
    let _ = <Map as Payload>::schema();
}
