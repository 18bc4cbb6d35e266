//! Building a pump: plugins and factories in; a plan, or all complaints at once, out.
//!
//! - `recover`: after a start, unfinished work goes back to its trees before new work does.
//! - `door`: a way into a pump.
//! - `plan`: a pump without complaints, and how it starts.
//! - `factory`: makes listeners by name from settings.
//! - `complaints`: all that is wrong with a pump that is to be built.
//! - `builder`: collects plugins and builds the plan.
//! - `plugin`: what a builder takes.

mod recover;
pub(crate) mod door;
pub(crate) mod plan;
pub(crate) mod factory;
pub(crate) mod complaints;
pub(crate) mod builder;
mod plugin;
