//! A choice of a few words, as an attribute and as an element.

use pumphouse::Payload;

/// A light at a crossing.
#[derive(Payload)]
#[payload(ns = "urn:shapes", rename = "light")]
pub(super) struct Root {
    #[payload(attribute)]
    pub(super) shown: Tint,
    /// What comes next.
    pub(super) next: Vec<Tint>,
}

/// What a light can show.
#[derive(Payload)]
pub(super) enum Tint {
    /// Stop.
    Red,
    DarkAmber,
    /// Go.
    Green,
}
