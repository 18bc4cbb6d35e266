//! The mind of an agent: a fold of the agent's current work, what is under way for it, and its
//! waiting responses; and the rules for what the agent does next.
//!
//! *Work* has one asker. It begins with a message or a tick and ends with a final response or a
//! stop. Things that it began and that have no result yet are *under way*. `docs/agents.md` has the
//! rules.

mod names;
mod rules;
mod apply;
mod turns;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use pumphouse::prelude::*;
use pumphouse::wire::budget::Charge;

use super::schedule::CurrentThread;
use super::words::action::{Mode, Status};
use super::words::agent::CognitionTools;
pub use rules::{Next, Rules, Stop, StopReason};

/// What happens to a final response while actions of its turn are unfinished.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum FinalWithActions {
    /// It waits. It is delivered if all succeed; otherwise there is another turn.
    #[default]
    Hold,
    /// There is another turn.
    Strict,
    /// It is delivered at once.
    Trust,
}

/// The fold of a thread's agents.
#[derive(Clone, Debug, Default)]
pub struct Minds {
    agents: BTreeMap<String, Arc<Mind>>,
    /// Listeners that own a root as agents do, but are no agents.
    others: BTreeSet<String>,
    thread: CurrentThread,
}

/// The mind of one agent: what the thread's history says of it.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Mind {
    /// How many turns it has begun.
    pub turns: u64,
    /// The rules of its newest turn. None in threads of 0.1.0.
    pub rules: Option<u32>,
    /// How many turns a stop of the pump cut off. They don't count.
    pub cuts: u64,
    /// The newest system prompt of its model.
    pub system: Option<Arc<str>>,
    /// The tools that its model was last offered in its provider's own protocol.
    pub tools: Arc<CognitionTools>,
    /// Its request to refresh its feeds for the next turn.
    pub asked: Option<EntryId>,
    /// Whether that request was answered.
    pub has_feeds: bool,
    /// The last entry of its own.
    pub said: u64,
    /// Its present work.
    pub work: Option<Work>,
    /// How many turns counted when the work began.
    before: u64,
    /// Responses that wait, in the order in which they were written.
    pub pending: VecDeque<PendingResponse>,
    /// Messages to it that end its work, and that it hasn't answered.
    pub interrupts: Vec<u64>,
    /// How many turns in a row did nothing.
    pub idle: u32,
    /// The last error of its model.
    pub error: String,
    /// Its reservation of the tree's budget that isn't settled.
    pub(super) reserved: Option<Charge>,
    /// The present turn.
    turn: Option<OpenTurn>,
    /// Waiting responses of the present turn.
    written: Vec<PendingResponse>,
    /// Things that no turn has shown yet.
    queue: BTreeMap<u64, Queued>,
    actions: BTreeMap<u64, ActionRecord>,
    /// The action that each name means now.
    names: Names,
    /// Timers, threads and payloads to peers that have no result yet.
    outstanding: BTreeMap<u64, Outstanding>,
    /// The timers that it has set, by the entry that set them.
    timers: BTreeMap<u64, Timer>,
    /// The outcome of its newest turn.
    last: LastTurn,
    /// How many turns in a row its model failed.
    failures: u32,
    /// Whether the provider refused the last turn, so that another attempt would be refused, too.
    is_refused: bool,
    /// Whether it sleeps until something new comes.
    slept: bool,
}

/// The asker of work.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Asker {
    /// The name of the identity or listener.
    pub name: String,
    /// Whether that is an identity.
    pub is_identity: bool,
}

/// The work of an agent.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Work {
    /// The message or tick that it began with.
    pub id: u64,
    /// Its asker.
    pub asker: Asker,
    /// The messages that its answer answers: those that a turn has shown.
    pub asked: Vec<u64>,
    /// If a tick began it: the first message of the work in which the timer was set.
    origin: Option<u64>,
}

/// A response that waits for the actions that it names, or for those of its work.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PendingResponse {
    /// The entry that says that it waits. Actions that were called before the response come before
    /// this entry.
    pub at: u64,
    /// The turn that it was written in.
    pub turn: u64,
    /// Whether it is the final response of its work.
    pub is_final: bool,
    /// Whether the agent has no further turn.
    pub is_last: bool,
    /// Whether actions of its turn were unfinished when the turn ended.
    pub is_early: bool,
    /// Its words as they were written.
    pub text: String,
    /// The local name of its payload, if it is no response.
    pub payload: Option<String>,
    work: u64,
    /// The range of its words in the reply.
    place: (u64, u64),
    /// The names in it, and the actions that they mean.
    names: Vec<(String, Option<u64>)>,
}

