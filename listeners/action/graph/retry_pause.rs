//! The pause before an action is retried. It follows the action's `retry_delay`, `backoff` and
//! `retry_delay_max`. [`ActionLimits`](pumphouse::limits::ActionLimits) has the default of
//! `retry_delay`. Without `retry_delay_max`, the pause has no limit.

use super::super::words::Backoff;
use super::define::ActionDefinition;

impl ActionDefinition {
    /// The pause after an attempt that failed, in microseconds. `attempts` is the number of
    /// attempts so far.
    pub(super) fn pause_us(&self, attempts: u32) -> u64 {
        let times = attempts.saturating_sub(1).min(32);
        let factor = match self.action.backoff.unwrap_or_default() {
            Backoff::Exponential => 1 << times,
            Backoff::Linear => u64::from(times) + 1,
            Backoff::None => 1,
        };
        let most = self.action.retry_delay_max.map(|it| u64::try_from(it.as_micros()).unwrap_or(0));
        self.retry_delay_us.saturating_mul(factor).min(most.unwrap_or(u64::MAX))
    }
}
