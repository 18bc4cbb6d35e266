//! Definitions of triggers: the key `trigger` in the file of a workflow.

use std::str::FromStr;
use std::time::Duration;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use pumphouse::schema::nearest;
use pumphouse::wire::Code;
use serde::Deserialize;
use serde_json::Value;

use super::super::condition::{Condition, Type, WrongCondition};
use super::super::metadata::METADATA;
use super::super::timer::cron;
use super::mistake::WrongDefinition;
use super::seconds::Seconds;

/// The shortest interval of a trigger with `every`.
const TRIGGER_EVERY_MIN: Duration = Duration::from_secs(1);
/// The longest interval of a trigger with `every`, in days.
const TRIGGER_EVERY_MAX_DAYS: u64 = 36_500;
/// The characters of a session's id after `sess-`, and the number of these characters.
const SESSION_ALPHABET: &str = "0123456789abcdefghjkmnpqrstvwxyz";
const SESSION_CHARACTERS: usize = 8;

/// A trigger, which begins runs of a workflow by itself. The allowed keys depend on `type`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(
    deny_unknown_fields,
    default,
    expecting = "a map of keys, as in `trigger: {type: event, event: deploy}`,"
)]
#[non_exhaustive]
pub struct TriggerDefinition {
    /// What the trigger watches. Without this key, `payload`, `event` or the keys of a schedule
    /// decide. If none of these is set, the trigger watches metadata.
    #[serde(rename = "type")]
    kind: Option<TriggerKind>,
    /// The pattern that the values must match, or a condition as a text.
    conditions: Option<Value>,
    /// Whether every key of the pattern must match; default true. Otherwise one matching key is
    /// enough.
    match_all: Option<bool>,
    /// Of several triggers that fire at once, those with a higher priority start first.
    pub priority: i64,
    /// For metadata: when the trigger fires.
    fire: Option<Fire>,
    /// For metadata: how long the condition must hold before the trigger fires.
    #[serde(rename = "for")]
    pub lasts: Option<Seconds>,
    /// For metadata: whether runs are cancelled when the condition ceases to hold.
    cancel_on_change: Option<bool>,
    /// The payload that the trigger watches: a local name, or `{namespace}name`.
    pub payload: Option<String>,
    /// For a payload: the sender of the entries. None means any sender.
    pub from: Option<String>,
    /// The name of the event. A client reports an event with the payload `trigger`.
    pub event: Option<String>,
    /// The time at which the trigger fires once.
    at: Option<String>,
    /// The interval at which the trigger fires.
    every: Option<Seconds>,
    /// The cron pattern of the times at which the trigger fires.
    cron: Option<String>,
    /// The time zone of `cron`, and of an `at` that names none; default UTC.
    time_zone: Option<String>,
    /// The treatment of times that pass while the pump is down.
    missed: Option<Missed>,
    /// The treatment of a schedule's times that come while its last run is at work.
    overlap: Option<Overlap>,
    /// The thread below which a schedule begins the runs. Without it, each run has a session of its
    /// own.
    pub thread: Option<String>,
}

