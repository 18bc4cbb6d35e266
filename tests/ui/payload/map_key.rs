//! The values of a map can't have the attribute `key`, because the map's entries have it.

extern crate pumphouse_core as pumphouse;

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
