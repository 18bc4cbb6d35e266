//! The fold `Actions`: the state of a thread's actions, computed from the thread's entries.
//! Messages to `action` become inputs of the [graph](super::graph), in the order of the log. The
//! handler of a message sends the outputs that the graph returned for that message.
//!
//! In the log, the emissions for a message may come after later messages. The graph doesn't need
//! these emissions, since it computes them again. The fold does need the entries of calls, since
//! the answer to a call names the call's entry. For logs of older versions, the graph also takes
//! over recorded results.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use pumphouse::log::Flags;
use pumphouse::prelude::*;
use pumphouse::schema::json;
use pumphouse::wire::Code;
use pumphouse::wire::core::{ThreadNote, ThreadResult, ThreadSpawned, ThreadStatus};

use serde_json::Value;

use super::super::caller;
use super::super::feed_contents::shown::Shown;
use super::super::schedule::{CurrentThread, Latest, OpenCalls};
use super::super::words::agent::{
    AgentProgress, CognitionIn, CognitionOut, Interrupt, RateLimited, Response, Stopped,
    is_last_word,
};
use super::super::words::turn_policy::TurnPolicy;
use super::graph::{
    ActionOutcome, CallOutcome, CancelRequest, Decision, Graph, Id, Input, Output, Part, Policy,
    Time,
};
use super::words::{
    Action, ActionDecided, ActionError, ActionRefused, ActionResult, ActionsDue, CancelAction,
    NAME, PartialResult, UNKNOWN,
};

/// The actions of a thread.
#[derive(Clone, Debug, Default)]
pub struct Actions {
    graph: Graph,
    /// The contents of the feeds of the thread's agents.
    feeds: Shown,
    /// Maps the id of each action that has no result in the log yet to the action's entry. A result
    /// is a reply to such an entry.
    asked: BTreeMap<Id, Entry>,
    /// Maps the id of each action in `asked` to the number of its attempts in the log.
    tried: BTreeMap<Id, u32>,
    /// The calls without an answer, each with its action and the number of the attempt.
    calls: OpenCalls<(Id, u32)>,
    /// The times whose `actions-due` message is in the log, but isn't due yet.
    waiting: BTreeSet<Time>,
    latest: Latest<Effect>,
    thread: CurrentThread,
}

/// An effect of a message, which the message's handler carries out.
#[derive(Clone, Debug)]
pub(super) enum Effect {
    /// Sends an output of the graph. For a result, the second field is the entry of its action.
    Output(Output, Option<Entry>),
    /// Cancels the thread with this id, whose work isn't needed any more.
    End(String),
    /// Takes back the call of this entry, whose answer isn't needed any more.
    Withdraw(u64),
}

impl Actions {
    /// The effects of the message with this number. Empty if another entry is the newest.
    pub(super) fn of(&self, seq: u64) -> Arc<[Effect]> {
        self.latest.of(seq)
    }

    /// The graph of the thread's actions.
    #[must_use]
    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    /// Drops the unfinished actions at the beginning of a fork. They continue only in the thread in
    /// which they began.
    fn forked(&mut self) {
        let graph = std::mem::take(&mut self.graph).forked();
        let (thread, feeds) = (self.thread.clone(), std::mem::take(&mut self.feeds));
        *self = Actions { graph, feeds, thread, ..Actions::default() };
    }

    /// Records calls, and other entries that the graph depends on.
    fn observe(&mut self, entry: &Entry) {
        if entry.from() == NAME || entry.is::<ThreadSpawned>() {
            self.observe_call(entry);
        }
        if entry.is_from_identity() || entry.is_refused() {
            return;
        }
        self.feeds.apply(entry);
        if entry.is::<CognitionIn>() {
            self.observe_turn(entry);
        } else if entry.is::<ActionResult>() && entry.from() == NAME {
            self.observe_result(entry);
        } else if is_last_word(entry) {
            self.graph.work_over(entry.from());
        } else if entry.is::<ThreadNote>() && entry.is_from_core() {
            self.observe_note(entry);
        }
    }

    /// Records the policy of a turn's actions, and the contents of the agent's feeds in the turn's
    /// prompt.
    fn observe_turn(&mut self, entry: &Entry) {
        let policy = entry.element().ok().and_then(TurnPolicy::of);
        let Some(TurnPolicy { turn, dispatch, action_limits }) = policy else { return };
        let policy = Policy { dispatch, limits: action_limits.unwrap_or_default().limits() };
        let agent: Arc<str> = entry.from().into();
        self.graph.begins(&agent, turn, policy);
        self.graph.shows(&agent, turn, self.feeds.contents(&agent));
    }

