//! The queue of messages to a server. It has a bound in messages and one in bytes: who has a call
//! to send waits for room, and what nobody waits for is dropped.

use std::sync::Arc;

use serde_json::Value;
use tokio::sync::mpsc::{self, Receiver, Sender, WeakSender};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::limits::{QUEUED_BYTES_MAX, QUEUED_MAX};

/// A message to the server.
pub(super) struct Outgoing {
    /// The method, if the message is no answer.
    pub(super) method: Option<String>,
    /// The id of the request or of the answer, or null.
    pub(super) id: Value,
    /// The message in JSON.
    pub(super) text: String,
    /// The message's room in the queue, which is free again when this is dropped.
    pub(super) room: OwnedSemaphorePermit,
}

impl Outgoing {
    /// Returns the id of the request, if the message is one.
    pub(super) fn request(&self) -> Option<u64> {
        self.method.as_ref().and_then(|_| self.id.as_u64())
    }

    fn new(message: &Value, text: String, room: OwnedSemaphorePermit) -> Outgoing {
        let method = message.get("method").and_then(Value::as_str).map(str::to_owned);
        let id = message.get("id").cloned().unwrap_or_default();
        Outgoing { method, id, text, room }
    }
}

/// The end of the queue at which messages are put into it.
#[derive(Clone)]
pub(super) struct Queue {
    to: Sender<Outgoing>,
    room: Arc<Semaphore>,
}

/// An end of the queue that doesn't keep the queue open.
pub(super) struct WeakQueue {
    to: WeakSender<Outgoing>,
    room: Arc<Semaphore>,
}

impl Queue {
    pub(super) fn new() -> (Queue, Receiver<Outgoing>) {
        let (to, from) = mpsc::channel(QUEUED_MAX);
        (Queue { to, room: Arc::new(Semaphore::new(QUEUED_BYTES_MAX)) }, from)
    }

    pub(super) fn weak(&self) -> WeakQueue {
        WeakQueue { to: self.to.downgrade(), room: self.room.clone() }
    }

    /// Puts a message into the queue, once there is room. Returns false if nobody takes it.
    pub(super) async fn put(&self, message: &Value) -> bool {
        let text = message.to_string();
        // No room is free any more once the other end is gone.
        let room = tokio::select! {
            room = self.room.clone().acquire_many_owned(size(&text)) => room,
            () = self.to.closed() => return false,
        };
        let Ok(room) = room else { return false };
        self.to.send(Outgoing::new(message, text, room)).await.is_ok()
    }

    /// Puts a message into the queue, or drops it if there is no room.
    pub(super) fn try_put(&self, message: &Value) {
        let text = message.to_string();
        if let Ok(room) = self.room.clone().try_acquire_many_owned(size(&text)) {
            let _ = self.to.try_send(Outgoing::new(message, text, room));
        }
    }

    /// Waits until the other end is gone.
    pub(super) async fn closed(&self) {
        self.to.closed().await;
    }
}

impl WeakQueue {
    /// Puts a message into the queue, or drops it if there is no room, or if the queue is closed.
    pub(super) fn try_put(&self, message: &Value) {
        if let Some(to) = self.to.upgrade() {
            Queue { to, room: self.room.clone() }.try_put(message);
        }
    }
}

/// The room that a text takes: its bytes, or all of the queue if there are more.
fn size(text: &str) -> u32 {
    u32::try_from(text.len().min(QUEUED_BYTES_MAX)).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;
    use serde_json::json;

    use super::*;

    #[test]
    fn a_queue_holds_so_many_bytes_and_messages_and_no_more() {
        let (queue, mut written) = Queue::new();
        let message = |bytes: usize| json!({ "id": 1, "method": "m", "x": "x".repeat(bytes) });
        let (large, small) = (message(QUEUED_BYTES_MAX - 1_000), message(2_000));
        assert_eq!(queue.put(&large).now_or_never(), Some(true));
        assert_eq!(queue.put(&small).now_or_never(), None);
        queue.weak().try_put(&small);
        let taken = written.try_recv().unwrap();
        assert_eq!((taken.request(), taken.method.as_deref()), (Some(1), Some("m")));
        assert!(written.try_recv().is_err(), "what found no room is dropped");
        drop(taken);
        // One that is larger than the queue takes all of it.
        assert_eq!(queue.put(&message(2 * QUEUED_BYTES_MAX)).now_or_never(), Some(true));
        assert_eq!(queue.put(&small).now_or_never(), None);
        drop(written.try_recv());
        for _ in 0..QUEUED_MAX {
            assert_eq!(queue.put(&small).now_or_never(), Some(true));
        }
        assert_eq!(queue.put(&small).now_or_never(), None);
        drop(written);
        assert_eq!(queue.put(&small).now_or_never(), Some(false));
    }
}
