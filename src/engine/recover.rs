//! What a stop left behind goes back to its trees, before anything new does.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::engine::life;
use crate::engine::run::{came_after, sent_for};
use crate::engine::shared::{Mail, Shared};
use crate::engine::tree::Left;
use crate::id::ThreadId;
use crate::listener::Entry;
use crate::log::{self, Open};

/// Reads what is not consumed, gives it to the workers, and lets them begin.
pub(crate) async fn recover(shared: Arc<Shared>) {
    let found = give_back(&shared).await;
    match &found {
        Ok(0) => {}
        Ok(count) => tracing::info!(count, "messages that the last stop left are taken up"),
        Err(error) => tracing::error!(%error, "the log can't be read"),
    }
    let begun = life::begin(&shared).await;
    let found = begun.and(found);
    for inbox in &shared.inboxes {
        inbox.post(Mail::Begin);
    }
    shared.ready.send_replace(Some(found.map(|_| ())));
}

async fn give_back(shared: &Shared) -> Result<usize, log::Error> {
    shared.counts.head(shared.log.head().await?);
    let open = shared.log.open_entries().await?;
    let count = open.len();
    let mut threads: BTreeMap<ThreadId, Vec<Left>> = BTreeMap::new();
    for open in open {
        let thread = open.entry.id.thread.clone();
        let sent = sent_before(shared, &open).await?;
        let since = came_since(shared, &open).await?;
        threads.entry(thread).or_default().push(Left { open, sent, since });
    }
    for (thread, left) in threads {
        shared.post(&thread, Mail::Recover(thread.clone(), left));
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
    let sent = sent_for(shared, &Entry::kept(&open.entry)).await;
    sent.map_err(|fault| log::Error::Io(fault.to_string().into()))
}

/// What came after an entry, for a listener that may wait for some of it.
async fn came_since(shared: &Shared, open: &Open) -> Result<Vec<Entry>, log::Error> {
    let entry = &open.entry;
    let to = entry.to.as_deref().and_then(|it| shared.routes.find(it));
    let waits = to.is_some_and(|it| shared.routes.listeners[it].wakes.is_some());
    if !waits || !open.waits.is_empty() {
        return Ok(Vec::new());
    }
    let came = came_after(shared, &Entry::kept(entry), |_| true).await;
    came.map_err(|fault| log::Error::Io(fault.to_string().into()))
}
