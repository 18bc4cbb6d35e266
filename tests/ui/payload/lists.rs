//! Lists and maps that have no form in XML.

extern crate pumphouse_core as pumphouse;

use std::collections::BTreeMap;

use pumphouse::Payload;

/// Everything that cannot be.
#[derive(Payload)]
struct All {
    #[payload(list)]
    one: i64,
    #[payload(list)]
    nested: Vec<Vec<i64>>,
    #[payload(list, text)]
    maybe: Option<Vec<i64>>,
    #[payload(list = "yes")]
    flag: Vec<i64>,
    #[payload(attribute)]
    map: BTreeMap<String, String>,
    numbers: BTreeMap<u64, String>,
}

/// Unnamed.
#[derive(Payload)]
struct Row(#[payload(list)] Vec<i64>);

fn main() {}
