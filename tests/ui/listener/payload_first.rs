//! A handler takes its contexts first and its payload last.

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

async fn answer(_: Ask, _: Sender) -> Answer {
    Answer
}

fn main() {
    let _ = Listener::new("one").on(answer);
}
