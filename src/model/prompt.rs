//! Prompts of models.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde_json::Value;

use crate::limits::XmlLimits;
use crate::model::attachments::Attached;
use crate::model::piece::{Call, Signed};
use crate::schema::json;
use crate::xml::{self, Child, Profile, View};

/// A prompt: everything that a model's answer depends on.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Prompt {
    /// The system text. Empty if there is none.
    pub system: String,
    /// The messages of the conversation, in order.
    pub messages: Vec<PromptMessage>,
    /// The tools that the model may call natively.
    pub tools: Vec<Tool>,
    /// The format of the answer, if the answer is to be JSON. Native calls don't follow the format.
    pub format: Option<Format>,
    /// Whether the model is to call no tool in this turn. Most wires still offer the tools: the
    /// messages may hold earlier calls, and providers cache prompts by their beginning. The digest
    /// leaves this flag out.
    pub without_calls: bool,
    /// The most tokens of the reply. None for the model's own bound.
    pub max_tokens: Option<u32>,
    /// Stop texts: the reply ends before the first of them.
    pub stop: Vec<String>,
    /// The sampling temperature. At 0, the model takes the likeliest token.
    pub temperature: Option<f64>,
    /// The share of likely tokens to sample from (nucleus sampling), from 0 to 1.
    pub top_p: Option<f64>,
    /// The seed of sampling, for providers that take one.
    pub seed: Option<u64>,
    /// How many bytes at the end of the last message's text are for this turn alone: later prompts
    /// of the conversation don't have them. Wires with cache marks set the mark before these bytes.
    /// The digest leaves this number out.
    pub late_bytes: usize,
    /// The number of this turn in its conversation, from 1. 0 if turns aren't counted. The number
    /// isn't sent to providers, and the digest leaves it out.
    pub turn: u64,
    /// The agent that asks, if there is one. [`Bounded`](crate::model::Bounded) models serve agents
    /// round robin. The agent isn't sent to providers, and the digest leaves it out.
    pub agent: Option<Arc<str>>,
    /// The conversation that the prompt belongs to. [Provider events](crate::model::ProviderEvent)
    /// name it. The conversation isn't sent to providers, and the digest leaves it out.
    pub conversation: Option<Arc<str>>,
}

/// One message of a prompt.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "who and what: there is no more to a message")]
pub struct PromptMessage {
    /// The role of the speaker.
    pub role: Role,
    /// The text of the message.
    pub text: String,
    /// The model's native calls after the text. The result of each call is a later message, with
    /// [`Role::Tool`].
    pub calls: Vec<Call>,
    /// The id of the call whose result this message is.
    pub of: Option<String>,
    /// Data that the provider signed beside the calls, and wants back.
    pub signed: Vec<Signed>,
    /// The description of the model that wrote the message, if it is known. The ids and the signed
    /// data of a model at one server mean nothing to another server, and don't go there. The digest
    /// leaves this out.
    pub written_by: Option<String>,
    /// Images and documents after the text.
    pub attached: Vec<Attached>,
}

impl PromptMessage {
    /// A message with a text and nothing else.
    #[must_use]
    pub fn new(role: Role, text: impl Into<String>) -> PromptMessage {
        PromptMessage {
            role,
            text: text.into(),
            calls: Vec::new(),
            of: None,
            signed: Vec::new(),
            written_by: None,
            attached: Vec::new(),
        }
    }
}

/// The role of a message's speaker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "a conversation has two sides, and tools")]
pub enum Role {
    /// The side that speaks to the model.
    User,
    /// The model.
    Assistant,
    /// A tool: the message is the result of a call.
    Tool,
}

impl Role {
    /// The role as one word, as most providers write it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Role::User => "user",
            Role::Assistant => "assistant",
            Role::Tool => "tool",
        }
    }
}

/// A tool that a model may call natively.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Tool {
    /// The tool's name.
    pub name: String,
    /// The purpose of the tool, for the model.
    pub description: String,
    /// The JSON Schema of the arguments.
    pub parameters: Value,
}

impl Tool {
    /// A tool of this name and description, whose arguments have this JSON Schema.
    #[must_use]
    pub fn new(name: impl Into<String>, description: impl Into<String>, parameters: Value) -> Tool {
        Tool { name: name.into(), description: description.into(), parameters }
    }
}

