//! Reports the times at which triggers fire.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::last_run::{LastRun, Progress};
use super::push;
use crate::clock;
use crate::engine::{LiveQueue, Port as _, Pump, Tokio};
use crate::follower::kept_file;
use crate::id::{EntryId, ThreadId};
use crate::wire::{Code, Fault, Json, Timestamp};
use pumphouse_listeners::thread::CancelThread;
use pumphouse_listeners::trigger::EventRule;
use pumphouse_listeners::trigger::words::TriggerDue;
use pumphouse_listeners::workflow::definition::{Missed, Overlap};

/// How far before the present time the newest missed time of a trigger is searched for, in
/// microseconds. Applies if more than `MISSED_MAX` times were missed.
const RECENT_US: u64 = 60_000_000;
/// The longest wait in microseconds. After this wait the wall clock is read again, since the clock
/// may have been set.
const WAIT_MAX_US: u64 = 30_000_000;
/// The wait after a push that was refused, in microseconds.
const REFUSED_US: u64 = 1_000_000;
/// The wait after the log has grown while a time waits for a run to end, in microseconds. A busy
/// log grows often.
const GROWN_US: u64 = 20_000;
/// The listener that cancels threads.
const THREADS: &str = "thread";
/// The largest number of missed times of a trigger that are counted.
const MISSED_MAX: u64 = 10_000;

/// The largest number of times of a schedule with `overlap: queue` that wait for the runs before
/// them. A schedule whose runs take longer than its interval gets no further behind than this.
const SCHEDULE_QUEUE_MAX: usize = 100;

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
    /// Times up to this one have been reported, skipped or put to wait. In microseconds since the
    /// epoch.
    until: u64,
    /// The times that wait until the run before them has ended.
    #[serde(default)]
    waiting: Vec<Due>,
    /// The number of times that were skipped since the last run began, because it was at work.
    #[serde(default)]
    skipped: u64,
    /// The message that began the last run, until the run has ended.
    #[serde(default)]
    last: Option<String>,
}

/// The triggers with a schedule, and how far the times of each have been reported.
pub(super) struct Timetable {
    rules: Vec<EventRule>,
    file: Option<PathBuf>,
    stored: StoredTimes,
    /// Maps a trigger's name to its last run, until the run has ended.
    runs: BTreeMap<String, LastRun>,
    /// Whether `stored` is to be written into the file.
    has_changed: bool,
}

