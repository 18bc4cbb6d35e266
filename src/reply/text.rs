//! Text and the elements around it: thoughts, responses, the root element of the agent's own
//! payload, and control blocks. This part of the parser decides in which places a tag is markup,
//! and emits text piece by piece.

use crate::reply::code::{Spot, Why};
use crate::reply::event::{Attribute, Body, Event, Fault, What};
use crate::reply::names::Kind;
use crate::reply::parser::{Parser, Sink};
use crate::reply::{place, tag};
use crate::xml::Place;

/// An open thought, response, root of the agent's own payload, or control block.
#[derive(Debug)]
pub(super) struct Frame {
    pub(super) name: usize,
    pub(super) kind: Kind,
    pub(super) attributes: Vec<Attribute>,
    /// Where the open tag stands.
    at: Place,
    /// Where the element's text begins in [`Parser::text`].
    text: usize,
    /// How many bytes the open tag has.
    tag: usize,
    /// How many tags `<response>` within this response were read as text and aren't closed yet.
    nested: usize,
}

impl Parser {
    /// Decides whether a tag of this name is markup at its place. Returns:
    ///
    /// - `None` if the tag is text.
    /// - `Some(None)` if the tag may be markup.
    /// - `Some(Some(why))` if the tag is text, but its element is reported as ignored, for this
    ///   reason, once the element is complete.
    pub(super) fn welcomes(&self, name: usize, closes: bool, spot: Spot) -> Option<Option<Why>> {
        let kind = self.config.markup.at(name).kind;
        let top = self.frames.last();
        // The close tag of the innermost element may be markup even in text that looks like a code
        // span, and on an indented line.
        let is_awaited = || {
            let group = self.config.markup.at(name).group;
            top.is_some_and(|it| self.config.markup.at(it.name).group == group)
        };
        let is_open = !matches!(spot.why, Some(Why::Fence | Why::Attribute));
        if let Some(output) = self.output {
            return (closes && name == output && is_open).then_some(None);
        }
        if closes {
            let group = self.config.markup.at(name).group;
            if self.spoken[group] > 0 && self.open[group] == 0 {
                return None;
            }
            let counts = match spot.why {
                Some(Why::Attribute) => top.is_none() && !kind.is_text(),
                Some(_) => is_open && is_awaited(),
                None => kind != Kind::Output,
            };
            let is_response = top.is_some_and(|it| it.kind == Kind::Response);
            return (counts && (!is_response || kind == Kind::Response)).then_some(None);
        }
        let runs = kind.is_call() || matches!(kind, Kind::Core | Kind::Peer);
        if let Some(top) = top.filter(|it| it.kind == Kind::Response) {
            let wanted = self.config.actions_in_response && kind.is_run() || kind == top.kind;
            return (wanted && spot.why.is_none()).then_some(None);
        }
        if spot.why.is_some() {
            return runs.then_some(spot.why);
        }
        match kind {
            // A thought may mention the tag `<response>`. In a thought, the tag begins a response
            // only at the beginning of a line.
            Kind::Response if top.is_some_and(|it| it.kind == Kind::Thought) => {
                spot.fresh.then_some(None)
            }
            Kind::Control if !self.is_control(name) => None,
            Kind::Core | Kind::Peer if !spot.fresh => Some(Some(Why::Line)),
            Kind::Core | Kind::Peer if self.mention.as_ref().is_some_and(|it| it.is_around()) => {
                None
            }
            _ => Some(None),
        }
    }

    /// Whether a control block of this name may begin here. A `then` or an `else` begins only
    /// directly within an `if`, or within another branch of the `if`. In the second case, the tag
    /// closes that other branch.
    fn is_control(&self, name: usize) -> bool {
        let mut around = self.frames.iter().rev().skip_while(|it| self.is_branch(it.name));
        !self.is_branch(name) || around.next().is_some_and(|it| self.name(it.name) == "if")
    }

    fn is_branch(&self, name: usize) -> bool {
        let markup = self.config.markup.at(name);
        markup.kind == Kind::Control && matches!(&*markup.text, "then" | "else")
    }

    /// Emits a piece of text.
    pub(super) fn say(&mut self, text: &str, sink: Sink<'_>) {
        match self.mention.take() {
            Some(mention) => self.say_mention(mention, text, sink),
            None => self.say_text(text, sink),
        }
    }

    pub(super) fn say_text(&mut self, text: &str, sink: Sink<'_>) {
        let mut rest = text;
        // At least one character must fit.
        let max = self.config.limits.text_bytes_max.max(4);
        while !rest.is_empty() {
            let used = if self.frames.is_empty() { self.bare } else { self.text.len() };
            let room = max - used;
            let end = if rest.len() <= room { rest.len() } else { rest.floor_char_boundary(room) };
            let (now, later) = rest.split_at(end);
            if !now.is_empty() {
                if self.frames.is_empty() {
                    self.bare += now.len();
                } else {
                    self.text.push_str(now);
                }
                let within = self.frames.last().map(|it| it.kind);
                self.emit(What::Text { within }, now, sink);
            }
            if !later.is_empty() {
                self.too_much(max, sink);
            }
            rest = later;
        }
    }

