//! Definitions of triggers: what the key `trigger` of a workflow says.

use std::str::FromStr;
use std::time::Duration;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use pumphouse::schema::nearest;
use serde::Deserialize;
use serde_json::Value;

use super::super::condition::{Condition, WrongCondition};
use super::super::metadata::METADATA;
use super::super::timer::cron;
use super::mistake::WrongDefinition;
use super::seconds::Seconds;

/// The shortest interval of a trigger with `every`.
const EVERY_MIN: Duration = Duration::from_secs(1);

/// What begins runs of a workflow by itself. Which keys there may be depends on `type`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct TriggerDefinition {
    /// What the trigger watches. Without it, the key that only one type has says so.
    #[serde(rename = "type")]
    kind: Option<TriggerKind>,
    /// The pattern that the values must match, or a condition as a text.
    conditions: Option<Value>,
    /// Whether every key of the pattern must match; default true. Otherwise one is enough.
    match_all: Option<bool>,
    /// Of several triggers that fire at once, those with a higher priority start first.
    pub priority: i64,
    /// Of metadata: when the trigger fires.
    fire: Option<Fire>,
    /// Of metadata: how long the condition must hold before the trigger fires.
    #[serde(rename = "for")]
    pub lasts: Option<Seconds>,
    /// Of metadata: whether runs are cancelled when the condition ceases to hold.
    cancel_on_change: Option<bool>,
    /// The payload that the trigger watches: a local name, or `{namespace}name`.
    pub payload: Option<String>,
    /// Of a payload: its sender.
    pub from: Option<String>,
    /// The name in the payload `trigger`, which a client pushes.
    pub event: Option<String>,
    /// The time at which the trigger fires once.
    at: Option<String>,
    /// The interval at which it fires.
    every: Option<Seconds>,
    /// The cron pattern of the times at which it fires.
    cron: Option<String>,
    /// The time zone of `cron`, and of `at` if that has none; default UTC.
    time_zone: Option<String>,
    /// What becomes of times that pass while the pump is down.
    missed: Option<Missed>,
    /// The thread in which a clock begins the runs. Otherwise each has a session of its own.
    pub thread: Option<String>,
}

/// What a trigger watches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
// The enum is exhaustive, since what begins runs must know each kind.
pub enum TriggerKind {
    /// An agent's metadata.
    #[default]
    MetadataMatch,
    /// The entries of the log with one payload.
    #[serde(rename = "payload")]
    PayloadMatch,
    /// The ends of threads.
    ThreadState,
    /// Faults.
    Fault,
    /// The payload `trigger`, which a client pushes.
    Event,
    /// The time.
    Schedule,
}

/// When a trigger on metadata fires.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
// The enum is exhaustive, since what decides must know each word.
pub enum Fire {
    /// When its condition begins to hold.
    #[default]
    Edge,
    /// At each change while its condition holds, but only once in a turn, and never while its last
    /// run is at work.
    Level,
    /// When its condition holds, and one of the fields in it has another value than before.
    OnChange,
}

/// What becomes of the times of a schedule that pass while the pump is down.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
// The enum is exhaustive, since a clock must know each word.
pub enum Missed {
    /// The newest of them begins one run, when the pump is back.
    #[default]
    Once,
    /// Nothing.
    Skip,
}

/// The times at which a trigger fires.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Times {
    /// One time.
    At(Timestamp),
    /// The multiples of a duration since the epoch.
    Every(Duration),
    /// The times that a cron pattern matches.
    Cron {
        /// The pattern.
        pattern: String,
        /// The time zone in which it matches.
        zone: TimeZone,
    },
}

impl TriggerKind {
    /// The word in a file.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            TriggerKind::MetadataMatch => "metadata_match",
            TriggerKind::PayloadMatch => "payload",
            TriggerKind::ThreadState => "thread_state",
            TriggerKind::Fault => "fault",
            TriggerKind::Event => "event",
            TriggerKind::Schedule => "schedule",
        }
    }

    /// The name with which conditions refer to the values that the trigger watches.
    #[must_use]
    pub fn subject(self) -> &'static str {
        match self {
            TriggerKind::MetadataMatch => METADATA,
            TriggerKind::PayloadMatch => "payload",
            TriggerKind::ThreadState => "thread",
            TriggerKind::Fault => "fault",
            TriggerKind::Event => "event",
            TriggerKind::Schedule => "schedule",
        }
    }

    /// The keys that a trigger of this kind may have beside `type` and `priority`.
    fn keys(self) -> &'static [&'static str] {
        match self {
            TriggerKind::MetadataMatch => {
                &["conditions", "match_all", "fire", "for", "cancel_on_change"]
            }
            TriggerKind::PayloadMatch => &["payload", "from", "conditions", "match_all"],
            TriggerKind::ThreadState | TriggerKind::Fault => &["conditions", "match_all"],
            TriggerKind::Event => &["event", "conditions", "match_all"],
            TriggerKind::Schedule => &["at", "every", "cron", "time_zone", "missed", "thread"],
        }
    }
}

impl TriggerDefinition {
    /// What the trigger watches.
    #[must_use]
    pub fn kind(&self) -> TriggerKind {
        let is_timed = self.at.is_some() || self.every.is_some() || self.cron.is_some();
        self.kind.unwrap_or(match (&self.payload, &self.event) {
            (Some(_), _) => TriggerKind::PayloadMatch,
            (_, Some(_)) => TriggerKind::Event,
            _ if is_timed => TriggerKind::Schedule,
            _ => TriggerKind::MetadataMatch,
        })
    }

    /// When a trigger on metadata fires.
    #[must_use]
    pub fn fire(&self) -> Fire {
        self.fire.unwrap_or_default()
    }

