//! Code spans in the text of one block, as `CommonMark` has them, byte by byte.
//!
//! A run of backticks is open until a run of the same length, or the end of its block. A backtick
//! may belong to something else: a tag's attribute, an address, a link's target or label, a
//! definition, a table's cell. Only the text after it can tell, so everything after it is doubtful
//! up to the block's end.

use crate::reply::html::{Region, Went};

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Inline {
    /// How many backticks end the span that may have begun.
    span: Option<usize>,
    /// Whether this is code can't be known.
    doubt: bool,
    /// Backticks behind each other, so far.
    run: usize,
    /// Whether they may belong to something else.
    is_risky: bool,
    /// Behind a backslash.
    escape: bool,
    pub(super) region: Region,
    /// A backtick stands in a comment that isn't over.
    is_kept: bool,
    /// A `<` stands in a value of that tag.
    nested: bool,
    link: Link,
    definition: Definition,
    /// A `|` stands in it: it may be a table.
    pipe: bool,
}

/// What stands behind the text of a link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Link {
    #[default]
    None,
    /// Behind `]`.
    Text,
    /// Behind `](`: a target of letters only.
    Plain,
    /// A target with quotes, brackets and so on; where it ends isn't looked for.
    Complex,
    /// Behind `][`.
    Label,
}

/// Whether the block may define what links stand for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Definition {
    #[default]
    No,
    /// Within the label.
    Label,
    /// Behind its `]`.
    Colon,
    Maybe,
}

impl Inline {
    /// The text of a block that begins with this byte.
    pub(super) fn new(first: u8) -> Inline {
        let definition = if first == b'[' { Definition::Label } else { Definition::No };
        Inline { definition, ..Inline::default() }
    }

    /// Whether this is code, or may be; how many backticks end it, where that is known.
    pub(super) fn span(&self) -> Option<Option<usize>> {
        if self.doubt || self.is_kept { Some(None) } else { self.span.map(Some) }
    }

    /// Whether this byte stands in a span that may have begun.
    pub(super) fn is_code(&self) -> bool {
        self.span.is_some()
    }

    /// Whether this is the value of another element's attribute, or may be.
    pub(super) fn in_attribute(&self) -> bool {
        self.span.is_none() && matches!(self.region, Region::Quoted(_))
    }

    /// Whether only `<`, backticks, backslashes, brackets and line ends matter next.
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

    /// So many backticks stood at the beginning of a line, and something with a `|` behind them.
    pub(super) fn marks(&mut self, count: usize, pipe: bool) {
        let was_open = self.span.is_some();
        self.run = count;
        self.resolve();
        self.doubt |= was_open && self.span.is_none() || pipe;
    }

    /// The text goes on in a line that is indented as code is: below a table it is code.
    pub(super) fn far_in(&mut self) {
        self.doubt |= self.pipe;
    }

    /// A run of backticks is over.
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
            // A backtick behind a backslash is one; in a tag a backslash is nothing.
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
        // What is white space in HTML for some isn't for others.
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
        if self.region.step(byte) == Went::Over {
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
