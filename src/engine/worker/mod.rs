//! What drives trees: a worker owns some of them, steps them in turn, and lets effects happen once
//! the log has their batch.
//!
//! Each module uses only those that stand above it here, the rooms above this one, and nothing
//! else of the engine.

mod usage;
mod window;
mod run_queue;
mod lanes;
mod timers;
mod slot;
mod handoff;
pub(crate) mod outcome;
pub(crate) mod history;
pub(crate) mod tree_history;
mod host;
pub(crate) mod load;
pub(crate) mod driver;
mod launch;
mod wake;
mod commit;
