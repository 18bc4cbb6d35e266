//! What drives trees: a worker owns some of them, steps them in turn, and lets effects happen once
//! the log has their batch.
//!
//! - `usage`: how much work each tree took lately.
//! - `window`: how much work may be on its way to the log at once.
//! - `run_queue`: which tree runs next.
//! - `lanes`: batches on their way to the log, in two lanes.
//! - `timers`: deliveries that wait for a time.
//! - `slot`: what a worker keeps of a tree beside its state.
//! - `handoff`: emissions that are passed on once their handler yields.
//! - `outcome`: a handler's payloads are checked against their schemas.
//! - `history`: what handlers read of the log.
//! - `host`: what the arguments of a handler ask of the engine.
//! - `load`: trees and folds are read from the log.
//! - `driver`: the worker's loop.
//! - `launch`: handlers are called.
//! - `wake`: a thread's state and folds are loaded before a step.
//! - `commit`: steps become batches, and effects happen once the log has them.
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
