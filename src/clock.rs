//! The system's time and random bytes, for all other modules. Only hash tables take their random
//! keys from the system themselves.

use std::sync::OnceLock;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// Returns the time in microseconds since the Unix epoch, from a monotonic clock: the wall-clock
/// time of the first call in this process, plus the time elapsed since then. Setting the wall clock
/// after that first call has no effect.
#[must_use]
#[expect(clippy::disallowed_methods, reason = "this is the one place that asks the system")]
pub fn now_us() -> u64 {
    static BEGAN: OnceLock<(Instant, u64)> = OnceLock::new();
    let (began, wall_us) = BEGAN.get_or_init(|| (Instant::now(), wall_us()));
    let passed = u64::try_from(began.elapsed().as_micros()).unwrap_or(u64::MAX);
    wall_us.saturating_add(passed)
}

/// Returns the time in microseconds since the Unix epoch, from the wall clock, which may jump
/// forwards and back. Returns 0 if the wall clock is set to a time before the epoch.
#[must_use]
#[expect(clippy::disallowed_methods, reason = "this is the one place that asks the system")]
pub fn wall_us() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_micros()).unwrap_or(u64::MAX)
}

/// Returns cryptographically secure random bytes, from the system.
///
/// # Panics
/// If the system can't give random bytes. Without them, no secret would be safe.
#[must_use]
pub fn random_bytes<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    #[expect(clippy::expect_used, reason = "without chance no id and no key would be safe")]
    getrandom::fill(&mut bytes).expect("the system gives random bytes");
    bytes
}

/// Returns a random number, made of eight [`random_bytes`].
#[must_use]
pub fn random() -> u64 {
    u64::from_le_bytes(random_bytes())
}
