//! OpenTelemetry in `run`: a follower that sends spans, if the manifest has `otel`.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use crate::cli::base::screen::Failure;
#[cfg(feature = "otel")]
use crate::cli::otel::follower::{self, RunningFollower};
use crate::door::Metrics;
use crate::engine::Pump;
use crate::manifest;

/// The settings of the follower that sends a running pump's spans.
pub(crate) struct FollowerSettings {
    /// Where spans go, if the manifest says so.
    pub(crate) says: Option<manifest::Otel>,
    /// The pump's name.
    pub(crate) name: Option<String>,
    /// The file of the log. None if the log is in memory only.
    pub(crate) log: Option<PathBuf>,
    /// How many entries the follower is behind the log.
    pub(crate) lag: Arc<AtomicU64>,
}

impl FollowerSettings {
    /// Adds the follower's lag to a door for metrics.
    pub(crate) fn show(&self, door: Metrics) -> Metrics {
        let help = "Entries of the log whose spans OpenTelemetry's collector doesn't have yet.";
        match &self.says {
            Some(_) => door.gauge("otel_lag_entries", help, self.lag.clone()),
            None => door,
        }
    }

    /// Starts the follower, if the manifest has `otel`.
    #[cfg(feature = "otel")]
    pub(crate) async fn start(self, pump: &Pump) -> Result<Following, Failure> {
        use crate::follower::file_beside;
        use crate::log::{Log, SqliteLog};
        let Some(says) = &self.says else { return Ok(Following(None)) };
        // The follower has its own reader of a log on disk. So it can read on after the pump has
        // closed the log.
        let log: Arc<dyn Log> = match &self.log {
            Some(path) => Arc::new(SqliteLog::open_read_only(path)?),
            None => pump.log().clone(),
        };
        let file = self.log.as_deref().map(|it| file_beside(it, "otel"));
        let name = self.name.as_deref();
        let running = follower::start(log, says, name, file, self.lag.clone()).await?;
        Ok(Following(Some(running)))
    }

    /// Does nothing. A build without the feature `otel` refuses a manifest that has `otel`.
    #[cfg(not(feature = "otel"))]
    #[expect(clippy::unused_async, reason = "as where it does something")]
    pub(crate) async fn start(self, _: &Pump) -> Result<Following, Failure> {
        drop((self.name, self.log));
        Ok(Following())
    }
}

/// The follower of a running pump, if there is one.
#[cfg(feature = "otel")]
pub(crate) struct Following(Option<RunningFollower>);

/// The follower of a running pump. This build has none.
#[cfg(not(feature = "otel"))]
pub(crate) struct Following();

impl Following {
    /// Stops the follower. Before it ends, it sends the spans that are left, for up to 5 s.
    #[cfg(feature = "otel")]
    pub(crate) async fn stop(self) {
        if let Some(running) = self.0 {
            running.stop().await;
        }
    }

    /// Does nothing.
    #[cfg(not(feature = "otel"))]
    #[expect(clippy::unused_async, reason = "as where it does something")]
    pub(crate) async fn stop(self) {}
}
