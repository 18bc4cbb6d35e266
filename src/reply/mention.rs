//! Mentions: elements and JSON calls that are text because of their place, and would run in another
//! place. The parser follows a mention to its end, and then reports it as ignored.

use crate::reply::body::{Body as Reading, BodyStep, Form, Surroundings};
use crate::reply::code::Why;
use crate::reply::event::{Body, Element, Event, What};
use crate::reply::json;
use crate::reply::json_probe::{JsonProbe, Verdict};
use crate::reply::names::Kind;
use crate::reply::parser::{Parser, Sink};
use crate::reply::repair;
use crate::reply::tag;
use crate::xml::Place;

/// A mention that is being read.
#[derive(Debug)]
pub(super) struct Mention {
    why: Why,
    at: Place,
    source: String,
    form: Written,
}

/// How the mention is written.
#[derive(Debug)]
enum Written {
    Element {
        name: usize,
        /// How many bytes the open tag has.
        tag: usize,
        body: Reading,
        /// Whether the content begins with a tag. None as long as it has only white space.
        holds: Option<bool>,
    },
    Json(JsonProbe),
}

impl Mention {
    /// Whether a payload that begins a line within this mention belongs to the mention.
    pub(super) fn is_around(&self) -> bool {
        let is_text_first = matches!(self.form, Written::Element { holds: Some(false), .. });
        self.why == Why::Line && !is_text_first
    }

    /// Whether the content can no longer become valid.
    fn is_prose(&self) -> bool {
        matches!(self.form, Written::Element { body, .. } if body.is_prose)
    }
}

impl Parser {
    /// Begins a mention at an open tag that is text. The tag is complete, and was emitted as text.
    pub(super) fn mention(
        &mut self,
        name: usize,
        (why, at): (Why, Place),
        empty: bool,
        source: &str,
        sink: Sink<'_>,
    ) {
        let place = self.config.markup.at(name);
        self.spoken[place.group] += u32::from(!empty);
        if self.mention.as_ref().is_some_and(|it| !it.is_prose()) {
            return;
        }
        let form = if place.kind.is_call() { Form::Unknown } else { Form::Elements };
        let (tag, body) = (source.len(), Reading::new(form, source.len()));
        let form = Written::Element { name, tag, body, holds: None };
        let mention = Mention { why, at, source: source.to_owned(), form };
        if empty {
            self.mentioned(&mention, sink);
        } else {
            self.mention = Some(Box::new(mention));
        }
    }

    /// Begins a mention of JSON that is text and starts with the byte `first`. The byte was emitted
    /// as text.
    pub(super) fn mention_json(&mut self, first: u8, (why, at): (Why, Place)) {
        if self.mention.as_ref().is_none_or(|it| it.is_prose()) {
            let source = char::from(first).to_string();
            let form = Written::Json(JsonProbe::new(first));
            self.mention = Some(Box::new(Mention { why, at, source, form }));
        }
    }

    /// Takes a tag that is text. A close tag closes an earlier open tag that was text, too.
    pub(super) fn closes_spoken(&mut self, name: usize, closes: bool) {
        let group = self.config.markup.at(name).group;
        self.spoken[group] = self.spoken[group].saturating_sub(u32::from(closes));
    }

    /// Emits text, and adds it to the mention up to the mention's end.
    pub(super) fn say_mention(&mut self, mut mention: Box<Mention>, text: &str, sink: Sink<'_>) {
        let max = self.config.limits.action_bytes_max;
        let mut seen = BodyStep::More;
        let mut end = text.len();
        for (at, byte) in text.bytes().enumerate() {
            seen = match self.mention_step(&mut mention.form, byte) {
                BodyStep::More if mention.source.len() + at >= max => BodyStep::Next,
                seen => seen,
            };
            if seen != BodyStep::More {
                end = if seen == BodyStep::Whole { at + 1 } else { text.floor_char_boundary(at) };
                break;
            }
        }
        let (now, later) = text.split_at(end);
        mention.source.push_str(now);
        self.say_text(now, sink);
        match seen {
            BodyStep::More => self.mention = Some(mention),
            BodyStep::Whole => self.mentioned(&mention, sink),
            BodyStep::Torn | BodyStep::Next => {}
        }
        self.say_text(later, sink);
    }

    fn mention_step(&self, form: &mut Written, byte: u8) -> BodyStep {
        match form {
            Written::Element { name, body, holds, .. } => {
                if holds.is_none() && !byte.is_ascii_whitespace() {
                    *holds = Some(byte == b'<');
                }
                let around = Surroundings {
                    markup: &self.config.markup,
                    own: *name,
                    open: &self.open,
                    discarding: false,
                    counts_within: true,
                };
                body.step(byte, &around)
            }
            Written::Json(probe) => match probe.step(byte, &self.shape) {
                Verdict::More => BodyStep::More,
                Verdict::Whole if probe.sure => BodyStep::Whole,
                Verdict::Whole | Verdict::Not => BodyStep::Next,
            },
        }
    }

    /// Reports a complete mention as ignored, if it is valid.
    fn mentioned(&mut self, mention: &Mention, sink: Sink<'_>) {
        // An element that isn't run must not use up an id.
        let ids = self.ids;
        match mention.form {
            Written::Element { name, tag, body, .. } => {
                self.mentioned_element(mention, name, (tag, body), sink);
            }
            Written::Json(_) => self.mentioned_json(mention, sink),
        }
        self.ids = ids;
    }

    fn mentioned_element(
        &mut self,
        mention: &Mention,
        name: usize,
        (tag, read): (usize, Reading),
        sink: Sink<'_>,
    ) {
        let source = &*mention.source;
        let (kind, inside) = (self.config.markup.at(name).kind, tag::inside(&source[..tag]));
        if inside.twice.is_some() {
            return;
        }
        let inner = if source.len() == tag { "" } else { &source[tag..read.tag] };
        let mended;
        let body = match read.form {
            Form::Elements => match repair::element(source) {
                Ok(element) => {
                    mended = element;
                    Body::Elements(&mended.element)
                }
                Err(_) => return,
            },
            Form::Json if !read.mixed && json::check(inner).is_ok() => {
                Body::Json(inner.trim_ascii())
            }
            Form::Unknown
                if kind != Kind::Metadata
                    && inside.attributes.iter().any(|it| it.name == "name") =>
            {
                Body::Empty
            }
            _ => return,
        };
        let mut attributes = inside.attributes;
        self.fill_in(kind, &mut attributes);
        let name = self.name(name);
        let element = Element { name, kind, attributes: &attributes, body };
        let what = What::Ignored { element, why: mention.why };
        sink(Event { what, source: "", place: mention.at });
    }

    fn mentioned_json(&mut self, mention: &Mention, sink: Sink<'_>) {
        if json::check(&mention.source).is_err() {
            return;
        }
        for call in json::calls(&mention.source, &self.shape) {
            let Ok(fields) = call.fields else { continue };
            let attributes = self.attributes(&fields);
            let body = fields.input.map_or(Body::Empty, Body::Json);
            let (name, kind) = (&*self.shape.mark, Kind::ToolUse);
            let element = Element { name, kind, attributes: &attributes, body };
            let what = What::Ignored { element, why: mention.why };
            sink(Event { what, source: "", place: mention.at });
        }
    }
}
