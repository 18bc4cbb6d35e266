//! A struct around one unnamed field is a scalar.

use pumphouse::prelude::*;

/// Around a list.
#[derive(Payload)]
struct List(Vec<String>);

/// Around nothing or something.
#[derive(Payload)]
struct Maybe(Option<i64>);

/// Around anything.
#[derive(Payload)]
struct Any(#[payload(text)] Element);

/// Variants around such.
#[derive(Payload)]
enum Variants {
    List(Vec<String>),
    Maybe(Option<i64>),
    Any(Element),
}

fn main() {}
