//! The listener `timer` sends a `tick` after a delay, at a time, at intervals, or by a cron
//! pattern. A timer is a message that waits in the log, so it survives a stop of the pump.

pub mod cron;

use std::collections::BTreeSet;
use std::time::Duration;

use jiff::tz::TimeZone;
use pumphouse::prelude::*;
use pumphouse::wire::{SignedDuration, Timestamp};

use super::schedule::CurrentThread;

/// The maximum number of missed ticks that are counted for a cron pattern.
const MISSED_MAX: usize = 10_000;
/// The error for a time that no timer can wait for.
const LATE: &str = "that is before now, or behind the year 9999";

/// Sets a timer: one of `in`, `at`, `every` and `cron`. The answer is `timer-set`; a `tick`
/// follows each time it is due.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/core/v1")]
pub struct SetTimer {
    /// The delay from now.
    #[payload(attribute, rename = "in", example = "PT5S")]
    pub after: Option<SignedDuration>,
    /// The time; instead of `in`.
    #[payload(attribute, no_example)]
    pub at: Option<Timestamp>,
    /// The interval, also before the first tick; instead of `in`.
    #[payload(attribute, no_example)]
    pub every: Option<SignedDuration>,
    /// A cron pattern of minute, hour, day, month and weekday, in UTC; instead of `in`.
    #[payload(attribute, no_example, example = "*/5 * * * *")]
    pub cron: Option<String>,
    /// What it is for; each tick repeats it.
    #[payload(attribute)]
    pub note: Option<String>,
}

/// A timer is set.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/core/v1", reserved)]
pub struct TimerSet {
    /// The timer: the number of the entry that set it.
    #[payload(attribute)]
    pub timer: u64,
    /// When it is due first.
    #[payload(attribute)]
    pub due: Timestamp,
}

/// A timer can't be set.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/core/v1", reserved)]
pub struct TimerRefused {
    /// Why not, and how to correct it.
    #[payload(attribute, example = "set one of in, at, every and cron")]
    pub message: String,
}

/// A timer is due.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/core/v1", reserved)]
pub struct Tick {
    /// The timer.
    #[payload(attribute)]
    pub timer: u64,
    /// When it was due.
    #[payload(attribute)]
    pub due: Timestamp,
    /// How late it is, as after a stop of the pump.
    #[payload(attribute, example = "PT0.002S")]
    pub late: SignedDuration,
    /// How many later ticks were skipped, since this one was late.
    #[payload(attribute)]
    pub missed: Option<u64>,
    /// What the timer is for.
    #[payload(attribute)]
    pub note: Option<String>,
}

/// Cancels a timer. The answer is `timer-cleared`.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/core/v1")]
pub struct ClearTimer {
    /// The timer, as `timer-set` names it.
    #[payload(attribute)]
    pub timer: u64,
}

/// A timer was cancelled.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/core/v1", reserved)]
pub struct TimerCleared {
    /// The timer.
    #[payload(attribute)]
    pub timer: u64,
    /// Whether it was still set.
    #[payload(attribute)]
    pub was_set: bool,
}

/// A timer that waits for its time.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/core/v1", reserved, bookkeeping)]
pub struct TimerDue {
    /// The timer.
    #[payload(attribute)]
    pub timer: u64,
    /// When it is due, in microseconds since the epoch.
    #[payload(attribute)]
    pub due: u64,
    /// Its interval, in microseconds.
    #[payload(attribute)]
    pub every: Option<u64>,
    /// Its cron pattern.
    #[payload(attribute)]
    pub cron: Option<String>,
    /// What it is for.
    #[payload(attribute)]
    pub note: Option<String>,
    /// Whether `due` is a time of the wall clock; else of the clock of elapsed time.
    #[payload(attribute)]
    pub clock: Option<bool>,
}

/// The timers of a thread. A fork begins without timers: those of the original thread tick there
/// alone. A fold.
#[derive(Clone, Debug, Default)]
pub struct Timers {
    /// The entry numbers of the unanswered requests for timers.
    asked: BTreeSet<u64>,
    set: BTreeSet<u64>,
    once: BTreeSet<u64>,
    cleared: BTreeSet<u64>,
    thread: CurrentThread,
}

