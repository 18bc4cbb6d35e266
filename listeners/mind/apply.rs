//! Applies a thread's entries to the fold [`Minds`], which has a [`Mind`] for each agent: its work,
//! its queue, and the actions, timers and threads that are under way.

use std::sync::Arc;

use pumphouse::prelude::*;
use pumphouse::wire::budget::Charge;
use pumphouse::wire::core::{
    ContextCleared, NothingUnderWay, SystemThreadError, ThreadResult, ThreadSpawned,
};

use super::super::feed_contents::words::{ContextFeed, DeclareFeeds, FeedsRefreshed, RefreshFeeds};
use super::super::metadata::words::MetadataChanged;
use super::super::thread::wait::ThreadsAwaited;
use super::super::timer::{ClearTimer, SetTimer, Tick, TimerCleared, TimerSet};
use super::super::todo::words::{TodoComplete, TodoNudge, TodoUntil};
use super::super::view::{ClearContext, UndoClear};
use super::super::words::action::{Action, ActionResult, CancelAction, Status};
use super::super::words::agent::root;
use super::super::words::agent::{
    CognitionIn, CognitionOut, CognitionSystem, CognitionTools, ContextFull, Correction, Interrupt,
    Notice, Response, ResponseWaits, Stopped, flag, is_last_word,
};
use super::what_next::Stop;
use super::{ActionRecord, Asker, Mind, Minds, Outstanding, OutstandingKind, Queued, Timer};

/// Listeners whose answers only confirm that a request was carried out. Such an answer begins no
/// turn, unless it reports a failure. `threads-awaited`, `todo-nudge` and ticks begin a turn.
const STAFF: [&str; 7] = ["action", "feed", "thread", "timer", "todo", "trigger", "view"];

impl Apply for Minds {
    fn apply(&mut self, entry: &Entry) {
        if self.thread.enter(entry) {
            self.agents.values_mut().for_each(|it| Arc::make_mut(it).reset_for_fork());
        }
        if entry.is_refused() {
            return;
        }
        if !entry.is_from_identity() {
            self.apply_sent(entry);
        }
        self.apply_received(entry);
    }
}

impl Minds {
    fn mind(&mut self, agent: &str) -> &mut Mind {
        Arc::make_mut(self.agents.entry(agent.to_owned()).or_default())
    }

    /// Applies an entry that a listener sent.
    fn apply_sent(&mut self, entry: &Entry) {
        if let Some(mind) = self.agents.get_mut(entry.from()) {
            let mind = Arc::make_mut(mind);
            mind.said = entry.seq();
            mind.apply_sent(entry);
        }
    }

    /// Applies an interrupt that isn't addressed to one agent. It is for every agent that has work.
    /// If no agent has work, the interrupt is for all agents.
    fn interrupt_all(&mut self, seq: u64) {
        let is_any = self.agents.values().any(|it| it.work.is_some());
        let meant = self.agents.values_mut().filter(|it| it.work.is_some() == is_any);
        meant.for_each(|it| Arc::make_mut(it).interrupts.push(seq));
    }

    /// Applies an entry that is addressed to an agent, an interrupt of several agents, or the news
    /// that an agent's timer was cleared.
    fn apply_received(&mut self, entry: &Entry) {
        if entry.to().is_none() && entry.is::<Interrupt>() && entry.receivers() > 0 {
            return self.interrupt_all(entry.seq());
        }
        let Some(to) = entry.to().filter(|it| *it != entry.from() || entry.is_from_identity())
        else {
            return;
        };
        if entry.is_to_agent() && *entry.name() == root(to) {
            self.mind(to).enqueue(entry);
        } else if let Some(mind) = self.agents.get_mut(to) {
            Arc::make_mut(mind).apply_received(entry);
        }
        // No agent waits for a cleared timer any more, even if another sender cleared it.
        if let Some(timer_cleared) = entry.decode_if::<TimerCleared>().filter(|it| it.was_set) {
            let sets = |mind: &&mut Arc<Mind>| mind.outstanding.contains_key(&timer_cleared.timer);
            for mind in self.agents.values_mut().filter(sets) {
                Arc::make_mut(mind).outstanding.remove(&timer_cleared.timer);
            }
        }
    }
}

