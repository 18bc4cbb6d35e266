//! Elements that are held back until they close, and are then parsed: calls, payloads and metadata.
//! Calls in JSON are handled here, too.

use std::borrow::Cow;

use crate::reply::body::{Body as Reading, BodyStep, Form, Surroundings};
use crate::reply::code::{CodeContext, Why};
use crate::reply::event::{Attribute, Body, Broken, Element, Event, Fault, What};
use crate::reply::json::{self, Wrong};
use crate::reply::names::{Kind, Markup};
use crate::reply::parser::{Parser, ParserState, Sink};
use crate::reply::place;
use crate::reply::repair;
use crate::reply::tag::Inside;
use crate::xml::Place;

/// An element that isn't complete yet.
#[derive(Debug)]
pub(super) struct Capture {
    pub(super) name: usize,
    kind: Kind,
    inside: Inside,
    pub(super) at: Place,
    /// How many bytes the open tag has.
    tag_bytes: usize,
    pub(super) body: Reading,
    /// The element crossed its limit, so that its further text is discarded.
    pub(super) discarding: bool,
    /// The state of the content as Markdown, and how many bytes of the element this state has read.
    markdown: Option<Box<(CodeContext, usize)>>,
}

impl Capture {
    pub(super) fn new(
        name: usize,
        kind: Kind,
        at: Place,
        tag_bytes: usize,
        inside: Inside,
    ) -> Capture {
        let form = if kind.is_call() { Form::Unknown } else { Form::Elements };
        let body = Reading::new(form, tag_bytes);
        let (discarding, markdown) = (false, None);
        Capture { name, kind, inside, at, tag_bytes, body, discarding, markdown }
    }

    /// Whether the open tag has no attributes, so that the text may merely mention the tag.
    pub(super) fn is_bare(&self) -> bool {
        self.inside.attributes.is_empty()
    }

    /// Corrects the body's result at a tag that stands in code, since such a tag is text. `source`
    /// is the element's text so far, in two pieces.
    pub(super) fn in_markdown(
        &mut self,
        seen: BodyStep,
        source: [&[u8]; 2],
        byte: u8,
        around: &Surroundings<'_>,
    ) -> BodyStep {
        match seen {
            BodyStep::Next if self.check_for_code(source) => self.body.pass(byte, around),
            BodyStep::Whole if self.closes_in_code(source) => self.body.pass_close(),
            seen => seen,
        }
    }

    /// Whether the close tag that was found stands in code. False unless the text probably just
    /// mentions the open tag.
    fn closes_in_code(&mut self, source: [&[u8]; 2]) -> bool {
        let may_be = self.is_bare() && self.body.is_prose && !self.discarding;
        may_be && self.markdown(source).is_some()
    }

    /// Whether the tag that was found in the body stands in code. `source` is the element's text so
    /// far, in two pieces.
    fn check_for_code(&mut self, source: [&[u8]; 2]) -> bool {
        if self.discarding {
            return false;
        }
        match self.markdown(source) {
            None => false,
            // The close tag of an open element is markup even in a code span.
            Some(why) => why == Why::Fence || !self.body.is_at_close(),
        }
    }

    /// Returns why the tag that was found in the body is text by the rules of Markdown. None if the
    /// tag is markup.
    fn markdown(&mut self, source: [&[u8]; 2]) -> Option<Why> {
        let (code, read) = &mut **self.markdown.get_or_insert_with(|| {
            let mut code = CodeContext::new(false);
            code.reset();
            Box::new((code, self.tag_bytes))
        });
        let [head, tail] = source;
        let end = self.body.tag;
        code.read(&head[(*read).min(head.len())..end.min(head.len())]);
        let end_in_tail = end.saturating_sub(head.len());
        code.read(&tail[read.saturating_sub(head.len()).min(end_in_tail)..end_in_tail]);
        *read = end;
        code.tag_spot(true).why
    }

