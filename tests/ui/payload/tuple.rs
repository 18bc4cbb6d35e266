//! Elements and fields need names, so there are no tuples and no empty choices.

extern crate pumphouse_core as pumphouse;

use pumphouse::Payload;

/// Two numbers.
#[derive(Payload)]
struct Two(i64, i64);

/// No numbers.
#[derive(Payload)]
struct None();

/// One or two numbers.
#[derive(Payload)]
enum Numbers {
    One(i64),
    Two(i64, i64),
}

/// No choice at all.
#[derive(Payload)]
enum Never {}

fn main() {}
