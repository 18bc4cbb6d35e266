//! Follows the log of a running pump, and sends each span to a collector once the span has ended.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use tokio::sync::oneshot;

use crate::cli::base::screen::Failure;
use crate::cli::otel::batch::{SPANS_MAX, send};
use crate::clock;
use crate::engine::{Port as _, Tokio};
use crate::follower::{Follower, KeptPosition, NoPosition, Sent, Target, Unreachable};
use crate::log::{Entry, Error, Log};
use crate::manifest::Otel;
use crate::otel::{Collector, Metrics, Projection, Resource, Span, Unsent};

/// How long a stop waits for the collector, in microseconds.
const STOP_TIME_MAX_US: u64 = 5_000_000;
/// The shortest time between two exports of metrics, in microseconds.
const METRICS_EVERY_US: u64 = 1_000_000;
/// The pause before metrics are sent again after a failure, in microseconds.
const METRICS_AWAY_US: u64 = 30_000_000;

/// The target that sends the spans of a log.
struct Spans {
    collector: Collector,
    resource: Resource,
    projection: Projection,
    /// Spans that have ended and aren't sent yet.
    waiting: Vec<Span>,
    metrics: Option<SentMetrics>,
}

/// Metrics of the spans that were sent, including those that the collector refused. Spans don't
/// wait for metrics, because a collector may take traces only.
struct SentMetrics {
    all: Metrics,
    /// Whether the metrics have changed since they were last sent.
    has_news: bool,
    /// When the metrics may be sent next, in microseconds.
    next_us: u64,
    /// Whether the collector didn't take the metrics the last time.
    is_refused: bool,
}

impl SentMetrics {
    fn since(now_us: u64) -> SentMetrics {
        let all = Metrics::since(now_us);
        SentMetrics { all, has_news: false, next_us: 0, is_refused: false }
    }
}

/// A running follower.
pub(crate) struct RunningFollower {
    stop: oneshot::Sender<()>,
    over: oneshot::Receiver<()>,
}

impl RunningFollower {
    /// Stops the follower. Before it ends, it sends the spans that are left, for up to 5 s, and
    /// keeps its position.
    pub(crate) async fn stop(self) {
        // An error means that the follower has ended already.
        let _ = self.stop.send(());
        let _ = self.over.await;
    }
}

/// Starts a follower at the position in the file, or at the log's beginning if there is none.
pub(crate) async fn start(
    log: Arc<dyn Log>,
    says: &Otel,
    name: Option<&str>,
    file: Option<PathBuf>,
    lag: Arc<AtomicU64>,
) -> Result<RunningFollower, Failure> {
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
        metrics: says.metrics.then(|| SentMetrics::since(clock::now_us())),
    };
    let follower = Follower::new(log, spans, position, lag);
    let (stop, stopped) = oneshot::channel::<()>();
    let (done, over) = oneshot::channel();
    Tokio::current().spawn(async move {
        let stopped = async move { drop(stopped.await) };
        follower.run(stopped, STOP_TIME_MAX_US).await;
        // An error means that nobody waits for the end.
        let _ = done.send(());
    });
    Ok(RunningFollower { stop, over })
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

    async fn send(&mut self) -> Result<Sent, Unreachable> {
        while !self.waiting.is_empty() {
            let count = self.waiting.len().min(SPANS_MAX);
            match send(&self.collector, &self.waiting[..count], &self.resource).await {
                Ok(rejected) => self.tell_rejected(count, rejected),
                Err(Unsent::Away(reason)) => return Err(Unreachable(reason)),
                Err(error) => {
                    let collector = self.collector.url();
                    tracing::warn!(
                        collector, spans = count, %error,
                        "the collector refuses spans, and they are left out; see what it logs"
                    );
                }
            }
            for span in self.waiting.drain(..count) {
                if let Some(metrics) = &mut self.metrics {
                    metrics.has_news |= metrics.all.add(&span);
                }
            }
        }
        self.send_metrics().await;
        Ok(Sent::All)
    }

    async fn settle(&mut self) -> Result<(), Unreachable> {
        // Metrics are sent before the position is kept, because a later start doesn't count the
        // spans up to that position again.
        if let Some(metrics) = self.metrics.as_mut().filter(|it| !it.is_refused) {
            metrics.next_us = 0;
        }
        self.send_metrics().await;
        Ok(())
    }

    async fn end(&mut self) {
        if let Some(metrics) = &mut self.metrics {
            metrics.next_us = 0;
        }
        self.send_metrics().await;
    }

    fn report_unreachable(&self, reason: &str) {
        let collector = self.collector.url();
        tracing::warn!(
            collector,
            reason,
            "the collector is away; spans wait in the log until it is back"
        );
    }

    fn report_reachable(&self) {
        let collector = self.collector.url();
        tracing::info!(collector, "the collector is back, and gets the spans that waited");
    }
}

impl Spans {
    /// Sends the metrics if they have changed and may be sent again.
    async fn send_metrics(&mut self) {
        let now_us = clock::now_us();
        let Some(metrics) = &mut self.metrics else { return };
        if !metrics.has_news || now_us < metrics.next_us {
            return;
        }
        let sent = self.collector.send_metrics(metrics.all.encode(&self.resource, now_us)).await;
        let was_refused = std::mem::replace(&mut metrics.is_refused, sent.is_err());
        metrics.has_news = sent.is_err();
        let wait_us = if sent.is_err() { METRICS_AWAY_US } else { METRICS_EVERY_US };
        metrics.next_us = now_us.saturating_add(wait_us);
        if let Err(error) = sent
            && !was_refused
        {
            let collector = self.collector.url();
            tracing::warn!(
                collector, %error,
                "the collector takes no metrics; they are sent again each half minute, and \
                 `otel: {{metrics: false}}` leaves them out"
            );
        }
    }

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

#[cfg(test)]
mod tests;
