//! The payloads of the listener `view`: requests to hide old messages, to show them again and to
//! read on in results, and the refusal of an attachment.

use pumphouse::prelude::*;

/// Hides old messages of this thread from later prompts. The first message, the newest and
/// unfinished work stay. Nothing is lost: `undo-clear` shows them again. The answer is
/// `context-cleared`.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/core/v1")]
pub struct ClearContext {
    /// How many messages stay, including the first.
    #[payload(attribute, min = 1, example = "10")]
    pub keep: u64,
}

/// Undoes the newest `clear-context` in force. The answer is `context-restored`.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/core/v1")]
pub struct UndoClear;

/// Reads more of an action's result that a prompt shows cut. The answer is `result-part`.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/core/v1")]
pub struct ReadResult {
    /// The number of the result's entry, as the prompt shows it.
    #[payload(attribute, min = 1, example = "12")]
    pub entry: u64,
    /// The first byte; default 0. Within a character, it means the character's first byte.
    #[payload(attribute, example = "32768")]
    pub from: Option<u64>,
    /// How many bytes at most; default 32,000.
    #[payload(attribute, min = 1, example = "32000")]
    pub bytes: Option<u64>,
}

/// A part of a result. If more follows, the last line says which part this is.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/core/v1")]
pub struct ResultPart {
    /// Its first byte.
    #[payload(attribute, example = "32768")]
    pub from: u64,
    /// The first byte after it.
    #[payload(attribute, example = "64768")]
    pub to: u64,
    /// How many bytes the result has.
    #[payload(attribute, example = "1048576")]
    pub size: u64,
    /// The part.
    #[payload(text, value, example = "and so on.")]
    pub text: String,
}

/// The agent has no such result.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/core/v1")]
pub struct NoResult {
    /// Why.
    #[payload(text, value, example = "entry 12 is no result of an action of yours")]
    pub why: String,
}

/// The attachment was refused, so no prompt shows it.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/core/v1")]
pub struct AttachmentRefused {
    /// Why.
    #[payload(text, value, example = "the attachment has no bytes")]
    pub why: String,
}
