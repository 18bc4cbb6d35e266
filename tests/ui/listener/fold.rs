//! A fold must implement `Apply`, which says what an entry changes.

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

#[derive(Clone, Debug, Default)]
struct Count(u64);

async fn answer(_: Fold<Count>, _: Ask) -> Answer {
    Answer
}

fn main() {
    let _ = Listener::new("one").fold::<Count>().on(answer);
}
