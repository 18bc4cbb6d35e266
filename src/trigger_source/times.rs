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

/// Where too many missed times of a trigger aren't counted, the newest is looked for in this many
/// microseconds.
const RECENT_US: u64 = 60_000_000;
/// The longest wait in microseconds. After it the wall clock is read again, which may have been
/// set.
const WAIT_MAX_US: u64 = 30_000_000;
/// The wait after a push that was refused, in microseconds.
const REFUSED_US: u64 = 1_000_000;
/// How many missed times of a trigger are counted at most.
const MISSED_MAX: u64 = 10_000;

/// The content of the file of reported times.
#[derive(Debug, Default, Serialize, Deserialize)]
struct StoredTimes {
    /// The UUID of the log.
    log: String,
    /// By the names of the triggers.
    triggers: BTreeMap<String, StoredTime>,
}

/// Up to when a trigger's times are reported.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct StoredTime {
    /// The times as the trigger's definition has them. Another definition begins anew.
    times: String,
    /// In microseconds since the epoch.
    until: u64,
}

/// The triggers that go by a clock, and up to when their times are reported.
pub(super) struct Timetable {
    rules: Vec<EventRule>,
    file: Option<PathBuf>,
    stored: StoredTimes,
}

/// What a trigger's clock has to say now.
#[derive(Debug, PartialEq, Eq)]
struct Due {
    /// The newest time that has come.
    at: u64,
    /// How many earlier ones have come as well.
    missed: u64,
}

/// The newest time that has come since `until`, and how many earlier ones have.
fn due(rule: &EventRule, until: u64, now: u64) -> Option<Due> {
    let times = rule.times()?;
    let mut at = times.after(until).filter(|it| *it <= now)?;
    let mut missed = 0;
    while let Some(next) = times.after(at).filter(|it| *it <= now) {
        if missed == MISSED_MAX {
            // So many have passed that they aren't counted: the newest one is near.
            at = times.after(now.saturating_sub(RECENT_US)).filter(|it| *it <= now).unwrap_or(at);
            break;
        }
        (at, missed) = (next, missed + 1);
    }
    Some(Due { at, missed })
}

impl Timetable {
    /// Reads the file of reported times. What the file doesn't know begins now, and so does a
    /// trigger that skips the times that passed while the pump was down. A time that comes later
    /// is reported, however late.
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

    /// Reports each time when it comes.
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

    /// The time until the next time of any trigger.
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
            // Missed times that aren't counted are over, too.
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

/// What conditions and the run refer to as `schedule`.
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
