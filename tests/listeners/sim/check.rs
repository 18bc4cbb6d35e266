//! The rules that hold in every simulated run, checked against the log, the ledger, and what
//! clients were told.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures_util::FutureExt;
use pumphouse::log::{Entry, Flags, Mark, Noted, Open, State as ThreadState, ThreadRecord};
use pumphouse::prelude::*;

use super::clients::Heard;
use super::world::{UP_TO_DATE, World};

/// At rest nothing is open but what waits for what never comes.
pub(super) fn rest(world: &World) {
    let kept = world.disk.kept();
    let open = kept.open_entries().now_or_never().unwrap().unwrap();
    for it in &open {
        let waits = !it.waits.is_empty() && it.waits.iter().all(|(_, until)| *until == u64::MAX);
        if !waits {
            world.wrong(format!("{} is still open at rest: {it:?}", it.entry.id));
        }
    }
    for it in kept.threads(None, usize::MAX).now_or_never().unwrap().unwrap() {
        let record = kept.thread(&it.id).now_or_never().unwrap().unwrap().unwrap();
        let below = format!("{}.", it.id);
        let busy = |open: &Open| {
            open.entry.id.thread == it.id || open.entry.id.thread.as_str().starts_with(&below)
        };
        if it.parent.is_some() && record.state.is_live() && !open.iter().any(busy) {
            world.wrong(format!("{} has nothing left to do, and hasn't ended", it.id));
        }
    }
}

/// All other rules, once everything is over.
pub(super) fn all(world: &World, heard: &[Heard]) {
    let log = world.disk.kept();
    let report = log.verify(None).now_or_never().unwrap().unwrap();
    if !report.is_sound() {
        world.wrong(format!("the log isn't sound: {:?}", report.findings));
    }
    let entries = log.tail(0, usize::MAX).now_or_never().unwrap().unwrap();
    let book: Book = entries.iter().map(|it| (it.id.clone(), it.clone())).collect();
    order(world, &entries, &book);
    pushes(world, heard, &book);
    runs(world, &entries, &book);
    timers(world, &entries, &book);
    reach(world);
    let mut threads = Vec::new();
    for it in log.threads(None, usize::MAX).now_or_never().unwrap().unwrap() {
        threads.push(log.thread(&it.id).now_or_never().unwrap().unwrap().unwrap());
    }
    results(world, &threads, &entries);
}

type Book = BTreeMap<EntryId, Arc<Entry>>;

/// Sequences have no gaps, time goes forwards in a thread, causes and replies lead backwards.
fn order(world: &World, entries: &[Arc<Entry>], book: &Book) {
    let mut last: BTreeMap<&ThreadId, (u64, u64)> = BTreeMap::new();
    for it in entries {
        let before = last.insert(&it.id.thread, (it.id.seq, it.at_us)).unwrap_or_default();
        if it.id.seq != before.0 + 1 || it.at_us < before.1 {
            world.wrong(format!("{} comes after {}", it.id, before.0));
        }
        for link in it.cause.iter().chain(&it.reply_to) {
            if book.get(link).is_none_or(|link| link.position >= it.position) {
                world.wrong(format!("{} leads to {link}, which isn't before it", it.id));
            }
        }
    }
}

/// Each push was accepted or refused, once; what was accepted is in the log; all it caused is done
/// once; replies are in the log.
fn pushes(world: &World, heard: &[Heard], book: &Book) {
    let last = world.ledger().life;
    let mut by_client_id: BTreeMap<(&str, &str), &EntryId> = BTreeMap::new();
    for (number, it) in heard.iter().enumerate() {
        let answers = it.accepted.len() + it.refused.len();
        let settled = u32::from(!it.accepted.is_empty());
        let in_doubt = it.life < last;
        let wrong = match () {
            () if answers > 1 => "has more than one answer",
            () if answers == 0 && !in_doubt => "has no answer",
            () if it.settled > 1 => "is done more than once",
            () if it.settled < settled && !in_doubt => "was never done",
            () if it.accepted.iter().chain(&it.replies).any(|it| !book.contains_key(it)) => {
                "was told of what isn't in the log"
            }
            () => "",
        };
        if !wrong.is_empty() {
            world.wrong(format!("push {number} of {} {wrong}: {it:?}", it.who));
        }
        let Some(id) = it.accepted.first() else { continue };
        if book.get(id).is_some_and(|entry| *entry.from != *it.who) {
            world.wrong(format!("push {number} is {id}, which is somebody else's"));
        }
        let Some(client_id) = &it.client_id else { continue };
        if *by_client_id.entry((&it.who, client_id)).or_insert(id) != id {
            world.wrong(format!("{client_id} of {} was taken twice", it.who));
        }
    }
}

