//! The inputs and outputs of the graph.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use pumphouse::Element;
use pumphouse::limits::ActionLimits;

use super::super::super::words::agent::Dispatch;
use super::super::words::{Action, ActionError, Status};
use super::{ActionDefinition, Id};

/// What happened.
#[derive(Clone, Debug)]
pub enum Input {
    /// An agent wants something done.
    Defined(Arc<str>, Id, Box<Action>),
    /// A turn of an agent is over.
    TurnOver(Arc<str>, u64),
    /// An attempt at an action has its answer.
    Replied(Id, u32, CallOutcome),
    /// A time has come, or isn't needed any more.
    Due(Time),
    /// Somebody takes actions back.
    Cancel(CancelRequest),
}

/// Which actions are taken back.
#[derive(Clone, Debug, Default)]
pub struct CancelRequest {
    /// Whose; anybody's unless said.
    pub agent: Option<Arc<str>>,
    /// Of which turn; any unless said.
    pub turn: Option<u64>,
    /// By which name; all unless said.
    pub id: Option<String>,
    /// Why.
    pub reason: Option<String>,
}

/// What was answered.
#[derive(Clone, Debug)]
pub enum CallOutcome {
    /// A payload, or that there is none.
    Ok(Option<Element>),
    /// It went wrong.
    Failed {
        /// How.
        error: ActionError,
        /// The payload that says so.
        answer: Option<Element>,
        /// Whether another attempt may do better.
        again: bool,
    },
    /// Whether it had its effect nobody knows.
    Unknown(ActionError),
    /// It was ended.
    Cancelled {
        /// Why.
        error: ActionError,
        /// The payload that says so.
        answer: Option<Element>,
    },
}

/// What is to be done.
#[derive(Clone, Debug)]
pub enum Output {
    /// An attempt begins.
    Call {
        /// The action.
        action: Id,
        /// Which attempt, from 1.
        attempt: u32,
        /// Whose.
        agent: Arc<str>,
        /// What it is.
        definition: Arc<ActionDefinition>,
        /// What it refers to.
        values: Arc<Values>,
    },
    /// An action is done.
    Result {
        /// The action.
        action: Id,
        /// Whose.
        agent: Arc<str>,
        /// What it was.
        definition: Arc<ActionDefinition>,
        /// What it referred to.
        values: Arc<Values>,
        /// How often it was tried.
        attempts: u32,
        /// What came of it.
        done: Arc<ActionOutcome>,
    },
    /// An attempt is given up: its answer is of no use any more.
    Abandon {
        /// The action.
        action: Id,
        /// Which attempt.
        attempt: u32,
    },
    /// A time is waited for.
    Wake {
        /// Which.
        time: Time,
        /// Whether somebody waits for what comes of it.
        is_awaited: bool,
    },
    /// So many actions were taken back.
    Cancelled(u64),
}

/// A time at which something is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Time {
    /// When, in microseconds since the epoch.
    pub at: u64,
    /// The action that it is about: once that is done, it needn't come.
    pub of: Id,
}

/// What came of an action.
#[derive(Clone, Debug)]
pub struct ActionOutcome {
    /// In a word.
    pub status: Status,
    /// What was answered.
    pub answer: Option<Element>,
    /// What went wrong.
    pub error: Option<ActionError>,
    /// The action whose failure is the reason.
    pub because: Option<String>,
}

impl ActionOutcome {
    /// Why what depends on an action called so is skipped.
    pub(super) fn reason(&self, id: &str) -> String {
        match (&self.because, self.status) {
            (Some(because), _) => format!("{id} was skipped because of {because}"),
            (None, Status::TimedOut) => format!("{id} took too long"),
            (None, Status::Cancelled) => format!("{id} was cancelled"),
            (None, Status::Unknown) => format!("nobody knows what became of {id}"),
            (None, _) => format!("{id} failed"),
        }
    }
}

/// What an action's parameters refer to, by name. What isn't there stays as it is written.
pub type Values = BTreeMap<String, Value>;

/// What a turn's prompt shows of an agent's feeds, by their names; none where it shows nothing.
pub type FeedContents = BTreeMap<String, Option<Arc<str>>>;

/// What a name stands for.
#[derive(Clone, Debug)]
pub enum Value {
    /// A result; null where there was no answer.
    Result(Option<Element>),
    /// An action that failed, or never ran.
    Failed,
    /// A feed, as the turn's prompt showed it.
    Feed(Arc<str>),
    /// A feed of which that showed nothing.
    Unavailable,
}

/// What a name in a response means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
// Exhaustive: each is treated in its own way.
pub enum Meaning {
    /// An action.
    Action(Id),
    /// A feed.
    Feed,
    /// Nothing: it is text.
    Nothing,
}

/// How the actions of a turn begin, and what they may come to.
#[derive(Clone, Copy, Debug)]
pub struct Policy {
    /// When.
    pub dispatch: Dispatch,
    /// What they may come to.
    pub limits: ActionLimits,
}

impl Default for Policy {
    fn default() -> Policy {
        Policy { dispatch: Dispatch::Immediate, limits: ActionLimits::default() }
    }
}

/// Whole microseconds.
pub(super) fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}
