//! The time that a delivery waits for.

use crate::listener::Entry;
use crate::log::Flags;

/// A time that a delivery waits for, in microseconds since the epoch. [`u64::MAX`] never comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Until {
    /// A time of the monotonic clock.
    Passed(u64),
    /// A time of the wall clock.
    Clock(u64),
}

impl Until {
    /// Returns the time in the form of the log: a time of the wall clock, since the monotonic clock
    /// differs after a restart. `ahead_us` is how many microseconds the wall clock is ahead of the
    /// monotonic clock.
    pub(crate) fn kept(self, ahead_us: i64) -> u64 {
        match self {
            Until::Passed(NEVER) => NEVER,
            Until::Passed(us) => us.saturating_add_signed(ahead_us),
            Until::Clock(us) => us,
        }
    }

    /// Returns the time that an entry waits for, from its form in the log.
    pub(crate) fn of(entry: &Entry, kept_us: u64, ahead_us: i64) -> Until {
        match kept_us {
            NEVER => Until::Passed(NEVER),
            us if entry.flags().contains(Flags::BY_CLOCK) => Until::Clock(us),
            us => Until::Passed(us.saturating_sub_signed(ahead_us)),
        }
    }
}

const NEVER: u64 = u64::MAX;
