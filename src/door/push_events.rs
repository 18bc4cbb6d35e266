//! A connection's mailbox: push events from the pump and orders from the door, queued until the
//! connection's task takes them.

use std::future::poll_fn;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Poll, Waker};

use futures_util::task::AtomicWaker;

use crate::door::eviction::Silence;
use crate::engine::{PushEvent, PushObserver};

/// The events and orders for one connection. The queue of events has no bound of its own. Its
/// length depends on the number of the connection's pushes, and on the number of payloads that
/// handlers emit for them.
pub(super) struct Mailbox {
    /// The client's machine, or at a Unix socket the client's user.
    pub(super) machine: Arc<str>,
    state: Mutex<MailboxState>,
    waker: AtomicWaker,
    /// A packed [`Silence`]. 0 is [`Silence::Busy`]. Otherwise, the lowest bit says whether the
    /// connection has sent a message, and the other bits are the time.
    silence: AtomicU64,
}

/// An order of the door to a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    /// Close, since the pump has nothing more to tell.
    Stop,
    /// Close if the connection's token is no longer in the list, which was read again.
    CheckToken,
    /// Close, since a new connection needs the place of this silent one.
    MakeRoom,
}

#[derive(Default)]
struct MailboxState {
    events: Vec<(u64, PushEvent)>,
    orders: Vec<Order>,
    /// Whether the connection is closed, so that new events and orders are dropped.
    closed: bool,
}

impl Mailbox {
    /// Makes the mailbox of a new connection.
    pub(super) fn new(machine: &str, now_us: u64) -> Mailbox {
        let mailbox = Mailbox {
            machine: machine.into(),
            state: Mutex::default(),
            waker: AtomicWaker::new(),
            silence: AtomicU64::new(0),
        };
        mailbox.note(Silence::NeverSpoke { since_us: now_us });
        mailbox
    }

    /// Stores the connection's current [`Silence`].
    pub(super) fn note(&self, silence: Silence) {
        let bits = match silence {
            Silence::Busy => 0,
            Silence::NeverSpoke { since_us } => since_us.max(1) << 1,
            Silence::Rests { since_us } => since_us.max(1) << 1 | 1,
        };
        self.silence.store(bits, Ordering::Relaxed);
    }

    /// The [`Silence`] that was stored last.
    pub(super) fn silence(&self) -> Silence {
        let bits = self.silence.load(Ordering::Relaxed);
        match (bits >> 1, bits & 1) {
            (0, _) => Silence::Busy,
            (since_us, 0) => Silence::NeverSpoke { since_us },
            (since_us, _) => Silence::Rests { since_us },
        }
    }

    /// Waits until this order is queued. This is for a connection that has no session yet.
    pub(super) async fn ordered(&self, order: Order) {
        poll_fn(|context| {
            self.waker.register(context.waker());
            match self.state().orders.contains(&order) {
                true => Poll::Ready(()),
                false => Poll::Pending,
            }
        })
        .await;
    }

    /// Takes all events and orders. `into` must be empty; its allocation is reused for the next
    /// events.
    pub(super) fn take(&self, into: &mut Vec<(u64, PushEvent)>) -> Vec<Order> {
        let mut state = self.state();
        std::mem::swap(&mut state.events, into);
        std::mem::take(&mut state.orders)
    }

    /// Whether there is something to take. If there is nothing, `waker` is woken once there is.
    pub(super) fn poll(&self, waker: &Waker) -> bool {
        self.waker.register(waker);
        let state = self.state();
        !state.events.is_empty() || !state.orders.is_empty()
    }

    /// Tells the connection what to do.
    pub(super) fn order(&self, order: Order) {
        let mut state = self.state();
        // An order that is queued already isn't queued twice.
        if !state.closed && !state.orders.contains(&order) {
            state.orders.push(order);
        }
        drop(state);
        self.waker.wake();
    }

    /// Drops the queued events, and all further events and orders.
    pub(super) fn close(&self) {
        let mut state = self.state();
        state.closed = true;
        state.events = Vec::new();
    }

    fn state(&self) -> std::sync::MutexGuard<'_, MailboxState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PushObserver for Mailbox {
    fn hear(&self, push: u64, event: PushEvent) {
        let mut state = self.state();
        if state.closed {
            return;
        }
        let was_empty = state.events.is_empty();
        state.events.push((push, event));
        drop(state);
        // The connection's task takes all events at once, so only the first event needs to wake it.
        if was_empty {
            self.waker.wake();
        }
    }
}
