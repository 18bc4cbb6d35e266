//! A reply while it is written: what the parser says of it, kept until it can be acted on.

use std::borrow::Cow;
use std::sync::Arc;

use pumphouse::Element;
use pumphouse::limits::{ActionLimits, XmlLimits};
use pumphouse::model::Call;
use pumphouse::reply::{self, Body, Config, Event, Fault, Kind, Parser, Reading, What};
use pumphouse::xml::{self, Profile};

use super::super::action::read::{Mistakes, action_within};
use super::super::action::words::{Action, Dialect as CallDialect};
use super::super::metadata::MetadataUpdate;
use super::escape;
use super::settings::{Dialect, Settings};
use super::thought::{OpenElements, ThoughtText};
use super::words::{explains_mistakes, reading};

/// How a call in the provider's own protocol stands among the words: it begins so, and
const OPEN: &str = "<tool_use";
/// ends so. No JSON text has such a line.
const CLOSE: &str = "</tool_use>\n";

/// What a model is told of broken JSON, and
const ESCAPES: &str = "Within a JSON string write a new line as \\n and a quote as \\\"";
/// how it can do without.
const ELEMENTS: &str = "<name>…</name><parameters><content><![CDATA[…]]></content></parameters>.";

/// Something in a reply that is to be acted on, in its order.
pub(super) enum Heard {
    /// Text as it comes: where it stands, and the text.
    Text(&'static str, String),
    Thought(ThoughtText),
    /// A call, or all that is wrong with it.
    Call(Box<Result<Action, Mistakes>>),
    /// A response; whether it says that it is final, and where its words stand.
    Response {
        is_final: Option<bool>,
        text: String,
        from: usize,
        to: usize,
    },
    /// What it says of its own state, or why that can't be read.
    Metadata(Result<MetadataUpdate, String>),
    /// A payload for the core or for a peer, and where it stands.
    Payload {
        local: String,
        element: Result<Element, String>,
        is_core: bool,
        from: usize,
        to: usize,
    },
    /// The agent's own root: it wants to go on.
    Own,
    /// Something that has no meaning here.
    Meaningless(String),
    /// An element that will not run, and why; of a call its id, as far as it has one.
    Broken {
        call: Option<String>,
        text: String,
        line: u32,
        column: u32,
    },
    /// An element that is text where it stands, and why; of a payload the element itself.
    Ignored {
        local: String,
        element: Option<Element>,
        is_core: bool,
        text: String,
        line: u32,
        column: u32,
    },
    Repaired {
        text: String,
        line: u32,
        column: u32,
    },
}

impl Heard {
    /// Whether it has nothing done, and answers nothing.
    pub(super) fn is_only_text(&self) -> bool {
        !matches!(
            self,
            Heard::Call(_)
                | Heard::Response { .. }
                | Heard::Payload { .. }
                | Heard::Own
                | Heard::Broken { call: Some(_), .. }
        )
    }
}

/// A reply while it is written.
pub(super) struct Writing {
    config: Arc<Config>,
    parser: Parser,
    /// Whether calls come in the provider's own protocol.
    is_native: bool,
    /// The words so far.
    pub(super) text: String,
    /// Where native calls stand in them.
    natives: Vec<u64>,
    /// Whether the text since the last call is a JSON answer, where the model writes such.
    answer: JsonAnswer,
    hearing: Hearing,
}

/// An answer in JSON, in which elements are text.
#[derive(Clone, Copy)]
enum JsonAnswer {
    /// There is none in this reply.
    Never,
    /// Only white space came so far.
    Blank,
    /// It began there.
    From(usize),
    /// The text is another one.
    Other,
}

/// What was heard, and how far.
struct Hearing {
    heard: Vec<Heard>,
    turn: u64,
    /// How calls are written, where that isn't seen from their words.
    dialect: Option<CallDialect>,
    /// What the actions may come to.
    limits: ActionLimits,
    /// The bytes that are behind.
    at: usize,
    /// Where the words of the response begin that is being written.
    response: usize,
    /// Whether 0.1.0 read it: a mention of an action was one to it.
    is_old: bool,
    /// Whether broken JSON is told with its line and what to write.
    explains: bool,
    reading: Reading,
    /// What stands around.
    open: OpenElements,
    words: OutsideWords,
}

/// The pieces of text outside of all elements, as far as they matter.
#[derive(Default)]
struct OutsideWords {
    /// The piece at hand: from, up to, and whether it is more than white space.
    last: (usize, usize, bool),
    /// The piece before it that was more.
    before: Option<(usize, usize)>,
}

impl OutsideWords {
    /// Text comes that stands at these bytes.
    fn says(&mut self, text: &str, (from, to): (usize, usize)) {
        if self.last.1 != from {
            self.before = self.last();
            self.last = (from, to, false);
        }
        self.last.1 = to;
        self.last.2 |= !text.trim().is_empty();
    }

