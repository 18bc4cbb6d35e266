//! Converts an agent's part of a transcript into a conversation in a provider's form.
//!
//! Providers require an order: the model's text and all its calls are one message, and the results
//! of the calls follow at once, each with the id of its call. A thread has no such order, since
//! calls run while the model writes and may end turns later. Therefore each result is moved to its
//! call. A call without a result gets [`INTERRUPTED`].

use pumphouse::reply::{Config, Dialect, Kind, Markup, Parser, What as ReplyEvent};
use serde_json::{Value, json};

use super::transcript::{Event, EventKind};

/// The text in place of the result of a call that has none.
pub const INTERRUPTED: &str = "[interrupted: no result came]";
/// The maximum length of a tool's name that providers accept, in characters.
const NAME_MAX: usize = 64;

/// A conversation in the order that providers require.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Conversation {
    /// The system prompt.
    pub system: String,
    /// The messages in order. Two messages of the same side follow each other only if the model
    /// made calls and then wrote again.
    pub sides: Vec<Side>,
}

/// A message of one side.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Side {
    /// A text to the model.
    User(String),
    /// A reply of the model, with its calls.
    Assistant {
        /// The text without the calls.
        text: String,
        /// The calls, in order.
        calls: Vec<ToolCall>,
    },
}

/// A call with its result.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ToolCall {
    /// The id, unique in the conversation.
    pub id: String,
    /// The name, of letters, digits, `_` and `-`.
    pub tool: String,
    /// The arguments, as a JSON object.
    pub input: Value,
    /// The result as text.
    pub output: String,
    /// Whether the result is a failure, or is missing.
    pub is_error: bool,
    written: String,
}

/// The agents in a transcript, in the order of their first turns.
#[must_use]
pub fn agents(events: &[Event]) -> Vec<&str> {
    let mut all: Vec<&str> = Vec::new();
    for event in events {
        if matches!(event.what, EventKind::StepStart { .. }) && !all.contains(&&*event.agent) {
            all.push(&event.agent);
        }
    }
    all
}

/// The conversation of an agent.
#[must_use]
pub fn conversation(agent: &str, events: &[Event]) -> Conversation {
    let mut building = Building::default();
    for event in events.iter().filter(|it| it.agent == agent) {
        building.hear(&event.what);
    }
    building.closes(None);
    building.conversation
}

#[derive(Default)]
struct Building {
    conversation: Conversation,
    open: Option<TurnInProgress>,
}

/// A turn that isn't over.
#[derive(Default)]
struct TurnInProgress {
    turn: u64,
    /// The received pieces of the turn's text, joined.
    deltas: String,
    /// The turn's thoughts and partial responses, as elements.
    parts: Vec<String>,
    calls: Vec<ToolCall>,
    /// The messages that arrived during the turn.
    during: Vec<String>,
}