impl Apply for Timers {
    fn apply(&mut self, entry: &Entry) {
        if self.thread.enter(entry) {
            *self = Timers { thread: self.thread.clone(), ..Timers::default() };
        }
        if entry.is_refused() {
            return;
        }
        if let Some(asked) = entry.reply_to().filter(|it| it.thread == *entry.thread()) {
            self.asked.remove(&asked.seq);
        }
        if entry.is::<SetTimer>() {
            self.asked.insert(entry.seq());
        } else if let Some(due) = entry.decode_if::<TimerDue>()
            && !self.cleared.contains(&due.timer)
        {
            self.set.insert(due.timer);
            if due.every.is_none() && due.cron.is_none() {
                self.once.insert(due.timer);
            }
        } else if let Some(cleared) = entry.decode_if::<TimerCleared>() {
            // `clear-timer` may name a number that a later timer gets. So the number counts as
            // cleared only if a timer had it.
            if cleared.was_set {
                self.cleared.insert(cleared.timer);
            }
            self.set.remove(&cleared.timer);
        } else if let Some(tick) = entry.decode_if::<Tick>()
            && self.once.remove(&tick.timer)
        {
            self.set.remove(&tick.timer);
        }
    }
}

impl Timers {
    /// The timers that wait, as the numbers of the entries that set them.
    pub fn all(&self) -> impl Iterator<Item = u64> {
        self.set.iter().copied()
    }

    /// The number of timers that wait, and of unanswered requests for timers before the entry
    /// `seq`.
    fn count_before(&self, seq: u64) -> usize {
        self.set.len() + self.asked.range(..seq).count()
    }

    /// Whether a timer may still tick.
    fn is_set(&self, timer: u64) -> bool {
        let taken = self.set.contains(&timer) || self.asked.contains(&timer);
        taken && !self.cleared.contains(&timer)
    }
}

/// The listener `timer`.
#[must_use]
pub fn timer() -> Listener {
    Listener::new("timer")
        .on(set)
        .on(clear)
        .on(due)
        .fold::<Timers>()
        .wakes(wakes)
        .bookkeeper()
        .grant::<pumphouse::listener::Timers>()
        .grant::<EmitCore>()
        .describe("Ticks after a while, at a time, over and over, or by a cron pattern.")
}

/// A timer for a wall-clock time may tick early by this number of microseconds, since the wall
/// clock drifts from the clock with which the timer waits.
const EARLY_US: u64 = 200_000;

type Set = Result<(TimerSet, Later<TimerDue>), TimerRefused>;

async fn set(
    message: Message,
    timers: Fold<Timers>,
    clock: Clock,
    limits: Limits,
    asked: SetTimer,
) -> Set {
    let refused = |text: &str| TimerRefused { message: text.to_owned() };
    let given =
        [asked.after.is_some(), asked.at.is_some(), asked.every.is_some(), asked.cron.is_some()];
    if given.iter().filter(|it| **it).count() != 1 {
        return Err(refused("set one of in, at, every and cron"));
    }
    let (max, there) = (limits.thread_timers_max, timers.count_before(message.seq()));
    if there >= max {
        let text = format!("thread_timers_max is {max}, and {there} timers are set here");
        return Err(refused(&format!("{text}; take one back with <clear-timer>")));
    }
    let (now_us, wall_us) = (clock.now_us(), clock.wall_us());
    let after = asked.after.map(|it| micros(it).ok_or_else(|| refused(LATE))).transpose()?;
    let every = asked.every.map(|it| micros(it).ok_or_else(|| refused(LATE))).transpose()?;
    // An interval of zero has no next time.
    let least = limits.timer_every_min.max(Duration::from_micros(1));
    if every.is_some_and(|it| Duration::from_micros(it) < least) {
        let least = least.as_secs_f64();
        let text = format!("timer_every_min is {least} s; say every=\"PT{least}S\" or more");
        return Err(refused(&text));
    }
    let due = match (after, asked.at, every, &asked.cron) {
        (Some(after), ..) => now_us.saturating_add(after),
        (_, Some(at), ..) => u64::try_from(at.as_microsecond()).unwrap_or(0),
        (_, _, Some(every), _) => now_us.saturating_add(every),
        (.., Some(pattern)) => {
            cron::check(pattern).map_err(|text| refused(&text))?;
            fits(pattern, wall_us).ok_or_else(|| refused("the pattern never fits"))?
        }
        _ => return Err(refused("set one of in, at, every and cron")),
    };
    let by_clock = asked.at.is_some() || asked.cron.is_some();
    let timer = message.seq();
    let waits = TimerDue {
        timer,
        due,
        every,
        cron: asked.cron,
        note: asked.note,
        clock: by_clock.then_some(true),
    };
    let due_at = stamp(waits.due_by(clock)).ok_or_else(|| refused(LATE))?;
    Ok((TimerSet { timer, due: due_at }, waits.waits()))
}

