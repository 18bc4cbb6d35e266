//! The payloads that the listener `action` takes and sends.

use std::fmt;

use pumphouse::prelude::*;
use pumphouse::schema::json;
use pumphouse::wire::{Json, SignedDuration};
use pumphouse::xml::is_character;
use serde_json::Value;

use super::super::metadata::words::Handed;

/// The name of the listener `action`.
pub const NAME: &str = "action";

/// The error code of an action that didn't run because its condition doesn't hold.
pub const NOT_TAKEN: &str = "condition";

/// The name by which conditions refer to the agent's metadata.
pub const METADATA: &str = "metadata";

/// Maximum number of items with which one action is called.
pub const ITEMS_MAX: usize = 100;

/// Maximum number of an action's partial results that other actions take.
pub const PARTS_MAX: usize = 100;

/// The common prefix of the namespaces of workflows' payloads.
pub const WORKFLOWS: &str = "https://xml-pipeline.org/ns/workflow/";

/// Calls another listener, once the actions that it depends on are done. The answer is
/// `action-result`.
#[derive(Clone, Debug, Default, PartialEq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/agent/v1")]
pub struct Action {
    /// Its name: other actions depend on it and refer to its result by this name.
    #[payload(attribute, example = "fetch")]
    pub id: String,
    /// The provider's id of a native call, which is any text, with escapes for what XML lacks;
    /// absent if it is the same as `id`, empty if the provider gave none.
    #[payload(attribute, no_example)]
    pub call: Option<String>,
    /// The agent's turn that wrote it; absent if no turn wrote it.
    #[payload(attribute, no_example)]
    pub turn: Option<u64>,
    /// The type of listener that it calls.
    #[payload(attribute, rename = "type")]
    pub kind: ActionKind,
    /// What waits for it.
    #[payload(attribute)]
    pub mode: Mode,
    /// The form in which it was written.
    #[payload(attribute)]
    pub dialect: Option<Dialect>,
    /// Whether people and followers see it; default true.
    #[payload(attribute)]
    pub show: Option<bool>,
    /// The name by which its result is referred to, as in `$page`.
    #[payload(attribute, example = "page")]
    pub output_key: Option<String>,
    /// How long each attempt may take; default five minutes.
    #[payload(attribute, example = "PT30S")]
    pub timeout: Option<SignedDuration>,
    /// Whether it has no default timeout, since it calls an agent or a workflow. Absent means that
    /// it has one.
    #[payload(attribute, no_example)]
    pub untimed: Option<bool>,
    /// How many retries it has; default 0.
    #[payload(attribute)]
    pub retry: Option<u32>,
    /// How the pauses between attempts grow; default `exponential`.
    #[payload(attribute)]
    pub backoff: Option<Backoff>,
    /// The pause after the first attempt; default one second.
    #[payload(attribute, no_example)]
    pub retry_delay: Option<SignedDuration>,
    /// The longest pause between two attempts.
    #[payload(attribute, no_example)]
    pub retry_delay_max: Option<SignedDuration>,
    /// What its failure means for actions that depend on it.
    #[payload(attribute)]
    pub on_error: Option<OnError>,
    /// What a called agent gets of the calling agent's metadata; by default as the manifest says.
    #[payload(attribute, no_example)]
    pub metadata: Option<Handed>,
    /// The number of the `<parallel>` block of its turn in which it stands.
    #[payload(attribute, no_example)]
    pub parallel: Option<u64>,
    /// How many actions of the `<parallel>` block run at once; default all.
    #[payload(attribute, no_example)]
    pub parallel_max: Option<u64>,
    /// Whether it is called once for each partial result of the action that it refers to; default
    /// false.
    #[payload(attribute, no_example)]
    pub stream: Option<bool>,
    /// Which texts of its parameters are references; default `all` in the form `tags`, and `none`
    /// in the other forms.
    #[payload(attribute, no_example)]
    pub references: Option<References>,
    /// What it calls: a listener with a single payload, a payload, or `listener.payload`.
    #[payload(example = "calculate")]
    pub name: String,
    /// The actions that must be done before.
    #[payload(no_example)]
    pub depends_on: Vec<String>,
    /// The payload that it sends, as a JSON object.
    #[payload(example = "{\"expression\":\"6*7\"}")]
    pub parameters: Option<String>,
    /// The payload as elements, instead of `parameters`.
    #[payload(no_example)]
    pub elements: Option<Elements>,
    /// The texts of `parameters` and `compensate` that an author's template made.
    #[payload(no_example)]
    pub template_text: Vec<TemplateText>,
    /// The metadata fields that the parameters refer to, as a JSON object. Their values are those
    /// at the time when the agent wrote the action.
    #[payload(no_example)]
    pub metadata_fields: Option<Json>,
    /// The condition under which it runs; by default it always runs.
    #[payload(no_example)]
    pub when: Option<When>,
    /// The list for whose items it is called, one item after another; by default it is called once.
    #[payload(no_example)]
    pub for_each: Option<ForEach>,
    /// The call that undoes it: a JSON object with `name` and `parameters`.
    #[payload(no_example)]
    pub compensate: Option<String>,
}

