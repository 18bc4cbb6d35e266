//! Parses and plays the statements of cases.

use super::shown;
use super::stage::{
    Ask, BEGIN_US, Bill, Bulletin, Hop, Job, Load, Lost, Order, Paused, Pay, Pushed, Quick,
    Resumed, Scheme, Stage, Sum, Task, Tick, fault,
};
use crate::engine::tree::event::{Event, FoldPanic, Key, Ready};
use crate::id::{EntryId, ThreadId};
use crate::listener::{Outcome, Park, Target};
use crate::log::{Flags, State};
use crate::wire::budget::{BudgetKey, Charge, RaiseBudget};
use crate::wire::core::{Done, RetryListeners, ThreadCancelled};
use crate::wire::{Checked, Payload};

/// Plays one statement, and returns its results as lines of text.
pub(super) fn play(stage: &mut Stage, statement: &str) -> Vec<String> {
    let words: Vec<&str> = statement.split_whitespace().collect();
    match words[..] {
        ["push", payload, ref how @ ..] => {
            let element = payload_of(payload).element().clone();
            match stage.push(element, &pushed(how)) {
                Ok(step) => vec![shown::step(stage, &step)],
                Err(fault) => vec![format!("refused {}", fault.code)],
            }
        }
        ["at", seconds] => {
            stage.now_us = BEGIN_US + number(seconds) * 1_000_000;
            Vec::new()
        }
        ["limit", name, most] => {
            limit(stage, name, number(most));
            Vec::new()
        }
        ["restart"] => {
            let steps = stage.restart();
            steps.iter().map(|it| shown::step(stage, it)).collect()
        }
        [listener, "places", places] => {
            stage.set_places(listener, usize::try_from(number(places)).unwrap());
            Vec::new()
        }
        [listener, "room", thread] => {
            let listener = stage.listener(listener);
            step(stage, Event::Room(ThreadId::new(thread), listener))
        }
        [listener, "due"] => {
            let own = stage.listener(listener);
            let key = stage.timers.iter().find(|it| it.listener == own).unwrap().clone();
            step(stage, Event::Due(key))
        }
        [who, "overtime"] => {
            let key = worker(stage, who);
            step(stage, Event::Overtime(key))
        }
        // A fold panicked, so the handler can't begin.
        [who, "stumbles"] => {
            let key = worker(stage, who);
            let entry = EntryId::new(&key.thread, key.seq);
            step(stage, Event::Unfolded(key, FoldPanic { entry, text: "thirteen".to_owned() }))
        }
        [who, "returns", ..] => {
            let key = worker(stage, who);
            let ready = emissions(stage, &key, statement.split_once("returns").unwrap().1);
            step(stage, Event::Return(key, ready))
        }
        [who, "sends", ..] => {
            let key = worker(stage, who);
            let ready = emissions(stage, &key, statement.split_once("sends").unwrap().1);
            let step = stage.sends(key, ready);
            vec![shown::step(stage, &step)]
        }
        // `sends-late` is `sends` by a handler whose thread may have ended. `at` is the id of the
        // handler's message.
        [who, "sends-late", at, ref what @ ..] => {
            let id: EntryId = at.parse().unwrap();
            let key = Key { thread: id.thread, seq: id.seq, listener: stage.listener(who) };
            let ready = emissions(stage, &key, &what.join(" "));
            let step = stage.sends(key, ready);
            vec![shown::step(stage, &step)]
        }
        _ => panic!("no such statement: {statement}"),
    }
}

fn step(stage: &mut Stage, event: Event) -> Vec<String> {
    let step = stage.step(event);
    vec![shown::step(stage, &step)]
}

/// Returns the handling that a statement names: `calc`, or `calc@s/3` if several handlers of `calc`
/// are at work.
fn worker(stage: &Stage, who: &str) -> Key {
    match who.split_once('@') {
        Some((listener, id)) => stage.at_work(listener, Some(&id.parse().unwrap())),
        None => stage.at_work(who, None),
    }
}

