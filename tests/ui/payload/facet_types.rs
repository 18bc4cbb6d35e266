//! Facets on types to which they don't apply.

extern crate pumphouse_core as pumphouse;

use pumphouse::Payload;
use pumphouse::xml::Element;

/// Everything that does not fit.
#[derive(Payload)]
struct All {
    #[payload(pattern = "a")]
    pattern: i64,
    #[payload(min = 1)]
    bound: String,
    #[payload(max = 0.5)]
    fraction: Vec<i64>,
    #[payload(one_of("a"))]
    text: Option<u8>,
    #[payload(one_of(1))]
    number: String,
    #[payload(max_length = 3)]
    length: bool,
    #[payload(fraction_digits = 1)]
    digits: i64,
    #[payload(example = "a")]
    any: Element,
    #[payload(max = 3)]
    around: Around,
    #[payload(list)]
    list: Vec<String>,
}

/// A text.
#[derive(Payload)]
struct Around(String);

fn main() {}
