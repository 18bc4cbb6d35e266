//! Waiting by the system's clock, for tools. No log depends on this time.

use std::time::Duration;

/// Waits until so much time has passed.
#[expect(clippy::disallowed_methods, reason = "a call's own time, which no log depends on")]
pub(super) async fn pass_time(time: Duration) {
    tokio::time::sleep(time).await;
}
