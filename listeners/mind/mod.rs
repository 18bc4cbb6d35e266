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

/// What becomes of a final response while actions of its turn are unfinished.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum FinalWithActions {
    /// It waits; it is delivered if all succeed, else there is another turn.
    #[default]
    Hold,
    /// There is another turn.
    Strict,
    /// It is delivered at once.
    Trust,
}

/// The agents of a thread. A fold.
#[derive(Clone, Debug, Default)]
pub struct Minds {
    agents: BTreeMap<String, Arc<Mind>>,
    /// Listeners that own a root as an agent does, and are none.
    others: BTreeSet<String>,
    thread: CurrentThread,
}

/// What a thread's history says of one agent.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Mind {
    /// How many turns it began.
    pub turns: u64,
    /// The rules that the newest of them goes by; none in threads of 0.1.0.
    pub rules: Option<u32>,
    /// How many of them a stop of the pump cut: they don't count.
    pub cuts: u64,
    /// The newest text that its model was told before all else.
    pub system: Option<Arc<str>>,
    /// What its model was last offered as tools in its provider's own protocol.
    pub tools: Arc<CognitionTools>,
    /// What it asked to have its feeds had anew, for its next turn.
    pub asked: Option<EntryId>,
    /// Whether that was answered.
    pub has_feeds: bool,
    /// The last entry of its own.
    pub said: u64,
    /// What it is working on.
    pub work: Option<Work>,
    /// How many turns counted when that began.
    before: u64,
    /// Responses that wait, in the order in which they were written.
    pub pending: VecDeque<PendingResponse>,
    /// Messages to it that end its work, and that it hasn't answered.
    pub interrupts: Vec<u64>,
    /// How many turns in a row did nothing.
    pub idle: u32,
    /// What was wrong with its model last.
    pub error: String,
    /// What it has reserved of the tree's budget and not settled.
    pub(super) reserved: Option<Charge>,
    /// The turn at hand.
    turn: Option<OpenTurn>,
    /// Responses of the turn at hand that wait.
    written: Vec<PendingResponse>,
    /// What no turn has shown yet.
    queue: BTreeMap<u64, Queued>,
    actions: BTreeMap<u64, ActionRecord>,
    /// The action that each name means now.
    names: Names,
    /// Timers, threads and payloads to peers that nothing came of yet.
    outstanding: BTreeMap<u64, Outstanding>,
    /// The timers that it set, by the place of what set them.
    timers: BTreeMap<u64, Timer>,
    /// What became of its newest turn.
    last: LastTurn,
    /// How many turns in a row its model failed.
    failures: u32,
    /// Whether the provider refused the last turn, so that another is of no use.
    is_refused: bool,
    /// Whether it sleeps until there is news.
    slept: bool,
}

/// Whose messages a work answers.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Asker {
    /// The name of the identity or listener.
    pub name: String,
    /// Whether that is an identity.
    pub is_identity: bool,
}

/// Something that an agent works on.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Work {
    /// The message or tick that it began with.
    pub id: u64,
    /// Whose it is.
    pub asker: Asker,
    /// The messages that its answer answers: those that a turn has shown.
    pub asked: Vec<u64>,
    /// Where a tick began it, the first message of the work in which its timer was set.
    origin: Option<u64>,
}

/// A response that waits for what it names, or for the actions of its work.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PendingResponse {
    /// The entry that says that it waits: what was called before it stands before that.
    pub at: u64,
    /// The turn that it was written in.
    pub turn: u64,
    /// Whether it is the last word of its work.
    pub is_final: bool,
    /// Whether the agent has no further turn.
    pub is_last: bool,
    /// Whether actions of its turn were unfinished when that was over.
    pub is_early: bool,
    /// Its words as they were written.
    pub text: String,
    /// The local name of the payload that it is, where it is no response.
    pub payload: Option<String>,
    work: u64,
    /// Where in the reply the words stand.
    place: (u64, u64),
    /// The names in it, and the actions that they mean.
    names: Vec<(String, Option<u64>)>,
}

/// A turn at hand.
#[derive(Clone, Debug, PartialEq, Eq)]
struct OpenTurn {
    /// The entry with which it began.
    at: u64,
    is_last: bool,
}

/// Something that came for an agent and that no turn has shown.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Queued {
    /// A message that gives the agent something to do.
    Ask(Asker),
    /// A timer of its own ticks.
    Tick(u64),
    /// An action is done; the work of which a response waited for it.
    Result(u64, Option<u64>),
    /// Something else that this work waited for.
    Other(u64),
}

/// An action that an agent began.
#[derive(Clone, Debug, PartialEq, Eq)]
struct ActionRecord {
    id: String,
    turn: u64,
    work: Option<u64>,
    mode: Mode,
    /// Whether its failure counts against nothing.
    skips: bool,
    /// What became of it, and where that stands.
    ended: Option<(Status, u64)>,
    /// The first turn that was shown what became of it.
    shown: Option<u64>,
    /// Whether the agent itself took it back, or something that it depended on.
    is_taken_back: bool,
}

/// Which actions an agent's names mean.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Names {
    keys: BTreeMap<String, u64>,
    ids: BTreeMap<String, u64>,
    /// By target: the one action that called it; none where several did.
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
    /// A payload to a peer, not answered yet.
    Payload,
    /// A timer that ticks once, or over and over.
    Timer,
    /// A thread below this one.
    Thread(String),
}

/// Whose a timer is.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Timer {
    asker: Asker,
    work: u64,
    origin: u64,
    ticks_on: bool,
    /// Whether an interrupt of its work clears it: nothing comes of a later tick.
    is_cleared: bool,
}

/// What became of a turn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct LastTurn {
    /// It began something: an action, a payload, its own root.
    began: bool,
    /// Something in it didn't run, or its response wasn't delivered.
    mistake: bool,
    is_over: bool,
    /// It was the last one that the agent has.
    is_last: bool,
    /// The model failed.
    failed: bool,
    /// Its provider takes no more requests for a while, and a timer ticks after that.
    is_limited: bool,
    /// A stop of the pump cut it.
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

    /// Whether nothing came of so many turns in a row, and nothing else has come since.
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
