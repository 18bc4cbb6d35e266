//! A handler takes at most eight contexts.

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

async fn answer(
    _: Message,
    _: Thread,
    _: Sender,
    _: History,
    _: Peers,
    _: Cancel,
    _: Clock,
    _: Random,
    _: Attempt,
    _: Ask,
) -> Answer {
    Answer
}

fn main() {
    let _ = Listener::new("one").on(answer);
}
