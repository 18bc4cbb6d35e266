//! The messages between the pump, a supervisor and a launcher, in JSON: the order to run a program,
//! the confinement for the launcher, and the report of how the program ended.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::sockets::Sockets;

/// An order to run a program.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct Order {
    /// The program's absolute path.
    pub(super) program: String,
    pub(super) arguments: Vec<String>,
    pub(super) folder: String,
    pub(super) environment: BTreeMap<String, String>,
    pub(super) input: String,
    /// Whether the program exchanges messages with the pump while it runs. The standard input and
    /// output of such a program are one socket.
    pub(super) is_server: bool,
    pub(super) seconds: u64,
    pub(super) confinement: Confinement,
}

/// The rights and the limits of a program.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(super) struct Confinement {
    /// The files and folders that the program may read and execute, besides those of the system.
    pub(super) read: Vec<String>,
    /// The files and folders that the program may also write.
    pub(super) write: Vec<String>,
    pub(super) sockets: Sockets,
    /// True if the program has all rights of the pump's user, but can't send signals to processes
    /// that it didn't begin.
    pub(super) is_free: bool,
    pub(super) memory: u64,
    pub(super) file: u64,
    pub(super) descriptors: u64,
    /// The process id of the supervisor. The launcher doesn't start the program if the launcher's
    /// parent is another process.
    pub(super) supervisor: i32,
}

/// The report of how a program ended.
#[derive(Debug, Default, Deserialize, Serialize)]
pub(super) struct Report {
    pub(super) code: Option<i32>,
    pub(super) signal: Option<i32>,
    pub(super) out_of_time: bool,
    /// The reason why the program wasn't run, or `None` if the program was run.
    pub(super) error: Option<String>,
}
