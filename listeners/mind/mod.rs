//! The minds of agents. A mind is the state of an agent in a thread, as the thread's entries show
//! it: the work at hand, the things that the agent waits for, and its waiting responses.
//! [`Mind::next`] decides from the mind what the agent does next.
//!
//! *Work* is what an agent does for one asker. It begins with a message or a tick of a timer, and
//! ends with a final response or a stop. Things that the work began and that have no result yet are
//! *under way*. `docs/agents.md` has the rules.

mod names;
mod measure;
mod repeated;
mod what_next;
mod apply;
mod turns;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use pumphouse::prelude::*;
use pumphouse::wire::budget::Charge;
use serde_json::{Map, Value};

use super::schedule::CurrentThread;
use super::words::action::{Mode, Status};
use super::words::agent::CognitionTools;
use measure::Measure;
pub use repeated::RepeatedFault;
pub use what_next::{Next, Rules, Stop, StopReason, Wake};

/// What happens to a final response while actions of its work are unfinished.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum FinalWithActions {
    /// The response waits. If no action fails, it is delivered; otherwise it is withdrawn and the
    /// agent has another turn.
    #[default]
    Hold,
    /// If actions of the response's own turn are unfinished, the response is withdrawn and the
    /// agent has another turn.
    Strict,
    /// The response is delivered without waiting for all actions of its work. It still waits for
    /// actions that it names, and for `sync` actions before it.
    Trust,
}

/// The minds of a thread's agents. A fold.
#[derive(Clone, Debug, Default)]
pub struct Minds {
    agents: BTreeMap<String, Arc<Mind>>,
    thread: CurrentThread,
}

/// The mind of one agent: its state as the thread's entries show it.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Mind {
    /// The number of turns that the agent has begun in the thread.
    pub turns: u64,
    /// The number of turns that don't count against `max_turns`: a stop of the pump cut them off,
    /// their prompt was refused as too long, or they only waited for a rate limit.
    pub uncounted: u64,
    /// The newest system prompt of the agent's model. None before the first one.
    pub system: Option<Arc<str>>,
    /// The tools that the agent's model was last offered in the provider's own protocol.
    pub tools: Arc<CognitionTools>,
    /// The entry of the agent's request to refresh its feeds for the next turn. None if there is no
    /// such request.
    pub asked: Option<EntryId>,
    /// Whether the request in `asked` was answered.
    pub has_feeds: bool,
    /// The number of the last entry that the agent sent.
    pub said: u64,
    /// The work at hand. None if the agent has none.
    pub work: Option<Work>,
    /// The number of counted turns in the thread when the work at hand began.
    before: u64,
    /// The waiting responses of turns that are over, in the order in which they were written.
    pub pending: VecDeque<PendingResponse>,
    /// The entry numbers of interrupts that the agent hasn't answered yet.
    pub interrupts: Vec<u64>,
    /// The texts of the work's responses that were cut and delivered as far as they go. The next
    /// response continues them.
    pub cut_texts: Vec<String>,
    /// The newest partial response of the running turn.
    partial: Option<String>,
    /// The number of turns in a row that did nothing.
    pub idle: u32,
    /// The call that failed in the same way in each of the last turns. None if there is none.
    pub repeated: Option<RepeatedFault>,
    /// The calls of the running turn that did not run.
    faults: Vec<RepeatedFault>,
    /// The error of the agent's newest turn. Empty if there was none.
    pub error: String,
    /// The number of messages that the newest clear kept, if no prompt has fitted the model's
    /// window since.
    pub cleared: Option<u64>,
    /// What the agent's turns have shown about the tokens of its model.
    measure: Measure,
    /// The agent's unsettled reservation in the tree's budget. None if it has none.
    pub(super) reserved: Option<Charge>,
    /// The turn that is running. None between turns.
    turn: Option<OpenTurn>,
    /// The responses of the running turn that have to wait.
    written: Vec<PendingResponse>,
    /// Messages, ticks and results for the agent that no turn has shown yet, by entry number.
    queue: BTreeMap<u64, Queued>,
    actions: BTreeMap<u64, ActionRecord>,
    /// Maps each name that the agent's references may use to the action that it currently means.
    names: Names,
    /// Timers, threads and payloads to peers that have no result yet, by the number of the entry
    /// that began them.
    outstanding: BTreeMap<u64, Outstanding>,
    /// The timers that the agent has set, by the number of the entry that set them.
    timers: BTreeMap<u64, Timer>,
    /// The outcome of the agent's newest turn.
    last: LastTurn,
    /// The number of turns in a row in which the model failed.
    failures: u32,
    /// The number of turns in a row that waited for a rate limit.
    waits: u32,
    /// Whether the provider refused the last turn, so that another attempt would be refused, too.
    is_refused: bool,
    /// Whether the agent sleeps: it has no further turn until something new arrives.
    slept: bool,
    /// What the agent's newest reply waits for by `<await>`. None if the reply has none.
    awaited: Option<Awaited>,
}