    /// Returns the offset at which the element's close tag ends, if `source` ends within a JSON
    /// string that contains this close tag.
    pub(super) fn torn(&self, source: &str, markup: &Markup) -> Option<usize> {
        if self.discarding || !self.body.in_string() {
            return None;
        }
        let string = source.get(self.body.string..)?;
        let close = format!("</{}", markup.at(self.name).text);
        for at in memchr::memmem::find_iter(string.as_bytes(), close.as_bytes()) {
            let rest = &string[at + close.len()..];
            let spaces = rest.len() - rest.trim_ascii_start().len();
            if rest[spaces..].starts_with('>') {
                return Some(self.body.string + at + close.len() + spaces + 1);
            }
        }
        None
    }
}

impl Parser {
    /// Emits the event for an element that is complete.
    pub(super) fn captured(&mut self, capture: Capture, source: &str, sink: Sink<'_>) {
        self.code.reset();
        self.bare = 0;
        if let Some(twice) = &capture.inside.twice {
            let reason = format!("attribute {twice} stands twice, with two values");
            return self.broken(capture.name, Fault::Markup, &reason, source, 0, sink);
        }
        let tag = capture.tag_bytes.min(source.len());
        let end = if tag == source.len() { tag } else { capture.body.tag };
        let inner = &source[tag..end];
        match (capture.kind, capture.body.form) {
            (Kind::Feed, _) => self.closed(capture, Body::Text(inner), &[], source, sink),
            (_, Form::Elements) => self.elements(capture, source, sink),
            (_, Form::Json) => {
                let text = self.blanked(&capture, inner);
                match json::check(&text) {
                    Ok(()) => {
                        self.closed(capture, Body::Json(text.trim_ascii()), &[], source, sink);
                    }
                    Err(Wrong { at, reason }) => {
                        self.broken(capture.name, Fault::Json, &reason, source, tag + at, sink);
                    }
                }
            }
            // The body is empty. The attributes of a call's tag may be all that the call needs.
            (kind, Form::Unknown) => {
                if kind != Kind::Metadata
                    && capture.inside.attributes.iter().any(|it| it.name == "name")
                {
                    return self.closed(capture, Body::Empty, &[], source, sink);
                }
                let reason = "the body is empty; it must be JSON or elements";
                self.broken(capture.name, Fault::Json, reason, source, tag, sink);
            }
        }
    }

    fn elements(&mut self, capture: Capture, source: &str, sink: Sink<'_>) {
        match repair::element(source) {
            Ok(element) => {
                self.closed(
                    capture,
                    Body::Elements(&element.element),
                    &element.repairs,
                    source,
                    sink,
                );
            }
            Err(error) => {
                let at = error.place.offset;
                self.broken(capture.name, Fault::Markup, &error.message, source, at, sink);
            }
        }
    }

    fn closed(
        &mut self,
        capture: Capture,
        body: Body<'_>,
        repairs: &[String],
        source: &str,
        sink: Sink<'_>,
    ) {
        let Capture { name, kind, inside, at, .. } = capture;
        let mut attributes = inside.attributes;
        if kind == Kind::ToolUse
            && let Some(missing) = self
                .config
                .tool_use_attributes
                .iter()
                .find(|it| *it != "id" && !attributes.iter().any(|has| has.name == **it))
        {
            let reason = format!("<{}> has no attribute {missing}", self.name(name));
            return self.broken(name, Fault::Markup, &reason, source, 0, sink);
        }
        // The repairs of a whole element include those of its open tag.
        let of_tag = if repairs.is_empty() { &inside.repairs[..] } else { &[] };
        for note in of_tag.iter().chain(repairs) {
            self.repaired(note, "", sink);
        }
        self.fill_in(kind, &mut attributes);
        let name = &self.config.markup.at(name).text;
        let element = Element { name, kind, attributes: &attributes, body };
        sink(Event { what: What::Closed(element), source, place: at });
        self.at = place::behind(self.at, source);
    }

    /// Adds the default attributes of a call.
    pub(super) fn fill_in(&mut self, kind: Kind, attributes: &mut Vec<Attribute>) {
        let lacks =
            |attributes: &[Attribute], name: &str| !attributes.iter().any(|it| it.name == name);
        if kind == Kind::Action {
            for (name, value) in [("type", "tool"), ("mode", "sync")] {
                if lacks(attributes, name) {
                    attributes.push(Attribute::new(name, value));
                }
            }
        }
        if kind.is_run() && lacks(attributes, "id") {
            self.ids += 1;
            attributes.push(Attribute::new("id", format!("__auto_{}", self.ids)));
        }
    }

