//! A type without a namespace is a part of payloads and can't be a payload itself.

extern crate pumphouse_core as pumphouse;

use pumphouse::prelude::*;

/// A question.
#[derive(Payload)]
#[payload(ns = "urn:test")]
struct Ask;

/// An answer.
#[derive(Payload)]
#[payload(ns = "urn:test")]
struct Answer;

/// A place.
#[derive(Payload)]
struct Place {
    x: i64,
}

struct Plain;

async fn place(_: Place) -> Answer {
    Answer
}

async fn plain(_: Plain) -> Answer {
    Answer
}

async fn answer(_: Ask) -> Place {
    Place { x: 0 }
}

fn main() {
    let _ = Listener::new("one").on(place);
    let _ = Listener::new("two").on(plain);
    let _ = Listener::new("three").on(answer);
}
