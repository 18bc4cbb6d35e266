//! The internal sources of feeds, which the pump itself answers: the time, random numbers, counts
//! of a thread, the status of an agent, and the metadata of another agent.

use std::sync::LazyLock;

use jiff::fmt::strtime;
use jiff::tz::{Offset, TimeZone, TimeZoneDatabase};
use pumphouse::schema::nearest;
use pumphouse::wire::Timestamp;
use serde_json::{Map, Value, json};

/// An internal source, with its parameters.
#[derive(Clone, Debug, PartialEq)]
pub(in super::super) enum Internal {
    /// The current time.
    Clock { format: TimeFormat, zone: TimeZone },
    /// A random whole number from `min` to `max`.
    Random { min: i64, max: i64 },
    /// Counts of the thread: entries, turns and seconds.
    Statistics,
    /// The metadata of another agent.
    Metadata,
    /// The status of the agent, and its unfinished actions, timers and threads.
    Debug,
}

/// The format of a time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in super::super) enum TimeFormat {
    Iso,
    /// Seconds since the epoch.
    Unix,
    /// A pattern of `strftime`.
    Pattern(String),
}

/// The data from which internal sources make their answers.
#[derive(Clone, Debug, Default)]
pub(in super::super) struct Facts {
    pub(in super::super) now_us: u64,
    pub(in super::super) chance: u64,
    pub(in super::super) opened_us: u64,
    pub(in super::super) entries: u64,
    pub(in super::super) turns: u64,
    /// The metadata of another agent. Empty unless the source is [`Internal::Metadata`].
    pub(in super::super) metadata: Map<String, Value>,
    /// The status of the agent. Empty unless the source is [`Internal::Debug`].
    pub(in super::super) status: AgentStatus,
}

/// The status of an agent, computed from the log.
#[derive(Clone, Debug, Default)]
pub(in super::super) struct AgentStatus {
    pub(in super::super) thread: String,
    pub(in super::super) agent: String,
    /// The number of threads that the agent opened and that haven't ended.
    pub(in super::super) threads: u32,
    pub(in super::super) actions: Vec<OpenAction>,
    /// The thread's timers, as the numbers of the entries that set them.
    pub(in super::super) timers: Vec<u64>,
}

/// An action that isn't done.
#[derive(Clone, Debug)]
pub(in super::super) struct OpenAction {
    pub(in super::super) id: String,
    pub(in super::super) name: String,
    pub(in super::super) turn: Option<u64>,
    pub(in super::super) state: &'static str,
}

impl Internal {
    /// The names of the internal sources, except the metadata of another agent, which has no name.
    pub(in super::super) const ACTIONS: [&str; 4] =
        ["system_clock", "random_number", "thread_statistics", "debug_context"];

    /// Reads an internal source from its name and parameters. The error says which names or values
    /// are allowed.
    pub(in super::super) fn read(action: &str, params: Option<&Value>) -> Result<Internal, String> {
        let none = Map::new();
        let params = params.and_then(Value::as_object).unwrap_or(&none);
        match action {
            "system_clock" => Internal::clock(params),
            "random_number" => Internal::random(params),
            "thread_statistics" => known(action, params, &[]).map(|()| Internal::Statistics),
            "debug_context" => known(action, params, &[]).map(|()| Internal::Debug),
            _ => {
                let all = Internal::ACTIONS;
                let text = format!("the pump has no {action}; it has {}", all.join(", "));
                Err(text + &meant(action, &all))
            }
        }
    }

    fn clock(params: &Map<String, Value>) -> Result<Internal, String> {
        known("system_clock", params, &["format", "timezone"])?;
        let text = |name| match params.get(name) {
            None => Ok(None),
            Some(Value::String(it)) => Ok(Some(&**it)),
            Some(it) => Err(format!("{name} is a text, not {it}")),
        };
        let format = match text("format")? {
            None | Some("ISO8601") => TimeFormat::Iso,
            Some("unix") => TimeFormat::Unix,
            Some(it) if it.contains('%') => TimeFormat::Pattern(it.to_owned()),
            Some(other) => {
                let text =
                    format!("format is ISO8601, unix, or a pattern such as %H:%M, not {other}");
                return Err(text + &meant(other, &["ISO8601", "unix"]));
            }
        };
        let zone = match text("timezone")? {
            None | Some("UTC" | "Z") => TimeZone::UTC,
            Some(zone) => zone_of(zone)?,
        };
        let clock = Internal::Clock { format, zone };
        clock.answer(&Facts::default()).map(|_| clock)
    }

    fn random(params: &Map<String, Value>) -> Result<Internal, String> {
        known("random_number", params, &["min", "max"])?;
        let number = |name, usual: i64| match params.get(name) {
            None => Ok(usual),
            Some(it) => it.as_i64().ok_or_else(|| format!("{name} is a whole number, not {it}")),
        };
        let (min, max) = (number("min", 0)?, number("max", 99)?);
        match min <= max {
            true => Ok(Internal::Random { min, max }),
            false => Err(format!("min is {min}, and max {max} is less")),
        }
    }

