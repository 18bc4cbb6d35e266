//! Decides where in a text a tag may be markup. Tags in code, comments, CDATA sections and other
//! elements' attributes are text.
//!
//! Code is what `CommonMark` defines as code (`markdown/`, `inline.rs`), with three differences:
//!
//! - Text that may still turn out to be code counts as code.
//! - A line that begins with a tag that is markup ends the paragraph before it.
//! - A line that looks like a fence is a fence even in places where `CommonMark` has no fences:
//!   after four spaces, or in HTML, as in a pretty-printed thought.

use std::ops::Range;

use crate::reply::inline::Inline;
use crate::reply::markdown::{Blocks, Fence};
use crate::reply::nest::Nest;

/// Returns the byte ranges of code in a Markdown text: of code fences and code spans, but not of
/// indented code.
///
/// Whether a byte is code depends only on the text up to this byte. So appending more text never
/// changes which of the earlier bytes are code. A span without an end lasts until its block ends.
///
/// ```
/// # extern crate pumphouse_reply as pumphouse;
/// let text = "Run `echo $HOME` in $dir";
/// let code = pumphouse::reply::code_ranges(text);
/// assert_eq!(code.iter().map(|it| &text[it.clone()]).collect::<Vec<_>>(), ["echo $HOME`"]);
/// ```
#[must_use]
pub fn code_ranges(text: &str) -> Vec<Range<usize>> {
    let mut code = CodeContext::new(false);
    let mut ranges: Vec<Range<usize>> = Vec::new();
    for (at, byte) in text.bytes().enumerate() {
        if code.next(&[byte]).is_some() {
            code.text(&[byte]);
        }
        if !code.is_code() {
            continue;
        }
        match ranges.last_mut().filter(|it| it.end == at) {
            Some(last) => last.end = at + 1,
            None => ranges.push(at..at + 1),
        }
    }
    ranges
}

/// Why a tag is text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Why {
    /// The tag stands in a code fence.
    Fence,
    /// The tag stands in a code span, or in text that may become one.
    Span,
    /// The tag is indented by four columns or more.
    Indent,
    /// The tag stands in the value of another element's attribute, or in a string of JSON.
    Attribute,
    /// The tag stands in the middle of a line, and tags of its name are markup only at the
    /// beginning of a line.
    Line,
    /// The call is JSON that stands within quotes or within open brackets.
    Nested,
}

impl Why {
    /// The reason in words.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Why::Fence => "it stands in a code fence",
            Why::Span => "it stands in a code span, or in what may become one",
            Why::Indent => "it is indented by four or more, so it is code",
            Why::Attribute => "it stands in another element's attribute",
            Why::Line => "it stands within a line, and counts only where it begins one",
            Why::Nested => "it stands in quotes, or within brackets that are open",
        }
    }
}

/// The facts about a tag's place that decide whether the tag is markup.
#[derive(Clone, Copy, Debug)]
pub(super) struct Spot {
    /// Why the place makes the tag text. None if the place allows markup.
    pub(super) why: Option<Why>,
    /// Whether a tag here ends the paragraph before it.
    pub(super) begins: bool,
    /// Whether only spaces, tabs, and the markers of lists and quotes stand before the tag. Only
    /// text after the beginning of the line, and after the last tag that is markup, counts.
    pub(super) fresh: bool,
}

/// The state of a text at a place.
#[derive(Clone, Copy, Debug)]
pub(super) struct CodeContext {
    blocks: Blocks,
    /// Whether the text here is in a comment or in a CDATA section.
    hidden: Hidden,
    deep: Deep,
    visual: Visual,
    /// The quotation mark that a broken tag left open.
    torn: Option<u8>,
    nest: Nest,
    /// Whether calls may be JSON, too. If so, `last` has the last three bytes.
    json: bool,
    last: [u8; 3],
    /// Whether a fence ends here if a tag begins here.
    is_closed: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Hidden {
    No,
    /// In a comment. The value is the number of `-` that were just read in a row. A section's value
    /// counts `]`.
    Comment(u8),
    Section(u8),
}

impl CodeContext {
    pub(super) fn new(json: bool) -> CodeContext {
        CodeContext {
            blocks: Blocks::new(Inline::default()),
            hidden: Hidden::No,
            deep: Deep::default(),
            visual: Visual::Open,
            torn: None,
            nest: Nest::default(),
            json,
            last: [b' '; 3],
            is_closed: false,
        }
    }

