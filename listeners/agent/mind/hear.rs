//! What each entry of a thread changes for its agents.

use std::mem::take;
use std::sync::Arc;

use pumphouse::prelude::*;
use pumphouse::wire::budget::Charge;
use pumphouse::wire::core::{NothingUnderWay, SystemThreadError, ThreadResult, ThreadSpawned};

use super::super::super::action::words::Mode;
use super::super::super::action::words::{Action, ActionResult, CancelAction, OnError, Status};
use super::super::super::feed::words::{ContextFeed, DeclareFeeds, FeedsRefreshed, RefreshFeeds};
use super::super::super::thread::wait::ThreadsAwaited;
use super::super::super::timer::{ClearTimer, SetTimer, Tick, TimerCleared, TimerSet};
use super::super::super::todo::words::{TodoComplete, TodoNudge, TodoUntil};
use super::super::root;
use super::super::words::{
    CognitionIn, CognitionOut, CognitionSystem, CognitionTools, Correction, Interrupt, Notice,
    Response, ResponseWaits, Stopped, is_last_word,
};
use super::rules::Stop;
use super::{
    Acting, Asker, Last, Mind, Minds, Names, Queued, Thing, Timer, Turn, Waiting, What, Work,
};

/// Listeners whose answers say no more than that something was done, but for what they send later.
const STAFF: [&str; 6] = ["action", "feed", "thread", "timer", "todo", "view"];

impl Apply for Minds {
    fn apply(&mut self, entry: &Entry) {
        if self.thread.as_ref() != Some(entry.thread())
            && self.thread.replace(entry.thread().clone()).is_some()
        {
            self.agents.values_mut().for_each(|it| Arc::make_mut(it).forked());
        }
        if entry.is_refused() {
            return;
        }
        if !entry.is_from_identity() {
            self.says(entry);
        }
        self.hears(entry);
    }
}

impl Minds {
    fn mind(&mut self, agent: &str) -> &mut Mind {
        Arc::make_mut(self.agents.entry(agent.to_owned()).or_default())
    }

    /// Takes an entry of a listener: an agent is known by its words.
    fn says(&mut self, entry: &Entry) {
        let from = entry.from();
        let is_word = entry.is::<CognitionSystem>()
            || entry.is::<CognitionIn>()
            || entry.is::<RefreshFeeds>()
            || entry.is::<Stopped>();
        if let Some(mind) = self.agents.get(from)
            && mind.turns == 0
            && !is_word
            && entry.reply_to().is_some_and(|it| mind.queue.contains_key(&it.seq))
        {
            // A listener that answers without a turn is no agent.
            self.agents.remove(from);
            self.others.insert(from.to_owned());
        }
        let is_own = is_word || entry.is::<Action>();
        let known = if is_own && !self.others.contains(from) {
            Some(self.mind(from))
        } else {
            self.agents.get_mut(from).map(Arc::make_mut)
        };
        if let Some(mind) = known {
            mind.said = entry.seq();
            mind.says(entry);
        }
    }

    /// An interrupt that names nobody is for every agent at work; where none is, for all.
    fn all_interrupted(&mut self, seq: u64) {
        let is_any = self.agents.values().any(|it| it.work.is_some());
        let meant = self.agents.values_mut().filter(|it| it.work.is_some() == is_any);
        meant.for_each(|it| Arc::make_mut(it).interrupts.push(seq));
    }

    /// Takes an entry that is addressed to an agent, or clears its timer.
    fn hears(&mut self, entry: &Entry) {
        if entry.to().is_none() && entry.is::<Interrupt>() && entry.receivers() > 0 {
            return self.all_interrupted(entry.seq());
        }
        let Some(to) = entry.to().filter(|it| *it != entry.from() || entry.is_from_identity())
        else {
            return;
        };
        let is_asked = *entry.name() == root(to) && entry.receivers() > 0;
        if is_asked && !self.others.contains(to) {
            self.mind(to).is_asked(entry);
        } else if let Some(mind) = self.agents.get_mut(to) {
            Arc::make_mut(mind).hears(entry);
        }
        // A cleared timer is no agent's any more, whichever sender cleared it.
        if let Some(it) = entry.decode_if::<TimerCleared>().filter(|it| it.was_set) {
            let sets = |mind: &&mut Arc<Mind>| mind.things.contains_key(&it.timer);
            for mind in self.agents.values_mut().filter(sets) {
                Arc::make_mut(mind).things.remove(&it.timer);
            }
        }
    }
}

