//! The rules of the engine, its simulator and the log, and of actions, tested from outside with the
//! listeners that come with the product.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout,
    reason = "a test may fail where it stands, and say what it skipped"
)]

extern crate pumphouse_listeners as pumphouse;

#[path = "../support/eventually.rs"]
mod eventually;
mod action;
mod damage;
mod engine;
mod sim;

use eventually::eventually;
use pumphouse::Pump;
use pumphouse::listener::Listener;
use pumphouse::listeners::{echo, staff};

/// The listeners that most servers have, without tools.
fn usual() -> Vec<Listener> {
    staff().into_iter().chain([echo::echo()]).collect()
}

/// Waits until a pump has handled all its messages.
#[track_caller]
fn settled(pump: &Pump) -> impl Future<Output = ()> {
    eventually(async || pump.log().open_entries().await.unwrap().is_empty())
}
