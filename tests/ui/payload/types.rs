//! A type that has no form in XML is refused with a reason.

extern crate pumphouse_core as pumphouse;

use std::collections::{BTreeMap, HashMap};

use pumphouse::Payload;

/// Everything that cannot be.
#[derive(Payload)]
struct All {
    bytes: Vec<u8>,
    maybe_bytes: Option<Vec<u8>>,
    twice: Option<Option<String>>,
    list: Option<Vec<String>>,
    gaps: Vec<Option<i64>>,
    rows: Vec<Vec<i64>>,
    size: usize,
    sizes: Vec<isize>,
    text: &'static str,
    pair: (i64, i64),
    four: [u32; 4],
    map: HashMap<String, String>,
    key: BTreeMap<u64, String>,
}

fn main() {}