    /// Reports that a text crossed its limit. The text collected so far is discarded, and the text
    /// that follows is collected. Events still emit all of the text.
    fn too_much(&mut self, max: usize, sink: Sink<'_>) {
        let name = self.frames.last().map_or("text", |it| self.name(it.name)).to_owned();
        let reason = format!("too long a text: text_bytes_max is {max}; what is kept begins anew");
        self.broken_named(&name, Fault::Limit, &reason, "", 0, sink);
        self.bare = 0;
        self.text.clear();
        for frame in &mut self.frames {
            frame.text = 0;
        }
    }

    pub(super) fn open_tag(
        &mut self,
        name: usize,
        fresh: bool,
        empty: bool,
        source: &str,
        sink: Sink<'_>,
    ) {
        let kind = self.config.markup.at(name).kind;
        if kind == Kind::Response {
            if let Some(top) = self.frames.last_mut()
                && top.kind == Kind::Response
            {
                top.nested += usize::from(!empty);
                self.code.text(source.as_bytes());
                return self.say(source, sink);
            }
            while fresh
                && let Some(top) = self.frames.last()
                && top.kind == Kind::Thought
            {
                let note = format!("<{}> is closed before <response>", self.name(top.name));
                self.repaired(&note, "", sink);
                self.close_top("", sink);
            }
        }
        self.close_branch_before(name, sink);
        self.code.reset();
        self.mention = None;
        if let Some(reason) = self.too_deep(source) {
            self.too_deep += usize::from(!empty);
            return self.broken(name, Fault::Limit, &reason, source, 0, sink);
        }
        let inside = tag::inside(source);
        for note in &inside.repairs {
            self.repaired(note, "", sink);
        }
        if let Some(twice) = &inside.twice {
            let note = format!("attribute {twice} stands twice; the first counts");
            self.repaired(&note, "", sink);
        }
        let frame = Frame {
            name,
            kind,
            attributes: inside.attributes,
            at: self.at,
            text: self.text.len(),
            tag: source.len(),
            nested: 0,
        };
        self.tags += source.len();
        if kind == Kind::Control && !fresh {
            // The block is still opened, so that the agent can refuse everything in it.
            let element = self.element(&frame, Body::Empty);
            sink(Event {
                what: What::Ignored { element, why: Why::Line },
                source: "",
                place: self.at,
            });
        }
        let opened = What::Opened(self.element(&frame, Body::Empty));
        sink(Event { what: opened, source, place: self.at });
        self.at = place::behind(self.at, source);
        self.bare = 0;
        self.open[self.config.markup.at(name).group] += 1;
        self.frames.push(frame);
        if empty {
            self.close_top("", sink);
        }
    }

    /// Closes the innermost element if it is a branch of an `if`, and the tag that follows begins
    /// another branch.
    fn close_branch_before(&mut self, name: usize, sink: Sink<'_>) {
        let Some(top) = self.frames.last() else { return };
        if self.is_branch(name) && self.is_branch(top.name) {
            let note = format!("<{}> is closed before <{}>", self.name(top.name), self.name(name));
            self.repaired(&note, "", sink);
            self.close_top("", sink);
        }
    }

    /// Returns why one more element can't be opened. None if it can.
    fn too_deep(&self, source: &str) -> Option<String> {
        let limits = &self.config.limits;
        if self.frames.len() >= limits.depth_max {
            return Some(format!("too deep: depth_max is {}", limits.depth_max));
        }
        let max = limits.text_bytes_max;
        let tags = self.tags + source.len();
        (tags > max).then(|| format!("too long tags around it: text_bytes_max is {max}"))
    }

    pub(super) fn close_tag(&mut self, name: usize, source: &str, sink: Sink<'_>) {
        let group = self.config.markup.at(name).group;
        if self.output.take_if(|it| *it == name).is_some() {
            self.code.reset();
            return self.say(source, sink);
        }
        self.code.mend();
        if self.too_deep > 0 && self.config.markup.at(name).kind.is_text() {
            self.too_deep -= 1;
            self.code.reset();
            return self.repaired("it closes what was too deep; it is dropped", source, sink);
        }
        if self.open[group] == 0 {
            let note = format!("</{}> closes nothing; it is dropped", self.name(name));
            self.code.reset();
            return self.repaired(&note, source, sink);
        }
        if let Some(top) = self.frames.last_mut()
            && top.nested > 0
        {
            top.nested -= 1;
            self.code.text(source.as_bytes());
            return self.say(source, sink);
        }
        while let Some(top) = self.frames.last()
            && self.config.markup.at(top.name).group != group
        {
            let note = format!("<{}> is closed before </{}>", self.name(top.name), self.name(name));
            self.repaired(&note, "", sink);
            self.close_top("", sink);
        }
        if let Some(top) = self.frames.last()
            && top.name != name
        {
            let note = format!("<{}> is closed with </{}>", self.name(top.name), self.name(name));
            self.repaired(&note, "", sink);
        }
        self.close_top(source, sink);
    }

    /// Closes the innermost element of `frames`.
    pub(super) fn close_top(&mut self, source: &str, sink: Sink<'_>) {
        self.mention = None;
        let Some(frame) = self.frames.pop() else { return };
        self.open[self.config.markup.at(frame.name).group] -= 1;
        self.tags -= frame.tag;
        let text = &self.text[frame.text..];
        let body = if text.trim_ascii().is_empty() { Body::Empty } else { Body::Text(text) };
        let closed = What::Closed(self.element(&frame, body));
        sink(Event { what: closed, source, place: frame.at });
        self.at = place::behind(self.at, source);
        self.text.truncate(frame.text);
        self.code.reset();
        self.bare = 0;
    }
}
