//! Rate limits and refusals of providers. An agent waits for the end of a rate limit: a timer in
//! its thread ticks when the provider may be asked again. A provider that refuses isn't asked
//! again, unless the prompt was too long.

use std::time::Duration;

use pumphouse::model;
use pumphouse::model::Kind;
use pumphouse::wire::SignedDuration;

use super::super::timer::SetTimer;
use super::words::RateLimited;

/// The shortest wait for which a timer is set.
const WAIT_MIN: Duration = Duration::from_secs(1);
/// The text about a reply that a provider's content filter stopped.
pub(super) const FILTERED: &str = "The provider's content filter stopped the last reply.";
/// The note of the timer's tick.
const NOTE: &str = "The rate limit of your model is over.";

/// A provider's refusal of a prompt that is too long.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Refusal {
    /// The tokens of the prompt, if the provider says how many.
    pub(super) tokens: Option<u64>,
    /// The tokens that the model takes, if the provider says how many.
    pub(super) window: Option<u64>,
}

impl Refusal {
    /// The refusal that an error reports, for the model itself or for one of a router's models.
    pub(super) fn of(error: &model::Error) -> Option<Refusal> {
        let mut all = std::iter::once(error).chain(&error.tried);
        let error = all.find(|it| it.kind == Kind::PromptTooLong)?;
        Some(Refusal { tokens: error.prompt_tokens, window: error.window.map(u64::from) })
    }
}

/// Whether a retry would be refused, too, since the provider demands another key, model or request,
/// or a payment.
pub(super) fn is_refused(error: &model::Error) -> bool {
    matches!(error.kind, Kind::Refused | Kind::RateLimited) && !error.retry
}

/// Whether an error of this kind means that the model isn't available now.
pub(super) fn is_down(kind: Kind) -> bool {
    !matches!(kind, Kind::PromptTooLong | Kind::Spent | Kind::OffRecord)
}

/// The time for which a provider accepts no further request. None if the provider names no time, or
/// one below `WAIT_MIN`. Shorter waits are left to the client's own retries, and an error after
/// these retries counts as a failure.
pub(super) fn limited(error: &model::Error) -> Option<Duration> {
    let is_limited = error.kind == Kind::RateLimited && error.retry;
    error.retry_after.filter(|it| is_limited && *it >= WAIT_MIN)
}

/// The time that an agent waits for the end of a rate limit, in milliseconds. None if there is no
/// limit, or if the wait is longer than `wait_max`.
pub(super) fn wait_ms(limited: Option<Duration>, wait_max: Duration) -> Option<u64> {
    let wait = limited.filter(|it| *it <= wait_max)?;
    u64::try_from(wait.as_millis()).ok()
}

/// The payload that tells the agent's caller of the wait.
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
