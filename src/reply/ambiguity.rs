//! Decides whether a close tag belongs to a code span. In `` `</response>` `` the text only
//! mentions the tag. But if an unpaired backtick stands before the close tag of a response, the tag
//! ends the response. The parser decides by the rest of the line.

use crate::reply::parser::{Parser, ParserState, Sink};

/// A close tag that may stand in a code span, and the state of reading the text after it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ambiguity {
    name: usize,
    /// How many bytes the tag has.
    tag: usize,
    /// How many backticks end the span. None if the number isn't known. In that case any number of
    /// backticks ends the span.
    span: Option<usize>,
    /// How many backticks were just read in a row.
    run: usize,
}

/// The parser waits for at most this many bytes after the tag. If a text quotes a tag, the quote
/// usually ends soon after the tag.
const BYTES_MAX: usize = 256;

impl Ambiguity {
    pub(super) fn new(name: usize, tag: usize, span: Option<usize>) -> Ambiguity {
        Ambiguity { name, tag, span, run: 0 }
    }

    /// Whether the backticks that were just read end the span.
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

    /// Decides whether the tag is text, by the characters that have arrived after it. If the span
    /// has ended, the tag is text. Otherwise the tag closes its element.
    pub(super) fn decide(&mut self, ambiguity: Ambiguity, sink: Sink<'_>) {
        let held = std::mem::take(&mut self.held);
        self.state = ParserState::Text;
        if ambiguity.is_quoted() {
            self.code.text(held.as_bytes());
            return self.say(&held, sink);
        }
        let (tag, rest) = held.split_at(ambiguity.tag);
        self.close_tag(ambiguity.name, tag, sink);
        // The text after the tag is parsed again. It has at most `BYTES_MAX` bytes, so this
        // recursion isn't deep.
        self.feed(rest, sink);
    }
}
