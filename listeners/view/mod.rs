//! The listener `view`: hides old messages from prompts, and shows them again. The log stays as
//! it is.

mod choose;
mod pending;
mod words;

use pumphouse::listener::{Clears, Record};
use pumphouse::prelude::*;
use pumphouse::wire::core::{ContextCleared, ContextRestored};

use choose::{Request, choose};
use pending::Pending;
pub use words::{ClearContext, UndoClear};

/// The listener `view`.
#[must_use]
pub fn view() -> Listener {
    Listener::new("view")
        .on(clear)
        .on(undo)
        .fold::<Clears>()
        .fold::<Pending>()
        .serial()
        .inline()
        .pure()
        .grant::<EmitCore>()
        .describe("Hides a thread's old messages from prompts, and shows them again.")
}

async fn clear(
    message: Message,
    view: View,
    clears: Fold<Clears>,
    pending: Fold<Pending>,
    all: Capabilities,
    record: Record,
    it: ClearContext,
) -> Result<ContextCleared, Fault> {
    // A replay of what 0.1.0 said counts entries, as that did.
    let then = record.0.iter().flatten().find_map(Entry::decode_if::<ContextCleared>);
    if let Some(then) = then.filter(|it| it.upto.is_none()) {
        return Ok(ContextCleared { kept_messages: it.keep, ..then });
    }
    let mut before = view.all().await?;
    before.retain(|it| it.seq() < message.seq());
    let hidden = clears.messages();
    Ok(choose(&Request { from: message.from(), keep: it.keep, hidden }, &before, &pending, &all))
}

async fn undo(clears: Fold<Clears>, _: UndoClear) -> ContextRestored {
    ContextRestored { was_cleared: clears.count() > 0 }
}
