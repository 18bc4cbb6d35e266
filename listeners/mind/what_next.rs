//! The rules for what an agent does next. They depend only on the agent's mind and settings.
//!
//! The order of the rules matters. An interrupt comes first. After it, waiting responses are
//! delivered or withdrawn. The reasons to stop come next. Last, the agent has a turn or waits.

use pumphouse::prelude::*;
use serde_json::{Map, Value};

use super::super::words::action::{Mode, Status};
use super::FinalWithActions;
use super::{
    ActionRecord, Asker, Awaited, LastTurn, Mind, Outstanding, OutstandingKind, PendingResponse,
    Queued, Work,
};

/// An agent stops after this many consecutive turns without an effect, if no news has come and
/// nothing is under way.
pub(super) const IDLE_MAX: u32 = 2;
/// An agent stops after this many consecutive turns in which a call failed in the same way before
/// it ran, and nothing else began.
pub(super) const REPEATS_MAX: u32 = 3;
/// An agent stops after this many consecutive turns in which the model failed.
pub(super) const FAILURES_MAX: u32 = 3;

/// A turn that waits for its provider's rate limit doesn't count as a turn. After this many such
/// turns in a row, each further one counts as a turn and as a failure of the model.
pub(super) const RATE_LIMITS_MAX: u32 = 100;

/// The settings of an agent that the rules need.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Rules {
    /// What happens to a final response while actions are unfinished.
    pub policy: FinalWithActions,
    /// The number of turns that the agent may have for each work.
    pub max_turns: u64,
    /// When results begin a turn.
    pub wake: Wake,
}

/// When results of actions begin an agent's next turn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Wake {
    /// Each result begins a turn.
    #[default]
    Each,
    /// The results of all that is under way begin one turn.
    All,
}

impl Rules {
    /// Creates rules by which each result begins a turn.
    #[must_use]
    pub fn new(policy: FinalWithActions, max_turns: u64) -> Rules {
        Rules { policy, max_turns, wake: Wake::Each }
    }
}

/// What an agent does next.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Next {
    /// The agent waits until something comes.
    Wait,
    /// An interrupt ends the agent's work.
    Interrupt,
    /// An interrupt came, but the agent has no work.
    NoWork,
    /// The agent delivers its first waiting response.
    Deliver,
    /// The agent withdraws its waiting final response, for this reason.
    Withdraw(String),
    /// The agent ends its work without a final response.
    Stop(StopReason),
    /// The agent has a turn.
    Turn,
}

/// Why an agent ends its work without a final response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StopReason {
    /// The agent has no turn left.
    Turns,
    /// The agent's model failed too often, or the provider refused a request.
    Model,
    /// The agent's last turns did nothing.
    Idle,
    /// A call failed in the same way in each of the agent's last turns.
    Repeated,
}

impl Mind {
    /// Decides what the agent does next. Call this only while no turn is running.
    #[must_use]
    pub fn next(&self, rules: &Rules) -> Next {
        let Some(work) = &self.work else {
            return if self.interrupts.is_empty() { Next::Wait } else { Next::NoWork };
        };
        if !self.interrupts.is_empty() {
            return Next::Interrupt;
        }
        if self.pending.front().is_some_and(|it| self.is_ready(it, rules)) {
            return Next::Deliver;
        }
        if let Some(held) = self.held() {
            if let Some(why) = self.withdraws(held, work, rules) {
                return Next::Withdraw(why);
            }
        } else if self.last.is_last || self.turns_spent() >= rules.max_turns {
            return Next::Stop(StopReason::Turns);
        }
        let is_news = self.has_news();
        if self.failures >= FAILURES_MAX || self.is_refused {
            return Next::Stop(StopReason::Model);
        }
        if self.idle >= IDLE_MAX && !is_news && self.under_way().next().is_none() {
            return Next::Stop(StopReason::Idle);
        }
        let repeats = self.repeated.as_ref().map_or(0, |it| it.turns);
        if repeats >= REPEATS_MAX && !is_news && self.under_way().next().is_none() {
            return Next::Stop(StopReason::Repeated);
        }
        if self.is_blocked() || self.held().is_some() || self.joins(rules) {
            return Next::Wait;
        }
        let LastTurn { began, mistake, failed, is_limited, is_cut, .. } = self.last;
        let goes_on = is_news || !is_limited && (began || mistake || failed || is_cut);
        if goes_on || !self.slept { Next::Turn } else { Next::Wait }
    }

