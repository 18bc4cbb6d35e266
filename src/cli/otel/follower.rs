//! A follower of the log of a pump that runs: its spans go to a collector when they are over.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use tokio::sync::oneshot;

use crate::cli::otel::batch::{SPANS_MAX, send};
use crate::cli::screen::Failure;
use crate::engine::{Port as _, Tokio};
use crate::follower::{Away, Follower, KeptPosition, NoPosition, Sent, Target};
use crate::log::{Entry, Error, Log};
use crate::manifest::Otel;
use crate::otel::{Collector, Projection, Resource, Span, Unsent};

/// How long a stop waits for the collector.
const STOP_TIME_MAX_US: u64 = 5_000_000;

/// Sends the spans of a log.
struct Spans {
    collector: Collector,
    resource: Resource,
    projection: Projection,
    /// Spans that end up to where entries were taken in, and aren't sent.
    waiting: Vec<Span>,
}

/// A follower that runs.
pub(crate) struct Running {
    stop: oneshot::Sender<()>,
    over: oneshot::Receiver<()>,
}

impl Running {
    /// Has it send what is there, for a while, and keep its position.
    pub(crate) async fn stop(self) {
        // An error says that it is over already.
        let _ = self.stop.send(());
        let _ = self.over.await;
    }
}

/// Starts a follower that goes on where the file says, or at the log's beginning.
pub(crate) async fn start(
    log: Arc<dyn Log>,
    says: &Otel,
    name: Option<&str>,
    file: Option<PathBuf>,
    lag: Arc<AtomicU64>,
) -> Result<Running, Failure> {
    let collector = Collector::new(&says.endpoint, says.headers());
    let collector = collector.map_err(|it| Failure::Untried(format!("otel: {it}")))?;
    let position = KeptPosition::read(&*log, file).await.map_err(|it| match it {
        NoPosition::File(text) => Failure::Untried(text),
        NoPosition::Log(error) => error.into(),
    })?;
    let spans = Spans {
        resource: Resource::new(name, log.identity().uuid),
        projection: Projection::new(log.clone()).content(says.content),
        collector,
        waiting: Vec::new(),
    };
    let follower = Follower::new(log, spans, position, lag);
    let (stop, stopped) = oneshot::channel::<()>();
    let (done, over) = oneshot::channel();
    Tokio::current().spawn(async move {
        let stopped = async move { drop(stopped.await) };
        follower.run(stopped, STOP_TIME_MAX_US).await;
        // An error says that nobody waits for it.
        let _ = done.send(());
    });
    Ok(Running { stop, over })
}

impl Target for Spans {
    async fn take(&mut self, entry: Arc<Entry>) -> Result<(), Error> {
        let spans = self.projection.take(&entry).await?;
        self.waiting.extend(spans);
        Ok(())
    }

    fn has_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    async fn send(&mut self) -> Result<Sent, Away> {
        while !self.waiting.is_empty() {
            let count = self.waiting.len().min(SPANS_MAX);
            match send(&self.collector, &self.waiting[..count], &self.resource).await {
                Ok(rejected) => self.tell_rejected(count, rejected),
                Err(Unsent::Away(reason)) => return Err(Away(reason)),
                Err(error) => {
                    let collector = self.collector.url();
                    tracing::warn!(
                        collector, spans = count, %error,
                        "the collector refuses spans, and they are left out; see what it logs"
                    );
                }
            }
            self.waiting.drain(..count);
        }
        Ok(Sent::All)
    }

    fn is_gone(&self, reason: &str) {
        let collector = self.collector.url();
        tracing::warn!(
            collector,
            reason,
            "the collector is away; spans wait in the log until it is back"
        );
    }

    fn is_back(&self) {
        let collector = self.collector.url();
        tracing::info!(collector, "the collector is back, and gets the spans that waited");
    }
}

impl Spans {
    fn tell_rejected(&self, count: usize, rejected: u64) {
        if rejected > 0 {
            let collector = self.collector.url();
            tracing::warn!(
                collector,
                rejected,
                spans = count,
                "the collector didn't take some spans; see what it logs"
            );
        }
    }
}
