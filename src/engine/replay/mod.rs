//! Replays of a log, and the state of a tree at any entry.
//!
//! - `record`: reads from the log what came of each message.
//! - `replay_host`: answers a replayed handler's questions from the log.
//! - `rerun`: runs pure listeners again and compares their emissions with the log.
//! - `state`: folds, budget and waiting messages at an entry.

mod record;
mod replay_host;
pub(crate) mod rerun;
pub(crate) mod state;
