//! A follower of the log of a pump that runs: its spans go to a collector when they are over.
//!
//! The log is the buffer. While the collector is away the follower stays where it is, and its
//! position is kept in a file beside the log, so that a start goes on from there.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use serde::{Deserialize, Serialize};
use tokio::sync::{oneshot, watch};

use crate::audit;
use crate::cli::atomic_file::AtomicFile;
use crate::cli::otel::batch::{SPANS_MAX, send};
use crate::cli::screen::Failure;
use crate::clock;
use crate::engine::{Port as _, Tokio};
use crate::log::{Error, Log};
use crate::manifest::Otel;
use crate::otel::{Collector, Projection, Resource, Span, Unsent};

/// Entries that are read at a time.
const PAGE: usize = 256;
/// How often the log is asked for more.
const LOOK_EVERY_US: u64 = 200_000;
/// How often the position is written at the most.
const KEEP_EVERY_US: u64 = 1_000_000;
/// How long is waited for a collector that is away: at first, and at the most.
const AWAY_US: (u64, u64) = (500_000, 30_000_000);
/// How long a stop waits for the collector.
const STOP_TIME_MAX_US: u64 = 5_000_000;

/// The position as its file has it.
#[derive(Debug, Serialize, Deserialize)]
struct Kept {
    /// The UUID of the log.
    log: String,
    position: u64,
}

/// Where the position of a log's spans is kept.
pub(crate) fn file_beside(log: &Path) -> PathBuf {
    let mut name = log.as_os_str().to_owned();
    name.push("-otel.json");
    name.into()
}

/// Sends the spans of a log.
pub(crate) struct Follower {
    log: Arc<dyn Log>,
    collector: Collector,
    resource: Resource,
    projection: Projection,
    /// Up to where spans are made.
    read: u64,
    /// Up to where all spans are sent.
    sent: u64,
    /// Spans that end up to `read` and aren't sent.
    waiting: Vec<Span>,
    file: Option<PathBuf>,
    kept: u64,
    kept_us: u64,
    is_away: bool,
    lag: Arc<AtomicU64>,
}

/// A follower that runs.
pub(crate) struct Running {
    stop: watch::Sender<bool>,
    over: oneshot::Receiver<()>,
}

impl Running {
    /// Has it send what is there, for a while, and keep its position.
    pub(crate) async fn stop(self) {
        let _ = self.stop.send(true);
        let _ = self.over.await;
    }
}

impl Follower {
    /// A follower that goes on where the file says, or at the log's beginning.
    pub(crate) async fn new(
        log: Arc<dyn Log>,
        says: &Otel,
        name: Option<&str>,
        file: Option<PathBuf>,
        lag: Arc<AtomicU64>,
    ) -> Result<Follower, Failure> {
        let collector = Collector::new(&says.endpoint, says.headers());
        let collector = collector.map_err(|it| Failure::Untried(format!("otel: {it}")))?;
        let uuid = log.identity().uuid;
        let kept = file.as_deref().map_or(Ok(None), position)?;
        let position = match kept {
            Some(it) if it.log == uuid.to_string() => {
                it.position.min(audit::last_position(&*log).await?)
            }
            _ => 0,
        };
        Ok(Follower {
            resource: Resource::new(name, uuid),
            projection: Projection::new(log.clone()).content(says.content),
            log,
            collector,
            read: position,
            sent: position,
            waiting: Vec::new(),
            file,
            kept: position,
            kept_us: 0,
            is_away: false,
            lag,
        })
    }

    /// Runs it beside the pump.
    pub(crate) fn start(self) -> Running {
        let (stop, stopped) = watch::channel(false);
        let (done, over) = oneshot::channel();
        Tokio::current().spawn(async move {
            self.run(stopped).await;
            // An error says that nobody waits for it.
            let _ = done.send(());
        });
        Running { stop, over }
    }

    async fn run(mut self, mut stopped: watch::Receiver<bool>) {
        let port = Tokio::current();
        let mut away_us = AWAY_US.0;
        while !*stopped.borrow() {
            let wait_us = match self.step().await {
                Ok(true) => continue,
                Ok(false) if self.is_away => {
                    let wait_us = away_us;
                    away_us = (2 * away_us).min(AWAY_US.1);
                    wait_us
                }
                Ok(false) => {
                    away_us = AWAY_US.0;
                    LOOK_EVERY_US
                }
                Err(error) => {
                    tracing::warn!(%error, "the log can't be read for OpenTelemetry; trying on");
                    AWAY_US.1
                }
            };
            tokio::select! {
                _ = stopped.changed() => {}
                () = port.sleep_until(port.now_us().saturating_add(wait_us)) => {}
            }
        }
        let until = port.now_us().saturating_add(STOP_TIME_MAX_US);
        let rest = async { while matches!(self.step().await, Ok(true)) {} };
        tokio::select! {
            () = rest => {}
            () = port.sleep_until(until) => {}
        }
        self.keep();
    }

