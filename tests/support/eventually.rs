//! Waiting for what comes in its own time, such as another process or a log that grows.

use std::panic::Location;
use std::time::{Duration, Instant};

/// How long a condition has to come true. It is long enough for a machine with other work.
const PATIENCE: Duration = Duration::from_secs(60);

/// How long the wait between two looks is.
const PAUSE: Duration = Duration::from_millis(2);

/// Waits until a condition holds. Panics if it doesn't in time, and names the caller.
#[track_caller]
#[expect(clippy::disallowed_methods, reason = "what is waited for goes by the clock")]
pub(crate) fn eventually(mut holds: impl AsyncFnMut() -> bool) -> impl Future<Output = ()> {
    let caller = Location::caller();
    async move {
        let begun = Instant::now();
        while !holds().await {
            assert!(begun.elapsed() < PATIENCE, "what {caller} waits for didn't come");
            tokio::time::sleep(PAUSE).await;
        }
    }
}
