//! A sink for the program itself: a bounded channel.

use std::sync::Arc;

use tokio::sync::mpsc;

use crate::engine::{Port as _, Tokio};
use crate::follower::{Sent, Target, Unreachable};
use crate::log::{Entry, Error};
use crate::sink::item::{Item, Waiting};
use crate::sink::{Sink, SinkSelection};

/// How long one call of `send` waits for the receiver, in microseconds.
const WAIT_US: u64 = 200_000;

pub(super) type Sender = mpsc::Sender<Item>;

/// The receiving end of a sink for the program itself.
#[derive(Debug)]
pub struct Items(mpsc::Receiver<Item>);

impl Items {
    /// Waits for the next item. None once the pump has stopped and every item was received.
    pub async fn next(&mut self) -> Option<Item> {
        self.0.recv().await
    }
}

pub(super) fn bounded(items_max: usize) -> (Sender, Items) {
    let (sender, items) = mpsc::channel(items_max.max(1));
    (sender, Items(items))
}

/// A manifest's sink of the type `return`: the program that embeds the pump receives its items.
///
/// ```
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
        while !self.waiting.items.is_empty() {
            let place = tokio::select! {
                place = self.to.reserve() => place,
                () = &mut over => return Ok(Sent::Partly),
            };
            let place = place.map_err(|_| Unreachable("its receiver was dropped".to_owned()))?;
            if let Some(item) = self.waiting.items.pop_front() {
                place.send(item);
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
