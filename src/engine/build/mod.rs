//! Builds a pump: turns plugins and factories into a plan, or reports all complaints at once.
//!
//! - `one_by_one`: at a start, handles messages alone that were under way whenever the process
//!   ended.
//! - `restart`: at a start, hands each tree its unfinished work before any new work.
//! - `door`: the trait of doors, which are ways into a pump.
//! - `plan`: a pump that passed all checks, and its start.
//! - `values`: values that a builder keeps for factories.
//! - `factory`: makes listeners by name from settings.
//! - `complaints`: checks the plugins and settings of a builder, and reports every mistake.
//! - `own_answers`: warns of serial listeners whose folds miss the listeners' own answers.
//! - `builder`: collects plugins and builds the plan.
//! - `plugin`: implements `Plugin` for listeners, logs, factories, functions and collections.

mod one_by_one;
pub(crate) mod restart;
pub(crate) mod door;
pub(crate) mod plan;
pub(crate) mod values;
pub(crate) mod factory;
pub(crate) mod complaints;
mod own_answers;
pub(crate) mod builder;
mod plugin;