/// What an `<await>` of a reply waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Awaited {
    /// Everything that is under way for the work.
    All,
    /// These actions, by their entry numbers.
    Actions(Vec<u64>),
}

/// The asker of work.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Asker {
    /// The name of the identity or listener.
    pub name: String,
    /// Whether the asker is an identity.
    pub is_identity: bool,
}

/// The work of an agent.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Work {
    /// The entry number of the message or tick with which the work began.
    pub id: u64,
    /// The asker of the work.
    pub asker: Asker,
    /// The entry numbers of the asker's messages that a turn has shown. The final response answers
    /// these messages.
    pub asked: Vec<u64>,
    /// If the tick of a timer began this work, the entry number of the asker's message that led to
    /// the timer, directly or by way of earlier ticks. None for any other work.
    origin: Option<u64>,
    /// The final response that was held back because references in it lead to nothing. This happens
    /// once in a work.
    pub held_back: Option<HeldBack>,
}

/// A final response that was held back because references in it lead to nothing. It is delivered if
/// the agent stops before it says something else.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct HeldBack {
    /// The turn in which the response was written.
    pub turn: u64,
    /// The text, with the references filled in that have a value.
    pub text: String,
}

/// A response that waits for the actions that it names and for earlier `sync` actions. Unless the
/// policy is [`FinalWithActions::Trust`], a final response waits for all actions of its work except
/// `fire_and_forget` ones.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PendingResponse {
    /// The number of the entry `response-waits`. Actions that the reply calls before the response
    /// have smaller numbers.
    pub at: u64,
    /// The turn in which the response was written.
    pub turn: u64,
    /// Whether the response is the final one of its work.
    pub is_final: bool,
    /// Whether the turn was the last one that the agent may have.
    pub is_last: bool,
    /// Whether actions of the turn, other than `fire_and_forget` ones, were unfinished when the
    /// turn ended.
    pub is_early: bool,
    /// The text as the model wrote it.
    pub text: String,
    /// The local name of the payload with which the agent answers. None for a `response`.
    pub payload: Option<String>,
    /// The metadata fields to which the response refers, with the values that they had at the
    /// response's place in the reply.
    pub metadata: Map<String, Value>,
    work: u64,
    /// The range of the text in the reply, in bytes.
    place: (u64, u64),
    /// The names that the response refers to, each with the entry number of the action that it
    /// means.
    names: Vec<(String, Option<u64>)>,
}

/// A turn that has begun.
#[derive(Clone, Debug, PartialEq, Eq)]
struct OpenTurn {
    /// The number of the entry with which the turn began.
    at: u64,
    is_last: bool,
}

/// A message, tick or result for an agent that no turn has shown yet.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Queued {
    /// A message that gives the agent work.
    Ask(Asker),
    /// A tick of a timer that the agent has set.
    Tick(u64),
    /// A finished action, by its entry number. The second number is the id of the work at hand if
    /// one of its waiting responses names the action.
    Result(u64, Option<u64>),
    /// Any other entry that the work with this id waited for, such as an answer or the end of a
    /// thread.
    Other(u64),
}

/// An action that an agent began, or a call in its reply that didn't run.
#[derive(Clone, Debug, PartialEq, Eq)]
struct ActionRecord {
    id: String,
    turn: u64,
    work: Option<u64>,
    mode: Mode,
    /// Whether a failure of the action is ignored: its `on_error` is `skip`, or its condition
    /// didn't hold.
    skips: bool,
    /// The action's status, and the entry number of its result. None until the action is done.
    ended: Option<(Status, u64)>,
    /// The first turn whose prompt showed the result. None if no prompt has shown it.
    shown: Option<u64>,
    /// Whether the agent itself cancelled the action, or cancelled an action that this one depends
    /// on.
    is_taken_back: bool,
}