    /// Takes a tag that is markup. A new text begins after the tag: all fields but `json` are
    /// reset. The array of containers stays as it is, since only its first `depth` entries are
    /// used.
    pub(super) fn reset(&mut self) {
        self.blocks.reset();
        (self.hidden, self.torn, self.is_closed) = (Hidden::No, None, false);
        (self.deep, self.visual, self.nest) = (Deep::default(), Visual::Open, Nest::default());
        self.last = [b' '; 3];
    }

    /// Takes text that has no markup in it.
    pub(super) fn text(&mut self, text: &[u8]) {
        text.iter().for_each(|byte| self.step(*byte));
    }

    pub(super) fn comment(&mut self) {
        self.hidden = Hidden::Comment(0);
    }

    pub(super) fn section(&mut self) {
        self.hidden = Hidden::Section(0);
    }

    /// Takes a broken tag. `quote` is the quotation mark of the value in which the tag breaks off.
    pub(super) fn torn(&mut self, quote: Option<u8>) {
        self.reset();
        self.torn = quote;
    }

    /// Forgets the quotation mark that a broken tag left open, since a close tag follows.
    pub(super) fn mend(&mut self) {
        self.torn = None;
    }

    /// Whether the text here is a code span, or may be one. The inner value is the number of
    /// backticks that end the span, if it is known.
    pub(super) fn span(&self) -> Option<Option<usize>> {
        self.blocks.inline.span()
    }

    /// Takes text without looking for tags in it.
    pub(super) fn read(&mut self, mut text: &[u8]) {
        while let Some(at) = self.next(text) {
            self.step(text[at]);
            text = &text[at + 1..];
        }
    }

    /// The spot of a tag that begins after the text that was read.
    pub(super) fn tag_spot(&mut self, within: bool) -> Spot {
        self.settle(b'<');
        self.spot(within)
    }

    /// The spot of JSON that begins here.
    pub(super) fn json_spot(&self, within: bool) -> Spot {
        let spot = self.spot(within);
        Spot { why: self.why_no_call().or(spot.why), ..spot }
    }

    fn is_code(&self) -> bool {
        self.blocks.is_fenced() || self.deep.is_code() || self.blocks.inline.is_code()
    }

    /// Reads up to the next byte at which markup may begin, and returns its index.
    pub(super) fn next(&mut self, bytes: &[u8]) -> Option<usize> {
        let mut at = 0;
        loop {
            let skipped = self.skip(&bytes[at..]);
            if skipped > 0 && self.json {
                for byte in &bytes[at..at + skipped][skipped.saturating_sub(3)..] {
                    self.remember(*byte);
                }
            }
            at += skipped;
            let &byte = bytes.get(at)?;
            let may_begin = byte == b'<' || self.json && matches!(byte, b'{' | b'[');
            if self.hidden == Hidden::No && may_begin {
                self.settle(byte);
                return Some(at);
            }
            self.step(byte);
            at += 1;
        }
    }

    /// Returns how many bytes come before the next byte that matters.
    fn skip(&self, bytes: &[u8]) -> usize {
        let inline = &self.blocks.inline;
        let is_dull = self.hidden == Hidden::No
            && self.visual == Visual::Dead
            && self.torn.is_none()
            && self.nest.depth == 0
            && self.deep.is_dull();
        if !is_dull {
            return 0;
        }
        let until = if self.blocks.is_code_text() {
            memchr::memchr3(b'<', b'\n', b'\r', bytes)
        } else if !self.blocks.is_text() {
            Some(0)
        } else if inline.is_plain() {
            return if self.json { plain::<true>(bytes) } else { plain::<false>(bytes) };
        } else if inline.is_span() {
            let until = memchr::memchr3(b'<', b'`', b'\n', bytes).unwrap_or(bytes.len());
            Some(memchr::memchr2(b'\r', b'|', &bytes[..until]).unwrap_or(until))
        } else {
            Some(0)
        };
        let until = until.unwrap_or(bytes.len());
        if !self.json {
            return until;
        }
        memchr::memchr2(b'{', b'[', &bytes[..until]).unwrap_or(until)
    }

    fn remember(&mut self, byte: u8) {
        self.last = [self.last[1], self.last[2], byte];
    }

