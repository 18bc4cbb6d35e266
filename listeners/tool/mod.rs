//! Tools: listeners that each do one thing.

use std::ffi::OsString;
use std::process::ExitCode;

mod text;
mod time;
pub mod web;

pub mod calculate;
pub mod command;
mod pdf;
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

/// Where this program was begun as a part of itself, by a listener that runs programs or reads
/// files of strangers: it is that part, and that is how it ended. A program whose `main` isn't
/// [`pumphouse::cli`] asks this before all else.
///
/// ```
/// use pumphouse::listeners::tool::begun;
///
/// assert!(begun(std::env::args_os()).is_none());
/// ```
#[must_use]
pub fn begun(arguments: impl IntoIterator<Item = OsString>) -> Option<ExitCode> {
    let all: Vec<OsString> = arguments.into_iter().collect();
    command::supervise::begun(all.clone()).or_else(|| pdf::begun(all))
}
