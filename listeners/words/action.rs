//! The payloads that the listener `action` takes and sends.

use std::fmt;

use pumphouse::prelude::*;
use pumphouse::schema::json;
use pumphouse::wire::SignedDuration;
use pumphouse::xml::is_character;
use serde_json::Value;

/// The name of the listener `action`.
pub const NAME: &str = "action";

/// Something to be done: a call of another listener, when the actions that it depends on are done.
/// The answer is `action-result`.
#[derive(Clone, Debug, PartialEq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/agent/v1")]
pub struct Action {
    /// What it is called: others depend on it by this name, and refer to its result.
    #[payload(attribute, example = "fetch")]
    pub id: String,
    /// The turn it belongs to; without one, it stands alone.
    #[payload(attribute, no_example)]
    pub turn: Option<u64>,
    /// What sort of listener it calls.
    #[payload(attribute, rename = "type")]
    pub kind: ActionKind,
    /// Who waits for it.
    #[payload(attribute)]
    pub mode: Mode,
    /// How it was written.
    #[payload(attribute)]
    pub dialect: Option<Dialect>,
    /// Whether people and followers are shown it; they are unless said.
    #[payload(attribute)]
    pub show: Option<bool>,
    /// The name by which its result is referred to, as in `$page`.
    #[payload(attribute, example = "page")]
    pub output_key: Option<String>,
    /// How long each attempt may take; five minutes unless said.
    #[payload(attribute, example = "PT30S")]
    pub timeout: Option<SignedDuration>,
    /// How often it is tried again.
    #[payload(attribute)]
    pub retry: Option<u32>,
    /// What its failure means for those that depend on it.
    #[payload(attribute)]
    pub on_error: Option<OnError>,
    /// A listener that takes one payload, a payload, or `listener.payload`.
    #[payload(example = "calculate")]
    pub name: String,
    /// The actions that must be done before.
    #[payload(no_example)]
    pub depends_on: Vec<String>,
    /// The payload that it sends, as a JSON object.
    #[payload(example = "{\"expression\":\"6*7\"}")]
    pub parameters: Option<String>,
    /// The same as elements.
    #[payload(no_example)]
    pub elements: Option<Elements>,
}

/// Parameters that were written as elements.
#[derive(Clone, Debug, PartialEq, Payload)]
pub struct Elements {
    /// An element that holds them.
    pub parameters: Element,
}

/// What sort of listener an action calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Payload)]
pub enum ActionKind {
    /// One that does one thing for whoever asks.
    #[default]
    Tool,
    /// One whose mind is a model.
    Agent,
    /// One that keeps something: a database, a cache.
    Relic,
    /// One that does several things in an order.
    Workflow,
    /// A model, for a part of the work.
    Llm,
    /// One that changes the agent's own surroundings.
    Internal,
    /// The same, by its older name.
    #[payload(rename = "context_feed")]
    ContextFeed,
}

/// Who waits for an action.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Payload)]
pub enum Mode {
    /// The later actions of its turn, and the next turn.
    #[default]
    Sync,
    /// Nobody: its result may land in a later turn.
    Async,
    /// Nobody, and its result wakes nobody either.
    #[payload(rename = "fire_and_forget")]
    FireAndForget,
}

/// How a call was written in a model's reply.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Payload)]
pub enum Dialect {
    /// As an `<action>`.
    #[default]
    Tags,
    /// As a `<tool_use>`.
    ToolUse,
    /// As JSON in the text.
    Json,
    /// As a tool call of the model's own protocol.
    Native,
}

/// What an action's failure means for those that depend on it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Payload)]
pub enum OnError {
    /// They are skipped.
    #[default]
    Fail,
    /// They run, and its result is null.
    Skip,
    /// It is tried again, once unless `retry` says more; then they are skipped.
    Retry,
}

/// What came of an action.
#[derive(Clone, Debug, PartialEq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/agent/v1", reserved)]
pub struct ActionResult {
    /// The action.
    #[payload(attribute, example = "fetch")]
    pub id: String,
    /// The turn it belongs to.
    #[payload(attribute)]
    pub turn: Option<u64>,
    /// Its place in the thread.
    #[payload(attribute)]
    pub of: u64,
    /// What was called.
    #[payload(attribute, example = "calculate")]
    pub name: String,
    /// What came of it.
    #[payload(attribute)]
    pub status: Status,
    /// How often it was tried.
    #[payload(attribute)]
    pub attempts: u32,
    /// How it was written.
    #[payload(attribute)]
    pub dialect: Option<Dialect>,
    /// Whether people and followers are shown it; they are unless said.
    #[payload(attribute)]
    pub show: Option<bool>,
    /// The action whose failure had it skipped.
    #[payload(attribute)]
    pub because: Option<String>,
    /// The payload that was answered.
    #[payload(attribute, example = "{https://xml-pipeline.org/ns/calculate/v1}calculated")]
    pub answer: Option<String>,
    /// What is odd about it, though it ran.
    pub warning: Vec<String>,
    /// What went wrong.
    pub error: Option<ActionError>,
    /// The value of what was answered; null where nothing was.
    pub value: Option<ResultValue>,
}

