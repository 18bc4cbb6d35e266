//! HTML in Markdown: finds the lines that begin an HTML block, the end of the block, and the text
//! in a paragraph that may be a tag. In HTML, no backtick begins a code span.

/// The end condition of an HTML block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// One of `</pre>`, `</script>`, `</style>` and `</textarea>`.
    Close,
    Comment,
    Instruction,
    Declaration,
    Section,
    /// A blank line.
    Blank,
}

impl End {
    /// Whether a line whose last bytes are `tail` ends the block.
    pub(super) fn is_in(self, tail: u128) -> bool {
        let ends = |text: &[u8]| {
            let length = text.len() * 8;
            let wanted = text.iter().fold(0_u128, |it, &byte| it << 8 | u128::from(byte));
            tail & ((1 << length) - 1) == wanted
        };
        match self {
            End::Close => ["</pre>", "</script>", "</style>", "</textarea>"]
                .iter()
                .any(|it| ends(it.as_bytes())),
            End::Comment => ends(b"-->"),
            End::Instruction => ends(b"?>"),
            End::Declaration => ends(b">"),
            End::Section => ends(b"]]>"),
            End::Blank => false,
        }
    }
}

/// Elements that begin an HTML block if their tag begins a line, even within a paragraph.
const BLOCKS: &str = " address article aside base basefont blockquote body caption center col \
    colgroup dd details dialog dir div dl dt fieldset figcaption figure footer form frame frameset \
    h1 h2 h3 h4 h5 h6 head header hr html iframe legend li link main menu menuitem nav noframes ol \
    optgroup option p param search section summary table tbody td tfoot th thead title tr track \
    ul ";

/// Elements whose text isn't Markdown. They begin an HTML block, too.
const KEPT: &str = " pre script style textarea ";

/// The beginning of a line that starts with `<` and may begin an HTML block.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Start {
    /// The bytes after the `<`, in lower case unless they begin with `!`.
    name: [u8; 11],
    length: usize,
    is_over: bool,
}

impl Start {
    /// Takes a byte after the `<`, or the line's end. Returns the end condition of the HTML block,
    /// once it is certain that a block begins.
    pub(super) fn step(&mut self, byte: u8) -> Option<End> {
        if self.is_over {
            return None;
        }
        let name = &self.name[..self.length];
        let ends = matches!(byte, b' ' | b'\t' | b'\n' | b'>');
        if ends || name.last() == Some(&b'/') && self.length > 1 {
            self.is_over = true;
            let (is_close, name) = match name {
                [b'/', name @ ..] => (true, name),
                name => (false, name),
            };
            let (name, slash) = match name {
                [name @ .., b'/'] => (name, true),
                name => (name, false),
            };
            let has = |all: &str| {
                let name = std::str::from_utf8(name).unwrap_or("");
                !name.is_empty() && all.split(' ').any(|it| it == name)
            };
            return match slash {
                true if byte == b'>' && has(BLOCKS) => Some(End::Blank),
                true => None,
                false if !is_close && has(KEPT) => Some(End::Close),
                false if has(BLOCKS) => Some(End::Blank),
                false => None,
            };
        }
        if self.length == self.name.len() {
            self.is_over = true;
            return None;
        }
        let kept = self.name[0] == b'!';
        self.name[self.length] = if kept { byte } else { byte.to_ascii_lowercase() };
        self.length += 1;
        let found = match &self.name[..self.length] {
            b"?" => Some(End::Instruction),
            b"!--" => Some(End::Comment),
            b"![CDATA[" => Some(End::Section),
            [b'!', letter] if letter.is_ascii_alphabetic() => Some(End::Declaration),
            _ => None,
        };
        self.is_over = found.is_some();
        found
    }
}

/// The part of a paragraph that a `<` may have begun: a tag, a comment or the like, or an autolink.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Region {
    #[default]
    None,
    /// After `<`.
    Start,
    /// In a tag's name, which may also be the beginning of an autolink.
    Name,
    /// In an autolink, such as after `<https:` or `<me@`.
    Address,
    /// After `</`. The values say whether the tag has a name, and whether the name has ended.
    Close(bool, bool),
    /// After white space in a tag.
    Between,
    Attribute,
    /// After an attribute's name and white space.
    Named,
    /// After `=`.
    Value,
    Bare,
    Quoted(u8),
    /// After a value in quotes.
    Behind,
    /// After a `/`.
    Slash,
    /// After `<!`.
    Bang,
    Dash,
    Comment(u8),
    Section(u8),
    Declaration,
    Instruction(bool),
}

/// The result of reading one byte of a region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RegionStep {
    On,
    /// The region has ended, or the text wasn't a region.
    Over,
    /// The region was a complete tag.
    Tag,
}

impl Region {
    /// Whether a backtick here belongs to the region.
    pub(super) fn holds_backtick(self) -> bool {
        !matches!(
            self,
            Region::None
                | Region::Start
                | Region::Close(..)
                | Region::Between
                | Region::Attribute
                | Region::Named
                | Region::Value
                | Region::Bare
                | Region::Behind
                | Region::Slash
                | Region::Bang
                | Region::Dash
        )
    }

