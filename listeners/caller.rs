//! Finds the caller of a message: its sender, or the agent whose action it carries out. Also finds
//! the entry that led to a message, or to a thread.

use pumphouse::listener::TreeHistory;
use pumphouse::prelude::*;

use super::words::action::{Action, NAME};

/// The caller of a message. If the message is the call of an action, this is the sender of the
/// action; otherwise it is the sender of the message. `history` is the history of the message's
/// thread.
///
/// # Errors
/// Fails if the log can't be read.
pub(super) async fn caller(message: &Message, history: &History) -> Result<String, Fault> {
    if message.from() == NAME {
        let key = message.key();
        let place = key.as_deref().and_then(|it| it.rsplit('/').next()?.parse::<u64>().ok());
        let taken = match place.and_then(|it| it.checked_sub(1)) {
            Some(before) => history.read(before, 1).await?.into_iter().next(),
            None => None,
        };
        if let Some(taken) = taken.filter(Entry::is::<Action>) {
            return Ok(taken.from().to_owned());
        }
    }
    Ok(message.from().to_owned())
}

/// The entry that led to `entry`. For the call of an action, this is the action. For a step of a
/// workflow's run, this is the message that began the run. For any other entry, this is the entry's
/// cause.
pub(super) fn asker(entry: &Entry) -> Option<EntryId> {
    let key = entry.key().unwrap_or_default();
    let of_action = key.rsplit_once('/').filter(|_| entry.from() == NAME);
    if let Some((thread, seq)) =
        of_action.and_then(|(it, seq)| Some((it, seq.split('.').next()?.parse().ok()?)))
    {
        return Some(EntryId { thread: ThreadId::new(thread), seq });
    }
    let of_run = key.split_once('/').filter(|_| entry.is::<Action>());
    if let Some(seq) = of_run.and_then(|(run, _)| run.parse().ok()) {
        return Some(EntryId { thread: entry.thread().clone(), seq });
    }
    entry.cause().cloned()
}

/// The entry of another thread that led to the opening of a thread. `first` is the first entry of
/// the opened thread. None if there is no such entry, as for a session.
///
/// # Errors
/// Fails if the log can't be read.
pub(super) async fn opener(first: &Entry, tree: &TreeHistory) -> Result<Option<Entry>, Fault> {
    let above = asker(first).filter(|it| it.thread != *first.thread());
    let Some(EntryId { thread, seq }) = above else { return Ok(None) };
    let found = tree.read(&thread, seq.saturating_sub(1), 1).await?.into_iter().next();
    Ok(found.filter(|it| it.seq() == seq))
}
