//! Tools: listeners that each do one thing for agents and other listeners, such as running a
//! program or reading a web page.

extern crate self as pumphouse;

// The tools name their neighbours by the paths that every user of `pumphouse` has.
use pumphouse_client as client;
use pumphouse_core::{Fault, engine, listener, wire};
use pumphouse_ground::{
    Name, bounded_yaml, clock, id, limits, name, regular_file, schema, secret, xml,
};
use pumphouse_listeners::prelude;
use pumphouse_log as log;
use pumphouse_model as model;

/// The other listeners that come with the product.
#[doc(hidden)]
pub mod listeners {
    pub use crate as tool;
    pub use pumphouse_listeners::*;
}

use std::ffi::OsString;
use std::process::ExitCode;

mod text;
mod time;
mod path_tree;
mod secret_file;
mod database_files;
mod given_context;
pub mod listener_files;
pub mod web;

pub mod agent_context;
pub mod alerts;
pub mod organism_state;
pub mod calculate;
pub mod command;
mod pdf;
pub mod fetch;
pub mod files;
pub mod documents;
pub mod environment;
pub mod git;
pub mod http;
pub mod keyvalue;
pub mod llm;
pub mod mcp;
pub mod other_organism;
pub mod recall;
pub mod service;
pub mod shell;
pub mod skills;
pub mod sql;
pub mod subscribe;
pub mod system_monitor;

pub use command::orphans::{Orphans, adopt_orphans};

/// Runs this process as a helper if it was started as one, and returns the exit code. Otherwise
/// returns `None`.
///
/// Some listeners start this executable again, as a helper process that runs a program, or reads a
/// PDF or a database. So a program whose `main` isn't `pumphouse::cli()` must call this function
/// before everything else.
///
/// ```
/// # extern crate pumphouse_tools as pumphouse;
/// use pumphouse::listeners::tool::child_process;
///
/// assert!(child_process(std::env::args_os()).is_none());
/// ```
#[must_use]
pub fn child_process(arguments: impl IntoIterator<Item = OsString>) -> Option<ExitCode> {
    let all: Vec<OsString> = arguments.into_iter().collect();
    command::supervise::child_process(all.clone())
        .or_else(|| pdf::child_process(all.clone()))
        .or_else(|| sql::process::child_process(all))
}
