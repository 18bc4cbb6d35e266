//! A pump's builder takes only plugins.

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
    let _ = pumphouse::builder().with("one");
    let _ = pumphouse::builder().with(answer);
}
