//! The type that a handler returns must be one that can be emitted.

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

async fn text(_: Ask) -> String {
    "an answer".to_owned()
}

async fn failure(_: Answer) -> Result<Answer, std::io::Error> {
    Ok(Answer)
}

fn main() {
    let _ = Listener::new("one").on(text).on(failure);
}