    fn step(&mut self, byte: u8) {
        if self.json {
            self.remember(byte);
            self.nest.step(byte);
        }
        match self.hidden {
            Hidden::No => {}
            Hidden::Comment(count) => self.hidden = hidden(count, byte, b'-', Hidden::Comment),
            Hidden::Section(count) => self.hidden = hidden(count, byte, b']', Hidden::Section),
        }
        if self.torn == Some(byte) {
            self.torn = None;
        }
        self.blocks.step(byte);
        self.deep.step(byte, || self.blocks.may_fence());
        self.visual.step(byte);
        if matches!(byte, b'\n' | b'\r') && self.blocks.is_blank_before {
            self.torn = None;
            self.nest.blank();
        }
    }

    /// The spot of a tag that begins here. `within` says whether a thought, a response, a control
    /// block or the root of the agent's own payload is open around the tag.
    pub(super) fn spot(&self, within: bool) -> Spot {
        let is_fenced = self.blocks.is_fenced() && !self.is_closed;
        let ends_deep = self.deep.is_closed() && !self.blocks.is_fenced();
        let begins = self.blocks.is_begin() || self.is_closed || ends_deep;
        let fresh = self.visual == Visual::Open;
        let inline = &self.blocks.inline;
        let why = if is_fenced || self.deep.is_code() && !ends_deep {
            Some(Why::Fence)
        } else if self.torn.is_some() || self.nest.string || inline.in_attribute() {
            Some(Why::Attribute)
        } else if self.blocks.is_indented() && !begins {
            Some(Why::Indent)
        } else if self.blocks.is_indented() {
            (self.blocks.is_indented_code() && !within).then_some(Why::Indent)
        } else if inline.span().is_some() && !begins {
            Some(Why::Span)
        } else {
            None
        };
        Spot { why, begins, fresh: fresh || begins }
    }

    /// Returns why JSON that begins here isn't a call: the JSON stands within quotes or brackets.
    /// None if it stands in neither.
    fn why_no_call(&self) -> Option<Why> {
        let is_quoted = matches!(self.last, [.., b'"' | b'\''])
            || matches!(self.last, [0xE2, 0x80, 0x98 | 0x9C | 0x9E | 0xB9] | [_, 0xC2, 0xAB]);
        (self.nest.depth > 0 || is_quoted).then_some(Why::Nested)
    }

    /// Decides the meaning of the pending characters before this byte.
    fn settle(&mut self, byte: u8) {
        // A tag that is markup ends the text before it. So the tag also ends a line that closes a
        // fence.
        self.is_closed = byte == b'<' && self.blocks.is_closed();
        self.blocks.settle(byte);
        self.blocks.inline.resolve();
    }
}

/// Returns how many bytes come before the next byte that matters in plain text. If `JSON` is set,
/// braces and brackets matter, too.
fn plain<const JSON: bool>(bytes: &[u8]) -> usize {
    let matters = |byte: &u8| {
        let is_json = JSON && matches!(byte, b'{' | b'[');
        is_json || matches!(byte, b'<' | b'`' | b'\n' | b'\\' | b']' | b'\r' | b'|')
    };
    let (words, rest) = bytes.as_chunks::<8>();
    for (at, word) in words.iter().enumerate() {
        if may_matter(u64::from_le_bytes(*word), JSON)
            && let Some(found) = word.iter().position(matters)
        {
            return at * 8 + found;
        }
    }
    bytes.len() - rest.len() + rest.iter().position(matters).unwrap_or(rest.len())
}

/// Whether one of eight bytes may matter. All eight are checked at once, without a branch. The
/// result may be true although no byte matters, but it is never false if one does.
fn may_matter(word: u64, json: bool) -> bool {
    const ONES: u64 = 0x0101_0101_0101_0101;
    let has_zero = |it: u64| it.wrapping_sub(ONES) & !it & (ONES << 7);
    let has = |it: u64, byte: u8| has_zero(it ^ (ONES * u64::from(byte)));
    // `\`, `|` and `]` differ from `}` only in the bits 0x21, and `[` from `{` only in 0x20.
    let marks = has(word, b'<') | has(word, b'`') | has(word | (ONES * 0x21), b'}');
    let ends = has_zero(word & (ONES * 0xF0));
    let braces = if json { has(word | (ONES * 0x20), b'{') } else { 0 };
    marks | ends | braces != 0
}

/// Takes a byte of a comment or a section, which ends with `mark` twice and `>`.
fn hidden(count: u8, byte: u8, mark: u8, hidden: fn(u8) -> Hidden) -> Hidden {
    match byte {
        b'>' if count == 2 => Hidden::No,
        _ if byte == mark => hidden((count + 1).min(2)),
        _ => hidden(0),
    }
}

/// Whether the line so far has only spaces, tabs, and the markers of lists and quotes. Only the
/// line itself is considered, not the blocks around it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Visual {
    Open,
    Digits,
    Mark,
    Dead,
}

