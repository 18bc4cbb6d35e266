//! Only payloads have fields with the options `value` and `note`, and no field has both.

extern crate pumphouse_core as pumphouse;

use pumphouse::Payload;

/// With three of them.
#[derive(Payload)]
#[payload(ns = "urn:test", value)]
struct Two {
    #[payload(attribute, value)]
    one: String,
    #[payload(value, note)]
    other: String,
    #[payload(attribute, value = "third")]
    third: i64,
}

/// A part.
#[derive(Payload)]
struct Part {
    #[payload(value)]
    it: String,
    #[payload(note)]
    beside: String,
}

/// A choice.
#[derive(Payload)]
#[payload(ns = "urn:test")]
enum Either {
    #[payload(value)]
    Nothing,
    Word(#[payload(value)] String),
    Said {
        #[payload(value)]
        what: String,
    },
}

/// A scalar.
#[derive(Payload)]
#[payload(ns = "urn:test")]
struct Scalar(#[payload(value)] String);

fn main() {}
