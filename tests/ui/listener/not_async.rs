//! A handler must be an async function.

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

fn answer(_: Ask) -> Answer {
    Answer
}

fn main() {
    let _ = Listener::new("one").on(answer);
}
