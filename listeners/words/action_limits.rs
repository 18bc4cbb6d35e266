//! The limits of a turn's actions, as `cognition_in` records them.

use std::time::Duration;

use pumphouse::limits::ActionLimits;
use pumphouse::prelude::*;
use pumphouse::wire::SignedDuration;

/// The limits of a turn's actions. Absent limits have their defaults.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Payload)]
pub struct Limited {
    /// Actions in the turn; default 256.
    #[payload(attribute)]
    pub in_turn_max: Option<u64>,
    /// Actions that run at once; default 5.
    #[payload(attribute)]
    pub at_once: Option<u64>,
    /// Actions that begin together, if batched; default 5.
    #[payload(attribute)]
    pub batch: Option<u64>,
    /// How long an action waits for others, if batched; default 0.1 s.
    #[payload(attribute, example = "PT0.1S")]
    pub batch_delay: Option<SignedDuration>,
    /// The timeout of an action that sets none; default 300 s.
    #[payload(attribute, example = "PT300S")]
    pub timeout: Option<SignedDuration>,
    /// The longest timeout of an action; default 24 h.
    #[payload(attribute, example = "PT86400S")]
    pub timeout_max: Option<SignedDuration>,
    /// Retries of an action; default 5.
    #[payload(attribute)]
    pub retry_max: Option<u64>,
    /// The pause before the first retry; default 1 s.
    #[payload(attribute, example = "PT1S")]
    pub retry_delay: Option<SignedDuration>,
}

impl Limited {
    /// The limits that differ from the defaults. None if all are the defaults.
    #[must_use]
    pub fn of(limits: &ActionLimits) -> Option<Limited> {
        let usual = ActionLimits::default();
        let count = |is: usize, usual: usize| (is != usual).then_some(is as u64);
        let time = |is: Duration, usual: Duration| {
            (is != usual).then(|| SignedDuration::try_from(is).unwrap_or(SignedDuration::MAX))
        };
        let it = Limited {
            in_turn_max: count(limits.in_turn_max, usual.in_turn_max),
            at_once: count(limits.at_once, usual.at_once),
            batch: count(limits.batch, usual.batch),
            batch_delay: time(limits.batch_delay, usual.batch_delay),
            timeout: time(limits.timeout, usual.timeout),
            timeout_max: time(limits.timeout_max, usual.timeout_max),
            retry_max: count(limits.retry_max, usual.retry_max),
            retry_delay: time(limits.retry_delay, usual.retry_delay),
        };
        (it != Limited::default()).then_some(it)
    }

    /// All limits: the defaults, with these changes.
    #[must_use]
    pub fn limits(&self) -> ActionLimits {
        let mut all = ActionLimits::default();
        let count = |to: &mut usize, said: Option<u64>| {
            *to = said.and_then(|it| usize::try_from(it).ok()).unwrap_or(*to);
        };
        let time = |to: &mut Duration, said: Option<SignedDuration>| {
            *to = said.and_then(|it| Duration::try_from(it).ok()).unwrap_or(*to);
        };
        count(&mut all.in_turn_max, self.in_turn_max);
        count(&mut all.at_once, self.at_once);
        count(&mut all.batch, self.batch);
        time(&mut all.batch_delay, self.batch_delay);
        time(&mut all.timeout, self.timeout);
        time(&mut all.timeout_max, self.timeout_max);
        count(&mut all.retry_max, self.retry_max);
        time(&mut all.retry_delay, self.retry_delay);
        all
    }
}
