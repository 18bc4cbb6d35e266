//! The verbs that read a log: threads and their messages, how they came about, and the log as a
//! whole.

pub(crate) mod threads;
pub(crate) mod tree;
pub(crate) mod tail;
pub(crate) mod show;
pub(crate) mod why;
pub(crate) mod prompt;
pub(crate) mod state;
pub(crate) mod replay;
pub(crate) mod export;
pub(crate) mod verify;
pub(crate) mod backup;