fn pushed(words: &[&str]) -> Pushed {
    let mut how = Pushed { by: "ada".into(), ..Pushed::default() };
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let mut next = || (*words.next().unwrap()).to_owned();
        match *word {
            "by" => how.by = next(),
            "to" => how.to = Some(next()),
            "in" => how.thread = Some(next()),
            "beside" => how.beside = Some(usize::try_from(number(&next())).unwrap()),
            "operator" => how.operator = true,
            "asks" => how.asks = true,
            other => panic!("no such word of a push: {other}"),
        }
    }
    how
}

fn limit(stage: &mut Stage, name: &str, most: u64) {
    let (limits, count) = (&mut stage.limits, usize::try_from(most).unwrap());
    match name {
        "messages" => limits.tree_messages_max = most,
        "children" => limits.tree_children_max = most,
        "depth" => limits.thread_depth_max = count,
        "turns" => limits.thread_turns_max = most,
        "tokens" => limits.tree_tokens_max = most,
        "seconds" => limits.tree_seconds_max = most,
        "cost" => limits.tree_cost_micros_max = most,
        "emissions" => limits.emissions_max = count,
        "unconsumed" => limits.unconsumed_max = count,
        "repeats" => limits.repeats_max = count,
        "chain" => limits.chain_max = count,
        "again" => limits.again_max = count,
        other => panic!("no such limit: {other}"),
    }
}

/// Returns the emissions of a handler, such as `sum, to clerk job2`.
fn emissions(stage: &Stage, key: &Key, text: &str) -> Vec<Ready> {
    let all = text.split(',').map(str::trim).filter(|it| !it.is_empty() && *it != "nothing");
    all.map(|it| emission(stage, key, &it.split_whitespace().collect::<Vec<_>>())).collect()
}

fn emission(stage: &Stage, key: &Key, words: &[&str]) -> Ready {
    let of = |seqs: &str| seqs.split('+').map(number).collect::<Vec<u64>>();
    let entry = |id: &str| stage.entry(&id.parse().unwrap());
    let (target, payload) = match *words {
        ["fault"] => return Ready::fault(fault()),
        // An answer to nobody that can't be sent.
        ["fault", "answer"] => {
            let target = Target::Askers(Vec::new(), Outcome::Completed);
            return Ready { target, ..Ready::fault(fault()) };
        }
        ["error", payload] => {
            return Ready { flags: Flags::ERROR, ..ready(Target::Sender, payload_of(payload)) };
        }
        ["again", payload] => (Target::Oneself, payload),
        ["final", payload] => (Target::Opener, payload),
        ["partial", payload] => (Target::Along, payload),
        ["above", payload] => (Target::Above, payload),
        ["note", payload] => (Target::Note(None), payload),
        ["note", to, payload] => (Target::Note(Some(to.to_owned())), payload),
        ["to", listener, payload] => (Target::Listener(listener.to_owned()), payload),
        ["re", id, payload] => (Target::Entry(Box::new(entry(id))), payload),
        ["spawn", label, payload] => {
            (Target::Child { label: label.to_owned(), for_sender: false }, payload)
        }
        ["open", label, payload] => {
            (Target::Child { label: label.to_owned(), for_sender: true }, payload)
        }
        ["later", seconds, payload] => (later(seconds, false), payload),
        ["await", seconds, payload] => (later(seconds, true), payload),
        ["watch", payload] => {
            let (until_us, is_awaited, by_clock) = (u64::MAX, false, false);
            (Target::Later { until_us, is_awaited, by_clock }, payload)
        }
        ["keep", seqs] => (Target::Park(Box::new(Park::default().work(of(seqs)))), "sum"),
        ["keep", seqs, "quiet"] => {
            (Target::Park(Box::new(Park::default().work(of(seqs)).quiet())), "sum")
        }
        ["keep", seqs, "others", others] => {
            let park = Park::default().work(of(seqs)).others(of(others));
            (Target::Park(Box::new(park)), "sum")
        }
        ["answer", seqs, payload] => {
            let asked = of(seqs).into_iter().map(|seq| EntryId::new(&key.thread, seq));
            let asked = asked.map(|it| stage.entry(&it)).collect();
            (Target::Askers(asked, Outcome::Completed), payload)
        }
        ["withdraw", id] => (Target::Withdraw(id.parse().unwrap()), "sum"),
        ["charge" | "spent" | "raise" | "cancel" | "pause" | "resume" | "retry", ..] => {
            return steers(words);
        }
        [payload] => (Target::Sender, payload),
        _ => panic!("no such emission: {words:?}"),
    };
    ready(target, payload_of(payload))
}

