//! The only source of time and chance. Everything above asks here or is told.

use std::sync::OnceLock;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// Microseconds since the Unix epoch: what the wall clock said when the process first asked, and
/// the time that has passed since. Setting the wall clock changes nothing here.
#[must_use]
#[expect(clippy::disallowed_methods, reason = "this is the one place that asks the system")]
pub fn now_us() -> u64 {
    static BEGAN: OnceLock<(Instant, u64)> = OnceLock::new();
    let (began, wall_us) = BEGAN.get_or_init(|| (Instant::now(), wall_us()));
    let passed = u64::try_from(began.elapsed().as_micros()).unwrap_or(u64::MAX);
    wall_us.saturating_add(passed)
}

/// Microseconds since the Unix epoch by the wall clock, which may be set forwards and back.
#[must_use]
#[expect(clippy::disallowed_methods, reason = "this is the one place that asks the system")]
pub fn wall_us() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_micros()).unwrap_or(u64::MAX)
}

/// Bytes that nobody can guess.
///
/// # Panics
/// Where the system has no source of chance: nothing here could be secret then.
#[must_use]
pub fn random_bytes<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    #[expect(clippy::expect_used, reason = "without chance no id and no key would be safe")]
    getrandom::fill(&mut bytes).expect("the system gives random bytes");
    bytes
}

/// Eight bytes that nobody can guess, as a number.
#[must_use]
pub fn random() -> u64 {
    u64::from_le_bytes(random_bytes())
}