    /// Takes a byte of a line on which a tag may stand alone. Returns None once the tag can't be
    /// alone on the line, and `Region::None` after the tag.
    pub(super) fn alone(mut self, byte: u8) -> Option<Region> {
        match self {
            Region::None => matches!(byte, b' ' | b'\t').then_some(self),
            _ if byte == b'`' && !matches!(self, Region::Quoted(_)) => None,
            _ => (self.step(byte) != RegionStep::Over).then_some(self),
        }
    }

    /// Whether the region is a comment. In a comment, all text belongs to the region up to the
    /// comment's end.
    pub(super) fn is_comment(self) -> bool {
        matches!(self, Region::Comment(_))
    }

    /// Takes a byte. A backtick may only be given if [`holds_backtick`](Region::holds_backtick) is
    /// true.
    pub(super) fn step(&mut self, byte: u8) -> RegionStep {
        let space = byte.is_ascii_whitespace();
        let next = match (*self, byte) {
            (Region::None, _) => return RegionStep::Over,
            (Region::Start, b'/') => Region::Close(false, false),
            (Region::Start, b'!') => Region::Bang,
            (Region::Start, b'?') => Region::Instruction(false),
            (Region::Start, _) if byte.is_ascii_alphabetic() => Region::Name,
            // An e-mail address may begin with any of these characters.
            (Region::Start, _) if is_address(byte) => Region::Address,
            (Region::Name, b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-') => Region::Name,
            (Region::Name, b'>') => return self.tag(),
            (Region::Name | Region::Behind, _) if space => Region::Between,
            // A `/` after a name belongs to a tag: in an autolink, a `:` usually comes first.
            (Region::Name | Region::Between | Region::Named | Region::Behind, b'/') => {
                Region::Slash
            }
            (Region::Name, _) if is_address(byte) || byte == b':' => Region::Address,
            (Region::Slash, b'>') => return self.tag(),
            (Region::Address, b'>' | b'<') => return self.over(),
            (Region::Address, _) if !space => Region::Address,
            (Region::Close(_, false), b'a'..=b'z' | b'A'..=b'Z') => Region::Close(true, false),
            (Region::Close(true, false), b'0'..=b'9' | b'-') => *self,
            (Region::Close(true, _), b'>') => return self.tag(),
            (Region::Close(true, _), _) if space => Region::Close(true, true),
            (Region::Between, _) if space => Region::Between,
            (Region::Between | Region::Attribute | Region::Named, b'>') => return self.tag(),
            (Region::Between | Region::Named, b'a'..=b'z' | b'A'..=b'Z' | b'_' | b':') => {
                Region::Attribute
            }
            (Region::Attribute | Region::Named, b'=') => Region::Value,
            (Region::Attribute | Region::Named, _) if space => Region::Named,
            (
                Region::Attribute,
                b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'_' | b':' | b'.' | b'-',
            ) => Region::Attribute,
            (Region::Attribute, b'/') => Region::Slash,
            (Region::Value, _) if space => Region::Value,
            (Region::Value, b'"' | b'\'') => Region::Quoted(byte),
            (Region::Value | Region::Bare, b'<' | b'=') => return self.over(),
            (Region::Value, b'>') => return self.over(),
            (Region::Bare, b'>') => return self.tag(),
            (Region::Bare, b'"' | b'\'') => return self.over(),
            (Region::Bare, _) if space => Region::Between,
            (Region::Value | Region::Bare, _) => Region::Bare,
            (Region::Quoted(quote), _) if quote == byte => Region::Behind,
            (Region::Quoted(_), _) => *self,
            (Region::Behind, b'>') => return self.tag(),
            (Region::Bang, b'-') => Region::Dash,
            (Region::Bang, b'[') => Region::Section(1),
            (Region::Bang, _) if byte.is_ascii_alphabetic() => Region::Declaration,
            (Region::Dash, b'-') => Region::Comment(2),
            (Region::Comment(2), b'>') => return self.over(),
            (Region::Comment(count), b'-') => Region::Comment((count + 1).min(2)),
            (Region::Comment(_), _) => Region::Comment(0),
            (Region::Section(at), _) => return self.section(at, byte),
            (Region::Declaration, b'>') => return self.over(),
            (Region::Declaration, _) => Region::Declaration,
            (Region::Instruction(true), b'>') => return self.over(),
            (Region::Instruction(_), _) => Region::Instruction(byte == b'?'),
            _ => return self.over(),
        };
        *self = next;
        RegionStep::On
    }

    fn section(&mut self, at: u8, byte: u8) -> RegionStep {
        let at = match usize::from(at) {
            it if it < SECTION.len() && SECTION[it] == byte => at + 1,
            it if it < SECTION.len() => return self.over(),
            // From here on, `at` is the length of `SECTION` plus the number of `]` just read in a
            // row.
            it if byte == b']' => u8::try_from((it + 1).min(SECTION.len() + 2)).unwrap_or(at),
            it if byte == b'>' && it == SECTION.len() + 2 => return self.over(),
            _ => SECTION.len() as u8,
        };
        *self = Region::Section(at);
        RegionStep::On
    }

    fn over(&mut self) -> RegionStep {
        *self = Region::None;
        RegionStep::Over
    }

    fn tag(&mut self) -> RegionStep {
        *self = Region::None;
        RegionStep::Tag
    }
}

const SECTION: &[u8] = b"[CDATA[";

fn is_address(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b".!#$%&'*+/=?^_{|}~-@".contains(&byte)
}
