//! The payloads that workflows record and send.

use pumphouse::prelude::*;
use pumphouse::wire::{Json, Timestamp};

/// A run of a workflow has begun. The run follows this definition, even if the file changes later.
#[derive(Clone, Debug, PartialEq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/workflow/v1", reserved, bookkeeping)]
pub struct WorkflowStarted {
    /// The number of the message that began the run. The run's calls have it in their keys.
    #[payload(attribute)]
    pub run: u64,
    /// The workflow.
    #[payload(attribute, example = "code_finalization")]
    pub workflow: String,
    /// The BLAKE3 digest of the definition.
    #[payload(attribute)]
    pub digest: String,
    /// When the run began.
    #[payload(attribute)]
    pub at: Timestamp,
    /// The run that this one repeats.
    #[payload(attribute, no_example)]
    pub repeats: Option<String>,
    /// The agent whose metadata the outputs set.
    #[payload(attribute, no_example)]
    pub sets: Option<String>,
    /// The input, which `${trigger.…}` refers to.
    pub input: Option<Json>,
    /// The fields of `${agent.…}` that the workflow refers to, with their values when the run
    /// began.
    #[payload(no_example)]
    pub agent: Option<Json>,
    /// The results that this run takes over from the run that it repeats: a JSON list, in the order
    /// in which they came.
    #[payload(no_example)]
    pub taken: Option<Json>,
    /// The definition, as JSON.
    #[payload(example = "{\"name\":\"code_finalization\",\"steps\":[]}")]
    pub definition: Json,
}

/// A condition of a workflow was evaluated.
#[derive(Clone, Debug, PartialEq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/workflow/v1", reserved, bookkeeping)]
pub struct ConditionDecided {
    /// The number of the message that began the run.
    #[payload(attribute)]
    pub run: u64,
    /// The step that has the condition.
    #[payload(attribute, example = "git_commit")]
    pub step: String,
    /// Whether the condition holds.
    #[payload(attribute)]
    pub holds: bool,
    /// The condition.
    #[payload(example = "previous_steps_success")]
    pub condition: String,
    /// The values that the condition refers to, as a JSON object.
    #[payload(example = "{\"previous_steps_success\":true}")]
    pub saw: Json,
}

/// A step of a workflow couldn't be called.
#[derive(Clone, Debug, PartialEq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/workflow/v1", reserved, bookkeeping)]
pub struct StepRefused {
    /// The number of the message that began the run.
    #[payload(attribute)]
    pub run: u64,
    /// The step.
    #[payload(attribute, example = "update_changelog")]
    pub step: String,
    /// Whether this is the call that undoes the step.
    #[payload(attribute)]
    pub undo: bool,
    /// Why.
    #[payload(text, example = "${trigger.file} has no value")]
    pub reason: String,
}

/// The result of a workflow: its outputs as a JSON object, and the one that is its value.
#[derive(Clone, Debug, PartialEq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/workflow/v1", reserved)]
pub struct WorkflowResult {
    /// The workflow.
    #[payload(attribute, example = "code_finalization")]
    pub workflow: String,
    /// The output that is the value: the one that the workflow names, or else the only one.
    #[payload(value, no_example)]
    pub value: Option<Json>,
    /// The outputs.
    #[payload(value, example = "{\"pages\":3}")]
    pub outputs: Json,
}

/// A run can't be repeated.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/workflow/v1", reserved)]
pub struct RetryRefused {
    /// Why not.
    #[payload(
        attribute,
        example = "sess-k3v9x2ma/1 has come to its end; nothing of it has failed"
    )]
    pub message: String,
}

/// A run of a workflow failed. Its finished steps with `compensate` were undone if possible.
#[derive(Clone, Debug, PartialEq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/workflow/v1", reserved)]
pub struct WorkflowFailed {
    /// The workflow.
    #[payload(attribute, example = "code_finalization")]
    pub workflow: String,
    /// The step that failed, if one did.
    #[payload(attribute, example = "update_changelog")]
    pub step: Option<String>,
    /// What went wrong.
    #[payload(example = "update_changelog failed: tool-error: disk full")]
    pub reason: String,
    /// The steps that were undone, in this order.
    pub undone: Vec<String>,
    /// The steps whose effects may remain: they couldn't be undone, were cancelled, or ended
    /// without a known outcome.
    pub not_undone: Vec<String>,
}

impl WorkflowFailed {
    /// The answer to a message that begins no run.
    pub(super) fn before_steps(workflow: &str, reason: String) -> WorkflowFailed {
        let (undone, not_undone) = (Vec::new(), Vec::new());
        WorkflowFailed { workflow: workflow.to_owned(), step: None, reason, undone, not_undone }
    }
}

/// A run has reached its timeout. Internal to workflows.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/workflow/v1", reserved, bookkeeping)]
pub struct WorkflowDue {
    /// The number of the message that began the run.
    #[payload(attribute)]
    pub run: u64,
}

/// The call of a step, as the key of the call's action names it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CallName {
    /// The number of the message that began the run.
    pub run: u64,
    /// The step.
    pub step: String,
    /// Whether this is the call that undoes the step.
    pub is_undo: bool,
}

impl CallName {
    /// Reads the key of a step's call: `RUN/do/STEP`, or `RUN/undo/STEP`. None for any other key.
    #[must_use]
    pub fn parse(key: &str) -> Option<CallName> {
        let mut parts = key.splitn(3, '/');
        let run = parts.next()?.parse().ok()?;
        let is_undo = match parts.next()? {
            "do" => false,
            "undo" => true,
            _ => return None,
        };
        Some(CallName { run, step: parts.next()?.to_owned(), is_undo })
    }
}