    /// Takes over a result that the log has. If the graph has computed another status, the recorded
    /// result counts.
    fn observe_result(&mut self, entry: &Entry) {
        let Ok(action_result) = entry.decode::<ActionResult>() else { return };
        let ActionResult { of, status, error, because, .. } = action_result;
        self.graph.settle(of, ActionOutcome { status, answer: None, error, because });
        self.asked.remove(&of);
        self.tried.remove(&of);
        self.calls.retain(|(action, _)| *action != of);
    }

    /// Records a note from the thread of a call: a partial result, or the news that a called agent
    /// waits for its model's rate limit.
    fn observe_note(&mut self, entry: &Entry) {
        let Some(note) = entry.decode_if::<ThreadNote>() else { return };
        let Some((id, attempt)) = self.calls.in_thread(&note.thread).copied() else { return };
        if let Some(part) = part_of_note(&note) {
            self.graph.part(id, attempt, part);
        }
        let progress = Some(&note.payload).filter(|it| it.name() == AgentProgress::NAME);
        if let Some(it) = progress.and_then(|it| AgentProgress::read(it.view()).ok()) {
            let turns = if it.turn == 1 { "1 turn" } else { &format!("{} turns", it.turn) };
            let text = format!("it had {turns} in {}, and wrote last: {}", note.thread, it.text);
            self.graph.progressed(id, attempt, text);
        }
        let payload = Some(&note.payload).filter(|it| it.name() == RateLimited::NAME);
        let limited = payload.and_then(|it| RateLimited::read(it.view()).ok());
        if let Some(wait) = limited.and_then(|it| u64::try_from(it.wait.as_micros()).ok()) {
            self.graph.limited(id, attempt, entry.at_us().saturating_add(wait));
        }
    }

    fn observe_call(&mut self, entry: &Entry) {
        if entry.is::<ThreadSpawned>() && !entry.is_from_core() {
            return;
        }
        let key = entry.key();
        let Some(id) = key.as_deref().and_then(action_of) else {
            // A call may be answered with a `thread-spawned`. The call then continues in that
            // thread.
            if entry.is::<ThreadSpawned>()
                && let Some(call) = self.calls.replied(entry).copied()
            {
                self.calls.record(entry, call);
            }
            return;
        };
        let attempt = self.tried.get(&id).copied().unwrap_or(0) + 1;
        let is_idempotent = entry.flags().contains(Flags::IDEMPOTENT);
        if !self.graph.called(id, attempt, is_idempotent) {
            return;
        }
        self.tried.insert(id, attempt);
        self.calls.record(entry, (id, attempt));
    }

    /// The graph's input for a message to `action`. None if the message leads to no input.
    fn input(&mut self, entry: &Entry) -> Option<Input> {
        let from: Arc<str> = entry.from().into();
        if entry.is::<ActionsDue>() {
            let ActionsDue { at, of } = entry.decode().ok()?;
            let time = Time { at, of };
            // The message is in the log twice: when it begins to wait, and when it is due.
            let waited = self.waiting.remove(&time);
            if !waited {
                self.waiting.insert(time);
            }
            return waited.then_some(Input::Due(time));
        }
        if entry.is::<ActionRefused>() {
            let ActionRefused { of, attempt, code, message } = entry.decode().ok()?;
            // The log has no entry of the refused call, so the attempt is counted here.
            self.tried.insert(of, attempt);
            let error = ActionError { code, message };
            let reply = CallOutcome::Failed { error, answer: None, again: false };
            return Some(Input::Replied(of, attempt, reply));
        }
        if entry.is::<ActionDecided>() {
            let decided: ActionDecided = entry.decode().ok()?;
            return Some(Input::Decided(decided.of, decision(decided)));
        }
        if let Some(call) = self.calls.replied(entry) {
            if let Some(part) = entry.decode_if::<PartialResult>() {
                return Some(Input::Part(call.0, call.1, part.into()));
            }
            // An agent that is called in the same thread may send partial responses first. They
            // don't end the call.
            if entry.decode_if::<Response>().is_some_and(|it| !it.is_final) {
                return None;
            }
            return Some(Input::Replied(call.0, call.1, replied(entry)?));
        }
        if entry.is::<ThreadResult>() && entry.is_from_core() {
            let result = entry.decode_if::<ThreadResult>()?;
            let call = self.calls.in_thread(&result.thread)?;
            return Some(Input::Replied(call.0, call.1, ended(result)));
        }
        if entry.reply_to().is_some() {
            return None;
        }
        if entry.is::<Action>() {
            let action = Box::new(entry.decode().ok()?);
            self.asked.insert(entry.seq(), entry.clone());
            return Some(Input::Defined(from, entry.seq(), action));
        }
        if let Some(cognition_out) = entry.decode_if::<CognitionOut>() {
            return Some(Input::TurnOver(from, cognition_out.turn));
        }
        let CancelAction { id, turn, agent, reason } = entry.decode().ok()?;
        let own = (!entry.is_from_identity()).then_some(from);
        let agent = own.or(agent.map(Into::into));
        Some(Input::Cancel(CancelRequest { agent, turn, id, reason }))
    }

