//! Following a thread: a position in the log, woken when the thread grows. A slow follower costs
//! its own lag and nothing else.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use dashmap::DashMap;
use tokio::sync::{broadcast, watch};

use crate::engine::shared::Shared;
use crate::engine::unread::unread;
use crate::id::{EntryId, ThreadId};
use crate::listener::Entry;
use crate::wire::Fault;
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
    Live(Showing),
}

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

    fn join(&self, thread: &ThreadId) -> watch::Receiver<u64> {
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
    fn watch(&self, thread: &ThreadId) -> Option<broadcast::Receiver<Showing>> {
        let mut channel = self.threads.get_mut(thread)?;
        let lag = self.lag;
        Some(channel.live.get_or_insert_with(|| broadcast::Sender::new(lag)).subscribe())
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
    live: Option<broadcast::Receiver<Showing>>,
}

impl Follow {
    pub(crate) fn new(shared: Arc<Shared>, thread: ThreadId, after: u64) -> Follow {
        let grown = shared.followers.join(&thread);
        Follow { shared, thread, after, read: VecDeque::new(), grown, live: None }
    }

    /// The same, which sees live payloads as well.
    pub(crate) fn and_live(mut self) -> Follow {
        self.live = self.shared.followers.watch(&self.thread);
        self
    }

    /// The next entry after the last one seen, or a live payload; waits for it.
    ///
    /// # Errors
    /// Where the log can't be read.
    pub async fn next(&mut self) -> Result<Followed, Fault> {
        loop {
            if let Some(entry) = self.logged().await? {
                return Ok(Followed::Entry(entry));
            }
            // What the log has was read before; what is live can't hold it up.
            tokio::select! {
                biased;
                shown = shown(&mut self.live) => return Ok(Followed::Live(shown)),
                _ = self.grown.changed() => {}
            }
        }
    }
}

impl Follow {
    /// The next entry that the log has by now, where there is one.
    ///
    /// # Errors
    /// Where the log can't be read.
    pub async fn logged(&mut self) -> Result<Option<Entry>, Fault> {
        if self.read.is_empty() {
            self.grown.mark_unchanged();
            let page = self.shared.log.read(&self.thread, self.after, u64::MAX, PAGE).await;
            let page = page.map_err(|it| unread(&it))?;
            self.read.extend(page.iter().map(|it| Entry::kept(it)));
        }
        let next = self.read.pop_front();
        self.after = next.as_ref().map_or(self.after, Entry::seq);
        Ok(next)
    }
}

/// The next live payload; whoever missed some goes on with those that are left.
async fn shown(live: &mut Option<broadcast::Receiver<Showing>>) -> Showing {
    while let Some(receiver) = live {
        use broadcast::error::RecvError::{Closed, Lagged};
        match receiver.recv().await {
            Ok(shown) => return shown,
            Err(Lagged(_)) => {}
            Err(Closed) => *live = None,
        }
    }
    std::future::pending().await
}

impl Drop for Follow {
    fn drop(&mut self) {
        self.shared.followers.leave(&self.thread);
    }
}
