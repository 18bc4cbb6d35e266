//! Payloads with which operators steer workflows and triggers. Models aren't offered these
//! payloads.

use pumphouse::prelude::*;

/// Repeats a failed or cancelled run of a workflow. The new run has the same definition and input.
/// It takes over the results of steps that succeeded and weren't undone. The answer is the answer
/// of the new run.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/workflow/v1")]
pub struct RetryRun {
    /// The thread of the failed run, in the same session.
    #[payload(attribute, example = "sess-k3v9x2ma.code_finalization")]
    pub thread: String,
    /// The number of the message that began the failed run.
    #[payload(attribute)]
    pub run: u64,
}

/// Switches a trigger off or on, for the whole organism. Only operators may do so.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/trigger/v1")]
pub struct SwitchTrigger {
    /// The trigger, which has the name of its workflow.
    #[payload(attribute, example = "code_finalization")]
    pub name: String,
    /// Whether it may fire.
    #[payload(attribute)]
    pub on: bool,
}
