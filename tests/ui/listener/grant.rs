//! A listener can be granted only types that are grants.

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

async fn answer(_: Ask) -> Answer {
    Answer
}

fn main() {
    let _ = Listener::new("one").on(answer).grant::<Ask>();
}