/// The names that an agent's references such as `${rome}` may have, with the actions that they
/// mean.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Names {
    keys: BTreeMap<String, u64>,
    ids: BTreeMap<String, u64>,
    /// Maps each called listener to the only action that called it, or to None if several did.
    targets: BTreeMap<String, Option<u64>>,
    feeds: BTreeSet<String>,
}

/// Something that an agent began and waits for: a payload, a timer or a thread.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Outstanding {
    work: u64,
    kind: OutstandingKind,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum OutstandingKind {
    /// A payload to a peer that hasn't answered.
    Payload,
    /// A request to `view` that hides messages, or shows them again.
    View,
    /// A timer, whether it ticks once or repeatedly.
    Timer,
    /// A child thread.
    Thread(String),
}

/// A timer that an agent has set, and the work that it belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Timer {
    asker: Asker,
    work: u64,
    origin: u64,
    ticks_on: bool,
    /// Whether an interrupt of the work has cleared the timer. Later ticks are ignored.
    is_cleared: bool,
}

/// The outcome of a turn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct LastTurn {
    /// Whether the turn began something: called an action, sent a payload, cleared a timer, or
    /// asked for another turn with the agent's own payload.
    began: bool,
    /// Whether a part of the reply didn't run, the reply was incomplete, or the response wasn't
    /// delivered.
    mistake: bool,
    is_over: bool,
    /// Whether the turn was the last one that the agent may have.
    is_last: bool,
    /// Whether the model failed.
    failed: bool,
    /// Whether the model's provider takes no more requests for a while. A timer ticks when the
    /// provider may be asked again.
    is_limited: bool,
    /// Whether a stop of the pump cut the turn off, or the provider refused its prompt as too long.
    is_cut: bool,
    /// Whether the provider's filter stopped the reply.
    is_filtered: bool,
}

impl Minds {
    /// The minds of the thread's agents, by the agents' names.
    pub fn all(&self) -> impl Iterator<Item = (&str, &Mind)> {
        self.agents.iter().map(|(agent, mind)| (agent.as_str(), &**mind))
    }

    /// The mind of an agent. Empty if the thread has no entries of this agent.
    #[must_use]
    pub fn of(&self, agent: &str) -> Arc<Mind> {
        self.agents.get(agent).cloned().unwrap_or_default()
    }
}

impl Mind {
    /// Whether a turn is running.
    #[must_use]
    pub fn is_turning(&self) -> bool {
        self.turn.is_some()
    }

    /// The number of threads that the agent opened and that haven't ended.
    #[must_use]
    pub fn threads(&self) -> u32 {
        let open =
            self.outstanding.values().filter(|it| matches!(it.kind, OutstandingKind::Thread(_)));
        u32::try_from(open.count()).unwrap_or(u32::MAX)
    }

    /// The number of the agent's turns in the thread, without those that don't count.
    fn turns_counted(&self) -> u64 {
        self.turns.saturating_sub(self.uncounted)
    }

    /// The number of turns that count against `max_turns`: those of the work at hand.
    #[must_use]
    pub fn turns_spent(&self) -> u64 {
        self.turns_counted().saturating_sub(self.before)
    }

    /// The tokens of a prompt that a model with this description estimates at so many, as the
    /// provider's counts in earlier turns correct the estimate.
    #[must_use]
    pub fn tokens(&self, model: &str, estimated: u64) -> u64 {
        self.measure.tokens(model, estimated)
    }

    /// The most tokens that a model with this description takes: those that it declares, or fewer
    /// if its provider refused a shorter prompt. None if neither is known.
    #[must_use]
    pub fn window(&self, model: &str, declared: Option<u64>) -> Option<u64> {
        self.measure.window(model, declared)
    }

    /// The number of turns in a row in which the model failed. Waiting for a rate limit doesn't
    /// count.
    #[must_use]
    pub fn failures(&self) -> u32 {
        self.failures
    }

    /// Whether the newest turn was the last one that the agent may have.
    pub(super) fn was_last_turn(&self) -> bool {
        self.last.is_last
    }

    /// Whether the provider's filter stopped the last reply.
    #[must_use]
    pub fn is_filtered(&self) -> bool {
        self.last.is_filtered
    }

    /// Whether the provider refused the last turn, so that another attempt would be refused, too.
    #[must_use]
    pub fn is_refused(&self) -> bool {
        self.is_refused
    }
}
