//! An agent's work as an auditor reads it from the log, without the agent's own fold.

use std::collections::{BTreeMap, BTreeSet};

use pumphouse::listeners::action::words::{
    Action, ActionResult, CancelAction, Mode, OnError, Status,
};
use pumphouse::listeners::agent::root;
use pumphouse::listeners::agent::words::{
    CognitionIn, CognitionOut, Interrupt, Notice, Response, ResponseWaits, Stopped,
};
use pumphouse::listeners::thread::SpawnThread;
use pumphouse::listeners::timer::{ClearTimer, SetTimer, Tick, TimerCleared};
use pumphouse::prelude::*;
use pumphouse::wire::core::{NothingUnderWay, ThreadResult, ThreadSpawned};

use super::run::{Hail, Hush, Task, Wish};

/// The one that is looked at.
pub(super) const ORACLE: &str = "oracle";

/// Something that was asked, or a tick.
#[derive(Clone, Debug)]
pub(super) struct Call {
    pub(super) seq: u64,
    /// Whose it is: a tick's is who asked for what set its timer.
    pub(super) asker: String,
    pub(super) is_identity: bool,
    /// The timer of a tick, and the work in which that was set.
    pub(super) timer: Option<(u64, usize)>,
}

/// A piece of work.
#[derive(Clone, Debug)]
pub(super) struct Work {
    pub(super) begins: Call,
    /// What turns showed of what its asker said, and what a stop took.
    pub(super) asked: Vec<u64>,
    /// The first entry of its end.
    pub(super) end: Option<u64>,
    pub(super) turns: usize,
}

/// An action, or a call that didn't become one.
#[derive(Clone, Debug)]
pub(super) struct Act {
    pub(super) seq: u64,
    pub(super) id: String,
    pub(super) turn: u64,
    pub(super) work: Option<usize>,
    pub(super) mode: Mode,
    pub(super) skips: bool,
    pub(super) depends_on: Vec<String>,
    pub(super) parameters: String,
    /// Whether it is a notice's: it never ran.
    pub(super) is_refused: bool,
    /// Whether its turn had an action of that name already.
    pub(super) is_again: bool,
    pub(super) end: Option<(u64, Status)>,
    pub(super) is_taken_back: bool,
    /// When the tool was called.
    pub(super) ran: Option<u64>,
}

/// A turn.
#[derive(Clone, Debug)]
pub(super) struct Turn {
    pub(super) number: u64,
    pub(super) at: u64,
    pub(super) until: u64,
    pub(super) is_last: bool,
    pub(super) work: Option<usize>,
    pub(super) out: Option<(u64, CognitionOut)>,
    /// What waits at its end, by place in the reply: the entry, whether it is final, and its mark.
    pub(super) waits: Vec<(u64, ResponseWaits)>,
}

/// A response that was delivered.
#[derive(Clone, Debug)]
pub(super) struct Said {
    pub(super) seq: u64,
    pub(super) to: Option<String>,
    pub(super) reply_to: Option<u64>,
    pub(super) work: Option<usize>,
    pub(super) it: Response,
}

/// An agent that stopped, as one of those was told who asked.
#[derive(Clone, Debug)]
pub(super) struct Stop {
    pub(super) seq: u64,
    pub(super) to: Option<String>,
    pub(super) reply_to: Option<u64>,
    pub(super) work: Option<usize>,
    pub(super) reason: String,
    /// Whether it tells another of the stop before.
    pub(super) is_more: bool,
}

/// A timer, a thread, or a payload to somebody.
#[derive(Clone, Debug)]
pub(super) struct Thing {
    pub(super) seq: u64,
    pub(super) kind: &'static str,
    pub(super) work: Option<usize>,
    thread: Option<String>,
    ticks_on: bool,
    pub(super) over: Option<u64>,
}