    /// The last piece that is more than white space.
    fn last(&self) -> Option<(usize, usize)> {
        let (from, to, has_words) = self.last;
        if has_words { Some((from, to)) } else { self.before }
    }

    /// Where the words stand that a chat model answers with, once the reply is at its end: the last
    /// text outside of all elements that isn't blank. From and up to.
    fn answer(&self, reply: &str) -> Option<(usize, usize)> {
        let words = self.last()?;
        let text = reply.get(words.0..words.1)?;
        let from = words.0 + text.len() - text.trim_start().len();
        Some((from, from + text.trim().len()))
    }
}

impl Writing {
    /// One of an agent whose replies are read so, but by the rules of its turn.
    pub(super) fn new(
        turn: u64,
        config: &Arc<Config>,
        settings: &Settings,
        rules: Option<u32>,
    ) -> Writing {
        let (is_old, reading) = (rules.is_none(), reading(rules));
        let mut config = Arc::clone(config);
        if config.reading != reading {
            Arc::make_mut(&mut config).reading = reading;
        }
        let limits = settings.action_limits;
        let hearing = Hearing {
            heard: Vec::new(),
            turn,
            dialect: None,
            limits,
            at: 0,
            response: 0,
            is_old,
            explains: explains_mistakes(rules),
            reading,
            open: OpenElements::default(),
            words: OutsideWords::default(),
        };
        let parser = Parser::new(config.clone());
        let is_native = settings.dialect == Dialect::Native;
        let (text, natives, answer) = (String::new(), Vec::new(), JsonAnswer::Never);
        Writing { config, parser, is_native, text, natives, answer, hearing }
    }

    /// Reads a text that begins as a JSON object as that, and looks for no elements in it.
    pub(super) fn may_be_json(&mut self) {
        self.answer = JsonAnswer::Blank;
    }

    /// Where the answer stands that is JSON, from and up to.
    pub(super) fn json(&self) -> Option<(usize, usize)> {
        match self.answer {
            JsonAnswer::From(from) => Some((from, from + self.text[from..].trim_end().len())),
            _ => None,
        }
    }

    /// Takes a call in the provider's own protocol, which means what a `<tool_use>` means. What was
    /// being written ends before it, so that no open tag or fence hides it.
    pub(super) fn call(&mut self, call: &Call) -> Vec<Heard> {
        self.native(&tool_use(call))
    }

    fn native(&mut self, element: &str) -> Vec<Heard> {
        let mut heard = self.end();
        self.hearing.dialect = Some(CallDialect::Native);
        let from = self.text.len();
        heard.extend(self.parse(element));
        if !matches!(self.answer, JsonAnswer::Never) {
            // What stood before it was no answer.
            self.answer = JsonAnswer::Blank;
        }
        self.natives.extend([from as u64, self.text.len() as u64]);
        heard.extend(self.end());
        self.hearing.dialect = None;
        heard
    }

    /// Where the calls stand among the words that came in the provider's own protocol: from and up
    /// to, one after another.
    pub(super) fn places(&self) -> Vec<u64> {
        self.natives.clone()
    }

