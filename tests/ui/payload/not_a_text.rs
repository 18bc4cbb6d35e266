//! A struct or a choice can't be an attribute or a text.

extern crate pumphouse_core as pumphouse;

use pumphouse::Payload;

/// A part.
#[derive(Payload)]
struct Part {
    a: i64,
}

/// Has one as an attribute.
#[derive(Payload)]
struct Attribute {
    #[payload(attribute)]
    part: Part,
}

/// Has one as a text.
#[derive(Payload)]
struct Text {
    #[payload(text)]
    part: Part,
}

/// Is one.
#[derive(Payload)]
struct Around(Part);

fn main() {}
