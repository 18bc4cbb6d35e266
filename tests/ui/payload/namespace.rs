//! A namespace must be an absolute URI, and not one that XML reserves.

extern crate pumphouse_core as pumphouse;

use pumphouse::Payload;

/// None.
#[derive(Payload)]
#[payload(ns = "")]
struct Empty;

/// A word.
#[derive(Payload)]
#[payload(ns = "calculator")]
struct Relative;

/// Two words.
#[derive(Payload)]
#[payload(ns = "https://example.org/my calculator")]
struct Spaced;

/// XML's own.
#[derive(Payload)]
#[payload(ns = "http://www.w3.org/XML/1998/namespace")]
struct Taken;

fn main() {}