impl Mind {
    /// What is under way goes on in the thread where it began, and there only.
    fn forked(&mut self) {
        self.things.clear();
        self.timers.clear();
        self.queue.clear();
        self.interrupts.clear();
        self.actions.retain(|_, it| it.ended.is_some());
        (self.asked, self.has_feeds) = (None, false);
        self.turn = None;
        self.reserved = None;
        self.written.clear();
        self.close();
    }

    /// A message gives the agent something to do.
    fn is_asked(&mut self, entry: &Entry) {
        self.queue.insert(entry.seq(), Queued::Ask(Asker::of(entry)));
        self.begin_next();
    }

    /// Takes an entry that another sender addressed to the agent.
    fn hears(&mut self, entry: &Entry) {
        if entry.is::<Interrupt>() && entry.receivers() > 0 {
            self.interrupts.push(entry.seq());
        } else if let Some(it) = entry.decode_if::<ActionResult>() {
            self.ends(entry.seq(), &it);
        } else if entry.is::<FeedsRefreshed>() {
            self.has_feeds |= entry.reply_to().is_some() && entry.reply_to() == self.asked.as_ref();
        } else if entry.is::<ContextFeed>() {
            let id = entry.element().ok().and_then(|it| it.attribute("id").map(str::to_owned));
            self.names.feeds.extend(id);
        } else if let Some(it) = entry.decode_if::<Tick>().filter(|_| entry.from() == "timer") {
            let timer = self.timers.get(&it.timer);
            if timer.is_some_and(|it| it.is_cleared) {
                return;
            }
            if timer.is_some_and(|it| !it.ticks_on) {
                self.things.remove(&it.timer);
            }
            self.queue.insert(entry.seq(), Queued::Tick(it.timer));
            self.begin_next();
        } else if entry.from() == "core" && self.hears_core(entry) {
        } else if let Some(of) = entry.reply_to().map(|it| it.seq) {
            self.is_answered(of, entry);
        }
    }

    /// What the pump itself says of threads, and that nothing is under way.
    fn hears_core(&mut self, entry: &Entry) -> bool {
        if let Some(it) = entry.decode_if::<ThreadSpawned>() {
            if let Some(of) = entry.reply_to() {
                self.things.remove(&of.seq);
            }
            self.begins(entry.seq(), What::Thread(it.assigned_id));
        } else if let Some(it) = entry.decode_if::<ThreadResult>() {
            let is_it = |thing: &Thing| matches!(&thing.what, What::Thread(id) if *id == it.thread);
            let of = self.things.iter().find(|(_, thing)| is_it(thing)).map(|(seq, _)| *seq);
            let thing = of.and_then(|it| self.things.remove(&it));
            self.queue.insert(entry.seq(), Queued::Came(thing.map_or(0, |it| it.work)));
        } else if entry.is::<NothingUnderWay>() {
            if let Some(work) = self.work.as_ref().map(|it| it.id) {
                self.things.retain(|_, it| it.what != What::Sent || it.work != work);
                if self.under_way().next().is_none() {
                    self.queue.insert(entry.seq(), Queued::Came(work));
                }
            }
        } else {
            return false;
        }
        true
    }

    /// Something that it sent has an answer.
    fn is_answered(&mut self, of: u64, entry: &Entry) {
        let is_staff = STAFF.contains(&entry.from());
        if let Some(it) = entry.decode_if::<TimerSet>().filter(|_| is_staff) {
            if let Some(thing) = self.things.get_mut(&of) {
                thing.what = What::Timer;
            }
            debug_assert_eq!(it.timer, of);
            return;
        }
        let is_fault = entry.is::<Huh>() || entry.is::<SystemThreadError>() || is_error(entry);
        let is_late = entry.is::<ThreadsAwaited>() || entry.is::<TodoNudge>();
        let confirms = (is_staff && !is_fault && !is_late) || entry.is::<Done>();
        let thing = self.things.remove(&of);
        if is_fault || !is_staff {
            self.timers.remove(&of);
        }
        if !confirms {
            let current = self.work.as_ref().map_or(0, |it| it.id);
            let work = thing.map_or(current, |it| it.work);
            self.queue.insert(entry.seq(), Queued::Came(work));
        }
    }

