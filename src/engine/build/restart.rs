//! At a start, hands each tree the entries that it left unfinished at the last stop. New pushes are
//! handled after that.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use crate::engine::build::one_by_one;
use crate::engine::common::inbox::Mail;
use crate::engine::common::lifecycle;
use crate::engine::common::shared::Shared;
use crate::engine::tree::event::Unfinished;
use crate::engine::worker::history::{came_after, sent_for};
use crate::id::{EntryId, ThreadId};
use crate::listener::Entry;
use crate::log;
use crate::log::{Log, Open};

/// Posts each unconsumed entry to the worker that owns the entry's tree. Then lets the workers
/// begin.
pub(crate) async fn give_back_unfinished(shared: Arc<Shared>) {
    let found = give_back_all(&shared).await;
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
    shared.state.ready.send_replace(Some(found.map(|_| ())));
}

async fn give_back_all(shared: &Shared) -> Result<usize, log::Error> {
    shared.counts.head(shared.log.head().await?);
    let open = shared.log.open_entries().await?;
    let count = open.len();
    let mut threads: BTreeMap<ThreadId, Vec<Unfinished>> = BTreeMap::new();
    // The last stop may have interrupted the handling of these entries. Parked and waiting entries
    // aren't among them: no handling of those was under way.
    let at_work = open.iter().filter(|it| it.waits.is_empty());
    let ids: HashSet<EntryId> = at_work.map(|it| it.entry.id.clone()).collect();
    for open in open {
        debug_assert!(
            open.consumed.len() < open.entry.receivers as usize,
            "an open entry has a receiver that hasn't consumed it"
        );
        let thread = open.entry.id.thread.clone();
        let sent = sent_before(shared, &open).await?;
        let since = came_since(shared, &open).await?;
        let asked = asked_by(&*shared.log, &open).await?;
        let last_emission = last_emission_before(shared, &open, &ids).await?;
        threads.entry(thread).or_default().push(Unfinished {
            open,
            sent,
            since,
            asked,
            last_emission,
            is_held: false,
        });
    }
    one_by_one::handle(shared, &mut threads).await?;
    for (thread, left) in threads {
        shared.workers.post(&thread, Mail::Resume(thread.clone(), left));
    }
    Ok(count)
}

/// Returns the entries that an unfinished message has caused so far, if a listener will handle the
/// message again. Returns none otherwise.
async fn sent_before(shared: &Shared, open: &Open) -> Result<Vec<Entry>, log::Error> {
    let find = |name: &str| Some(&shared.routes.listeners[shared.routes.find(name)?]);
    let mut started = open.started.iter().filter_map(|(name, _)| find(name));
    // The log doesn't record the starts of pure handlers, so a pure handler may have started.
    let pure = open.entry.to.as_deref().and_then(find).is_some_and(|it| it.traits.pure);
    let entry = Entry::kept(&open.entry);
    let again = pure || started.any(|it| it.is_idempotent(&entry));
    if !again {
        return Ok(Vec::new());
    }
    sent_for(shared, &entry).await
}

/// Returns the push that led to an entry, by following the entry's causes within its thread.
/// Returns None if there is no such push, or if a cause is missing or damaged.
pub(crate) async fn asked_by(log: &dyn Log, open: &Open) -> Result<Option<Entry>, log::Error> {
    let mut at = open.entry.clone();
    while !at.flags.contains(log::Flags::FROM_IDENTITY) {
        let Some(cause) = at.cause.clone().filter(|it| it.thread == at.id.thread) else {
            return Ok(None);
        };
        at = match log.entry(&cause).await {
            Ok(Some(found)) => found,
            // The pump starts despite damage in one thread, since other threads can continue.
            Ok(None) | Err(log::Error::Damaged { .. }) => return Ok(None),
            Err(error) => return Err(error),
        };
    }
    Ok(Some(Entry::kept(&at)))
}

/// Returns the number of the last emission after an unfinished entry that the entry's listener sent
/// before it began to handle the entry. So emissions that entries in `all` caused don't count.
/// Returns 0 if there is none, or if the listener doesn't take its queue.
async fn last_emission_before(
    shared: &Shared,
    open: &Open,
    all: &HashSet<EntryId>,
) -> Result<u64, log::Error> {
    let to = open.entry.to.as_deref().and_then(|it| shared.routes.find(it));
    let Some(listener) = to.map(|it| &shared.routes.listeners[it]).filter(|it| it.takes_queue)
    else {
        return Ok(0);
    };
    let is_before = |entry: &log::Entry| {
        entry.from == listener.name && entry.cause.as_ref().is_none_or(|cause| !all.contains(cause))
    };
    let emissions = came_after(shared, &Entry::kept(&open.entry), is_before).await?;
    Ok(emissions.last().map_or(0, Entry::seq))
}

/// Returns the later entries of an entry's thread, if the entry's listener may wait for one of
/// them. Returns none if the listener never waits, or if the entry itself waits.
async fn came_since(shared: &Shared, open: &Open) -> Result<Vec<Entry>, log::Error> {
    let entry = &open.entry;
    let to = entry.to.as_deref().and_then(|it| shared.routes.find(it));
    let waits = to.is_some_and(|it| shared.routes.listeners[it].wakes.is_some());
    if !waits || !open.waits.is_empty() {
        return Ok(Vec::new());
    }
    came_after(shared, &Entry::kept(entry), |_| true).await
}
