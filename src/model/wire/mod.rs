//! The five wires: how providers take requests and write replies. Each wire has a reader of events.
//!
//! | wire | spoken by | events | end of a reply |
//! | --- | --- | --- | --- |
//! | `anthropic-messages` | Anthropic | server-sent | `message_stop` |
//! | `openai-chat` | OpenAI's chat completions, and most others | server-sent | `[DONE]` |
//! | `openai-responses` | OpenAI's responses | server-sent | `response.completed` |
//! | `gemini` | Google | server-sent | the end of the connection after a `finishReason` |
//! | `ollama` | Ollama's own | a line of JSON each | `"done": true` |

mod answer_schema;
pub(crate) mod parameters;
mod call_ids;
mod framing;
mod growing_object;
mod gathered;
mod partial_arguments;
mod property_names;
mod tool_schema;
mod sent_tools;
mod anthropic;
mod gemini;
mod openai_chat;
mod openai_responses;
mod ollama;

use std::fmt;
use std::str::FromStr;

use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use crate::model::error::{Error, Kind};
use crate::model::error_answer;
use crate::model::prompt::{Format, Prompt, PromptMessage, Tool};
use crate::model::provider_file::built_in::api_url;
use crate::model::wire_name::Wire;
use crate::schema::json;

pub(crate) use call_ids::{called, with_ids, without_foreign};
pub use framing::Framing;
pub use gathered::Gathered;
use parameters::{Parameter, Served};
pub(crate) use sent_tools::{SentTools, left_out};

impl Wire {
    /// A reader for a reply of this wire.
    pub(crate) fn reader(self) -> Box<dyn Reader> {
        match self {
            Wire::AnthropicMessages => Box::<anthropic::AnthropicMessages>::default(),
            Wire::OpenAiChat => Box::<openai_chat::OpenAiChat>::default(),
            Wire::OpenAiResponses => Box::<openai_responses::OpenAiResponses>::default(),
            Wire::Gemini => Box::<gemini::Gemini>::default(),
            Wire::Ollama => Box::<ollama::Ollama>::default(),
        }
    }

    /// Writes a prompt as the JSON object of a request.
    pub(crate) fn body(self, content: &RequestContent<'_>) -> Map<String, Value> {
        let prompt = &*with_ids(content.prompt);
        let identified = &RequestContent { prompt, ..*content };
        match self {
            Wire::AnthropicMessages => anthropic::body(identified),
            Wire::OpenAiChat => openai_chat::body(identified),
            Wire::OpenAiResponses => openai_responses::body(identified),
            Wire::Gemini => gemini::body(content),
            Wire::Ollama => ollama::body(content),
        }
    }

    /// The URL of the API of the wire's provider. A request adds the wire's path to it.
    #[must_use]
    pub fn home(self) -> &'static str {
        let url = api_url(self);
        let url = url.split_once('?').map_or(url, |(url, _)| url);
        url.strip_suffix(&self.path("{model}", true)).unwrap_or(url)
    }

    /// The path that a request for a model adds to the server's URL.
    pub(crate) fn path(self, model: &str, is_streamed: bool) -> String {
        match self {
            Wire::AnthropicMessages => "/messages".to_owned(),
            Wire::OpenAiChat => "/chat/completions".to_owned(),
            Wire::OpenAiResponses => "/responses".to_owned(),
            Wire::Gemini => {
                let model = model.strip_prefix("models/").unwrap_or(model);
                let verb = if is_streamed { "streamGenerateContent" } else { "generateContent" };
                format!("/models/{model}:{verb}")
            }
            Wire::Ollama => "/chat".to_owned(),
        }
    }

    /// The query that asks for a stream, if the wire asks by the URL.
    pub(crate) fn query(self) -> Option<&'static str> {
        api_url(self).split_once('?').map(|(_, query)| query)
    }
}

/// How much a model is to reason before it answers.
///
/// ```
/// # extern crate pumphouse_model as pumphouse;
/// use pumphouse::model::Effort;
///
/// assert_eq!("high".parse(), Ok(Effort::High));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Effort {
    /// Little reasoning.
    Low,
    /// As much reasoning as most questions need.
    Medium,
    /// Much reasoning.
    High,
}

impl Effort {
    /// Every effort.
    pub const ALL: [Effort; 3] = [Effort::Low, Effort::Medium, Effort::High];

    /// The effort's name in manifests and on most wires.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Effort::Low => "low",
            Effort::Medium => "medium",
            Effort::High => "high",
        }
    }
}

