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
pub async fn caller(message: &Message, history: &History) -> Result<String, Fault> {
    if message.from() == NAME {
        let action = message.key().and_then(|it| Some(action_of(&it)?.1));
        let taken = match action.and_then(|it| it.checked_sub(1)) {
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
    if let Some((thread, seq)) = action_of(&key).filter(|_| entry.from() == NAME) {
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

/// The action that the key of a call belongs to: the action's thread, and the number of its entry.
/// The key of a call for an item of a list has the item's number after that. None for other keys.
pub(super) fn action_of(key: &str) -> Option<(&str, u64)> {
    let (thread, number) = key.rsplit_once('/')?;
    Some((thread, number.split('.').next()?.parse().ok()?))
}
