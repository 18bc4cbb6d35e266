//! The pauses before a failed request is sent again.
//!
//! Requests are retried three times by default, after about 1, 2 and 4 seconds, and no pause is
//! longer than a minute. Each pause varies by up to 25 % in either direction, so that requests that
//! failed together don't return together. The numbers are those of the LLM router that this project
//! comes from.

use std::time::Duration;

use tokio::time::Sleep;

use crate::clock;

/// Returns the pause after a failed attempt. `failed_before` is the number of attempts that had
/// failed before this one.
pub(super) fn pause(failed_before: usize, min: Duration, max: Duration) -> Duration {
    let twice = u32::try_from(failed_before).ok().and_then(|it| 1_u32.checked_shl(it));
    let whole = min.saturating_mul(twice.unwrap_or(u32::MAX)).min(max);
    let chance = (clock::random() >> 32) as f64 / f64::from(u32::MAX);
    whole.mul_f64(0.75 + chance / 2.0).min(max)
}

/// Sleeps by tokio's clock.
#[expect(clippy::disallowed_methods, reason = "a server and its time are beyond any simulation")]
pub(super) fn sleep(time: Duration) -> Sleep {
    tokio::time::sleep(time)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_doubles_up_to_its_limit_and_a_quarter_of_it_is_chance() {
        let (min, max) = (Duration::from_secs(1), Duration::from_secs(60));
        for (failed, whole) in [(0, 1.0), (1, 2.0), (2, 4.0), (5, 32.0), (6, 60.0), (99, 60.0)] {
            for _ in 0..100 {
                let pause = pause(failed, min, max).as_secs_f64();
                assert!(pause >= whole * 0.75 && pause <= whole * 1.25 && pause <= 60.0, "{pause}");
            }
        }
    }
}