    /// Takes words that were written before, with the calls that were put among them.
    pub(super) fn again(&mut self, text: &str) -> Vec<Heard> {
        let text = match self.config.reading {
            Reading::CommonMark => escape::written(text),
            _ => text.into(),
        };
        let (mut text, mut heard) = (&*text, Vec::new());
        while let Some((before, call, rest)) = self.is_native.then(|| split(text)).flatten() {
            heard.extend(self.feed(before));
            heard.extend(self.native(call));
            text = rest;
        }
        heard.extend(self.feed(text));
        heard
    }

    /// Takes more of the reply, and gives what that comes to.
    pub(super) fn feed(&mut self, text: &str) -> Vec<Heard> {
        let words = text.trim_start();
        if matches!(self.answer, JsonAnswer::Blank) && !words.is_empty() {
            self.answer = match words.starts_with('{') {
                true => JsonAnswer::From(self.text.len() + text.len() - words.len()),
                false => JsonAnswer::Other,
            };
        }
        if !matches!(self.answer, JsonAnswer::From(_)) {
            return self.parse(text);
        }
        let text = escape::recorded(text).into_owned();
        self.text.push_str(&text);
        self.hearing.at += text.len();
        vec![Heard::Text("text", text)]
    }

    fn parse(&mut self, text: &str) -> Vec<Heard> {
        match self.config.reading {
            Reading::CommonMark => self.text.push_str(&escape::recorded(text)),
            _ => self.text.push_str(text),
        }
        let hearing = &mut self.hearing;
        self.parser.feed(text, &mut |it| hearing.hear(&it));
        std::mem::take(&mut hearing.heard)
    }

    /// Takes the reply's end, where it was cut or wasn't: the words, what that comes to, and where
    /// the words stand that a chat model answers with.
    pub(super) fn finished(self, is_cut: bool) -> (String, Vec<Heard>, Option<(usize, usize)>) {
        let Writing { parser, text, mut hearing, .. } = self;
        parser.finish(&mut |it| hearing.hear(&it));
        let words = hearing.words.answer(&text);
        let mut heard = hearing.heard;
        if is_cut {
            cut(&mut heard);
        }
        (text, heard, words)
    }

