//! A grant is something that can be granted.

use pumphouse::prelude::*;

/// A question.
#[derive(Payload)]
#[payload(ns = "urn:test")]
struct Ask;

/// An answer.
#[derive(Payload)]
#[payload(ns = "urn:test")]
struct Answer;

async fn answer(_: Ask) -> Answer {
    Answer
}

fn main() {
    let _ = Listener::new("one").on(answer).grant::<Ask>();
}
