//! Which entries a prompt shows, and where. Pure.
//!
//! Messages that wait until the work at hand is done stand in no prompt until a turn shows them,
//! and from then on where that turn stands, so that a prompt begins with the prompt of the turn
//! before it.

use std::collections::{BTreeMap, BTreeSet};

use memchr::memmem;
use pumphouse::prelude::*;
use pumphouse::wire::core::{ThreadResult, ThreadSpawned};

use super::super::action::words::{Action, ActionResult};
use super::words::{CognitionIn, is_last_word};

/// The entries of a view as a prompt shows them, without those that still wait.
pub(super) fn ordered(agent: &str, view: Vec<Entry>, waiting: &[u64]) -> Vec<Entry> {
    // Most threads have one asker, and nothing is read for them.
    let is_turn = |it: &Entry| it.from() == agent && it.is::<CognitionIn>();
    let waits = |it: &Entry| is_turn(it) && memmem::find(it.body(), b" waiting=").is_some();
    if waiting.is_empty() && !view.iter().any(waits) {
        return view;
    }
    let turns = view.iter().filter(|it| it.from() == agent);
    let turns: Vec<CognitionIn> = turns.filter_map(|it| it.decode_if()).collect();
    let mut moved: BTreeSet<u64> =
        turns.iter().filter_map(|it| it.waiting.clone()).flatten().collect();
    moved.extend(waiting);
    if moved.is_empty() {
        return view;
    }
    // Where each of them stands: behind the last entry that the turn was shown which shows it.
    let mut places: BTreeMap<u64, u64> = BTreeMap::new();
    for seq in &moved {
        let waits = |it: &CognitionIn| it.waiting.as_ref().is_some_and(|it| it.contains(seq));
        let shows = |it: &&CognitionIn| it.until >= *seq && !waits(it);
        let shown = turns.iter().find(shows).map(|it| it.until);
        let now = || (!waiting.contains(seq)).then_some(u64::MAX);
        places.extend(shown.or_else(now).map(|until| (*seq, until)));
    }
    let (mut all, mut behind): (Vec<Entry>, Vec<Entry>) = (Vec::new(), Vec::new());
    for entry in view {
        let seq = entry.seq();
        let is_due = |it: &mut Entry| places.get(&it.seq()).is_some_and(|until| *until < seq);
        all.extend(behind.extract_if(.., is_due));
        if !moved.contains(&seq) {
            all.push(entry);
        } else if places.contains_key(&seq) {
            behind.push(entry);
        }
    }
    all.extend(behind);
    all
}

/// The results of what an agent began for work that was done when they came.
pub(super) fn late(agent: &str, view: &[Entry]) -> BTreeSet<u64> {
    let (mut open, mut old, mut late) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    for entry in view.iter().filter(|it| !it.is_refused()) {
        let is_own = entry.from() == agent && !entry.is_from_identity();
        if is_own && entry.is::<Action>() {
            open.insert(entry.seq().to_string());
        } else if entry.to() == Some(agent) && entry.from() == "core" {
            if let Some(it) = entry.decode_if::<ThreadSpawned>() {
                open.insert(it.assigned_id);
            } else if let Some(it) = entry.decode_if::<ThreadResult>()
                && old.contains(&it.thread)
            {
                late.insert(entry.seq());
            }
        } else if entry.to() == Some(agent)
            && !old.is_empty()
            && let Some(it) = entry.decode_if::<ActionResult>()
        {
            if old.contains(&it.of.to_string()) {
                late.insert(entry.seq());
            }
        } else if is_own && is_last_word(entry) {
            old.append(&mut open);
        }
    }
    late
}