/// What handlers sent is kept, and of every run that was cut off somebody knows.
fn runs(world: &World, entries: &[Arc<Entry>], book: &Book) {
    let (mut wrong, ledger) = (Vec::new(), world.ledger());
    for (message, n) in &ledger.sent {
        let text = format!("n=\"{n}\"");
        let is_it = |it: &&Arc<Entry>| {
            it.cause.as_ref() == Some(message) && String::from_utf8_lossy(&it.body).contains(&text)
        };
        let times = entries.iter().filter(is_it).count();
        if times != 1 {
            wrong.push(format!("what was sent for {message} is {times} times in the log"));
        }
    }
    for ((message, by), runs) in &ledger.runs {
        let cut = runs.last().filter(|it| !it.ended && it.life < ledger.life);
        let once = ["plain", "line", "apart"].contains(by);
        let from_core = book.get(message).is_some_and(|it| &*it.from == "core");
        // It ran ahead of the log, which never had its message; another has that place since.
        let lost = *by == "quick" && book.get(message).is_none_or(|it| it.name.local() != *by);
        if cut.is_none() || from_core || lost {
            continue;
        }
        let told = entries
            .iter()
            .any(|it| it.cause.as_ref() == Some(message) && &*it.from == "core" && is_end(it));
        let over = entries.iter().any(|it| {
            it.id.thread == message.thread && it.flags.state().is_some_and(|it| !it.is_live())
        });
        if !over && once && !told {
            wrong.push(format!("nobody knows what became of {by} with {message}"));
        }
        if !over && !once && !told {
            wrong.push(format!("{by} was cut off at {message} and never tried again"));
        }
    }
    drop(ledger);
    wrong.into_iter().for_each(|it| world.wrong(it));
}

/// The log says how far each handler saw that is up to date.
fn reach(world: &World) {
    let (log, seen) = (world.disk.kept(), world.ledger().seen.clone());
    for (id, seen) in seen {
        let marks = log.marks(&id.thread).now_or_never().unwrap().unwrap();
        let is_it = |it: &Noted| match &it.mark {
            Mark::Started { entry, listener, as_of, .. } => {
                *entry == id && **listener == *UP_TO_DATE && *as_of == Some(seen)
            }
            _ => false,
        };
        if !marks.iter().any(is_it) {
            world.wrong(format!("the log doesn't say that {id} was handled as of {seen}"));
        }
    }
}

/// Whether an entry says how a handler failed.
fn is_end(it: &Entry) -> bool {
    it.name.local() == "huh"
}

/// What was for later came once, and not before its time.
fn timers(world: &World, entries: &[Arc<Entry>], book: &Book) {
    let is_later = |it: &Entry| it.to.as_ref() == Some(&it.from) && due(it).is_some();
    let mut fired: BTreeMap<&EntryId, u32> = BTreeMap::new();
    for it in entries.iter().filter(|it| is_later(it)) {
        let waited = it.cause.as_ref().and_then(|it| book.get(it));
        match waited.filter(|waited| waited.body == it.body && waited.from == it.from) {
            None => drop(fired.insert(&it.id, 0)),
            Some(waited) => {
                *fired.entry(&waited.id).or_default() += 1;
                if due(it).is_some_and(|due| it.at_us < due) {
                    world.wrong(format!("{} came before its time", it.id));
                }
            }
        }
    }
    for (id, times) in fired {
        let over = entries.iter().any(|it| {
            it.id.thread == id.thread && it.flags.state().is_some_and(|it| !it.is_live())
        });
        if times > 1 || times == 0 && !over {
            world.wrong(format!("{id} waited for its time, which came {times} times"));
        }
    }
}

/// The time in a job's attribute.
fn due(it: &Entry) -> Option<u64> {
    let body = String::from_utf8_lossy(&it.body);
    body.split_once(" due=\"")?.1.split('"').next()?.parse().ok()
}

/// Every child that came to its end by itself, or was ended by itself, has one result above it.
fn results(world: &World, threads: &[ThreadRecord], entries: &[Arc<Entry>]) {
    for thread in threads {
        let Some(parent) = &thread.parent else { continue };
        let named = format!(" thread=\"{}\"", thread.id);
        let names = |it: &Entry| String::from_utf8_lossy(&it.body).contains(&named);
        let result = |it: &&Arc<Entry>| {
            it.id.thread == *parent && it.name.local() == "thread-result" && names(it)
        };
        let results = entries.iter().filter(result).count();
        let ending = entries.iter().find(|it| {
            it.id.thread == thread.id && it.flags.state().is_some_and(|it| !it.is_live())
        });
        let fell = ending.is_some_and(|it| {
            let swept = String::from_utf8_lossy(&it.body).contains(" by=\"core\"");
            it.flags.contains(Flags::CANCELS) && (swept || !names(it))
        });
        let expected = usize::from(!thread.state.is_live() && !fell);
        if results != expected {
            let state = thread.state;
            world.wrong(format!("{}, {state}, has {results} results, not {expected}", thread.id));
        }
        let later = entries.iter().filter(|it| {
            it.id.thread == thread.id
                && it.receivers > 0
                && ending.is_some_and(|end| end.position < it.position)
        });
        for it in later {
            world.wrong(format!("{} is for somebody, after the end of its thread", it.id));
        }
        if ending.is_none() != thread.state.is_live() || thread.state == ThreadState::Paused {
            world.wrong(format!("{} is {} at the end", thread.id, thread.state));
        }
    }
}
