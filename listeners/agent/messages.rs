//! An agent's side of a transcript as the conversation that a provider would have had of it.
//!
//! Providers have a grammar: what the model says and all that it calls is one message, and what
//! came of the calls follows at once, each by its id. A thread has no such order, since calls run
//! while the model writes and may end turns later. So results are moved to their calls; a call
//! without one gets [`INTERRUPTED`].

use pumphouse::reply::{Config, Dialect, Kind, Markup, Parser, What as Heard};
use serde_json::{Value, json};

use super::transcript::{Event, EventKind};

/// What stands for the result of a call that has none.
pub const INTERRUPTED: &str = "[interrupted: no result came]";
/// How long the name of a tool may be at providers.
const NAME_MAX: usize = 64;

/// A conversation in a provider's grammar.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Conversation {
    /// What the model was told before all else.
    pub system: String,
    /// Who said what, by turns: no two of the same side follow each other, but for a model that
    /// called something and then spoke again.
    pub sides: Vec<Side>,
}

/// What one side said.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Side {
    /// What the model was told.
    User(String),
    /// What the model said, and what it called.
    Assistant {
        /// The words, without the calls.
        text: String,
        /// The calls, in order.
        calls: Vec<ToolCall>,
    },
}

/// A call, and what came of it.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ToolCall {
    /// Its id, which no other has.
    pub id: String,
    /// Its name, of letters, digits, `_` and `-`.
    pub tool: String,
    /// With what.
    pub input: Value,
    /// What came of it, as text.
    pub output: String,
    /// Whether that is a failure.
    pub is_error: bool,
    written: String,
}

/// Whose sides there are in a transcript, in the order in which they came in.
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
    /// Its words as they came.
    deltas: String,
    /// Its thoughts and partial responses, as elements.
    parts: Vec<String>,
    calls: Vec<ToolCall>,
    /// What came from outside meanwhile.
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
            // One that waited is among the words of its turn, which is over.
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

    /// Ends the turn that is open: with its words, or with what is known of them.
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

/// What came of a call as text, and whether it is a failure.
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

/// The words of a reply without those calls that ran.
fn without(text: &str, calls: &[ToolCall]) -> String {
    let mut left: Vec<&str> = calls.iter().map(|it| &*it.written).collect();
    let (mut out, mut parser) = (String::new(), Parser::new(reading()));
    let mut each = |event: pumphouse::reply::Event<'_>| {
        if let Heard::Closed(it) = event.what
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

/// Calls in any dialect.
fn reading() -> Config {
    Config::default().marked_up(Markup::default().tool_call()).speaking(Dialect::ToolUse)
}

/// A name as providers allow it.
fn legal(name: &str, most: usize) -> String {
    let legal = |it: char| if it.is_ascii_alphanumeric() || it == '-' { it } else { '_' };
    name.chars().map(legal).take(most).collect()
}

impl Conversation {
    /// As the `messages` of OpenAI's chat completions.
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

    /// As the `system` and the `messages` of Anthropic's messages.
    #[must_use]
    pub fn anthropic(&self) -> Value {
        let mut messages: Vec<Value> = Vec::new();
        // What came of the calls of the message before.
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
