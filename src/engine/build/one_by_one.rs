//! Handles messages alone, one after another, if they were under way whenever the process ended.
//! Nothing else is handled meanwhile: neither pushes nor timers nor other unfinished work. See
//! `tree/trial.rs`.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::engine::common::inbox::Mail;
use crate::engine::common::lifecycle;
use crate::engine::common::shared::{Shared, Stage};
use crate::engine::tree::event::{Event, Key, Trial, Unfinished};
use crate::engine::tree::trial::{
    ATTEMPT_ALONE, ATTEMPT_FIRST, ATTEMPT_PAUSED, ATTEMPTS_TOGETHER, attempts,
};
use crate::id::ThreadId;
use crate::listener::Entry;
use crate::log;
use crate::log::LastStart;

/// How long a message is handled alone. After that, it is handled together with the others.
const ALONE: Duration = Duration::from_secs(10);
/// How long a message waits, with nothing under way, that has ended the process right after a
/// start. It is longer than [`ALONE`], so an end at the same time after a start is another one's.
const PAUSE: Duration = Duration::from_secs(15);
/// How long messages are handled alone at one start. The others are then handled together.
const ALL: Duration = Duration::from_secs(60);

/// A message that is to be handled alone.
struct Suspect {
    key: Key,
    /// How many attempts ended with the process.
    attempts: u32,
}

/// Handles messages alone that were under way at [`ATTEMPTS_TOGETHER`] ends of the process in a
/// row. If there are such messages, takes all unfinished entries from `threads`, and holds them
/// meanwhile. Attempts that a stop of the pump cut off don't count.
pub(super) async fn handle(
    shared: &Shared,
    threads: &mut BTreeMap<ThreadId, Vec<Unfinished>>,
) -> Result<(), log::Error> {
    let mut suspects: Vec<Suspect> =
        threads.values().flatten().flat_map(|it| suspects(shared, it)).collect();
    if suspects.is_empty() {
        return Ok(());
    }
    if lifecycle::was_stopped(shared).await? {
        let started = threads.values_mut().flatten().flat_map(|it| &mut it.open.started);
        started.for_each(|(_, last)| last.attempt = last.attempt.min(1));
        return Ok(());
    }
    suspects.sort_by_key(|it| std::cmp::Reverse(it.attempts));
    tracing::warn!(
        count = suspects.len(),
        "messages were under way whenever the pump ended; they are handled one by one"
    );
    let held: Vec<ThreadId> = threads.keys().cloned().collect();
    for (thread, mut left) in std::mem::take(threads) {
        left.iter_mut().for_each(|it| it.is_held = true);
        shared.workers.post(&thread, Mail::Resume(thread.clone(), left));
    }
    shared.workers.inboxes.iter().for_each(|it| it.post(Mail::BeginUnfinished));
    let mut stage = shared.state.stage.subscribe();
    tokio::select! {
        () = handle_all(shared, suspects) => {}
        // An error means that the pump is gone.
        _ = stage.wait_for(|it| *it != Stage::Running) => {}
    }
    for thread in held {
        post(shared, &thread, Event::LetGo(thread.clone()));
    }
    Ok(())
}

/// Handles the messages one after another. Only the first of them can be found poisonous at this
/// start: the others aren't alone at a known time after the start.
async fn handle_all(shared: &Shared, suspects: Vec<Suspect>) {
    let until_us = after(shared, ALL);
    for (at, Suspect { key, attempts }) in suspects.into_iter().enumerate() {
        if shared.runtime.now_us() >= until_us {
            return tracing::warn!("the rest of these messages are handled together");
        }
        let attempt = match (at, attempts) {
            (0, ATTEMPT_FIRST) => {
                post(shared, &key.thread.clone(), Event::Trial(key.clone(), Trial::Pause));
                shared.runtime.sleep_until(after(shared, PAUSE)).await;
                ATTEMPT_PAUSED
            }
            (0, ATTEMPT_ALONE) => ATTEMPT_FIRST,
            _ => ATTEMPT_ALONE,
        };
        let thread = key.thread.clone();
        post(shared, &thread, Event::Trial(key.clone(), Trial::Begin(attempt)));
        tokio::select! {
            biased;
            () = shared.drained() => {}
            () = shared.runtime.sleep_until(after(shared, ALONE)) => {}
        }
        post(shared, &thread, Event::Trial(key, Trial::Over));
    }
}

/// The deliveries of an unfinished entry that are to be handled alone.
fn suspects(shared: &Shared, unfinished: &Unfinished) -> Vec<Suspect> {
    let open = &unfinished.open;
    let entry = Entry::kept(&open.entry);
    let mut all = Vec::new();
    for (name, receiver) in shared.routes.left_to(&entry, &open.started) {
        let Some(listener) = receiver.map(|it| it.listener) else { continue };
        let is_over = open.consumed.contains(&name) || open.waits.iter().any(|it| it.0 == name);
        let registered = &shared.routes.listeners[listener];
        if is_over || !registered.is_idempotent(&entry) {
            continue;
        }
        let last = open.started.iter().find(|(it, _)| *it == name);
        let last = last.map_or_else(LastStart::default, |(_, last)| *last);
        let attempts = attempts(last, registered.traits.pure);
        if (ATTEMPTS_TOGETHER..ATTEMPT_PAUSED).contains(&attempts) {
            let key = Key { thread: entry.thread().clone(), seq: entry.seq(), listener };
            all.push(Suspect { key, attempts });
        }
    }
    all
}

fn post(shared: &Shared, thread: &ThreadId, event: Event) {
    shared.workers.post(thread, Mail::Event(thread.clone(), event));
}

fn after(shared: &Shared, time: Duration) -> u64 {
    let us = u64::try_from(time.as_micros()).unwrap_or(u64::MAX / 2);
    shared.runtime.now_us().saturating_add(us)
}
