//! Payloads about checklists.

use pumphouse::prelude::*;

/// A checklist: steps, and the condition that they lead to. The answer is `todo-registered`. The
/// same condition again is the same list, written anew: so steps are ticked off and added. It
/// stays open until `todo-complete`, or until the thread ends.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/core/v1")]
pub struct TodoUntil {
    /// What is to be so in the end.
    #[payload(attribute, min_length = 1, example = "all sources checked")]
    pub condition: String,
    /// The local name of a payload that is waited for: when one comes, anywhere in this tree of
    /// threads, a `todo-nudge` says so.
    #[payload(attribute, rename = "wait-for", example = "thread-result")]
    pub wait_for: Option<String>,
    /// Who is to send it; anybody unless said.
    #[payload(attribute, example = "core")]
    pub from: Option<String>,
    /// What there is to do, in order; without any, the condition itself.
    pub step: Vec<Step>,
}

/// One thing to do.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
pub struct Step {
    /// Whether it is done.
    #[payload(attribute)]
    pub done: bool,
    /// What it is.
    #[payload(text, example = "Search web")]
    pub text: String,
}

/// A checklist is kept.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/core/v1", reserved)]
pub struct TodoRegistered {
    /// The list, by the place in the thread of what opened it.
    #[payload(attribute)]
    pub id: u64,
    /// How many steps are not done.
    #[payload(attribute)]
    pub open: u64,
    /// How many there are.
    #[payload(attribute)]
    pub total: u64,
}

/// A checklist can't be kept or closed.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/core/v1", reserved)]
pub struct TodoRefused {
    /// Why not, and what would do.
    #[payload(attribute, example = "no todo 7 is open here; 3 is")]
    pub message: String,
}

/// What a checklist waits for has come. It is said once; the list stays open.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/core/v1", reserved)]
pub struct TodoNudge {
    /// The list.
    #[payload(attribute)]
    pub id: u64,
    /// What has come, from whom, and how to close the list.
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

/// Closes a checklist, whatever is left of it. The answer is `todo-closed`.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/core/v1")]
pub struct TodoComplete {
    /// The list, as `todo-registered` said it.
    pub id: u64,
}

/// A checklist is closed.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/core/v1", reserved)]
pub struct TodoClosed {
    /// The list.
    #[payload(attribute)]
    pub id: u64,
    /// Whether what it waited for had come.
    #[payload(attribute)]
    pub was_raised: bool,
}

/// A checklist that is open: it waits in the log.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/core/v1", reserved, bookkeeping)]
pub struct TodoOpen {
    /// The list.
    #[payload(attribute)]
    pub id: u64,
    /// The place in the thread of what wrote it last.
    #[payload(attribute)]
    pub asked: u64,
    /// How many steps are not done.
    #[payload(attribute)]
    pub open: u64,
    /// How many there are.
    #[payload(attribute)]
    pub total: u64,
    /// What is to be so in the end.
    #[payload(attribute, example = "all sources checked")]
    pub condition: String,
    /// What is still waited for.
    #[payload(attribute, rename = "wait-for", example = "thread-result")]
    pub wait_for: Option<String>,
    /// From whom.
    #[payload(attribute, example = "core")]
    pub from: Option<String>,
}

/// What is left to do where somebody says that all is done: it comes with a final response.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/core/v1", reserved)]
pub struct StepsOpen {
    /// The lists that have steps left.
    pub todo: Vec<OpenTodo>,
}

/// A list, and what is left of it.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
pub struct OpenTodo {
    /// The list.
    #[payload(attribute)]
    pub id: u64,
    /// What is to be so in the end.
    #[payload(attribute, example = "all sources checked")]
    pub condition: String,
    /// Each step that is not done.
    #[payload(example = "Analyze results")]
    pub step: Vec<String>,
}
