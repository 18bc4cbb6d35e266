//! A close tag that looks like part of a code span. `` `</response>` `` only names the tag, but in
//! a response with a lone backtick the same tag ends the response. The rest of the line decides.

use crate::reply::parser::{Parser, ParserState, Sink};

/// A close tag in a code span, and what came behind it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ambiguity {
    name: usize,
    /// Bytes of the tag.
    tag: usize,
    /// How many backticks end the span; any, where that isn't known.
    span: Option<usize>,
    /// How many stand behind each other here.
    run: usize,
}

/// Bytes behind the tag that are waited for. Whoever quotes a tag ends the quote soon.
const BYTES_MAX: usize = 256;

impl Ambiguity {
    pub(super) fn new(name: usize, tag: usize, span: Option<usize>) -> Ambiguity {
        Ambiguity { name, tag, span, run: 0 }
    }

    /// Whether backticks that are over end the span.
    fn is_quoted(&self) -> bool {
        self.span.map_or(self.run > 0, |it| it == self.run)
    }
}

impl Parser {
    pub(super) fn read_doubt<'c>(
        &mut self,
        mut ambiguity: Ambiguity,
        rest: &'c str,
        sink: Sink<'_>,
    ) -> &'c str {
        let waited = self.held.len() - ambiguity.tag;
        for (at, byte) in rest.bytes().enumerate() {
            let ends = ambiguity.is_quoted() && byte != b'`';
            if ends || byte == b'\n' || waited + at >= BYTES_MAX {
                let (now, later) = rest.split_at(rest.floor_char_boundary(at));
                self.held.push_str(now);
                self.decide(ambiguity, sink);
                return later;
            }
            ambiguity.run = if byte == b'`' { ambiguity.run + 1 } else { 0 };
        }
        self.held.push_str(rest);
        self.state = ParserState::Ambiguity(ambiguity);
        ""
    }

    /// No more is waited for: the tag is quoted if the span has ended.
    pub(super) fn decide(&mut self, ambiguity: Ambiguity, sink: Sink<'_>) {
        let held = std::mem::take(&mut self.held);
        self.state = ParserState::Text;
        if ambiguity.is_quoted() {
            self.code.end_span(held.as_bytes());
            return self.say(&held, sink);
        }
        let (tag, rest) = held.split_at(ambiguity.tag);
        self.close_tag(ambiguity.name, tag, sink);
        // What came behind it is read anew: less than was waited for, so this goes no deeper.
        self.feed(rest, sink);
    }
}
