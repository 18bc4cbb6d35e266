//! The payloads of forks, and the handler of `fork-thread`. A fork is a thread that continues
//! another thread after one of its entries. If a fork begins with `fork-thread`, the log has the
//! sender and the reason of the fork.

use pumphouse::prelude::*;

/// Forks a thread and records why. Push it to the last entry that both threads share, as in
/// `sess-k3v9x2ma/7`. The answer is `thread-forked`. Any other payload pushed there forks, too.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/core/v1")]
pub struct ForkThread {
    /// Why.
    #[payload(attribute, example = "the other way")]
    pub reason: Option<String>,
}

/// A fork was made: a thread that goes on from an entry of another.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/core/v1", reserved)]
pub struct ThreadForked {
    /// The new thread.
    #[payload(attribute, example = "sess-k3v9x2ma")]
    pub thread: String,
    /// The last entry that the two share.
    #[payload(attribute, example = "sess-a7b8c9d0/7")]
    pub after: String,
    /// The identity or listener that made the fork.
    #[payload(attribute, example = "ada")]
    pub by: String,
    /// Why.
    #[payload(attribute)]
    pub reason: Option<String>,
}

/// Nothing was forked.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/core/v1", reserved)]
pub struct ForkRefused {
    /// Why not, and how to correct it.
    #[payload(attribute, example = "this begins no fork: push it into THREAD/SEQ")]
    pub message: String,
}

pub(super) async fn fork(
    message: Message,
    history: History,
    fork: ForkThread,
) -> Result<Result<ThreadForked, ForkRefused>, Fault> {
    let thread = message.thread();
    let before = match message.seq().checked_sub(2) {
        Some(after) => history.read(after, 1).await?,
        None => Vec::new(),
    };
    // The entry before the first entry of a fork belongs to another thread.
    let Some(last) = before.first().filter(|it| it.thread() != thread) else {
        let message = "this begins no fork: push it into THREAD/SEQ".to_owned();
        return Ok(Err(ForkRefused { message }));
    };
    Ok(Ok(ThreadForked {
        thread: thread.to_string(),
        after: last.id().to_string(),
        by: message.from().to_owned(),
        reason: fork.reason,
    }))
}
