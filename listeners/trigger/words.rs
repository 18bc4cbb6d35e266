//! The payloads that the listener `trigger` records.

use pumphouse::prelude::*;
use pumphouse::wire::Json;

/// What a change of an agent's metadata means for the triggers that watch the agent. It names each
/// trigger that fires, and each whose condition begins or ceases to hold.
#[derive(Clone, Debug, PartialEq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/trigger/v1", reserved, bookkeeping)]
pub struct TriggersDecided {
    /// The agent.
    #[payload(attribute, example = "coding_agent")]
    pub agent: String,
    /// The agent's turn.
    #[payload(attribute)]
    pub turn: u64,
    /// The number of the message about the change.
    #[payload(attribute)]
    pub of: u64,
    /// The changed fields, as a JSON object.
    #[payload(example = "{\"status\":\"CODING\"}")]
    pub fields: Json,
    /// What was decided of each trigger.
    pub decision: Vec<TriggerDecision>,
}

/// What was decided of one trigger.
#[derive(Clone, Debug, PartialEq, Payload)]
pub struct TriggerDecision {
    /// The trigger, which has the name of its workflow.
    #[payload(attribute, example = "code_finalization")]
    pub rule: String,
    /// Whether its condition holds.
    #[payload(attribute)]
    pub holds: bool,
    /// Whether it begins a run.
    #[payload(attribute)]
    pub fires: bool,
    /// Why it begins no run although its condition holds.
    #[payload(attribute, no_example)]
    pub why: Option<String>,
    /// The values that its condition refers to, as a JSON object.
    #[payload(text, example = "{\"metadata.status\":\"CODING\"}")]
    pub saw: Json,
}
