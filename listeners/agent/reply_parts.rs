//! Reads a reply while the model writes it. The parser's events become parts on which the agent
//! acts.

use std::collections::BTreeSet;
use std::sync::Arc;

use pumphouse::Element;
use pumphouse::limits::ActionLimits;
use pumphouse::model::Call;
use pumphouse::reply::{self, Config, Event, Fault, Kind, Parser, What};

use super::super::action::read::{Mistakes, action_within};
use super::super::action::words::{Action, Dialect as CallDialect};
use super::super::metadata::MetadataUpdate;
use super::blocks::Blocks;
use super::call_text::{own_id, split, tool_use};
use super::compensation::Callable;
use super::cut_reply::CutReply;
use super::escape;
use super::outside_words::OutsideWords;
use super::settings::{Dialect, Settings};
use super::strict_element::element;
use super::tag_text::{called, is_mention};
use super::thought::{OpenElements, ThoughtText};

/// The advice about broken JSON.
const ESCAPES: &str = "Within a JSON string write a new line as \\n and a quote as \\\"";
/// The form of a call without JSON.
const ELEMENTS: &str = "<name>…</name><parameters><content><![CDATA[…]]></content></parameters>.";

/// A part of a reply, on which the agent acts. Parts arrive in the order of the reply.
pub(super) enum ReplyPart {
    /// A piece of text, and the kind of element around it: `thought` (also for a block around
    /// actions), `response`, or `text` for neither.
    Text(&'static str, String),
    Thought(ThoughtText),
    /// A call, or all its mistakes.
    Call(Box<Result<Action, Mistakes>>),
    /// A response, with its attribute `final` and the place of its text in the reply, in bytes.
    Response {
        is_final: Option<bool>,
        text: String,
        from: usize,
        to: usize,
    },
    /// The metadata that the agent sets, or the reason why they can't be read.
    Metadata(Result<MetadataUpdate, String>),
    /// A payload for one of the pump's own listeners (`is_core`) or for a peer, and the range of
    /// bytes of its element in the reply.
    Payload {
        local: String,
        element: Result<Element, String>,
        is_core: bool,
        from: usize,
        to: usize,
    },
    /// An element with the name of the payload that this agent takes. By writing it, the agent asks
    /// for another turn.
    Own,
    /// The name of an element that has no meaning here.
    Meaningless(String),
    /// An element that doesn't run, and the reason. `call` is the element's id, or its name if it
    /// has no id. It is None for thoughts, for a block without a close tag, and for metadata and
    /// responses outside of blocks.
    Broken {
        call: Option<String>,
        text: String,
        line: u32,
        column: u32,
    },
    /// A valid element that doesn't run because of where it stands, such as in a code fence.
    /// `element` is set for a payload.
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

impl ReplyPart {
    /// Whether this part is mere text. It isn't if the part is a call, a response or a payload, an
    /// element that asks for another turn, or a broken call or payload.
    pub(super) fn is_only_text(&self) -> bool {
        !matches!(
            self,
            ReplyPart::Call(_)
                | ReplyPart::Response { .. }
                | ReplyPart::Payload { .. }
                | ReplyPart::Own
                | ReplyPart::Broken { call: Some(_), .. }
        )
    }
}

/// A reply while it is written.
pub(super) struct ReplyReader {
    config: Arc<Config>,
    parser: Parser,
    /// Whether the model makes calls in the provider's own protocol.
    is_native: bool,
    /// The text so far, as it is recorded.
    pub(super) text: String,
    /// The places of native calls in the text: the byte offsets of the beginning and the end of
    /// each.
    natives: Vec<u64>,
    /// Our own ids of the native calls so far.
    ids: BTreeSet<String>,
    /// Whether the text since the last native call is a JSON answer.
    answer: JsonAnswer,
    /// How the reply was cut, once that is known.
    cut: Option<CutReply>,
    collector: PartCollector,
}

/// The state of a JSON answer. Elements in such an answer count as text.
#[derive(Clone, Copy)]
enum JsonAnswer {
    /// The model writes no JSON answers.
    Never,
    /// Only white space came so far.
    Blank,
    /// The answer began at this byte.
    From(usize),
    /// The text isn't JSON.
    Other,
}

/// Collects the parts of a reply from the parser's events.
struct PartCollector {
    parts: Vec<ReplyPart>,
    turn: u64,
    /// The dialect of the current call, if the text doesn't show it.
    dialect: Option<CallDialect>,
    /// The limits of the agent's actions.
    limits: ActionLimits,
    /// The number of bytes of the recorded text that have been read.
    at: usize,
    /// The position at which the text of the open response begins, in bytes.
    response: usize,
    /// How the reply was cut, while a native call or the end of the reply is read.
    cut: Option<CutReply>,
    /// Whether the reply goes on with an answer that was cut.
    continues: bool,
    /// The open elements around the current place.
    open: OpenElements,
    blocks: Blocks,
    words: OutsideWords,
}

impl ReplyReader {
    /// Creates a reader for one turn.
    pub(super) fn new(turn: u64, config: &Arc<Config>, settings: &Settings) -> ReplyReader {
        let config = Arc::clone(config);
        let limits = settings.action_limits;
        let collector = PartCollector {
            parts: Vec::new(),
            turn,
            dialect: None,
            limits,
            at: 0,
            response: 0,
            cut: None,
            continues: false,
            open: OpenElements::default(),
            blocks: Blocks::new(turn, settings),
            words: OutsideWords::default(),
        };
        let parser = Parser::new(config.clone());
        let is_native = settings.dialect == Dialect::Native;
        let (text, natives, answer) = (String::new(), Vec::new(), JsonAnswer::Never);
        let (ids, cut) = (BTreeSet::new(), None);
        ReplyReader { config, parser, is_native, text, natives, ids, answer, cut, collector }
    }

    /// Sets the names that the agent's compensations may call.
    pub(super) fn allow_calls(&mut self, callable: Callable) {
        self.collector.blocks.allow_calls(callable);
    }

    /// From now on, treats text that begins with `{` as a JSON answer, in which elements count as
    /// text.
    pub(super) fn expect_json(&mut self) {
        self.answer = JsonAnswer::Blank;
    }

    /// The place of the JSON answer: the byte offsets of its beginning and its end. None if there
    /// is no such answer.
    pub(super) fn json(&self) -> Option<(usize, usize)> {
        match self.answer {
            JsonAnswer::From(from) => Some((from, from + self.text[from..].trim_end().len())),
            _ => None,
        }
    }

    /// Says that the reply goes on with an answer that was cut, so that the white space before its
    /// text counts.
    pub(super) fn expect_continuation(&mut self) {
        self.collector.continues = true;
    }

    /// Sets how the reply was cut. Native calls with broken JSON are told so from now on.
    pub(super) fn note_cut(&mut self, cut: Option<CutReply>) {
        self.cut = cut;
    }

    /// Takes a call in the provider's own protocol. The call means the same as a `<tool_use>`. Open
    /// elements and fences end before the call, so that none of them hides it.
    pub(super) fn call(&mut self, call: &Call) -> Vec<ReplyPart> {
        let place = self.ids.len() + 1;
        let id = own_id(call, self.collector.turn, place, &self.ids);
        let element = tool_use(call, &id);
        self.ids.insert(id);
        self.native(&element)
    }

    fn native(&mut self, element: &str) -> Vec<ReplyPart> {
        let mut parts = self.end();
        self.collector.dialect = Some(CallDialect::Native);
        let from = self.text.len();
        self.collector.cut = self.cut;
        parts.extend(self.parse(element));
        self.collector.cut = None;
        if !matches!(self.answer, JsonAnswer::Never) {
            // The text before the call was no answer.
            self.answer = JsonAnswer::Blank;
        }
        self.natives.extend([from as u64, self.text.len() as u64]);
        parts.extend(self.end());
        self.collector.dialect = None;
        parts
    }

    /// The places of native calls in the text: the byte offsets of the beginning and the end of
    /// each.
    pub(super) fn places(&self) -> Vec<u64> {
        self.natives.clone()
    }

    /// Reads a recorded text, including its native calls.
    pub(super) fn again(&mut self, text: &str) -> Vec<ReplyPart> {
        let text = escape::written(text);
        let (mut text, mut parts) = (&*text, Vec::new());
        while let Some((before, call, rest)) = self.is_native.then(|| split(text)).flatten() {
            parts.extend(self.feed(before));
            parts.extend(self.native(call));
            text = rest;
        }
        parts.extend(self.feed(text));
        parts
    }

    /// Takes the next text of the reply, and returns the parts that it completes.
    pub(super) fn feed(&mut self, text: &str) -> Vec<ReplyPart> {
        // Only JSON's white space is trimmed. Escapes make other control characters longer in
        // `self.text`, so the byte offset of the answer would be wrong.
        let words = text.trim_start_matches([' ', '\t', '\n', '\r']);
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
        self.collector.at += text.len();
        vec![ReplyPart::Text("text", text)]
    }

    fn parse(&mut self, text: &str) -> Vec<ReplyPart> {
        self.text.push_str(&escape::recorded(text));
        let collector = &mut self.collector;
        self.parser.feed(text, &mut |it| collector.hear(&it));
        std::mem::take(&mut collector.parts)
    }

    /// Ends the reply. Returns the reply's text, the last parts, and the place of the last text
    /// outside elements. This text is the answer of a model that writes no `<response>`. `cut` says
    /// how the reply was cut, if it was.
    pub(super) fn finished(
        self,
        cut: Option<CutReply>,
    ) -> (String, Vec<ReplyPart>, Option<(usize, usize)>) {
        let ReplyReader { parser, text, mut collector, .. } = self;
        collector.cut = cut;
        parser.finish(&mut |it| collector.hear(&it));
        let words = collector.words.answer(&text, collector.continues, cut.is_some());
        let mut parts = collector.parts;
        if cut.is_some() {
            cut_off(&mut parts);
        }
        (text, parts, words)
    }

    /// Ends all open elements. The text after this is read as if it began the reply.
    fn end(&mut self) -> Vec<ReplyPart> {
        let collector = &mut self.collector;
        let parser = std::mem::replace(&mut self.parser, Parser::new(self.config.clone()));
        parser.finish(&mut |it| collector.hear(&it));
        std::mem::take(&mut collector.parts)
    }
}

impl PartCollector {
    /// The text of a response, without the white space around it. Where the response is a piece of
    /// an answer, the white space between the pieces stays.
    fn piece<'a>(&self, body: &'a str) -> &'a str {
        let body = if self.cut.is_some() { body } else { body.trim_end() };
        match self.continues {
            // The line break behind the tag is none of the answer.
            true => body.strip_prefix('\n').unwrap_or(body),
            false => body.trim_start(),
        }
    }

