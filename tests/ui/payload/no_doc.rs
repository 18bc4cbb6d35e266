//! A type must have a doc comment; a field may have one.

extern crate pumphouse_core as pumphouse;

use pumphouse::Payload;

#[derive(Payload)]
#[payload(ns = "urn:test")]
struct Add {
    a: i64,
}

#[derive(Payload)]
enum Color {
    Red,
}

///
#[derive(Payload)]
struct Blank;

#[doc = include_str!("no_doc.rs")]
#[derive(Payload)]
struct Included;

fn main() {}