/// The format of an answer: JSON with a schema. Check the answer even if you set a format, because
/// not every model can be held to one.
///
/// ```
/// # extern crate pumphouse_model as pumphouse;
/// use pumphouse::model::{Format, Prompt};
///
/// let schema = serde_json::json!({ "type": "object", "properties": {}, "required": [] });
/// let mut prompt = Prompt::new("Report.").user("Go.");
/// prompt.format = Some(Format::new("report", "What was found.", schema));
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Format {
    /// The format's name, of letters, digits, `_` and `-`.
    pub name: String,
    /// The meaning of the answer, for the model.
    pub description: String,
    /// The JSON Schema of the answer, which is an object.
    pub schema: Value,
}

impl Format {
    /// A format of this name and description, with this JSON Schema.
    #[must_use]
    pub fn new(name: impl Into<String>, description: impl Into<String>, schema: Value) -> Format {
        Format { name: name.into(), description: description.into(), schema }
    }
}

impl Prompt {
    /// A prompt with this system text, and no messages yet.
    #[must_use]
    pub fn new(system: impl Into<String>) -> Prompt {
        Prompt { system: system.into(), ..Prompt::default() }
    }

    /// Adds a message with [`Role::User`].
    #[must_use]
    pub fn user(self, text: impl Into<String>) -> Prompt {
        self.said(Role::User, text)
    }

    /// Adds a message with [`Role::Assistant`].
    #[must_use]
    pub fn assistant(self, text: impl Into<String>) -> Prompt {
        self.said(Role::Assistant, text)
    }

    /// Adds a message of a role.
    #[must_use]
    pub fn said(mut self, role: Role, text: impl Into<String>) -> Prompt {
        self.messages.push(PromptMessage::new(role, text));
        self
    }

    /// The number of the turn in its conversation: the field `turn`, or, if that is 0, one more
    /// than the model's messages in the prompt.
    #[must_use]
    pub fn turn(&self) -> u64 {
        let had = || self.messages.iter().filter(|it| it.role == Role::Assistant).count() as u64;
        if self.turn > 0 { self.turn } else { had() + 1 }
    }

    /// The last message's text in two parts: the part that later prompts repeat, and the late text,
    /// which only this prompt has. None if there is no late text, or if the last message isn't the
    /// user's.
    pub(crate) fn late(&self) -> Option<(&str, &str)> {
        let last = self.messages.last().filter(|it| it.role == Role::User)?;
        let at = last.text.len().checked_sub(self.late_bytes)?;
        let (kept, late) = last.text.split_at_checked(at)?;
        let late = late.trim_start_matches('\n');
        (!late.is_empty()).then_some((kept, late))
    }

    /// The plain text of the newest message to the model. Markup, attributes and lines such as
    /// `[ada #7f3a9c]` are left out. Each text is on one line, and commas separate several texts.
    ///
    /// ```
    /// # extern crate pumphouse_model as pumphouse;
    /// use pumphouse::model::Prompt;
    ///
    /// let told = "[ada #7f3a9c]\n<ask xmlns=\"urn:x\"><of>AI</of><for>a &lt; b</for></ask>";
    /// assert_eq!(Prompt::new("").user(told).heard(), "AI, a < b");
    /// assert_eq!(Prompt::new("").user("[bob #7f3a9c]\nHow\n is it?").heard(), "How is it?");
    /// ```
    #[must_use]
    pub fn heard(&self) -> String {
        let last = self.messages.iter().rfind(|it| it.role != Role::Assistant);
        let text = last.map_or("", |it| &it.text);
        let is_head = |line: &str| {
            let text = line.strip_prefix('[').and_then(|it| it.strip_suffix(']'));
            let mark = text.and_then(|it| it.rsplit_once(" #")).map(|(_, mark)| mark);
            mark.is_some_and(|it| it.len() == 6 && it.bytes().all(|it| it.is_ascii_hexdigit()))
        };
        let mut parts: Vec<Vec<&str>> = vec![Vec::new()];
        for line in text.lines() {
            if is_head(line) || RESULTS.iter().any(|(begin, _)| line.starts_with(begin)) {
                parts.push(Vec::new());
            }
            if let Some(part) = parts.last_mut().filter(|_| !is_head(line)) {
                part.push(line);
            }
            if RESULTS.iter().any(|(_, end)| line.ends_with(end)) {
                parts.push(Vec::new());
            }
        }
        let mut heard = Vec::new();
        parts.iter().for_each(|it| words(it.join("\n").trim(), &mut heard));
        heard.join(", ")
    }