/// The condition under which an action runs. It is evaluated when all actions that it refers to are
/// done.
#[derive(Clone, Debug, Default, PartialEq, Eq, Payload)]
pub struct When {
    /// The metadata fields that the condition refers to, as a JSON object. Their values are those
    /// at the time when the agent wrote the action.
    #[payload(attribute, no_example)]
    pub metadata: Option<String>,
    /// The condition.
    #[payload(text, example = "sum > 3")]
    pub condition: String,
}

/// The list for whose items an action is called.
#[derive(Clone, Debug, Default, PartialEq, Eq, Payload)]
pub struct ForEach {
    /// The name that stands for the item.
    #[payload(attribute, example = "page")]
    pub var: String,
    /// The number of the `<foreach>` block of its turn that has the list. If an action refers to
    /// another action of this block, the reference means the result for the same item.
    #[payload(attribute)]
    pub block: u64,
    /// How many items there may be; default 100.
    #[payload(attribute, no_example)]
    pub max: Option<u64>,
    /// A list in JSON, or a reference to one.
    #[payload(text, example = "search.pages")]
    pub list: String,
}

/// Parameters that were written as elements.
#[derive(Clone, Debug, PartialEq, Payload)]
pub struct Elements {
    /// An element that holds them.
    pub parameters: Element,
}

/// A text that an author's template made: the text of the template, with values from the agent in
/// it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Payload)]
pub struct TemplateText {
    /// Its place in the action, as a JSON pointer.
    #[payload(attribute, example = "/parameters/url")]
    pub at: String,
    /// The references in it: for each, its first byte and the byte after it.
    #[payload(attribute, list, no_example)]
    pub references: Option<Vec<u64>>,
}

/// Which texts of an action's parameters are references. A reference is always a whole text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Payload)]
pub enum References {
    /// `$name`, `${name}` and `${name.path}`.
    #[default]
    All,
    /// `${name}` and `${name.path}`, where the name isn't that of a called listener.
    Braced,
    /// No texts, except for those that name the item of the action's list, or the source of its
    /// partial results.
    None,
}

/// Marks a listener that runs programs for its callers.
#[derive(Clone, Copy, Debug)]
pub struct CommandLine {
    /// The field of its payload that lists a program and its arguments.
    pub field: &'static str,
}

/// The type of listener that an action calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Payload)]
pub enum ActionKind {
    /// A listener that does one thing.
    #[default]
    Tool,
    /// An agent.
    Agent,
    /// A listener that stores data: a database, a cache.
    Relic,
    /// A listener that does several things in order.
    Workflow,
    /// A listener that asks a model once.
    Llm,
    /// A system listener, which changes the agent's own surroundings.
    Internal,
    /// The older name of `internal`.
    #[payload(rename = "context_feed")]
    ContextFeed,
}

