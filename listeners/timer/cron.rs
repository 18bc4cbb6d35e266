//! Cron patterns: the five fields minute, hour, day, month and weekday, or six fields with the
//! second first.
//!
//! ```
//! use jiff::tz::TimeZone;
//! use pumphouse::listeners::timer::cron;
//!
//! assert!(cron::check("0 9 * * MON").is_ok());
//! let monday = 1_774_861_200_000_000; // 2026-03-30, 9:00 UTC.
//! assert_eq!(cron::after("0 9 * * MON", monday - 1, &TimeZone::UTC), Some(monday));
//! ```

use std::str::FromStr;

use croner::Cron;
use jiff::tz::TimeZone;
use pumphouse::wire::Timestamp;

/// The fields of a cron pattern, and the values that each takes.
const FIELDS: [(&str, &str); 6] = [
    ("second", "0 to 59"),
    ("minute", "0 to 59"),
    ("hour", "0 to 23"),
    ("day", "1 to 31"),
    ("month", "1 to 12 or JAN to DEC"),
    ("weekday", "0 to 7 or SUN to SAT"),
];

/// Checks a pattern.
///
/// # Errors
/// Fails if the text isn't a cron pattern. If a field is wrong, the error names the first wrong one
/// and the values that it takes.
pub fn check(pattern: &str) -> Result<(), String> {
    Cron::from_str(pattern).map(drop).map_err(|_| misfit(pattern))
}

/// The first time after `us` that a pattern matches in a time zone. Both times are in microseconds
/// since the epoch. None if the pattern matches no later time up to the year 5000, where the search
/// ends.
#[must_use]
pub fn after(pattern: &str, us: u64, zone: &TimeZone) -> Option<u64> {
    let time = Timestamp::from_microsecond(i64::try_from(us).ok()?).ok()?;
    let next =
        Cron::from_str(pattern).ok()?.find_next_occurrence(&time.to_zoned(zone.clone()), false);
    u64::try_from(next.ok()?.timestamp().as_microsecond()).ok()
}

/// The error for a text that is no cron pattern. If fields are wrong, the error names the first.
fn misfit(pattern: &str) -> String {
    let words: Vec<&str> = pattern.split_whitespace().collect();
    let fields = match words.len() {
        5 => &FIELDS[1..],
        6 => &FIELDS[..],
        many => {
            let five = "minute, hour, day, month and weekday, as in */5 * * * *";
            return format!("cron takes five fields, {five}, or a second first; it has {many}");
        }
    };
    let fits_alone = |at: usize| {
        let alone = (0..words.len()).map(|it| if it == at { words[it] } else { "*" });
        Cron::from_str(&alone.collect::<Vec<_>>().join(" ")).is_ok()
    };
    let wrong = (0..words.len()).find(|at| !fits_alone(*at));
    wrong.map_or_else(
        || format!("cron: {pattern} is no pattern; say one such as */5 * * * *"),
        |at| {
            let (name, range) = fields[at];
            let what = "with lists, ranges and steps such as 1,2 or 1-5 or */2";
            format!("cron: {} is no {name}; it takes {range}, or *, {what}", words[at])
        },
    )
}