    /// Handles an element that crosses its limit: reports it as broken, and discards the rest.
    pub(super) fn overflows(&mut self, mut capture: Box<Capture>, sink: Sink<'_>) {
        let mut held = std::mem::take(&mut self.held);
        self.too_large(capture.name, &held, sink);
        held.clear();
        self.held = held;
        capture.discarding = true;
        self.state = ParserState::Capture(capture);
    }

    pub(super) fn too_large(&mut self, name: usize, source: &str, sink: Sink<'_>) {
        let max = self.config.limits.action_bytes_max;
        let reason = format!("too large: action_bytes_max is {max}");
        self.broken(name, Fault::Limit, &reason, source, 0, sink);
    }

    /// Handles a line end within a JSON string. If the string has the element's close tag in it,
    /// the element ends with that tag. Otherwise the element continues.
    pub(super) fn string_torn(&mut self, mut capture: Box<Capture>, sink: Sink<'_>) {
        match capture.torn(&self.held, &self.config.markup) {
            Some(end) => {
                let mut held = std::mem::take(&mut self.held);
                self.torn(&capture, &held, end, sink);
                held.clear();
                self.held = held;
            }
            None => {
                capture.body.tear();
                self.state = ParserState::Capture(capture);
            }
        }
    }

    /// The JSON in an element's body, with comments and the delimiters of CDATA sections replaced
    /// by spaces.
    fn blanked<'a>(&self, capture: &Capture, body: &'a str) -> Cow<'a, str> {
        let has_own = capture.kind.is_call();
        match capture.body.mixed {
            true => Cow::Owned(blank(body, has_own)),
            false => Cow::Borrowed(body),
        }
    }

    /// Reports an element with a broken JSON string. The element ends at `end`; the rest of `held`
    /// is text.
    pub(super) fn torn(&mut self, capture: &Capture, held: &str, end: usize, sink: Sink<'_>) {
        let (source, rest) = held.split_at(end);
        let body_end = source.rfind("</").unwrap_or(end);
        let body = self.blanked(capture, &source[capture.tag_bytes..body_end]);
        let (at, reason) = match json::check(&body) {
            Err(Wrong { at, reason }) if at < body.len() => (at, reason),
            _ => (capture.body.string - capture.tag_bytes, "the string has no end".to_owned()),
        };
        self.broken(capture.name, Fault::Json, &reason, source, capture.tag_bytes + at, sink);
        self.code.reset();
        self.code.text(rest.as_bytes());
        self.say(rest, sink);
    }

    /// Reports an element that isn't closed before the next element begins.
    pub(super) fn unclosed(&mut self, capture: &Capture, source: &str, next: &str, sink: Sink<'_>) {
        self.code.reset();
        self.bare = 0;
        let body = self.blanked(capture, &source[capture.tag_bytes..]);
        let name = self.name(capture.name);
        match json::check(&body) {
            Err(Wrong { at, reason }) if capture.body.form != Form::Elements => {
                let at = capture.tag_bytes + at;
                self.broken(capture.name, Fault::Json, &reason, source, at, sink);
            }
            _ => {
                let reason = format!("</{name}> is missing before {next}>");
                let end = source.len();
                self.broken(capture.name, Fault::Markup, &reason, source, end, sink);
            }
        }
    }

    /// Handles complete JSON in the text: emits its calls or, if it has none, the JSON as text.
    /// `sure` says that the JSON declares itself a call.
    pub(super) fn tried(&mut self, held: &str, sure: bool, sink: Sink<'_>) {
        let sound = json::check(held).is_ok();
        let calls = if sound { json::calls(held, &self.shape) } else { Vec::new() };
        if calls.is_empty() && sure && !sound {
            return self.not_json(held, sink);
        }
        if calls.is_empty() {
            self.code.text(held.as_bytes());
            return self.say(held, sink);
        }
        self.code.reset();
        self.bare = 0;
        for call in calls {
            let source = &held[call.from..call.to];
            match call.fields {
                Err(Wrong { at, reason }) => {
                    let mark = self.shape.mark.clone();
                    let at = at - call.from;
                    self.broken_named(&mark, Fault::Json, &reason, source, at, sink);
                }
                Ok(fields) => {
                    let attributes = self.attributes(&fields);
                    let body = fields.input.map_or(Body::Empty, Body::Json);
                    let name = &*self.shape.mark;
                    let kind = Kind::ToolUse;
                    let element = Element { name, kind, attributes: &attributes, body };
                    let what = What::Closed(element);
                    let space = source.len() - source.trim_ascii_start().len();
                    let at = place::behind(self.at, &source[..space]);
                    sink(Event { what, source, place: at });
                    self.at = place::behind(self.at, source);
                }
            }
        }
    }

    /// The attributes of a call that is written as JSON.
    pub(super) fn attributes(&mut self, fields: &json::Fields<'_>) -> Vec<Attribute> {
        let pairs = fields.strings.iter();
        let mut attributes = pairs.map(|(name, value)| Attribute::new(name, value)).collect();
        self.fill_in(Kind::ToolUse, &mut attributes);
        attributes
    }

    /// Reports text that begins as a call in JSON, but isn't valid JSON.
    pub(super) fn not_json(&mut self, held: &str, sink: Sink<'_>) {
        self.code.reset();
        let mark = self.shape.mark.clone();
        let Wrong { at, reason } = match json::check(held) {
            Err(wrong) => wrong,
            Ok(()) => Wrong { at: 0, reason: "it isn't one value".to_owned() },
        };
        self.broken_named(&mark, Fault::Json, &reason, held, at, sink);
    }

    pub(super) fn broken(
        &mut self,
        name: usize,
        fault: Fault,
        reason: &str,
        source: &str,
        at: usize,
        sink: Sink<'_>,
    ) {
        let name = self.name(name).to_owned();
        self.broken_named(&name, fault, reason, source, at, sink);
    }

    /// Reports a broken element. `at` is the byte of `source` where the error is.
    pub(super) fn broken_named(
        &mut self,
        name: &str,
        fault: Fault,
        reason: &str,
        source: &str,
        at: usize,
        sink: Sink<'_>,
    ) {
        // A mistake in JSON is shown within the JSON alone.
        let at = source.floor_char_boundary(at.min(source.len()));
        let is_json = fault == Fault::Json;
        let from = source[..at].find('{').filter(|_| is_json).unwrap_or(0);
        let snippet = place::snippet(&source[from..], at - from);
        let what = What::Broken(Broken { name, fault, reason, snippet });
        sink(Event { what, source, place: place::behind(self.at, &source[..at]) });
        self.at = place::behind(self.at, source);
    }
}