impl Mind {
    /// Drops everything that is under way, at the beginning of a fork. The dropped things continue
    /// only in the original thread.
    fn reset_for_fork(&mut self) {
        self.outstanding.clear();
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

    /// Queues a message that gives the agent work.
    fn enqueue(&mut self, entry: &Entry) {
        self.queue.insert(entry.seq(), Queued::Ask(Asker::of(entry)));
        self.begin_next();
    }

    /// Applies an entry that another sender addressed to the agent.
    fn apply_received(&mut self, entry: &Entry) {
        if entry.is::<Interrupt>() && entry.receivers() > 0 {
            self.interrupts.push(entry.seq());
        } else if let Some(action_result) = entry.decode_if::<ActionResult>() {
            self.end_action(entry.seq(), &action_result);
        } else if entry.is::<FeedsRefreshed>() {
            self.has_feeds |= entry.reply_to().is_some() && entry.reply_to() == self.asked.as_ref();
        } else if entry.is::<ContextFeed>() {
            let id = entry.element().ok().and_then(|it| it.attribute("id").map(str::to_owned));
            self.names.feeds.extend(id);
        } else if let Some(tick) = entry.decode_if::<Tick>().filter(|_| entry.from() == "timer") {
            let timer = self.timers.get(&tick.timer);
            if timer.is_some_and(|it| it.is_cleared) {
                return;
            }
            if timer.is_some_and(|it| !it.ticks_on) {
                self.outstanding.remove(&tick.timer);
            }
            self.queue.insert(entry.seq(), Queued::Tick(tick.timer));
            self.begin_next();
        } else if entry.is_from_core() && self.apply_core(entry) {
        } else if let Some(of) = entry.reply_to().map(|it| it.seq) {
            let cleared = entry.decode_if::<ContextCleared>().map(|it| it.kept_messages);
            self.cleared = cleared.or(self.cleared);
            self.settle_outstanding(of, entry);
        }
    }

    /// Applies the pump's own messages about threads, and `nothing-under-way`. Returns whether the
    /// entry was such a message.
    fn apply_core(&mut self, entry: &Entry) -> bool {
        if let Some(thread_spawned) = entry.decode_if::<ThreadSpawned>() {
            if let Some(of) = entry.reply_to() {
                self.outstanding.remove(&of.seq);
            }
            self.add_outstanding(entry.seq(), OutstandingKind::Thread(thread_spawned.assigned_id));
        } else if let Some(thread_result) = entry.decode_if::<ThreadResult>() {
            let ended = OutstandingKind::Thread(thread_result.thread);
            let of = self.outstanding.iter().find(|(_, thing)| thing.kind == ended);
            let of = of.map(|(seq, _)| *seq);
            let thing = of.and_then(|it| self.outstanding.remove(&it));
            self.queue.insert(entry.seq(), Queued::Other(thing.map_or(0, |it| it.work)));
        } else if entry.is::<NothingUnderWay>() {
            if let Some(work) = self.work.as_ref().map(|it| it.id) {
                let is_sent = |it: &Outstanding| {
                    matches!(it.kind, OutstandingKind::Payload | OutstandingKind::View)
                };
                self.outstanding.retain(|_, it| !is_sent(it) || it.work != work);
                if self.under_way().next().is_none() {
                    self.queue.insert(entry.seq(), Queued::Other(work));
                }
            }
        } else {
            return false;
        }
        true
    }

    /// Applies an answer to a message of the agent.
    fn settle_outstanding(&mut self, of: u64, entry: &Entry) {
        let is_staff = STAFF.contains(&entry.from());
        if let Some(timer_set) = entry.decode_if::<TimerSet>().filter(|_| is_staff) {
            if let Some(thing) = self.outstanding.get_mut(&of) {
                thing.kind = OutstandingKind::Timer;
            }
            debug_assert_eq!(timer_set.timer, of);
            return;
        }
        let is_fault = entry.is::<Huh>() || entry.is::<SystemThreadError>() || is_error(entry);
        let is_late = entry.is::<ThreadsAwaited>() || entry.is::<TodoNudge>();
        let confirms = (is_staff && !is_fault && !is_late) || entry.is::<Done>();
        let thing = self.outstanding.remove(&of);
        if is_fault || !is_staff {
            self.timers.remove(&of);
        }
        if !confirms {
            let current = self.work.as_ref().map_or(0, |it| it.id);
            let work = thing.map_or(current, |it| it.work);
            self.queue.insert(entry.seq(), Queued::Other(work));
        }
    }

    /// Applies the result of an action.
    fn end_action(&mut self, seq: u64, action_result: &ActionResult) {
        let is_named = self.named().any(|of| of == action_result.of);
        let waited = self.work.as_ref().map(|it| it.id).filter(|_| is_named);
        let because = action_result.because.as_ref().and_then(|id| self.names.ids.get(id));
        let was_taken_back =
            because.and_then(|it| self.actions.get(it)).is_some_and(|it| it.is_taken_back);
        let Some(acting) = self.actions.get_mut(&action_result.of) else { return };
        acting.ended = Some((action_result.status, seq));
        // An action that was skipped because its condition didn't hold is no failure.
        acting.skips |= action_result.is_not_taken();
        acting.is_taken_back = match action_result.status {
            Status::Cancelled => acting.is_taken_back,
            Status::Skipped => was_taken_back,
            _ => false,
        };
        self.queue.insert(seq, Queued::Result(action_result.of, waited));
    }

    /// Applies an entry that the agent itself sent.
    pub(in super::super) fn apply_sent(&mut self, entry: &Entry) {
        if let Some(cognition_in) = entry.decode_if::<CognitionIn>() {
            self.begin_turn(entry, &cognition_in);
        } else if let Some(cognition_out) = entry.decode_if::<CognitionOut>() {
            self.end_turn(&cognition_out);
        } else if let Some(action) = entry.decode_if::<Action>() {
            self.add_action(entry.seq(), &action);
        } else if let Some(response_waits) = entry.decode_if::<ResponseWaits>() {
            self.add_response(entry.seq(), response_waits);
        } else if let Some(notice) = entry.decode_if::<Notice>() {
            self.add_notice(entry.seq(), notice);
        } else if let Some(response) = entry.decode_if::<Response>() {
            if self.turn.is_some() && !response.is_final {
                self.partial = Some(response.text);
            }
            if !response.is_final || self.is_of_work(entry) {
                self.close_response(response.is_final, response.was_held);
            }
        } else if let Some(stopped) = entry.decode_if::<Stopped>() {
            self.stop_work(Stop::of(&stopped.reason), stopped.until);
        } else if entry.is::<Charge>() {
            // An unsettled charge without tokens reserves nothing. Older versions wrote such
            // charges.
            let charge = || entry.decode_if::<Charge>();
            let is_open = flag::<Charge>(entry, "settled") == Some(false);
            self.reserved = is_open.then(charge).flatten().filter(|it| it.tokens > 0);
        } else if entry.is::<CognitionSystem>() {
            self.system = entry.decode().ok().map(|CognitionSystem { text }| text.into());
        } else if entry.is::<CognitionTools>() {
            self.tools = Arc::new(entry.decode().unwrap_or_default());
        } else if entry.is::<RefreshFeeds>() {
            (self.asked, self.has_feeds) = (Some(entry.id().clone()), false);
        } else if let Some(full) = entry.decode_if::<ContextFull>() {
            if full.is_refused == Some(true) {
                self.measure.refuse(&full);
            }
        } else if entry.is::<Done>() {
            let of = entry.reply_to().map(|it| it.seq);
            self.interrupts.retain(|it| Some(*it) != of);
        } else if is_last_word(entry) {
            if self.is_of_work(entry) {
                self.close_response(true, false);
            }
        } else {
            self.record_payload(entry);
        }
    }

    /// Whether an answer belongs to the work at hand. If the agent answers several messages at
    /// once, the first of these answers ends the work, and the others belong to no work.
    fn is_of_work(&self, entry: &Entry) -> bool {
        let to = entry.reply_to().filter(|it| it.thread == *entry.thread());
        let (Some(to), Some(work)) = (to, &self.work) else { return true };
        let is_asked = work.origin == Some(to.seq) || work.asked.contains(&to.seq);
        self.turns == 0 || work.id == to.seq || is_asked
    }

    /// Applies any other payload that the agent sends, such as one to a peer.
    fn record_payload(&mut self, entry: &Entry) {
        let is_own = entry.to().is_none_or(|it| it == entry.from());
        let is_bookkeeping =
            entry.is::<DeclareFeeds>() || entry.is::<Correction>() || entry.is::<MetadataChanged>();
        let is_checklist = entry.is::<TodoUntil>() || entry.is::<TodoComplete>();
        let is_answer = entry.reply_to().is_some();
        if is_own || is_bookkeeping || is_checklist || is_answer || entry.receivers() == 0 {
            return;
        }
        // Only a cancel that comes within a turn is the agent's own. After an interrupt, actions
        // are cancelled, too, but then the agent has no turn.
        if self.turn.is_some()
            && let Some(CancelAction { id, turn, .. }) = entry.decode_if()
        {
            let is_meant = |action_record: &ActionRecord| {
                action_record.ended.is_none()
                    && id.as_ref().is_none_or(|id| action_record.id == *id)
                    && turn.is_none_or(|turn| action_record.turn == turn)
            };
            let meant = self.actions.values_mut().filter(|it| is_meant(it));
            meant.for_each(|it| it.is_taken_back = true);
        }
        if entry.is::<ClearTimer>() {
            // A `clear-timer` is something that the turn began. When work is stopped, timers are
            // cleared, too, but then the agent has no turn.
            self.last.began |= self.turn.is_some();
            return;
        }
        if let Some(set_timer) = entry.decode_if::<SetTimer>()
            && let Some(work) = &self.work
        {
            let origin = work.origin.unwrap_or(work.id);
            let ticks_on = set_timer.every.is_some() || set_timer.cron.is_some();
            let (asker, work, is_cleared) = (work.asker.clone(), work.id, false);
            let timer = Timer { asker, work, origin, ticks_on, is_cleared };
            self.timers.insert(entry.seq(), timer);
        }
        let is_of_view = entry.is::<ClearContext>() || entry.is::<UndoClear>();
        let kind = if is_of_view { OutstandingKind::View } else { OutstandingKind::Payload };
        self.add_outstanding(entry.seq(), kind);
    }

    /// Records that the agent began something that is now under way.
    fn add_outstanding(&mut self, seq: u64, kind: OutstandingKind) {
        let work = self.work.as_ref().map_or(0, |it| it.id);
        self.outstanding.insert(seq, Outstanding::new(work, kind));
        self.last.began = true;
    }
}

/// Whether an answer reports a failure.
fn is_error(entry: &Entry) -> bool {
    entry.flags().contains(pumphouse::log::Flags::ERROR)
}
