//! What is said of a thread's view: hide old messages, show them again.

use pumphouse::prelude::*;

/// Hides old messages of this thread from what comes next: the first one stays, and the newest;
/// so does what is still to be answered or to come. The answer is `context-cleared`. Nothing is
/// lost: `undo-clear` shows them again.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/core/v1")]
pub struct ClearContext {
    /// How many messages stay, the first one counted.
    #[payload(attribute, min = 1, example = "10")]
    pub keep: u64,
}

/// Takes the newest `clear-context` back that is in force. The answer is `context-restored`.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/core/v1")]
pub struct UndoClear;
