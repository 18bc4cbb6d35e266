//! Orders the entries of a view as a prompt shows them. This module is pure.
//!
//! Messages that wait for the end of the work at hand are in no prompt until a turn shows them. In
//! later prompts, these messages stay at the place of that turn. Thus a prompt begins with the
//! prompt of the turn before.

use std::collections::{BTreeMap, BTreeSet};

use memchr::memmem;
use pumphouse::name::CORE_NAME;
use pumphouse::prelude::*;
use pumphouse::wire::core::{ThreadResult, ThreadSpawned};

use super::super::action::action_of;
use super::super::action::words::{Action, ActionResult, NAME as ACTION};
use super::super::words::turn_policy::number;
use super::prompt_form::Form;
use super::words::{CognitionIn, Notice, Response, ResponseWaits, flag, is_last_word};

/// Sorts the entries of a view as a prompt shows them, and leaves out messages that still wait.
pub(super) fn ordered(agent: &str, view: Vec<Entry>, waiting: &[u64]) -> Vec<Entry> {
    // Most threads have one asker, so that nothing waits. Then no entry has to be decoded.
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
    // The place of each moved message is after the last entry of the first prompt that shows it.
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

/// The last line of a prompt: the agent's actions and threads that run, and its actions and
/// responses that are held. Empty if there are none.
pub(super) fn under_way(form: Form<'_>, agent: &str, view: &[Entry]) -> String {
    let view = || view.iter().filter(|entry| !entry.is_refused());
    let is_result = |entry: &&Entry| entry.from() == ACTION && entry.is::<ActionResult>();
    // Most actions of a view have ended. To save time, only the number of the action is read from
    // each result.
    let ended = view().filter(is_result).filter_map(|entry| number(entry, "of"));
    let ended: BTreeSet<u64> = ended.collect();
    let mut actions: BTreeMap<u64, (String, bool)> = BTreeMap::new();
    let (mut threads, mut responses): (Vec<String>, Vec<bool>) = (Vec::new(), Vec::new());
    for entry in view() {
        let is_own = entry.from() == agent && !entry.is_from_identity();
        if is_own && entry.is::<Action>() {
            let action = (!ended.contains(&entry.seq())).then(|| entry.decode_if::<Action>());
            actions.extend(action.flatten().map(|it| (entry.seq(), (it.id, false))));
        } else if is_own {
            if let Some(waits) = entry.decode_if::<ResponseWaits>() {
                responses.push(waits.is_final);
            } else if responses.is_empty() {
                continue;
            } else if is_last_word(entry) {
                responses.clear();
            } else if is_settled(entry) {
                responses.remove(0);
            }
        } else if !actions.is_empty() && is_call(entry) {
            if let Some(key) = entry.key()
                && let Some(of) = action_of(&key)
                && let Some((_, has_begun)) = actions.get_mut(&of)
            {
                *has_begun = true;
            }
        } else if entry.to() == Some(agent) && entry.is_from_core() {
            if let Some(it) = entry.decode_if::<ThreadSpawned>() {
                threads.push(it.assigned_id);
            } else if let Some(it) = entry.decode_if::<ThreadResult>() {
                threads.retain(|thread| *thread != it.thread);
            }
        }
    }
    let (running, held): (Vec<_>, Vec<_>) = actions.into_values().partition(|(_, begun)| *begun);
    let running = running.into_iter().map(|(id, _)| id);
    let running = running.chain(threads.into_iter().map(|it| format!("thread {it}")));
    let said = |is_final: &bool| match is_final {
        true => "your final response".to_owned(),
        false => "a response of yours".to_owned(),
    };
    let held = held.into_iter().map(|(id, _)| id).chain(responses.iter().map(said));
    let listed = |word: &str, names: Vec<String>| {
        (!names.is_empty()).then(|| format!("{word}: {}", names.join(", ")))
    };
    let parts = [listed("running", running.collect()), listed("held", held.collect())];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    if parts.is_empty() { String::new() } else { form.line(&parts.join("; ")) }
}

/// Whether the entry may be the call of an action, or say that the call has a thread of its own.
fn is_call(entry: &Entry) -> bool {
    match entry.from() {
        ACTION => !entry.is::<ActionResult>(),
        CORE_NAME => entry.to() == Some(ACTION) && entry.is::<ThreadSpawned>(),
        _ => false,
    }
}

/// Whether an agent's entry settles a waiting response. Such an entry delivers the response, or
/// says that the response wasn't delivered.
fn is_settled(entry: &Entry) -> bool {
    flag::<Response>(entry, "was_held").unwrap_or_default()
        || entry.is::<Notice>() && entry.attribute("response").is_some()
}

/// The entry numbers of the results that came after the end of the work to which they belong.
pub(super) fn late(agent: &str, view: &[Entry]) -> BTreeSet<u64> {
    let (mut open, mut old, mut late) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    for entry in view.iter().filter(|it| !it.is_refused()) {
        let is_own = entry.from() == agent && !entry.is_from_identity();
        if is_own && entry.is::<Action>() {
            open.insert(entry.seq().to_string());
        } else if entry.to() == Some(agent) && entry.is_from_core() {
            if let Some(it) = entry.decode_if::<ThreadSpawned>() {
                open.insert(it.assigned_id);
            } else if let Some(it) = entry.decode_if::<ThreadResult>()
                && old.contains(&it.thread)
            {
                late.insert(entry.seq());
            }
        } else if entry.to() == Some(agent) && !old.is_empty() && entry.is::<ActionResult>() {
            if number(entry, "of").is_some_and(|of| old.contains(&of.to_string())) {
                late.insert(entry.seq());
            }
        } else if is_own && !open.is_empty() && is_last_word(entry) {
            old.append(&mut open);
        }
    }
    late
}
