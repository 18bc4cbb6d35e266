//! Counts the pushes that doors refuse, by sender and reason. The organism's own thread gets a
//! report of these refusals at most once a minute, and the traces get a line at most once a second.
//! These bounds keep strangers from filling the log.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use tokio::sync::Notify;

use crate::wire::core::{DoorRefusal, DoorRefusals};
use crate::wire::{Code, Fault, Timestamp};
use crate::xml::writable;

/// How many pairs of a sender and a reason are counted separately.
const PAIRS_MAX: usize = 100;

/// How many characters of a sender are kept.
const SENDER_MAX: usize = 100;

/// The tracing target of refusals, by which operators can filter these traces.
pub(crate) const TARGET: &str = "pumphouse::engine::refusals";
/// The shortest time between two traces.
const TRACES_APART_US: u64 = 1_000_000;

/// The refusals since the last report.
#[derive(Default)]
pub(crate) struct Refusals {
    counts: Mutex<Counted>,
    pub(super) arrived: Notify,
    /// Starts the task that reports refusals, after the first refusal.
    begin: OnceLock<Begin>,
}

/// Starts the task that reports refusals.
type Begin = Box<dyn Fn() + Send + Sync>;

#[derive(Default)]
pub(super) struct Counted {
    first_us: Option<u64>,
    /// Maps a sender and a reason to the number of refusals. Refusals that are not counted
    /// separately have no sender here.
    counts: BTreeMap<(Option<Arc<str>>, Code), u64>,
    /// The time of the last trace.
    traced_us: Option<u64>,
    untraced: u64,
    is_told_of: bool,
    pub(super) is_over: bool,
}

impl Refusals {
    /// Counts a refusal.
    pub(crate) fn note(&self, who: &str, fault: &Fault, now_us: u64) {
        let (who, code): (String, Code) = (who.chars().take(SENDER_MAX).collect(), fault.code);
        let mut all = self.lock();
        let count = all.add(&who, code, now_us);
        let is_first = !std::mem::replace(&mut all.is_told_of, true);
        drop(all);
        if let Some(begin) = self.begin.get().filter(|_| is_first) {
            begin();
        }
        self.arrived.notify_one();
        if let Some(count) = count {
            tracing::warn!(target: TARGET, ?who, %code, count, "refused at a door");
        }
    }

    /// Sets the function that starts the task which reports refusals.
    pub(crate) fn begins(&self, begin: impl Fn() + Send + Sync + 'static) {
        drop(self.begin.set(Box::new(begin)));
    }

    /// Ends the reports.
    pub(crate) fn close(&self) {
        self.lock().is_over = true;
        self.arrived.notify_one();
    }

    /// Takes all counts, in the form of the payload that reports them. Returns None if nothing was
    /// refused.
    pub(super) fn take(&self, now_us: u64) -> Option<DoorRefusals> {
        let mut all = self.lock();
        let first_us = all.first_us.take()?;
        let counts = std::mem::take(&mut all.counts);
        drop(all);
        let refused = |((who, code), count): ((Option<Arc<str>>, Code), u64)| DoorRefusal {
            who: who.as_deref().map(writable),
            code: code.to_string(),
            count,
        };
        Some(DoorRefusals {
            since: stamp(first_us),
            until: stamp(now_us),
            count: counts.values().sum(),
            refused: counts.into_iter().map(refused).collect(),
        })
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Counted> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Counted {
    /// Counts a refusal. If a trace is due, returns how many refusals the trace is about.
    fn add(&mut self, who: &str, code: Code, now_us: u64) -> Option<u64> {
        self.first_us.get_or_insert(now_us);
        let named = (Some(Arc::from(who)), code);
        let is_known = self.counts.len() < PAIRS_MAX || self.counts.contains_key(&named);
        let pair = if is_known { named } else { (None, code) };
        *self.counts.entry(pair).or_default() += 1;
        self.untraced += 1;
        // If the clock went back, the trace is due at once.
        let is_due = |last: u64| now_us < last || now_us - last >= TRACES_APART_US;
        if !self.traced_us.is_none_or(is_due) {
            return None;
        }
        self.traced_us = Some(now_us);
        Some(std::mem::take(&mut self.untraced))
    }
}

/// Returns a time in the form that payloads have.
pub(crate) fn stamp(us: u64) -> Timestamp {
    let us = i64::try_from(us).unwrap_or(i64::MAX);
    Timestamp::from_microsecond(us).unwrap_or(Timestamp::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000;

    #[test]
    fn a_second_has_one_trace_and_it_says_how_many_came() {
        let mut all = Counted::default();
        let mut traced = Vec::new();
        for at in [0, 1, 2, SECOND, SECOND + 1, 3 * SECOND, 2] {
            traced.push(all.add("ada", Code::Invalid, at));
        }
        assert_eq!(traced, [Some(1), None, None, Some(3), None, Some(2), Some(1)]);
    }

    #[test]
    fn senders_are_told_apart_as_long_as_they_are_few() {
        let refusals = Refusals::default();
        let fault = |code| Fault::new(code, "wrong");
        assert!(refusals.take(0).is_none());
        for sender in 0..1_000 {
            refusals.note(&sender.to_string(), &fault(Code::Malformed), SECOND);
            refusals.note("0", &fault(Code::Malformed), SECOND);
            refusals.note(&sender.to_string(), &fault(Code::Invalid), SECOND);
        }
        let told = refusals.take(2 * SECOND).unwrap();
        assert_eq!((told.count, told.since, told.until), (3_000, stamp(SECOND), stamp(2 * SECOND)));
        assert_eq!(told.refused.iter().map(|it| it.count).sum::<u64>(), 3_000);
        assert_eq!(told.refused.len(), PAIRS_MAX + 2);
        let others = told.refused.iter().filter(|it| it.who.is_none()).collect::<Vec<_>>();
        assert_eq!(others.iter().map(|it| &*it.code).collect::<Vec<_>>(), ["P0001", "P0007"]);
        assert!(told.refused.iter().any(|it| it.who.as_deref() == Some("0") && it.count == 1_001));
        assert!(refusals.take(0).is_none());
    }
}
