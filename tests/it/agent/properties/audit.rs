//! Checks each property against an auditor's reading of the log.

use std::collections::BTreeMap;

use pumphouse::listeners::action::words::{Mode, Status};
use pumphouse::listeners::agent::mind::Minds;
use pumphouse::listeners::agent::settings::FinalWithActions;
use pumphouse::prelude::*;

use super::book::{Act, Book, ORACLE, Said, Stop, Turn};
use super::run::Run;
use super::script::NAMES;

/// Where a response was written: its turn, and its place in that turn's reply.
type Place = (u64, u64);

/// What is wrong with a run.
pub(super) struct Audit<'a> {
    run: &'a Run,
    pub(super) book: Book,
    /// Where waiting responses were written, by place: the entry that says that they wait.
    written: BTreeMap<Place, u64>,
    pub(super) wrong: Vec<String>,
}

impl<'a> Audit<'a> {
    pub(super) fn of(run: &'a Run) -> Audit<'a> {
        let mut book = Book::read(&run.entries);
        let mut wrong = run.wrong.clone();
        wrong.append(&mut book.wrong);
        let mut audit = Audit { run, book, written: BTreeMap::new(), wrong };
        audit.places();
        audit.answered();
        audit.responses();
        audit.held_back();
        audit.actions();
        audit.idle();
        audit.turns();
        audit.prompts();
        audit.folds();
        audit
    }

    fn wrong(&mut self, seq: u64, text: impl AsRef<str>) {
        self.wrong.push(format!("at {seq}: {}", text.as_ref()));
    }

    fn places(&mut self) {
        for turn in &self.book.turns {
            let Some((_, out)) = &turn.out else { continue };
            for (at, it) in &turn.waits {
                let (from, to) =
                    (usize::try_from(it.from).unwrap(), usize::try_from(it.to).unwrap());
                let text = out.text.get(from..to).unwrap_or_default();
                self.written.extend(place(text).map(|place| (place, *at)));
            }
        }
    }

    /// Everyone who asks gets one final response or one stop, and never two.
    fn answered(&mut self) {
        for it in std::mem::take(&mut self.book.queue) {
            self.wrong(it.seq, format!("{} of {} is never answered", it.seq, it.asker));
        }
        for (seq, who) in std::mem::take(&mut self.book.interrupts) {
            self.wrong(seq, format!("the interrupt of {who} isn't answered"));
        }
        if let Some(work) = self.book.work {
            let at = self.book.works[work].begins.seq;
            self.wrong(at, "this work never ends");
        }
        let finals = self.book.said.iter().filter(|it| it.it.is_final);
        let finals = finals.map(|it| (it.seq, it.work, it.to.clone(), it.reply_to, false));
        let stops = self.book.stops.iter();
        let stops = stops.map(|it| (it.seq, it.work, it.to.clone(), it.reply_to, it.is_more));
        let ends: Vec<_> = finals.chain(stops).collect();
        for (number, work) in self.book.works.clone().iter().enumerate() {
            let of_work = ends.iter().filter(|it| it.1 == Some(number));
            let mine: Vec<_> = of_work.clone().filter(|it| !it.4).collect();
            let Some(end) = work.end else { continue };
            if mine.len() != 1 {
                self.wrong(end, format!("work of {} has {} ends", work.begins.asker, mine.len()));
            }
            if !work.begins.is_identity {
                continue;
            }
            let told: Vec<_> =
                of_work.filter(|it| it.2.as_ref() == Some(&work.begins.asker)).collect();
            if told.len() != 1 {
                let text = format!("{} is told {} times", work.begins.asker, told.len());
                self.wrong(end, text);
            }
            let is_meant = |it: u64| work.asked.contains(&it) || work.asked.is_empty();
            if let Some((seq, _, _, reply_to, _)) = told.first()
                && !reply_to.is_some_and(is_meant)
            {
                self.wrong(*seq, format!("it answers {reply_to:?}, and not {:?}", work.asked));
            }
        }
    }

    fn responses(&mut self) {
        let mut last = (0, 0);
        for said in self.book.said.clone() {
            if self.was_held_back(&said) {
                continue;
            }
            let Some(place) = place(&said.it.text) else {
                let turn = self.book.turns.iter().find(|it| it.number == said.it.turn);
                let out = turn.and_then(|it| it.out.as_ref());
                if !out.is_some_and(|(_, it)| it.is_partial) {
                    self.wrong(said.seq, "a response without its place");
                }
                continue;
            };
            if place <= last {
                self.wrong(said.seq, format!("{place:?} is delivered behind {last:?}"));
            }
            last = place;
            let Some(turn) = self.book.turns.iter().find(|it| it.number == place.0).cloned() else {
                continue;
            };
            let at = self.written.get(&place).copied().unwrap_or(said.seq);
            self.references(&said, &turn, at);
            let overtaken = self.book.acts.iter().find(|it| {
                let is_before = it.mode == Mode::Sync && it.work == said.work && it.seq < at;
                is_before && it.end.is_none_or(|(end, _)| end > said.seq)
            });
            if let Some(it) = overtaken.cloned() {
                self.wrong(said.seq, format!("it overtakes {} of {}", it.id, it.seq));
            }
            if said.it.is_final && self.run.style.policy == FinalWithActions::Hold {
                self.held(&said, &turn, at);
            }
        }
    }

    /// Whether a response was held back before, and is delivered since the agent would stop.
    fn was_held_back(&self, said: &Said) -> bool {
        let is_it = |(work, turn, text): &(usize, u64, String)| {
            said.work == Some(*work) && said.it.turn == *turn && said.it.text == *text
        };
        said.it.is_final && self.book.held_back.iter().any(is_it)
    }

    /// A response with a reference to nothing is held back once in a work, and never lost.
    fn held_back(&mut self) {
        let mut wrong = Vec::new();
        for number in 0..self.book.works.len() {
            let held = self.book.held_back.iter().filter(|it| it.0 == number);
            let held: Vec<_> = held.collect();
            if held.len() > 1 {
                wrong.push((0, format!("work {number} was held back {} times", held.len())));
            }
            let lost = |text: &str| NAMES[..4].iter().any(|name| is_lost(text, name));
            for (_, turn, text) in &held {
                if !lost(text) {
                    wrong.push((0, format!("turn {turn} was held back for nothing: {text}")));
                }
            }
            let of_work = |it: &&Stop| it.work == Some(number) && it.reason != "interrupted";
            let stop = self.book.stops.iter().find(of_work).filter(|_| !held.is_empty());
            wrong
                .extend(stop.map(|it| (it.seq, "an answer that was held back is lost".to_owned())));
            let said = self.book.said.iter().find(|it| it.it.is_final && it.work == Some(number));
            let Some(said) = said.filter(|_| held.is_empty()) else { continue };
            let turn = self.book.turns.iter().find(|it| it.number == said.it.turn);
            let known = |it: &Act| it.seq < said.seq && !it.is_refused && !it.is_again;
            let is_known = |name: &str| self.book.acts.iter().any(|it| it.id == name && known(it));
            let lost = NAMES[..4].iter().any(|it| is_lost(&said.it.text, it) && is_known(it));
            if lost && turn.is_some_and(|it| !it.is_last && it.out.is_some()) {
                wrong.push((said.seq, "a reference to nothing is delivered at once".to_owned()));
            }
        }
        wrong.into_iter().for_each(|(seq, text)| self.wrong(seq, text));
    }

    /// No name stands in a response whose result stands before it.
    fn references(&mut self, said: &Said, turn: &Turn, at: u64) {
        for (name, shown) in references(&said.it.text) {
            let as_written = [format!("${name}"), format!("${{{name}}}")].contains(&shown);
            let meant = self.book.meant(&name, turn.number, at);
            let Some(act) = meant.and_then(|it| self.book.act(it)).cloned() else {
                let has_failed = self
                    .book
                    .acts
                    .iter()
                    .any(|it| it.id == name && it.is_refused && it.seq < said.seq);
                if !as_written && !has_failed {
                    self.wrong(said.seq, format!("{name} means nothing and reads {shown}"));
                }
                continue;
            };
            let expected = match act.end.filter(|(end, _)| *end < said.seq) {
                Some((_, Status::Ok)) => mark(&act),
                Some(_) => format!("[{name}: failed]"),
                None => {
                    self.wrong(said.seq, format!("{name} is action {}, which isn't done", act.seq));
                    continue;
                }
            };
            if shown != expected {
                let text =
                    format!("{name} is action {}, and reads {shown}, not {expected}", act.seq);
                self.wrong(said.seq, text);
            }
        }
    }

    /// A final response waits for its work's actions, and isn't delivered after a failure that the
    /// model hadn't been shown.
    fn held(&mut self, said: &Said, turn: &Turn, at: u64) {
        let of_work = |it: &&Act| it.work == said.work && it.mode != Mode::FireAndForget;
        let mut wrong = Vec::new();
        for act in self.book.acts.iter().filter(of_work).filter(|it| it.seq < said.seq) {
            match act.end.filter(|(end, _)| *end < said.seq) {
                None => wrong.push(format!("{} of {} isn't done", act.id, act.seq)),
                Some((_, Status::Ok)) => {}
                Some((end, _)) => {
                    let counts = !act.skips && !act.is_taken_back && end > turn.until;
                    let is_before = !act.is_refused || act.seq < at;
                    if counts && is_before && !turn.is_last {
                        wrong.push(format!("{} of {} failed unseen", act.id, act.seq));
                    }
                }
            }
        }
        for it in wrong {
            self.wrong(said.seq, format!("a final response leaves though {it}"));
        }
    }

    /// No failure counts as ok.
    fn actions(&mut self) {
        let mut wrong = Vec::new();
        for act in &self.book.acts {
            let is_meant_to_fail = !act.parameters.contains("\"outcome\":\"ok\"")
                && !act.parameters.contains("\"outcome\": \"ok\"");
            let is_ok = act.end.is_some_and(|(_, status)| status == Status::Ok);
            if is_ok && is_meant_to_fail {
                wrong.push((act.seq, format!("{} failed, and counts as ok", act.id)));
            }
            if act.end.is_none() {
                wrong.push((act.seq, format!("{} never ends", act.id)));
            }
            for name in &act.depends_on {
                let on = self.book.meant(name, act.turn, act.seq).and_then(|it| self.book.act(it));
                let Some(on) = on else { continue };
                let has_failed = on.end.filter(|(_, status)| *status != Status::Ok && !on.skips);
                if let (Some((end, status)), Some(ran)) = (has_failed, act.ran)
                    && (end < ran || is_ok)
                {
                    let text = format!("{} ran though {} was {status:?} at {end}", act.id, on.id);
                    wrong.push((act.seq, text));
                }
            }
        }
        wrong.into_iter().for_each(|(seq, text)| self.wrong(seq, text));
    }

    /// What is under way for a work before an entry.
    fn under_way(&self, work: Option<usize>, seq: u64) -> Option<u64> {
        let is_open =
            |begins: u64, over: Option<u64>| begins < seq && over.is_none_or(|it| it > seq);
        let acts = self.book.acts.iter().filter(|it| {
            let end = it.end.map(|(end, _)| end);
            it.work == work && it.mode != Mode::FireAndForget && is_open(it.seq, end)
        });
        let things = self
            .book
            .things
            .iter()
            .filter(|it| it.work == work && it.kind != "short" && is_open(it.seq, it.over));
        acts.map(|it| it.seq).chain(things.map(|it| it.seq)).next()
    }

    fn idle(&mut self) {
        for stop in self.book.stops.clone().iter().filter(|it| it.reason == "idle") {
            if let Some(of) = self.under_way(stop.work, stop.seq) {
                self.wrong(stop.seq, format!("it stops as idle while {of} is under way"));
            }
        }
    }

    /// Each turn has its reason.
    fn turns(&mut self) {
        let turns = self.book.turns.clone();
        for (number, turn) in turns.iter().enumerate() {
            let before = number.checked_sub(1).map(|it| &turns[it]);
            let Some(before) = before.filter(|it| it.work == turn.work) else { continue };
            let since = |seq: u64| seq > before.at && seq < turn.at;
            let news =
                self.book.news.iter().any(|(seq, _)| *seq > before.until && *seq <= turn.until);
            let began = self.book.began.iter().any(|it| since(*it));
            let told = self
                .book
                .notices
                .iter()
                .any(|(seq, it)| since(*seq) && (it.call.is_some() || it.response.is_some()));
            let cut = before.out.as_ref().is_none_or(|(_, it)| it.error.is_some() || it.is_partial);
            if news || began || told || cut {
                if cut {
                    self.book.named("turn after a failure or a cut");
                }
                continue;
            }
            let out = before.out.as_ref().map_or(turn.at, |(seq, _)| *seq);
            match self.under_way(turn.work, out) {
                Some(of) => self.wrong(turn.at, format!("a turn for nothing, {of} is under way")),
                None => self.book.named("turn after a quiet one"),
            }
        }
    }

    /// No prompt shows another's message, before that is its own work's.
    fn prompts(&mut self) {
        let seen = self.run.seen.lock().unwrap().clone();
        for turn in self.book.turns.clone() {
            let shown = seen.get(&turn.number).cloned().unwrap_or_default();
            for (number, work) in self.book.works.clone().iter().enumerate() {
                let is_later = work.end.is_none_or(|end| end > turn.at);
                for asked in work.asked.iter().filter(|_| is_later && Some(number) != turn.work) {
                    if self.book.number(*asked).is_some_and(|it| shown.contains(&it)) {
                        self.wrong(turn.at, format!("its prompt shows {asked} of other work"));
                    }
                }
            }
        }
    }

    /// The agent's own fold comes to the same.
    fn folds(&mut self) {
        let mut minds = Minds::default();
        self.run.entries.iter().for_each(|it| minds.apply(it));
        let mind = minds.of(ORACLE);
        if mind.work.is_some() || !mind.pending.is_empty() || !mind.interrupts.is_empty() {
            self.wrong.push(format!("at rest its fold has work left: {:?}", mind.work));
        }
        let (own, others) = mind.unanswered();
        if !own.is_empty() || !others.is_empty() {
            self.wrong.push(format!("at rest its fold has {own:?} and {others:?} unanswered"));
        }
    }
}

/// Whether a text has a reference to nothing with this name.
fn is_lost(text: &str, name: &str) -> bool {
    [format!("${{{name}.none}}"), format!("${{{name}{name}}}")].iter().any(|it| text.contains(it))
}

fn place(text: &str) -> Option<Place> {
    let (at, _) = text.trim_start().split_once(">R").map_or_else(
        || text.trim_start().strip_prefix('R')?.split_once(':'),
        |(_, it)| it.split_once(':'),
    )?;
    let (turn, count) = at.split_once('.')?;
    Some((turn.parse().ok()?, count.parse().ok()?))
}

/// The names in a response, and what is shown for them.
fn references(text: &str) -> Vec<(String, String)> {
    // A reply that was cut may end within one.
    let closed = text.rsplit_once(')').map_or("", |(closed, _)| closed);
    let parts = closed.split(')').filter_map(|it| it.trim().rsplit(' ').next()?.split_once("=("));
    let failed = |it: &str| it.to_owned();
    let mut found: Vec<(String, String)> =
        parts.map(|(name, shown)| (failed(name), failed(shown))).collect();
    // What failed reads with a space in it.
    for name in NAMES {
        let failed = format!("[{name}: failed]");
        let times = text.matches(&format!("{name}=({failed})")).count();
        found.extend(vec![(name.to_owned(), failed); times]);
    }
    found
}

fn mark(act: &Act) -> String {
    let after = act.parameters.split("\"mark\"").nth(1).unwrap_or_default();
    after.split('"').nth(1).unwrap_or_default().to_owned()
}
