//! One message has one payload.

use pumphouse::prelude::*;

/// A question.
#[derive(Payload)]
#[payload(ns = "urn:test")]
struct Ask;

/// An answer.
#[derive(Payload)]
#[payload(ns = "urn:test")]
struct Answer;

async fn answer(_: Ask, _: Answer) {}

fn main() {
    let _ = Listener::new("one").on(answer);
}
