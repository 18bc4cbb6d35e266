//! Builds a pump: plugins and factories become a plan, or all complaints at once.
//!
//! - `restart`: at a start, gives unfinished work back to its trees before they get new work.
//! - `door`: a way into a pump.
//! - `plan`: a pump without complaints, and how it starts.
//! - `factory`: makes listeners by name from settings.
//! - `complaints`: finds every mistake in what a builder was given.
//! - `builder`: collects plugins and builds the plan.
//! - `plugin`: what a builder takes.

pub(crate) mod restart;
pub(crate) mod door;
pub(crate) mod plan;
pub(crate) mod factory;
pub(crate) mod complaints;
pub(crate) mod builder;
mod plugin;
