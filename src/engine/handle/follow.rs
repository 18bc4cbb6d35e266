//! Follows a thread. A follower has a position in the thread and is woken when the thread grows, so
//! a slow follower delays only itself.

use std::collections::VecDeque;
use std::sync::Arc;

use tokio::sync::{broadcast, watch};

use crate::engine::common::live_queue::Showing;
use crate::engine::common::shared::Shared;
use crate::engine::read_fault::unread;
use crate::id::ThreadId;
use crate::listener::Entry;
use crate::wire::Fault;

/// How many entries a follower reads at a time.
const PAGE: usize = 256;

/// An item that a follower gets.
#[derive(Clone, Debug)]
// Exhaustive, since a follower must treat every item.
pub enum Followed {
    /// The thread's next entry.
    Entry(Entry),
    /// A live payload. The log doesn't have it, and a slow follower may miss it.
    Live(Showing),
}

/// A stream of a thread's entries: first the entries that the log has, and then each new entry.
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
        let grown = shared.clients.followers.join(&thread);
        Follow { shared, thread, after, read: VecDeque::new(), grown, live: None }
    }

    /// Makes this follower get live payloads, too.
    pub(crate) fn and_live(mut self) -> Follow {
        self.live = self.shared.clients.followers.watch(&self.thread);
        self
    }

    /// Waits for the next entry after the last one seen, or for a live payload.
    ///
    /// # Errors
    /// If the log can't be read.
    pub async fn next(&mut self) -> Result<Followed, Fault> {
        loop {
            if let Some(entry) = self.logged().await? {
                return Ok(Followed::Entry(entry));
            }
            // Entries in the log are read first, so live payloads can't delay them.
            tokio::select! {
                biased;
                shown = shown(&mut self.live) => return Ok(Followed::Live(shown)),
                _ = self.grown.changed() => {}
            }
        }
    }
}

impl Follow {
    /// Returns the next entry, if the log has one by now.
    ///
    /// # Errors
    /// If the log can't be read.
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

/// Returns the next live payload. A follower that missed some payloads continues with the oldest
/// payload that is left.
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
        self.shared.clients.followers.leave(&self.thread);
    }
}
