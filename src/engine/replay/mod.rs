//! Replays a log, and computes the state of a tree at any entry.
//!
//! - `record`: reads the outcome of each message from the log.
//! - `replay_host`: serves the arguments of replayed handlers from the log.
//! - `rerun`: runs pure and recorded listeners again and compares their emissions with the log.
//! - `state`: computes folds, budget and waiting messages at an entry.

mod record;
mod replay_host;
pub(crate) mod rerun;
pub(crate) mod state;
