//! A handler of any reply takes it as an element.

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

async fn answer(_: Answer) {}

fn main() {
    let _ = Listener::new("one").on_any_reply(answer);
}
