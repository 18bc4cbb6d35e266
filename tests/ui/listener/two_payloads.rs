//! A handler takes only one payload, because a message has only one.

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

async fn answer(_: Ask, _: Answer) {}

fn main() {
    let _ = Listener::new("one").on(answer);
}
