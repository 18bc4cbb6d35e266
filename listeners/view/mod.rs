//! The listener `view` hides old messages from prompts, and shows them again. It also returns parts
//! of results that prompts showed truncated, and takes attachments, which later prompts of the
//! thread show. Hidden messages stay in the log.

mod part;
mod pending;
mod pairs;
mod choose;
mod words;

use pumphouse::listener::Clears;
use pumphouse::prelude::*;
use pumphouse::wire::core::{Attachment, ContextCleared, ContextRestored};

use super::caller::caller;
use super::words::action::ActionResult;
use choose::{Request, choose};
pub use part::{READ_BYTES, part};
use pending::Pending;
pub use words::{AttachmentRefused, ClearContext, NoResult, ReadResult, ResultPart, UndoClear};

/// The listener `view`.
#[must_use]
pub fn view() -> Listener {
    Listener::new("view")
        .on(clear)
        .on(undo)
        .on(read_result)
        .on(attach)
        .fold::<Clears>()
        .fold::<Pending>()
        .serial()
        .reaction()
        .grant::<EmitCore>()
        .describe(
            "Hides a thread's old messages from prompts, shows them again, reads on in results \
             that prompts showed cut, and takes attachments for the next prompt.",
        )
}

async fn clear(
    message: Message,
    view: View,
    clears: Fold<Clears>,
    pending: Fold<Pending>,
    all: Capabilities,
    clear: ClearContext,
) -> Result<ContextCleared, Fault> {
    let mut before = view.all().await?;
    before.retain(|it| it.seq() < message.seq());
    let hidden = clears.messages();
    Ok(choose(&Request { from: message.from(), keep: clear.keep, hidden }, &before, &pending, &all))
}

async fn undo(clears: Fold<Clears>, _: UndoClear) -> ContextRestored {
    ContextRestored { was_cleared: clears.count() > 0 }
}

async fn read_result(
    message: Message,
    history: History,
    read: ReadResult,
) -> Result<Result<ResultPart, NoResult>, Fault> {
    let reader = caller(&message, &history).await?;
    let result = history.read(read.entry.saturating_sub(1), 1).await?.pop();
    let result = result.filter(|of| of.seq() == read.entry && of.to() == Some(&reader));
    let Some(result) = result.and_then(|of| of.decode_if::<ActionResult>()) else {
        let why = format!("entry {} is no result of an action of yours", read.entry);
        return Ok(Err(NoResult { why }));
    };
    let text = result.said();
    let from = usize::try_from(read.from.unwrap_or(0)).unwrap_or(usize::MAX);
    let bytes = read.bytes.map_or(READ_BYTES, |it| usize::try_from(it).unwrap_or(usize::MAX));
    let (from, to) = part(&text, from, bytes);
    let mut part = text[from..to].to_owned();
    if to < text.len() {
        part += &format!("\n[Bytes {from} to {to} of {}; the rest is from {to}.]", text.len());
    }
    let (from, to, size) = (from as u64, to as u64, text.len() as u64);
    Ok(Ok(ResultPart { from, to, size, text: part }))
}

/// Checks an attachment. There is nothing to store: the message itself is the thread's entry that
/// later prompts show.
async fn attach(attachment: Attachment) -> Result<(), AttachmentRefused> {
    if attachment.content.is_empty() {
        return Err(AttachmentRefused { why: "the attachment has no bytes".to_owned() });
    }
    if !attachment.is_intact() {
        let why = "the digest is not that of the bytes; send the attachment again, with the BLAKE3 \
                   digest of its bytes in hexadecimal, or without a digest";
        return Err(AttachmentRefused { why: why.to_owned() });
    }
    Ok(())
}
