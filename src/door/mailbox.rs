//! What a connection hears: news from the pump, kept until its task takes them.

use std::future::poll_fn;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Poll, Waker};

use futures_util::task::AtomicWaker;

use crate::door::silence::Silence;
use crate::engine::{PushEvent, PushObserver};

/// The news for one connection. What lies here is bounded by what the connection has pushed and
/// by what handlers may emit for it.
pub(super) struct Mailbox {
    /// The machine that the connection comes from, or its user.
    pub(super) machine: Arc<str>,
    heard: Mutex<Heard>,
    waker: AtomicWaker,
    /// A [`Silence`]: the time, and in the lowest bit whether it has sent a message; 0 is busy.
    silence: AtomicU64,
}

/// What the door tells a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    /// The pump has nothing more to tell: close.
    Stop,
    /// The tokens were read again: close, if yours is gone.
    CheckToken,
    /// A newcomer needs the place of a silent connection: close.
    MakeRoom,
}

#[derive(Default)]
struct Heard {
    news: Vec<(u64, PushEvent)>,
    orders: Vec<Order>,
    /// Nobody listens any more.
    closed: bool,
}

impl Mailbox {
    /// The mailbox of a connection that comes now.
    pub(super) fn new(machine: &str, now_us: u64) -> Mailbox {
        let mailbox = Mailbox {
            machine: machine.into(),
            heard: Mutex::default(),
            waker: AtomicWaker::new(),
            silence: AtomicU64::new(0),
        };
        mailbox.note(Silence::NeverSpoke { since_us: now_us });
        mailbox
    }

    /// Notes how the connection looks.
    pub(super) fn note(&self, silence: Silence) {
        let bits = match silence {
            Silence::Busy => 0,
            Silence::NeverSpoke { since_us } => since_us.max(1) << 1,
            Silence::Rests { since_us } => since_us.max(1) << 1 | 1,
        };
        self.silence.store(bits, Ordering::Relaxed);
    }

    /// How the connection looked last.
    pub(super) fn silence(&self) -> Silence {
        let bits = self.silence.load(Ordering::Relaxed);
        match (bits >> 1, bits & 1) {
            (0, _) => Silence::Busy,
            (since_us, 0) => Silence::NeverSpoke { since_us },
            (since_us, _) => Silence::Rests { since_us },
        }
    }

    /// Waits until this is ordered; for a connection that has no session yet.
    pub(super) async fn ordered(&self, order: Order) {
        poll_fn(|context| {
            self.waker.register(context.waker());
            match self.heard().orders.contains(&order) {
                true => Poll::Ready(()),
                false => Poll::Pending,
            }
        })
        .await;
    }

    /// Takes all there is; `into` is empty and keeps its room.
    pub(super) fn take(&self, into: &mut Vec<(u64, PushEvent)>) -> Vec<Order> {
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

impl PushObserver for Mailbox {
    fn hear(&self, push: u64, news: PushEvent) {
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