/// What a trigger watches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
// The enum is exhaustive, since code that begins runs must know each kind.
pub enum TriggerKind {
    /// An agent's metadata.
    #[default]
    MetadataMatch,
    /// The entries of the log with a certain payload.
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
// The enum is exhaustive, since code that decides must know each variant.
pub enum Fire {
    /// When its condition begins to hold.
    #[default]
    Edge,
    /// At each change while its condition holds. The trigger fires at most once in a turn, and
    /// never while its last run is at work.
    Level,
    /// When its condition holds, and a field that the condition refers to has changed.
    OnChange,
}

/// The treatment of a schedule's times that pass while the pump is down.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
// The enum is exhaustive, since code that follows a clock must know each variant.
pub enum Missed {
    /// The newest missed time begins one run when the pump is up again.
    #[default]
    Once,
    /// Missed times begin no runs.
    Skip,
}

/// The treatment of a schedule's times that come while its last run is at work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
// The enum is exhaustive, since code that follows a clock must know each variant.
pub enum Overlap {
    /// Such a time begins no run.
    #[default]
    Skip,
    /// The time begins its run when the runs before it have ended.
    Queue,
    /// The run at work is cancelled, and the time begins its run.
    Cancel,
}

/// The times at which a trigger fires.
#[derive(Clone, Debug, PartialEq)]
// Exhaustive, since who shows the times must know each.
pub enum Times {
    /// One time.
    At(Timestamp),
    /// The multiples of this interval, counted from the epoch.
    Every(Duration),
    /// The times that a cron pattern matches.
    Cron {
        /// The pattern.
        pattern: String,
        /// The time zone of the pattern.
        zone: TimeZone,
    },
}

impl TriggerKind {
    /// The word for the kind in a file.
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
            TriggerKind::Schedule => {
                &["at", "every", "cron", "time_zone", "missed", "overlap", "thread"]
            }
        }
    }

    /// The types of the values that conditions refer to. A type that isn't known without the
    /// organism is [`Type::Any`].
    #[must_use]
    pub fn known(self) -> Type {
        let of_subject = match self {
            TriggerKind::ThreadState => thread_type(),
            TriggerKind::Fault => fault_type(),
            _ => Type::Any,
        };
        Type::record([(self.subject(), of_subject)])
    }
}

/// The type of the value `thread` in a condition.
fn thread_type() -> Type {
    let status = Type::one_of(["completed", "empty", "failed", "cancelled"]);
    let texts = ["id", "payload", "by", "reason"].map(|it| (it, Type::Text));
    Type::record(texts.into_iter().chain([("status", status)]))
}

/// The type of the value `fault` in a condition.
fn fault_type() -> Type {
    let texts = ["path", "id", "message", "advice", "unknown_id"];
    let texts = texts.map(|it| (it, Type::Text));
    let code = Type::one_of(Code::ALL.iter().map(ToString::to_string));
    let others = [("line", Type::Number), ("column", Type::Number), ("retry", Type::Boolean)];
    Type::record(texts.into_iter().chain(others).chain([("code", code)]))
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

    /// The treatment of times that pass while the pump is down.
    #[must_use]
    pub fn missed(&self) -> Missed {
        self.missed.unwrap_or_default()
    }

    /// The treatment of times that come while the last run is at work.
    #[must_use]
    pub fn overlap(&self) -> Overlap {
        self.overlap.unwrap_or_default()
    }

    /// The condition, if there is one.
    ///
    /// # Errors
    /// Fails if the text isn't a condition, or if the pattern can't be read or can't match.
    pub fn condition(&self) -> Result<Option<Condition>, WrongCondition> {
        let matching = |pattern| {
            let is_all = self.match_all.unwrap_or(true);
            Condition::matching(pattern, self.kind().subject(), is_all)
        };
        self.conditions.as_ref().map(matching).transpose()
    }

    /// The times at which the trigger fires. None if the trigger isn't a schedule.
    ///
    /// # Errors
    /// Fails if the definition hasn't exactly one of `at`, `every` and `cron`. Fails if the value
    /// of this key is invalid, if the cron pattern never matches, or if the time zone is unknown.
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
            let every = interval(every).map_err(|text| wrong("every", text))?;
            return Ok(Some(Times::Every(every)));
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
        if cron::after(&pattern, 0, &TimeZone::UTC).is_none() {
            let day = "no month of the pattern has such a day";
            let text = format!("`{pattern}` never comes: {day}; write one such as `0 0 28 2 *`");
            return Err(wrong("cron", text));
        }
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
        if self.event.as_deref().is_some_and(|it| it.trim().is_empty()) {
            wrong("event", "an event has a name, as in `event: deploy`".to_owned());
        }
        if self.lasts.is_some() && self.fire() != Fire::Edge {
            wrong("for", "`for` goes with `fire: edge` only".to_owned());
        }
        for (key, text) in self.meaningless() {
            wrong(key, text.to_owned());
        }
        if let Some(thread) = self.thread.as_deref().filter(|it| !is_thread(it)) {
            wrong("thread", no_thread(thread));
        }
        if let Err(text) = self.checked_condition() {
            wrong("conditions", text);
        }
        found.extend(self.times().err());
        found
    }

    /// The keys that have no effect beside the other keys, each with advice.
    fn meaningless(&self) -> Vec<(&'static str, &'static str)> {
        let mut found = Vec::new();
        if self.match_all.is_some() && matches!(self.conditions, None | Some(Value::String(_))) {
            let text = "`match_all` means nothing here: it is about the keys of a pattern, and a \
                        text says `and` and `or` itself. Leave `match_all` out";
            found.push(("match_all", text));
        }
        if self.time_zone.is_some() && self.every.is_some() {
            let text = "`time_zone` means nothing beside `every`, whose times are the multiples of \
                        the interval since 1970, UTC. Leave `time_zone` out, or write a `cron`";
            found.push(("time_zone", text));
        }
        if self.overlap.is_some() && self.at.is_some() {
            let text = "`overlap` means nothing beside `at`, which comes once. Leave `overlap` out";
            found.push(("overlap", text));
        }
        found
    }

    /// Checks the condition against the types that are known without an organism.
    fn checked_condition(&self) -> Result<(), String> {
        let told = |it: WrongCondition| match self.kind() {
            // The message lists few of the many codes.
            TriggerKind::Fault if it.message.starts_with("`fault.code`") => {
                format!("{it}; docs/faults/README.md lists the codes")
            }
            _ => it.to_string(),
        };
        let Some(condition) = self.condition().map_err(told)? else { return Ok(()) };
        condition.check(&self.kind().known()).map_err(told)
    }

    /// The keys that are set, except `type` and `priority`.
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
            ("overlap", self.overlap.is_some()),
            ("thread", self.thread.is_some()),
        ];
        all.into_iter().filter(|(_, is_given)| *is_given).map(|(key, _)| key).collect()
    }
}