    /// An action came to its end.
    fn ends(&mut self, seq: u64, it: &ActionResult) {
        let is_named = self.named().any(|of| of == it.of);
        let waited = self.work.as_ref().map(|it| it.id).filter(|_| is_named);
        let because = it.because.as_ref().and_then(|id| self.names.ids.get(id));
        let was_taken_back =
            because.and_then(|it| self.actions.get(it)).is_some_and(|it| it.is_taken_back);
        let Some(acting) = self.actions.get_mut(&it.of) else { return };
        acting.ended = Some((it.status, seq));
        acting.is_taken_back = match it.status {
            Status::Cancelled => acting.is_taken_back,
            Status::Skipped => was_taken_back,
            _ => false,
        };
        self.queue.insert(seq, Queued::Result(it.of, waited));
    }

    /// What it says itself.
    pub(in super::super) fn says(&mut self, entry: &Entry) {
        if let Some(it) = entry.decode_if::<CognitionIn>() {
            self.turns_to(entry, &it);
        } else if let Some(it) = entry.decode_if::<CognitionOut>() {
            self.is_over(&it);
        } else if let Some(it) = entry.decode_if::<Action>() {
            self.acts(entry.seq(), &it);
        } else if let Some(it) = entry.decode_if::<ResponseWaits>() {
            self.waits(entry.seq(), it);
        } else if let Some(it) = entry.decode_if::<Notice>() {
            self.notices(entry.seq(), it);
        } else if let Some(it) = entry.decode_if::<Response>() {
            if !it.is_final || self.is_of_work(entry) {
                self.responds(it.is_final, it.was_held);
            }
        } else if let Some(it) = entry.decode_if::<Stopped>() {
            self.stops(Stop::of(&it.reason), it.until.unwrap_or(entry.seq()));
        } else if let Some(it) = entry.decode_if::<Charge>() {
            // Turns of before charged no tokens, and settled nothing.
            self.reserved = Some(it).filter(|it| !it.settled && it.tokens > 0);
        } else if entry.is::<CognitionSystem>() {
            self.system = entry.decode().ok().map(|CognitionSystem { text }| text.into());
        } else if entry.is::<CognitionTools>() {
            self.tools = Arc::new(entry.decode().unwrap_or_default());
        } else if entry.is::<RefreshFeeds>() {
            (self.asked, self.has_feeds) = (Some(entry.id().clone()), false);
        } else if entry.is::<Done>() {
            let of = entry.reply_to().map(|it| it.seq);
            self.interrupts.retain(|it| Some(*it) != of);
        } else if is_last_word(entry) {
            if self.is_of_work(entry) {
                self.responds(true, false);
            }
        } else {
            self.sends(entry);
        }
    }

    /// Whether an answer is to the work at hand: of several messages that are answered together
    /// the first answer has ended it.
    fn is_of_work(&self, entry: &Entry) -> bool {
        let to = entry.reply_to().filter(|it| it.thread == *entry.thread());
        let (Some(to), Some(work), Some(_)) = (to, &self.work, self.rules) else { return true };
        work.id == to.seq || work.origin == Some(to.seq) || work.asked.contains(&to.seq)
    }

