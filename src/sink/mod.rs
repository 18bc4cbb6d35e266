//! Sinks: destinations of a pump's entries and live payloads. A sink writes them into files, sends
//! them to a WebSocket, or passes them to the program itself.
//!
//! A sink follows the log, and gets each entry at least once, in the order of the log. Entries wait
//! in the log while the sink is away. With `buffer_on_disconnect: false`, a WebSocket doesn't get
//! those entries. A sink of files or a WebSocket can keep its position in a file beside the log. It
//! then continues from that position after a restart.
//!
//! A sink can also get raw events, which are the events of providers' streams. A sink of raw events
//! alone gets no entries.
//!
//! The number of waiting live payloads, such as the pieces of a reply that an agent is writing, is
//! bounded. The oldest payloads are dropped first, and an item says how many were dropped.
//! `docs/sinks.md` is the manual.

mod item;
mod path;
mod files;
mod websocket;
mod channel;

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use crate::engine::{Builder, Door, Plugin, Pump, Stage};
use crate::follower::{self, Follower, KeptPosition, Target};
use crate::listener::Boxed;
use crate::log::{Log, last_position};
use crate::model::ProviderEvents;
use crate::wire::{Code, Fault};

pub use channel::{Items, Return};
pub use files::Files;
pub use item::Item;
pub use websocket::WebSocket;

/// A destination for the entries of a pump's log, live payloads and events of providers.
///
/// ```
/// # extern crate pumphouse_organism as pumphouse;
/// use pumphouse::sink::{Item, Sink};
/// use pumphouse::listeners::{self, echo::Echo};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let (sink, mut items) = Sink::channel("program", 16);
/// let pump = pumphouse::builder().with(listeners::standard()).with(sink).build()?.start();
/// let entry = pump.tell(Echo { text: "hi".to_owned() }).await?;
/// let Some(Item::Entry(first)) = items.next().await else { panic!("an entry comes") };
/// assert_eq!(first.id, entry);
/// # pump.shutdown().await?;
/// # Ok(()) }
/// ```
#[derive(Clone, Debug)]
pub struct Sink {
    name: String,
    to: Destination,
    selection: SinkSelection,
    position: Option<PathBuf>,
    after: Option<u64>,
    lag: Arc<AtomicU64>,
}

/// The kinds of items that a sink gets.
#[derive(Clone, Debug)]
pub(crate) struct SinkSelection {
    pub(crate) entries: bool,
    pub(crate) live: bool,
    /// The source of providers' events, if the sink gets such events.
    pub(crate) events: Option<ProviderEvents>,
}

impl Default for SinkSelection {
    fn default() -> SinkSelection {
        SinkSelection { entries: true, live: true, events: None }
    }
}

impl SinkSelection {
    pub(crate) fn only_raw(events: &ProviderEvents) -> SinkSelection {
        SinkSelection { entries: false, live: false, events: Some(events.clone()) }
    }
}

#[derive(Clone, Debug)]
enum Destination {
    Files(Files),
    WebSocket(WebSocket),
    Channel(channel::Sender),
}

/// An error in the settings of a sink.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct NoSink {
    /// The setting that is wrong, such as `url` or `path`.
    pub setting: &'static str,
    /// The error, and what to do about it.
    pub text: String,
}

impl fmt::Display for NoSink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for NoSink {}

impl Sink {
    /// A sink that writes files of JSON lines. Its name appears in traces, in metrics and in the
    /// file name of its position. The name must differ from the names of other sinks.
    #[must_use]
    pub fn files(name: &str, files: Files) -> Sink {
        Sink::new(name, Destination::Files(files))
    }

    /// A sink that sends JSON objects to a WebSocket. Its name must differ from the names of other
    /// sinks.
    #[must_use]
    pub fn websocket(name: &str, websocket: WebSocket) -> Sink {
        Sink::new(name, Destination::WebSocket(websocket))
    }

    /// A sink for the program itself, and its receiving end. At most `items_max` items wait in the
    /// channel; 0 counts as 1. Further entries wait in the log. The sink begins with the entries
    /// that are written after the pump's start.
    #[must_use]
    pub fn channel(name: &str, items_max: usize) -> (Sink, Items) {
        let (sender, items) = channel::bounded(items_max);
        (Sink::new(name, Destination::Channel(sender)), items)
    }

    fn new(name: &str, to: Destination) -> Sink {
        let (name, lag) = (name.to_owned(), Arc::default());
        Sink { name, to, selection: SinkSelection::default(), position: None, after: None, lag }
    }

    /// Leaves live payloads out of the sink's items.
    #[must_use]
    pub fn drop_deltas(self) -> Sink {
        Sink { selection: SinkSelection { live: false, ..self.selection }, ..self }
    }