impl TimerDue {
    fn is_by_clock(&self) -> bool {
        self.clock.is_some_and(|it| it) || self.cron.is_some()
    }

    /// The wall-clock time at which the timer is due, in microseconds. A time of the pump's clock
    /// is converted by the current difference between the two clocks.
    fn due_by(&self, clock: Clock) -> u64 {
        if self.is_by_clock() {
            return self.due;
        }
        let ahead_us = clock.wall_us().cast_signed() - clock.now_us().cast_signed();
        self.due.saturating_add_signed(ahead_us)
    }

    fn waits(self) -> Later<TimerDue> {
        let (due, by_clock) = (self.due, self.is_by_clock());
        let later = Later::at(due, self).unawaited();
        if by_clock { later.by_clock() } else { later }
    }
}

async fn clear(timers: Fold<Timers>, clear: ClearTimer) -> TimerCleared {
    TimerCleared { timer: clear.timer, was_set: timers.is_set(clear.timer) }
}

/// A tick, and the message that waits for the next one. Both are sent in one step, so no timer is
/// lost between them.
type Ticked = (Option<Reply<Tick>>, Option<Later<TimerDue>>);

/// Ticks, and sets the next tick of a repeated timer. Does nothing if the timer was cleared. If the
/// wall clock was set back, the timer waits again.
async fn due(
    history: History,
    timers: Fold<Timers>,
    clock: Clock,
    it: TimerDue,
) -> Result<Ticked, Fault> {
    if timers.cleared.contains(&it.timer) {
        return Ok((None, None));
    }
    let now_us = if it.is_by_clock() { clock.wall_us() } else { clock.now_us() };
    if it.is_by_clock() && now_us.saturating_add(EARLY_US) < it.due {
        // The wall clock was set back.
        let due = it.cron.as_ref().map_or(Some(it.due), |pattern| fits(pattern, now_us));
        return Ok((None, due.map(|due| TimerDue { due, ..it }.waits())));
    }
    let (next, missed) = next(&it, now_us);
    let late = SignedDuration::from_micros(now_us.saturating_sub(it.due).cast_signed());
    let Some(due) = stamp(it.due_by(clock)) else { return Ok((None, None)) };
    let tick = Tick { timer: it.timer, due, late, missed, note: it.note.clone() };
    let asked = history.read(it.timer - 1, 1).await?.into_iter().next();
    let next = next.map(|due| TimerDue { due, ..it }.waits());
    Ok((asked.map(|asked| Reply(asked, tick)), next))
}

/// The next time at which a timer is due, and the number of ticks that it has missed. The time is
/// None for a timer that ticks once; the number is None if no tick was missed. For a cron pattern,
/// at most `MISSED_MAX` missed ticks are counted.
fn next(tick: &TimerDue, now_us: u64) -> (Option<u64>, Option<u64>) {
    if let Some(every) = tick.every {
        let passed = now_us.saturating_sub(tick.due) / every;
        let next = tick.due.saturating_add(every.saturating_mul(passed + 1));
        return (Some(next), (passed > 0).then_some(passed));
    }
    let Some(pattern) = tick.cron.as_deref() else { return (None, None) };
    let after = std::iter::successors(fits(pattern, tick.due), |due| fits(pattern, *due));
    let missed = after.take_while(|due| *due <= now_us).take(MISSED_MAX).count() as u64;
    (fits(pattern, now_us), (missed > 0).then_some(missed))
}

/// Whether the entry `came` causes the early delivery of a waiting `timer-due` message. Such an
/// entry reports that the message's timer was cleared.
fn wakes(waiting: &Entry, came: &Entry) -> bool {
    came.is::<TimerCleared>()
        && came.thread() == waiting.thread()
        && match (waiting.decode::<TimerDue>(), came.decode::<TimerCleared>()) {
            (Ok(waiting), Ok(came)) => waiting.timer == came.timer,
            _ => false,
        }
}

/// The first time after `now_us` that a cron pattern matches, in UTC.
fn fits(pattern: &str, now_us: u64) -> Option<u64> {
    cron::after(pattern, now_us, &TimeZone::UTC)
}

fn stamp(us: u64) -> Option<Timestamp> {
    Timestamp::from_microsecond(i64::try_from(us).ok()?).ok()
}

/// A duration in microseconds. None if it is negative or too long.
fn micros(duration: SignedDuration) -> Option<u64> {
    u64::try_from(duration.as_micros()).ok()
}
