//! A handler must take a payload, and must take it by value.

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

async fn nothing() -> Answer {
    Answer
}

async fn context_only(_: Sender) -> Answer {
    Answer
}

async fn borrowed(_: &Ask) -> Answer {
    Answer
}

fn main() {
    let _ = Listener::new("one").on(nothing);
    let _ = Listener::new("two").on(context_only);
    let _ = Listener::new("three").on(borrowed);
}