    /// Makes the effect of an output of the graph. For a result, the effect also has the action's
    /// entry. For an abandoned call, it has the call's thread or entry. None if this entry or
    /// thread is unknown.
    fn effect(&mut self, output: Output) -> Option<Effect> {
        match &output {
            Output::Result { action, .. } => {
                let asked = self.asked.get(action)?.clone();
                Some(Effect::Output(output, Some(asked)))
            }
            Output::Abandon { action, attempt } => {
                let call = (*action, *attempt);
                match self.calls.thread_of(|it| *it == call) {
                    Some(thread) => Some(Effect::End(thread.to_owned())),
                    None => self.calls.entry_of(|it| *it == call).map(Effect::Withdraw),
                }
            }
            _ => Some(Effect::Output(output, None)),
        }
    }
}

impl Apply for Actions {
    fn apply(&mut self, entry: &Entry) {
        if self.thread.enter(entry) {
            self.forked();
        }
        self.observe(entry);
        let is_handled = entry.to() == Some(NAME) && entry.receivers() > 0;
        let input = if is_handled && !entry.is_refused() { self.input(entry) } else { None };
        let outputs = input.map(|it| self.graph.step(entry.at_us(), it)).unwrap_or_default();
        let effects = outputs.into_iter().filter_map(|it| self.effect(it)).collect();
        self.latest.set(entry, effects);
    }
}

/// Whether the entry `came` causes the early delivery of a waiting `actions-due` message. Such an
/// entry is the result of the message's action, or a partial result from the thread of a call.
pub(super) fn wakes(waiting: &Entry, came: &Entry) -> bool {
    if came.thread() != waiting.thread() || !waiting.is::<ActionsDue>() {
        return false;
    }
    if came.is::<ThreadNote>() && came.is_from_core() {
        return came.decode_if::<ThreadNote>().is_some_and(|it| part_of_note(&it).is_some());
    }
    // `wakes` is called for every message while an `actions-due` message waits, so it decodes no
    // result.
    let of = |it: &Entry| it.attribute("of").map(std::borrow::Cow::into_owned);
    came.is::<ActionResult>()
        && came.from() == NAME
        && of(waiting).is_some_and(|it| of(came) == Some(it))
}

/// The partial result in a note.
fn part_of_note(note: &ThreadNote) -> Option<Part> {
    let payload = Some(&note.payload).filter(|it| it.name() == PartialResult::NAME)?;
    PartialResult::read(payload.view()).ok().map(Part::from)
}

impl From<PartialResult> for Part {
    fn from(PartialResult { number, payload }: PartialResult) -> Part {
        Part { number, payload }
    }
}

/// The outcome of the call that an entry answers. None if the call continues in a thread.
fn replied(entry: &Entry) -> Option<CallOutcome> {
    if entry.is_from_core() {
        if entry.is::<ThreadSpawned>() {
            return None;
        }
        if entry.is::<Done>() {
            return Some(CallOutcome::Ok(None));
        }
        if let Some(huh) = entry.decode_if::<Huh>() {
            return Some(wrong(&huh));
        }
    }
    let answer = entry.element().ok().cloned();
    let is_error = entry.flags().contains(Flags::ERROR);
    if let Some(stop) = entry.decode_if::<Stopped>() {
        return Some(stopped(entry.from(), &stop, answer));
    }
    match answer {
        Some(answer) if is_error => Some(answered_error(entry.from(), answer)),
        answer => Some(CallOutcome::Ok(answer)),
    }
}

