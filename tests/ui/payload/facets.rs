//! Facets that contradict themselves, each other, or XSD.

extern crate pumphouse_core as pumphouse;

use pumphouse::Payload;

/// Everything that cannot be.
#[derive(Payload)]
struct All {
    #[payload(pattern = "[a-z")]
    open: String,
    #[payload(pattern = "^a$")]
    anchored: String,
    #[payload(pattern = r"\p{IsGreek}")]
    block: String,
    #[payload(pattern = "a{2}", min_length = 5)]
    short: String,
    #[payload(pattern = 5)]
    number: String,
    #[payload(min = 5, max = 4)]
    swapped: i64,
    #[payload(min = "5")]
    text: i64,
    #[payload(max = 256)]
    wide: u8,
    #[payload(min = -1)]
    below: Option<u32>,
    #[payload(length = 2, max_length = 3)]
    twice: String,
    #[payload(min_length = 4, max_length = 3)]
    none: String,
    #[payload(max_length = "3")]
    quoted: String,
    #[payload(one_of())]
    nothing: String,
    #[payload(one_of("a", 1))]
    mixed: String,
    #[payload(one_of("a", "a"))]
    same: String,
    #[payload(one_of("a", "B"), pattern = "[a-z]")]
    outside: String,
    #[payload(one_of(1, 300))]
    wide_one: u8,
    #[payload(digits = 0)]
    zero: i64,
    #[payload(digits = 2, fraction_digits = 3)]
    more: f64,
    #[payload(digits = 20)]
    exact: f64,
    #[payload(fraction_digits = 8)]
    small: f64,
    #[payload(pattern = "[a-z]+", example = "A")]
    example: String,
    #[payload(min = 1, min = 2)]
    again: i64,
    #[payload(minimum = 1)]
    unknown: i64,
}

/// On the type.
#[derive(Payload)]
#[payload(min = 1)]
struct Typed(u8);

fn main() {}