    /// Whether runs are cancelled when the condition ceases to hold.
    #[must_use]
    pub fn cancels_on_change(&self) -> bool {
        self.cancel_on_change.unwrap_or_default()
    }

    /// What becomes of times that pass while the pump is down.
    #[must_use]
    pub fn missed(&self) -> Missed {
        self.missed.unwrap_or_default()
    }

    /// The condition, if there is one.
    ///
    /// # Errors
    /// If the pattern can't match anything.
    pub fn condition(&self) -> Result<Option<Condition>, WrongCondition> {
        let matching = |pattern| {
            let is_all = self.match_all.unwrap_or(true);
            Condition::matching(pattern, self.kind().subject(), is_all)
        };
        self.conditions.as_ref().map(matching).transpose()
    }

    /// The times at which the trigger fires. None if it doesn't go by a clock.
    ///
    /// # Errors
    /// If a time, the pattern or the zone can't be read, or there isn't exactly one of them.
    pub fn times(&self) -> Result<Option<Times>, WrongDefinition> {
        let wrong = |key: &str, text: String| WrongDefinition::new(format!("trigger.{key}"), text);
        if self.kind() != TriggerKind::Schedule {
            return Ok(None);
        }
        let given = [self.at.is_some(), self.every.is_some(), self.cron.is_some()];
        if given.iter().filter(|it| **it).count() != 1 {
            let text = "a schedule has one of `at`, `every` and `cron`".to_owned();
            return Err(WrongDefinition::new("trigger", text));
        }
        let zone = self.time_zone.as_deref().map_or(Ok(TimeZone::UTC), |name| {
            let unknown = format!("there is no time zone `{name}`; one is Europe/Berlin");
            TimeZone::get(name).map_err(|_| wrong("time_zone", unknown))
        })?;
        if let Some(every) = self.every {
            return match every.duration() {
                it if it < EVERY_MIN => Err(wrong("every", "the least is 1 s".to_owned())),
                it => Ok(Some(Times::Every(it))),
            };
        }
        if let Some(text) = &self.at {
            return match time(text, &zone) {
                Some(it) => Ok(Some(Times::At(it))),
                None => {
                    Err(wrong("at", format!("`{text}` is no time; one is 2026-12-24T18:00:00Z")))
                }
            };
        }
        let pattern = self.cron.clone().unwrap_or_default();
        cron::check(&pattern).map_err(|text| wrong("cron", text))?;
        Ok(Some(Times::Cron { pattern, zone }))
    }

    /// The mistakes of the definition.
    pub(super) fn mistakes(&self) -> Vec<WrongDefinition> {
        let kind = self.kind();
        let mut found = Vec::new();
        let mut wrong = |key: &str, text: String| {
            let path = if key.is_empty() { "trigger".to_owned() } else { format!("trigger.{key}") };
            found.push(WrongDefinition::new(path, text));
        };
        for key in self.given().into_iter().filter(|it| !kind.keys().contains(it)) {
            let near = nearest(key, kind.keys().iter().copied());
            let near = near.map(|it| format!("; did you mean `{it}`?")).unwrap_or_default();
            let keys = kind.keys().join(", ");
            let text = format!("a trigger of the type {} has no `{key}`{near}", kind.as_str());
            wrong(key, format!("{text}; its keys are {keys}"));
        }
        let needs = |key: &str| format!("a trigger of the type {} needs `{key}`", kind.as_str());
        match kind {
            TriggerKind::MetadataMatch if self.conditions.is_none() => {
                wrong("", needs("conditions"));
            }
            TriggerKind::PayloadMatch if self.payload.is_none() => wrong("", needs("payload")),
            TriggerKind::Event if self.event.is_none() => wrong("", needs("event")),
            _ => {}
        }
        if self.lasts.is_some() && self.fire() != Fire::Edge {
            wrong("for", "`for` goes with `fire: edge` only".to_owned());
        }
        if let Err(error) = self.condition() {
            wrong("conditions", error.to_string());
        }
        found.extend(self.times().err());
        found
    }

    /// The keys that are given, beside `type` and `priority`.
    fn given(&self) -> Vec<&'static str> {
        let all = [
            ("conditions", self.conditions.is_some()),
            ("match_all", self.match_all.is_some()),
            ("fire", self.fire.is_some()),
            ("for", self.lasts.is_some()),
            ("cancel_on_change", self.cancel_on_change.is_some()),
            ("payload", self.payload.is_some()),
            ("from", self.from.is_some()),
            ("event", self.event.is_some()),
            ("at", self.at.is_some()),
            ("every", self.every.is_some()),
            ("cron", self.cron.is_some()),
            ("time_zone", self.time_zone.is_some()),
            ("missed", self.missed.is_some()),
            ("thread", self.thread.is_some()),
        ];
        all.into_iter().filter(|(_, is_given)| *is_given).map(|(key, _)| key).collect()
    }
}

/// Reads a time. A time without a zone is one of this zone.
fn time(text: &str, zone: &TimeZone) -> Option<Timestamp> {
    let local = || jiff::civil::DateTime::from_str(text).ok()?.to_zoned(zone.clone()).ok();
    Timestamp::from_str(text).ok().or_else(|| Some(local()?.timestamp()))
}

impl Times {
    /// The first of the times after another time, both in microseconds since the epoch.
    #[must_use]
    pub fn after(&self, us: u64) -> Option<u64> {
        match self {
            Times::At(at) => u64::try_from(at.as_microsecond()).ok().filter(|it| *it > us),
            Times::Every(interval) => {
                let interval = u64::try_from(interval.as_micros()).ok()?;
                (us / interval).checked_add(1)?.checked_mul(interval)
            }
            Times::Cron { pattern, zone } => cron::after(pattern, us, zone),
        }
    }
}
