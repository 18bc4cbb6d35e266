//! Workers drive trees. A worker owns some trees, steps them in turn, and carries out their effects
//! once the log has their batch.
//!
//! - `usage`: how much work each tree took lately, and which trees are light.
//! - `window`: how many steps may be on their way in the lower lane at once.
//! - `run_queue`: which tree runs next.
//! - `log_lanes`: batches on their way to the log, in the priority lane and the lower lane.
//! - `timers`: deliveries that wait for a time or an entry.
//! - `tree_slot`: a tree in a worker's memory, with its queue.
//! - `handoff`: posts a handler's emissions, and wakes their workers when the handler yields.
//! - `hide_secrets`: hides the secrets of the organism in emissions.
//! - `outcome`: checks a handler's emissions against their schemas.
//! - `history`: reads a handler's history, the cause of its message, and its emissions.
//!
//! - `tree_history`: lists and reads other threads for handlers.
//! - `host`: the engine's side of handler arguments: emissions, live payloads, history.
//! - `load`: reads trees and folds from the log.
//! - `driver`: the worker's loop.
//! - `overtime`: ends handlers whose time is up, and counts those that can't be ended.
//! - `launch`: calls handlers.
//! - `wake`: starts to load trees and folds that aren't in memory, and takes them once they are
//!   loaded.
//! - `commit`: steps trees into batches, sends batches to the log, and carries out effects.
//!
//! Each module uses only the modules that stand above it in this list, and the modules of the
//! engine above `worker`.

mod usage;
mod window;
mod run_queue;
mod log_lanes;
mod timers;
mod tree_slot;
mod handoff;
mod hide_secrets;
pub(crate) mod outcome;
pub(crate) mod history;
pub(crate) mod tree_history;
mod host;
pub(crate) mod load;
pub(crate) mod driver;
mod overtime;
mod launch;
mod wake;
mod commit;
