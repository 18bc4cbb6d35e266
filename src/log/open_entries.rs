//! Finds the open entries: those that some receiver hasn't consumed yet. A log passes its entries
//! and marks to [`OpenEntries`] in the order of their commits.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::log::entry::{Entry, LastStart, Open};
use crate::log::mark_bytes::{MarkRow, Marked};

/// Collects entries. Drops an entry when its marks say that all its receivers have consumed it.
#[derive(Default)]
pub(super) struct OpenEntries(FxHashMap<(u64, u64), OpenEntry>);

/// An entry's numbers, and how many receivers it has.
#[derive(Clone, Copy)]
pub(super) struct EntryNumbers {
    pub(super) thread: u64,
    pub(super) seq: u64,
    pub(super) position: u64,
    pub(super) receivers: u32,
}

/// An entry that some receiver hasn't consumed yet, with the contents of its marks.
pub(super) struct OpenEntry {
    pub(super) position: u64,
    receivers: u32,
    started: BTreeMap<Arc<str>, LastStart>,
    consumed: BTreeSet<Arc<str>>,
    waits: BTreeMap<Arc<str>, u64>,
}

impl OpenEntry {
    /// Makes the record that `Log::open_entries` returns. `entry` is the entry itself.
    pub(super) fn of(self, entry: Arc<Entry>) -> Open {
        let started = self.started.into_iter().collect();
        let consumed = self.consumed.into_iter().collect();
        let waits = self.waits.into_iter().collect();
        Open { entry, started, consumed, waits }
    }
}

impl OpenEntries {
    pub(super) fn entry(&mut self, numbers: EntryNumbers) {
        let EntryNumbers { thread, seq, position, receivers } = numbers;
        if receivers > 0 {
            let (started, consumed, waits) = Default::default();
            let waiting = OpenEntry { position, receivers, started, consumed, waits };
            self.0.insert((thread, seq), waiting);
        }
    }

    pub(super) fn mark(&mut self, mark: &MarkRow) {
        let key = (mark.thread, mark.seq);
        let Some(waiting) = self.0.get_mut(&key) else { return };
        match mark.kind {
            Marked::Started(attempt, as_of) => {
                let last = waiting.started.entry(mark.listener.clone()).or_default();
                // A start with the number 0 says only that the listener gets the entry.
                if attempt > 0 || last.attempt == 0 {
                    *last = LastStart { attempt, as_of };
                }
            }
            // The attempt before this one began, if there was one. All attempts see the same.
            Marked::Stopped => {
                if let Some(last) = waiting.started.get_mut(&mark.listener) {
                    last.attempt = last.attempt.saturating_sub(1);
                    last.as_of = last.as_of.filter(|_| last.attempt > 0);
                }
            }
            Marked::Waits(until_us) => {
                waiting.waits.insert(mark.listener.clone(), until_us);
            }
            Marked::Consumed(_) if waiting.receivers == 1 => {
                self.0.remove(&key);
            }
            Marked::Consumed(_) => {
                waiting.consumed.insert(mark.listener.clone());
                if waiting.consumed.len() >= waiting.receivers as usize {
                    self.0.remove(&key);
                }
            }
        }
    }

    /// The open entries, by position.
    pub(super) fn finish(self) -> Vec<OpenEntry> {
        let mut all: Vec<OpenEntry> = self.0.into_values().collect();
        all.sort_unstable_by_key(|it| it.position);
        debug_assert!(
            all.iter().all(|it| it.consumed.len() < it.receivers as usize),
            "an open entry has a receiver that hasn't consumed it"
        );
        all
    }
}
