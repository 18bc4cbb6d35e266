//! The messages between the pump, a supervisor and a launcher, in JSON: the order to run a program,
//! the confinement for the launcher, and the report of how the program ended.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// What to run.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct Order {
    /// Its path from the root of the system.
    pub(super) program: String,
    pub(super) arguments: Vec<String>,
    pub(super) folder: String,
    pub(super) environment: BTreeMap<String, String>,
    pub(super) input: String,
    /// Whether it speaks with the pump while it runs: then its input is the socket that is its
    /// output.
    pub(super) is_server: bool,
    pub(super) seconds: u64,
    pub(super) confinement: Confinement,
}

/// What a program may see and take.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(super) struct Confinement {
    /// What it may read and execute, beside the system's folders.
    pub(super) read: Vec<String>,
    /// What it may write as well.
    pub(super) write: Vec<String>,
    pub(super) network: bool,
    /// Whether it may see whatever the pump's user may, and use the network.
    pub(super) is_free: bool,
    pub(super) memory: u64,
    pub(super) file: u64,
    pub(super) descriptors: u64,
    /// The supervisor, without which nothing runs.
    pub(super) supervisor: i32,
}

/// How it ended.
#[derive(Debug, Default, Deserialize, Serialize)]
pub(super) struct Report {
    pub(super) code: Option<i32>,
    pub(super) signal: Option<i32>,
    pub(super) out_of_time: bool,
    /// Why it wasn't begun.
    pub(super) error: Option<String>,
}
