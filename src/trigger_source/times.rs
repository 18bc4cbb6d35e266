//! Reports the times at which triggers fire.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::push;
use crate::clock;
use crate::engine::{Port as _, Pump, Tokio};
use crate::follower::kept_file;
use crate::listeners::trigger::EventRule;
use crate::listeners::trigger::words::TriggerDue;
use crate::listeners::workflow::definition::Missed;
use crate::wire::{Fault, Json, Timestamp};

/// How far before the present time the newest missed time of a trigger is searched for, in
/// microseconds. Applies if more than `MISSED_MAX` times were missed.
const RECENT_US: u64 = 60_000_000;
/// The longest wait in microseconds. After this wait the wall clock is read again, since the clock
/// may have been set.
const WAIT_MAX_US: u64 = 30_000_000;
/// The wait after a push that was refused, in microseconds.
const REFUSED_US: u64 = 1_000_000;
/// The largest number of missed times of a trigger that are counted.
const MISSED_MAX: u64 = 10_000;

/// The content of the file of reported times.
#[derive(Debug, Default, Serialize, Deserialize)]
struct StoredTimes {
    /// The UUID of the log.
    log: String,
    /// Maps a trigger's name to its stored time.
    triggers: BTreeMap<String, StoredTime>,
}

/// How far a trigger's times have been reported.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct StoredTime {
    /// The trigger's schedule, as text. If the definition has another schedule, this stored time
    /// doesn't count.
    times: String,
    /// Times up to this one have been reported or skipped. In microseconds since the epoch.
    until: u64,
}

/// The triggers with a schedule, and how far the times of each have been reported.
pub(super) struct Timetable {
    rules: Vec<EventRule>,
    file: Option<PathBuf>,
    stored: StoredTimes,
}

/// The times of a trigger that have come and aren't reported yet.
#[derive(Debug, PartialEq, Eq)]
struct Due {
    /// The newest of these times.
    at: u64,
    /// The number of the earlier ones, as far as they are counted.
    missed: u64,
}

/// Returns the newest time of a trigger after `until` that has come, and the number of earlier
/// ones. Returns None if none has come.
fn due(rule: &EventRule, until: u64, now: u64) -> Option<Due> {
    let times = rule.times()?;
    let mut at = times.after(until).filter(|it| *it <= now)?;
    let mut missed = 0;
    while let Some(next) = times.after(at).filter(|it| *it <= now) {
        if missed == MISSED_MAX {
            // The further times aren't counted. The newest of them is searched for shortly before
            // `now`.
            at = times.after(now.saturating_sub(RECENT_US)).filter(|it| *it <= now).unwrap_or(at);
            break;
        }
        (at, missed) = (next, missed + 1);
    }
    Some(Due { at, missed })
}

impl Timetable {
    /// Reads the file of reported times. A trigger begins at the present time in two cases: the
    /// file doesn't have the trigger with this schedule, or the trigger skips the times that pass
    /// while the pump is down. Any other trigger continues from its stored time.
    ///
    /// # Errors
    /// If the file can't be read.
    pub(super) fn read(
        rules: Vec<EventRule>,
        log: String,
        file: Option<PathBuf>,
    ) -> Result<Timetable, String> {
        let there = file.as_deref().map_or(Ok(None), times_in)?;
        let there = there.filter(|it| it.log == log).unwrap_or_default();
        let now = clock::wall_us();
        let each = rules.iter().map(|rule| {
            let times = format!("{:?}", rule.times());
            let is_known = |it: &&StoredTime| it.times == times && rule.missed() == Missed::Once;
            let known = there.triggers.get(rule.name()).filter(is_known).cloned();
            (rule.name().to_owned(), known.unwrap_or(StoredTime { times, until: now }))
        });
        let stored = StoredTimes { log, triggers: each.collect() };
        let timetable = Timetable { rules, file, stored };
        timetable.keep();
        Ok(timetable)
    }

    /// Reports each time when it comes. Never ends by itself.
    pub(super) async fn run(&mut self, pump: &Pump) {
        let port = Tokio::current();
        loop {
            let wait_us = match self.report(pump).await {
                Ok(()) => self.wait_us(port.wall_us()),
                Err(fault) => {
                    tracing::warn!(%fault, "a trigger's message was refused; trying on");
                    REFUSED_US
                }
            };
            port.sleep_until(port.now_us().saturating_add(wait_us)).await;
        }
    }

    /// Returns how long to wait for the next time of any trigger, in microseconds, at most
    /// `WAIT_MAX_US`.
    fn wait_us(&self, now: u64) -> u64 {
        let next = self.rules.iter().filter_map(|rule| {
            let until = self.stored.triggers.get(rule.name())?.until;
            rule.times()?.after(until.max(now))
        });
        next.min().map_or(WAIT_MAX_US, |it| it.saturating_sub(now).clamp(1_000, WAIT_MAX_US))
    }

    /// Reports the times that have come.
    async fn report(&mut self, pump: &Pump) -> Result<(), Fault> {
        let (now, mut has_changed) = (Tokio::current().wall_us(), false);
        for rule in &self.rules {
            let Some(stored) = self.stored.triggers.get_mut(rule.name()) else { continue };
            if let Some(Due { at, missed }) = due(rule, stored.until, now) {
                let message = TriggerDue {
                    rule: rule.name().to_owned(),
                    of: None,
                    from: None,
                    depth: 1,
                    first: None,
                    within: None,
                    value: Json(value(at, missed)),
                };
                let id = format!("{}/{at}", rule.name());
                push(pump, rule.thread(), &message, &id).await?;
                (stored.until, has_changed) = (at, true);
            }
            // If the newest reported time isn't the last one before `now`, the times between are
            // skipped.
            let next = rule.times().and_then(|it| it.after(stored.until));
            if next.is_some_and(|it| it <= now) {
                (stored.until, has_changed) = (now, true);
            }
        }
        if has_changed {
            self.keep();
        }
        Ok(())
    }

    /// Writes the reported times into their file, if there is one.
    fn keep(&self) {
        let Some(file) = &self.file else { return };
        if let Err(error) = kept_file::write(file, &self.stored) {
            let file = file.display();
            tracing::warn!(
                %file, %error,
                "the times of triggers can't be kept; those that pass while the pump is down may \
                 be missed"
            );
        }
    }
}

/// Returns the value that conditions and the run refer to as `schedule`.
fn value(at: u64, missed: u64) -> Value {
    let at = i64::try_from(at).ok().and_then(|it| Timestamp::from_microsecond(it).ok());
    json!({"due": at.map(|it| it.to_string()), "missed": missed})
}

/// Checks that the file of reported times can be read, if there is one. The error says what to do.
pub(super) fn check(file: &Path) -> Result<(), String> {
    times_in(file).map(drop)
}

/// Reads the file of reported times. Returns None if there is no file.
fn times_in(file: &Path) -> Result<Option<StoredTimes>, String> {
    kept_file::read(file, "times", "remove it, and times that have passed meanwhile are missed")
}
