//! Tools: listeners that do one thing for whoever asks.

pub mod calculate;
pub mod files;