    /// Whether the agent waits until several things have ended, so that their results take one
    /// turn. A message, a tick of a timer, or a mistake in the last reply ends the wait.
    fn joins(&self, rules: &Rules) -> bool {
        let LastTurn { is_over, mistake, failed, is_limited, is_cut, .. } = self.last;
        let is_told = mistake || failed && !is_limited || is_cut;
        let is_call = |it: &Queued| matches!(it, Queued::Ask(_) | Queued::Tick(_));
        let is_called = self.queue.values().any(|it| is_call(it) && self.is_news(it));
        if !is_over || is_told || is_called {
            return false;
        }
        match (&self.awaited, rules.wake) {
            (Some(Awaited::Actions(all)), _) => {
                all.iter().any(|seq| self.actions.get(seq).is_some_and(|it| it.ended.is_none()))
            }
            (Some(Awaited::All), _) | (None, Wake::All) => self.is_joined_by_any(),
            (None, Wake::Each) => false,
        }
    }

    /// Whether anything with an end of its own is under way for the work at hand. A timer has none,
    /// since it may tick again and again.
    fn is_joined_by_any(&self) -> bool {
        let is_timer = |seq: u64| {
            self.outstanding.get(&seq).is_some_and(|it| it.kind == OutstandingKind::Timer)
        };
        self.under_way().any(|seq| !is_timer(seq))
    }

    /// Whether a turn that began now would be the last one that `max_turns` allows.
    #[must_use]
    pub fn is_last_turn(&self, rules: &Rules) -> bool {
        self.turns_spent() + 1 >= rules.max_turns
    }

    /// The final response that waits. None if no final response waits.
    #[must_use]
    pub fn held(&self) -> Option<&PendingResponse> {
        self.pending.back().filter(|it| it.is_final)
    }

    /// Returns the reason to withdraw the waiting final response. None if the response may go on
    /// waiting.
    fn withdraws(&self, held: &PendingResponse, work: &Work, rules: &Rules) -> Option<String> {
        if held.is_last {
            return None;
        }
        let joins = |it: &Queued| matches!(it, Queued::Ask(asker) if *asker == work.asker);
        if self.queue.values().any(joins) {
            return Some(format!("{} has sent another message", work.asker.name));
        }
        let failed: Vec<String> = self.failed_for(held, rules).map(ActionRecord::told).collect();
        if !failed.is_empty() {
            return Some(failed.join("; "));
        }
        let is_strict = rules.policy == FinalWithActions::Strict && held.is_early;
        is_strict.then(|| "actions were unfinished when you wrote it".to_owned())
    }

    /// Whether a waiting response may be delivered if no other response waits before it.
    pub(super) fn is_ready(&self, pending_response: &PendingResponse, rules: &Rules) -> bool {
        let holds = |seq: u64, action: &ActionRecord| {
            let is_before = action.mode == Mode::Sync && seq < pending_response.at;
            let is_held = pending_response.is_final
                && action.mode != Mode::FireAndForget
                && rules.policy != FinalWithActions::Trust;
            action.ended.is_none()
                && action.work == Some(pending_response.work)
                && (is_before || is_held)
        };
        if self.actions.iter().any(|(seq, action)| holds(*seq, action)) {
            return false;
        }
        let mut meant = pending_response.meant();
        if meant.any(|seq| self.actions.get(&seq).is_some_and(|it| it.ended.is_none())) {
            return false;
        }
        let is_strict = rules.policy == FinalWithActions::Strict && pending_response.is_early;
        let is_good = || !is_strict && self.failed_for(pending_response, rules).next().is_none();
        !pending_response.is_final || pending_response.is_last || is_good()
    }

