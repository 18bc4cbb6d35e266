//! Finds the end of an element. Reads the element byte by byte, and doesn't keep its text.

use crate::reply::names::{Kind, Markup};
use crate::reply::tag::{Step, Tag};

/// The form of an element's body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// Only white space and comments so far.
    Unknown,
    Json,
    Elements,
}

/// The state of reading an element's body.
#[derive(Clone, Copy, Debug)]
pub(super) struct Body {
    pub(super) form: Form,
    at: BodyPosition,
    /// How many bytes of the element were read, with its open tag.
    length: usize,
    /// How many elements of the same name are open within the element.
    nested: usize,
    /// How many braces and brackets are open in JSON, or how many child elements are open.
    depth: usize,
    /// The JSON value is complete, or can't become valid any more. From here on, a tag may begin
    /// the next element.
    over: bool,
    /// The body doesn't begin like the body of a call, so the text probably just mentions the tag.
    pub(super) is_prose: bool,
    /// Only white space was read since the line began.
    fresh: bool,
    /// The body has XML comments, JSON comments or CDATA sections.
    pub(super) mixed: bool,
    /// Where the last JSON string began.
    pub(super) string: usize,
    /// The position of the last `<`.
    pub(super) tag: usize,
    fresh_tag: bool,
    /// The comment that the last `<` stands in, if it stands in one.
    comment: Option<Comment>,
}

/// A comment in JSON.
#[derive(Clone, Copy, Debug)]
enum Comment {
    /// It ends with the line.
    Line,
    /// It ends with `*/`.
    Block,
}

#[derive(Clone, Copy, Debug)]
enum BodyPosition {
    Content,
    String {
        escape: bool,
    },
    /// After a `/` in JSON that may have comments.
    Slash,
    /// In a comment that ends with the line.
    LineComment,
    /// In a comment that ends with `*/`.
    BlockComment {
        star: bool,
    },
    /// A tag that may be markup: in JSON, or outside all child elements.
    Tag(Tag),
    /// After the `<` of a tag within a child element.
    Open,
    Name {
        matched: usize,
        closes: bool,
    },
    Rest {
        own: bool,
        closes: bool,
        quote: u8,
        slash: bool,
    },
    /// After `<!`.
    Bang,
    Dash,
    Section(u8),
    Comment(u8),
    Data(u8),
}

impl BodyPosition {
    /// The position within a comment.
    fn within(comment: Comment) -> BodyPosition {
        match comment {
            Comment::Line => BodyPosition::LineComment,
            Comment::Block => BodyPosition::BlockComment { star: false },
        }
    }
}

/// The result of reading one byte of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BodyStep {
    More,
    /// The element is complete.
    Whole,
    /// A line ends within a JSON string. The byte isn't taken.
    Torn,
    /// At [`Body::tag`], another element begins or an enclosing element ends. The byte isn't taken.
    Next,
}

/// Facts about the text around an element that are needed to read the element's body.
#[derive(Clone, Copy)]
pub(super) struct Surroundings<'a> {
    pub(super) markup: &'a Markup,
    /// The index of the element's own name.
    pub(super) own: usize,
    /// For each group of names: how many elements are open around this one.
    pub(super) open: &'a [u32],
    /// Whether the element crossed its limit, so that its text is discarded.
    pub(super) discarding: bool,
    /// Whether the next element may begin in the middle of a line. This applies only if the text
    /// probably just mentions this element's tag.
    pub(super) counts_within: bool,
}

impl Surroundings<'_> {
    /// Whether JSON in this element may have comments: `//` up to the end of the line, and `/* */`.
    fn has_comments(&self) -> bool {
        self.markup.at(self.own).kind.is_call()
    }
}

impl Body {
    /// The body after an open tag that has `tag_bytes` bytes.
    pub(super) fn new(form: Form, tag_bytes: usize) -> Body {
        Body {
            form,
            at: BodyPosition::Content,
            length: tag_bytes,
            nested: 0,
            depth: 0,
            over: false,
            is_prose: false,
            fresh: false,
            mixed: false,
            string: 0,
            tag: tag_bytes,
            fresh_tag: false,
            comment: None,
        }
    }

    pub(super) fn in_string(&self) -> bool {
        matches!(self.at, BodyPosition::String { .. })
    }