impl ActionResult {
    /// The value of the answer as JSON. Null if the answer has no payload; None if there was no
    /// answer.
    #[must_use]
    pub fn value(&self) -> Option<Value> {
        self.value.as_ref().map(ResultValue::json)
    }

    /// The error in a sentence. The error's code comes first, unless the status says the same.
    #[must_use]
    pub fn why(&self) -> Option<String> {
        let error = self.error.as_ref()?;
        let is_said = error.code == self.status.as_str();
        Some(if is_said { error.message.clone() } else { error.to_string() })
    }

    /// The result as a model reads it: the value or the error, then the warnings.
    #[must_use]
    pub fn said(&self) -> String {
        // In results of 0.1.0, the error doesn't include the listener's answer, so the value is
        // added.
        let value = self.value.as_ref().filter(|it| self.error.is_none() || it.form.is_none());
        let value = value.map(|it| match it.json() {
            Value::String(text) => text,
            value => value.to_string(),
        });
        let said: Vec<String> = self.why().into_iter().chain(value).collect();
        let mut text = said.join(", ");
        for warning in &self.warning {
            text += &format!("\nwarning: {warning}");
        }
        text
    }
}

/// The value of an answer, as it is written: a text as it is, all else as JSON.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
pub struct ResultValue {
    /// How it is written; 0.1.0 wrote JSON, and didn't say so.
    #[payload(attribute)]
    pub form: Option<ValueForm>,
    /// The value.
    #[payload(text, example = "42")]
    pub text: String,
}

impl ResultValue {
    /// The value as JSON.
    #[must_use]
    pub fn json(&self) -> Value {
        match self.form {
            Some(ValueForm::Text) => Value::String(self.text.clone()),
            Some(ValueForm::Json) | None => {
                json::read(&self.text).unwrap_or_else(|_| Value::String(self.text.clone()))
            }
        }
    }
}

impl From<Value> for ResultValue {
    /// A text with characters that XML can't hold is written as JSON, which has escapes for them.
    fn from(value: Value) -> ResultValue {
        let (form, text) = match value {
            Value::String(it) if it.chars().all(is_character) => (ValueForm::Text, it),
            it => (ValueForm::Json, it.to_string()),
        };
        ResultValue { form: Some(form), text }
    }
}

/// How the value of an answer is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Payload)]
pub enum ValueForm {
    /// A text, as it is.
    Text,
    /// An object, a list, a number, a truth, or null.
    Json,
}

/// What went wrong with an action.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
pub struct ActionError {
    /// What sort of mistake it is: a word of its own, or the number of a fault.
    #[payload(attribute, example = "cycle")]
    pub code: String,
    /// What is wrong, and what would be right.
    #[payload(text, example = "a depends on b; b depends on a")]
    pub message: String,
}

impl fmt::Display for ActionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code, self.message)
    }
}

/// What came of an action, in a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Payload)]
pub enum Status {
    /// It was answered.
    Ok,
    /// It was not, or with an error.
    Failed,
    /// It didn't run, since something that it depends on failed.
    Skipped,
    /// It was not answered in its time.
    TimedOut,
    /// It was taken back.
    Cancelled,
    /// It began, and whether it had its effect nobody knows.
    Unknown,
}

impl Status {
    /// The status as a word, as payloads have it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Status::Ok => "ok",
            Status::Failed => "failed",
            Status::Skipped => "skipped",
            Status::TimedOut => "timed-out",
            Status::Cancelled => "cancelled",
            Status::Unknown => "unknown",
        }
    }
}

/// Takes an action back, or all that aren't done. What is done stays done; what runs is heard no
/// more. The answer is `actions-cancelled`, and each of them has its `action-result`.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/agent/v1")]
pub struct CancelAction {
    /// The action; all of them unless said.
    #[payload(attribute, example = "fetch")]
    pub id: Option<String>,
    /// Those of this turn only.
    #[payload(attribute)]
    pub turn: Option<u64>,
    /// Whose: every agent's in the thread unless said. A listener can take back its own only.
    #[payload(attribute, example = "researcher")]
    pub agent: Option<String>,
    /// Why.
    #[payload(attribute)]
    pub reason: Option<String>,
}

/// Actions were taken back.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/agent/v1", reserved)]
pub struct ActionsCancelled {
    /// How many.
    #[payload(attribute)]
    pub count: u64,
}

/// An action can't be sent to anybody as it is: for the listener `action` itself.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/agent/v1", reserved, bookkeeping)]
pub struct ActionRefused {
    /// The action's place in the thread.
    #[payload(attribute)]
    pub of: u64,
    /// Which attempt it was.
    #[payload(attribute)]
    pub attempt: u32,
    /// What sort of mistake it is.
    #[payload(attribute, example = "parameters")]
    pub code: String,
    /// What is wrong.
    #[payload(text, example = "$ needs the property \"expression\"")]
    pub message: String,
}

/// The next time at which something about an agent's actions is due: for the listener `action`
/// itself.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/agent/v1", reserved, bookkeeping)]
pub struct ActionsDue {
    /// When, in microseconds since the epoch.
    #[payload(attribute)]
    pub at: u64,
    /// The place of the action that it is about: once that is done, it comes at once.
    #[payload(attribute)]
    pub of: u64,
}
