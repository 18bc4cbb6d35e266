//! The entries that handlers read from the log: their thread's history, causes, and earlier
//! emissions.

use crate::engine::common::shared::Shared;
use crate::engine::read_fault::unread;
use crate::id::{EntryId, ThreadId};
use crate::listener::{Entry, HandlerCall};
use crate::log;
use crate::log::{Log, Pages};
use crate::name::Name;
use crate::wire::core::{ThreadResult, ThreadSpawned};
use crate::wire::{Fault, Payload};

/// How many entries are read at a time at most.
const PAGE: usize = 1_024;

/// Returns entries of the thread of a handler's message: those after the number `after`, up to the
/// last entry that the handler may see.
pub(crate) async fn history(
    log: &dyn Log,
    call: &HandlerCall,
    after: u64,
    limit: usize,
) -> Result<Vec<Entry>, Fault> {
    if after >= call.as_of {
        return Ok(Vec::new());
    }
    let page = log.read(call.message().thread(), after, call.as_of, limit.min(PAGE)).await;
    let page = page.map_err(|it| unread(&it))?;
    Ok(page.iter().map(|it| Entry::kept(it)).collect())
}

/// Returns the cause of a handler's message, if the handler's listener may see it.
pub(crate) async fn cause(log: &dyn Log, call: &HandlerCall) -> Result<Option<Entry>, Fault> {
    let message = &call.message;
    let own = |thread: &ThreadId| {
        let woken = message.from() == call.listener() && !message.is_from_identity();
        woken && thread.tree_str() == message.thread().tree_str() || thread == message.thread()
    };
    let Some(id) = message.cause().filter(|it| own(&it.thread)) else { return Ok(None) };
    entry(log, id).await
}

/// Returns the message that the listener was handling when it sent a request, if the current
/// message is the answer to that request.
pub(crate) async fn asked(log: &dyn Log, call: &HandlerCall) -> Result<Option<Entry>, Fault> {
    let message = &call.message;
    let own = |it: &Entry| it.from() == call.listener() && !it.is_from_identity();
    let is_word = |name: &Name| message.is_from_core() && message.name() == name;
    let by = match message.reply_to() {
        Some(request) => match entry(log, request).await?.filter(own) {
            Some(request) => request.cause().cloned(),
            None => None,
        },
        // A `ThreadSpawned` is no reply if the listener itself opened the thread. Its cause is the
        // message that the listener was handling then.
        None if is_word(&ThreadSpawned::NAME) => message.cause().cloned(),
        None => None,
    };
    let Some(by) = by else { return Ok(None) };
    let asked = entry(log, &by).await?;
    // If the listener asked the listener `thread` to open the child, `asked` is this request. The
    // cause of the request is the message that the listener was handling.
    let is_request = |it: &Entry| own(it) && it.to().is_some_and(|to| to != call.listener());
    let request = asked.as_ref().filter(|it| is_word(&ThreadResult::NAME) && is_request(it));
    match request.and_then(|it| it.cause()) {
        Some(by) => entry(log, by).await,
        None => Ok(asked),
    }
}

/// Returns an entry, if the log has it.
async fn entry(log: &dyn Log, id: &EntryId) -> Result<Option<Entry>, Fault> {
    let found = log.entry(id).await.map_err(|error| unread(&error))?;
    Ok(found.map(|entry| Entry::kept(&entry)))
}

/// Returns the entries in the message's thread whose cause is this message, in order: emissions of
/// its handlers, and entries of the pump.
pub(crate) async fn sent_for(shared: &Shared, message: &Entry) -> Result<Vec<Entry>, log::Error> {
    came_after(shared, message, |it| it.cause.as_ref() == Some(message.id())).await
}

/// Returns the entries after a message in its thread that `is_wanted` accepts, in order.
pub(crate) async fn came_after(
    shared: &Shared,
    message: &Entry,
    is_wanted: impl Fn(&log::Entry) -> bool,
) -> Result<Vec<Entry>, log::Error> {
    let mut pages = Pages::of(&*shared.log, message.thread()).after(message.seq());
    let mut came = Vec::new();
    while let Some(page) = pages.next().await? {
        came.extend(page.iter().filter(|it| is_wanted(it)).map(|it| Entry::kept(it)));
    }
    Ok(came)
}