impl FromStr for Effort {
    type Err = NoEffort;

    fn from_str(name: &str) -> Result<Effort, NoEffort> {
        Effort::ALL.into_iter().find(|it| it.as_str() == name).ok_or(NoEffort)
    }
}

/// The error of a name that no effort has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct NoEffort;

impl fmt::Display for NoEffort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = Effort::ALL.map(Effort::as_str).join(", ");
        write!(f, "no effort has this name; there are {names}")
    }
}

impl std::error::Error for NoEffort {}

/// The content of a request: the prompt, and the values that the prompt or else the settings give.
pub(crate) struct RequestContent<'a> {
    /// The provider's name of the model.
    pub(crate) model: &'a str,
    /// The most tokens of the reply, if the prompt or the settings set a maximum.
    pub(crate) max_tokens: Option<u32>,
    /// The sampling temperature, if the prompt or the settings set one.
    pub(crate) temperature: Option<f64>,
    /// How much the model is to reason, if the settings say so.
    pub(crate) effort: Option<Effort>,
    /// Whether the server is sent the prompt's format, if the prompt has one.
    pub(crate) is_structured: bool,
    /// Whether the reply is to be streamed, or to come whole.
    pub(crate) is_streamed: bool,
    /// The tools as the wire takes them.
    pub(crate) tools: &'a [Tool],
    /// The most tokens of prompt and reply together, if the settings say so.
    pub(crate) window: Option<u32>,
    /// The host of the server, without a port.
    pub(crate) host: &'a str,
    /// The author's own keys of each request.
    pub(crate) extra: &'a Map<String, Value>,
    /// The prompt, for all else.
    pub(crate) prompt: &'a Prompt,
}

/// A wire's keys for these parts of a request. A key is empty if the wire doesn't have it.
struct Choices {
    max_tokens: &'static str,
    temperature: &'static str,
    top_p: &'static str,
    seed: &'static str,
    stop: &'static str,
}

impl RequestContent<'_> {
    /// The format of the answer, if the server is sent it.
    fn format(&self) -> Option<&Format> {
        self.prompt.format.as_ref().filter(|_| self.is_structured)
    }

    /// The model and its server, which decide what a request may have.
    fn served(&self, wire: Wire) -> Served<'_> {
        let RequestContent { model, host, effort, extra, .. } = *self;
        Served { wire, host, model, effort, extra }
    }

    /// How much the model is to reason, if it can be told.
    fn effort(&self, wire: Wire) -> Option<Effort> {
        let is_refused = self.served(wire).refusal(Parameter::Effort).is_some();
        self.effort.filter(|_| !is_refused)
    }

    /// Puts the parts that [`Choices`] names into a JSON object, under a wire's keys. Parts that
    /// aren't set are left out, and so are parts that the model refuses.
    fn choose(&self, wire: Wire, names: &Choices, into: &mut Map<String, Value>) {
        let (prompt, served) = (self.prompt, self.served(wire));
        let takes = |it: Parameter| served.refusal(it).is_none();
        let stop = Some(&prompt.stop).filter(|it| !it.is_empty() && takes(Parameter::Stop));
        let temperature = self.temperature.filter(|_| takes(Parameter::Temperature));
        let is_alone = temperature.is_none() || !parameters::takes_one_of_both(&served);
        let top_p = prompt.top_p.filter(|_| takes(Parameter::TopP) && is_alone);
        let choices = [
            (names.max_tokens, self.max_tokens.map(Value::from)),
            (names.temperature, temperature.map(Value::from)),
            (names.top_p, top_p.map(Value::from)),
            (names.seed, prompt.seed.map(Value::from)),
            (names.stop, stop.map(|it| it.as_slice().into())),
        ];
        for (name, choice) in choices {
            if let Some(choice) = choice.filter(|_| !name.is_empty()) {
                into.insert(name.to_owned(), choice);
            }
        }
    }
}

/// Returns the messages of a prompt before the last, and the last message. If the last message has
/// late text, it is split in two: the text that later prompts repeat, and the late text.
fn divided(prompt: &Prompt) -> (&[PromptMessage], Vec<PromptMessage>) {
    let Some((last, before)) = prompt.messages.split_last() else { return (&[], Vec::new()) };
    let Some((kept, late)) = prompt.late() else { return (before, vec![last.clone()]) };
    let kept = PromptMessage { text: kept.to_owned(), ..last.clone() };
    (before, vec![kept, PromptMessage::new(last.role, late)])
}

