//! Attributes and texts must be scalars, and an element has either one text or child elements.

extern crate pumphouse_core as pumphouse;

use pumphouse::prelude::*;

/// What cannot be an attribute.
#[derive(Payload)]
struct Attributes {
    #[payload(attribute)]
    many: Vec<String>,
    #[payload(attribute)]
    any: Option<Element>,
    #[payload(attribute, text)]
    both: String,
}

/// What cannot be a text.
#[derive(Payload)]
struct Texts {
    #[payload(text)]
    one: Option<String>,
    #[payload(text, rename = "another")]
    two: String,
}

/// What cannot stand beside a text.
#[derive(Payload)]
struct Mixed {
    #[payload(text)]
    text: String,
    element: String,
}

fn main() {}
