//! Payloads with which operators steer workflows and triggers. No model is offered them.

use pumphouse::prelude::*;

/// Begins a run anew where another one failed or was cancelled: with the same definition and input,
/// and with the results of the steps that ended well and weren't undone. The answer is that of the
/// new run.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/workflow/v1")]
pub struct RetryRun {
    /// The thread of the other run. It belongs to the same session.
    #[payload(attribute, example = "sess-k3v9x2ma.code_finalization")]
    pub thread: String,
    /// The number of the message that began it.
    #[payload(attribute)]
    pub run: u64,
}

/// Switches a trigger off or on, for the whole organism. Operators may send it.
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