    /// The content that the source gives. Fails if a time can't be written in the format.
    pub(in super::super) fn answer(&self, at: &Facts) -> Result<String, String> {
        match self {
            Internal::Clock { format, zone } => {
                let now = stamp(at.now_us).to_zoned(zone.clone());
                match format {
                    TimeFormat::Unix => Ok((at.now_us / 1_000_000).to_string()),
                    TimeFormat::Pattern(pattern) => {
                        strtime::format(pattern, &now).map_err(|error| format!("format: {error}"))
                    }
                    TimeFormat::Iso if *zone == TimeZone::UTC => Ok(iso(at.now_us)),
                    TimeFormat::Iso => {
                        let text = strtime::format("%Y-%m-%dT%H:%M:%S%:z", &now);
                        text.map_err(|error| format!("format: {error}"))
                    }
                }
            }
            Internal::Random { min, max } => {
                let span = u128::from(max.abs_diff(*min)) + 1;
                let drawn = i128::from(*min) + (u128::from(at.chance) % span).cast_signed();
                Ok(drawn.to_string())
            }
            Internal::Statistics => {
                let seconds = at.now_us.saturating_sub(at.opened_us) / 1_000_000;
                let all = json!({
                    "entries": at.entries, "turns": at.turns, "seconds": seconds,
                    "opened": iso(at.opened_us),
                });
                Ok(format!("{all:#}"))
            }
            Internal::Metadata => Ok(format!("{:#}", Value::Object(at.metadata.clone()))),
            Internal::Debug => {
                let status = &at.status;
                let open = |open_action: &OpenAction| {
                    let OpenAction { id, name, turn, state } = open_action;
                    json!({ "id": id, "name": name, "turn": turn, "state": state })
                };
                let actions: Vec<Value> = status.actions.iter().map(open).collect();
                let all = json!({
                    "thread": status.thread, "agent": status.agent, "turn": at.turns + 1,
                    "entries": at.entries, "opened": iso(at.opened_us), "now": iso(at.now_us),
                    "actions": actions, "timers": status.timers, "threads": status.threads,
                });
                Ok(format!("{all:#}"))
            }
        }
    }
}

/// A time in ISO 8601, in UTC and whole seconds.
fn iso(us: u64) -> String {
    whole_seconds(us).to_string()
}

/// A time in whole seconds.
#[must_use]
pub fn whole_seconds(us: u64) -> Timestamp {
    stamp(us / 1_000_000 * 1_000_000)
}

pub(in super::super) fn stamp(us: u64) -> Timestamp {
    i64::try_from(us).ok().and_then(|it| Timestamp::from_microsecond(it).ok()).unwrap_or_default()
}

/// The table of time zones that the program carries. A machine's own table may be another one, with
/// which a replay would differ.
static ZONES: LazyLock<TimeZoneDatabase> = LazyLock::new(TimeZoneDatabase::bundled);

/// The time zone with an offset such as `+02:00`, or with a name such as `Europe/Berlin`.
fn zone_of(text: &str) -> Result<TimeZone, String> {
    if let Some(offset) = offset(text) {
        return Ok(TimeZone::fixed(offset));
    }
    ZONES.get(text).map_err(|_| {
        let known: Vec<String> = ZONES.available().map(|it| it.to_string()).collect();
        let known: Vec<&str> = known.iter().map(String::as_str).collect();
        let right = "UTC, a name such as Europe/Berlin, or an offset such as +02:00";
        format!("timezone is {right}, not {text}") + &meant(text, &known)
    })
}

/// Reads a time zone's offset such as `+02:00`.
fn offset(text: &str) -> Option<Offset> {
    let (sign, rest) = match text.split_at_checked(1)? {
        ("+", rest) => (1, rest),
        ("-", rest) => (-1, rest),
        _ => return None,
    };
    let (hours, minutes) = rest.split_once(':')?;
    let part = |text: &str, below: i32| {
        let digits = text.len() == 2 && text.bytes().all(|it| it.is_ascii_digit());
        text.parse::<i32>().ok().filter(|it| digits && *it < below)
    };
    let seconds = part(hours, 24)? * 3_600 + part(minutes, 60)? * 60;
    Offset::from_seconds(sign * seconds).ok()
}

/// Fails if there is a parameter that isn't among these names.
fn known(action: &str, params: &Map<String, Value>, names: &[&str]) -> Result<(), String> {
    match params.keys().find(|it| !names.contains(&&***it)) {
        None => Ok(()),
        Some(value) => {
            let has = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
            let text = format!("{action} has no parameter {value}; it has {has}");
            Err(text + &meant(value, names))
        }
    }
}

