//! Waiting for what is still to come into a log that another process writes.

use std::time::Duration;

use crate::cli::screen::{Ending, Failure};
use crate::cli::signals::Signals;
use crate::clock;
use crate::engine::{Port as _, Tokio};

/// How often the log is asked for more: one look into an index each time.
const PAUSE: Duration = Duration::from_millis(100);

/// Until it is time to look again.
pub(crate) async fn pause() {
    let pause = u64::try_from(PAUSE.as_micros()).unwrap_or(u64::MAX);
    Tokio::current().sleep_until(clock::now_us().saturating_add(pause)).await;
}

/// Reads on until it is told to stop, which is a good end.
pub(crate) async fn until_stopped(
    reading: impl Future<Output = Result<Ending, Failure>>,
) -> Result<Ending, Failure> {
    let mut signals = Signals::listen()?;
    tokio::select! {
        ended = reading => ended,
        _ = signals.next() => Ok(Ending::Well),
    }
}
