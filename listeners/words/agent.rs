//! The payloads that agents send, and those that they record for themselves and for readers of the
//! log.

use pumphouse::model::Tool;
use pumphouse::prelude::*;
use pumphouse::schema::Schema;
use pumphouse::wire::budget::RaiseBudget;
use pumphouse::wire::{Json, SignedDuration};

use super::super::thread::fork::ForkThread;
use super::super::todo::words::StepsOpen;
use super::action::{Action, ActionResult};
pub use super::action_limits::Limited;
pub use super::model::{
    AnswerForm, CognitionReasoning, ModelDown, ModelFailed, ModelUp, ReasoningSigned,
};
use super::operator::{RetryRun, SwitchTrigger};

/// The version of the rules for agents. `cognition_in` records the version that a turn follows. A
/// change of the rules takes the next number, here and in the log's format, so that a program reads
/// no turn of other rules.
pub const RULES: u32 = 1;

/// A turn of an agent begins. This says how the turn's prompt was made.
///
/// The prompt itself isn't recorded. It begins with the newest `cognition_system`, and the thread
/// up to `until` follows, in the form `rendering`. The tools are those of the newest
/// `cognition_tools`. `digest` shows whether a prompt that is made again is the same.
#[derive(Clone, Debug, PartialEq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/agent/v1", rename = "cognition_in", bookkeeping)]
pub struct CognitionIn {
    /// The turn, from 1 in each thread.
    #[payload(attribute)]
    pub turn: u64,
    /// The model's name.
    #[payload(attribute, example = "local")]
    pub model: String,
    /// The last entry that the model is shown.
    #[payload(attribute)]
    pub until: u64,
    /// The number of the prompt's rendering.
    #[payload(attribute)]
    pub rendering: u32,
    /// The mark of the thread, with which lines of the pump's own end in the prompt.
    #[payload(attribute, example = "#7f3a9c")]
    pub mark: String,
    /// The version of the agent's rules.
    #[payload(attribute)]
    pub rules: u32,
    /// The asker of the turn's work: an identity or a listener.
    #[payload(attribute, example = "console")]
    pub asker: Option<String>,
    /// Whether the agent has no further turn.
    #[payload(attribute)]
    pub is_last: Option<bool>,
    /// Messages up to `until` that the prompt leaves out: they wait until the current work is done.
    #[payload(attribute, list, no_example)]
    pub waiting: Option<Vec<u64>>,
    /// BLAKE3 of the prompt, in hexadecimal.
    #[payload(attribute)]
    pub digest: String,
    /// How many bytes the prompt has.
    #[payload(attribute)]
    pub bytes: u64,
    /// About how many tokens the prompt has, by the model's own estimate.
    #[payload(attribute)]
    pub tokens_estimated: Option<u64>,
    /// When the actions of this turn begin.
    #[payload(attribute)]
    pub dispatch: Dispatch,
    /// The limits of its actions, if not the defaults.
    pub action_limits: Option<Limited>,
    /// The most tokens that the reply may have, if set.
    #[payload(attribute)]
    pub max_tokens: Option<u32>,
    /// The model's sampling temperature, if set.
    #[payload(attribute)]
    pub temperature: Option<f64>,
    /// How many bytes of a result the prompt shows, if not the default.
    #[payload(attribute, no_example)]
    pub result_bytes_max: Option<u64>,
    /// The media types of attachments that the prompt shows, such as `image/*`.
    #[payload(no_example)]
    pub attachments: Vec<String>,
    /// The feeds that the prompt leaves out, since all feeds together would be too large.
    #[payload(rename = "skipped-feed", no_example)]
    pub skipped: Vec<SkippedFeed>,
}

/// A feed that a prompt leaves out, since all feeds together would be too large.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
pub struct SkippedFeed {
    /// The feed.
    #[payload(attribute, example = "recent_errors")]
    pub id: String,
    /// How many bytes its block has.
    #[payload(attribute, example = "9000")]
    pub bytes: u64,
    /// How many bytes the feeds before it have.
    #[payload(attribute, example = "60000")]
    pub before: u64,
    /// How many bytes all feeds may have: `feeds_bytes_max`.
    #[payload(attribute, rename = "max", example = "65536")]
    pub bytes_max: u64,
}

/// When the actions of a turn begin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Payload)]
pub enum Dispatch {
    /// Each when its tag closes.
    #[default]
    Immediate,
    /// Several together: once there are enough, or after a delay.
    Batched,
    /// All when the turn is over.
    AfterResponse,
}

/// The system text of a prompt. Recorded when it is new to the thread.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/agent/v1", rename = "cognition_system", bookkeeping)]
pub struct CognitionSystem {
    /// The text.
    #[payload(text, example = "You are a researcher.")]
    pub text: String,
}