/// Returns the messages of a prompt. If the last message has attachments and late text, both parts
/// of its text come with it: the part that later prompts repeat, and the late part. So the wire can
/// put the late text after the attachments.
fn late_behind_attached(
    prompt: &Prompt,
) -> impl Iterator<Item = (&PromptMessage, Option<(&str, &str)>)> {
    let late = prompt.late();
    let last = prompt.messages.len().saturating_sub(1);
    prompt
        .messages
        .iter()
        .enumerate()
        .map(move |(at, said)| (said, late.filter(|_| at == last && !said.attached.is_empty())))
}

/// Reads the events of one reply, and gathers its parts.
pub trait Reader: Send {
    /// Reads an event's data. An event that the wire doesn't know adds nothing.
    ///
    /// # Errors
    /// If the event reports an error, or isn't an event of this wire's replies.
    fn read(&mut self, data: &str) -> Result<(), Error>;

    /// Reads an event as it came. The two halves of a character may have come in two events.
    ///
    /// # Errors
    /// Those of `read`, and if the reply goes beyond a limit of its parts.
    fn take(&mut self, data: &str) -> Result<(), Error> {
        let (data, is_marked) = json::marked(data);
        self.gathered_mut().set_marked(is_marked);
        self.read(&data)?;
        self.gathered().refusal().map_or(Ok(()), |why| Err(garbled(&data, &why)))
    }

    /// The parts of the reply, from the events so far.
    fn gathered(&self) -> &Gathered;

    /// The parts of the reply, to take pieces out of them.
    fn gathered_mut(&mut self) -> &mut Gathered;
}

/// Parses an event's data, which has to be a JSON object.
pub(crate) fn object(data: &str) -> Result<Value, Error> {
    let value = json::deserialize(data).map_err(|it| garbled(data, &it))?;
    match value {
        Value::Object(_) => Ok(value),
        _ => Err(garbled(data, &"it is no JSON object")),
    }
}

/// The error of an event that doesn't belong to a reply.
pub(crate) fn garbled(data: &str, why: &dyn fmt::Display) -> Error {
    let text = format!("the server sent an event that is none of a reply: {why}");
    Error { said: error_answer::said(data), ..Error::new(Kind::Garbled, text) }
}

/// A value's text, unless it is empty.
fn text(value: &Value) -> Option<&str> {
    value.as_str().filter(|it| !it.is_empty())
}

/// A call's arguments as the JSON object that some wires want. A text that isn't an object goes
/// into one, under the key `unparsed`.
pub(crate) fn arguments(text: &str) -> Value {
    match json::deserialize(&json::mended(text)) {
        Ok(Value::Object(it)) => Value::Object(it),
        _ if text.trim().is_empty() => json!({}),
        _ => json!({ "unparsed": text }),
    }
}

/// The text of a call's arguments in an event, which may be an object or the text of one. The
/// object keeps its numbers and its order, but not the white space around its parts.
fn arguments_text(raw: &RawValue) -> String {
    let text = raw.get().trim();
    match text.as_bytes().first() {
        Some(b'"') => serde_json::from_str(text).unwrap_or_default(),
        Some(b'n') | None => String::new(),
        Some(_) => compact(text),
    }
}

/// JSON without the white space outside of its texts.
fn compact(json: &str) -> String {
    let (mut is_text, mut is_escaped) = (false, false);
    let is_kept = |it: &char| {
        let is_kept = is_text || !it.is_ascii_whitespace();
        is_text ^= *it == '"' && !is_escaped;
        is_escaped = is_text && *it == '\\' && !is_escaped;
        is_kept
    };
    json.chars().filter(is_kept).collect()
}

/// A number of tokens. 0 if there is none.
fn count(value: &Value) -> u64 {
    let whole = |it: f64| it.is_finite() && it >= 0.0;
    value.as_u64().or(value.as_f64().filter(|it| whole(*it)).map(|it| it as u64)).unwrap_or(0)
}

/// Replaces a count of tokens by a newer one. Each count covers the whole reply so far, so a count
/// that is missing or 0 takes nothing back.
fn recount(counted: &mut u64, value: &Value) {
    let newer = count(value);
    if newer > 0 {
        *counted = newer;
    }
}

#[cfg(test)]
mod request_tests;
#[cfg(test)]
mod tests;
