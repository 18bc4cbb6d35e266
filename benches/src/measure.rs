//! Computes figures from measured times: rates, the time of the quickest round, and percentiles.

use std::hint::black_box;

use pumphouse::clock;

/// How many rounds are timed. Only the quickest round counts.
const ROUNDS: usize = 5;

/// Waits in microseconds, the shortest first.
#[derive(Debug)]
pub(crate) struct Waits(Vec<u64>);

impl Waits {
    pub(crate) fn of(mut waits: Vec<u64>) -> Waits {
        waits.sort_unstable();
        Waits(waits)
    }

    /// Returns a percentile of the waits, in microseconds. Returns 0 if there are no waits.
    pub(crate) fn at(&self, percent: usize) -> f64 {
        let rank = (self.0.len() * percent).div_ceil(100);
        let wait = self.0.get(rank.saturating_sub(1)).copied().unwrap_or(0);
        number(wait)
    }
}

/// Returns the rate per second of `count` events since a time.
pub(crate) fn rate(count: u64, since_us: u64) -> f64 {
    number(count) * 1e6 / since(since_us)
}

/// Returns the average time of a call in the quickest of several rounds, in microseconds. Other
/// processes disturb that round least.
pub(crate) fn quickest_us<T>(times: u64, mut call: impl FnMut() -> T) -> f64 {
    let rounds = (0..ROUNDS).map(|_| {
        let since_us = clock::now_us();
        for _ in 0..times {
            black_box(call());
        }
        since(since_us)
    });
    rounds.fold(f64::INFINITY, f64::min) / number(times)
}

/// Returns the microseconds since a time, and at least 1.
fn since(since_us: u64) -> f64 {
    number(clock::now_us().saturating_sub(since_us).max(1))
}

#[expect(clippy::cast_precision_loss, reason = "figures have fewer digits")]
pub(crate) fn number(count: u64) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentile_is_a_wait_that_was() {
        let waits = Waits::of((1..=200).rev().collect());
        assert_eq!([waits.at(50), waits.at(99), waits.at(100)], [100.0, 198.0, 200.0]);
        assert_eq!(Waits::of(vec![7]).at(50), 7.0);
        assert_eq!(Waits::of(Vec::new()).at(99), 0.0);
    }
}
