//! Payloads about checklists.

use pumphouse::prelude::*;

/// Opens a checklist: steps that lead to a condition. To tick off or add steps, send it again with
/// the same condition. The list stays open until `todo-complete`, or until the thread ends. The
/// answer is `todo-registered`.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/core/v1")]
pub struct TodoUntil {
    /// The condition to reach.
    #[payload(attribute, min_length = 1, example = "all sources checked")]
    pub condition: String,
    /// The local name of a payload to wait for: when one comes, anywhere in this tree of threads, a
    /// `todo-nudge` says so.
    #[payload(attribute, rename = "wait-for", example = "thread-result")]
    pub wait_for: Option<String>,
    /// The sender of the payload to wait for; by default any.
    #[payload(attribute, example = "core")]
    pub from: Option<String>,
    /// All steps, in order; without any, the condition is the only step.
    pub step: Vec<Step>,
}

/// A step of a checklist.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
pub struct Step {
    /// Whether it is done; default false.
    #[payload(attribute)]
    pub done: Option<bool>,
    /// What to do.
    #[payload(text, example = "Search web")]
    pub text: String,
}

impl Step {
    /// Whether the step is done.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.done.unwrap_or(false)
    }
}

/// A checklist is open.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/core/v1", reserved)]
pub struct TodoRegistered {
    /// The list: the number of the entry that opened it.
    #[payload(attribute)]
    pub id: u64,
    /// How many steps are not done.
    #[payload(attribute)]
    pub open: u64,
    /// How many steps there are.
    #[payload(attribute)]
    pub total: u64,
}

/// A checklist can't be opened or closed.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/core/v1", reserved)]
pub struct TodoRefused {
    /// Why not, and how to correct it.
    #[payload(attribute, example = "no todo 7 is open here; 3 is")]
    pub message: String,
}

/// The payload that a checklist waits for has come. Sent once; the list stays open.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/core/v1", reserved)]
pub struct TodoNudge {
    /// The list.
    #[payload(attribute)]
    pub id: u64,
    /// What has come, its sender, and how to close the list.
    #[payload(text, example = "[SYSTEM NOTE: The following todos appear complete:]")]
    pub text: String,
}

impl TodoNudge {
    pub(super) fn of(id: u64, name: &str, condition: &str, from: &str) -> TodoNudge {
        let close = format!("<todo-complete><id>{id}</id></todo-complete>");
        let text = format!(
            "[SYSTEM NOTE: The following todos appear complete:]\n  \
             - Waiting for {name} ({condition}): received from {from}\n    \
             Close with: {close}"
        );
        TodoNudge { id, text }
    }
}

/// Closes a checklist, even with open steps. The answer is `todo-closed`.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/core/v1")]
pub struct TodoComplete {
    /// The list, as `todo-registered` names it.
    pub id: u64,
}

/// A checklist is closed.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/core/v1", reserved)]
pub struct TodoClosed {
    /// The list.
    #[payload(attribute)]
    pub id: u64,
    /// Whether the payload that it waited for had come.
    #[payload(attribute)]
    pub was_raised: bool,
}

/// An open checklist, which waits in the log.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/core/v1", reserved, bookkeeping)]
pub struct TodoOpen {
    /// The list.
    #[payload(attribute)]
    pub id: u64,
    /// The number of the entry that last wrote it.
    #[payload(attribute)]
    pub asked: u64,
    /// How many steps are not done.
    #[payload(attribute)]
    pub open: u64,
    /// How many steps there are.
    #[payload(attribute)]
    pub total: u64,
    /// The condition to reach.
    #[payload(attribute, example = "all sources checked")]
    pub condition: String,
    /// The payload that it still waits for.
    #[payload(attribute, rename = "wait-for", example = "thread-result")]
    pub wait_for: Option<String>,
    /// The sender of that payload.
    #[payload(attribute, example = "core")]
    pub from: Option<String>,
}

/// Steps that are still open when an agent sends its final response.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/core/v1", reserved)]
pub struct StepsOpen {
    /// The lists that have steps left.
    pub todo: Vec<OpenTodo>,
}

/// A checklist with its open steps.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
pub struct OpenTodo {
    /// The list.
    #[payload(attribute)]
    pub id: u64,
    /// The condition to reach.
    #[payload(attribute, example = "all sources checked")]
    pub condition: String,
    /// Each step that is not done.
    #[payload(example = "Analyze results")]
    pub step: Vec<String>,
}
