//! All mistakes of a type are reported at once.

extern crate pumphouse_core as pumphouse;

use pumphouse::prelude::*;

#[derive(Payload)]
#[payload(ns = "", live, lively)]
struct Add<T> {
    #[payload(attribute)]
    a: Vec<T>,
    #[payload(rename = "a")]
    b: usize,
    #[payload(text)]
    c: String,
}

fn main() {}