    /// Identifies the prompt: BLAKE3 over the parts that a provider is sent, except `without_calls`
    /// and `late_bytes`.
    ///
    /// The hash takes the length of each text in bytes before the text, and the number of items
    /// before a list of messages, calls, tools or stop texts. An optional number is a byte 1 and
    /// the number, or a byte 0 alone. Other optional parts come after a tag; an absent part adds
    /// nothing. Numbers are 8 bytes, little-endian.
    #[must_use]
    pub fn digest(&self) -> Digest {
        let mut hash = Hash(blake3::Hasher::new());
        hash.text("pumphouse prompt v1");
        hash.text(&self.system);
        hash.number(self.messages.len() as u64);
        for PromptMessage { role, text, calls, of, signed, attached, .. } in &self.messages {
            hash.text(role.as_str());
            hash.text(text);
            // An absent part adds nothing, so that prompts without it keep the digest that they had
            // before the field existed.
            if !calls.is_empty() {
                hash.text("calls");
                hash.number(calls.len() as u64);
            }
            for Call { id, name, arguments } in calls {
                [id, name, arguments].into_iter().for_each(|it| hash.text(it));
            }
            if let Some(of) = of {
                hash.text("of");
                hash.text(of);
            }
            for Signed { wire, place, json } in signed {
                hash.text("signed");
                hash.text(wire.name());
                hash.number(*place);
                hash.text(json);
            }
            for Attached { media_type, base64 } in attached {
                hash.text("attached");
                hash.text(media_type);
                hash.text(base64);
            }
        }
        hash.number(self.tools.len() as u64);
        for Tool { name, description, parameters } in &self.tools {
            hash.text(name);
            hash.text(description);
            hash.text(&json::sorted(parameters));
        }
        // A prompt without a format keeps the digest that it had before there were formats.
        if let Some(Format { name, description, schema }) = &self.format {
            hash.text("format");
            hash.text(name);
            hash.text(description);
            hash.text(&json::sorted(schema));
        }
        hash.maybe(self.max_tokens.map(u64::from));
        hash.number(self.stop.len() as u64);
        self.stop.iter().for_each(|it| hash.text(it));
        hash.maybe(self.temperature.map(f64::to_bits));
        hash.maybe(self.top_p.map(f64::to_bits));
        hash.maybe(self.seed);
        Digest(hash.0.finalize())
    }
}

/// The tags around the result of an action or a thread in a prompt. The text between the tags may
/// be no XML.
const RESULTS: [(&str, &str); 2] =
    [("<action-result ", "</action-result>"), ("<thread-result ", "</thread-result>")];

/// Adds the texts of the elements in `said`. If `said` isn't XML, adds `said` itself, on one line
/// and without the tags of a result.
fn words(said: &str, to: &mut Vec<String>) {
    let elements = said.starts_with('<').then(|| format!("<all>{said}</all>"));
    if let Some(all) = elements.and_then(|it| xml::read(it, Profile::Wire, &XmlLimits::INSIDE).ok())
    {
        return texts(all.view(), to);
    }
    let within = RESULTS.iter().find_map(|(begin, end)| {
        let (_, within) = said.strip_prefix(begin)?.strip_suffix(end)?.split_once('>')?;
        Some(within)
    });
    one_line(within.unwrap_or(said), to);
}

fn texts(of: View<'_>, to: &mut Vec<String>) {
    for child in of.children() {
        match child {
            Child::Element(it) => texts(it, to),
            Child::Text(text) => one_line(text, to),
        }
    }
}

fn one_line(text: &str, to: &mut Vec<String>) {
    let words: Vec<&str> = text.split_whitespace().collect();
    to.extend((!words.is_empty()).then(|| words.join(" ")));
}

struct Hash(blake3::Hasher);

impl Hash {
    fn number(&mut self, number: u64) {
        self.0.update(&number.to_le_bytes());
    }

    fn text(&mut self, text: &str) {
        self.number(text.len() as u64);
        self.0.update(text.as_bytes());
    }

    fn maybe(&mut self, number: Option<u64>) {
        self.0.update(&[u8::from(number.is_some())]);
        if let Some(number) = number {
            self.number(number);
        }
    }
}

