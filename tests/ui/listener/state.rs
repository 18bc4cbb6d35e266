//! `State<T>` must name the type of the state with which the listener was made.

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

#[derive(Clone)]
struct Pool;

async fn answer(_: State<Pool>, _: Ask) -> Answer {
    Answer
}

fn main() {
    let _ = Listener::with_state("right", Pool).on(answer);
    let _ = Listener::with_state("wrong", 7).on(answer);
    let _ = Listener::new("none").on(answer);
}
