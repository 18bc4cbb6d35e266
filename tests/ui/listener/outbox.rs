//! An outbox must be of a type that can be emitted.

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

async fn answer(_: Outbox<String>, _: Ask) -> Answer {
    Answer
}

fn main() {
    let _ = Listener::new("one").on(answer);
}