    /// Adds the events of providers' streams to the sink's items.
    #[must_use]
    pub fn raw(self, events: &ProviderEvents) -> Sink {
        Sink { selection: SinkSelection { events: Some(events.clone()), ..self.selection }, ..self }
    }

    /// Restricts the sink's items to the events of providers' streams: the sink gets neither
    /// entries nor live payloads. Such a sink keeps no position, because the log doesn't hold these
    /// events.
    #[must_use]
    pub fn only_raw(self, events: &ProviderEvents) -> Sink {
        Sink { selection: SinkSelection::only_raw(events), ..self }
    }

    /// Sets the kinds of items that the sink gets.
    pub(crate) fn selection(self, selection: SinkSelection) -> Sink {
        Sink { selection, ..self }
    }

    /// Makes the sink begin after this position of the log. The sink then keeps no position: the
    /// program itself must do that.
    #[must_use]
    pub fn after(self, position: u64) -> Sink {
        Sink { after: Some(position), ..self }
    }

    /// Makes the sink keep its position in a file beside this log. A sink of files or a WebSocket
    /// begins at the log's beginning if it has no such file. A sink without entries keeps no
    /// position.
    ///
    /// # Errors
    /// The position's file exists but holds no position, or the sink would write to a file of the
    /// log.
    pub fn keep_position_beside(self, log: &Path) -> Result<Sink, NoSink> {
        if matches!(&self.to, Destination::Files(it) if it.may_be_of(log)) {
            let (name, log) = (&self.name, log.display());
            let text =
                format!("sink {name}: its path may be a file of the log {log}; name another");
            return Err(NoSink { setting: "path", text });
        }
        if !self.selection.entries {
            return Ok(self);
        }
        let file = follower::file_beside(log, &format!("sink-{}", self.name));
        follower::check(&file, follower::FROM_BEGINNING)
            .map_err(|text| NoSink { setting: "name", text })?;
        Ok(Sink { position: Some(file), ..self })
    }

    /// The name of the sink.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The gauge of the sink's lag: how many entries of the log the sink doesn't have yet.
    #[must_use]
    pub fn lag(&self) -> Arc<AtomicU64> {
        self.lag.clone()
    }

    async fn begin(&self, log: &dyn Log) -> Result<KeptPosition, Fault> {
        let broken = |text: String| Fault::new(Code::Broken, text);
        let is_channel = matches!(self.to, Destination::Channel(_)) && self.position.is_none();
        let begins_at_end = is_channel || !self.selection.entries;
        match self.after {
            Some(position) => Ok(KeptPosition::unkept(log, position)),
            None if begins_at_end => {
                let last = last_position(log).await;
                let last = last.map_err(|it| broken(it.to_string()))?;
                Ok(KeptPosition::unkept(log, last))
            }
            None => {
                let read = KeptPosition::read(log, self.position.clone()).await;
                read.map_err(|it| broken(format!("sink {}: {it}", self.name)))
            }
        }
    }

    async fn serve(self, pump: Pump) -> Result<(), Fault> {
        let log = pump.log().clone();
        let events = self.selection.events.as_ref().map(|it| it.watch(pump.limits().live_lag_max));
        let position = self.begin(&*log).await?;
        let waiting = item::Waiting::new(
            pump.live_queue(self.selection.live),
            events,
            self.selection.entries,
        );
        let Sink { name, to, lag, .. } = self;
        match to {
            Destination::Files(it) => {
                follow(&pump, log, files::Writer::new(name, it, waiting), position, lag).await;
            }
            Destination::WebSocket(it) => {
                follow(&pump, log, websocket::Client::new(name, it, waiting), position, lag).await;
            }
            Destination::Channel(it) => {
                follow(&pump, log, channel::ChannelTarget::new(name, it, waiting), position, lag)
                    .await;
            }
        }
        Ok(())
    }
}

/// Passes the entries of the log to a target until the pump is drained, and then the entries that
/// are left.
async fn follow(
    pump: &Pump,
    log: Arc<dyn Log>,
    target: impl Target,
    position: KeptPosition,
    lag: Arc<AtomicU64>,
) {
    let mut stage = pump.stage();
    let drained = async move {
        // An error says that the pump was dropped, which ends the wait as well.
        drop(stage.wait_for(|it| *it == Stage::Drained).await);
    };
    // A shutdown waits for doors a little longer than `stop_time_max`.
    let stop_time_max = 2 * pump.limits().linger_time_max;
    let stop_time_max_us = u64::try_from(stop_time_max.as_micros()).unwrap_or(u64::MAX);
    Follower::new(log, target, position, lag).run(drained, stop_time_max_us).await;
}

impl Plugin for Sink {
    fn install(self, builder: &mut Builder) {
        builder.door(self);
    }
}

impl Door for Sink {
    fn serve(self: Box<Self>, pump: Pump) -> Boxed<'static, ()> {
        Box::pin(Sink::serve(*self, pump))
    }
}
