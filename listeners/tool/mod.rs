//! Tools: listeners that do one thing for whoever asks.

mod text;
mod time;
pub mod web;

pub mod calculate;
pub mod command;
pub mod fetch;
pub mod files;
pub mod git;
pub mod http;
pub mod keyvalue;
pub mod llm;
pub mod mcp;
pub mod recall;
pub mod shell;
pub mod skills;
pub mod sql;
pub mod system_monitor;