    /// Whether the tag that was found is a close tag.
    pub(super) fn is_at_close(&self) -> bool {
        matches!(self.at, BodyPosition::Tag(tag) if tag.closes)
    }

    /// Ends a JSON string that has a line end in it. The JSON isn't valid any more.
    pub(super) fn tear(&mut self) {
        self.at = BodyPosition::Content;
        self.over = true;
    }

    pub(super) fn step(&mut self, byte: u8, around: &Surroundings<'_>) -> BodyStep {
        let seen = match self.at {
            BodyPosition::Tag(tag) => self.tag_step(tag, byte, around),
            BodyPosition::String { escape } => self.string_step(escape, byte),
            BodyPosition::Slash | BodyPosition::LineComment | BodyPosition::BlockComment { .. } => {
                self.comment_step(byte, around)
            }
            BodyPosition::Content if self.form == Form::Elements => {
                self.text(byte, around);
                BodyStep::More
            }
            BodyPosition::Content => self.content(byte, around),
            _ => self.markup_step(byte, around),
        };
        if matches!(seen, BodyStep::More | BodyStep::Whole) {
            self.length += 1;
        }
        seen
    }

    /// Takes a byte of text among child elements. A tag outside all child elements may begin the
    /// next element.
    fn text(&mut self, byte: u8, around: &Surroundings<'_>) {
        match byte {
            b'<' => {
                self.tag = self.length;
                self.fresh_tag = std::mem::take(&mut self.fresh);
                let outmost = self.depth == 0;
                self.at = if outmost {
                    BodyPosition::Tag(Tag::new(around.markup))
                } else {
                    BodyPosition::Open
                };
            }
            b'\n' => self.fresh = true,
            b' ' | b'\t' | b'\r' => {}
            _ => self.fresh = false,
        }
    }

    /// Takes a byte of JSON outside strings.
    fn content(&mut self, byte: u8, around: &Surroundings<'_>) -> BodyStep {
        match byte {
            b'\n' => self.fresh = true,
            b' ' | b'\t' | b'\r' => {}
            b'<' => {
                self.tag = self.length;
                self.fresh_tag = std::mem::take(&mut self.fresh);
                self.at = BodyPosition::Tag(Tag::new(around.markup));
            }
            b'/' if around.has_comments() => {
                self.fresh = false;
                self.at = BodyPosition::Slash;
            }
            _ => {
                self.fresh = false;
                if self.form == Form::Unknown {
                    self.form = Form::Json;
                    // Only strings, arrays and objects can contain a tag. After any other first
                    // byte, a tag may begin the next element.
                    self.is_prose = !matches!(byte, b'{' | b'[' | b'"');
                    self.over = self.is_prose;
                }
                match byte {
                    b'"' => {
                        self.string = self.length;
                        self.at = BodyPosition::String { escape: false };
                    }
                    b'{' | b'[' => self.depth += 1,
                    b'}' | b']' => {
                        self.depth = self.depth.saturating_sub(1);
                        self.over |= self.depth == 0;
                    }
                    _ => {}
                }
            }
        }
        BodyStep::More
    }

    /// Takes a byte of a comment in JSON, or the byte after a `/`.
    fn comment_step(&mut self, byte: u8, around: &Surroundings<'_>) -> BodyStep {
        let at = match (self.at, byte) {
            (BodyPosition::Slash, b'/') => BodyPosition::LineComment,
            (BodyPosition::Slash, b'*') => BodyPosition::BlockComment { star: false },
            (BodyPosition::LineComment, b'\n') | (BodyPosition::Slash, _) | (_, b'<') => {
                // A tag in a comment is recognised, too, so that an unclosed comment doesn't hide
                // the element's end. After any other `<`, the comment goes on.
                self.comment = match self.at {
                    BodyPosition::LineComment if byte == b'<' => Some(Comment::Line),
                    BodyPosition::BlockComment { .. } => Some(Comment::Block),
                    _ => None,
                };
                self.at = BodyPosition::Content;
                return self.content(byte, around);
            }
            (BodyPosition::BlockComment { star: true }, b'/') => BodyPosition::Content,
            (BodyPosition::BlockComment { .. }, _) => {
                BodyPosition::BlockComment { star: byte == b'*' }
            }
            (at, _) => at,
        };
        self.mix(at)
    }

