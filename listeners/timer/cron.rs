//! Cron patterns: the five fields minute, hour, day, month and weekday; six fields with the second
//! first; or seven with the year last.
//!
//! ```
//! # extern crate pumphouse_listeners as pumphouse;
//! use jiff::tz::TimeZone;
//! use pumphouse::listeners::timer::cron;
//!
//! assert!(cron::check("0 9 * * MON").is_ok());
//! let monday = 1_774_861_200_000_000; // 2026-03-30, 9:00 UTC.
//! assert_eq!(cron::after("0 9 * * MON", monday - 1, &TimeZone::UTC), Some(monday));
//! ```
//!
//! A pattern speaks of the wall clock, which leaves out an hour in spring and has one twice in
//! autumn. A time that is left out comes once, at the end of the hour, and a time that the clock
//! has twice comes once, the first time. A pattern of every hour is different: it goes by the
//! hours that there are, so it comes in both of the doubled hour, and never for a time that is left
//! out.
//!
//! The library `croner` reads the patterns and finds the next time of a calendar without a zone.
//! What a zone makes of this time is decided here.

#[cfg(test)]
mod tests;

use std::str::FromStr;

use croner::{Cron, CronComponent};
use jiff::civil::DateTime;
use jiff::tz::{AmbiguousOffset, TimeZone};
use jiff::{Span, Zoned};
use pumphouse::wire::Timestamp;

/// A field of a pattern.
struct Field {
    name: &'static str,
    /// The values that the field takes, for people.
    range: &'static str,
    /// The words that the field takes, beside numbers.
    words: &'static [&'static str],
    values: fn(&Cron) -> &CronComponent,
}

const MONTHS: [&str; 12] =
    ["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"];
/// The last word is for the last weekday of its kind in a month, as in `FRIL`.
const WEEKDAYS: [&str; 8] = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT", "L"];

const FIELDS: [Field; 7] = [
    Field { name: "second", range: "0 to 59", words: &[], values: |it| &it.pattern.seconds },
    Field { name: "minute", range: "0 to 59", words: &[], values: |it| &it.pattern.minutes },
    Field { name: "hour", range: "0 to 23", words: &[], values: |it| &it.pattern.hours },
    Field { name: "day", range: "1 to 31", words: &["L", "W"], values: |it| &it.pattern.days },
    Field {
        name: "month",
        range: "1 to 12 or JAN to DEC",
        words: &MONTHS,
        values: |it| &it.pattern.months,
    },
    Field {
        name: "weekday",
        range: "0 to 7 or SUN to SAT",
        words: &WEEKDAYS,
        values: |it| &it.pattern.days_of_week,
    },
    Field { name: "year", range: "1 to 5000", words: &[], values: |it| &it.pattern.years },
];

/// The names of patterns. The library knows each but `@midnight`.
const NICKNAMES: [&str; 7] =
    ["@hourly", "@daily", "@midnight", "@weekly", "@monthly", "@yearly", "@annually"];

/// Checks a pattern.
///
/// # Errors
/// Fails if the text isn't a cron pattern, or if a step is larger than its field. If a field is
/// wrong, the error names the first wrong one and the values that it takes.
pub fn check(pattern: &str) -> Result<(), String> {
    let words: Vec<&str> = pattern.split_whitespace().collect();
    if pattern.trim_start().starts_with('@') {
        let is_known = NICKNAMES.iter().any(|it| it.eq_ignore_ascii_case(pattern.trim()));
        let unknown =
            || format!("cron: {pattern} is no pattern; there is {}", NICKNAMES.join(", "));
        return if is_known { Ok(()) } else { Err(unknown()) };
    }
    let fields = match words.len() {
        5 => &FIELDS[1..6],
        6 => &FIELDS[..6],
        7 => &FIELDS[..],
        many => {
            let five = "minute, hour, day, month and weekday, as in */5 * * * *";
            return Err(format!(
                "cron takes five fields, {five}; or a second first; or a second first and a year \
                 last; it has {many}"
            ));
        }
    };
    for (at, (word, field)) in words.iter().zip(fields).enumerate() {
        // The pattern with this field, and with `*` for each other.
        let alone = |word: &str| {
            let alone = (0..words.len()).map(|it| if it == at { word } else { "*" });
            Cron::from_str(&alone.collect::<Vec<_>>().join(" ")).ok()
        };
        if !field.has_its_words(word) || alone(word).is_none() {
            let what = "with lists, ranges and steps such as 1,2 or 1-5 or */2";
            let Field { name, range, .. } = field;
            return Err(format!("cron: {word} is no {name}; it takes {range}, or *, {what}"));
        }
        for (range, step) in word.split(',').filter_map(|it| it.split_once('/')) {
            let count = alone(range).map_or(0, |it| (field.values)(&it).values().len());
            if step.parse().is_ok_and(|it: usize| it > count) {
                return Err(format!(
                    "cron: the step of {range}/{step} is larger than the {count} {}s that it goes \
                     through; for an interval there is `every`",
                    field.name
                ));
            }
        }
    }
    read(pattern)
        .map(drop)
        .ok_or_else(|| format!("cron: {pattern} is no pattern; say one such as */5 * * * *"))
}

