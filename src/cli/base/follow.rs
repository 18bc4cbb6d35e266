//! Waits for new entries of a log that another process writes.

use std::time::Duration;

use crate::cli::base::screen::{Ending, Failure};
use crate::cli::base::signals::Signals;
use crate::clock;
use crate::engine::{Port as _, Tokio};

/// How long a reader waits between two queries for new entries. Each query costs one index lookup.
const PAUSE: Duration = Duration::from_millis(100);

/// Sleeps for the time between two queries.
pub(crate) async fn pause() {
    let pause = u64::try_from(PAUSE.as_micros()).unwrap_or(u64::MAX);
    Tokio::current().sleep_until(clock::now_us().saturating_add(pause)).await;
}

/// Runs `reading` until it ends or a stop signal comes. A stop signal counts as success.
pub(crate) async fn until_stopped(
    reading: impl Future<Output = Result<Ending, Failure>>,
) -> Result<Ending, Failure> {
    let mut signals = Signals::listen()?;
    tokio::select! {
        ended = reading => ended,
        _ = signals.next() => Ok(Ending::Well),
    }
}