/// Replaces comments and the delimiters of CDATA sections in JSON by spaces, so that every other
/// byte keeps its place. `has_own` says whether the JSON may have comments of its own: `//` and
/// `/* */`.
fn blank(text: &str, has_own: bool) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    let space = |out: &mut String, text: &str| {
        out.extend(text.chars().flat_map(|letter| {
            let space = if letter == '\n' { '\n' } else { ' ' };
            std::iter::repeat_n(space, letter.len_utf8())
        }));
    };
    let mut string = false;
    while let Some(first) = rest.chars().next() {
        let marks = [("<![CDATA[", "]]>"), ("<!--", "-->"), ("//", "\n"), ("/*", "*/")];
        let known = if has_own { &marks[..] } else { &marks[..2] };
        let mark = known.iter().find(|(begin, _)| !string && rest.starts_with(begin));
        let Some(&(begin, end)) = mark else {
            let escaped = string && first == '\\';
            string ^= first == '"';
            let length = first.len_utf8()
                + if escaped { rest[1..].chars().next().map_or(0, char::len_utf8) } else { 0 };
            out.push_str(&rest[..length]);
            rest = &rest[length..];
            continue;
        };
        let inside = &rest[begin.len()..];
        let length = inside.find(end).unwrap_or(inside.len());
        let behind = &inside[length..];
        space(&mut out, begin);
        if begin == "<![CDATA[" {
            out.push_str(&inside[..length]);
        } else {
            space(&mut out, &inside[..length]);
        }
        let mark = end.len().min(behind.len());
        space(&mut out, &behind[..mark]);
        rest = &behind[mark..];
    }
    out
}