/// A hint for an error's text, with the right word that is most similar to the wrong one. Empty if
/// no word is similar.
pub(in super::super) fn meant(wrong: &str, right: &[&str]) -> String {
    let near = nearest(wrong, right.iter().copied());
    near.map(|it| format!("; did you mean {it}?")).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    const JUNE: u64 = 1_718_454_896_123_456;

    #[track_caller]
    fn check(action: &str, params: &Value, expected: &str) {
        let open = |id: &str, turn| OpenAction {
            id: id.to_owned(),
            name: "fetch".to_owned(),
            turn,
            state: "running",
        };
        let status = AgentStatus {
            thread: "sess-a".to_owned(),
            agent: "ada".to_owned(),
            threads: 1,
            actions: vec![open("a", Some(2))],
            timers: vec![5],
        };
        let at = Facts {
            now_us: JUNE,
            chance: 12,
            opened_us: JUNE - 5_000_000,
            entries: 7,
            turns: 2,
            metadata: Map::new(),
            status,
        };
        let said = Internal::read(action, Some(params)).and_then(|it| it.answer(&at));
        assert_eq!(said.unwrap_or_else(|it| it), expected, "{action} {params}");
    }

    #[test]
    fn a_clock_says_the_time_in_any_form() {
        let iso = "2024-06-15T12:34:56Z";
        check("system_clock", &json!({ "format": "ISO8601", "timezone": "UTC" }), iso);
        check("system_clock", &json!({}), iso);
        check("system_clock", &json!({ "format": "unix" }), "1718454896");
        let local = json!({ "timezone": "+02:00" });
        check("system_clock", &local, "2024-06-15T14:34:56+02:00");
        let summer = json!({ "timezone": "Europe/Berlin" });
        check("system_clock", &summer, "2024-06-15T14:34:56+02:00");
        let name = json!({ "format": "%H:%M %Z", "timezone": "America/New_York" });
        check("system_clock", &name, "08:34 EDT");
        let pattern = json!({ "format": "%H:%M", "timezone": "-00:30" });
        check("system_clock", &pattern, "12:04");
    }

    #[test]
    fn chance_stays_within_its_bounds() {
        check("random_number", &json!({}), "12");
        check("random_number", &json!({ "min": 5, "max": 9 }), "7");
        check(
            "random_number",
            &json!({ "min": i64::MIN, "max": i64::MAX }),
            "-9223372036854775796",
        );
        check("random_number", &json!({ "min": 3, "max": 3 }), "3");
    }

    #[test]
    fn a_thread_is_counted() {
        let expected = "{\n  \"entries\": 7,\n  \"turns\": 2,\n  \"seconds\": 5,\n  \
            \"opened\": \"2024-06-15T12:34:51Z\"\n}";
        check("thread_statistics", &json!({}), expected);
    }

    #[test]
    fn a_debugger_sees_where_an_agent_stands() {
        let expected = r#"{
  "thread": "sess-a",
  "agent": "ada",
  "turn": 3,
  "entries": 7,
  "opened": "2024-06-15T12:34:51Z",
  "now": "2024-06-15T12:34:56Z",
  "actions": [
    {
      "id": "a",
      "name": "fetch",
      "turn": 2,
      "state": "running"
    }
  ],
  "timers": [
    5
  ],
  "threads": 1
}"#;
        check("debug_context", &json!({}), expected);
    }

    #[test]
    fn what_is_not_there_is_told_with_what_is() {
        check(
            "systm_clock",
            &json!({}),
            "the pump has no systm_clock; it has system_clock, \
            random_number, thread_statistics, debug_context; did you mean system_clock?",
        );
        check(
            "system_clock",
            &json!({ "fromat": "unix" }),
            "system_clock has no parameter fromat; \
            it has format, timezone; did you mean format?",
        );
        check(
            "thread_statistics",
            &json!({ "a": 1 }),
            "thread_statistics has no parameter a; \
            it has none",
        );
        check(
            "system_clock",
            &json!({ "format": "ISO" }),
            "format is ISO8601, unix, or a pattern \
            such as %H:%M, not ISO; did you mean ISO8601?",
        );
        check(
            "system_clock",
            &json!({ "timezone": "Europe/Berln" }),
            "timezone is UTC, a name such as Europe/Berlin, or an offset such as +02:00, not \
            Europe/Berln; did you mean Europe/Berlin?",
        );
        check("random_number", &json!({ "min": 2, "max": 1 }), "min is 2, and max 1 is less");
        check("random_number", &json!({ "min": 0.5 }), "min is a whole number, not 0.5");
        let wrong = Internal::read("system_clock", Some(&json!({ "format": "%" })));
        assert!(wrong.is_err_and(|it| it.starts_with("format: ")));
    }
}
