//! A type is `Live` only if it is declared live.

extern crate pumphouse_core as pumphouse;

use pumphouse::{Live, Payload};

/// A payload that goes through the log.
#[derive(Payload)]
#[payload(ns = "urn:test")]
struct Kept;

fn show<P: Live>(_: P) {}

fn main() {
    show(Kept);
}