    /// The agent sends a payload.
    fn sends(&mut self, entry: &Entry) {
        let is_own = entry.to().is_none_or(|it| it == entry.from());
        let is_bookkeeping = entry.is::<DeclareFeeds>() || entry.is::<Correction>();
        let is_checklist = entry.is::<TodoUntil>() || entry.is::<TodoComplete>();
        let is_answer = entry.reply_to().is_some();
        if is_own || is_bookkeeping || is_checklist || is_answer || entry.receivers() == 0 {
            return;
        }
        // An interrupt takes actions back as well: that is not the model's doing.
        if self.turn.is_some()
            && let Some(CancelAction { id, turn, .. }) = entry.decode_if()
        {
            let is_meant = |it: &Acting| {
                it.ended.is_none()
                    && id.as_ref().is_none_or(|id| it.id == *id)
                    && turn.is_none_or(|turn| it.turn == turn)
            };
            let meant = self.actions.values_mut().filter(|it| is_meant(it));
            meant.for_each(|it| it.is_taken_back = true);
        }
        if entry.is::<ClearTimer>() {
            // A stop clears timers as well, and that is no turn's doing.
            self.last.began |= self.turn.is_some();
            return;
        }
        if let Some(it) = entry.decode_if::<SetTimer>()
            && let Some(work) = &self.work
        {
            let origin = work.origin.unwrap_or(work.id);
            let ticks_on = it.every.is_some() || it.cron.is_some();
            let (asker, work, is_cleared) = (work.asker.clone(), work.id, false);
            let timer = Timer { asker, work, origin, ticks_on, is_cleared };
            self.timers.insert(entry.seq(), timer);
        }
        self.begins(entry.seq(), What::Sent);
    }

    /// Something that the agent began is under way.
    fn begins(&mut self, seq: u64, what: What) {
        let work = self.work.as_ref().map_or(0, |it| it.id);
        self.things.insert(seq, Thing::new(work, what));
        self.last.began = true;
    }

    fn turns_to(&mut self, entry: &Entry, it: &CognitionIn) {
        self.turns = self.turns.max(it.turn);
        self.rules = it.rules;
        self.turn = Some(Turn { at: entry.seq(), is_last: it.is_last == Some(true) });
        self.written.clear();
        let shown = self.shown(it.until);
        self.takes(&shown);
        for acting in self.actions.values_mut() {
            let is_seen = acting.ended.is_some_and(|(_, at)| at <= it.until);
            if is_seen && acting.shown.is_none() {
                acting.shown = Some(self.turns);
            }
        }
        let (current, named) =
            (self.work.as_ref().map(|it| it.id), self.named().collect::<Vec<_>>());
        self.actions
            .retain(|seq, it| it.shown.is_none() || it.work == current || named.contains(seq));
        (self.asked, self.has_feeds) = (None, false);
        (self.slept, self.last) = (false, Last::default());
    }

    /// What of the queue a turn up to an entry shows.
    fn shown(&self, until: u64) -> Vec<u64> {
        let upto = self.queue.range(..=until).filter(|(_, it)| self.shows(it));
        upto.map(|(at, _)| *at).collect()
    }

    /// A turn shows these: messages among them are answered with the work at hand.
    fn takes(&mut self, shown: &[u64]) {
        if shown.iter().any(|at| self.queue.get(at).is_some_and(|it| self.is_news(it))) {
            self.idle = 0;
        }
        for at in shown {
            if let Some(Queued::Ask(_)) = self.queue.remove(at)
                && let Some(work) = &mut self.work
            {
                work.asked.push(*at);
            }
        }
    }

    fn acts(&mut self, seq: u64, it: &Action) {
        let acting = Acting {
            id: it.id.clone(),
            turn: it.turn.unwrap_or(0),
            work: self.work.as_ref().map(|it| it.id),
            mode: it.mode,
            skips: it.on_error == Some(OnError::Skip),
            ended: None,
            shown: None,
            is_taken_back: false,
        };
        // A call that a notice refuses has no action, and so no name.
        let is_action = |at: u64, of: &Acting| of.ended.is_none_or(|(_, ended)| ended != at);
        let mut all = self.actions.iter();
        let is_again =
            all.any(|(at, of)| of.id == acting.id && of.turn == acting.turn && is_action(*at, of));
        self.actions.insert(seq, acting);
        self.last.began = true;
        if is_again {
            // It is refused: the name is the first one's.
            return;
        }
        self.names.add(seq, it);
        // What was written before and names it means it, where the name was nobody's then.
        for (name, meant) in self.written.iter_mut().flat_map(|it| &mut it.names) {
            if meant.is_none() {
                *meant = self.names.meant(name).filter(|it| *it == seq);
            }
        }
    }