/// The tools that a model is offered in its provider's own protocol. Recorded when they are new to
/// the thread.
#[derive(Clone, Debug, Default, PartialEq, Eq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/agent/v1", rename = "cognition_tools", bookkeeping)]
pub struct CognitionTools {
    /// The tools, in their order.
    pub tool: Vec<Offered>,
    /// The form that its answers must have, if any.
    #[payload(no_example)]
    pub format: Option<AnswerForm>,
}

/// A tool.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
pub struct Offered {
    /// Its name.
    #[payload(attribute, example = "calculate")]
    pub name: String,
    /// What it is for.
    #[payload(example = "Computes.")]
    pub description: String,
    /// The JSON Schema of its parameters.
    pub parameters: Json,
}

impl From<&[Tool]> for CognitionTools {
    fn from(all: &[Tool]) -> CognitionTools {
        let offered = |it: &Tool| Offered {
            name: it.name.clone(),
            description: it.description.clone(),
            parameters: Json(it.parameters.clone()),
        };
        CognitionTools { tool: all.iter().map(offered).collect(), format: None }
    }
}

impl From<CognitionTools> for Vec<Tool> {
    fn from(it: CognitionTools) -> Vec<Tool> {
        let tools = it.tool.into_iter();
        tools.map(|it| Tool::new(it.name, it.description, it.parameters.0)).collect()
    }
}

/// A turn is over: the model's reply as it wrote it.
#[derive(Clone, Debug, PartialEq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/agent/v1", rename = "cognition_out")]
pub struct CognitionOut {
    /// The turn.
    #[payload(attribute)]
    pub turn: u64,
    /// Why the reply ended: `end`, `stop-text`, `max-tokens`, `calls`, `filtered`, `interrupted`,
    /// `stopped` (by the pump), `context-full` (the provider refused the prompt as too long),
    /// `error`, or a word of the provider.
    #[payload(attribute, example = "end")]
    pub stop: String,
    /// Whether the reply is incomplete.
    #[payload(attribute)]
    pub is_partial: bool,
    /// Whether the reply was cut off: by a limit of length, a failure, an interrupt or a stop of
    /// the pump; see `stop` and `error`.
    #[payload(attribute)]
    pub truncated: bool,
    /// What went wrong.
    #[payload(attribute)]
    pub error: Option<String>,
    /// Whether the provider refused for good, so that a retry is of no use: its key, model or
    /// request is wrong, or no money is left.
    #[payload(attribute)]
    pub refused: Option<bool>,
    /// For how many milliseconds the agent waits before it asks its rate-limited provider again.
    #[payload(attribute)]
    pub waits_ms: Option<u64>,
    /// How much of the reply came, in percent, if known.
    #[payload(attribute)]
    pub completion_percentage: Option<u32>,
    /// Tokens of the prompt.
    #[payload(attribute)]
    pub tokens_in: Option<u64>,
    /// Tokens of the reply.
    #[payload(attribute)]
    pub tokens_out: Option<u64>,
    /// Of the prompt's tokens, those read from the provider's cache, if any.
    #[payload(attribute, no_example)]
    pub tokens_cached: Option<u64>,
    /// Of the prompt's tokens, those written to the provider's cache, if any.
    #[payload(attribute, no_example)]
    pub tokens_cache_written: Option<u64>,
    /// Of the reply's tokens, those of reasoning, if any.
    #[payload(attribute, no_example)]
    pub tokens_reasoning: Option<u64>,
    /// The model that answered, if the agent has several.
    #[payload(attribute, no_example)]
    pub answered_by: Option<String>,
    /// Whether the reply was only text: no action, no response, no message.
    #[payload(attribute)]
    pub is_idle: bool,
    /// The places of native calls in the reply: for each, its first byte and the byte after it.
    #[payload(attribute, list, no_example)]
    pub calls: Option<Vec<u64>>,
    /// Whether a response of a reply that was cut was delivered as far as it goes.
    #[payload(attribute, no_example)]
    pub went_out: Option<bool>,
    /// Whether the agent asked itself for another turn, by a payload of its own name.
    #[payload(attribute)]
    pub wrote_root: Option<bool>,
    /// What the agent waits for by an `<await>`: names of actions, or nothing for all under way.
    #[payload(attribute, no_example)]
    pub awaits: Option<String>,
    /// The reply.
    #[payload(text, example = "<thought>It may rain.</thought>")]
    pub text: String,
}

impl CognitionOut {
    /// The `stop` of a reply that a stop of the pump cut off.
    pub const STOPPED: &str = "stopped";
    /// The `stop` of a turn whose prompt the provider refused as too long.
    pub const FULL: &str = "context-full";
}

