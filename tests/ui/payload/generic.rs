//! A payload can't be generic.

extern crate pumphouse_core as pumphouse;

use pumphouse::Payload;

/// Of anything.
#[derive(Payload)]
struct Of<T> {
    it: T,
}

/// Of a borrowed text.
#[derive(Payload)]
#[payload(ns = "urn:test")]
struct Borrowed<'a> {
    it: &'a str,
}

fn main() {}