    /// Reads a page and sends its spans; says whether there may be more to do now.
    async fn step(&mut self) -> Result<bool, Error> {
        if self.waiting.is_empty() && !self.read_page().await? {
            self.lag.store(0, Ordering::Relaxed);
            self.keep_now_and_then();
            return Ok(false);
        }
        while !self.waiting.is_empty() {
            let count = self.waiting.len().min(SPANS_MAX);
            match send(&self.collector, &self.waiting[..count], &self.resource).await {
                Ok(rejected) => self.took(count, rejected),
                Err(Unsent::Away(reason)) => {
                    self.is_gone(&reason);
                    self.measure().await?;
                    return Ok(false);
                }
                Err(error) => {
                    self.is_back();
                    let collector = self.collector.url();
                    tracing::warn!(
                        collector, spans = count, %error,
                        "the collector refuses spans, and they are left out; see what it logs"
                    );
                }
            }
            self.waiting.drain(..count);
        }
        self.sent = self.read;
        self.keep_now_and_then();
        self.measure().await?;
        Ok(true)
    }

    /// Makes the spans of the next entries; says whether there were any entries.
    async fn read_page(&mut self) -> Result<bool, Error> {
        let page = self.log.tail(self.read, PAGE).await?;
        for entry in &page {
            let spans = self.projection.take(entry).await?;
            self.waiting.extend(spans);
            self.read = entry.position;
        }
        Ok(!page.is_empty())
    }

    /// The collector took spans.
    fn took(&mut self, count: usize, rejected: u64) {
        let collector = self.collector.url();
        if rejected > 0 {
            tracing::warn!(
                collector,
                rejected,
                spans = count,
                "the collector didn't take some spans; see what it logs"
            );
        }
        self.is_back();
    }

    /// The collector answers; that is said once after it was away.
    fn is_back(&mut self) {
        if std::mem::take(&mut self.is_away) {
            let collector = self.collector.url();
            tracing::info!(collector, "the collector is back, and gets the spans that waited");
        }
    }

    /// The collector is away; that is said once.
    fn is_gone(&mut self, reason: &str) {
        if !std::mem::replace(&mut self.is_away, true) {
            let collector = self.collector.url();
            tracing::warn!(
                collector,
                reason,
                "the collector is away; spans wait in the log until it is back"
            );
        }
    }

    /// Tells how many entries it is behind.
    async fn measure(&self) -> Result<(), Error> {
        let last = audit::last_position(&*self.log).await?;
        self.lag.store(last.saturating_sub(self.sent), Ordering::Relaxed);
        Ok(())
    }

    fn keep_now_and_then(&mut self) {
        if clock::now_us() >= self.kept_us.saturating_add(KEEP_EVERY_US) {
            self.keep();
        }
    }

    /// Writes the position into its file.
    fn keep(&mut self) {
        let Some(file) = self.file.as_deref().filter(|_| self.kept != self.sent) else { return };
        self.kept_us = clock::now_us();
        match write(file, &Kept { log: self.resource.log.to_string(), position: self.sent }) {
            Ok(()) => self.kept = self.sent,
            Err(error) => {
                let file = file.display();
                tracing::warn!(
                    %file, %error,
                    "the position of OpenTelemetry can't be kept; spans are sent again after a \
                     restart"
                );
            }
        }
    }
}

/// What a position's file says, if it is there.
fn position(file: &Path) -> Result<Option<Kept>, Failure> {
    let shown = file.display();
    let way = "remove it, and the spans of the whole log are sent again";
    match std::fs::read(file) {
        Ok(bytes) => serde_json::from_slice(&bytes)
            .map(Some)
            .map_err(|it| Failure::Untried(format!("{shown} holds no position: {it}; {way}"))),
        Err(it) if it.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(it) => Err(Failure::Untried(format!("{shown} can't be read: {it}; {way}"))),
    }
}

fn write(file: &Path, kept: &Kept) -> std::io::Result<()> {
    let mut to = AtomicFile::over(file)?;
    serde_json::to_writer(&mut to, kept)?;
    to.write_all(b"\n")?;
    to.keep()
}
