//! The parser of a reply: keeps its state between chunks, and turns text into events.

use std::sync::Arc;

use crate::reply::ambiguity::Ambiguity;
use crate::reply::body::{BodyStep, Surroundings};
use crate::reply::code::{CodeContext, Spot, Why};
use crate::reply::config::{Config, Dialect, Shape};
use crate::reply::element::Capture;
use crate::reply::event::{Body, Cut, Element, Event, Fault, What};
use crate::reply::json_probe::{Fate, JsonProbe, Verdict};
use crate::reply::mention::Mention;
use crate::reply::names::Kind;
use crate::reply::place;
use crate::reply::tag::{self, Step, Tag};
use crate::reply::text::Frame;
use crate::xml::Place;

/// The function that receives the events, in order.
pub(super) type Sink<'s> = &'s mut dyn FnMut(Event<'_>);

/// Parses one reply, whose text comes in chunks of any size.
///
/// [`ReplyLimits`](crate::limits::ReplyLimits) bound how much text the parser keeps. Text between
/// elements is passed on without being copied.
#[derive(Debug)]
pub struct Parser {
    pub(super) config: Arc<Config>,
    pub(super) shape: Shape,
    pub(super) state: ParserState,
    /// Text that was read but not emitted yet: a tag, an element or JSON that isn't complete.
    pub(super) held: String,
    /// The place where `held` begins.
    pub(super) at: Place,
    pub(super) code: CodeContext,
    /// The open thoughts, responses, control blocks and roots of the agent's own payload, the
    /// outermost first.
    pub(super) frames: Vec<Frame>,
    /// How many elements are open, for each group of names. The names of a group share their close
    /// tags.
    pub(super) open: Vec<u32>,
    /// The texts of the open elements in `frames`, joined.
    pub(super) text: String,
    /// How many bytes of text came since the last element, outside all elements.
    pub(super) bare: usize,
    /// How many bytes the open tags of the elements in `frames` have.
    pub(super) tags: usize,
    /// How many open tags were refused as too deep and aren't closed yet.
    pub(super) too_deep: usize,
    /// How many ids were generated so far, for calls without an id.
    pub(super) ids: u64,
    /// A call or payload that is text because of its place, such as in code. The parser follows it
    /// to its end, to report it as ignored.
    pub(super) mention: Option<Box<Mention>>,
    /// For each group of names, how many open tags were taken as text and aren't closed yet.
    pub(super) spoken: Vec<u32>,
    /// Within a tool's output, the index of the output element's name.
    pub(super) output: Option<usize>,
}

/// The kind of text that the parser is reading.
#[derive(Debug)]
pub(super) enum ParserState {
    Text,
    /// A text that may become a tag, and the spot of the tag.
    Tag(Tag, Spot),
    /// A close tag that may stand in a code span.
    Ambiguity(Ambiguity),
    /// An element that is held back until it closes.
    Capture(Box<Capture>),
    /// JSON that may become a call.
    JsonProbe(JsonProbe),
}

impl Parser {
    /// A parser for one reply.
    #[must_use]
    pub fn new(config: impl Into<Arc<Config>>) -> Parser {
        let config = config.into();
        let shape = Shape::new(&config.tool_use_json);
        let (open, spoken) = (vec![0; config.markup.len()], vec![0; config.markup.len()]);
        let code = CodeContext::new(config.dialect == Dialect::ToolUse);
        Parser {
            config,
            shape,
            state: ParserState::Text,
            held: String::new(),
            at: place::START,
            code,
            frames: Vec::new(),
            open,
            text: String::new(),
            bare: 0,
            tags: 0,
            too_deep: 0,
            ids: 0,
            mention: None,
            spoken,
            output: None,
        }
    }

    /// Parses a chunk, and passes the events that are certain by now to `sink`.
    pub fn feed(&mut self, chunk: &str, sink: &mut dyn FnMut(Event<'_>)) {
        let mut rest = chunk;
        while !rest.is_empty() {
            rest = match &self.state {
                ParserState::Text => self.read_text(rest, sink),
                ParserState::Tag(tag, spot) => self.read_tag(*tag, *spot, rest, sink),
                ParserState::Ambiguity(ambiguity) => self.read_doubt(*ambiguity, rest, sink),
                ParserState::Capture(_) => self.read_body(rest, sink),
                ParserState::JsonProbe(probe) => self.read_json(*probe, rest, sink),
            };
        }
    }

    /// Ends the reply. Closes each open thought, response, control block or root, and reports this
    /// as a repair. An incomplete call or payload isn't run: the parser reports it as broken, or as
    /// `cut` in the last event.
    pub fn finish(mut self, sink: &mut dyn FnMut(Event<'_>)) {
        while let ParserState::Ambiguity(ambiguity) = self.state {
            self.decide(ambiguity, sink);
        }
        let mut held = std::mem::take(&mut self.held);
        let mut cut = None;
        match std::mem::replace(&mut self.state, ParserState::Text) {
            ParserState::Text | ParserState::Ambiguity(_) => {}
            ParserState::Tag(tag, spot)
                if tag.is_named() && !tag.closes && !self.is_mention(tag, spot) =>
            {
                cut = Some((tag.name(), self.at));
            }
            ParserState::Tag(tag, _) => {
                if self.is_closing(tag, &held) {
                    self.repaired("the reply ends within a close tag", &held, sink);
                } else {
                    self.say(&held, sink);
                }
                held.clear();
            }
            ParserState::Capture(capture) => {
                let torn = capture.torn(&held, &self.config.markup);
                let name = capture.name;
                let at = capture.at;
                match torn {
                    Some(end) => {
                        self.torn(&capture, &held, end, sink);
                        held.clear();
                    }
                    None => cut = Some((name, at)),
                }
            }
            ParserState::JsonProbe(probe) => match probe.sure {
                true => cut = self.tool_use_name().map(|it| (it, self.at)),
                false => {
                    self.say(&held, sink);
                    held.clear();
                }
            },
        }
        if let Some(output) = self.output {
            let note = format!("<{}> isn't closed; it is text to the end", self.name(output));
            self.repaired(&note, "", sink);
        }
        while let Some(frame) = self.frames.last() {
            let note = format!("<{}> is closed where the reply ends", self.name(frame.name));
            self.repaired(&note, "", sink);
            self.close_top("", sink);
        }
        let cut = cut.map(|(name, place)| Cut { name: &self.config.markup.at(name).text, place });
        sink(Event { what: What::Finished { cut }, source: &held, place: self.at });
    }

    fn tool_use_name(&self) -> Option<usize> {
        let markup = &self.config.markup;
        (0..markup.len()).find(|it| markup.at(*it).kind == Kind::ToolUse)
    }

    pub(super) fn name(&self, place: usize) -> &str {
        &self.config.markup.at(place).text
    }

    /// Whether an incomplete close tag is the beginning of the innermost open element's close tag.
    /// The incomplete tag must have `</` and at least one letter.
    fn is_closing(&self, tag: Tag, held: &str) -> bool {
        let Some(frame) = self.frames.last() else { return false };
        let begun = held.strip_prefix("</").map_or("", str::trim_ascii_end);
        tag.closes && !begun.is_empty() && self.name(frame.name).starts_with(begun)
    }

    fn read_text<'c>(&mut self, rest: &'c str, sink: Sink<'_>) -> &'c str {
        let Some(at) = self.code.next(rest.as_bytes()) else {
            self.say(rest, sink);
            return "";
        };
        if at > 0 {
            self.say(&rest[..at], sink);
        }
        self.held.push_str(&rest[at..=at]);
        let later = &rest[at + 1..];
        let first = rest.as_bytes()[at];
        let within = !self.frames.is_empty();
        let spot = match first {
            b'<' => self.code.spot(within),
            _ => self.code.json_spot(within),
        };
        let may_run =
            self.output.is_none() && self.frames.last().is_none_or(|it| it.kind != Kind::Response);
        self.state = match (first, spot.why) {
            (b'<', _) => ParserState::Tag(Tag::new(&self.config.markup), spot),
            (first, None) if may_run => ParserState::JsonProbe(JsonProbe::new(first)),
            (first, why) => {
                let place = self.at;
                let later = self.not_a_tag(later, 0, sink);
                if let Some(why) = why.filter(|_| may_run) {
                    self.mention_json(first, (why, place));
                }
                return later;
            }
        };
        later
    }

    fn read_tag<'c>(
        &mut self,
        mut tag: Tag,
        mut spot: Spot,
        rest: &'c str,
        sink: Sink<'_>,
    ) -> &'c str {
        let max = self.config.limits.tag_bytes_max;
        for (at, byte) in rest.bytes().enumerate() {
            let mut step = tag.step(byte, &self.config.markup);
            if let Step::Name(place) = step
                && let Some(why) = self.welcomes(place, tag.closes, spot)
            {
                spot.why = why;
                tag.welcome();
                step = tag.step(byte, &self.config.markup);
            }
            match step {
                Step::More if self.held.len() + at < max => {}
                Step::More | Step::Torn => return self.torn_tag((tag, spot), rest, at, sink),
                Step::Name(place) => {
                    self.closes_spoken(place, tag.closes);
                    return self.not_a_tag(rest, at, sink);
                }
                Step::Not => return self.not_a_tag(rest, at, sink),
                Step::Whole { empty } => {
                    self.held.push_str(&rest[..=at]);
                    self.state = ParserState::Text;
                    self.whole_tag(tag, spot, empty, sink);
                    return &rest[at + 1..];
                }
                Step::Comment | Step::Section => {
                    // Where a tag would be text, for example in a code span, `<!--` and `<![CDATA[`
                    // are text as well.
                    match step {
                        _ if spot.why.is_some() => return self.not_a_tag(rest, at + 1, sink),
                        _ => {}
                    }
                    let later = self.not_a_tag(rest, at + 1, sink);
                    match step {
                        Step::Comment => self.code.comment(),
                        _ => self.code.section(),
                    }
                    return later;
                }
            }
        }
        self.held.push_str(rest);
        self.state = ParserState::Tag(tag, spot);
        ""
    }

    /// Emits the held text and the first `at` bytes of `rest` as text. Returns the remaining bytes
    /// of `rest`.
    fn not_a_tag<'c>(&mut self, rest: &'c str, at: usize, sink: Sink<'_>) -> &'c str {
        let (now, later) = rest.split_at(rest.floor_char_boundary(at));
        let mut held = std::mem::take(&mut self.held);
        held.push_str(now);
        self.state = ParserState::Text;
        self.code.text(held.as_bytes());
        self.say(&held, sink);
        held.clear();
        self.held = held;
        later
    }

    /// Handles a tag that breaks off or is too long. An open tag with an attribute is reported as
    /// broken, unless its place makes it text. Every other tag is text.
    fn torn_tag<'c>(
        &mut self,
        (tag, spot): (Tag, Spot),
        rest: &'c str,
        at: usize,
        sink: Sink<'_>,
    ) -> &'c str {
        let at = rest.floor_char_boundary(at);
        if self.is_mention(tag, spot)
            || tag.closes
            || !(self.held.contains('=') || rest[..at].contains('='))
        {
            return self.not_a_tag(rest, at, sink);
        }
        let (now, later) = rest.split_at(at);
        let mut held = std::mem::take(&mut self.held);
        held.push_str(now);
        self.state = ParserState::Text;
        self.mention = None;
        self.code.torn(tag.quote());
        let max = self.config.limits.tag_bytes_max;
        let (fault, reason) = match later.as_bytes().first() {
            Some(b'<') => {
                let reason = "the tag has no end before the next `<`; is a quote missing?";
                (Fault::Markup, reason.to_owned())
            }
            _ => (Fault::Limit, format!("too long a tag: tag_bytes_max is {max}")),
        };
        self.broken(tag.name(), fault, &reason, &held, 0, sink);
        held.clear();
        self.held = held;
        later
    }

    /// Whether an open tag is text because of its place, although tags of its name are markup.
    fn is_mention(&self, tag: Tag, spot: Spot) -> bool {
        !tag.closes && spot.why.is_some()
    }

    fn whole_tag(&mut self, tag: Tag, spot: Spot, empty: bool, sink: Sink<'_>) {
        let mut held = std::mem::take(&mut self.held);
        let name = tag.name();
        let kind = self.config.markup.at(name).kind;
        if let (true, false, Some(count)) = (tag.closes, spot.begins, self.code.span()) {
            self.state = ParserState::Ambiguity(Ambiguity::new(name, held.len(), count));
            self.held = held;
            return;
        }
        if let (false, Some(why)) = (tag.closes, spot.why)
            && self.is_mention(tag, spot)
        {
            let at = self.at;
            self.code.text(held.as_bytes());
            self.say(&held, sink);
            self.mention(name, (why, at), empty, &held, sink);
        } else if tag.closes {
            self.close_tag(name, &held, sink);
        } else if kind.is_text() {
            self.open_tag(name, spot.fresh, empty, &held, sink);
        } else if kind == Kind::Output {
            self.output(name, empty, &held, sink);
        } else {
            self.code.reset();
            self.mention = None;
            let inside = tag::inside(&held);
            let capture = Capture::new(name, kind, self.at, held.len(), inside);
            if empty {
                self.captured(capture, &held, sink);
            } else {
                self.held = held;
                self.state = ParserState::Capture(Box::new(capture));
                return;
            }
        }
        held.clear();
        self.held = held;
    }

    /// Handles the open tag of a tool's output. The tag and everything up to its close tag are
    /// text.
    fn output(&mut self, name: usize, empty: bool, source: &str, sink: Sink<'_>) {
        self.code.reset();
        self.mention = None;
        self.output = (!empty).then_some(name);
        self.say(source, sink);
    }

    fn read_body<'c>(&mut self, rest: &'c str, sink: Sink<'_>) -> &'c str {
        let ParserState::Capture(mut capture) =
            std::mem::replace(&mut self.state, ParserState::Text)
        else {
            return rest;
        };
        let max = self.config.limits.action_bytes_max;
        let room =
            if capture.discarding { rest.len() } else { max.saturating_sub(self.held.len()) };
        let window = &rest[..rest.floor_char_boundary(room)];
        let around = Surroundings {
            markup: &self.config.markup,
            own: capture.name,
            open: &self.open,
            discarding: capture.discarding,
            counts_within: capture.is_bare(),
        };
        let mut ended = None;
        for (at, byte) in window.bytes().enumerate() {
            let seen = match capture.body.step(byte, &around) {
                BodyStep::More => continue,
                seen => {
                    let source = [self.held.as_bytes(), &window.as_bytes()[..at]];
                    capture.in_markdown(seen, source, byte, &around)
                }
            };
            if seen != BodyStep::More {
                ended = Some((seen, at));
                break;
            }
        }
        let at = match ended {
            None => window.len(),
            Some((BodyStep::Whole, at)) => at + 1,
            Some((_, at)) => window.floor_char_boundary(at),
        };
        let (now, later) = rest.split_at(at);
        if capture.discarding {
            self.discard(capture.name, now, sink);
        } else {
            self.held.push_str(now);
        }
        match ended {
            None if later.is_empty() => self.state = ParserState::Capture(capture),
            None => self.overflows(capture, sink),
            Some((BodyStep::Whole, _)) if capture.discarding => self.code.reset(),
            Some((BodyStep::Next, _)) => self.next_begins(&capture, sink),
            Some((BodyStep::Torn, _)) => self.string_torn(capture, sink),
            Some(_) => {
                let mut held = std::mem::take(&mut self.held);
                self.captured(*capture, &held, sink);
                held.clear();
                self.held = held;
            }
        }
        later
    }

    /// Handles an element that isn't complete when the next element begins. Reports the incomplete
    /// element as broken, and starts to read the next one.
    fn next_begins(&mut self, capture: &Capture, sink: Sink<'_>) {
        let mut held = std::mem::take(&mut self.held);
        let (source, next) = held.split_at(capture.body.tag);
        let mut tag = Tag::new(&self.config.markup);
        for byte in next.bytes().skip(1) {
            tag.step(byte, &self.config.markup);
        }
        self.unclosed(capture, source, next, sink);
        let begun = capture.body.tag;
        held.drain(..begun);
        self.held = held;
        let spot = Spot { why: None::<Why>, begins: true, fresh: true };
        self.state = ParserState::Tag(tag, spot);
    }

    fn read_json<'c>(&mut self, mut probe: JsonProbe, rest: &'c str, sink: Sink<'_>) -> &'c str {
        let max = self.config.limits.action_bytes_max;
        let held = self.held.len();
        let room = if probe.fate == Fate::Held { max.saturating_sub(held) } else { rest.len() };
        let window = &rest[..rest.floor_char_boundary(room)];
        let mut ended = None;
        for (at, byte) in window.bytes().enumerate() {
            match probe.step(byte, &self.shape) {
                Verdict::More => {}
                verdict => {
                    ended = Some((verdict, at + usize::from(verdict == Verdict::Whole)));
                    break;
                }
            }
        }
        let at = ended.map_or(window.len(), |it| window.floor_char_boundary(it.1));
        let (now, later) = rest.split_at(at);
        self.held.push_str(now);
        let mut held = std::mem::take(&mut self.held);
        match (probe.fate, ended) {
            (Fate::Held, None) if later.is_empty() => {
                self.state = ParserState::JsonProbe(probe);
                self.held = held;
                return later;
            }
            (Fate::Held, None) if probe.sure => {
                self.too_large(self.tool_use_name().unwrap_or(0), &held, sink);
                probe.fate = Fate::Discarded;
            }
            (Fate::Held, Some((Verdict::Whole, _))) => self.tried(&held, probe.sure, sink),
            (Fate::Held, Some(_)) if probe.sure => self.not_json(&held, sink),
            (Fate::Discarded, _) => self.discard(self.tool_use_name().unwrap_or(0), &held, sink),
            (Fate::Held | Fate::Text, _) => {
                match probe.fate {
                    Fate::Held => self.code.json(held.as_bytes()),
                    _ => self.code.text(held.as_bytes()),
                }
                self.say(&held, sink);
                probe.fate = if probe.fate == Fate::Held { Fate::Text } else { probe.fate };
            }
        }
        self.state =
            if ended.is_none() { ParserState::JsonProbe(probe) } else { ParserState::Text };
        held.clear();
        self.held = held;
        later
    }

    /// Emits an event, and moves the parser's place behind the event's source.
    pub(super) fn emit(&mut self, what: What<'_>, source: &str, sink: Sink<'_>) {
        sink(Event { what, source, place: self.at });
        self.at = place::behind(self.at, source);
    }

    pub(super) fn repaired(&mut self, note: &str, source: &str, sink: Sink<'_>) {
        self.emit(What::Repaired(note), source, sink);
    }

    fn discard(&mut self, name: usize, source: &str, sink: Sink<'_>) {
        if source.is_empty() {
            return;
        }
        let name = &self.config.markup.at(name).text;
        sink(Event { what: What::Discarded { name }, source, place: self.at });
        self.at = place::behind(self.at, source);
    }

    /// Makes the [`Element`] for an event.
    pub(super) fn element<'e>(&'e self, frame: &'e Frame, body: Body<'e>) -> Element<'e> {
        Element {
            name: self.name(frame.name),
            kind: frame.kind,
            attributes: &frame.attributes,
            body,
        }
    }
}