/// A prompt's identity, from [`Prompt::digest`]. As text it is 64 hexadecimal digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Digest(blake3::Hash);

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for Digest {
    type Err = NoDigest;

    fn from_str(text: &str) -> Result<Digest, NoDigest> {
        blake3::Hash::from_hex(text).map(Digest).map_err(|_| NoDigest)
    }
}

/// The error of a text that isn't a digest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "there is nothing more to say")]
pub struct NoDigest;

impl fmt::Display for NoDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a digest is 64 hexadecimal digits")
    }
}

impl std::error::Error for NoDigest {}

#[cfg(test)]
mod tests {
    use super::*;

    fn prompt() -> Prompt {
        Prompt::new("Be brief.").user("What is six times seven?").assistant("42").user("Sure?")
    }

    #[test]
    fn a_digest_is_of_all_that_a_provider_is_told() {
        let tool = || Tool::new("add", "Adds.", serde_json::json!({"type": "object"}));
        let changes: [fn(&mut Prompt); 11] = [
            |it| it.system.push(' '),
            |it| it.messages[0].text.push(' '),
            |it| it.messages[0].role = Role::Assistant,
            |it| drop(it.messages.pop()),
            |it| it.max_tokens = Some(0),
            |it| it.stop.push(String::new()),
            |it| it.temperature = Some(0.0),
            |it| it.top_p = Some(0.0),
            |it| it.seed = Some(0),
            |it| it.tools[0].description.clear(),
            |it| it.format = Some(Format::new("", "", Value::Null)),
        ];
        let mut first = prompt();
        first.tools.push(tool());
        let mut seen = vec![first.digest(), prompt().digest()];
        for change in changes {
            let mut other = first.clone();
            change(&mut other);
            assert!(!seen.contains(&other.digest()), "{other:?}");
            seen.push(other.digest());
        }
        let mut later = first.clone();
        later.turn = 7;
        assert_eq!(later.digest(), first.digest());
    }

    #[test]
    fn a_digest_is_the_same_tomorrow() {
        let expected = "d55975747b288b3e04a2e6d5e28ab50b52941e3127464e3935b52a547440a679";
        assert_eq!(prompt().digest().to_string(), expected);
        assert_eq!(expected.parse(), Ok(prompt().digest()));
        assert_eq!("42".parse::<Digest>(), Err(NoDigest));
    }

    #[test]
    fn what_was_heard_is_the_text_of_the_newest_message() {
        let check = |said: &str, expected: &str| {
            let prompt = Prompt::new("Be brief.").user("before").assistant("…").user(said);
            assert_eq!(prompt.heard(), expected, "{said}");
            assert_eq!(prompt.assistant("after").heard(), expected, "{said}");
        };
        check("", "");
        check("two\n  lines", "two lines");
        check("[action #7f3a9c]\nWhat do you know?", "What do you know?");
        check("[ada #7f3a9c]\none\n\n[bob #7f3a9c]\ntwo", "one, two");
        check("[a #7f3a9c]\n<x xmlns=\"urn:x\" y=\"1\">a &lt; <z>b</z> </x>", "a <, b");
        check("<r id=\"a\">1</r>\n\n<r id=\"b\">2</r>", "1, 2");
        // A result may follow a text, and its content needn't be well-formed markup.
        let result =
            |text: &str| format!("<action-result id=\"a\" status=\"ok\">{text}</action-result>");
        check(&format!("Well?\n{}\nAnd now?", result("42")), "Well?, 42, And now?");
        check(&format!("{}\n{}", result("1 <b> 2"), result("3")), "1 <b> 2, 3");
        check(&format!("Well?\n{}", result("a\n<p>b")), "Well?, a <p>b");
        // Text that isn't markup stays as it is.
        check("1 < 2 &amp; 3", "1 < 2 &amp; 3");
        check("<3 is a heart", "<3 is a heart");
        check("[fetch: failed]", "[fetch: failed]");
        check("{\"text\": \"a\"}", "{\"text\": \"a\"}");
        assert_eq!(Prompt::new("x").heard(), "");
    }

    #[test]
    fn a_turn_is_one_more_than_the_model_has_had() {
        assert_eq!(Prompt::new("").turn(), 1);
        assert_eq!(prompt().turn(), 2);
        assert_eq!(Prompt { turn: 9, ..prompt() }.turn(), 9);
    }
}
