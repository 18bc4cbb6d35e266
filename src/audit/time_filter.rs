//! Parses times as people write them: a duration before now, such as `10m`, or a date, with or
//! without a time of day.

use std::fmt;
use std::str::FromStr;

use jiff::civil::{Date, DateTime};
use jiff::tz::TimeZone;
use jiff::{Span, SpanRelativeTo, Timestamp};

/// A moment: an absolute time, or a duration before now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum When {
    /// An absolute time, in microseconds since the epoch.
    At(u64),
    /// A duration before now, in microseconds.
    Ago(u64),
}

impl When {
    /// The moment in microseconds since the epoch. `now_us` is the present time in the same unit.
    #[must_use]
    pub const fn at_us(self, now_us: u64) -> u64 {
        match self {
            When::At(at_us) => at_us,
            When::Ago(ago_us) => now_us.saturating_sub(ago_us),
        }
    }
}

impl FromStr for When {
    type Err = NoWhen;

    fn from_str(text: &str) -> Result<When, NoWhen> {
        let at = |it: Timestamp| u64::try_from(it.as_microsecond()).map(When::At);
        let utc = |it: DateTime| it.to_zoned(TimeZone::UTC).map(|it| it.timestamp());
        if let Ok(it) = text.parse::<Timestamp>() {
            return at(it).map_err(|_| NoWhen);
        }
        // A time without a zone is in UTC, like all times that are shown.
        let is_time = text.contains(['T', ' ']) && text.contains(':');
        if let Some(it) = text.parse::<DateTime>().ok().filter(|_| is_time) {
            return utc(it).ok().and_then(|it| at(it).ok()).ok_or(NoWhen);
        }
        if let Ok(it) = text.parse::<Date>() {
            return utc(it.into()).ok().and_then(|it| at(it).ok()).ok_or(NoWhen);
        }
        let span: Span = text.parse().map_err(|_| NoWhen)?;
        let ago = span.to_duration(SpanRelativeTo::days_are_24_hours()).map_err(|_| NoWhen)?;
        u64::try_from(ago.as_micros()).map(When::Ago).map_err(|_| NoWhen)
    }
}

/// The error of a text that isn't a time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoWhen;

impl fmt::Display for NoWhen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a time is 90s, 10m, 2h, 3d or 1w ago, or 2026-11-22, 2026-11-22T10:00 in UTC")
    }
}

impl std::error::Error for NoWhen {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::iso_time;

    #[test]
    fn a_time_is_read() {
        const NOW: &str = "2026-11-22T12:00:00Z";
        let now: Timestamp = NOW.parse().unwrap();
        let now_us = u64::try_from(now.as_microsecond()).unwrap();
        for (given, expected) in [
            ("90s", "2026-11-22T11:58:30.000000Z"),
            ("10m", "2026-11-22T11:50:00.000000Z"),
            ("2h", "2026-11-22T10:00:00.000000Z"),
            ("1h30m", "2026-11-22T10:30:00.000000Z"),
            ("3d", "2026-11-19T12:00:00.000000Z"),
            ("1w", "2026-11-15T12:00:00.000000Z"),
            ("2026-11-22", "2026-11-22T00:00:00.000000Z"),
            ("2026-11-22T10:00", "2026-11-22T10:00:00.000000Z"),
            ("2026-11-22 10:00:05", "2026-11-22T10:00:05.000000Z"),
            ("2026-11-22T10:00:05.123456Z", "2026-11-22T10:00:05.123456Z"),
            ("2026-11-22T10:00:00+02:00", "2026-11-22T08:00:00.000000Z"),
        ] {
            let when: When = given.parse().unwrap_or_else(|_| panic!("{given}"));
            assert_eq!(iso_time(when.at_us(now_us)), expected, "{given}");
        }
    }

    #[test]
    fn what_is_no_time_is_refused() {
        for given in ["", "soon", "10", "10:00", "2026-13-01", "2026-11-22T25:00", "-10m", "1mo"] {
            assert_eq!(given.parse::<When>(), Err(NoWhen), "{given}");
        }
    }
}
