//! Following a thread: a position in the log, woken when the thread grows. A slow follower costs
//! its own lag and nothing else.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use dashmap::DashMap;
use tokio::sync::{broadcast, watch};

use crate::engine::shared::Shared;
use crate::id::ThreadId;
use crate::listener::Entry;
use crate::wire::{Code, Fault};
use crate::xml::Element;

/// How many entries a follower reads at a time.
const PAGE: usize = 256;

/// What a follower sees.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Followed {
    /// The thread's next entry.
    Entry(Entry),
    /// A live payload: shown while it happens, never logged, dropped for whoever is slow.
    Live(Element),
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
    live: broadcast::Sender<Element>,
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
    pub(crate) fn live(&self, thread: &ThreadId, element: Element) {
        if let Some(channel) = self.threads.get(thread) {
            drop(channel.live.send(element));
        }
    }

    fn join(&self, thread: &ThreadId) -> (watch::Receiver<u64>, broadcast::Receiver<Element>) {
        self.count.fetch_add(1, Ordering::Relaxed);
        let mut channel = self.threads.entry(thread.clone()).or_insert_with(|| Channel {
            followers: 0,
            grown: watch::Sender::new(0),
            live: broadcast::Sender::new(self.lag),
        });
        channel.followers += 1;
        (channel.grown.subscribe(), channel.live.subscribe())
    }

    fn leave(&self, thread: &ThreadId) {
        self.count.fetch_sub(1, Ordering::Relaxed);
        if let Some(mut channel) = self.threads.get_mut(thread) {
            channel.followers -= 1;
        }
        self.threads.remove_if(thread, |_, channel| channel.followers == 0);
    }
}

/// A thread's entries, those there are and those to come.
pub struct Follow {
    shared: Arc<Shared>,
    thread: ThreadId,
    after: u64,
    read: VecDeque<Entry>,
    grown: watch::Receiver<u64>,
    live: broadcast::Receiver<Element>,
}

impl Follow {
    pub(crate) fn new(shared: Arc<Shared>, thread: ThreadId, after: u64) -> Follow {
        let (grown, live) = shared.followers.join(&thread);
        Follow { shared, thread, after, read: VecDeque::new(), grown, live }
    }

    /// The next entry after the last one seen, or a live payload; waits for it.
    ///
    /// # Errors
    /// Where the log can't be read.
    pub async fn next(&mut self) -> Result<Followed, Fault> {
        loop {
            if let Some(entry) = self.read.pop_front() {
                self.after = entry.seq();
                return Ok(Followed::Entry(entry));
            }
            self.grown.mark_unchanged();
            let page = self.shared.log.read(&self.thread, self.after, u64::MAX, PAGE).await;
            let page = page.map_err(|error| Fault::new(Code::Unreadable, error.to_string()))?;
            self.read.extend(page.iter().map(|it| Entry::kept(it)));
            if !self.read.is_empty() {
                continue;
            }
            tokio::select! {
                _ = self.grown.changed() => {}
                live = self.live.recv() => {
                    if let Ok(element) = live {
                        return Ok(Followed::Live(element));
                    }
                }
            }
        }
    }
}

impl Drop for Follow {
    fn drop(&mut self) {
        self.shared.followers.leave(&self.thread);
    }
}
