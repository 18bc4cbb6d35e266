//! A provider that says no. Where it takes no more requests for a while it is waited for: a timer
//! in the agent's thread ticks when it may be asked again. Where it refuses, it isn't asked again.

use std::time::Duration;

use pumphouse::model;
use pumphouse::model::Kind;
use pumphouse::wire::SignedDuration;

use super::super::timer::SetTimer;
use super::words::RateLimited;

/// The shortest wait that a timer is set for.
const WAIT_MIN: Duration = Duration::from_secs(1);
/// What is said of a reply that stops there.
pub(super) const FILTERED: &str = "The provider's content filter stopped the last reply.";
/// What the timer's tick says.
const NOTE: &str = "The rate limit of your model is over.";

/// Whether asking again is of no use: the provider wants another key, model or request, or money.
pub(super) fn is_refused(error: &model::Error) -> bool {
    matches!(error.kind, Kind::Refused | Kind::RateLimited) && !error.retry
}

/// How long a provider wants no further request, where it says so. A shorter wait is the client's
/// own business, and a provider that asks for it again and again fails.
pub(super) fn limited(error: &model::Error) -> Option<Duration> {
    let is_limited = error.kind == Kind::RateLimited && error.retry;
    error.retry_after.filter(|it| is_limited && *it >= WAIT_MIN)
}

/// The milliseconds that an agent waits, where that isn't too long for it.
pub(super) fn wait_ms(limited: Option<Duration>, wait_max: Duration) -> Option<u64> {
    let wait = limited.filter(|it| *it <= wait_max)?;
    u64::try_from(wait.as_millis()).ok()
}

/// What the agent's caller is told of the wait.
pub(super) fn rate_limited(waits_ms: u64) -> RateLimited {
    RateLimited { wait: duration(waits_ms) }
}

/// The timer that ticks when the provider may be asked again.
pub(super) fn rate_limit_timer(ms: u64) -> SetTimer {
    SetTimer {
        after: Some(duration(ms)),
        at: None,
        every: None,
        cron: None,
        note: Some(NOTE.to_owned()),
    }
}

fn duration(ms: u64) -> SignedDuration {
    SignedDuration::from_millis(i64::try_from(ms).unwrap_or(i64::MAX))
}