/// What an auditor reads in a log.
#[derive(Default)]
pub(super) struct Book {
    pub(super) works: Vec<Work>,
    pub(super) acts: Vec<Act>,
    pub(super) turns: Vec<Turn>,
    pub(super) said: Vec<Said>,
    pub(super) stops: Vec<Stop>,
    pub(super) things: Vec<Thing>,
    /// Messages that weren't shown or taken yet.
    pub(super) queue: Vec<Call>,
    pub(super) interrupts: Vec<(u64, String)>,
    /// What begins a turn of a work, and of which.
    pub(super) news: Vec<(u64, Option<usize>)>,
    /// What begins a turn besides: what an agent wrote that isn't over with its turn.
    pub(super) began: Vec<u64>,
    /// The final responses that were held back because of references to nothing: the work, the
    /// turn, and the text.
    pub(super) held_back: Vec<(usize, u64, String)>,
    pub(super) notices: Vec<(u64, Notice)>,
    pub(super) wrong: Vec<String>,
    pub(super) named: BTreeSet<String>,
    pub(super) work: Option<usize>,
    questions: BTreeMap<u64, u64>,
}

impl Book {
    pub(super) fn read(entries: &[Entry]) -> Book {
        let mut book = Book::default();
        for it in entries.iter().filter(|it| !it.is_refused()) {
            if it.from() == ORACLE && !it.is_from_identity() {
                book.says(it);
            } else if it.to() == Some(ORACLE) {
                book.hears(it);
            } else if let Some(task) = it.decode_if::<Task>() {
                let ran = |act: &&mut Act| act.parameters.contains(&format!("\"{}\"", task.mark));
                let act = book.acts.iter_mut().rev().find(ran);
                act.into_iter().for_each(|act| act.ran = act.ran.or(Some(it.seq())));
            }
            if let Some(cleared) = it.decode_if::<TimerCleared>().filter(|it| it.was_set) {
                book.ends(cleared.timer, it.seq());
            }
        }
        book
    }

    /// The number of a question's text.
    pub(super) fn number(&self, seq: u64) -> Option<u64> {
        self.questions.get(&seq).copied()
    }

    pub(super) fn named(&mut self, event: &str) {
        if !self.named.contains(event) {
            self.named.insert(event.to_owned());
        }
    }

    fn wrong(&mut self, seq: u64, text: &str) {
        self.wrong.push(format!("at {seq}: {text}"));
    }

    fn ends(&mut self, of: u64, at: u64) {
        if let Some(it) = self.things.iter_mut().find(|it| it.seq == of) {
            it.over = it.over.or(Some(at));
        }
    }

    fn begin_next(&mut self) {
        if self.work.is_some() {
            return;
        }
        let Some(begins) = self.queue.first().cloned() else { return };
        if begins.timer.is_some() {
            self.named("timer tick begins work");
        }
        self.works.push(Work { begins, asked: Vec::new(), end: None, turns: 0 });
        self.work = Some(self.works.len() - 1);
    }

    pub(super) fn is_news(&self, it: &Call) -> bool {
        let Some(work) = self.work.map(|it| &self.works[it]) else { return false };
        it.asker == work.begins.asker || it.timer.is_some_and(|(_, of)| Some(of) == self.work)
    }