impl Building {
    fn hear(&mut self, what: &EventKind) {
        match what {
            EventKind::CognitionIn { role, text, .. } if role == "system" => {
                self.conversation.system.clone_from(text);
            }
            EventKind::CognitionIn { text, .. } => match &mut self.open {
                Some(open) => open.during.push(text.clone()),
                None => self.user(text),
            },
            EventKind::StepStart { turn, .. } => {
                self.closes(None);
                self.open = Some(TurnInProgress { turn: *turn, ..TurnInProgress::default() });
            }
            EventKind::CognitionOutDelta { within, text, .. } if within != "reasoning" => {
                self.open().deltas.push_str(text);
            }
            EventKind::Thought { text, .. } => {
                self.open().parts.push(format!("<thought>{text}</thought>"));
            }
            // A response that had to wait is already in the text of its own turn, which is over.
            EventKind::Response { turn, text, is_final: false }
                if self.open.as_ref().is_some_and(|it| it.turn == *turn) =>
            {
                let part = format!("<response final=\"false\">{text}</response>");
                self.open().parts.push(part);
            }
            EventKind::ToolCallStart { call_id, id, tool, input, .. } => {
                let call = ToolCall {
                    id: legal(call_id, usize::MAX),
                    tool: legal(tool, NAME_MAX),
                    input: if input.is_object() { input.clone() } else { json!({}) },
                    output: INTERRUPTED.to_owned(),
                    is_error: true,
                    written: id.clone(),
                };
                self.open().calls.push(call);
            }
            EventKind::ToolCallResult { call_id, status, output, error, .. } => {
                let (output, is_error) = came(status, output.as_ref(), error.as_deref());
                let id = legal(call_id, usize::MAX);
                if let Some(call) = self.calls().find(|it| it.id == id) {
                    (call.output, call.is_error) = (output, is_error);
                }
            }
            EventKind::CognitionOut { text, is_partial, completion_percentage, .. } => {
                self.closes(Some(text));
                if *is_partial && !text.is_empty() {
                    let far = completion_percentage.map(|it| format!(" at {it}%"));
                    let far = far.unwrap_or_default();
                    self.user(&format!("[Previous response was interrupted{far}]"));
                }
            }
            _ => {}
        }
    }

    fn open(&mut self) -> &mut TurnInProgress {
        self.open.get_or_insert_default()
    }

    /// All calls so far, the newest first.
    fn calls(&mut self) -> impl Iterator<Item = &mut ToolCall> {
        let open = self.open.iter_mut().flat_map(|it| it.calls.iter_mut().rev());
        let sides = self.conversation.sides.iter_mut().rev();
        let closed = sides.flat_map(|it| match it {
            Side::Assistant { calls, .. } => calls.iter_mut().rev(),
            Side::User(_) => [].iter_mut().rev(),
        });
        open.chain(closed)
    }

    /// Ends the open turn with its text. If `text` is None, the received pieces take its place, or
    /// the recorded parts if there are no pieces.
    fn closes(&mut self, text: Option<&str>) {
        let Some(open) = self.open.take() else {
            text.iter().for_each(|it| self.assistant(it.trim().to_owned(), Vec::new()));
            return;
        };
        let text = match text {
            Some(text) => without(text, &open.calls),
            None if open.deltas.is_empty() => open.parts.join("\n"),
            None => open.deltas,
        };
        self.assistant(text.trim().to_owned(), open.calls);
        open.during.iter().for_each(|it| self.user(it));
    }

    fn user(&mut self, said: &str) {
        match self.conversation.sides.last_mut() {
            Some(Side::User(text)) => {
                text.push_str("\n\n");
                text.push_str(said);
            }
            _ => self.conversation.sides.push(Side::User(said.to_owned())),
        }
    }

    fn assistant(&mut self, said: String, called: Vec<ToolCall>) {
        if said.is_empty() && called.is_empty() {
            return;
        }
        match self.conversation.sides.last_mut() {
            Some(Side::Assistant { text, calls }) if calls.is_empty() => {
                if !said.is_empty() && !text.is_empty() {
                    text.push_str("\n\n");
                }
                text.push_str(&said);
                *calls = called;
            }
            _ => self.conversation.sides.push(Side::Assistant { text: said, calls: called }),
        }
    }
}

/// The result of a call as text, and whether it is a failure.
fn came(status: &str, output: Option<&Value>, error: Option<&str>) -> (String, bool) {
    let is_error = status != "ok";
    let text = match (error, output) {
        (Some(error), _) => format!("{status}: {error}"),
        (None, Some(Value::String(text))) => text.clone(),
        (None, Some(it)) => it.to_string(),
        (None, None) => status.to_owned(),
    };
    (text, is_error)
}