/// A turn that has begun.
#[derive(Clone, Debug, PartialEq, Eq)]
struct OpenTurn {
    /// The entry with which it began.
    at: u64,
    is_last: bool,
}

/// Something that has come for an agent and that no turn has shown.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Queued {
    /// A message with work for the agent.
    Ask(Asker),
    /// A tick of its own timer.
    Tick(u64),
    /// A finished action, with the work whose response waited for it.
    Result(u64, Option<u64>),
    /// Another thing that this work waited for.
    Other(u64),
}

/// An action that an agent began.
#[derive(Clone, Debug, PartialEq, Eq)]
struct ActionRecord {
    id: String,
    turn: u64,
    work: Option<u64>,
    mode: Mode,
    /// Whether its failure is skipped.
    skips: bool,
    /// Its status, and the entry of its result.
    ended: Option<(Status, u64)>,
    /// The first turn whose prompt showed its result.
    shown: Option<u64>,
    /// Whether the agent itself cancelled it, or one of its dependencies.
    is_taken_back: bool,
}

/// Which actions an agent's names mean.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Names {
    keys: BTreeMap<String, u64>,
    ids: BTreeMap<String, u64>,
    /// By target: the only action that called it. None if several did.
    targets: BTreeMap<String, Option<u64>>,
    feeds: BTreeSet<String>,
}

/// Something that an agent began and waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Outstanding {
    work: u64,
    kind: OutstandingKind,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum OutstandingKind {
    /// A payload to a peer without an answer.
    Payload,
    /// A timer that ticks once, or over and over.
    Timer,
    /// A child thread.
    Thread(String),
}

/// The owner of a timer.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Timer {
    asker: Asker,
    work: u64,
    origin: u64,
    ticks_on: bool,
    /// Whether an interrupt of its work clears it. A later tick is ignored then.
    is_cleared: bool,
}

/// The outcome of a turn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct LastTurn {
    /// It began something: an action, a payload, its own root.
    began: bool,
    /// A part of its reply didn't run, or its response wasn't delivered.
    mistake: bool,
    is_over: bool,
    /// It was the agent's last turn.
    is_last: bool,
    /// The model failed.
    failed: bool,
    /// Its provider takes no more requests for a while. A timer ticks after that.
    is_limited: bool,
    /// A stop of the pump cut it off.
    is_cut: bool,
    /// The provider's filter stopped its reply.
    is_filtered: bool,
}

impl Minds {
    /// What is known of an agent.
    #[must_use]
    pub fn of(&self, agent: &str) -> Arc<Mind> {
        self.agents.get(agent).cloned().unwrap_or_default()
    }
}

impl Mind {
    /// Whether a turn has begun and isn't over.
    #[must_use]
    pub fn is_turning(&self) -> bool {
        self.turn.is_some()
    }

    /// How many threads it opened that haven't ended.
    #[must_use]
    pub fn threads(&self) -> u32 {
        let open =
            self.outstanding.values().filter(|it| matches!(it.kind, OutstandingKind::Thread(_)));
        u32::try_from(open.count()).unwrap_or(u32::MAX)
    }

    /// How many turns of the thread count.
    fn turns_counted(&self) -> u64 {
        self.turns.saturating_sub(self.cuts)
    }

    /// How many turns count against `max_turns`: those of the work at hand, or by older rules those
    /// of the thread.
    #[must_use]
    pub fn turns_spent(&self, rules: &Rules) -> u64 {
        let before = if rules.counts_work { self.before } else { 0 };
        self.turns_counted().saturating_sub(before)
    }

    /// Whether so many turns in a row did nothing, and nothing new has come since.
    #[must_use]
    pub fn failures(&self) -> u32 {
        self.failures
    }

    /// Whether the provider's filter stopped the last reply.
    #[must_use]
    pub fn is_filtered(&self) -> bool {
        self.last.is_filtered
    }

    /// Whether the provider refused the last turn, so that another is of no use.
    #[must_use]
    pub fn is_refused(&self) -> bool {
        self.is_refused
    }
}