    fn hear(&mut self, event: &Event<'_>) {
        let (line, column) = (event.place.line, event.place.column);
        let end = self.at + escape::recorded(event.source).len();
        match event.what {
            What::Text { within } => {
                let within = match within {
                    Some(Kind::Thought | Kind::Control) => "thought",
                    Some(Kind::Response) => "response",
                    _ => "text",
                };
                self.open.says(event.source.len());
                if within == "text" {
                    self.words.says(event.source, (self.at, end));
                }
                self.parts
                    .push(ReplyPart::Text(within, escape::recorded(event.source).into_owned()));
            }
            What::Opened(it) => {
                self.open.opens(it.kind);
                match it.kind {
                    Kind::Response => self.response = end,
                    Kind::Control => self.block(&it, event.source, (line, column)),
                    _ => {}
                }
            }
            What::Closed(_) | What::Broken(_) if is_mention(event.source) => {
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
                let text = format!("<{}> {}: {why}", it.name, fate(it.name));
                self.parts.push(broken(call, &text, line, column));
            }
            What::Closed(it) => self.closed(&it, event.source, end, (line, column)),
            What::Broken(it) => {
                self.blocks.loses(it.name);
                if event.source.is_empty() && it.fault == Fault::Limit {
                    self.open.begins_anew();
                }
                let call = called(it.name, event.source);
                let text = self.why_broken(&it, call.as_deref(), line);
                self.parts.push(broken(call, &text, line, column));
            }
            What::Ignored { element, why } => {
                let part = self.ignored(&element, why.as_str(), (line, column));
                self.parts.extend(part);
            }
            What::Repaired(text) => {
                let text = escape::recorded(text).into_owned();
                self.parts.push(ReplyPart::Repaired { text, line, column });
            }
            What::Finished { cut: Some(_) } if is_mention(event.source) => {
                self.mentions(event.source);
            }
            What::Finished { cut: Some(it) } => {
                let call = called(it.name, event.source);
                let text = self.why_cut(it.name, call.is_some());
                self.parts.push(broken(call, &text, it.place.line, it.place.column));
            }
            _ => {}
        }
        self.at = end;
    }