/// What waits for an action.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Payload)]
pub enum Mode {
    /// The later actions of its turn, and the next turn.
    #[default]
    Sync,
    /// Nothing: its result may come in a later turn.
    Async,
    /// Nothing, and its result starts no turn.
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

/// What an action's failure means for actions that depend on it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Payload)]
pub enum OnError {
    /// Dependent actions are skipped.
    #[default]
    Fail,
    /// Dependent actions run, and the result of the failed action is null.
    Skip,
    /// The action is tried again, once unless `retry` says more. If it still fails, dependent
    /// actions are skipped.
    Retry,
}

/// How the pauses between attempts grow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Payload)]
pub enum Backoff {
    /// Each pause is twice the one before.
    #[default]
    Exponential,
    /// Each pause is longer than the one before, by the length of the first pause.
    Linear,
    /// All pauses are the same.
    None,
}

/// The result of an action.
#[derive(Clone, Debug, PartialEq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/agent/v1", reserved)]
pub struct ActionResult {
    /// The action.
    #[payload(attribute, example = "fetch")]
    pub id: String,
    /// Its turn.
    #[payload(attribute)]
    pub turn: Option<u64>,
    /// The number of the action's entry.
    #[payload(attribute)]
    pub of: u64,
    /// The listener or payload that was called.
    #[payload(attribute, example = "calculate")]
    pub name: String,
    /// How the action ended.
    #[payload(attribute)]
    pub status: Status,
    /// How many attempts there were.
    #[payload(attribute)]
    pub attempts: u32,
    /// The form in which it was written.
    #[payload(attribute)]
    pub dialect: Option<Dialect>,
    /// Whether people and followers see it; default true.
    #[payload(attribute)]
    pub show: Option<bool>,
    /// The action whose failure caused a skip.
    #[payload(attribute)]
    pub because: Option<String>,
    /// The name of the answer's payload.
    #[payload(attribute, example = "{https://xml-pipeline.org/ns/calculate/v1}calculated")]
    pub answer: Option<String>,
    /// What a prompt shows beside the value: each note of the answer, as a line such as
    /// `[next: 201]`.
    pub note: Vec<String>,
    /// What is wrong with the call, though it ran.
    pub warning: Vec<String>,
    /// What went wrong.
    pub error: Option<ActionError>,
    /// The answer's value; null if the answer has no payload.
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

    /// Whether the action didn't run since its condition doesn't hold. Such a skip is no failure.
    #[must_use]
    pub fn is_not_taken(&self) -> bool {
        let code = self.error.as_ref().map(|it| &*it.code);
        self.status == Status::Skipped && code == Some(NOT_TAKEN)
    }

    /// The result as a model reads it: the value or the error, then the notes and the warnings.
    #[must_use]
    pub fn said(&self) -> String {
        let value = self.value.as_ref().filter(|_| self.error.is_none());
        let value = value.map(|it| match it.json() {
            Value::String(text) => text,
            value => value.to_string(),
        });
        let said: Vec<String> = self.why().into_iter().chain(value).collect();
        said.join(", ") + &self.beside()
    }

