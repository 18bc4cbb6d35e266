//! A reader must be able to tell fields apart by their elements, those of choices included.

extern crate pumphouse_core as pumphouse;

use pumphouse::prelude::*;

/// A choice.
#[derive(Payload)]
enum Choice {
    Left { by: i64 },
    Right,
}

/// A choice beside a field that is called as one of its variants.
#[derive(Payload)]
struct Beside {
    turn: Choice,
    right: String,
}

/// One choice beside itself.
#[derive(Payload)]
struct Twice {
    first: Option<Choice>,
    second: Choice,
}

/// Elements, who knows which.
#[derive(Payload)]
struct Elements {
    first: Vec<Element>,
    last: Option<Element>,
}

/// The same in a variant.
#[derive(Payload)]
enum Variants {
    None,
    Some { turn: Choice, left: i64 },
}

fn main() {}