    /// Opens a block around actions.
    fn block(&mut self, it: &reply::Element<'_>, tag: &str, (line, column): (u32, u32)) {
        match self.blocks.opens(it, tag) {
            Ok(actions) => {
                let calls = actions.into_iter().map(|it| ReplyPart::Call(Box::new(Ok(it))));
                self.parts.extend(calls);
            }
            Err(why) => self.parts.push(broken(Some(it.name.to_owned()), &why, line, column)),
        }
    }

    /// The notice about a broken element. For a call with broken JSON, the notice names the call
    /// and says what to write. If the call isn't native, the notice also has the number of the
    /// line, and shows the form without JSON.
    fn why_broken(&self, it: &reply::Broken<'_>, call: Option<&str>, line: u32) -> String {
        let Some(call) = call.filter(|_| it.fault == Fault::Json) else {
            let fate = fate(it.name);
            return format!("<{}> {fate}: {}, at {}", it.name, it.reason, it.snippet);
        };
        let what = if call == it.name { format!("<{call}>") } else { call.to_owned() };
        let (reason, snippet) = (it.reason, it.snippet);
        if let Some(cut) = self.cut {
            return cut.call(&what);
        }
        if self.dialect == Some(CallDialect::Native) {
            return format!("{what} did not run: {reason}, at {snippet}\n{ESCAPES}.");
        }
        format!(
            "{what} did not run: in line {line} of your reply its JSON is broken: {reason}, at \
             {snippet}\n{ESCAPES}, or write the parameters as elements: {ELEMENTS}"
        )
    }

