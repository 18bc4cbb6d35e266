//! The payloads of the listener `trigger`.

use pumphouse::prelude::*;
use pumphouse::wire::Json;
use pumphouse::wire::core::ThreadSpawned;

/// The namespace of the payloads of `trigger`.
pub(super) const TRIGGER_NS: &str = "https://xml-pipeline.org/ns/trigger/v1";

/// An event has happened. Triggers of the type `event` wait for it. Their runs get threads below
/// the thread of this message. The answer is `triggered`.
#[derive(Clone, Debug, PartialEq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/trigger/v1")]
pub struct Trigger {
    /// The event's name. A trigger waits for this event if its field `event` has the name.
    #[payload(attribute, example = "deploy")]
    pub name: String,
    /// What is known of the event, a JSON object; default {}. Conditions refer to it as `event`,
    /// and runs as `trigger.event`.
    #[payload(text, example = "{\"branch\":\"main\"}")]
    pub input: String,
}

/// The decisions on an event.
#[derive(Clone, Debug, PartialEq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/trigger/v1", reserved)]
pub struct Triggered {
    /// The event.
    #[payload(attribute, example = "deploy")]
    pub name: String,
    /// The decision on each trigger that waits for the event.
    pub decision: Vec<TriggerDecision>,
}

/// A request is refused: the event can't be used, or the trigger can't be switched on or off.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/trigger/v1", reserved)]
pub struct TriggerRefused {
    /// What is wrong, and what would be right.
    #[payload(attribute, example = "no trigger waits for deplyo; did you mean deploy?")]
    pub message: String,
}

/// Something that a trigger of the whole organism waits for has happened: an entry was recorded, or
/// a time has come. The pump itself sends this message.
#[derive(Clone, Debug, PartialEq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/trigger/v1", reserved, bookkeeping)]
pub struct TriggerDue {
    /// The trigger.
    #[payload(attribute, example = "archive_invoice")]
    pub rule: String,
    /// The recorded entry, if any.
    #[payload(attribute, no_example)]
    pub of: Option<String>,
    /// The sender of the entry.
    #[payload(attribute, no_example)]
    pub from: Option<String>,
    /// The number of triggers in the chain that ends with this one. The run of each trigger fired
    /// the next one.
    #[payload(attribute)]
    pub depth: u32,
    /// The message of the first trigger in the chain, unless this trigger is the first.
    #[payload(attribute, no_example)]
    pub first: Option<String>,
    /// An earlier message of this trigger that began a run, if the entry was sent because of this
    /// run. The trigger doesn't fire again then.
    #[payload(attribute, no_example)]
    pub within: Option<String>,
    /// What conditions and the run refer to, as JSON.
    #[payload(text, example = "{\"due\":\"2026-12-24T18:00:00Z\"}")]
    pub value: Json,
}

/// The time for which the condition of a trigger must hold has passed. Internal to the listener.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/trigger/v1", reserved, bookkeeping)]
pub struct HeldLongEnough {
    /// The trigger.
    #[payload(attribute, example = "code_finalization")]
    pub rule: String,
    /// The agent.
    #[payload(attribute, example = "coding_agent")]
    pub agent: String,
    /// The agent's turn in which the condition began to hold; 0 if it began outside of a turn.
    #[payload(attribute)]
    pub turn: u64,
    /// The number of the message with which the condition began to hold.
    #[payload(attribute)]
    pub since: u64,
}

/// A trigger was switched off or on.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/trigger/v1", reserved)]
pub struct TriggerSwitched {
    /// The trigger.
    #[payload(attribute, example = "code_finalization")]
    pub name: String,
    /// Whether it may fire.
    #[payload(attribute)]
    pub on: bool,
    /// Who switched it.
    #[payload(attribute, example = "ada")]
    pub by: String,
}

/// The decisions of triggers on a change of an agent's metadata, an entry, an event or a time. A
/// trigger on metadata is listed if it fires, or if its condition begins or ceases to hold. A
/// trigger with `fire: level` is also listed at each change while its condition holds.
#[derive(Clone, Debug, PartialEq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/trigger/v1", reserved, bookkeeping)]
pub struct TriggersDecided {
    /// The agent whose metadata is watched.
    #[payload(attribute, example = "coding_agent")]
    pub agent: Option<String>,
    /// The agent's turn.
    #[payload(attribute)]
    pub turn: Option<u64>,
    /// The number of the message that the decisions are about.
    #[payload(attribute)]
    pub of: u64,
    /// The changed fields, as a JSON object.
    #[payload(example = "{\"status\":\"CODING\"}")]
    pub fields: Option<Json>,
    /// The decision on each trigger.
    pub decision: Vec<TriggerDecision>,
}

/// The decision on one trigger.
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
    /// Why it begins no run although its condition holds, or has held.
    #[payload(attribute, no_example)]
    pub why: Option<String>,
    /// The values that its condition refers to, as a JSON object.
    #[payload(text, example = "{\"metadata.status\":\"CODING\"}")]
    pub saw: Json,
}

/// Whether a spawned thread has the label of this workflow. Of several threads with the same label,
/// all but the first have `-` and a number after the label. So a run of a workflow named `report-1`
/// counts as a run of `report`, too.
#[must_use]
pub fn is_run_of(spawned: &ThreadSpawned, workflow: &str) -> bool {
    let first = ThreadId::new(&spawned.parent_id).child(workflow, 0);
    let Some(number) = spawned.assigned_id.strip_prefix(first.as_str()) else { return false };
    let is_number = |it: &str| !it.is_empty() && it.bytes().all(|it| it.is_ascii_digit());
    number.is_empty() || number.strip_prefix('-').is_some_and(is_number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_has_the_label_of_its_workflow() {
        let is = |label: &str, workflow: &str| {
            let (parent_id, assigned_id) = ("sess-a".to_owned(), format!("sess-a.{label}"));
            is_run_of(&ThreadSpawned { assigned_id, parent_id }, workflow)
        };
        assert!(is("report", "report") && is("report-12", "report"));
        assert!(!is("report_more", "report") && !is("report-more", "report"));
        assert!(!is("more", "report") && !is("more.report", "report"));
    }
}
