//! The lane of a connection: its pushes are posted in the order in which they came, even if the log
//! has to be asked about some of them.

use std::future;
use std::task::{Context, Poll};

use futures_util::StreamExt as _;
use futures_util::stream::FuturesOrdered;

use crate::engine::handle::pump::Pump;
use crate::engine::handle::push::{PendingPush, PushProgress};
use crate::engine::tree::event::Pusher;
use crate::wire::Envelope;

/// The most pushes of one connection that wait at once: enough to keep the log's readers busy with
/// looking up client ids, and few enough that queries of other connections don't wait long.
const WAITING_MAX: usize = 64;

/// The pushes of one connection that aren't posted yet.
pub struct PushLane {
    pump: Pump,
    /// Pushes that wait for the log or for another push, and the pushes that came after them. They
    /// may become ready in any order, and are posted in the order in which they came.
    waiting: FuturesOrdered<PendingPush>,
    /// Whether no further push may begin until all that wait are posted.
    is_closed: bool,
}

impl PushLane {
    /// A lane without pushes.
    pub fn new(pump: Pump) -> PushLane {
        PushLane { pump, waiting: FuturesOrdered::new(), is_closed: false }
    }

    /// Returns whether another push may begin.
    pub fn is_open(&self) -> bool {
        !self.is_closed
    }

    /// Returns whether all pushes that have begun are posted or refused.
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Begins a push. It is posted at once unless it has to wait, or an earlier push waits. The
    /// caller has checked that the lane is open.
    pub fn begin(&mut self, by: Pusher, envelope: Envelope) {
        debug_assert!(self.is_open(), "a push begins only in an open lane");
        match self.pump.begin(by, envelope) {
            PushProgress::Ready(None) => {}
            PushProgress::Ready(Some(it)) if self.waiting.is_empty() => self.pump.go(it),
            PushProgress::Ready(it) => self.queue(Box::pin(future::ready(it))),
            PushProgress::LooksUp(pushing) => self.queue(pushing),
            PushProgress::Waits(pushing) => {
                self.queue(pushing);
                self.is_closed = true;
            }
        }
    }

    fn queue(&mut self, pushing: PendingPush) {
        self.waiting.push_back(pushing);
        self.is_closed |= self.waiting.len() >= WAITING_MAX;
    }

    /// Posts the pushes whose turn has come, and opens the lane once none waits. Returns whether
    /// there were any.
    pub fn poll(&mut self, context: &mut Context<'_>) -> bool {
        let mut busy = false;
        while let Poll::Ready(Some(routed)) = self.waiting.poll_next_unpin(context) {
            if let Some(routed) = routed {
                self.pump.go(routed);
            }
            busy = true;
        }
        self.is_closed &= !self.waiting.is_empty();
        busy
    }
}