    fn hears(&mut self, entry: &Entry) {
        let (seq, work) = (entry.seq(), self.work);
        if *entry.name() == root(ORACLE) {
            let text = String::from_utf8_lossy(entry.body()).into_owned();
            let number =
                text.split("Ask#").nth(1).and_then(|it| it.split('#').next()?.parse().ok());
            self.questions.extend(number.map(|it| (seq, it)));
            let (asker, is_identity) = (entry.from().to_owned(), entry.is_from_identity());
            let call = Call { seq, asker, is_identity, timer: None };
            if work.is_some() && !self.is_news(&call) {
                self.named("message of another identity waits");
            }
            self.news.push((seq, work.filter(|_| self.is_news(&call))));
            self.queue.push(call);
            self.begin_next();
        } else if entry.is::<Interrupt>() {
            self.interrupts.push((seq, entry.from().to_owned()));
        } else if let Some(it) = entry.decode_if::<Tick>().filter(|_| entry.from() == "timer") {
            self.ticks(seq, it.timer);
        } else if let Some(it) = entry.decode_if::<ActionResult>() {
            self.is_done(seq, &it);
        } else if let Some(it) = entry.decode_if::<ThreadSpawned>() {
            let of = entry.reply_to().map_or(0, |it| it.seq);
            self.ends(of, seq);
            // A payload to one who is busy begins a thread, and has no entry here.
            self.began.push(seq);
            let work = self.things.iter().find(|it| it.seq == of).map_or(work, |it| it.work);
            let thread = Some(it.assigned_id);
            self.things.push(Thing {
                seq,
                kind: "thread",
                work,
                thread,
                ticks_on: false,
                over: None,
            });
        } else if let Some(it) = entry.decode_if::<ThreadResult>() {
            let thing = self.things.iter().find(|thing| thing.thread.as_ref() == Some(&it.thread));
            let thing = thing.map(|it| (it.seq, it.work));
            self.news.push((seq, thing.and_then(|it| it.1)));
            self.ends(thing.map_or(0, |it| it.0), seq);
        } else if entry.is::<NothingUnderWay>() {
            self.named("nothing-under-way");
            self.news.push((seq, work));
        } else if let Some(of) = entry.reply_to().map(|it| it.seq) {
            let thing = self.things.iter().find(|it| it.seq == of).map(|it| (it.kind, it.work));
            match thing {
                Some(("timer", _))
                    if !entry.is::<Huh>() && entry.name().local() != "timer-refused" => {}
                Some((_, of_work)) => {
                    self.ends(of, seq);
                    self.news.push((seq, of_work));
                }
                // A fault, say.
                None if entry.is::<Huh>() => self.news.push((seq, work)),
                None => {}
            }
        }
    }

    fn ticks(&mut self, seq: u64, timer: u64) {
        let Some(set) = self.things.iter_mut().find(|it| it.seq == timer) else { return };
        if !set.ticks_on {
            set.over = set.over.or(Some(seq));
        }
        let Some(of) = set.work else { return };
        // The interrupt of its work clears a timer; nothing comes of a tick that was on its way.
        if self.stops.iter().any(|it| it.work == Some(of) && it.reason == "interrupted") {
            return;
        }
        let asker = self.works[of].begins.clone();
        let call = Call { seq, timer: Some((timer, of)), ..asker };
        self.news.push((seq, self.work.filter(|_| self.is_news(&call))));
        self.queue.push(call);
        self.begin_next();
    }

    fn is_done(&mut self, seq: u64, it: &ActionResult) {
        let taken = it.because.as_ref().is_some_and(|because| {
            self.acts.iter().any(|act| act.id == *because && act.is_taken_back)
        });
        let named = self.waiting_on().contains(&it.of);
        let work = self.work;
        let Some(act) = self.acts.iter_mut().find(|act| act.seq == it.of) else { return };
        act.end = Some((seq, it.status));
        act.is_again = it.error.as_ref().is_some_and(|it| it.code == "duplicate-id");
        act.is_taken_back &= it.status == Status::Cancelled;
        act.is_taken_back |= it.status == Status::Skipped && taken;
        let (of, is_waited) = (act.work, act.mode != Mode::FireAndForget);
        if of != work {
            self.named("late result");
        }
        self.news.push((seq, if named { work } else { of.filter(|_| is_waited) }));
    }

