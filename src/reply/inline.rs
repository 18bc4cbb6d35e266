//! Code spans in the text of one Markdown block, by the rules of `CommonMark`. The text is read
//! byte by byte.
//!
//! A code span begins with a run of backticks. It ends with a run of the same length, or at the end
//! of its block. But a backtick may belong to something else: a tag's attribute, an autolink, a
//! link's destination or label, a link reference definition, or a table cell. Only the text after
//! the backtick shows whether it does. Until the block ends, text after such a backtick is in
//! doubt: it may be code.

use crate::reply::html::{Region, RegionStep};

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Inline {
    /// How many backticks end the code span. None if no span can have begun.
    span: Option<usize>,
    /// Whether the text here is in doubt, so that it may be code.
    doubt: bool,
    /// How many backticks were just read in a row.
    run: usize,
    /// Whether the backticks of `run` may belong to something other than a code span.
    is_risky: bool,
    /// The last byte was a backslash.
    escape: bool,
    pub(super) region: Region,
    /// A backtick stands in a comment that hasn't ended.
    is_kept: bool,
    /// A `<` stands in a quoted value of the region's tag.
    nested: bool,
    link: Link,
    definition: Definition,
    /// A `|` stands in the block, which may be a table.
    pipe: bool,
}

/// A position in a link, after the link's text. `None` outside such positions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Link {
    #[default]
    None,
    /// After `]`.
    Text,
    /// After `](`, in a destination of simple characters.
    Plain,
    /// In a destination with quotes, brackets and the like. The parser doesn't look for the end of
    /// such a destination.
    Complex,
    /// After `][`.
    Label,
}

/// Whether the block may be a link reference definition.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Definition {
    #[default]
    No,
    /// Within the definition's label.
    Label,
    /// After the label's `]`.
    Colon,
    Maybe,
}

impl Inline {
    /// The state for the text of a block that begins with this byte.
    pub(super) fn new(first: u8) -> Inline {
        let definition = if first == b'[' { Definition::Label } else { Definition::No };
        Inline { definition, ..Inline::default() }
    }

    /// Whether the text here is a code span, or may be one. The inner value is the number of
    /// backticks that end the span, if it is known.
    pub(super) fn span(&self) -> Option<Option<usize>> {
        if self.doubt || self.is_kept { Some(None) } else { self.span.map(Some) }
    }

    /// Whether the text here stands in a code span that has begun or may have begun.
    pub(super) fn is_code(&self) -> bool {
        self.span.is_some()
    }

    /// Whether the text here is or may be the value of another element's attribute.
    pub(super) fn in_attribute(&self) -> bool {
        self.span.is_none() && matches!(self.region, Region::Quoted(_))
    }

    /// Whether only `<`, `` ` ``, `\`, `]`, `|` and line ends matter next.
    pub(super) fn is_plain(&self) -> bool {
        self.run == 0
            && !self.escape
            && self.region == Region::None
            && self.link == Link::None
            && self.definition == Definition::No
            && self.span.is_none()
    }

    /// Whether only backticks, `|`, `<` and line ends matter next.
    pub(super) fn is_span(&self) -> bool {
        self.run == 0 && self.span.is_some()
    }

    /// Takes a run of `count` backticks at the beginning of a line. `pipe` says that a `|` stands
    /// after them.
    pub(super) fn marks(&mut self, count: usize, pipe: bool) {
        let was_open = self.span.is_some();
        self.run = count;
        self.resolve();
        self.doubt |= was_open && self.span.is_none() || pipe;
    }

    /// Takes the beginning of a line that is indented like code. Below a table, such a line is
    /// code.
    pub(super) fn far_in(&mut self) {
        self.doubt |= self.pipe;
    }

    /// Handles the end of a run of backticks.
    pub(super) fn resolve(&mut self) {
        let run = std::mem::take(&mut self.run);
        if run == 0 {
            return;
        }
        match self.span {
            Some(open) if open == run => self.span = None,
            Some(_) => {}
            None => {
                self.doubt |= self.is_risky;
                self.span = Some(run);
            }
        }
    }

    /// Takes a byte.
    pub(super) fn step(&mut self, byte: u8) {
        if self.is_plain() && !matches!(byte, b'<' | b'`' | b'\\' | b']' | b'|') {
            return;
        }
        if self.region.is_comment() && self.span.is_none() && self.run == 0 {
            self.is_kept |= byte == b'`';
            return self.region(byte);
        }
        if byte != b'`' {
            self.resolve();
        }
        if byte == b'\n' {
            self.doubt |= self.span.is_some() && self.pipe;
        }
        if byte == b'|' {
            self.pipe = true;
            self.doubt |= self.span.is_some();
        }
        if self.run > 0 || self.span.is_some() {
            self.run += usize::from(byte == b'`');
            return;
        }
        if std::mem::take(&mut self.escape) && byte.is_ascii_punctuation() {
            // In text, a backtick after a backslash is only a character. In a tag, a backslash has
            // no such meaning, so the text after it is in doubt.
            self.doubt |= byte == b'`' && self.region.holds_backtick();
            if self.region != Region::None {
                self.region(if byte == b'`' { b' ' } else { byte });
            }
            return;
        }
        self.escape = byte == b'\\';
        self.definition(byte);
        self.link(byte);
        if byte == b'`' {
            let link = !matches!(self.link, Link::None | Link::Text);
            self.is_risky =
                self.region.holds_backtick() || link || self.definition != Definition::No;
            if !self.region.holds_backtick() {
                self.region = Region::None;
            }
            self.run = 1;
            return;
        }
        // Some HTML parsers take a vertical tab and a form feed as white space, and others don't.
        self.doubt |= self.region != Region::None && matches!(byte, 0x0B | 0x0C);
        self.region(byte);
    }

    fn region(&mut self, byte: u8) {
        if self.region == Region::None {
            if byte == b'<' {
                (self.region, self.nested) = (Region::Start, false);
            }
            return;
        }
        self.nested |= byte == b'<' && matches!(self.region, Region::Quoted(_));
        if self.region.step(byte) == RegionStep::Over {
            self.is_kept = false;
            self.doubt |= self.nested;
            if byte == b'<' {
                (self.region, self.nested) = (Region::Start, false);
            }
        }
    }

    fn definition(&mut self, byte: u8) {
        self.definition = match (self.definition, byte) {
            (Definition::Label, b']') => Definition::Colon,
            (Definition::Colon, b':') => Definition::Maybe,
            (Definition::Colon, _) => Definition::No,
            (same, _) => same,
        };
    }

    fn link(&mut self, byte: u8) {
        self.link = match (self.link, byte) {
            (Link::Complex, _) => Link::Complex,
            (Link::Label | Link::Plain, b'\\' | b'[') => Link::Complex,
            (Link::Plain, b'<' | b'"' | b'\'' | b'(') => Link::Complex,
            (Link::Plain, b')') => Link::None,
            (Link::Plain, _) => Link::Plain,
            (Link::Label, b']') => Link::Text,
            (Link::Label, _) => Link::Label,
            (Link::Text, b'(') => Link::Plain,
            (Link::Text, b'[') => Link::Label,
            (_, b']') => Link::Text,
            _ => Link::None,
        };
    }
}
