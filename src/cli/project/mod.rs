//! The verbs that need neither a log nor a running pump, but the project: its manifest, and the
//! program's own listeners.

pub(crate) mod init;
pub(crate) mod check;
pub(crate) mod describe;
pub(crate) mod models;
pub(crate) mod mcp;
pub(crate) mod test;
