//! Names must be names of XML, and no two fields may have the same name.

extern crate pumphouse_core as pumphouse;

use pumphouse::Payload;

/// Fields by one name.
#[derive(Payload)]
#[payload(ns = "urn:test", rename = "two words")]
struct Fields {
    a: i64,
    #[payload(rename = "a")]
    b: i64,
    #[payload(attribute, rename = "")]
    c: i64,
    #[payload(rename = "1st")]
    d: i64,
    #[payload(rename = "x:y")]
    ª: i64,
}

/// Variants by one name.
#[derive(Payload)]
enum Variants {
    ByZero,
    #[payload(rename = "by-zero")]
    Other,
    By_Zero,
}

fn main() {}