/// The times of a trigger that have come and aren't reported yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
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
    /// while the pump is down. Any other trigger continues from its stored time. Times that wait
    /// for a run came while the pump was up, so they stay.
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
            let there = there.triggers.get(rule.name());
            let mut stored = match there.filter(|it| it.times == times) {
                Some(known) => known.clone(),
                // A run may be at work that began before the times were changed.
                None => StoredTime {
                    times,
                    until: now,
                    waiting: Vec::new(),
                    skipped: 0,
                    last: there.and_then(|it| it.last.clone()),
                },
            };
            if rule.missed() == Missed::Skip {
                stored.until = now;
            }
            (rule.name().to_owned(), stored)
        });
        let stored = StoredTimes { log, triggers: each.collect() };
        let run = |(name, it): (&String, &StoredTime)| {
            Some((name.clone(), LastRun::new(it.last.as_ref()?.parse().ok()?)))
        };
        let runs = stored.triggers.iter().filter_map(run).collect();
        let timetable = Timetable { rules, file, stored, runs, has_changed: false };
        timetable.keep();
        Ok(timetable)
    }

    /// Reports each time when it comes. Never ends by itself.
    pub(super) async fn run(&mut self, pump: &Pump) {
        let (port, grown) = (Tokio::current(), pump.live_queue(false));
        loop {
            let wait_us = match self.report(pump).await {
                Ok(()) => self.wait_us(port.wall_us()),
                Err(fault) => {
                    tracing::warn!(%fault, "a trigger's message was refused; trying on");
                    REFUSED_US
                }
            };
            let until = port.now_us().saturating_add(wait_us);
            tokio::select! {
                () = port.sleep_until(until) => {}
                () = self.grown(&port, &grown) => {}
            }
        }
    }

    /// Waits until the log has grown. Waits for ever if no time waits for the end of a run.
    async fn grown(&self, port: &Tokio, grown: &LiveQueue) {
        if self.stored.triggers.values().all(|it| it.waiting.is_empty()) {
            return std::future::pending().await;
        }
        grown.grown().await;
        port.sleep_until(port.now_us().saturating_add(GROWN_US)).await;
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
        let now = Tokio::current().wall_us();
        let mut reported = Ok(());
        for rule in self.rules.clone() {
            reported = self.report_times(&rule, now, pump).await;
            if reported.is_err() {
                break;
            }
        }
        if std::mem::take(&mut self.has_changed) {
            self.keep();
        }
        reported
    }

    /// Reports the times of a trigger that have come, as far as its last run lets them.
    async fn report_times(&mut self, rule: &EventRule, now: u64, pump: &Pump) -> Result<(), Fault> {
        let Some(stored) = self.stored.triggers.get(rule.name()) else { return Ok(()) };
        let due = due(rule, stored.until, now);
        if due.is_none() && stored.waiting.is_empty() {
            return Ok(());
        }
        let progress = self.progress(rule, pump).await?;
        let Some(stored) = self.stored.triggers.get_mut(rule.name()) else { return Ok(()) };
        if let Some(due) = due {
            self.has_changed = true;
            stored.until = due.at;
            // If the newest reported time isn't the last one before `now`, the times between are
            // skipped.
            let next = rule.times().and_then(|it| it.after(stored.until));
            if next.is_some_and(|it| it <= now) {
                stored.until = now;
            }
            if stored.admit(due, rule.overlap(), &progress) {
                self.tell_of_skipped(rule);
            }
        }
        let Some(stored) = self.stored.triggers.get(rule.name()) else { return Ok(()) };
        let Some(first) = stored.waiting.first().copied() else { return Ok(()) };
        match progress {
            Progress::Over => self.begin(rule, first, pump).await,
            Progress::AtWork(run) if rule.overlap() == Overlap::Cancel => {
                self.cancel(rule, first, &run, pump).await
            }
            Progress::AtWork(_) | Progress::Begins => Ok(()),
        }
    }

    /// Returns how far the last run of a trigger is.
    async fn progress(&mut self, rule: &EventRule, pump: &Pump) -> Result<Progress, Fault> {
        let Some(run) = self.runs.get_mut(rule.name()) else { return Ok(Progress::Over) };
        let progress = run.progress(&**pump.log(), rule.name()).await;
        let progress = progress.map_err(|it| Fault::new(Code::Broken, it.to_string()))?;
        if progress == Progress::Over {
            self.runs.remove(rule.name());
            if let Some(stored) = self.stored.triggers.get_mut(rule.name()) {
                stored.last = None;
                self.has_changed = true;
            }
        }
        Ok(progress)
    }

    /// Tells once for each run that a time was skipped because of it.
    fn tell_of_skipped(&mut self, rule: &EventRule) {
        let Some(run) = self.runs.get_mut(rule.name()) else { return };
        if !std::mem::replace(&mut run.is_told, true) {
            let (rule, run) = (rule.name(), run.due());
            tracing::warn!(rule, %run, "a time of a schedule is skipped: its last run is at work");
        }
    }

    /// Begins the run of a time that waits.
    async fn begin(&mut self, rule: &EventRule, first: Due, pump: &Pump) -> Result<(), Fault> {
        let Some(stored) = self.stored.triggers.get_mut(rule.name()) else { return Ok(()) };
        let message = TriggerDue {
            rule: rule.name().to_owned(),
            of: None,
            from: None,
            depth: 1,
            first: None,
            within: None,
            value: Json(value(first, stored.skipped)),
        };
        let id = format!("{}/{}", rule.name(), first.at);
        let told: EntryId = push(pump, rule.thread(), &message, &id).await?;
        stored.waiting.remove(0);
        (stored.skipped, stored.last) = (0, Some(told.to_string()));
        self.has_changed = true;
        self.runs.insert(rule.name().to_owned(), LastRun::new(told));
        Ok(())
    }

    /// Cancels the last run of a trigger for the sake of a time that waits.
    async fn cancel(
        &self,
        rule: &EventRule,
        first: Due,
        run: &ThreadId,
        pump: &Pump,
    ) -> Result<(), Fault> {
        let reason = format!("the next time of the schedule {} has come", rule.name());
        let (thread, id) = (run.to_string(), format!("{}/{}/cancel", rule.name(), first.at));
        let cancel = CancelThread { thread: Some(thread), reason: Some(reason) };
        let pump = pump.in_thread(&run.tree()).to(THREADS);
        match pump.tell_as_core(&cancel, &id).await {
            Err(fault) if super::is_of_pump(&fault) => Err(fault),
            Err(fault) => {
                tracing::debug!(%run, %fault, "the run of a schedule isn't cancelled");
                Ok(())
            }
            Ok(_) => Ok(()),
        }
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

impl StoredTime {
    /// Puts a time that has come in the list of those that wait, or skips it. A time that needn't
    /// wait is in the list for a moment. Returns whether a time was skipped.
    fn admit(&mut self, due: Due, overlap: Overlap, progress: &Progress) -> bool {
        let before = self.skipped;
        let is_full = match overlap {
            Overlap::Skip => *progress != Progress::Over || !self.waiting.is_empty(),
            Overlap::Queue => self.waiting.len() >= SCHEDULE_QUEUE_MAX,
            Overlap::Cancel => {
                self.skipped += self.waiting.drain(..).map(|it| it.missed + 1).sum::<u64>();
                false
            }
        };
        if is_full {
            self.skipped += due.missed + 1;
        } else {
            self.waiting.push(due);
        }
        self.skipped > before
    }
}

/// Returns the value that conditions and the run refer to as `schedule`.
fn value(due: Due, skipped: u64) -> Value {
    let at = i64::try_from(due.at).ok().and_then(|it| Timestamp::from_microsecond(it).ok());
    json!({"due": at.map(|it| it.to_string()), "missed": due.missed, "skipped": skipped})
}

/// Checks that the file of reported times can be read, if there is one. The error says what to do.
pub(super) fn check(file: &Path) -> Result<(), String> {
    times_in(file).map(drop)
}

/// Reads the file of reported times. Returns None if there is no file.
fn times_in(file: &Path) -> Result<Option<StoredTimes>, String> {
    kept_file::read(file, "times", "remove it, and times that have passed meanwhile are missed")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What becomes of times that come in this order, each while a run is at work or not: the times
    /// that wait, and the number of the skipped ones.
    fn check(overlap: Overlap, come: &[(u64, bool)], waiting: &[u64], skipped: u64) {
        let times = String::new();
        let mut stored = StoredTime { times, until: 0, waiting: vec![], skipped: 0, last: None };
        for (at, is_at_work) in come {
            let run = || Progress::AtWork(ThreadId::new("sess-a.w"));
            let progress = if *is_at_work { run() } else { Progress::Over };
            stored.admit(Due { at: *at, missed: 0 }, overlap, &progress);
        }
        let waits: Vec<u64> = stored.waiting.iter().map(|it| it.at).collect();
        assert_eq!((&waits[..], stored.skipped), (waiting, skipped), "{overlap:?} {come:?}");
    }

    #[test]
    fn a_time_that_comes_while_a_run_is_at_work_is_skipped_waits_or_takes_its_place() {
        check(Overlap::Skip, &[(1, false)], &[1], 0);
        check(Overlap::Skip, &[(1, true), (2, true), (3, false)], &[3], 2);
        check(Overlap::Queue, &[(1, true), (2, true), (3, false)], &[1, 2, 3], 0);
        check(Overlap::Cancel, &[(1, true), (2, true), (3, true)], &[3], 2);
    }

    #[test]
    fn no_more_than_so_many_times_wait() {
        let many: Vec<(u64, bool)> = (1..=102).map(|it| (it, true)).collect();
        let first: Vec<u64> = (1..=100).collect();
        check(Overlap::Queue, &many, &first, 2);
    }
}