/// Returns the value of a boolean attribute of an entry's payload, without parsing the whole
/// payload. Returns None if the payload is no `P`, or if the attribute is absent or not boolean.
#[must_use]
pub fn flag<P: Payload>(entry: &Entry, attribute: &str) -> Option<bool> {
    match &*entry.is::<P>().then(|| entry.attribute(attribute)).flatten()? {
        "true" | "1" => Some(true),
        "false" | "0" => Some(false),
        _ => None,
    }
}

/// Whether an agent's entry is the last word of its work. This is a final response, a stop, or
/// another payload with which the agent answers.
#[must_use]
pub fn is_last_word(entry: &Entry) -> bool {
    if let Some(is_final) = flag::<Response>(entry, "final") {
        return is_final;
    }
    let is_more = entry.is::<StepsOpen>() || entry.is::<Done>() || entry.is::<ActionResult>();
    entry.is::<Stopped>() || !is_more && entry.reply_to().is_some()
}

/// A response waits for results that it names, for earlier actions, or for all actions of its work.
/// Its text is in the turn's `cognition_out`. If the response is delivered, a `response` has the
/// text with the values filled in. If it isn't, a `notice` has the text.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/agent/v1", rename = "response-waits", bookkeeping)]
pub struct ResponseWaits {
    /// The turn.
    #[payload(attribute)]
    pub turn: u64,
    /// Whether it ends the work.
    #[payload(attribute, rename = "final")]
    pub is_final: bool,
    /// The local name of its payload, if the payload is no `response`.
    #[payload(attribute, no_example)]
    pub payload: Option<String>,
    /// The first byte of its text in the reply.
    #[payload(attribute)]
    pub from: u64,
    /// The byte after its text.
    #[payload(attribute)]
    pub to: u64,
    /// The names in it that may be references.
    #[payload(example = "fetch")]
    pub on: Vec<String>,
    /// The metadata fields to which it refers, with their values at its place in the reply.
    #[payload(no_example)]
    pub metadata: Option<Json>,
}

/// A thought, for the agent itself.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/agent/v1", bookkeeping)]
pub struct Thought {
    /// The turn.
    #[payload(attribute)]
    pub turn: u64,
    /// The number of thoughts around it. Recorded only if the agent's replies may have blocks.
    #[payload(attribute, no_example)]
    pub depth: Option<u64>,
    /// The text.
    #[payload(text, example = "It may rain.")]
    pub text: String,
}

/// An agent's answer.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/agent/v1")]
pub struct Response {
    /// Whether the response ends the work. Otherwise more follows.
    #[payload(attribute, rename = "final")]
    pub is_final: bool,
    /// The turn.
    #[payload(attribute)]
    pub turn: u64,
    /// Whether it waited for results or actions.
    #[payload(attribute)]
    pub was_held: bool,
    /// If it waited and was delivered before its turn ended: the bytes of the reply by then.
    #[payload(attribute, no_example)]
    pub at: Option<u64>,
    /// The text.
    #[payload(text, value, example = "It will rain.")]
    pub text: String,
}

/// Tells the model which part of its reply didn't run, or ran in another way than written.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/agent/v1")]
pub struct Notice {
    /// The turn.
    #[payload(attribute)]
    pub turn: u64,
    /// The line in the reply, from 1.
    #[payload(attribute)]
    pub line: Option<u32>,
    /// The column, in characters from 1.
    #[payload(attribute)]
    pub column: Option<u32>,
    /// The call that didn't run, if the notice is about a call.
    #[payload(attribute, example = "fetch")]
    pub call: Option<String>,
    /// The undelivered response as it was written, if the notice is about a response.
    #[payload(attribute, no_example)]
    pub response: Option<String>,
    /// The response with its references filled in, if it was held back because others lead to
    /// nothing. It is delivered so if the agent stops before it says something else.
    #[payload(attribute, no_example)]
    pub held_back: Option<String>,
    /// What happened, and why.
    #[payload(text, example = "The action a did not run: its JSON has no closing brace.")]
    pub text: String,
}

/// Faulty markup in a reply, and how it was understood.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/agent/v1", bookkeeping)]
pub struct Repair {
    /// The turn.
    #[payload(attribute)]
    pub turn: u64,
    /// The line in the reply, from 1.
    #[payload(attribute)]
    pub line: u32,
    /// The column, in characters from 1.
    #[payload(attribute)]
    pub column: u32,
    /// How it was understood.
    #[payload(text, example = "<think> was closed by </thought>")]
    pub text: String,
}

/// Tells a model that its reply was nothing but text.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/agent/v1")]
pub struct Correction {
    /// The turn of that reply.
    #[payload(attribute)]
    pub turn: u64,
    /// What to do.
    #[payload(text, example = "Answer within <response>.")]
    pub text: String,
}

