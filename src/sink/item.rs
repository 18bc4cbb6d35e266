//! The items of a sink, and the queue of items that wait to be sent.

use std::collections::VecDeque;
use std::sync::Arc;

use serde_json::{Value, json};

use crate::engine::{LiveQueue, Showing};
use crate::entry_json;
use crate::id::ThreadId;
use crate::log::{Entry, bytes_of};
use crate::model::{DroppedEvents, EventQueue, ProviderEvent};

/// An item that a sink gets.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Item {
    /// An entry of the log.
    Entry(Arc<Entry>),
    /// A live payload, which the log doesn't have.
    Live(Showing),
    /// Live payloads were dropped because the sink didn't take them in time.
    Dropped {
        /// The thread of the payloads. None for the payloads of all threads without a count of
        /// their own.
        thread: Option<ThreadId>,
        /// How many payloads were dropped.
        count: u64,
    },
    /// An event of a provider's stream.
    Raw(ProviderEvent),
    /// Events of providers were dropped because the sink didn't take them in time.
    RawDropped {
        /// The conversation of the events, if their prompts had one.
        conversation: Option<Arc<str>>,
        /// How many events were dropped.
        count: u64,
    },
    /// Entries were skipped because they were written while the sink was away. The value is the
    /// number of these entries.
    Skipped(u64),
}

impl Item {
    /// The thread of the item. For events of a provider, the conversation.
    #[must_use]
    pub fn thread(&self) -> Option<&str> {
        match self {
            Item::Entry(entry) => Some(entry.id.thread.as_str()),
            Item::Live(shown) => Some(shown.cause.thread.as_str()),
            Item::Dropped { thread, .. } => thread.as_ref().map(ThreadId::as_str),
            Item::Raw(event) => event.conversation.as_deref(),
            Item::RawDropped { conversation, .. } => conversation.as_deref(),
            Item::Skipped(_) => None,
        }
    }

    /// How many bytes the item has that can be many: those of its payload, and of its `<meta>`.
    pub(super) fn bytes(&self) -> usize {
        match self {
            Item::Entry(it) => bytes_of(it),
            Item::Live(it) => it.payload.canonical().len(),
            Item::Raw(it) => it.data.len(),
            Item::Dropped { .. } | Item::RawDropped { .. } | Item::Skipped(_) => 0,
        }
    }

    /// The item as a JSON object. An entry has the form of a line that
    /// `pumphouse export --format jsonl` writes.
    #[must_use]
    pub fn to_json(&self) -> Value {
        match self {
            Item::Entry(it) => entry_json::json(it),
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
            Item::Raw(event) => json!({
                "raw": true,
                "thread": event.conversation.as_deref(),
                "model": &*event.model,
                "data": &*event.data,
            }),
            Item::RawDropped { conversation, count } => {
                json!({ "raw": true, "dropped": count, "thread": conversation.as_deref() })
            }
            Item::Skipped(count) => json!({ "skipped": count }),
        }
    }
}

/// The items that wait for a sink. At most a page of entries waits here. Live payloads and events
/// of providers have bounds of their own.
pub(super) struct Waiting {
    pub(super) items: VecDeque<Item>,
    queue: Arc<LiveQueue>,
    events: Option<Arc<EventQueue>>,
    takes_entries: bool,
}

impl Waiting {
    pub(super) fn new(
        queue: Arc<LiveQueue>,
        events: Option<Arc<EventQueue>>,
        takes_entries: bool,
    ) -> Waiting {
        Waiting { items: VecDeque::new(), queue, events, takes_entries }
    }

    /// Queues the next entry, behind the live payloads that were shown before it was written. Does
    /// nothing for a sink without entries.
    pub(super) fn take(&mut self, entry: Arc<Entry>) {
        if self.takes_entries {
            self.take_shown(entry.position.saturating_sub(1));
            self.items.push_back(Item::Entry(entry));
        }
    }

    /// Queues the live payloads that were shown before the log grew beyond a position, and the
    /// events of providers that have come so far.
    pub(super) fn take_live(&mut self, position: u64) {
        self.take_shown(position);
        let (dropped, events) = self.events.as_ref().map(|it| it.take()).unwrap_or_default();
        self.drop_events(dropped);
        self.items.extend(events.into_iter().map(Item::Raw));
    }

    fn take_shown(&mut self, position: u64) {
        let (dropped, shown) = self.queue.take(position);
        let by_thread = dropped.by_thread.into_iter();
        let by_thread = by_thread.map(|(it, count)| Item::Dropped { thread: Some(it), count });
        self.items.extend(by_thread);
        if dropped.of_others > 0 {
            self.items.push_back(Item::Dropped { thread: None, count: dropped.of_others });
        }
        self.items.extend(shown.into_iter().map(Item::Live));
    }

    fn drop_events(&mut self, dropped: DroppedEvents) {
        let dropped = dropped.into_iter();
        let items = dropped.map(|(conversation, count)| Item::RawDropped { conversation, count });
        self.items.extend(items);
    }

    /// Drops all items that wait. Then queues how many events of providers were dropped, and how
    /// many entries are skipped. Dropped live payloads aren't counted here.
    pub(super) fn skip(&mut self, entries: u64) {
        let (mut dropped, events) = self.events.as_ref().map(|it| it.take()).unwrap_or_default();
        let waiting = self.items.drain(..).filter_map(|item| match item {
            Item::Raw(event) => Some((event.conversation, 1)),
            Item::RawDropped { conversation, count } => Some((conversation, count)),
            _ => None,
        });
        for (conversation, count) in
            waiting.chain(events.into_iter().map(|it| (it.conversation, 1)))
        {
            *dropped.entry(conversation).or_default() += count;
        }
        self.drop_events(dropped);
        if entries > 0 && self.takes_entries {
            self.items.push_back(Item::Skipped(entries));
        }
    }

    /// Drops the live payloads that wait, because they were sent already or would come too late.
    pub(super) fn forget_live(&mut self) {
        self.items.retain(|it| !matches!(it, Item::Live(_)));
    }

    /// Waits until the log has grown, or a live payload or an event of a provider has come.
    pub(super) async fn grown(&self) {
        let Some(events) = &self.events else { return self.queue.grown().await };
        tokio::select! {
            () = self.queue.grown() => {}
            () = events.grown() => {}
        }
    }
}
