//! The inputs and outputs of the graph.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use pumphouse::Element;
use pumphouse::limits::ActionLimits;

use super::super::super::words::agent::Dispatch;
use super::super::words::{Action, ActionError, NOT_TAKEN, Status};
use super::{ActionDefinition, Decision, Id, SeenNames};

/// An input of the graph.
#[derive(Clone, Debug)]
pub enum Input {
    /// An agent defines an action: the agent, the action's id, and the action.
    Defined(Arc<str>, Id, Box<Action>),
    /// A turn is over: its agent and its number.
    TurnOver(Arc<str>, u64),
    /// An attempt at an action is answered: the action, the number of the attempt, and the outcome.
    Replied(Id, u32, CallOutcome),
    /// An attempt at an action is answered in part: the action, the number of the attempt, and the
    /// part.
    Part(Id, u32, Part),
    /// The decision that [`Output::Decide`] asked for.
    Decided(Id, Decision),
    /// A time that [`Output::Wake`] asked for has come, or isn't needed any more.
    Due(Time),
    /// An agent or an operator cancels actions.
    Cancel(CancelRequest),
}

/// The actions to cancel.
#[derive(Clone, Debug, Default)]
pub struct CancelRequest {
    /// The agent whose actions are meant. None means every agent.
    pub agent: Option<Arc<str>>,
    /// The turn. None means every turn.
    pub turn: Option<u64>,
    /// The action's id. None means every action.
    pub id: Option<String>,
    /// The reason.
    pub reason: Option<String>,
}

/// A partial result of a call.
#[derive(Clone, Debug)]
pub struct Part {
    /// The number of the part, from 1. A part is ignored unless its number is larger than the
    /// numbers of all earlier parts of the call.
    pub number: u64,
    /// The part.
    pub payload: Element,
}

/// The outcome of a call.
#[derive(Clone, Debug)]
pub enum CallOutcome {
    /// The call succeeded, with a payload as its answer or without one.
    Ok(Option<Element>),
    /// The call failed.
    Failed {
        /// The error.
        error: ActionError,
        /// The payload that reports the error.
        answer: Option<Element>,
        /// Whether another attempt may succeed.
        again: bool,
    },
    /// It is unknown whether the call had its effect.
    Unknown {
        /// The error.
        error: ActionError,
        /// The payload that reports the error.
        answer: Option<Element>,
    },
    /// The handler of the call panicked or ran out of time. Unless the call is idempotent, it is
    /// unknown whether it had its effect.
    CutOff(ActionError),
    /// The call was cancelled.
    Cancelled {
        /// The reason.
        error: ActionError,
        /// The payload that reports the cancellation.
        answer: Option<Element>,
    },
}

/// An output of the graph.
#[derive(Clone, Debug)]
pub enum Output {
    /// An attempt begins.
    Call {
        /// The action.
        action: Id,
        /// The attempt, from 1.
        attempt: u32,
        /// The number of the item with which the action is called, from 0. None if it is called
        /// with no item.
        item: Option<usize>,
        /// The agent.
        agent: Arc<str>,
        /// The action's definition.
        definition: Arc<ActionDefinition>,
        /// The values of the action's references.
        values: Arc<Values>,
    },
    /// The graph asks for the input [`Input::Decided`].
    Decide {
        /// The action.
        action: Id,
        /// The agent.
        agent: Arc<str>,
        /// The action's definition.
        definition: Arc<ActionDefinition>,
        /// The names that the decision refers to, with their values and statuses.
        seen: SeenNames,
    },
    /// An action is done.
    Result {
        /// The action.
        action: Id,
        /// The agent.
        agent: Arc<str>,
        /// The action's definition.
        definition: Arc<ActionDefinition>,
        /// The values of the action's references.
        values: Arc<Values>,
        /// The number of attempts.
        attempts: u32,
        /// The answers of an action that was called with items, one for each item.
        answers: Option<Vec<Option<Element>>>,
        /// The place of the item whose call failed, in words.
        item: Option<String>,
        /// The action's outcome.
        done: Arc<ActionOutcome>,
    },
    /// An attempt is abandoned: its answer isn't needed any more.
    Abandon {
        /// The action.
        action: Id,
        /// The attempt.
        attempt: u32,
    },
    /// The graph asks for the input [`Input::Due`] at a time.
    Wake {
        /// The time.
        time: Time,
        /// Whether the agent waits for the event at this time. False for the timeout of a
        /// `fire_and_forget` action.
        is_awaited: bool,
    },
    /// The number of actions that a request cancelled.
    Cancelled(u64),
}

/// A time at which the graph needs an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Time {
    /// The time, in microseconds since the epoch.
    pub at: u64,
    /// The action that needs the time. Once the action is done, the time isn't needed.
    pub of: Id,
}

/// The outcome of an action.
#[derive(Clone, Debug)]
pub struct ActionOutcome {
    /// The status.
    pub status: Status,
    /// The answer.
    pub answer: Option<Element>,
    /// The error.
    pub error: Option<ActionError>,
    /// For a skipped action: the id of the action whose failure is the reason.
    pub because: Option<String>,
}

impl ActionOutcome {
    /// Whether the action didn't run because its condition doesn't hold.
    pub(super) fn is_not_taken(&self) -> bool {
        let code = self.error.as_ref().map(|it| &*it.code);
        self.status == Status::Skipped && code == Some(NOT_TAKEN)
    }

    /// The reason why actions that depend on this one are skipped. `id` is the id of this action.
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

/// Maps the names of an action's references to their values. A reference whose name isn't in the
/// map stays as it is written.
pub type Values = BTreeMap<String, Value>;

/// Maps the names of an agent's feeds to their contents in a turn's prompt. None if the prompt
/// shows nothing of a feed.
pub type FeedContents = BTreeMap<String, Option<Arc<str>>>;

/// The value of a name that a reference uses.
#[derive(Clone, Debug)]
pub enum Value {
    /// The payload that answered an action. None if the answer has no payload; the value is then
    /// null.
    Result(Option<Element>),
    /// The payloads that answered an action, one for each item with which it was called.
    List(Vec<Option<Element>>),
    /// An item with which the action is called.
    Item(serde_json::Value),
    /// The action ended without success.
    Failed,
    /// The action didn't run because of its condition, or failed with `on_error` `skip`.
    Skipped,
    /// The name is known. No reference needs its value.
    Named,
    /// The content of a feed, as the turn's prompt showed it.
    Feed(Arc<str>),
    /// The prompt showed nothing of the feed.
    Unavailable,
}

impl Value {
    /// Whether the value is that of an action, or of an item.
    #[must_use]
    pub fn is_of_action(&self) -> bool {
        !matches!(self, Value::Feed(_) | Value::Unavailable | Value::Named)
    }
}

/// The meaning of a name in a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
// The enum is exhaustive, since callers treat each meaning differently.
pub enum Meaning {
    /// An action.
    Action(Id),
    /// A feed.
    Feed,
    /// No meaning: the reference is plain text.
    Nothing,
}

/// How the actions of a turn start, and their limits.
#[derive(Clone, Copy, Debug)]
pub struct Policy {
    /// When the actions start.
    pub dispatch: Dispatch,
    /// The limits of the actions.
    pub limits: ActionLimits,
}

impl Default for Policy {
    fn default() -> Policy {
        Policy { dispatch: Dispatch::Immediate, limits: ActionLimits::default() }
    }
}

/// A duration in whole microseconds.
pub(super) fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}
