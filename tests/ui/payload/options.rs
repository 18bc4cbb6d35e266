//! An option must be known, in its right place, and given only once.

extern crate pumphouse_core as pumphouse;

use pumphouse::Payload;

/// Options of a type.
#[derive(Payload)]
#[payload(ns = "urn:test", ns = "urn:test", namespace = "urn:test", attribute)]
#[payload(live = true, reserved(all), bookkeeping = 1, rename, lives)]
#[payload]
struct Type {
    #[payload(atribute, ns = "urn:test")]
    a: i64,
    #[payload(attribute, attribute, rename = 7)]
    b: i64,
    #[payload(skip)]
    c: i64,
    #[payload(text "x")]
    d: i64,
}

/// Options of variants.
#[derive(Payload)]
enum Variants {
    #[payload(attribute)]
    One,
    Two(#[payload(text)] String),
    #[payload = "three"]
    Three,
}

fn main() {}
