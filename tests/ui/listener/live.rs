//! An outbox sends a payload live only if its type is declared live.

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

async fn answer(out: Outbox<Answer>, _: Ask) {
    out.live(&Answer);
}

fn main() {
    let _ = Listener::new("one").on(answer);
}
