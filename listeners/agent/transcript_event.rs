//! The events of a transcript.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Something that an agent was told, did, or said. In JSON, an event is one object.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Event {
    /// What happened.
    #[serde(flatten)]
    pub what: EventKind,
    /// The agent.
    pub agent: String,
    /// The thread.
    pub thread: String,
    /// The number of the event's entry. None for a live payload.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entry: Option<u64>,
    /// The time at which the pump accepted the entry, in ISO 8601. None for a live payload.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time: Option<String>,
    /// Whether the event is meant to be shown to people. False only for the calls and results of
    /// actions with `show="false"`.
    #[serde(default = "yes", skip_serializing_if = "is_yes")]
    pub show: bool,
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum EventKind {
    /// The model is told something: by its system prompt, or by a message in the role `user`.
    CognitionIn {
        /// `system` or `user`.
        role: String,
        /// The sender.
        from: String,
        /// The text, as the prompt of its turn shows it.
        text: String,
    },
    /// A turn begins.
    StepStart {
        /// The turn.
        turn: u64,
        /// The model's name.
        model: String,
        /// The asker of the work that the turn belongs to. None if the turn belongs to no work.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        asker: Option<String>,
    },
    /// A piece of the reply while the model writes it. Only followers see it; the log doesn't have
    /// it.
    CognitionOutDelta {
        /// The turn.
        turn: u64,
        /// The place of the piece: `thought`, `response`, `text` or `reasoning`.
        within: String,
        /// The piece.
        text: String,
    },
    /// The model's reasoning, if its provider shows it.
    CognitionReasoning {
        /// The turn.
        turn: u64,
        /// The text.
        text: String,
        /// Whether the reasoning is incomplete.
        is_partial: bool,
        /// Whether an error or an interrupt cut the reasoning off.
        was_interrupted: bool,
    },
    /// A request to a model failed. This model or another one is asked next.
    ModelFailed {
        /// The turn.
        turn: u64,
        /// The model that failed. None if the agent's model isn't a router.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        model: Option<String>,
        /// The kind of the failure, such as `rate-limited`.
        kind: String,
        /// What happened.
        text: String,
    },
    /// A thought is complete.
    Thought {
        /// The turn.
        turn: u64,
        /// The text.
        text: String,
    },
    /// A call is defined. It runs at once, or when the calls that it waits for are done.
    ToolCallStart {
        /// The turn.
        turn: Option<u64>,
        /// The id of the call, unique in the thread.
        call_id: String,
        /// The id that the model gave the call. A later turn may use it again.
        id: String,
        /// The listener that the action calls, or `listener.payload`.
        tool: String,
        /// The parameters, as the model wrote them.
        input: Value,
        /// How the agent waits for the result: `sync`, `async` or `fire_and_forget`.
        mode: String,
    },
    /// Output of a program that a tool runs. Only followers see it; the log doesn't have it.
    ToolCallOutput {
        /// The call.
        call_id: String,
        /// The listener that the action calls, or `listener.payload`.
        tool: String,
        /// The stream of the output: `out` or `err`.
        stream: String,
        /// The output, in whole lines if they aren't too long.
        text: String,
    },
    /// The progress of a call. Only followers see it; the log doesn't have it.
    ToolCallProgress {
        /// The call.
        call_id: String,
        /// The listener that the action calls, or `listener.payload`.
        tool: String,
        /// The amount that is done.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        done: Option<f64>,
        /// The whole amount.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        total: Option<f64>,
        /// What the tool is doing.
        text: String,
    },
    /// The result of a call.
    ToolCallResult {
        /// The turn of the call.
        turn: Option<u64>,
        /// The call.
        call_id: String,
        /// The listener that the action calls, or `listener.payload`.
        tool: String,
        /// The outcome as a word: `ok`, `failed`, `skipped`, `timed-out`, `cancelled`, `unknown`.
        status: String,
        /// The value of the result.
        output: Option<Value>,
        /// What went wrong.
        error: Option<String>,
    },
    /// A turn ends, with all that the model wrote.
    CognitionOut {
        /// The turn.
        turn: u64,
        /// The whole text, with its markup.
        text: String,
        /// The number of calls that the turn defined.
        tool_count: u64,
        /// Whether the reply is incomplete.
        is_partial: bool,
        /// Whether a limit, an error, an interrupt or a stop of the pump cut the reply off.
        truncated: bool,
        /// What went wrong.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<String>,
        /// The part of the reply that arrived, in percent. None if it can't be estimated.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        completion_percentage: Option<u32>,
    },
    /// The agent responds.
    Response {
        /// The turn.
        turn: u64,
        /// The text, with each reference replaced by its value.
        text: String,
        /// Whether the response ends the work.
        #[serde(rename = "final")]
        is_final: bool,
    },
    /// The agent sets fields of its metadata.
    Metadata {
        /// The turn.
        turn: u64,
        /// The fields that are set, with their values.
        fields: Value,
        /// The fields that couldn't be set, each with the reason.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        errors: Vec<String>,
    },
    /// The agent sends a payload.
    Message {
        /// The receiver.
        to: String,
        /// The payload's local name.
        name: String,
        /// The payload.
        payload: String,
    },
    /// Markup with a mistake was repaired.
    Repair {
        /// The turn.
        turn: u64,
        /// How the markup was understood.
        text: String,
    },
    /// The agent stops without an answer.
    Stopped {
        /// The reason, as a word.
        reason: String,
        /// The reason, as a sentence.
        text: String,
    },
}

fn yes() -> bool {
    true
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it")]
fn is_yes(it: &bool) -> bool {
    *it
}