    /// What stands behind the value or the error: the notes and the warnings, on lines of their
    /// own. Empty if there are none.
    #[must_use]
    pub fn beside(&self) -> String {
        let warnings = self.warning.iter().map(|it| format!("\nwarning: {it}"));
        self.note.iter().map(|it| format!("\n{it}")).chain(warnings).collect()
    }
}

/// The value of an answer: a text as it is, anything else as JSON.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
pub struct ResultValue {
    /// How it is written.
    #[payload(attribute)]
    pub form: ValueForm,
    /// The value.
    #[payload(text, example = "42")]
    pub text: String,
}

impl ResultValue {
    /// The value as JSON.
    #[must_use]
    pub fn json(&self) -> Value {
        match self.form {
            ValueForm::Text => Value::String(self.text.clone()),
            ValueForm::Json => {
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
            it => (ValueForm::Json, json::text(&it)),
        };
        ResultValue { form, text }
    }
}

/// How the value of an answer is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Payload)]
pub enum ValueForm {
    /// A text, as it is.
    Text,
    /// As JSON: any other value, or a text that XML can't hold.
    Json,
}

/// What went wrong with an action.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
pub struct ActionError {
    /// The kind of error: a word, or the number of a fault.
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

/// How an action ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Payload)]
pub enum Status {
    /// It was answered.
    Ok,
    /// It was answered with an error, or not at all.
    Failed,
    /// It didn't run, since an action that it depends on failed, or its condition doesn't hold.
    Skipped,
    /// No answer came in time.
    TimedOut,
    /// It was cancelled.
    Cancelled,
    /// It began; whether it had its effect is unknown.
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

/// The value of the attribute `reason` of an error that says: nobody knows whether the call had its
/// effect. An action whose listener answers such an error has the status `unknown`.
pub const UNKNOWN: &str = "unknown";

/// Cancels an action, or all that aren't done. Results stay; later answers are ignored. The answer
/// is `actions-cancelled`, and each cancelled action has its `action-result`.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/agent/v1")]
pub struct CancelAction {
    /// The action; by default all.
    #[payload(attribute, example = "fetch")]
    pub id: Option<String>,
    /// Only actions of this turn.
    #[payload(attribute)]
    pub turn: Option<u64>,
    /// Only actions of this agent; by default every agent's. A listener can cancel only its own.
    #[payload(attribute, example = "researcher")]
    pub agent: Option<String>,
    /// Why.
    #[payload(attribute)]
    pub reason: Option<String>,
}

/// Actions were cancelled.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/agent/v1", reserved)]
pub struct ActionsCancelled {
    /// How many.
    #[payload(attribute)]
    pub count: u64,
}

/// An action can't be sent as it is. Internal to the listener `action`.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/agent/v1", reserved, bookkeeping)]
pub struct ActionRefused {
    /// The number of the action's entry.
    #[payload(attribute)]
    pub of: u64,
    /// Which attempt it was.
    #[payload(attribute)]
    pub attempt: u32,
    /// The kind of error.
    #[payload(attribute, example = "parameters")]
    pub code: String,
    /// What is wrong.
    #[payload(text, example = "$ needs the property \"expression\"")]
    pub message: String,
}

/// Whether an action runs, and for which items. Internal to the listener `action`.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/agent/v1", reserved, bookkeeping)]
pub struct ActionDecided {
    /// The number of the action's entry.
    #[payload(attribute)]
    pub of: u64,
    /// Whether it runs.
    #[payload(attribute)]
    pub runs: bool,
    /// The kind of error if it doesn't run: `condition` if its condition doesn't hold.
    #[payload(attribute, no_example)]
    pub code: Option<String>,
    /// The condition and the values that it saw, or what is wrong.
    #[payload(example = "sum > 3, where sum is 4")]
    pub because: Option<String>,
    /// The items for which it is called, as a JSON list. Each item is wrapped in a list of its own.
    /// Null stands for an item for which the condition doesn't hold.
    #[payload(no_example)]
    pub items: Option<String>,
}

/// A part of an answer, sent while the work goes on. The answer itself comes last, and is complete.
/// Only the listeners `action` and `feed` know partial results. Any other asker takes each partial
/// result for an answer.
#[derive(Clone, Debug, PartialEq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/agent/v1")]
pub struct PartialResult {
    /// Its place among the parts of the answer, from 1. Work that begins again sends its parts
    /// under the same numbers, and parts that came before are ignored.
    #[payload(attribute, example = "1")]
    pub number: u64,
    /// The part.
    pub payload: Element,
}

/// The next time at which an agent's actions need work. Internal to the listener `action`.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/agent/v1", reserved, bookkeeping)]
pub struct ActionsDue {
    /// When, in microseconds since the epoch.
    #[payload(attribute)]
    pub at: u64,
    /// The number of the action's entry. If the action ends before the time, this payload is
    /// delivered then.
    #[payload(attribute)]
    pub of: u64,
}
