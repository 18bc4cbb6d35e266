//! Waits by the system's clock, for the time limit of a call or before another attempt.

use std::time::Duration;

/// Waits for `time`.
#[expect(clippy::disallowed_methods, reason = "a call's own time, which no log depends on")]
pub(super) async fn pass_time(time: Duration) {
    tokio::time::sleep(time).await;
}
