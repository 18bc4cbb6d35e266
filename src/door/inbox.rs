//! What a connection hears: news from the pump, kept until its task takes them.

use std::sync::{Mutex, PoisonError};
use std::task::Waker;

use futures_util::task::AtomicWaker;

use crate::engine::{Inlet, News};

/// The news for one connection. What lies here is bounded by what the connection has pushed and
/// by what handlers may emit for it.
#[derive(Default)]
pub(super) struct Inbox {
    heard: Mutex<Heard>,
    waker: AtomicWaker,
}

#[derive(Default)]
struct Heard {
    news: Vec<(u64, News)>,
    /// The pump has nothing more to tell: close.
    stopped: bool,
    /// Nobody listens any more.
    closed: bool,
}

impl Inbox {
    /// Takes all there is; `into` is empty and keeps its room. Whether it is time to close.
    pub(super) fn take(&self, into: &mut Vec<(u64, News)>) -> bool {
        let mut heard = self.heard();
        std::mem::swap(&mut heard.news, into);
        std::mem::take(&mut heard.stopped)
    }

    /// Whether there is something to take; if not, `waker` is woken when there is.
    pub(super) fn poll(&self, waker: &Waker) -> bool {
        self.waker.register(waker);
        let heard = self.heard();
        !heard.news.is_empty() || heard.stopped
    }

    /// Tells the connection that the pump has nothing more to say.
    pub(super) fn stop(&self) {
        self.heard().stopped = true;
        self.waker.wake();
    }

    /// Drops what comes from now on.
    pub(super) fn close(&self) {
        let mut heard = self.heard();
        heard.closed = true;
        heard.news = Vec::new();
    }

    fn heard(&self) -> std::sync::MutexGuard<'_, Heard> {
        self.heard.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inlet for Inbox {
    fn hear(&self, push: u64, news: News) {
        let mut heard = self.heard();
        if heard.closed {
            return;
        }
        let was_empty = heard.news.is_empty();
        heard.news.push((push, news));
        drop(heard);
        // Whoever finds something takes all of it, so only the first needs to wake.
        if was_empty {
            self.waker.wake();
        }
    }
}
