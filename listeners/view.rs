//! The listener `view`: hides old messages from prompts, and shows them again. The log stays as
//! it is.

use pumphouse::listener::Clears;
use pumphouse::prelude::*;
use pumphouse::wire::core::{ContextCleared, ContextRestored};

/// Hides old messages of this thread from what comes next: the first one stays, and the newest.
/// The answer is `context-cleared`. Nothing is lost: `undo-clear` shows them again.
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

/// The listener `view`.
#[must_use]
pub fn view() -> Listener {
    Listener::new("view")
        .on(clear)
        .on(undo)
        .fold::<Clears>()
        .serial()
        .inline()
        .pure()
        .grant::<EmitCore>()
        .describe("Hides a thread's old messages from prompts, and shows them again.")
}

async fn clear(it: ClearContext) -> ContextCleared {
    ContextCleared { kept_messages: it.keep }
}

async fn undo(clears: Fold<Clears>, _: UndoClear) -> ContextRestored {
    ContextRestored { was_cleared: clears.count() > 0 }
}
