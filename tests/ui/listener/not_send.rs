//! A handler's future must be `Send`, because it may move between threads while it waits.

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
    let held = std::rc::Rc::new(1);
    std::future::ready(()).await;
    drop(held);
    Answer
}

fn main() {
    let _ = Listener::new("one").on(answer);
}
