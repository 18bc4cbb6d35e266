//! A token bucket that limits an amount in a minute.

use std::time::Duration;

const MINUTE_US: u64 = 60_000_000;
/// The most minutes' worth that is taken at once. The count of a faulty provider may have any size,
/// and must not close a model for good.
const TAKEN_MINUTES_MAX: u64 = 10;

/// A token bucket. It holds at most the amount of one minute, and refills evenly.
#[derive(Debug)]
pub(super) struct Bucket {
    per_minute: u64,
    /// The amount left at `at_us`, in millionths. Negative if more was taken than was left.
    level: i128,
    at_us: u64,
}

impl Bucket {
    /// A full bucket. An amount of 0 counts as 1.
    pub(super) fn full(per_minute: u64, now_us: u64) -> Bucket {
        let per_minute = per_minute.max(1);
        Bucket { per_minute, level: micros(per_minute), at_us: now_us }
    }

    fn level(&self, now_us: u64) -> i128 {
        let passed = now_us.saturating_sub(self.at_us);
        let filled = micros(self.per_minute).saturating_mul(i128::from(passed));
        let level = self.level.saturating_add(filled / i128::from(MINUTE_US));
        level.min(micros(self.per_minute))
    }

    /// Returns how long it takes until the bucket holds an amount. None if the bucket holds it now.
    /// For an amount larger than that of a minute, a full bucket is enough.
    pub(super) fn wait(&self, amount: u64, now_us: u64) -> Option<Duration> {
        let missing = micros(amount.min(self.per_minute)).saturating_sub(self.level(now_us));
        if missing <= 0 {
            return None;
        }
        let rate = micros(self.per_minute);
        let us = missing.saturating_mul(i128::from(MINUTE_US)).saturating_add(rate - 1) / rate;
        Some(Duration::from_micros(u64::try_from(us).unwrap_or(u64::MAX)))
    }

    /// Takes an amount, even if the bucket holds less, but at most what ten minutes refill.
    pub(super) fn take(&mut self, amount: u64, now_us: u64) {
        let amount = amount.min(self.per_minute.saturating_mul(TAKEN_MINUTES_MAX));
        self.level = self.level(now_us).saturating_sub(micros(amount));
        self.at_us = now_us.max(self.at_us);
    }
}

fn micros(amount: u64) -> i128 {
    i128::from(amount) * 1_000_000
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_minute_allows_is_there_at_once_and_comes_back_evenly() {
        let mut bucket = Bucket::full(60, 0);
        assert_eq!(bucket.wait(60, 0), None);
        bucket.take(60, 0);
        assert_eq!(bucket.wait(1, 0), Some(Duration::from_secs(1)));
        assert_eq!(bucket.wait(1, 500_000), Some(Duration::from_millis(500)));
        assert_eq!(bucket.wait(1, 1_000_000), None);
        assert_eq!(bucket.wait(60, 120_000_000), None, "it never holds more than a minute allows");
        assert!(bucket.wait(61, 0).is_some_and(|it| it == Duration::from_secs(60)));
    }

    #[test]
    fn what_was_used_beyond_it_is_waited_for() {
        let mut bucket = Bucket::full(600, 0);
        bucket.take(1_200, 0);
        assert_eq!(bucket.wait(100, 0), Some(Duration::from_secs(70)));
        assert_eq!(Bucket::full(600, 0).wait(5_000, 0), None, "a large request begins when full");
    }

    #[test]
    fn no_amount_closes_it_for_longer_than_ten_minutes() {
        let mut bucket = Bucket::full(600, 0);
        bucket.take(u64::MAX, 0);
        assert_eq!(bucket.wait(600, 0), Some(Duration::from_secs(600)));
    }

    #[test]
    fn an_amount_as_large_as_there_is_overflows_nowhere() {
        let mut bucket = Bucket::full(u64::MAX, 0);
        bucket.take(u64::MAX, 0);
        assert_eq!(bucket.wait(u64::MAX, 0), Some(Duration::from_secs(60)));
        assert_eq!(bucket.wait(u64::MAX, u64::MAX), None);
    }
}