    fn waits(&mut self, seq: u64, it: ResponseWaits) {
        let names = it.on.into_iter().map(|name| {
            let meant = self.names.meant(&name);
            (name, meant)
        });
        self.written.push(Waiting {
            at: seq,
            turn: it.turn,
            is_final: it.is_final,
            is_last: self.turn.as_ref().is_some_and(|it| it.is_last),
            is_early: false,
            text: String::new(),
            payload: it.payload,
            work: self.work.as_ref().map_or(0, |it| it.id),
            place: (it.from, it.to),
            names: names.collect(),
        });
    }

    /// Something of its reply didn't run, or its response wasn't delivered.
    fn notices(&mut self, seq: u64, it: Notice) {
        if it.response.is_some() {
            self.pending.pop_back();
            self.last.mistake = true;
        } else if let Some(id) = it.call {
            let acting = Acting {
                id,
                turn: it.turn,
                work: self.work.as_ref().map(|it| it.id),
                mode: Mode::Sync,
                skips: false,
                ended: Some((Status::Failed, seq)),
                shown: None,
                is_taken_back: false,
            };
            self.actions.insert(seq, acting);
            self.last.mistake = true;
        }
    }

    pub(in super::super) fn is_over(&mut self, it: &CognitionOut) {
        let turn = self.turn.take();
        let is_cut = it.stop == CognitionOut::STOPPED;
        self.last.is_over = true;
        self.last.is_last = turn.as_ref().is_some_and(|it| it.is_last) && !is_cut;
        self.last.is_cut = is_cut;
        self.last.failed = it.error.is_some() && !is_cut && it.stop != Interrupt::WORD;
        self.last.mistake |= it.is_partial && !self.last.failed;
        self.last.began |= it.wrote_root == Some(true);
        self.cuts += u64::from(is_cut);
        self.error = it.error.clone().unwrap_or_default();
        self.failures = if self.last.failed { self.failures + 1 } else { 0 };
        self.idle = if it.is_idle { self.idle + 1 } else { 0 };
        let written = take(&mut self.written);
        for mut waiting in written.into_iter().filter(|_| !is_cut) {
            let place = |at: u64| usize::try_from(at).unwrap_or(usize::MAX);
            let text = it.text.get(place(waiting.place.0)..place(waiting.place.1));
            waiting.text = text.unwrap_or_default().trim().to_owned();
            waiting.is_early = self.is_early(&waiting);
            self.pending.push_back(waiting);
        }
        self.holds_as_before(it);
        let Last { began, mistake, failed, is_cut, .. } = self.last;
        // In turns of 0.1.0 only one that did nothing had it sleep.
        let is_quiet = match self.rules {
            Some(_) => !(began || mistake || failed || is_cut),
            None => it.is_idle,
        };
        self.slept = is_quiet && self.held().is_none() && self.under_way().next().is_some();
    }

    /// A final response that waits as a turn of 0.1.0 has it: its place stands in the reply's end.
    fn holds_as_before(&mut self, it: &CognitionOut) {
        let Some((from, to)) = it.held_from.zip(it.held_to) else { return };
        let place = |at: u64| usize::try_from(at).unwrap_or(usize::MAX);
        let Some(text) = it.text.get(place(from)..place(to)) else { return };
        let names = super::super::super::action::variables::names(text);
        let meant = |name: &str| (name.to_owned(), self.names.meant(name));
        self.pending.push_back(Waiting {
            at: u64::MAX,
            turn: it.turn,
            is_final: true,
            is_last: self.last.is_last,
            is_early: true,
            text: text.trim().to_owned(),
            payload: None,
            work: self.work.as_ref().map_or(0, |it| it.id),
            place: (from, to),
            names: names.into_iter().map(meant).collect(),
        });
    }

    /// Whether actions of its turn are unfinished, fire-and-forget ones apart.
    fn is_early(&self, it: &Waiting) -> bool {
        let of_turn = self.actions.values().filter(|action| action.turn == it.turn);
        let mut open = of_turn.filter(|action| action.ended.is_none());
        open.any(|action| action.mode != Mode::FireAndForget && action.work == Some(it.work))
    }