/// A prompt doesn't fit the model's window.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/agent/v1", bookkeeping)]
pub struct ContextFull {
    /// About how many tokens the prompt has.
    #[payload(attribute)]
    pub tokens: u64,
    /// The size of the window, in tokens.
    #[payload(attribute)]
    pub window: u64,
    /// How many messages stay in view; absent if the agent stops instead.
    #[payload(attribute)]
    pub keep: Option<u64>,
    /// Whether the provider refused the prompt; absent if the prompt's estimate is over the window.
    #[payload(attribute)]
    pub is_refused: Option<bool>,
}

/// A model's summary of the messages that the next clear hides. Prompts show it in their place
/// while that clear is in force.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/agent/v1", rename = "context-summary", bookkeeping)]
pub struct ContextSummary {
    /// The model's name.
    #[payload(attribute, example = "local")]
    pub model: String,
    /// Why there is no summary; the messages are hidden all the same.
    #[payload(attribute, no_example)]
    pub error: Option<String>,
    /// The summary.
    #[payload(text, example = "The weather was asked for; it will rain.")]
    pub text: String,
}

/// Ends an agent's current work in the thread: its model's reply is cut off, its actions are
/// cancelled, and the asker gets `agent-stopped`. The output until then stays, and the next message
/// begins new work. Without a receiver, an interrupt stops every agent of the thread.
///
/// Models aren't told of this payload: it is for people who watch an agent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/agent/v1")]
pub struct Interrupt {
    /// Why.
    #[payload(attribute, example = "enough")]
    pub reason: Option<String>,
}

impl Interrupt {
    /// The value of `stop` for an interrupted reply, and of `reason` for an interrupted agent.
    pub const WORD: &str = "interrupted";
    /// The value of `error` for an interrupted reply.
    pub const ERROR: &str = "it was interrupted";
}

/// Whether models are offered a payload. Reserved payloads and payloads for operators and clients
/// aren't offered. Actions aren't offered either, since models write them in the form of the
/// protocol.
#[must_use]
pub fn is_offered(schema: &Schema) -> bool {
    !schema.reserved && !is_for_others(&schema.name)
}

/// Whether a payload is for operators and clients, or is written in the form of the protocol.
#[must_use]
pub fn is_for_others(name: &Name) -> bool {
    let of_operators = [RetryRun::NAME, SwitchTrigger::NAME];
    let others = [Action::NAME, ForkThread::NAME, Interrupt::NAME, RaiseBudget::NAME];
    others.contains(name) || of_operators.contains(name)
}

/// An agent stops without a final response.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/agent/v1", rename = "agent-stopped")]
pub struct Stopped {
    /// How many turns it had.
    #[payload(attribute)]
    pub turns: u64,
    /// Why, in a word: `idle`, `repeated`, `turns`, `budget`, `context-full`, `model`,
    /// `interrupted`.
    #[payload(attribute, example = "idle")]
    pub reason: String,
    /// The last entry that the agent looked at.
    #[payload(attribute)]
    pub until: u64,
    /// Why, in a sentence.
    #[payload(text, example = "Two turns in a row did nothing.")]
    pub text: String,
}

impl Stopped {
    /// The reason of an agent that stopped because its budget was spent.
    pub const BUDGET: &str = "budget";
}

/// An agent's provider takes no more requests for a while. The agent waits, and then asks again.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/agent/v1", bookkeeping)]
pub struct RateLimited {
    /// The time until the agent asks again.
    #[payload(attribute, example = "PT60S")]
    pub wait: SignedDuration,
}

/// How far an agent has come with work that another listener called it for. It is recorded in the
/// caller's thread when a turn ends and another one follows.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/agent/v1", bookkeeping)]
pub struct AgentProgress {
    /// The turn that has ended.
    #[payload(attribute, example = "3")]
    pub turn: u64,
    /// The turn's last thought, or its calls.
    #[payload(text, example = "Two of five files are read.")]
    pub text: String,
}

/// Text of a turn while it is written. Followers see it live; it is never in the log.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/agent/v1", live, bookkeeping)]
pub struct Delta {
    /// The turn.
    #[payload(attribute)]
    pub turn: u64,
    /// What it is a part of: `thought`, `response`, `text` or `reasoning`.
    #[payload(attribute, example = "thought")]
    pub within: String,
    /// The text.
    #[payload(text, example = "It may")]
    pub text: String,
}

/// The name of an agent's root: the payload with which the agent of this name is asked.
#[must_use]
pub fn root(agent: &str) -> Name {
    Name::new(format!("https://xml-pipeline.org/ns/{agent}/v1"), agent.to_owned())
}
