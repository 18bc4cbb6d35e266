//! The blocks of a Markdown text by the rules of `CommonMark`: quotes and lists, and the blocks in
//! them. The text is read byte by byte. The first characters of a line determine its kind. While
//! the kind is still open, the parser keeps the pending characters in the line's [`Stage`].

mod end;

use crate::reply::html::{End, Region, Start};
use crate::reply::inline::Inline;

/// How deep containers may be nested. Deeper text counts as code.
const DEPTH_MAX: usize = 32;

#[derive(Clone, Copy, Debug)]
enum Container {
    Quote,
    /// An item of a list. `need` is the number of columns by which the item's text is indented,
    /// relative to the text of the container around it. `is_empty` says that the item has no text
    /// yet.
    Item {
        need: u32,
        is_empty: bool,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Leaf {
    None,
    Paragraph,
    Heading,
    Indented,
    Fenced(Fence),
    Html(End),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Fence {
    pub(super) mark: u8,
    pub(super) count: usize,
}

/// The state of reading a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// Only spaces, tabs and the markers of containers so far.
    Lead,
    /// This many `#`, which may begin a heading.
    Hashes(usize),
    /// Backticks or tildes, which may begin a fence.
    Marks(Fence),
    /// After at least three backticks: a fence, unless another backtick stands on the line. The
    /// second value says whether a `|` stands on the line.
    Opening(usize, bool),
    /// After the backticks or tildes that open a fence.
    Info,
    /// `=` below a paragraph, which make the paragraph a heading. The value says whether spaces or
    /// tabs follow.
    Underline(bool),
    /// Characters that may become a thematic break, and whether spaces or tabs stand among them.
    Rule(u8, bool),
    Digits(usize, bool),
    /// A list marker: its character, its width, and whether it may end a paragraph.
    Mark(u8, u32, bool),
    /// Spaces or tabs after a list marker. The last value is the column at which the marker ended.
    Padding(u8, u32, bool, u32),
    /// In a fence.
    Code,
    /// Backticks or tildes that may end a fence: their number, and whether spaces or tabs follow.
    Closing(usize, bool),
    Text,
}

#[derive(Clone, Copy, Debug)]
struct Line {
    stage: Stage,
    column: u32,
    /// The column at which the text of the innermost container begins.
    start: u32,
    /// Whether a space or tab that comes next belongs to the marker of a quote.
    eats: bool,
    /// The column of the marker that is being read.
    mark: u32,
    /// How many of the open containers continue in this line.
    matched: usize,
    /// A possible thematic break: its character, how often the character was read, and how many
    /// containers are around the break.
    rule: (u8, usize, usize),
    /// Whether a tag that is markup stands on the line.
    is_tagged: bool,
    /// Whether the marker of a list or a quote stands on the line.
    is_marked: bool,
    html: Option<Start>,
    /// A tag that begins an HTML block if it stands alone on the line. `Region::None` means that
    /// the tag is complete.
    alone: Option<Region>,
    /// The last bytes of a line of HTML, in lower case.
    tail: u128,
    is_ended: bool,
}

impl Line {
    const NEW: Line = Line {
        stage: Stage::Lead,
        column: 0,
        start: 0,
        eats: false,
        mark: 0,
        matched: 0,
        rule: (0, 0, 0),
        is_tagged: false,
        is_marked: false,
        html: None,
        alone: None,
        tail: 0,
        is_ended: false,
    };
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Blocks {
    containers: [Container; DEPTH_MAX],
    depth: usize,
    /// More than `DEPTH_MAX` containers are open, so that the text counts as code.
    is_lost: bool,
    leaf: Leaf,
    line: Line,
    pub(super) is_blank_before: bool,
    /// Only blank lines were read so far, and no tag that is markup. Such blank lines at the
    /// beginning of a text don't set `is_blank_before`.
    is_bare: bool,
    pub(super) inline: Inline,
    /// The last byte was a carriage return.
    is_return: bool,
}

impl Blocks {
    pub(super) const fn new(inline: Inline) -> Blocks {
        Blocks {
            containers: [Container::Quote; DEPTH_MAX],
            depth: 0,
            is_lost: false,
            leaf: Leaf::None,
            line: Line::NEW,
            is_blank_before: false,
            is_bare: true,
            inline,
            is_return: false,
        }
    }

    /// Begins a new text, after a tag that is markup.
    pub(super) fn reset(&mut self) {
        (self.depth, self.is_lost, self.leaf) = (0, false, Leaf::None);
        self.line = Line { is_tagged: true, ..Line::NEW };
        (self.is_blank_before, self.is_bare, self.is_return) = (false, false, false);
        self.inline = Inline::default();
    }

    /// Whether the line so far has only spaces, tabs and the markers of containers.
    pub(super) fn is_begin(&self) -> bool {
        self.line.stage == Stage::Lead
    }

    /// Whether the text here is in a fence, or may be.
    pub(super) fn is_fenced(&self) -> bool {
        match self.line.stage {
            Stage::Opening(..) | Stage::Info | Stage::Code | Stage::Closing(..) => true,
            Stage::Lead => self.is_in_fence() || self.is_lost,
            _ => self.is_lost,
        }
    }

    /// Whether the fence ends if its line ends here.
    pub(super) fn is_closed(&self) -> bool {
        match (self.line.stage, self.leaf) {
            (Stage::Closing(count, _), Leaf::Fenced(fence)) => count >= fence.count,
            _ => false,
        }
    }

    fn is_in_fence(&self) -> bool {
        matches!(self.leaf, Leaf::Fenced(_)) && self.line.matched == self.depth
    }

    /// Whether the text here is indented like code.
    pub(super) fn is_indented(&self) -> bool {
        match self.line.stage {
            Stage::Lead => {
                let is_html = matches!(self.leaf, Leaf::Html(_)) && self.all();
                self.indent() >= 4 && self.leaf != Leaf::Paragraph && !is_html
            }
            _ => self.leaf == Leaf::Indented,
        }
    }

    /// Whether a tag that is indented like code is code by the rules of `CommonMark`: the tag
    /// stands after a blank line, after indented code, or after the marker of a list or a quote.
    pub(super) fn is_indented_code(&self) -> bool {
        self.is_blank_before || self.goes_on() || self.line.is_marked
    }

    /// Whether this line may continue the indented code of the line before.
    fn goes_on(&self) -> bool {
        self.leaf == Leaf::Indented && self.all()
    }

    /// Whether a fence may stand here that isn't a fence by `CommonMark`: in HTML, or on an
    /// indented line.
    pub(super) fn may_fence(&self) -> bool {
        self.line.stage == Stage::Text
            && match self.leaf {
                Leaf::Html(_) | Leaf::Indented => true,
                Leaf::Paragraph => self.indent() >= 4,
                _ => false,
            }
    }

    /// Whether only the bytes that [`Inline`] looks for matter on the rest of this line.
    pub(super) fn is_text(&self) -> bool {
        let line = &self.line;
        line.stage == Stage::Text
            && line.html.is_none()
            && line.alone.is_none()
            && !self.is_return
            && !matches!(self.leaf, Leaf::Html(_))
    }

    /// Whether only the line's end matters on the rest of this line.
    pub(super) fn is_code_text(&self) -> bool {
        matches!(self.line.stage, Stage::Code | Stage::Info) && !self.is_return
    }

    fn indent(&self) -> u32 {
        self.line.column - self.line.start
    }

    fn all(&self) -> bool {
        self.line.matched == self.depth
    }

    /// Decides the meaning of the pending characters before `byte`, if `byte` can't continue them.
    pub(super) fn settle(&mut self, byte: u8) {
        let is_blank = matches!(byte, b' ' | b'\t' | b'\n');
        match self.line.stage {
            Stage::Lead if !is_blank => {
                self.line.eats = false;
                self.contain();
            }
            Stage::Hashes(_) if is_blank => {
                self.close();
                (self.leaf, self.inline) = (Leaf::Heading, Inline::new(b'#'));
                self.line.stage = Stage::Text;
            }
            Stage::Hashes(count) if byte != b'#' || count == 6 => self.paragraph(b'#'),
            Stage::Marks(Fence { mark, .. }) if byte == mark => {}
            Stage::Marks(fence @ Fence { mark, count }) => {
                if count >= 3 && (mark == b'~' || byte == b'\n') {
                    self.fence(fence);
                } else if count >= 3 {
                    self.line.stage = Stage::Opening(count, false);
                } else {
                    self.paragraph(mark);
                    if mark == b'`' {
                        self.inline.marks(count, false);
                    }
                }
            }
            Stage::Opening(count, pipe) if byte == b'`' => {
                self.paragraph(b'`');
                self.inline.marks(count, pipe);
            }
            Stage::Underline(spaced) if !is_blank && (byte != b'=' || spaced) => {
                self.paragraph(b'=');
            }
            Stage::Rule(mark, _) if !is_blank && byte != mark => self.paragraph(mark),
            Stage::Digits(count, _) => {
                let goes_on = byte.is_ascii_digit() && count < 9 || matches!(byte, b'.' | b')');
                if !goes_on {
                    self.paragraph(b'0');
                }
            }
            Stage::Mark(mark, ..)
                if !is_blank && (byte != mark || !matches!(mark, b'-' | b'*')) =>
            {
                self.paragraph(mark);
            }
            Stage::Padding(_, width, may_end, end) if !is_blank => {
                self.item(width, may_end, end);
                if self.line.stage == Stage::Lead {
                    self.contain();
                }
            }
            Stage::Closing(count, spaced) => {
                let Leaf::Fenced(fence) = self.leaf else { return };
                let is_more = byte == fence.mark && !spaced;
                let is_end = is_blank && count >= fence.count;
                if !(is_more || is_end) {
                    self.line.stage = Stage::Code;
                }
            }
            _ => {}
        }
    }

    /// Enters the list items that continue in this line, by the indentation so far.
    fn contain(&mut self) {
        while self.line.matched < self.depth {
            match self.containers[self.line.matched] {
                Container::Item { need, .. } if self.indent() >= need => self.line.start += need,
                _ => break,
            }
            self.line.matched += 1;
        }
    }

    pub(super) fn step(&mut self, byte: u8) {
        if self.line.stage == Stage::Text && !matches!(byte, b'\n' | b'\r') {
            self.is_return = false;
            return self.text(byte);
        }
        if std::mem::take(&mut self.is_return) && byte == b'\n' {
            return;
        }
        self.is_return = byte == b'\r';
        let byte = if byte == b'\r' { b'\n' } else { byte };
        self.settle(byte);
        if byte == b'\n' {
            return self.end_line();
        }
        let line = &mut self.line;
        match line.stage {
            Stage::Lead => match byte {
                b' ' | b'\t' => {
                    let eats = std::mem::take(&mut line.eats);
                    line.start += u32::from(eats);
                    self.blank(byte);
                }
                _ => self.first(byte),
            },
            Stage::Hashes(count) => line.stage = Stage::Hashes(count + 1),
            Stage::Marks(it) => line.stage = Stage::Marks(Fence { count: it.count + 1, ..it }),
            Stage::Opening(count, pipe) => line.stage = Stage::Opening(count, pipe || byte == b'|'),
            Stage::Underline(_) => line.stage = Stage::Underline(byte != b'='),
            Stage::Rule(mark, spaced) => {
                line.rule.1 += usize::from(byte == mark);
                line.stage = Stage::Rule(mark, spaced || byte != mark);
            }
            Stage::Digits(count, _) if byte.is_ascii_digit() => {
                line.stage = Stage::Digits(count + 1, false);
            }
            Stage::Digits(count, one) => {
                line.stage = Stage::Mark(byte, u32::try_from(count).unwrap_or(9) + 1, one);
            }
            Stage::Mark(mark, width, may_end) if matches!(byte, b' ' | b'\t') => {
                line.column = line.mark + width;
                line.stage = Stage::Padding(mark, width, may_end, line.column);
                self.blank(byte);
            }
            Stage::Mark(mark, ..) => {
                line.rule.1 += 1;
                line.stage = Stage::Rule(mark, false);
            }
            Stage::Padding(..) => self.blank(byte),
            Stage::Closing(count, _) => {
                let is_blank = matches!(byte, b' ' | b'\t');
                line.stage = Stage::Closing(count + usize::from(!is_blank), is_blank);
            }
            Stage::Info | Stage::Code => {}
            Stage::Text => self.text(byte),
        }
    }

    fn blank(&mut self, byte: u8) {
        let column = self.line.column;
        self.line.column = if byte == b'\t' { (column / 4 + 1) * 4 } else { column + 1 };
    }

    /// Takes the first byte after a line's spaces, tabs and container markers.
    fn first(&mut self, byte: u8) {
        let is_quote = byte == b'>' && self.indent() < 4;
        let (all, indent) = (self.all(), self.indent());
        if is_quote
            && !all
            && let Container::Quote = self.containers[self.line.matched]
        {
            self.line.matched += 1;
            return self.quoted();
        }
        if all && matches!(self.leaf, Leaf::Html(_)) {
            self.line.stage = Stage::Text;
            return self.text(byte);
        }
        if let Leaf::Fenced(fence) = self.leaf
            && all
        {
            let closes = indent < 4 && byte == fence.mark;
            self.line.stage = if closes { Stage::Closing(1, false) } else { Stage::Code };
            return;
        }
        self.line.mark = self.line.column;
        let is_paragraph = all && self.leaf == Leaf::Paragraph;
        match byte {
            _ if indent >= 4 => self.far_in(byte),
            b'>' => {
                self.open(Container::Quote);
                self.quoted();
            }
            b'#' => self.line.stage = Stage::Hashes(1),
            b'`' | b'~' => self.line.stage = Stage::Marks(Fence { mark: byte, count: 1 }),
            b'-' | b'*' | b'_' => {
                let rule = &mut self.line.rule;
                *rule = if rule.0 == byte {
                    (byte, rule.1 + 1, rule.2)
                } else {
                    (byte, 1, self.line.matched)
                };
                let item = Stage::Mark(byte, 1, true);
                self.line.stage = if byte == b'_' { Stage::Rule(byte, false) } else { item };
            }
            b'+' => self.line.stage = Stage::Mark(byte, 1, true),
            b'0'..=b'9' => self.line.stage = Stage::Digits(1, byte == b'1'),
            b'=' if is_paragraph => self.line.stage = Stage::Underline(false),
            b'<' => {
                self.line.html = Some(Start::default());
                self.line.alone = (self.leaf != Leaf::Paragraph).then_some(Region::Start);
                self.line.tail = u128::from(b'<');
                self.paragraph(byte);
                self.inline.step(byte);
            }
            _ => {
                self.paragraph(byte);
                self.text(byte);
            }
        }
    }

    fn quoted(&mut self) {
        self.line.is_marked = true;
        self.line.column += 1;
        self.line.start = self.line.column;
        self.line.eats = true;
        self.line.rule = (0, 0, 0);
    }

    /// Takes the first byte of text that is indented by four columns or more.
    fn far_in(&mut self, byte: u8) {
        if self.leaf == Leaf::Paragraph {
            self.inline.far_in();
            self.paragraph(byte);
        } else {
            if !self.goes_on() {
                self.close();
                self.inline = Inline::default();
            }
            self.leaf = Leaf::Indented;
            self.fill();
            self.line.stage = Stage::Text;
        }
        self.text(byte);
    }

    /// Makes the line part of a paragraph. If no paragraph is open, a paragraph begins with this
    /// byte.
    fn paragraph(&mut self, first: u8) {
        if self.leaf != Leaf::Paragraph {
            self.close();
            (self.leaf, self.inline) = (Leaf::Paragraph, Inline::new(first));
        }
        self.fill();
        self.line.stage = Stage::Text;
    }

    fn fence(&mut self, fence: Fence) {
        self.close();
        self.leaf = Leaf::Fenced(fence);
        self.fill();
        self.line.stage = Stage::Info;
    }

    /// Begins a list item, if one may begin here. The item's marker has `width` columns, and ended
    /// at column `end`.
    fn item(&mut self, width: u32, may_end: bool, end: u32) {
        if !may_end && self.all() && self.leaf == Leaf::Paragraph {
            return self.paragraph(b'0');
        }
        let before = self.line.mark - self.line.start;
        let spaces = self.line.column - end;
        let is_code = spaces >= 5;
        let need = before + width + if is_code { 1 } else { spaces };
        self.open(Container::Item { need, is_empty: false });
        self.line.start = if is_code { end + 1 } else { self.line.column };
        self.line.stage = Stage::Lead;
    }

    fn open(&mut self, container: Container) {
        self.close();
        self.fill();
        self.line.is_marked = true;
        if self.depth == DEPTH_MAX {
            self.is_lost = true;
            return;
        }
        self.containers[self.depth] = container;
        self.depth += 1;
        self.line.matched = self.depth;
    }

    /// Closes the containers that don't continue in this line, and the open block of the last
    /// container that continues.
    fn close(&mut self) {
        if self.line.matched < self.depth {
            self.depth = self.line.matched;
            self.is_lost = false;
        }
        self.leaf = Leaf::None;
    }

    /// Notes that the open items of lists have content.
    fn fill(&mut self) {
        for container in &mut self.containers[..self.depth] {
            if let Container::Item { is_empty, .. } = container {
                *is_empty = false;
            }
        }
    }

    fn text(&mut self, byte: u8) {
        self.inline.step(byte);
        let line = &mut self.line;
        let lower = u128::from(byte.to_ascii_lowercase());
        if line.html.is_some() || matches!(self.leaf, Leaf::Html(_)) {
            line.tail = line.tail << 8 | lower;
        }
        if let Some(start) = &mut line.html
            && let Some(end) = start.step(byte)
        {
            self.html(end);
        }
        if let Leaf::Html(end) = self.leaf {
            self.line.is_ended |= end.is_in(self.line.tail);
        }
        self.line.alone = self.line.alone.and_then(|it| it.alone(byte));
    }

    /// Begins an HTML block with this line.
    fn html(&mut self, end: End) {
        let region = self.inline.region;
        self.close();
        (self.leaf, self.inline) = (Leaf::Html(end), Inline::default());
        self.inline.region = region;
        self.fill();
        (self.line.html, self.line.alone) = (None, None);
    }
}