impl Visual {
    fn step(&mut self, byte: u8) {
        *self = match (*self, byte) {
            (_, b'\n' | b'\r') | (Visual::Open, b' ' | b'\t' | b'>') => Visual::Open,
            (Visual::Open, b'-' | b'*' | b'+') => Visual::Mark,
            (Visual::Open | Visual::Digits, b'0'..=b'9') => Visual::Digits,
            (Visual::Digits, b'.' | b')') => Visual::Mark,
            (Visual::Mark, b' ' | b'\t') => Visual::Open,
            _ => Visual::Dead,
        };
    }
}

/// A fence at a place where `CommonMark` has none.
#[derive(Clone, Copy, Debug, Default)]
struct Deep {
    open: Option<Fence>,
    line: DeepLine,
}

#[derive(Clone, Copy, Debug, Default)]
enum DeepLine {
    #[default]
    Lead,
    /// The backticks or tildes, whether spaces or tabs follow them, and whether they may open a
    /// fence.
    Marks(Fence, bool, bool),
    Info(Fence),
    Dead,
}

impl Deep {
    fn is_dull(&self) -> bool {
        matches!(self.line, DeepLine::Dead)
    }

    fn is_code(&self) -> bool {
        let may_open = match self.line {
            DeepLine::Marks(fence, _, true) => fence.count >= 3,
            DeepLine::Info(_) => true,
            _ => false,
        };
        self.open.is_some() || may_open
    }

    /// Whether the fence ends if its line ends here.
    fn is_closed(&self) -> bool {
        match (self.line, self.open) {
            (DeepLine::Marks(fence, ..), Some(open)) => {
                fence.mark == open.mark && fence.count >= open.count
            }
            _ => false,
        }
    }

    fn step(&mut self, byte: u8, may_open: impl Fn() -> bool) {
        let is_end = matches!(byte, b'\n' | b'\r');
        let is_blank = matches!(byte, b' ' | b'\t');
        let is_mark = matches!(byte, b'`' | b'~');
        match self.line {
            DeepLine::Lead if !is_mark && !is_blank => {
                self.line = if is_end { DeepLine::Lead } else { DeepLine::Dead };
                return;
            }
            DeepLine::Dead => {
                if is_end {
                    self.line = DeepLine::Lead;
                }
                return;
            }
            _ => {}
        }
        self.line = match self.line {
            DeepLine::Lead if is_blank => DeepLine::Lead,
            DeepLine::Lead if is_mark => {
                let may_open = self.open.is_none() && may_open();
                DeepLine::Marks(Fence { mark: byte, count: 1 }, false, may_open)
            }
            DeepLine::Marks(Fence { mark, count }, false, may) if byte == mark => {
                DeepLine::Marks(Fence { mark, count: count + 1 }, false, may)
            }
            DeepLine::Marks(fence, _, may) if is_blank => DeepLine::Marks(fence, true, may),
            DeepLine::Marks(fence, _, may) if is_end => {
                match self.open {
                    Some(_) if self.is_closed() => self.open = None,
                    None if may && fence.count >= 3 => self.open = Some(fence),
                    _ => {}
                }
                DeepLine::Dead
            }
            DeepLine::Marks(fence, _, true) if fence.count >= 3 && byte != b'`' => {
                DeepLine::Info(fence)
            }
            DeepLine::Info(fence) if is_end => {
                self.open = Some(fence);
                DeepLine::Dead
            }
            DeepLine::Info(fence) if byte != b'`' || fence.mark == b'~' => DeepLine::Info(fence),
            _ => DeepLine::Dead,
        };
        if is_end {
            self.line = DeepLine::Lead;
        }
    }
}

impl CodeContext {
    /// Takes JSON that isn't a call, or the beginning of such JSON.
    pub(super) fn json(&mut self, text: &[u8]) {
        self.text(text);
        self.nest = Nest::of(text);
    }
}
