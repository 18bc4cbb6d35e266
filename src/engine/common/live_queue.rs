//! A queue of live payloads for a follower of the whole log.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::Notify;

use crate::id::{EntryId, ThreadId};
use crate::xml::Element;

/// The largest number of threads whose dropped payloads are counted separately. The dropped
/// payloads of all other threads are counted together.
const THREADS_MAX: usize = 1_024;

/// How many bytes of payloads may wait. A single payload that is larger waits alone.
const BYTES_MAX: usize = 8 * 1024 * 1024;

/// A live payload and its origin.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Showing {
    /// The listener that shows the payload.
    pub from: Arc<str>,
    /// The message that the listener was handling.
    pub cause: EntryId,
    /// The payload.
    pub payload: Element,
}

/// A queue of live payloads, bounded in payloads and in bytes. When the queue is full, its oldest
/// payloads are dropped and counted.
pub struct LiveQueue {
    state: Mutex<Queued>,
    grown: Notify,
    /// How many payloads may wait. 0 if the follower wants none.
    payloads_max: usize,
}

#[derive(Default)]
struct Queued {
    waiting: VecDeque<QueuedPayload>,
    /// The bytes of all payloads that wait.
    bytes: usize,
    position: u64,
    dropped: Dropped,
}

/// A payload that waits.
struct QueuedPayload {
    /// The position that the log had reached when the payload was shown.
    position: u64,
    bytes: usize,
    showing: Showing,
}

/// How many payloads were dropped since the last `take`.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Dropped {
    pub by_thread: BTreeMap<ThreadId, u64>,
    /// How many payloads of threads without a count of their own were dropped.
    pub of_others: u64,
}

impl LiveQueue {
    /// A queue for this many payloads.
    pub fn new(payloads_max: usize) -> LiveQueue {
        LiveQueue { state: Mutex::default(), grown: Notify::new(), payloads_max }
    }

    /// Adds a payload, if the follower wants any.
    pub fn push(&self, shown: &Showing) {
        if self.payloads_max == 0 {
            return;
        }
        let bytes = shown.payload.canonical().len();
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        while (state.waiting.len() >= self.payloads_max || state.bytes + bytes > BYTES_MAX)
            && let Some(oldest) = state.waiting.pop_front()
        {
            state.bytes -= oldest.bytes;
            state.dropped.count(oldest.showing.cause.thread);
        }
        let position = state.position;
        state.bytes += bytes;
        state.waiting.push_back(QueuedPayload { position, bytes, showing: shown.clone() });
        drop(state);
        self.grown.notify_one();
    }

    /// Notes the position that the log has reached.
    pub fn landed(&self, position: u64) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.position = state.position.max(position);
        drop(state);
        self.grown.notify_one();
    }

    /// Takes the payloads that were shown before the log went beyond a position, and the counts of
    /// dropped payloads.
    pub fn take(&self, upto: u64) -> (Dropped, Vec<Showing>) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let count = state.waiting.iter().take_while(|it| it.position <= upto).count();
        let taken: Vec<QueuedPayload> = state.waiting.drain(..count).collect();
        state.bytes -= taken.iter().map(|it| it.bytes).sum::<usize>();
        let shown = taken.into_iter().map(|it| it.showing).collect();
        (std::mem::take(&mut state.dropped), shown)
    }

    /// Waits until the log has grown or a payload has come.
    pub async fn grown(&self) {
        self.grown.notified().await;
    }
}

impl Dropped {
    fn count(&mut self, thread: ThreadId) {
        let is_full = self.by_thread.len() >= THREADS_MAX;
        match self.by_thread.get_mut(&thread) {
            Some(count) => *count += 1,
            None if is_full => self.of_others += 1,
            None => drop(self.by_thread.insert(thread, 1)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(thread: &str, seq: u64) -> Showing {
        let cause = EntryId::new(&ThreadId::new(thread), seq);
        let payload = Element::from_canonical("<a xmlns=\"urn:x\"></a>".into()).unwrap();
        Showing { from: "agent".into(), cause, payload }
    }

    #[test]
    fn the_oldest_payload_is_dropped_and_counted_by_its_thread() {
        let queue = LiveQueue::new(2);
        for (thread, seq) in [("a", 1), ("a", 2), ("b", 3), ("b", 4), ("b", 5)] {
            queue.push(&shown(thread, seq));
        }
        let (dropped, left) = queue.take(0);
        let expected = [(ThreadId::new("a"), 2), (ThreadId::new("b"), 1)];
        assert_eq!(dropped, Dropped { by_thread: expected.into(), of_others: 0 });
        assert_eq!(left.iter().map(|it| it.cause.seq).collect::<Vec<_>>(), [4, 5]);
        assert_eq!(queue.take(0).0, Dropped::default());
    }

    #[test]
    fn payloads_of_more_bytes_than_the_bound_do_not_wait() {
        let queue = LiveQueue::new(8);
        let push = |seq, bytes: usize| {
            let text = "x".repeat(bytes);
            let payload = Element::from_canonical(format!("<a>{text}</a>").into()).unwrap();
            queue.push(&Showing { payload, ..shown("a", seq) });
        };
        let taken = || {
            let (dropped, left) = queue.take(u64::MAX);
            let dropped: u64 = dropped.by_thread.into_values().sum();
            (dropped, left.iter().map(|it| it.cause.seq).collect::<Vec<_>>())
        };
        (1..=4).for_each(|seq| push(seq, BYTES_MAX / 3));
        assert_eq!(taken(), (2, vec![3, 4]));
        push(5, 1);
        push(6, BYTES_MAX + 1);
        assert_eq!(taken(), (1, vec![6]), "a payload that is larger than the bound waits alone");
        (7..=8).for_each(|seq| push(seq, BYTES_MAX / 3));
        assert_eq!(taken(), (0, vec![7, 8]), "what was taken isn't counted any more");
    }

    #[test]
    fn a_payload_keeps_its_place_among_the_entries() {
        let queue = LiveQueue::new(8);
        queue.landed(3);
        queue.push(&shown("a", 1));
        queue.landed(5);
        queue.push(&shown("a", 2));
        let seqs = |upto| queue.take(upto).1.iter().map(|it| it.cause.seq).collect::<Vec<_>>();
        assert_eq!(seqs(2), [0; 0]);
        assert_eq!(seqs(4), [1]);
        assert_eq!(seqs(5), [2]);
    }

    #[test]
    fn a_queue_that_wants_no_payloads_keeps_none() {
        let queue = LiveQueue::new(0);
        queue.push(&shown("a", 1));
        assert!(queue.take(u64::MAX).1.is_empty());
    }
}
