//! The payloads of the listener `view`: to hide old messages, to show them again, and to read on in
//! results. A refused attachment has its payload here, too.

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

/// Reads on in the result of an action that a prompt showed cut. The answer is `result-part`.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/core/v1")]
pub struct ReadResult {
    /// The entry of the result, as the prompt says it.
    #[payload(attribute, min = 1, example = "12")]
    pub entry: u64,
    /// The first byte; 0 unless said. One within a character means that character's first.
    #[payload(attribute, example = "32768")]
    pub from: Option<u64>,
    /// How many bytes at the most; 32,000 unless said.
    #[payload(attribute, min = 1, example = "32000")]
    pub bytes: Option<u64>,
}

/// A part of a result. Its last line says which, where it isn't the result's end.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/core/v1")]
pub struct ResultPart {
    /// Its first byte.
    #[payload(attribute, example = "32768")]
    pub from: u64,
    /// The first byte behind it.
    #[payload(attribute, example = "64768")]
    pub to: u64,
    /// How many bytes the result has.
    #[payload(attribute, example = "1048576")]
    pub size: u64,
    /// The part.
    #[payload(text, value, example = "and so on.")]
    pub text: String,
}

/// There is no such result for the agent.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/core/v1")]
pub struct NoResult {
    /// Why.
    #[payload(text, value, example = "entry 12 is no result of an action of yours")]
    pub why: String,
}

/// No prompt shows the attachment that was sent.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/core/v1")]
pub struct AttachmentRefused {
    /// Why.
    #[payload(text, value, example = "the attachment has no bytes")]
    pub why: String,
}
