//! A payload has at most one field with the option `value`, and only payloads have one.

use pumphouse::Payload;

/// With two of them.
#[derive(Payload)]
#[payload(ns = "urn:test", value)]
struct Two {
    #[payload(attribute, value)]
    one: String,
    #[payload(value)]
    other: String,
    #[payload(attribute, value = "third")]
    third: i64,
}

/// A part.
#[derive(Payload)]
struct Part {
    #[payload(value)]
    it: String,
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
