//! The threads that clients follow, and the channels that tell followers when a thread has grown.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use dashmap::DashMap;
use tokio::sync::{broadcast, watch};

use crate::engine::common::live_queue::{LiveQueue, Showing};
use crate::id::ThreadId;

/// The followers of single threads, and the followers of the whole log.
pub(crate) struct Followers {
    threads: DashMap<ThreadId, Channel>,
    count: AtomicUsize,
    lag: usize,
    queues: RwLock<Vec<Arc<LiveQueue>>>,
}

struct Channel {
    followers: usize,
    grown: watch::Sender<u64>,
    /// None until a follower wants live payloads, since a channel allocates its whole buffer at
    /// once.
    live: Option<broadcast::Sender<Showing>>,
}

impl Followers {
    pub(crate) fn new(lag: usize) -> Followers {
        let queues = RwLock::default();
        Followers { threads: DashMap::new(), count: AtomicUsize::new(0), lag, queues }
    }

    /// Adds a follower of the whole log, which stays as long as the pump. The returned queue is
    /// told when the log has grown, and gets live payloads if the follower wants them.
    pub(crate) fn join_all(&self, wants_live: bool) -> Arc<LiveQueue> {
        let queue = Arc::new(LiveQueue::new(if wants_live { self.lag } else { 0 }));
        self.queues.write().unwrap_or_else(PoisonError::into_inner).push(queue.clone());
        self.count.fetch_add(1, Ordering::Relaxed);
        queue
    }

    /// Tells the followers of the whole log that the log has reached this position.
    pub(crate) fn landed(&self, position: u64) {
        let queues = self.queues.read().unwrap_or_else(PoisonError::into_inner);
        queues.iter().for_each(|it| it.landed(position));
    }

    /// Returns whether any thread or the whole log has a follower.
    pub(crate) fn are_there(&self) -> bool {
        self.count.load(Ordering::Relaxed) > 0
    }

    /// Tells the followers of a thread that the thread has a new entry.
    pub(crate) fn grown(&self, thread: &ThreadId, seq: u64) {
        if let Some(channel) = self.threads.get(thread) {
            channel.grown.send_replace(seq);
        }
    }

    /// Shows a live payload to the followers of its thread and to the followers of the whole log.
    pub(crate) fn live(&self, shown: Showing) {
        let queues = self.queues.read().unwrap_or_else(PoisonError::into_inner);
        queues.iter().for_each(|it| it.push(&shown));
        drop(queues);
        if let Some(channel) = self.threads.get(&shown.cause.thread) {
            // An error means that no follower listens at this moment.
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

    /// Returns a receiver of a thread's live payloads. None if the thread has no follower, so the
    /// caller must have called `join` before.
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
