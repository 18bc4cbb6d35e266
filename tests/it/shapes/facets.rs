//! All facets, which narrow the values of a type.

use pumphouse::Payload;
use pumphouse::wire::Bytes;

/// An order of goods.
#[derive(Payload)]
#[payload(ns = "urn:shapes", rename = "order")]
pub(super) struct Root {
    /// Three letters and a number.
    #[payload(attribute, pattern = "[A-Z]{3}-[0-9]+", max_length = 12)]
    pub(super) id: String,
    #[payload(attribute, list, min = 0, max = 9, min_length = 1, max_length = 3)]
    pub(super) marks: Option<Vec<u8>>,
    /// How many.
    #[payload(min = 1, max = 100)]
    pub(super) count: i64,
    #[payload(min_length = 2, max_length = 20, example = "Ada")]
    pub(super) name: String,
    #[payload(one_of("small", "large"))]
    pub(super) size: Option<String>,
    #[payload(one_of(2, 3, 5))]
    pub(super) prime: u8,
    #[payload(min = 0, max = 0.25)]
    pub(super) share: Vec<f32>,
    #[payload(min = 10, digits = 6, fraction_digits = 2)]
    pub(super) price: f64,
    #[payload(digits = 3)]
    pub(super) short: i32,
    #[payload(length = 4)]
    pub(super) key: Bytes,
    pub(super) percent: Percent,
    #[payload(min = 50)]
    pub(super) most: Percent,
    #[payload(pattern = r"\i\c*|[^\s-[\t\n]]\p{Lu}")]
    pub(super) odd: String,
}

/// Of a hundred.
#[derive(Payload)]
pub(super) struct Percent(#[payload(max = 100)] pub(super) u8);
