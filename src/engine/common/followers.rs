//! The threads that clients follow, and how their followers hear that a thread has grown.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use dashmap::DashMap;
use tokio::sync::{broadcast, watch};

use crate::id::{EntryId, ThreadId};
use crate::xml::Element;

/// A live payload, and where it is from.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Showing {
    /// The listener that shows it.
    pub from: Arc<str>,
    /// The message that it was handling.
    pub cause: EntryId,
    /// The payload.
    pub payload: Element,
}

/// The threads that somebody follows.
pub(crate) struct Followers {
    threads: DashMap<ThreadId, Channel>,
    count: AtomicUsize,
    lag: usize,
}

struct Channel {
    followers: usize,
    grown: watch::Sender<u64>,
    /// None until somebody wants to see live payloads: what waits for them has its room at once.
    live: Option<broadcast::Sender<Showing>>,
}

impl Followers {
    pub(crate) fn new(lag: usize) -> Followers {
        Followers { threads: DashMap::new(), count: AtomicUsize::new(0), lag }
    }

    /// Whether anybody follows anything.
    pub(crate) fn are_there(&self) -> bool {
        self.count.load(Ordering::Relaxed) > 0
    }

    /// Tells the followers of a thread that it has an entry more.
    pub(crate) fn grown(&self, thread: &ThreadId, seq: u64) {
        if let Some(channel) = self.threads.get(thread) {
            channel.grown.send_replace(seq);
        }
    }

    /// Shows the followers of a thread a live payload.
    pub(crate) fn live(&self, shown: Showing) {
        if let Some(channel) = self.threads.get(&shown.cause.thread) {
            // An error says that nobody listens at this moment.
            let _ = channel.live.as_ref().map(|it| it.send(shown));
        }
    }

    pub(crate) fn join(&self, thread: &ThreadId) -> watch::Receiver<u64> {
        self.count.fetch_add(1, Ordering::Relaxed);
        let mut channel = self.threads.entry(thread.clone()).or_insert_with(|| Channel {
            followers: 0,
            grown: watch::Sender::new(0),
            live: None,
        });
        channel.followers += 1;
        channel.grown.subscribe()
    }

    /// What is live in a thread that was joined.
    pub(crate) fn watch(&self, thread: &ThreadId) -> Option<broadcast::Receiver<Showing>> {
        let mut channel = self.threads.get_mut(thread)?;
        let lag = self.lag;
        Some(channel.live.get_or_insert_with(|| broadcast::Sender::new(lag)).subscribe())
    }

    pub(crate) fn leave(&self, thread: &ThreadId) {
        self.count.fetch_sub(1, Ordering::Relaxed);
        if let Some(mut channel) = self.threads.get_mut(thread) {
            channel.followers -= 1;
        }
        self.threads.remove_if(thread, |_, channel| channel.followers == 0);
    }
}