    /// Ends what is open; what follows stands by itself.
    fn end(&mut self) -> Vec<Heard> {
        let hearing = &mut self.hearing;
        let parser = std::mem::replace(&mut self.parser, Parser::new(self.config.clone()));
        parser.finish(&mut |it| hearing.hear(&it));
        std::mem::take(&mut hearing.heard)
    }
}

impl Hearing {
    /// What XML doesn't have of a text is recorded in other characters; turns of before didn't.
    fn recorded<'a>(&self, text: &'a str) -> Cow<'a, str> {
        match self.reading {
            Reading::CommonMark => escape::recorded(text),
            _ => Cow::Borrowed(text),
        }
    }

    fn hear(&mut self, event: &Event<'_>) {
        let (line, column) = (event.place.line, event.place.column);
        let end = self.at + self.recorded(event.source).len();
        match event.what {
            What::Text { within } => {
                let within = match within {
                    Some(Kind::Thought) => "thought",
                    Some(Kind::Response) => "response",
                    _ => "text",
                };
                self.open.says(event.source.len());
                if within == "text" {
                    self.words.says(event.source, (self.at, end));
                }
                self.heard.push(Heard::Text(within, self.recorded(event.source).into_owned()));
            }
            What::Opened(it) => {
                self.open.opens(it.kind);
                if it.kind == Kind::Response {
                    self.response = end;
                }
            }
            What::Closed(_) | What::Broken(_) if !self.is_old && is_mention(event.source) => {
                self.mentions(event.source);
            }
            What::Closed(it)
                if !matches!(it.kind, Kind::Thought | Kind::Response | Kind::Root)
                    && escape::has_foreign(event.source) =>
            {
                if matches!(it.kind, Kind::Core | Kind::Peer) {
                    self.open.keeps(None, event.source);
                }
                let call = called(it.name, event.source);
                let why = "it holds a character that XML doesn't have";
                let text = format!("<{}> did not run: {why}", it.name);
                self.heard.push(broken(call, &text, line, column));
            }
            What::Closed(it) => self.closed(&it, event.source, end),
            What::Broken(it) => {
                if event.source.is_empty() && it.fault == Fault::Limit {
                    self.open.begins_anew();
                }
                let call = called(it.name, event.source);
                let text = self.why_broken(&it, call.as_deref(), line);
                self.heard.push(broken(call, &text, line, column));
            }
            What::Ignored { element, why } => {
                self.heard.extend(self.ignored(&element, why.as_str(), (line, column)));
            }
            What::Repaired(text) => {
                let text = self.recorded(text).into_owned();
                self.heard.push(Heard::Repaired { text, line, column });
            }
            What::Finished { cut: Some(_) } if !self.is_old && is_mention(event.source) => {
                self.mentions(event.source);
            }
            What::Finished { cut: Some(it) } => {
                let call = called(it.name, event.source);
                let text = format!("<{}> did not run: the reply ended within it", it.name);
                let (line, column) = (it.place.line, it.place.column);
                self.heard.push(broken(call, &text, line, column));
            }
            _ => {}
        }
        self.at = end;
    }

    /// What is told of something broken; of a call whose JSON is, which call, where, and what to
    /// write.
    fn why_broken(&self, it: &reply::Broken<'_>, call: Option<&str>, line: u32) -> String {
        let is_explained = self.explains && it.fault == Fault::Json;
        let Some(call) = call.filter(|_| is_explained) else {
            return format!("<{}> did not run: {}, at {}", it.name, it.reason, it.snippet);
        };
        let what = if call == it.name { format!("<{call}>") } else { call.to_owned() };
        let (reason, snippet) = (it.reason, it.snippet);
        if self.dialect == Some(CallDialect::Native) {
            return format!("{what} did not run: {reason}, at {snippet}\n{ESCAPES}.");
        }
        format!(
            "{what} did not run: in line {line} of your reply its JSON is broken: {reason}, at \
             {snippet}\n{ESCAPES}, or write the parameters as elements: {ELEMENTS}"
        )
    }

    /// An action that is only spoken of is text.
    fn mentions(&mut self, source: &str) {
        if self.reading == Reading::CommonMark {
            self.open.keeps(None, source);
            let within = if self.open.is_thought() { "thought" } else { "text" };
            if within == "text" {
                let end = self.at + self.recorded(source).len();
                self.words.says(source, (self.at, end));
            }
            self.heard.push(Heard::Text(within, self.recorded(source).into_owned()));
        }
    }

    /// What is told of a sound element that is text; nothing of any other.
    fn ignored(
        &self,
        it: &reply::Element<'_>,
        why: &str,
        (line, column): (u32, u32),
    ) -> Option<Heard> {
        let is_payload = matches!(it.kind, Kind::Core | Kind::Peer);
        let payload = is_payload.then(|| element(it));
        let is_sound = match it.kind {
            Kind::Action | Kind::ToolUse | Kind::ToolCall => {
                action_within(it, Some(self.turn), self.dialect, &self.limits).is_ok()
            }
            Kind::Metadata => MetadataUpdate::read(it).is_ok(),
            _ => is_payload,
        };
        let element = payload.transpose().ok()?;
        let (local, is_core) = (it.name.to_owned(), it.kind == Kind::Core);
        let text = format!("<{local}> did not run: {why}");
        is_sound.then_some(Heard::Ignored { local, element, is_core, text, line, column })
    }

    fn closed(&mut self, it: &reply::Element<'_>, source: &str, end: usize) {
        let body = it.body.as_str();
        let heard = match it.kind {
            Kind::Thought => Heard::Thought(self.open.closes(body)),
            Kind::Response => {
                self.open.closes(body);
                let is_final = it.attribute("final").map(|it| it == "true");
                let (from, to) = (self.response, self.at);
                let text = self.recorded(body.trim()).into_owned();
                Heard::Response { is_final, text, from, to }
            }
            Kind::Root => {
                self.open.closes(body);
                Heard::Own
            }
            Kind::Action | Kind::ToolUse | Kind::ToolCall => {
                let it = action_within(it, Some(self.turn), self.dialect, &self.limits);
                Heard::Call(Box::new(it))
            }
            Kind::Metadata => Heard::Metadata(MetadataUpdate::read(it)),
            Kind::Core | Kind::Peer => {
                let element = element(it);
                let is_core = it.kind == Kind::Core;
                if self.reading == Reading::CommonMark {
                    self.open.keeps(Some(self.at), source);
                }
                let (local, from, to) = (it.name.to_owned(), self.at, end);
                Heard::Payload { local, element, is_core, from, to }
            }
            _ => Heard::Meaningless(it.name.to_owned()),
        };
        self.heard.push(heard);
    }
}

