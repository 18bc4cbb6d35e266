//! Elements that are text where they stand, but would run elsewhere: what they are is told, once
//! they are whole.

use crate::reply::body::{Around, Body as Reading, Form, Seen};
use crate::reply::code::Why;
use crate::reply::event::{Body, Element, Event, What};
use crate::reply::json;
use crate::reply::mend;
use crate::reply::names::Kind;
use crate::reply::parser::{Parser, Sink};
use crate::reply::tag;
use crate::xml::Place;

/// An element that is text, as far as it has come.
#[derive(Debug)]
pub(super) struct Mention {
    name: usize,
    why: Why,
    at: Place,
    source: String,
    tag: usize,
    body: Reading,
    /// Whether another tag is the first in it.
    holds: Option<bool>,
}

impl Mention {
    /// Whether what begins a line in it is its own.
    pub(super) fn is_around(&self) -> bool {
        self.why == Why::Line && self.holds != Some(false)
    }

    fn takes(&mut self, byte: u8) {
        if self.holds.is_none() && !byte.is_ascii_whitespace() {
            self.holds = Some(byte == b'<');
        }
    }
}

impl Parser {
    /// An open tag that is text is whole, and said.
    pub(super) fn mention(
        &mut self,
        name: usize,
        (why, at): (Why, Place),
        empty: bool,
        source: &str,
        sink: Sink<'_>,
    ) {
        if self.mention.is_some() {
            return;
        }
        let kind = self.config.markup.at(name).kind;
        let form = if kind.is_call() { Form::Unknown } else { Form::Elements };
        let (tag, body) = (source.len(), Reading::new(form, source.len()));
        let mention = Mention { name, why, at, source: source.to_owned(), tag, body, holds: None };
        if empty {
            self.mentioned(&mention, sink);
        } else {
            self.mention = Some(Box::new(mention));
        }
    }

    /// Says text that a mention stands in.
    pub(super) fn say_mention(&mut self, mut mention: Box<Mention>, text: &str, sink: Sink<'_>) {
        let around = Around {
            markup: &self.config.markup,
            own: mention.name,
            open: &self.open,
            discarding: false,
        };
        let max = self.config.limits.action_bytes_max;
        let mut seen = Seen::More;
        let mut end = text.len();
        for (at, byte) in text.bytes().enumerate() {
            seen = match mention.body.step(byte, &around) {
                Seen::More if mention.source.len() + at >= max => Seen::Next,
                seen => seen,
            };
            mention.takes(byte);
            if seen != Seen::More {
                end = if seen == Seen::Whole { at + 1 } else { text.floor_char_boundary(at) };
                break;
            }
        }
        let (now, later) = text.split_at(end);
        mention.source.push_str(now);
        self.say_text(now, sink);
        match seen {
            Seen::More => self.mention = Some(mention),
            Seen::Whole => self.mentioned(&mention, sink),
            Seen::Torn | Seen::Next => {}
        }
        self.say_text(later, sink);
    }

    /// Says what it is, if it is sound.
    fn mentioned(&mut self, mention: &Mention, sink: Sink<'_>) {
        let source = &*mention.source;
        let name = self.config.markup.at(mention.name);
        let (kind, inside) = (name.kind, tag::inside(&source[..mention.tag]));
        if inside.twice.is_some() {
            return;
        }
        let is_empty = source.len() == mention.tag;
        let inner = if is_empty { "" } else { &source[mention.tag..mention.body.tag] };
        let mended;
        let body = match mention.body.form {
            Form::Elements => match mend::element(source) {
                Ok(it) => {
                    mended = it;
                    Body::Elements(&mended.element)
                }
                Err(_) => return,
            },
            Form::Json if !mention.body.mixed && json::check(inner).is_ok() => {
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
        let ids = self.ids;
        self.fill_in(kind, &mut attributes);
        self.ids = ids;
        let name = &*self.config.markup.at(mention.name).text;
        let element = Element { name, kind, attributes: &attributes, body };
        let what = What::Ignored { element, why: mention.why };
        sink(Event { what, source: "", place: mention.at });
    }
}
