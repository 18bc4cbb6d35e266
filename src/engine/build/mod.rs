//! Builds a pump: turns plugins and factories into a plan, or reports all complaints at once.
//!
//! - `restart`: at a start, gives unfinished work back to its trees before they get new work.
//! - `door`: the trait of doors, which are ways into a pump.
//! - `plan`: a pump that passed all checks, and its start.
//! - `factory`: makes listeners by name from settings.
//! - `complaints`: checks the plugins and settings of a builder, and reports every mistake.
//! - `builder`: collects plugins and builds the plan.
//! - `plugin`: the types that a builder takes.

pub(crate) mod restart;
pub(crate) mod door;
pub(crate) mod plan;
pub(crate) mod factory;
pub(crate) mod complaints;
pub(crate) mod builder;
mod plugin;
