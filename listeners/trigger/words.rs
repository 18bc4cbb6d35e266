//! The payloads of the listener `trigger`.

use pumphouse::prelude::*;
use pumphouse::wire::Json;
use pumphouse::wire::core::ThreadSpawned;

/// The namespace of the payloads of `trigger`.
pub(super) const TRIGGER_NS: &str = "https://xml-pipeline.org/ns/trigger/v1";

/// An event has happened. Triggers of the type `event` wait for it. Their runs go below the thread
/// of this message. The answer is `triggered`.
#[derive(Clone, Debug, PartialEq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/trigger/v1")]
pub struct Trigger {
    /// The event's name. A trigger waits for this event if its field `event` has the name.
    #[payload(attribute, example = "deploy")]
    pub name: String,
    /// The input of the runs, a JSON object; default {}. In a trigger, `event` refers to it.
    #[payload(text, example = "{\"branch\":\"main\"}")]
    pub input: String,
}

/// What an event has begun.
#[derive(Clone, Debug, PartialEq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/trigger/v1", reserved)]
pub struct Triggered {
    /// The event.
    #[payload(attribute, example = "deploy")]
    pub name: String,
    /// What was decided of each trigger that waits for it.
    pub decision: Vec<TriggerDecision>,
}

/// An event that no trigger waits for, or whose input can't be read.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/trigger/v1", reserved)]
pub struct TriggerRefused {
    /// What is wrong, and what would be right.
    #[payload(attribute, example = "no trigger waits for deplyo; did you mean deploy?")]
    pub message: String,
}

/// Something that a trigger of the whole organism waits for has happened: an entry was recorded, or
/// a time has come. The pump itself sends it.
#[derive(Clone, Debug, PartialEq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/trigger/v1", reserved, bookkeeping)]
pub struct TriggerDue {
    /// The trigger.
    #[payload(attribute, example = "archive_invoice")]
    pub rule: String,
    /// The entry.
    #[payload(attribute, no_example)]
    pub of: Option<String>,
    /// The sender of the entry.
    #[payload(attribute, no_example)]
    pub from: Option<String>,
    /// How many triggers began one another, up to this one.
    #[payload(attribute)]
    pub depth: u32,
    /// The message of the trigger that began them all, unless that is this trigger.
    #[payload(attribute, no_example)]
    pub first: Option<String>,
    /// An earlier message of this trigger, if the entry was sent because of a run that it began.
    /// The trigger doesn't fire again then.
    #[payload(attribute, no_example)]
    pub within: Option<String>,
    /// What conditions and the run refer to, as JSON.
    #[payload(text, example = "{\"due\":\"2026-12-24T18:00:00Z\"}")]
    pub value: Json,
}

/// The time is up for which the condition of a trigger must hold. Internal to the listener.
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

/// What a change of an agent's metadata, an entry, an event or a time means for the triggers that
/// watch it. It names each trigger that could fire because of it, and says why it didn't if it
/// didn't. Of a change of metadata, it also names each trigger whose condition ceases to hold.
#[derive(Clone, Debug, PartialEq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/trigger/v1", reserved, bookkeeping)]
pub struct TriggersDecided {
    /// The agent whose metadata is watched.
    #[payload(attribute, example = "coding_agent")]
    pub agent: Option<String>,
    /// The agent's turn.
    #[payload(attribute)]
    pub turn: Option<u64>,
    /// The number of the message about it.
    #[payload(attribute)]
    pub of: u64,
    /// The changed fields, as a JSON object.
    #[payload(example = "{\"status\":\"CODING\"}")]
    pub fields: Option<Json>,
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
    /// Why it begins no run although its condition holds, or has held.
    #[payload(attribute, no_example)]
    pub why: Option<String>,
    /// The values that its condition refers to, as a JSON object.
    #[payload(text, example = "{\"metadata.status\":\"CODING\"}")]
    pub saw: Json,
}

/// Whether a spawned thread has the label of this workflow. Of several threads with the same label,
/// all but the first have `-` and a number after it. A thread with the label `report-1` therefore
/// counts as one of `report`, too.
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