/// What the end of a reply that was cut comes to: the response that it ended within, if it said
/// anything, isn't the agent's last word.
fn cut(heard: &mut Vec<Heard>) {
    heard.retain(|it| !matches!(it, Heard::Response { text, .. } if text.is_empty()));
    for it in heard {
        if let Heard::Response { is_final, .. } = it {
            *is_final = Some(false);
        }
    }
}

/// What won't run, in characters that XML has.
fn broken(call: Option<String>, text: &str, line: u32, column: u32) -> Heard {
    let call = call.map(|it| escape::recorded(&it).into_owned());
    Heard::Broken { call, text: escape::recorded(text).into_owned(), line, column }
}

/// Whether an element only speaks of actions: `<action>`, `<tool_use>` or `<tool_call>` without
/// attributes, and neither JSON nor elements in it.
fn is_mention(source: &str) -> bool {
    let mut names = ["<action>", "<tool_use>", "<tool_call>"].iter();
    let body = names.find_map(|it| source.strip_prefix(it)).map(str::trim_start);
    body.is_some_and(|it| !it.starts_with('{') && (!it.starts_with('<') || it.starts_with("</")))
}

/// The id of a call, or what it is, where it has none; nothing where it is no call.
fn called(name: &str, source: &str) -> Option<String> {
    if !matches!(name, "metadata" | "thought" | "think" | "thinking" | "response") {
        let tag = &source[..source.find('>').unwrap_or(source.len())];
        let id = |quote: char| {
            let within = format!("id={quote}");
            let mut ends = tag.match_indices(&within);
            let (at, _) = ends.find(|(at, _)| tag[..*at].ends_with(char::is_whitespace))?;
            Some(tag[at + within.len()..].split_once(quote)?.0.to_owned())
        };
        return Some(id('"').or_else(|| id('\'')).unwrap_or_else(|| name.to_owned()));
    }
    None
}

/// A call in the provider's own protocol as it stands among the words.
pub(super) fn tool_use(call: &Call) -> String {
    let mut text = String::from(OPEN);
    // Without an id it gets one.
    let attributes = [("id", &call.id), ("name", &call.name)];
    for (name, value) in attributes.into_iter().filter(|(_, value)| !value.is_empty()) {
        text += &format!(" {name}=\"");
        xml::escape_attribute(value, &mut text);
        text.push('"');
    }
    text += &format!(">{}{CLOSE}", call.arguments);
    text
}

/// A text before a call as [`Writing::call`] puts it, the call, and what is behind it.
fn split(text: &str) -> Option<(&str, &str, &str)> {
    let begin = text.find(OPEN)?;
    let end = begin + text[begin..].find(CLOSE)? + CLOSE.len();
    Some((&text[..begin], &text[begin..end], &text[end..]))
}

/// The element as it is written, strictly read.
fn element(it: &reply::Element<'_>) -> Result<Element, String> {
    let text = match it.body {
        Body::Elements(text) => text.to_owned(),
        Body::Empty => empty(it),
        _ => return Err("it holds no elements".to_owned()),
    };
    xml::read(text, Profile::Wire, &XmlLimits::INSIDE).map_err(|it| it.to_string())
}

/// An element that has attributes only.
fn empty(it: &reply::Element<'_>) -> String {
    let mut text = format!("<{}", it.name);
    for attribute in it.attributes {
        text += &format!(" {}=\"", attribute.name);
        xml::escape_attribute(&attribute.value, &mut text);
        text.push('"');
    }
    text + "/>"
}
