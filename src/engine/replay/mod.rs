//! What a log comes to once more: replays, and states at any place of it.

mod record;
mod replay_host;
pub(crate) mod rerun;
pub(crate) mod state;