    /// The notice about an element within which the reply ended.
    fn why_cut(&self, name: &str, is_call: bool) -> String {
        match self.cut.filter(|_| is_call) {
            Some(cut) => cut.call(&format!("<{name}>")),
            None => format!("<{name}> {}: the reply ended within it", fate(name)),
        }
    }

    /// Treats a mention of an action as text.
    fn mentions(&mut self, source: &str) {
        self.open.keeps(None, source);
        let within = if self.open.is_thought() { "thought" } else { "text" };
        if within == "text" {
            let end = self.at + escape::recorded(source).len();
            self.words.says(source, (self.at, end));
        }
        self.parts.push(ReplyPart::Text(within, escape::recorded(source).into_owned()));
    }

    /// The part [`ReplyPart::Ignored`] for a valid element that doesn't run because of where it
    /// stands. None for any other element.
    fn ignored(
        &mut self,
        it: &reply::Element<'_>,
        why: &str,
        (line, column): (u32, u32),
    ) -> Option<ReplyPart> {
        if it.kind == Kind::Control {
            self.blocks.enter_line();
            return None;
        }
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
        let text = format!("<{local}> {}: {why}", fate(&local));
        is_sound.then_some(ReplyPart::Ignored { local, element, is_core, text, line, column })
    }

    fn closed(
        &mut self,
        it: &reply::Element<'_>,
        source: &str,
        end: usize,
        (line, column): (u32, u32),
    ) {
        let body = it.body.as_str();
        let part = match it.kind {
            Kind::Control => {
                self.open.closes(body);
                let Some(text) = self.blocks.closes(source) else { return };
                broken(None, &text, line, column)
            }
            kind if let Some(why) = self.blocks.refuses(kind) => {
                if matches!(kind, Kind::Response | Kind::Root) {
                    self.open.closes(body);
                }
                let text = format!("<{}> {}: {why}", it.name, fate(it.name));
                broken(Some(it.name.to_owned()), &text, line, column)
            }
            Kind::Thought => ReplyPart::Thought(self.open.closes(body)),
            Kind::Response => {
                self.open.closes(body);
                let is_final = it.attribute("final").map(|it| it == "true");
                let (from, to) = (self.response, self.at);
                let text = escape::recorded(self.piece(body)).into_owned();
                ReplyPart::Response { is_final, text, from, to }
            }
            Kind::Root => {
                self.open.closes(body);
                ReplyPart::Own
            }
            Kind::Action | Kind::ToolUse | Kind::ToolCall => {
                ReplyPart::Call(Box::new(self.blocks.action(it, self.dialect)))
            }
            Kind::Metadata => ReplyPart::Metadata(MetadataUpdate::read(it)),
            Kind::Core | Kind::Peer => {
                let element = element(it);
                let is_core = it.kind == Kind::Core;
                self.open.keeps(Some(self.at), source);
                let (local, from, to) = (it.name.to_owned(), self.at, end);
                ReplyPart::Payload { local, element, is_core, from, to }
            }
            _ => ReplyPart::Meaningless(it.name.to_owned()),
        };
        self.parts.push(part);
    }
}

/// The words by which a notice says that an element had no effect.
fn fate(name: &str) -> &'static str {
    if name == "metadata" { "was not kept" } else { "did not run" }
}

/// Changes the last parts of an incomplete reply: a response that was cut off isn't final, and is
/// dropped if it is empty.
fn cut_off(parts: &mut Vec<ReplyPart>) {
    let is_blank =
        |it: &ReplyPart| matches!(it, ReplyPart::Response { text, .. } if text.trim().is_empty());
    parts.retain(|it| !is_blank(it));
    for it in parts {
        if let ReplyPart::Response { is_final, .. } = it {
            *is_final = Some(false);
        }
    }
}

/// A broken element, with escapes in its texts.
fn broken(call: Option<String>, text: &str, line: u32, column: u32) -> ReplyPart {
    let call = call.map(|it| escape::recorded(&it).into_owned());
    ReplyPart::Broken { call, text: escape::recorded(text).into_owned(), line, column }
}
