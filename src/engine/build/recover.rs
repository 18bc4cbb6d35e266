//! What a stop left behind goes back to its trees, before anything new does.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use crate::engine::common::inbox::Mail;
use crate::engine::common::lifecycle;
use crate::engine::common::shared::Shared;
use crate::engine::tree::event::Left;
use crate::engine::worker::history::{came_after, sent_for};
use crate::id::{EntryId, ThreadId};
use crate::listener::Entry;
use crate::log;
use crate::log::Open;

/// Reads what is not consumed, gives it to the workers, and lets them begin.
pub(crate) async fn recover(shared: Arc<Shared>) {
    let found = give_back(&shared).await;
    match &found {
        Ok(0) => {}
        Ok(count) => tracing::info!(count, "messages that the last stop left are taken up"),
        Err(error) => tracing::error!(%error, "the log can't be read"),
    }
    let begun = lifecycle::begin(&shared).await;
    let found = begun.and(found);
    for inbox in &shared.workers.inboxes {
        inbox.post(Mail::Begin);
    }
    shared.running.ready.send_replace(Some(found.map(|_| ())));
}

async fn give_back(shared: &Shared) -> Result<usize, log::Error> {
    shared.counts.head(shared.log.head().await?);
    let open = shared.log.open_entries().await?;
    let count = open.len();
    let mut threads: BTreeMap<ThreadId, Vec<Left>> = BTreeMap::new();
    // What a listener parked, it had handled before.
    let at_work = open.iter().filter(|it| it.waits.is_empty());
    let ids: HashSet<EntryId> = at_work.map(|it| it.entry.id.clone()).collect();
    let hears_quiet = threads_with_parked(shared, &open);
    for open in open {
        let thread = open.entry.id.thread.clone();
        let sent = sent_before(shared, &open).await?;
        let since = came_since(shared, &open).await?;
        let asked = asked_by(shared, &open, hears_quiet.contains(&thread)).await?;
        let said = said_before(shared, &open, &ids).await?;
        threads.entry(thread).or_default().push(Left { open, sent, since, asked, said });
    }
    for (thread, left) in threads {
        shared.workers.post(&thread, Mail::Recover(thread.clone(), left));
    }
    Ok(count)
}

/// What an attempt that was cut off had sent, for listeners that will try again.
async fn sent_before(shared: &Shared, open: &Open) -> Result<Vec<Entry>, log::Error> {
    let traits = |name: &str| Some(shared.routes.listeners[shared.routes.find(name)?].traits);
    let mut started = open.started.iter().filter_map(|(name, _)| traits(name));
    // The start of what is pure isn't noted, so nobody knows whether there was one.
    let pure = open.entry.to.as_deref().and_then(traits).is_some_and(|it| it.pure);
    let again = pure || started.any(|it| it.idempotent);
    if !again {
        return Ok(Vec::new());
    }
    sent_for(shared, &Entry::kept(&open.entry)).await
}

/// The threads in which a listener parks messages, or may park what it has in hand.
fn threads_with_parked(shared: &Shared, open: &[Open]) -> HashSet<ThreadId> {
    let parks =
        |name: &str| shared.routes.find(name).is_some_and(|it| shared.routes.listeners[it].parks);
    let may_park = |it: &&Open| {
        let started = it.started.iter().map(|(name, _)| &**name);
        it.entry.to.as_deref().into_iter().chain(started).any(parks)
    };
    open.iter().filter(may_park).map(|it| it.entry.id.thread.clone()).collect()
}

/// The push that an entry came of: it stands at the end of the entry's causes. A listener may
/// answer it, and parked work in the thread is quiet once nothing of its pushes is under way.
async fn asked_by(
    shared: &Shared,
    open: &Open,
    hears_quiet: bool,
) -> Result<Option<Entry>, log::Error> {
    let to = open.entry.to.as_deref().and_then(|it| shared.routes.find(it));
    let ends_itself = to.is_some_and(|it| shared.routes.listeners[it].ends_itself);
    if !ends_itself && !hears_quiet {
        return Ok(None);
    }
    let mut at = open.entry.clone();
    while !at.flags.contains(log::Flags::FROM_IDENTITY) {
        let Some(cause) = at.cause.clone().filter(|it| it.thread == at.id.thread) else {
            return Ok(None);
        };
        let Some(found) = shared.log.entry(&cause).await? else { return Ok(None) };
        at = found;
    }
    Ok(Some(Entry::kept(&at)))
}

/// What the listener of an entry had said last before it came to it, where it takes its queue:
/// nothing that came of what is still open.
async fn said_before(
    shared: &Shared,
    open: &Open,
    all: &HashSet<EntryId>,
) -> Result<u64, log::Error> {
    let to = open.entry.to.as_deref().and_then(|it| shared.routes.find(it));
    let Some(listener) = to.map(|it| &shared.routes.listeners[it]).filter(|it| it.takes_queue)
    else {
        return Ok(0);
    };
    let is_before = |it: &log::Entry| {
        it.from == listener.name && it.cause.as_ref().is_none_or(|cause| !all.contains(cause))
    };
    let said = came_after(shared, &Entry::kept(&open.entry), is_before).await?;
    Ok(said.last().map_or(0, Entry::seq))
}

/// What came after an entry, for a listener that may wait for some of it.
async fn came_since(shared: &Shared, open: &Open) -> Result<Vec<Entry>, log::Error> {
    let entry = &open.entry;
    let to = entry.to.as_deref().and_then(|it| shared.routes.find(it));
    let waits = to.is_some_and(|it| shared.routes.listeners[it].wakes.is_some());
    if !waits || !open.waits.is_empty() {
        return Ok(Vec::new());
    }
    came_after(shared, &Entry::kept(entry), |_| true).await
}