    fn says(&mut self, entry: &Entry) {
        let (seq, work) = (entry.seq(), self.work);
        if let Some(it) = entry.decode_if::<CognitionIn>() {
            self.turns(seq, &it);
        } else if let Some(it) = entry.decode_if::<CognitionOut>() {
            if it.stop == Interrupt::WORD {
                self.named("interrupt in a turn");
            }
            if it.wrote_root == Some(true) {
                self.began.push(seq);
            }
            if let Some(turn) = self.turns.last_mut() {
                turn.out = Some((seq, it));
            }
        } else if let Some(it) = entry.decode_if::<Action>() {
            self.began.push(seq);
            self.acts.push(Act {
                seq,
                id: it.id,
                turn: it.turn.unwrap_or(0),
                work,
                mode: it.mode,
                skips: it.on_error == Some(OnError::Skip),
                depends_on: it.depends_on,
                parameters: it.parameters.unwrap_or_default(),
                is_refused: false,
                is_again: false,
                end: None,
                is_taken_back: false,
                ran: None,
            });
        } else if let Some(it) = entry.decode_if::<ResponseWaits>() {
            if !it.is_final {
                self.named("partial response that waits");
            }
            if let Some(turn) = self.turns.last_mut() {
                turn.waits.push((seq, it));
            }
        } else if let Some(it) = entry.decode_if::<Notice>() {
            self.notice(seq, it);
        } else if let Some(it) = entry.decode_if::<Response>() {
            self.responds(entry, it);
        } else if let Some(it) = entry.decode_if::<Stopped>() {
            self.stops(entry, &it);
        } else if let Some(it) = entry.decode_if::<CancelAction>().filter(|it| it.reason.is_none())
        {
            self.began.push(seq);
            let open = self.acts.iter_mut().filter(|act| act.end.is_none());
            let meant = open.filter(|act| it.id.as_ref().is_none_or(|id| act.id == *id));
            meant.for_each(|act| act.is_taken_back = true);
        } else if entry.is::<Done>() {
            let of = entry.reply_to().map(|it| it.seq);
            self.interrupts.retain(|(seq, _)| Some(*seq) != of);
        } else {
            self.sends(entry);
        }
    }

    /// It sends somebody a payload.
    fn sends(&mut self, entry: &Entry) {
        let friend = *entry.name() == root("friend");
        let (kind, ticks_on) = match entry.decode_if::<SetTimer>() {
            Some(it) => ("timer", it.every.is_some()),
            None if entry.is::<SpawnThread>() => ("spawn", false),
            None if entry.is::<Hail>() || entry.is::<Hush>() => ("short", false),
            None if entry.is::<Wish>() || friend => ("peer", false),
            None if entry.is::<ClearTimer>() => return self.began.push(entry.seq()),
            None => return,
        };
        if entry.reply_to().is_some() || entry.receivers() == 0 {
            return;
        }
        let seq = entry.seq();
        self.began.push(seq);
        let work = self.work;
        self.things.push(Thing { seq, kind, work, thread: None, ticks_on, over: None });
    }

    fn notice(&mut self, seq: u64, it: Notice) {
        if let Some(id) = &it.call {
            let turn = it.turn;
            self.acts.push(Act {
                seq,
                id: id.clone(),
                turn,
                work: self.work,
                mode: Mode::Sync,
                skips: false,
                depends_on: Vec::new(),
                parameters: String::new(),
                is_refused: true,
                is_again: false,
                end: Some((seq, Status::Failed)),
                is_taken_back: false,
                ran: None,
            });
        }
        if it.response.is_some() {
            let why = match &it.text {
                _ if it.held_back.is_some() => "held back: a reference",
                text if text.contains("another message") => "withdrawn: a message",
                text if text.contains("interrupted") => "withdrawn: interrupted",
                text if text.contains("turns") => "withdrawn: stopped",
                _ => "withdrawn: failed",
            };
            self.named(why);
        }
        if let (Some(text), Some(work)) = (&it.held_back, self.work) {
            self.held_back.push((work, it.turn, text.clone()));
        }
        self.notices.push((seq, it));
    }

    fn turns(&mut self, at: u64, it: &CognitionIn) {
        if self.work.is_none() {
            self.wrong(at, "a turn without work");
        }
        let waiting = it.waiting.clone().unwrap_or_default();
        let (shown, left): (Vec<Call>, Vec<Call>) = std::mem::take(&mut self.queue)
            .into_iter()
            .partition(|call| call.seq <= it.until && !waiting.contains(&call.seq));
        self.queue = left;
        for call in shown {
            if !self.is_news(&call) {
                self.wrong(at, &format!("a prompt shows {} of {}", call.seq, call.asker));
            }
            if call.timer.is_none()
                && let Some(work) = self.work
            {
                self.works[work].asked.push(call.seq);
            }
        }
        if let Some(work) = self.work {
            self.works[work].turns += 1;
        }
        let CognitionIn { turn, until, is_last, .. } = *it;
        let (number, is_last, work) = (turn, is_last == Some(true), self.work);
        let waits = Vec::new();
        self.turns.push(Turn { number, at, until, is_last, work, out: None, waits });
    }

