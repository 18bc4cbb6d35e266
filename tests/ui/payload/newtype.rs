//! The unnamed field of a struct must be a scalar, and that of a variant a scalar or a part.

extern crate pumphouse_core as pumphouse;

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
