//! The payloads that workflows record and send.

use pumphouse::prelude::*;
use pumphouse::wire::{Json, Timestamp};

/// A run of a workflow has begun. The run goes by this definition, also where the file has changed
/// since.
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
    /// What the workflow refers to of the agent that the run works for: `${agent.…}`.
    #[payload(no_example)]
    pub agent: Option<Json>,
    /// The results that this run has taken over: a JSON list, in the order in which they came.
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
    /// The step that the condition is of.
    #[payload(attribute, example = "git_commit")]
    pub step: String,
    /// Whether it holds.
    #[payload(attribute)]
    pub holds: bool,
    /// The condition.
    #[payload(example = "previous_steps_success")]
    pub condition: String,
    /// The values that it referred to, as a JSON object.
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

/// The result of a workflow: its outputs as a JSON object.
#[derive(Clone, Debug, PartialEq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/workflow/v1", reserved)]
pub struct WorkflowResult {
    /// The workflow.
    #[payload(attribute, example = "code_finalization")]
    pub workflow: String,
    /// The outputs.
    #[payload(value, example = "{\"pages\":3}")]
    pub outputs: Json,
}

/// A run that can't begin anew.
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

/// A workflow didn't come to its end. What it had done, and could be undone, was undone.
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
    /// The steps that couldn't be undone.
    pub not_undone: Vec<String>,
}

impl WorkflowFailed {
    /// The answer to a message that begins no run.
    pub(super) fn before_steps(workflow: &str, reason: String) -> WorkflowFailed {
        let (undone, not_undone) = (Vec::new(), Vec::new());
        WorkflowFailed { workflow: workflow.to_owned(), step: None, reason, undone, not_undone }
    }
}

/// The time of a run is up. Internal to workflows.
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
