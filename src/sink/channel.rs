//! A sink for the program itself: a channel that is bounded in items and in bytes.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};

use crate::engine::{Port as _, Tokio};
use crate::follower::{Sent, Target, Unreachable};
use crate::log::{Entry, Error};
use crate::sink::item::{Item, Waiting};
use crate::sink::{Sink, SinkSelection};

/// How long one call of `send` waits for the receiver, in microseconds.
const WAIT_US: u64 = 200_000;

/// How many bytes of items wait in a channel. An item that is larger waits alone.
const BYTES_MAX: usize = 8 * 1024 * 1024;

/// The sending end of a channel.
#[derive(Clone, Debug)]
pub(super) struct Sender {
    to: mpsc::Sender<Queued>,
    /// The bytes that may still wait.
    room: Arc<Semaphore>,
}

/// An item with the room that it takes until it is received.
type Queued = (Item, OwnedSemaphorePermit);

/// The receiving end of a sink for the program itself.
#[derive(Debug)]
pub struct Items(mpsc::Receiver<Queued>);

impl Items {
    /// Waits for the next item. None once the pump has stopped and every item was received.
    pub async fn next(&mut self) -> Option<Item> {
        self.0.recv().await.map(|(item, _)| item)
    }
}

pub(super) fn bounded(items_max: usize) -> (Sender, Items) {
    let (to, items) = mpsc::channel(items_max.max(1));
    (Sender { to, room: Arc::new(Semaphore::new(BYTES_MAX)) }, Items(items))
}

impl Sender {
    /// Waits until there is room for an item of so many bytes. None if the receiver was dropped.
    async fn reserve(
        &self,
        bytes: usize,
    ) -> Option<(mpsc::Permit<'_, Queued>, OwnedSemaphorePermit)> {
        let bytes = u32::try_from(bytes.min(BYTES_MAX)).unwrap_or(u32::MAX);
        let room = self.room.clone().acquire_many_owned(bytes).await.ok()?;
        Some((self.to.reserve().await.ok()?, room))
    }
}

/// A manifest's sink of the type `return`: the program that embeds the pump receives its items.
///
/// ```
/// # extern crate pumphouse_organism as pumphouse;
/// use pumphouse::manifest::Manifest;
///
/// let yaml = b"listeners: [{use: echo}]\nsinks: [{type: return, name: ui, buffer_size: 16}]\n";
/// let builder = pumphouse::builder().with(pumphouse::listeners::factories);
/// let manifest = Manifest::read("organism.yaml".as_ref(), yaml, &|_| None, &builder)?;
/// let (sink, items) = manifest.returns[0].channel();
/// assert_eq!(sink.name(), "ui");
/// # drop(items);
/// # Ok::<(), pumphouse::manifest::Mistakes>(())
/// ```
#[derive(Clone, Debug)]
pub struct Return {
    name: String,
    items_max: usize,
    selection: SinkSelection,
}

impl Return {
    pub(crate) fn new(name: &str, items_max: usize, selection: SinkSelection) -> Return {
        Return { name: name.to_owned(), items_max, selection }
    }

    /// The name of the sink.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Makes the sink, for a pump's builder, and its receiving end.
    #[must_use]
    pub fn channel(&self) -> (Sink, Items) {
        let (sink, items) = Sink::channel(&self.name, self.items_max);
        (Sink { selection: self.selection.clone(), ..sink }, items)
    }
}

/// Passes the items of a sink to the program.
pub(super) struct ChannelTarget {
    name: String,
    to: Sender,
    waiting: Waiting,
}

impl ChannelTarget {
    pub(super) fn new(name: String, to: Sender, waiting: Waiting) -> ChannelTarget {
        ChannelTarget { name, to, waiting }
    }
}

impl Target for ChannelTarget {
    fn attempts_max(&self) -> Option<u32> {
        Some(1)
    }

    async fn take(&mut self, entry: Arc<Entry>) -> Result<(), Error> {
        self.waiting.take(entry);
        Ok(())
    }

    fn take_live(&mut self, position: u64) {
        self.waiting.take_live(position);
    }

    fn has_waiting(&self) -> bool {
        !self.waiting.items.is_empty()
    }

    async fn send(&mut self) -> Result<Sent, Unreachable> {
        let port = Tokio::current();
        let over = port.sleep_until(port.now_us().saturating_add(WAIT_US));
        let mut over = std::pin::pin!(over);
        while let Some(item) = self.waiting.items.front() {
            let reserved = tokio::select! {
                reserved = self.to.reserve(item.bytes()) => reserved,
                () = &mut over => return Ok(Sent::Partly),
            };
            let gone = || Unreachable("its receiver was dropped".to_owned());
            let (place, room) = reserved.ok_or_else(gone)?;
            if let Some(item) = self.waiting.items.pop_front() {
                place.send((item, room));
            }
        }
        Ok(Sent::All)
    }

    async fn wake(&mut self) {
        self.waiting.grown().await;
    }

    fn report_unreachable(&self, reason: &str) {
        tracing::warn!(sink = self.name, reason, "nobody receives what a sink gets");
    }

    fn report_reachable(&self) {}
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;
    use crate::model::ProviderEvent;

    /// Puts an item of so many bytes into a channel, if there is room.
    fn put(sender: &Sender, bytes: usize) -> bool {
        let item = Item::Raw(ProviderEvent::new("m", "x".repeat(bytes)));
        let reserved = sender.reserve(item.bytes()).now_or_never().flatten();
        reserved.map(|(place, room)| place.send((item, room))).is_some()
    }

    #[test]
    fn a_channel_holds_so_many_bytes_and_no_more() {
        let (sender, mut items) = bounded(1_000);
        assert!((0..8).all(|_| put(&sender, BYTES_MAX / 8)));
        assert!(!put(&sender, 1) && put(&sender, 0));
        assert!(items.next().now_or_never().flatten().is_some());
        assert!(put(&sender, BYTES_MAX / 8) && !put(&sender, 1));
        while items.next().now_or_never().flatten().is_some() {}
        assert!(put(&sender, 2 * BYTES_MAX), "a large item waits alone");
        assert!(!put(&sender, 1));
        drop(items);
        assert!(sender.reserve(1).now_or_never().unwrap().is_none(), "nobody receives");
    }

    #[test]
    fn a_channel_holds_so_many_items_and_no_more() {
        let (sender, _items) = bounded(2);
        assert!(put(&sender, 1) && put(&sender, 1) && !put(&sender, 1));
    }
}