    fn string_step(&mut self, escape: bool, byte: u8) -> BodyStep {
        self.at = match byte {
            b'\n' => return BodyStep::Torn,
            b'"' if !escape => {
                self.over |= self.depth == 0;
                BodyPosition::Content
            }
            _ => BodyPosition::String { escape: byte == b'\\' && !escape },
        };
        BodyStep::More
    }

    fn tag_step(&mut self, mut tag: Tag, byte: u8, around: &Surroundings<'_>) -> BodyStep {
        let step = tag.step(byte, around.markup);
        self.at = BodyPosition::Tag(tag);
        match step {
            Step::More => BodyStep::More,
            Step::Whole { .. } => BodyStep::Whole,
            Step::Comment if self.comment.is_none() => self.mix(BodyPosition::Comment(0)),
            Step::Section if self.comment.is_none() => {
                if self.form == Form::Unknown {
                    self.form = Form::Json;
                }
                self.mix(BodyPosition::Data(0))
            }
            Step::Name(place) if tag.closes && place == around.own => {
                tag.welcome();
                self.tag_step(tag, byte, around)
            }
            Step::Name(place) if self.is_next(place, tag.closes, around) => BodyStep::Next,
            Step::Name(_) | Step::Not | Step::Torn | Step::Comment | Step::Section => {
                self.no_next(tag, step == Step::Name(around.own), byte, around)
            }
        }
    }

    /// Continues after a tag that would have begun the next element, but is text.
    pub(super) fn pass(&mut self, byte: u8, around: &Surroundings<'_>) -> BodyStep {
        let BodyPosition::Tag(tag) = self.at else { return BodyStep::More };
        let seen = self.no_next(tag, tag.name() == around.own, byte, around);
        self.length += usize::from(matches!(seen, BodyStep::More | BodyStep::Whole));
        seen
    }

    /// Continues after a close tag that is text.
    pub(super) fn pass_close(&mut self) -> BodyStep {
        self.at = self.comment.take().map_or(BodyPosition::Content, BodyPosition::within);
        BodyStep::More
    }

    /// Handles a tag that doesn't begin the next element. `byte` is the first byte after the part
    /// of the tag that was read.
    fn no_next(&mut self, tag: Tag, own: bool, byte: u8, around: &Surroundings<'_>) -> BodyStep {
        if let Some(comment) = self.comment.take() {
            self.at = BodyPosition::within(comment);
            return self.comment_step(byte, around);
        }
        self.at = BodyPosition::Content;
        match self.form {
            Form::Unknown => self.first_child(tag, own, byte, around),
            Form::Elements => self.child(tag, own, byte, around),
            Form::Json => self.content(byte, around),
        }
    }

    fn mix(&mut self, at: BodyPosition) -> BodyStep {
        self.mixed = true;
        self.at = at;
        BodyStep::More
    }

    /// Whether a tag that is markup begins the next element, or ends an element around this one.
    /// Because of this check, a missing close tag costs one element, not all the text after it.
    fn is_next(&self, place: usize, closes: bool, around: &Surroundings<'_>) -> bool {
        let name = around.markup.at(place);
        let is_ours = name.kind.is_text() || name.kind.is_call();
        // In a body that isn't JSON, a call, a thought or the like can't be a child.
        let over = self.over || (self.form != Form::Json && is_ours);
        let known = if closes {
            name.kind.is_text() && around.open[name.group] > 0
        } else {
            let begins = self.fresh_tag || around.counts_within && self.is_prose && is_ours;
            begins && name.kind != Kind::Output
        };
        known && over && !around.discarding
    }

    /// Handles a body that begins with a tag: the body has child elements, or it isn't valid.
    fn first_child(
        &mut self,
        tag: Tag,
        own: bool,
        byte: u8,
        around: &Surroundings<'_>,
    ) -> BodyStep {
        let begun = self.length - self.tag;
        if tag.closes || (begun == 1 && !is_name_start(byte)) {
            self.form = Form::Json;
            (self.over, self.is_prose) = (true, true);
            return self.content(byte, around);
        }
        self.form = Form::Elements;
        self.child(tag, own, byte, around)
    }