    /// The failed actions that keep a final response from being delivered. The prompt for which the
    /// model wrote the response didn't show these failures.
    fn failed_for<'a>(
        &'a self,
        pending_response: &'a PendingResponse,
        rules: &Rules,
    ) -> impl Iterator<Item = &'a ActionRecord> {
        let is_trusted = rules.policy == FinalWithActions::Trust;
        let counts = move |action: &&ActionRecord| {
            !is_trusted
                && action.work == Some(pending_response.work)
                && action.ended.is_some_and(|(status, _)| status != Status::Ok)
                && action.mode != Mode::FireAndForget
                && !action.skips
                && !action.is_taken_back
                && action.shown.is_none_or(|shown| shown > pending_response.turn)
        };
        self.actions.values().filter(counts)
    }

    /// Whether something in the queue is for the work at hand, so that the agent has another turn.
    #[must_use]
    pub fn has_news(&self) -> bool {
        self.queue.values().any(|it| self.is_news(it))
    }

    /// Whether a queued thing is for the work at hand, so that the agent has another turn.
    pub(super) fn is_news(&self, queued: &Queued) -> bool {
        let Some(work) = &self.work else { return false };
        match queued {
            Queued::Ask(asker) => *asker == work.asker,
            Queued::Tick(timer) => self
                .timers
                .get(timer)
                .is_some_and(|it| it.asker == work.asker || it.work == work.id),
            Queued::Result(of, waited) => {
                let own =
                    |it: &ActionRecord| it.work == Some(work.id) && it.mode != Mode::FireAndForget;
                *waited == Some(work.id) || self.actions.get(of).is_some_and(own)
            }
            Queued::Other(of) => *of == work.id,
        }
    }

    /// Whether a turn of the work at hand shows a queued thing. It doesn't show messages and ticks
    /// that belong to other work.
    pub(super) fn shows(&self, queued: &Queued) -> bool {
        !matches!(queued, Queued::Ask(_) | Queued::Tick(_)) || self.is_news(queued)
    }

    /// Whether the next turn has to wait for a `sync` action of the work at hand, or for the answer
    /// to a request of this work that decides which messages the turn's prompt shows.
    #[must_use]
    pub fn is_blocked(&self) -> bool {
        let is_open =
            |it: &ActionRecord| it.mode == Mode::Sync && it.ended.is_none() && self.owns(it.work);
        let is_of_view =
            |it: &Outstanding| it.kind == OutstandingKind::View && self.owns(Some(it.work));
        self.actions.values().any(is_open) || self.outstanding.values().any(is_of_view)
    }

    pub(super) fn owns(&self, work: Option<u64>) -> bool {
        work.is_some() && self.work.as_ref().map(|it| it.id) == work
    }

    /// The numbers of the entries that began what is under way for the work at hand: unfinished
    /// actions, timers, threads and payloads to peers.
    pub fn under_way(&self) -> impl Iterator<Item = u64> {
        let named: Vec<u64> = self.named().collect();
        let is_open = move |seq: u64, action: &ActionRecord| {
            let is_own = self.owns(action.work) && action.mode != Mode::FireAndForget;
            action.ended.is_none() && (is_own || named.contains(&seq))
        };
        let actions = self.actions.iter().filter(move |(seq, it)| is_open(**seq, it));
        let things = self.outstanding.iter().filter(|(_, it)| self.owns(Some(it.work)));
        actions.map(|(seq, _)| *seq).chain(things.map(|(seq, _)| *seq))
    }

    /// The numbers of the entries that set the timers of the work at hand. Timers that can't tick
    /// again are left out.
    #[must_use]
    pub(in super::super) fn own_timers(&self) -> Vec<u64> {
        let is_own =
            |it: &Outstanding| it.kind == OutstandingKind::Timer && self.owns(Some(it.work));
        self.outstanding.iter().filter(|(_, it)| is_own(it)).map(|(seq, _)| *seq).collect()
    }

    /// The entry numbers of the actions that waiting responses name.
    pub(super) fn named(&self) -> impl Iterator<Item = u64> {
        self.pending.iter().flat_map(PendingResponse::meant)
    }

    /// Returns the ids and turns of the unfinished actions of the work at hand. The flag says
    /// whether the agent has no other unfinished actions.
    #[must_use]
    pub fn acting(&self) -> (Vec<(String, u64)>, bool) {
        let open = || self.actions.values().filter(|it| it.ended.is_none());
        let own = open().filter(|it| self.owns(it.work)).map(|it| (it.id.clone(), it.turn));
        (own.collect(), open().all(|it| self.owns(it.work)))
    }

    /// Whether nothing of earlier turns keeps a response from being delivered at once. `names` are
    /// the names to which the response's text refers. The caller checks the calls of the response's
    /// own turn.
    #[must_use]
    pub fn is_free(&self, names: &[&str], is_final: bool) -> bool {
        let is_done = |seq: &u64| self.actions.get(seq).is_none_or(|it| it.ended.is_some());
        let is_settled = |name: &&str| match self.names.meant(name) {
            Some(seq) => is_done(&seq),
            None => is_final || self.names.feeds.contains(*name),
        };
        let is_open = |it: &ActionRecord| it.ended.is_none() && it.mode != Mode::FireAndForget;
        let holds = |it: &ActionRecord| is_final && is_open(it) && self.owns(it.work);
        self.pending.is_empty() && names.iter().all(is_settled) && !self.actions.values().any(holds)
    }

    /// Whether a reference of the agent may have this name.
    #[must_use]
    pub fn knows(&self, name: &str) -> bool {
        self.names.meant(name).is_some()
    }

    /// Whether an action of the turn `turn` or an earlier one has the id `name` and has failed. A
    /// refused call counts as a failed action.
    #[must_use]
    pub fn has_failed(&self, name: &str, turn: u64) -> bool {
        let failed =
            |it: &ActionRecord| it.ended.is_some_and(|(status, _)| status == Status::Failed);
        self.actions.values().any(|it| it.id == name && it.turn <= turn && failed(it))
    }

    /// Returns two lists of entry numbers of messages and ticks. The first list has the message or
    /// tick that began the work at hand, and the unanswered messages of its asker. The second list
    /// has all other messages and ticks that no turn has shown.
    #[must_use]
    pub fn unanswered(&self) -> (Vec<u64>, Vec<u64>) {
        let (mut own, mut others) = (Vec::new(), Vec::new());
        if let Some(work) = &self.work {
            own.push(work.id);
            own.extend(work.asked.iter().filter(|it| **it != work.id));
        }
        for (seq, queued) in &self.queue {
            let is_own = matches!(queued, Queued::Ask(_)) && self.is_news(queued);
            match queued {
                Queued::Ask(_) | Queued::Tick(_) if is_own => own.push(*seq),
                Queued::Ask(_) | Queued::Tick(_) => others.push(*seq),
                Queued::Result(..) | Queued::Other(_) => {}
            }
        }
        own.sort_unstable();
        own.dedup();
        others.retain(|it| !own.contains(it));
        (own, others)
    }

    /// The messages and ticks up to the entry `until` that a turn doesn't show, since they belong
    /// to other work. They wait until the work at hand is done.
    #[must_use]
    pub fn waiting(&self, until: u64) -> Vec<u64> {
        let upto = self.queue.range(..=until).filter(|(_, it)| !self.shows(it));
        upto.map(|(seq, _)| *seq).collect()
    }

    /// The messages that the final response of the work at hand answers.
    #[must_use]
    pub fn answered(&self) -> Vec<u64> {
        let Some(work) = &self.work else { return Vec::new() };
        match (&work.asked[..], work.origin) {
            ([], Some(origin)) => vec![origin],
            ([], None) => vec![work.id],
            (asked, _) => asked.to_vec(),
        }
    }

    /// The messages that a response of the current turn answers. `until` is the last entry that the
    /// turn's prompt shows.
    #[must_use]
    pub fn answered_by(&self, until: u64) -> Vec<u64> {
        let asked = self
            .queue
            .range(..=until)
            .filter(|(_, it)| matches!(it, Queued::Ask(_)) && self.is_news(it));
        let asked: Vec<u64> = asked.map(|(seq, _)| *seq).collect();
        let before = self.work.as_ref().map(|it| it.asked.clone()).unwrap_or_default();
        let all: Vec<u64> = before.into_iter().chain(asked).collect();
        if all.is_empty() { self.answered() } else { all }
    }

    /// Returns the effects of a stop besides the end of the work: the messages that it answers, the
    /// ticks that it drops, and the timers that it clears. Messages and ticks after the entry
    /// `until` stay.
    #[must_use]
    pub(in super::super) fn taken_by(&self, stop: Stop, until: u64) -> Dismissed {
        let mut taken = Dismissed::default();
        let Some(work) = &self.work else { return taken };
        let timers = self.own_timers();
        let is_unturned = work.asked.is_empty() && self.last == LastTurn::default();
        for (seq, queued) in self.queue.range(..=until) {
            let is_taken = match (queued, stop) {
                (Queued::Ask(asker), Stop::Interrupted) => *asker == work.asker,
                (Queued::Tick(timer), Stop::Interrupted) => {
                    let set = self.timers.get(timer);
                    *seq == work.id || set.is_some_and(|it| it.work == work.id)
                }
                (Queued::Ask(_) | Queued::Tick(_), Stop::Spent | Stop::Full) => {
                    is_unturned && self.is_news(queued)
                }
                _ => false,
            };
            match queued {
                Queued::Ask(_) if is_taken => taken.asks.push(*seq),
                Queued::Tick(timer) if is_taken => {
                    taken.ticks.push(*seq);
                    if stop == Stop::Spent && self.outstanding.contains_key(timer) {
                        taken.timers.push(*timer);
                    }
                }
                _ => {}
            }
        }
        if matches!(stop, Stop::Interrupted | Stop::Spent) {
            taken.timers.extend(timers);
            taken.timers.sort_unstable();
            taken.timers.dedup();
        }
        taken
    }
}