/// Checks the interval of `every`.
fn interval(every: Seconds) -> Result<Duration, String> {
    let (duration, seconds) = (every.duration(), every.seconds());
    if duration < TRIGGER_EVERY_MIN {
        let min = TRIGGER_EVERY_MIN.as_secs();
        return Err(format!(
            "this is {seconds} s, and trigger_every_min is {min} s: write `every: {min}s` or more"
        ));
    }
    if duration > Duration::from_secs(TRIGGER_EVERY_MAX_DAYS * 86_400) {
        let max = format!("trigger_every_max is {TRIGGER_EVERY_MAX_DAYS} d");
        return Err(format!("this is {seconds} s, and {max}: write less, or one time as `at`"));
    }
    Ok(duration)
}

/// Whether a text has the form of a thread's id: a session's id, optionally with labels after it.
fn is_thread(text: &str) -> bool {
    let mut parts = text.split('.');
    let session = parts.next().and_then(|it| it.strip_prefix("sess-")).unwrap_or_default();
    let is_session = session.chars().count() == SESSION_CHARACTERS
        && session.chars().all(|it| SESSION_ALPHABET.contains(it));
    let fits = |it: char| it.is_ascii_alphanumeric() || matches!(it, '_' | '-');
    is_session && parts.all(|label| !label.is_empty() && label.chars().all(fits))
}

/// The error message for a text that can't be the id of a thread.
fn no_thread(text: &str) -> String {
    let form = "the pump makes the ids of threads, such as sess-k3v9x2ma or sess-k3v9x2ma.report";
    format!(
        "no thread can have the id `{text}`: {form}. Write one that `pumphouse threads` lists, or \
         leave `thread` out: each run has a session of its own then"
    )
}

/// Reads a time. A time that names no zone is in `zone`.
fn time(text: &str, zone: &TimeZone) -> Option<Timestamp> {
    let local = || jiff::civil::DateTime::from_str(text).ok()?.to_zoned(zone.clone()).ok();
    Timestamp::from_str(text).ok().or_else(|| Some(local()?.timestamp()))
}

impl Times {
    /// The first of the times after `us`. Times are in microseconds since the epoch here.
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