    /// Handles a child element's tag. `byte` is the first byte after the part of the tag that was
    /// read.
    fn child(&mut self, tag: Tag, own: bool, byte: u8, around: &Surroundings<'_>) -> BodyStep {
        if tag.is_bang() {
            self.text(byte, around);
            return BodyStep::More;
        }
        let begun = self.length - self.tag;
        let length = around.markup.at(around.own).text.len();
        let matched = if own { length } else { usize::MAX };
        let closes = tag.closes;
        self.at = match begun {
            1 => BodyPosition::Open,
            2 if closes => BodyPosition::Name { matched: 0, closes },
            _ if tag.is_named() => BodyPosition::Rest { own: true, closes, quote: 0, slash: false },
            _ => BodyPosition::Name { matched, closes },
        };
        self.markup_step(byte, around)
    }

    /// Takes a byte within a comment, a CDATA section or the tag of a child element.
    fn markup_step(&mut self, byte: u8, around: &Surroundings<'_>) -> BodyStep {
        let own = around.markup.at(around.own).text.as_bytes();
        self.at = match self.at {
            BodyPosition::Open => match byte {
                b'/' => BodyPosition::Name { matched: 0, closes: true },
                b'!' => BodyPosition::Bang,
                _ if is_name_start(byte) => {
                    self.at = BodyPosition::Name { matched: 0, closes: false };
                    return self.markup_step(byte, around);
                }
                b'<' => {
                    self.tag = self.length;
                    BodyPosition::Open
                }
                _ => BodyPosition::Content,
            },
            BodyPosition::Name { matched, closes } => {
                if byte == b'>' || byte == b'/' || byte.is_ascii_whitespace() {
                    let own = matched == own.len();
                    self.at = BodyPosition::Rest { own, closes, quote: 0, slash: false };
                    return self.markup_step(byte, around);
                }
                let next = own.get(matched) == Some(&byte);
                BodyPosition::Name { matched: if next { matched + 1 } else { usize::MAX }, closes }
            }
            BodyPosition::Rest { own, closes, quote, slash } => {
                return self.rest(own, closes, quote, slash, byte);
            }
            BodyPosition::Bang if byte == b'-' => BodyPosition::Dash,
            BodyPosition::Bang if byte == b'[' => BodyPosition::Section(1),
            BodyPosition::Dash if byte == b'-' => BodyPosition::Comment(0),
            BodyPosition::Section(at) if SECTION[usize::from(at)] == byte => {
                let whole = usize::from(at) + 1 == SECTION.len();
                if whole { BodyPosition::Data(0) } else { BodyPosition::Section(at + 1) }
            }
            BodyPosition::Comment(count) => run_to(count, byte, b'-', BodyPosition::Comment),
            BodyPosition::Data(count) => run_to(count, byte, b']', BodyPosition::Data),
            _ if byte == b'<' => {
                self.tag = self.length;
                BodyPosition::Open
            }
            _ => BodyPosition::Content,
        };
        BodyStep::More
    }

    /// Takes a byte of a tag after its name.
    fn rest(&mut self, own: bool, closes: bool, quote: u8, slash: bool, byte: u8) -> BodyStep {
        self.at = match byte {
            // An attribute can't have a `<`, so the quotes don't match.
            b'<' => {
                self.tag = self.length;
                BodyPosition::Open
            }
            b'>' if quote == 0 => {
                if own && closes {
                    if self.nested == 0 {
                        return BodyStep::Whole;
                    }
                    self.nested -= 1;
                } else if own && !slash {
                    self.nested += 1;
                }
                match closes {
                    true => self.depth = self.depth.saturating_sub(1),
                    false => self.depth += usize::from(!slash),
                }
                BodyPosition::Content
            }
            b'"' | b'\'' if quote == 0 => {
                BodyPosition::Rest { own, closes, quote: byte, slash: false }
            }
            _ if byte == quote => BodyPosition::Rest { own, closes, quote: 0, slash: false },
            _ => BodyPosition::Rest { own, closes, quote, slash: byte == b'/' },
        };
        BodyStep::More
    }
}

const SECTION: &[u8] = b"[CDATA[";

fn run_to(count: u8, byte: u8, mark: u8, at: fn(u8) -> BodyPosition) -> BodyPosition {
    match byte {
        b'>' if count == 2 => BodyPosition::Content,
        _ if byte == mark => at((count + 1).min(2)),
        _ => at(0),
    }
}

fn is_name_start(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || matches!(byte, b'_' | b':') || byte >= 0x80
}