    /// The work at hand is over.
    fn close(&mut self, seq: u64) {
        if let Some(work) = self.work.take() {
            self.works[work].end = Some(seq);
        }
        self.begin_next();
    }

    fn responds(&mut self, entry: &Entry, it: Response) {
        let (seq, work, is_final) = (entry.seq(), self.work, it.is_final);
        if is_final && it.was_held {
            self.named("final delivered after a hold");
        }
        let (to, reply_to) = (entry.to().map(str::to_owned), entry.reply_to().map(|it| it.seq));
        self.said.push(Said { seq, to, reply_to, work, it });
        if work.is_none() {
            self.wrong(seq, "a response without work");
        }
        if is_final {
            self.close(seq);
        }
    }

    fn stops(&mut self, entry: &Entry, it: &Stopped) {
        let (seq, until) = (entry.seq(), it.until);
        let (to, reply_to) = (entry.to().map(str::to_owned), entry.reply_to().map(|it| it.seq));
        let is_interrupt = it.reason == Interrupt::WORD;
        let before = self
            .stops
            .last()
            .filter(|stop| is_interrupt && stop.seq + 1 == seq && stop.reason == it.reason);
        let is_more = before.is_some();
        let work = before.map_or(self.work, |it| it.work);
        let reason = it.reason.clone();
        self.stops.push(Stop { seq, to, reply_to, work, reason, is_more });
        if is_more {
            return;
        }
        self.named(&format!("stopped: {}", it.reason));
        let Some(current) = self.work else {
            return self.wrong(seq, "it stops without work");
        };
        let is_of_it = |told: &Notice| told.response.is_some() && told.text.ends_with(&it.text);
        if self.notices.iter().any(|(at, told)| seq - at < 40 && is_of_it(told)) {
            self.named("stop or interrupt while held");
        }
        let is_unturned = self.works[current].turns == 0;
        let is_spent = ["turns", "budget"].contains(&&*it.reason);
        let asker = self.works[current].begins.asker.clone();
        let begins = self.works[current].begins.seq;
        let is_taken = |call: &Call| {
            let of_asker = call.timer.is_none() && call.asker == asker;
            let of_work = call.seq == begins || call.timer.is_some_and(|(_, of)| of == current);
            let by_tick = call.timer.is_some() && of_work;
            let spent = is_spent && is_unturned && (call.asker == asker || by_tick);
            let is_before = call.seq <= until;
            is_interrupt && (by_tick || of_asker && is_before) || spent && is_before
        };
        let (taken, left): (Vec<Call>, Vec<Call>) =
            std::mem::take(&mut self.queue).into_iter().partition(is_taken);
        self.queue = left;
        let asks = taken.iter().filter(|it| it.timer.is_none()).map(|it| it.seq);
        self.works[current].asked.extend(asks);
        if is_interrupt {
            self.interrupts.retain(|(at, _)| *at > until);
        }
        self.close(seq);
    }

    /// The actions that responses wait for that were neither delivered nor withdrawn.
    pub(super) fn waiting_on(&self) -> BTreeSet<u64> {
        let Some(work) = self.work else { return BTreeSet::new() };
        let mut found = BTreeSet::new();
        for turn in self.turns.iter().filter(|it| it.work == Some(work)) {
            for (at, it) in &turn.waits {
                let names = it.on.iter().filter_map(|name| self.meant(name, turn.number, *at));
                found.extend(names);
            }
        }
        found
    }

    /// The action that a name means, where it was written in a turn before or after a place.
    pub(super) fn meant(&self, name: &str, turn: u64, at: u64) -> Option<u64> {
        let named =
            || self.acts.iter().filter(|it| it.id == name && !it.is_refused && !it.is_again);
        let before = named().rfind(|it| it.seq < at).map(|it| it.seq);
        before.or_else(|| named().find(|it| it.seq > at && it.turn == turn).map(|it| it.seq))
    }

    pub(super) fn act(&self, seq: u64) -> Option<&Act> {
        self.acts.iter().find(|it| it.seq == seq)
    }
}