/// Returns an emission for the tree: a charge, a raise of a budget, or a new state of a branch.
fn steers(words: &[&str]) -> Ready {
    match *words {
        ["charge", turns, tokens] => {
            let (turns, tokens) = (turns.parse().unwrap(), tokens.parse().unwrap());
            let charge = Charge { turns, tokens, settled: false, ..Charge::default() };
            ready(Target::Charge(Box::new(charge.clone())), checked(&charge))
        }
        ["spent", tokens] => {
            let tokens = tokens.parse().unwrap();
            let charge = Charge { turns: 0, tokens, settled: true, ..Charge::default() };
            ready(Target::Charge(Box::new(charge.clone())), checked(&charge))
        }
        ["raise", name, by] => {
            let key = BudgetKey::ALL.into_iter().find(|it| it.as_str() == name).unwrap();
            let raise = RaiseBudget { key, by: Some(number(by)), to: None };
            ready(Target::Raise, checked(&raise))
        }
        ["cancel", thread] => {
            let (thread, by, reason) = (thread.to_owned(), "boss".to_owned(), None);
            let id = ThreadId::new(&thread);
            let why = checked(&ThreadCancelled { thread, by, reason });
            ready(Target::Threads(id, State::Cancelled), why)
        }
        ["pause", thread] => {
            let id = ThreadId::new(thread);
            ready(Target::Threads(id, State::Paused), checked(&Paused { n: 1 }))
        }
        ["resume", thread] => {
            let id = ThreadId::new(thread);
            ready(Target::Threads(id, State::Open), checked(&Resumed { n: 1 }))
        }
        ["retry", thread] => {
            let retry = RetryListeners { thread: Some(thread.to_owned()), reason: None };
            ready(Target::Retry, checked(&retry))
        }
        _ => panic!("no such emission: {words:?}"),
    }
}

fn later(seconds: &str, is_awaited: bool) -> Target {
    let until_us = BEGIN_US + number(seconds) * 1_000_000;
    Target::Later { until_us, is_awaited, by_clock: false }
}

fn ready(target: Target, payload: Checked) -> Ready {
    Ready { target, payload: Ok(payload), flags: Flags::NONE, meta: None, sought: None }
}

/// Returns a payload from its name and number, such as `ask7`. Without a number, the payload gets
/// the number 1.
fn payload_of(text: &str) -> Checked {
    let name = text.trim_end_matches(|it: char| it.is_ascii_digit());
    let n = text[name.len()..].parse().unwrap_or(1);
    match name {
        "ask" => checked(&Ask { n }),
        "sum" => checked(&Sum { n }),
        "job" => checked(&Job { n }),
        "order" => checked(&Order { n }),
        "bulletin" => checked(&Bulletin { n }),
        "load" => checked(&Load { n }),
        "done" => checked(&Done {}),
        "quick" => checked(&Quick { n }),
        "scheme" => checked(&Scheme { n }),
        "task" => checked(&Task { n }),
        "tick" => checked(&Tick { n }),
        "hop" => checked(&Hop { n }),
        "pay" => checked(&Pay { n }),
        "bill" => checked(&Bill { n }),
        "lost" => checked(&Lost { n }),
        other => panic!("no such payload: {other}"),
    }
}

fn checked<P: Payload>(payload: &P) -> Checked {
    Checked::typed(P::NAME, payload.encode().unwrap())
}

fn number(text: &str) -> u64 {
    text.parse().unwrap_or_else(|_| panic!("{text} is no number"))
}