/// The way in which work ended without a final response. It decides which messages are answered and
/// which timers are cleared. [`StopReason`] says why the rules stop an agent; this type also covers
/// interrupts and spent budgets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Stop {
    /// An interrupt.
    Interrupted,
    /// The agent's turns or its budget are spent.
    Spent,
    /// The prompt doesn't fit the model's window.
    Full,
    /// Any other cause.
    Other,
}

impl Stop {
    /// Returns the kind of stop for a reason in `agent-stopped`.
    #[must_use]
    pub fn of(reason: &str) -> Stop {
        match reason {
            "interrupted" => Stop::Interrupted,
            "turns" | "budget" => Stop::Spent,
            "context-full" => Stop::Full,
            _ => Stop::Other,
        }
    }
}

/// The effects of a stop besides the end of the work.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in super::super) struct Dismissed {
    /// The entry numbers of messages that the stop answers, although no turn had shown them.
    pub(in super::super) asks: Vec<u64>,
    /// The entry numbers of ticks that the stop drops.
    pub(in super::super) ticks: Vec<u64>,
    /// The timers that the stop clears.
    pub(in super::super) timers: Vec<u64>,
}

impl PendingResponse {
    /// A response that waits for nothing. It serves to fill in the references of a text that is
    /// delivered at once.
    pub(in super::super) fn now(
        turn: u64,
        text: &str,
        metadata: Map<String, Value>,
    ) -> PendingResponse {
        PendingResponse {
            at: u64::MAX,
            turn,
            is_final: true,
            is_last: false,
            is_early: false,
            text: text.to_owned(),
            payload: None,
            metadata,
            work: 0,
            place: (0, 0),
            names: Vec::new(),
        }
    }

    /// The entry numbers of the actions that the response's names mean.
    pub(super) fn meant(&self) -> impl Iterator<Item = u64> {
        self.names.iter().filter_map(|(_, meant)| *meant)
    }
}

impl ActionRecord {
    /// The outcome of the action, in words.
    fn told(&self) -> String {
        let id = &self.id;
        match self.ended.map(|(status, _)| status) {
            Some(Status::TimedOut) => format!("{id} took too long"),
            Some(Status::Skipped) => format!("{id} was skipped"),
            Some(Status::Cancelled) => format!("{id} was cancelled"),
            Some(Status::Unknown) => format!("nobody knows what became of {id}"),
            _ => format!("{id} failed"),
        }
    }
}

impl Outstanding {
    pub(super) fn new(work: u64, kind: OutstandingKind) -> Outstanding {
        Outstanding { work, kind }
    }
}

impl Asker {
    /// The sender of a message.
    pub(super) fn of(entry: &Entry) -> Asker {
        Asker { name: entry.from().to_owned(), is_identity: entry.is_from_identity() }
    }
}