/// The outcome of a call that was answered with an error of the listener's own. An error whose
/// attribute `reason` is `unknown` says that nobody knows whether the call had its effect. The
/// message is short, since the payload's schema isn't known here;
/// [`sentence`](super::value::sentence) makes a better one.
fn answered_error(who: &str, answer: Element) -> CallOutcome {
    let code = answer.name().local().to_owned();
    let message = format!("{who} answered an error: {code}");
    let error = ActionError { code, message };
    match answer.view().attribute("reason") {
        Some(UNKNOWN) => CallOutcome::Unknown { error, answer: Some(answer) },
        _ => CallOutcome::Failed { error, answer: Some(answer), again: true },
    }
}

fn wrong(huh: &Huh) -> CallOutcome {
    let message = format!("{}: {}", huh.message, huh.advice);
    let error = ActionError { code: huh.code.clone(), message };
    let is = |code: Code| huh.code == code.to_string();
    if is(Code::OutcomeUnknown) {
        return CallOutcome::Unknown { error, answer: None };
    }
    if is(Code::TimeOut) || is(Code::Panic) {
        return CallOutcome::CutOff(error);
    }
    CallOutcome::Failed { error, answer: None, again: huh.retry }
}

/// The outcome of a call of an agent that stopped. Another attempt may succeed, unless the agent
/// was interrupted or its budget is spent.
fn stopped(who: &str, stopped: &Stopped, answer: Option<Element>) -> CallOutcome {
    let message = format!("{who} stopped ({}): {}", stopped.reason, stopped.text);
    let error = ActionError { code: Stopped::NAME.local().to_owned(), message };
    match &*stopped.reason {
        Interrupt::WORD => CallOutcome::Cancelled { error, answer },
        reason => CallOutcome::Failed { error, answer, again: reason != Stopped::BUDGET },
    }
}

/// The outcome of a call whose thread has ended.
fn ended(result: ThreadResult) -> CallOutcome {
    let payload = result.payload.as_ref().filter(|it| it.name() == Stopped::NAME);
    if let Some(read) = payload.and_then(|it| Stopped::read(it.view()).ok()) {
        return stopped(&result.thread, &read, result.payload);
    }
    let error = |message: &str| ActionError {
        code: "thread".to_owned(),
        message: format!("{} {message}", result.thread),
    };
    match (result.status, result.payload) {
        (ThreadStatus::Completed, payload) => CallOutcome::Ok(payload),
        (ThreadStatus::Empty, _) => CallOutcome::Ok(None),
        (ThreadStatus::Cancelled, _) => {
            CallOutcome::Cancelled { error: error("was cancelled"), answer: None }
        }
        (ThreadStatus::Failed, payload) => {
            let huh = payload.as_ref().and_then(|it| Huh::read(it.view()).ok());
            match (huh, payload) {
                (Some(huh), _) => wrong(&huh),
                (None, Some(payload)) => answered_error(&result.thread, payload),
                (None, None) => {
                    CallOutcome::Failed { error: error("failed"), answer: None, again: true }
                }
            }
        }
    }
}

/// The key of an action's calls. All attempts have the same key, but each item has its own.
pub(super) fn key(asked: &ThreadId, action: Id, item: Option<usize>) -> String {
    match item {
        Some(item) => format!("{asked}/{action}.{}", item + 1),
        None => format!("{asked}/{action}"),
    }
}

/// The action that the key of a call belongs to.
#[must_use]
pub fn action_of(key: &str) -> Option<Id> {
    caller::action_of(key).map(|(_, number)| number)
}

/// Converts a recorded decision to the graph's type.
fn decision(decided: ActionDecided) -> Decision {
    let ActionDecided { runs, code, because, items, .. } = decided;
    let error = (!runs).then(|| ActionError {
        code: code.unwrap_or_default(),
        message: because.unwrap_or_default(),
    });
    let items = items.and_then(|it| json::read(&it).ok());
    let item = |it: Value| match it {
        Value::Array(mut one) => one.pop(),
        _ => None,
    };
    let items = match items {
        Some(Value::Array(all)) => Some(all.into_iter().map(item).collect()),
        _ => None,
    };
    Decision { error, items }
}