/// The first time after `us` that a pattern matches in a time zone. Both times are in microseconds
/// since the epoch. None if the pattern matches no later time up to the year 5000, where the search
/// ends.
#[must_use]
pub fn after(pattern: &str, us: u64, zone: &TimeZone) -> Option<u64> {
    let time = Timestamp::from_microsecond(i64::try_from(us).ok()?).ok()?;
    let cron = read(pattern)?;
    let is_every_hour = cron.pattern.hours.values().len() == 24;
    let next = if is_every_hour {
        next_of_every_hour(&cron, time, zone)
    } else {
        next_of_wall_clock(&cron, time, zone)
    };
    u64::try_from(next?.as_microsecond()).ok()
}

impl Field {
    /// Whether the letters of a field's text are words of this field, and no part of a list is
    /// empty. The library replaces words wherever they stand, and ignores empty parts.
    fn has_its_words(&self, text: &str) -> bool {
        let text = text.to_ascii_uppercase();
        let is_word = |it: &str| {
            // `5L` and `FRIL` are the last of their kind, and `15W` is the weekday near the 15th.
            let rest = self.words.iter().fold(it.to_owned(), |it, word| it.replace(word, ""));
            rest.is_empty()
        };
        let mut words = text.split(|it: char| !it.is_ascii_alphabetic());
        words.all(is_word) && text.split(',').all(|it| !it.is_empty())
    }
}

fn read(pattern: &str) -> Option<Cron> {
    let is_midnight = pattern.trim().eq_ignore_ascii_case("@midnight");
    Cron::from_str(if is_midnight { "@daily" } else { pattern }).ok()
}

/// The first time of the calendar after `time` that a pattern matches.
fn next_in_calendar(cron: &Cron, time: DateTime) -> Option<DateTime> {
    let time = time.to_zoned(TimeZone::UTC).ok()?;
    cron.find_next_occurrence(&time, false).as_ref().map(Zoned::datetime).ok()
}

/// The first time after `time` at which the wall clock of a zone shows a time of the pattern. Goes
/// from one change of the clock to the next, since the wall clock doesn't jump between them.
fn next_of_every_hour(cron: &Cron, time: Timestamp, zone: &TimeZone) -> Option<Timestamp> {
    let mut offset = zone.to_offset(time);
    let mut shown = offset.to_datetime(time);
    let mut changes = zone.following(time);
    loop {
        let next = offset.to_timestamp(next_in_calendar(cron, shown)?).ok()?;
        match changes.next() {
            Some(change) if next >= change.timestamp() => {
                offset = change.offset();
                // The time at the change itself counts.
                let before = change.timestamp().checked_sub(Span::new().seconds(1)).ok()?;
                shown = offset.to_datetime(before);
            }
            _ => return Some(next),
        }
    }
}

/// The first time after `time` at which a time of the pattern comes by the wall clock of a zone.
fn next_of_wall_clock(cron: &Cron, time: Timestamp, zone: &TimeZone) -> Option<Timestamp> {
    let mut shown = zone.to_datetime(time);
    loop {
        shown = next_in_calendar(cron, shown)?;
        let at = comes(shown, zone)?;
        // In the second of two equal hours, the pattern's times in this hour have come.
        if at > time {
            return Some(at);
        }
    }
}

/// When a time of the wall clock comes: the first time if it comes twice, and the end of the gap if
/// it is left out.
fn comes(shown: DateTime, zone: &TimeZone) -> Option<Timestamp> {
    match zone.to_ambiguous_timestamp(shown).offset() {
        AmbiguousOffset::Unambiguous { offset } => offset.to_timestamp(shown).ok(),
        AmbiguousOffset::Fold { before, .. } => before.to_timestamp(shown).ok(),
        AmbiguousOffset::Gap { after, .. } => {
            // By the later offset, this time is before the change.
            let earlier = after.to_timestamp(shown).ok()?;
            zone.following(earlier).next().map(|it| it.timestamp())
        }
    }
}
