//! Replays a log, and computes the state of a tree at any entry.
//!
//! - `record`: reads from the log what each message led to.
//! - `replay_host`: serves the arguments of replayed handlers from the log.
//! - `rerun`: runs pure and recorded listeners again and compares their emissions with the log.
//! - `state`: folds, budget and waiting messages at an entry.

mod record;
mod replay_host;
pub(crate) mod rerun;
pub(crate) mod state;