    /// A response is delivered: one that waited is the first of those.
    pub(in super::super) fn responds(&mut self, is_final: bool, was_waiting: bool) {
        if is_final {
            self.close();
        } else if was_waiting {
            self.pending.pop_front();
        }
    }

    /// The final response that waits is not delivered.
    pub(in super::super) fn withdraws_held(&mut self) {
        self.pending.pop_back();
        self.last.mistake = true;
    }

    /// Its work ends without an answer.
    pub(in super::super) fn stops(&mut self, stop: Stop, until: u64) {
        let is_told = stop == Stop::Interrupted && self.interrupts.iter().all(|it| *it > until);
        if is_told {
            // The sender of an interrupt hears of it, too, when the work is over.
            return;
        }
        let taken = self.taken_by(stop, until);
        for seq in taken.asks.iter().chain(&taken.ticks) {
            self.queue.remove(seq);
        }
        for timer in &taken.timers {
            self.things.remove(timer);
            if let Some(it) = self.timers.get_mut(timer) {
                it.is_cleared = stop == Stop::Interrupted;
            }
        }
        if stop == Stop::Interrupted {
            let ended = self.work.as_ref().map(|it| it.id);
            let of = |timer: &u64| self.timers.get(timer).map(|it| it.work);
            // Also one behind the interrupt, of a timer that ticks once and is done.
            let is_of = |it: &Queued| matches!(it, Queued::Tick(it) if of(it) == ended);
            self.queue.retain(|_, it| !is_of(it));
            self.interrupts.retain(|it| *it > until);
        }
        self.turn = None;
        self.written.clear();
        self.close();
    }

    /// Messages that end nothing are answered.
    pub(in super::super) fn lets_pass(&mut self) {
        self.interrupts.clear();
    }

    /// A turn begins, and is over, in which nothing was called: what the handler of it knows before
    /// the fold does.
    pub(in super::super) fn turned(&mut self, turn: u64, until: u64, is_last: bool) {
        self.turns = turn;
        let shown: Vec<u64> = self.shown(until);
        self.takes(&shown);
        (self.slept, self.last) = (false, Last { is_over: true, is_last, ..Last::default() });
    }

    /// The work at hand is done.
    fn close(&mut self) {
        self.work = None;
        self.pending.clear();
        (self.asked, self.has_feeds) = (None, false);
        self.begin_next();
    }

    /// The oldest message or tick that waits begins the next work.
    fn begin_next(&mut self) {
        if self.work.is_some() {
            return;
        }
        (self.last, self.idle, self.failures) = (Last::default(), 0, 0);
        self.slept = false;
        let next = self.queue.iter().find_map(|(seq, it)| match it {
            Queued::Ask(asker) => Some((*seq, asker.clone(), None)),
            Queued::Tick(timer) => {
                let timer = self.timers.get(timer)?;
                Some((*seq, timer.asker.clone(), Some(timer.origin)))
            }
            Queued::Result(..) | Queued::Came(_) => None,
        });
        self.work = next.map(|(id, asker, origin)| Work { id, asker, asked: Vec::new(), origin });
        self.before = self.turns_counted();
    }
}

impl Names {
    /// An action may be called by these from now on.
    fn add(&mut self, seq: u64, it: &Action) {
        self.ids.insert(it.id.clone(), seq);
        if let Some(key) = &it.output_key {
            self.keys.insert(key.clone(), seq);
        }
        let target = it.name.split_once('.').map_or(&*it.name, |(listener, _)| listener);
        match self.targets.get_mut(target) {
            Some(one) => *one = None,
            None => drop(self.targets.insert(target.to_owned(), Some(seq))),
        }
    }

    /// The action that a name means now.
    pub(super) fn meant(&self, name: &str) -> Option<u64> {
        let by_name = self.keys.get(name).or_else(|| self.ids.get(name)).copied();
        let by_target = || self.targets.get(name).copied().flatten();
        by_name.or_else(|| if self.feeds.contains(name) { None } else { by_target() })
    }
}

/// Whether an answer says that something went wrong.
fn is_error(entry: &Entry) -> bool {
    entry.flags().contains(pumphouse::log::Flags::ERROR)
}
