//! What a sink gets, and what waits for it.

use std::collections::VecDeque;
use std::sync::Arc;

use serde_json::{Value, json};

use crate::audit;
use crate::engine::{LiveQueue, Showing};
use crate::id::ThreadId;
use crate::log::Entry;

/// What a sink gets.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Item {
    /// An entry of the log.
    Entry(Arc<Entry>),
    /// A live payload, which the log doesn't have.
    Live(Showing),
    /// So many live payloads were dropped, since the sink didn't take them in time.
    Dropped {
        /// The thread that they were shown in; none where they are of several threads.
        thread: Option<ThreadId>,
        /// How many.
        count: u64,
    },
    /// So many entries were left out, which were written while the sink was away.
    Skipped(u64),
}

impl Item {
    /// The thread that it is of.
    #[must_use]
    pub fn thread(&self) -> Option<&ThreadId> {
        match self {
            Item::Entry(it) => Some(&it.id.thread),
            Item::Live(it) => Some(&it.cause.thread),
            Item::Dropped { thread, .. } => thread.as_ref(),
            Item::Skipped(_) => None,
        }
    }

    /// It as an object; an entry as `pumphouse export` has it.
    #[must_use]
    pub fn to_json(&self) -> Value {
        match self {
            Item::Entry(it) => audit::json(it),
            Item::Live(it) => json!({
                "live": true,
                "thread": it.cause.thread.as_str(),
                "cause": it.cause.to_string(),
                "from": &*it.from,
                "namespace": it.payload.namespace(),
                "name": it.payload.local(),
                "payload": String::from_utf8_lossy(&it.payload.canonical()),
            }),
            Item::Dropped { thread, count } => {
                json!({ "dropped": count, "thread": thread.as_ref().map(ThreadId::as_str) })
            }
            Item::Skipped(count) => json!({ "skipped": count }),
        }
    }
}

/// What waits for a sink: at most a page of entries, and live payloads within their bound.
pub(super) struct Waiting {
    pub(super) items: VecDeque<Item>,
    queue: Arc<LiveQueue>,
}

impl Waiting {
    pub(super) fn new(queue: Arc<LiveQueue>) -> Waiting {
        Waiting { items: VecDeque::new(), queue }
    }

    /// Takes in the next entry, behind the live payloads that were shown before it was written.
    pub(super) fn take(&mut self, entry: Arc<Entry>) {
        self.take_live(entry.position.saturating_sub(1));
        self.items.push_back(Item::Entry(entry));
    }

    /// Takes in the live payloads that were shown before the log went beyond a position.
    pub(super) fn take_live(&mut self, position: u64) {
        let (dropped, shown) = self.queue.take(position);
        let by_thread = dropped.by_thread.into_iter();
        let by_thread = by_thread.map(|(it, count)| Item::Dropped { thread: Some(it), count });
        self.items.extend(by_thread);
        if dropped.of_others > 0 {
            self.items.push_back(Item::Dropped { thread: None, count: dropped.of_others });
        }
        self.items.extend(shown.into_iter().map(Item::Live));
    }

    /// So many entries are left out, and with them all that waits.
    pub(super) fn skip(&mut self, entries: u64) {
        self.items.clear();
        if entries > 0 {
            self.items.push_back(Item::Skipped(entries));
        }
    }

    /// Leaves live payloads out that were sent or are late.
    pub(super) fn forget_live(&mut self) {
        self.items.retain(|it| !matches!(it, Item::Live(_)));
    }

    /// Waits until there is more.
    pub(super) async fn grown(&self) {
        self.queue.grown().await;
    }
}
