//! Payloads that record a model's reasoning, the form of its answers, and its failures.

use pumphouse::model::{Error, Format, Signed, Wire};
use pumphouse::prelude::*;
use pumphouse::wire::Json;

/// The reasoning that a model shows before its reply.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/agent/v1", rename = "cognition_reasoning", bookkeeping)]
pub struct CognitionReasoning {
    /// The turn.
    #[payload(attribute)]
    pub turn: u64,
    /// Whether the reasoning is incomplete.
    #[payload(attribute)]
    pub is_partial: bool,
    /// Whether an error or an interrupt cut it off.
    #[payload(attribute)]
    pub was_interrupted: bool,
    /// The text.
    #[payload(text, example = "It may rain.")]
    pub text: String,
}

/// Blocks of a reply that the provider signed or encrypted, mostly reasoning. Later prompts send
/// them back unchanged with the reply's calls, if the wire is the same.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/agent/v1", rename = "reasoning-signed", bookkeeping)]
pub struct ReasoningSigned {
    /// The turn.
    #[payload(attribute)]
    pub turn: u64,
    /// The wire: the provider's protocol.
    #[payload(attribute, example = "anthropic-messages")]
    pub wire: String,
    /// The blocks, in order.
    pub block: Vec<SignedBlock>,
}

/// A signed or encrypted block.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
pub struct SignedBlock {
    /// Its place: 0 before the reply's text, 1 after it, 2 after the first call, and so on.
    #[payload(attribute)]
    pub place: u64,
    /// The block, in the JSON form of the wire.
    #[payload(text, example = "{}")]
    pub json: String,
}

impl ReasoningSigned {
    /// Collects the signed blocks of a turn. None if there are no such blocks.
    pub fn of(turn: u64, all: &[Signed]) -> Option<ReasoningSigned> {
        let wire = all.first()?.wire.name().to_owned();
        let block = |it: &Signed| SignedBlock { place: it.place, json: it.json.clone() };
        Some(ReasoningSigned { turn, wire, block: all.iter().map(block).collect() })
    }

    /// Returns the blocks in the form that prompts need. Empty if this program doesn't know the
    /// wire.
    pub fn signed(self) -> Vec<Signed> {
        let Ok(wire) = self.wire.parse::<Wire>() else { return Vec::new() };
        self.block.into_iter().map(|it| Signed::new(wire, it.place, it.json)).collect()
    }
}

/// A request to a model failed; it was retried, or another model was asked. The error of a turn's
/// last attempt is in the turn's `cognition_out`.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/agent/v1", rename = "model-failed", bookkeeping)]
pub struct ModelFailed {
    /// The turn.
    #[payload(attribute)]
    pub turn: u64,
    /// The model, if the agent has several.
    #[payload(attribute, example = "large")]
    pub model: Option<String>,
    /// What kind of failure it was, such as `rate-limited`, `failed` or `unreachable`.
    #[payload(attribute, example = "rate-limited")]
    pub kind: String,
    /// The HTTP status, if any.
    #[payload(attribute)]
    pub status: Option<u32>,
    /// For how many milliseconds the provider wants no request, if it said so.
    #[payload(attribute)]
    pub retry_after_ms: Option<u64>,
    /// What happened, in a sentence.
    #[payload(text, example = "llm.example.org answered 429 Too Many Requests")]
    pub text: String,
}

impl ModelFailed {
    /// Records an error of a model in a turn.
    pub fn of(turn: u64, error: &Error) -> ModelFailed {
        let mut it = error.clone();
        // The text leaves out the model, which has a field of its own, and the earlier attempts.
        (it.model, it.tried) = (None, Vec::new());
        let millis = |it: std::time::Duration| u64::try_from(it.as_millis()).unwrap_or(u64::MAX);
        ModelFailed {
            turn,
            model: error.model.as_deref().map(str::to_owned),
            kind: error.kind.as_str().to_owned(),
            status: error.status.map(u32::from),
            retry_after_ms: error.retry_after.map(millis),
            text: it.to_string(),
        }
    }
}

/// An agent's model began to fail. The thread `organism` records this.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/agent/v1", rename = "model-down")]
pub struct ModelDown {
    /// The agent.
    #[payload(attribute, example = "octopus")]
    pub agent: String,
    /// The thread whose turn failed.
    #[payload(attribute, example = "sess-k3v9x2ma")]
    pub thread: String,
    /// The error, in a sentence.
    #[payload(text, example = "llm.example.org answered 503 Service Unavailable")]
    pub text: String,
}

/// An agent's model works again. The thread `organism` records this.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/agent/v1", rename = "model-up")]
pub struct ModelUp {
    /// The agent.
    #[payload(attribute, example = "octopus")]
    pub agent: String,
    /// The thread whose turn had a reply.
    #[payload(attribute, example = "sess-k3v9x2ma")]
    pub thread: String,
}

/// The form of a model's answers.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
pub struct AnswerForm {
    /// Its name.
    #[payload(attribute, example = "report")]
    pub name: String,
    /// Its description.
    #[payload(example = "What was found.")]
    pub description: String,
    /// The JSON Schema of an answer.
    pub schema: Json,
}

impl From<&Format> for AnswerForm {
    fn from(Format { name, description, schema, .. }: &Format) -> AnswerForm {
        let (name, description) = (name.clone(), description.clone());
        AnswerForm { name, description, schema: Json(schema.clone()) }
    }
}

impl From<AnswerForm> for Format {
    fn from(AnswerForm { name, description, schema }: AnswerForm) -> Format {
        Format::new(name, description, schema.0)
    }
}