/// The text of a reply without the calls that ran.
fn without(text: &str, calls: &[ToolCall]) -> String {
    let mut left: Vec<&str> = calls.iter().map(|it| &*it.written).collect();
    let (mut out, mut parser) = (String::new(), Parser::new(reading()));
    let mut each = |event: pumphouse::reply::Event<'_>| {
        if let ReplyEvent::Closed(it) = event.what
            && matches!(it.kind, Kind::Action | Kind::ToolUse | Kind::ToolCall)
            && let Some(at) = left.iter().position(|id| Some(*id) == it.attribute("id"))
        {
            left.remove(at);
            return;
        }
        out.push_str(event.source);
    };
    parser.feed(text, &mut each);
    parser.finish(&mut each);
    out
}

/// The parser's configuration, by which it reads calls in every dialect.
fn reading() -> Config {
    Config::default().marked_up(Markup::default().tool_call()).speaking(Dialect::ToolUse)
}

/// Replaces the characters of a name that providers don't allow, and cuts the name to `most`
/// characters.
fn legal(name: &str, most: usize) -> String {
    let legal = |it: char| if it.is_ascii_alphanumeric() || it == '-' { it } else { '_' };
    name.chars().map(legal).take(most).collect()
}

impl Conversation {
    /// The conversation as the `messages` of OpenAI's chat completions.
    #[must_use]
    pub fn openai(&self) -> Value {
        let mut messages = Vec::new();
        if !self.system.is_empty() {
            messages.push(json!({ "role": "system", "content": self.system }));
        }
        for side in &self.sides {
            match side {
                Side::User(text) => messages.push(json!({ "role": "user", "content": text })),
                Side::Assistant { text, calls } if calls.is_empty() => {
                    messages.push(json!({ "role": "assistant", "content": text }));
                }
                Side::Assistant { text, calls } => {
                    let content = Some(text).filter(|it| !it.is_empty());
                    let called: Vec<Value> = calls.iter().map(openai_call).collect();
                    messages.push(json!({
                        "role": "assistant", "content": content, "tool_calls": called,
                    }));
                    messages.extend(calls.iter().map(
                        |it| json!({ "role": "tool", "tool_call_id": it.id, "content": it.output }),
                    ));
                }
            }
        }
        json!({ "messages": messages })
    }

    /// The conversation as the `system` and the `messages` of Anthropic's messages.
    #[must_use]
    pub fn anthropic(&self) -> Value {
        let mut messages: Vec<Value> = Vec::new();
        // The results of the calls in the previous message.
        let mut results: Vec<Value> = Vec::new();
        for side in &self.sides {
            match side {
                Side::User(text) => {
                    results.push(json!({ "type": "text", "text": text }));
                    messages.push(json!({ "role": "user", "content": results }));
                    results = Vec::new();
                }
                Side::Assistant { text, calls } => {
                    if !results.is_empty() {
                        messages.push(json!({ "role": "user", "content": results }));
                    }
                    let text = Some(text).filter(|it| !it.is_empty());
                    let text = text.map(|it| json!({ "type": "text", "text": it }));
                    let called = calls.iter().map(|it| {
                        json!({
                            "type": "tool_use", "id": it.id, "name": it.tool, "input": it.input,
                        })
                    });
                    let content: Vec<Value> = text.into_iter().chain(called).collect();
                    messages.push(json!({ "role": "assistant", "content": content }));
                    results = calls.iter().map(anthropic_result).collect();
                }
            }
        }
        if !results.is_empty() {
            messages.push(json!({ "role": "user", "content": results }));
        }
        match self.system.is_empty() {
            true => json!({ "messages": messages }),
            false => json!({ "system": self.system, "messages": messages }),
        }
    }
}

fn openai_call(it: &ToolCall) -> Value {
    json!({
        "id": it.id,
        "type": "function",
        "function": { "name": it.tool, "arguments": it.input.to_string() },
    })
}

fn anthropic_result(it: &ToolCall) -> Value {
    let mut result = json!({ "type": "tool_result", "tool_use_id": it.id, "content": it.output });
    if it.is_error {
        result["is_error"] = true.into();
    }
    result
}
