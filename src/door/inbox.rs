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

/// What the door tells a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    /// The pump has nothing more to tell: close.
    Stop,
    /// The tokens were read again: close, if yours is gone.
    CheckToken,
}

#[derive(Default)]
struct Heard {
    news: Vec<(u64, News)>,
    orders: Vec<Order>,
    /// Nobody listens any more.
    closed: bool,
}

impl Inbox {
    /// Takes all there is; `into` is empty and keeps its room.
    pub(super) fn take(&self, into: &mut Vec<(u64, News)>) -> Vec<Order> {
        let mut heard = self.heard();
        std::mem::swap(&mut heard.news, into);
        std::mem::take(&mut heard.orders)
    }

    /// Whether there is something to take; if not, `waker` is woken when there is.
    pub(super) fn poll(&self, waker: &Waker) -> bool {
        self.waker.register(waker);
        let heard = self.heard();
        !heard.news.is_empty() || !heard.orders.is_empty()
    }

    /// Tells the connection what to do.
    pub(super) fn order(&self, order: Order) {
        let mut heard = self.heard();
        // What was ordered before and isn't done yet, will be done.
        if !heard.closed && !heard.orders.contains(&order) {
            heard.orders.push(order);
        }
        drop(heard);
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
