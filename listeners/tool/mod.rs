//! Tools: listeners that do one thing for whoever asks.

mod text;

pub mod calculate;
pub mod command;
pub mod files;
pub mod mcp;
pub mod shell;
