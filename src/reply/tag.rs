//! Reads a tag that arrives byte by byte, and the attributes of a complete tag.

use crate::reply::event::Attribute;
use crate::reply::names::{Kind, Markup};

/// The state of reading a tag. The first byte to read is the byte after `<`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tag {
    stage: Stage,
    /// The range of the names in [`Markup`] that begin with the bytes read so far.
    names: (usize, usize),
    /// How many bytes of the name were read.
    length: usize,
    pub(super) closes: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Start,
    Name,
    /// After the name of a close tag.
    End,
    /// Within `<!--` or `<![CDATA[`. The value is the number of bytes that were read after the `!`.
    Comment(u8),
    Section(u8),
    Attributes {
        value: bool,
        slash: bool,
    },
    Quoted(u8),
    /// A value without quotes that is a JSON array or object.
    Bracket {
        depth: u32,
        string: bool,
        escape: bool,
    },
}

/// The result of reading one byte of a tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// The text may still become a tag.
    More,
    /// The tag has the name with this index. The caller decides whether such a tag is markup here.
    /// The byte isn't taken yet.
    Name(usize),
    /// The text isn't a tag whose name is markup. The byte isn't taken.
    Not,
    /// The tag is broken: another tag begins before its end, or a close tag has something after
    /// its name. The byte isn't taken.
    Torn,
    /// The tag is complete.
    Whole {
        empty: bool,
    },
    Comment,
    Section,
}

impl Tag {
    pub(super) fn new(markup: &Markup) -> Tag {
        Tag { stage: Stage::Start, names: (0, markup.len()), length: 0, closes: false }
    }

    /// Whether the tag's name is complete, and the tag is markup here.
    pub(super) fn is_named(&self) -> bool {
        !matches!(self.stage, Stage::Start | Stage::Name | Stage::Comment(_) | Stage::Section(_))
    }

    /// Whether the text begins with `<!`.
    pub(super) fn is_bang(&self) -> bool {
        matches!(self.stage, Stage::Comment(_) | Stage::Section(_))
    }

    /// The index of the tag's name once the name is known. Before that, the index of the first name
    /// that the tag's name may become.
    pub(super) fn name(&self) -> usize {
        self.names.0
    }

    /// The quotation mark of the attribute value that is being read. None outside quoted values.
    pub(super) fn quote(&self) -> Option<u8> {
        match self.stage {
            Stage::Quoted(quote) => Some(quote),
            _ => None,
        }
    }

    /// Accepts the tag as markup, and continues after its name.
    pub(super) fn welcome(&mut self) {
        self.stage =
            if self.closes { Stage::End } else { Stage::Attributes { value: false, slash: false } };
    }

    pub(super) fn step(&mut self, byte: u8, markup: &Markup) -> Step {
        let space = byte.is_ascii_whitespace();
        self.stage = match (self.stage, byte) {
            (Stage::Start, b'!') if !self.closes => Stage::Comment(0),
            (Stage::Start, b'/') if !self.closes => {
                self.closes = true;
                Stage::Start
            }
            (Stage::Start | Stage::Name, _) => return self.name_step(byte, markup),
            (Stage::Comment(0), b'[') => Stage::Section(1),
            (Stage::Comment(0), b'-') => Stage::Comment(1),
            (Stage::Comment(1), b'-') => return Step::Comment,
            (Stage::Section(at), _) if SECTION.get(usize::from(at)) == Some(&byte) => {
                if usize::from(at) + 1 == SECTION.len() {
                    return Step::Section;
                }
                Stage::Section(at + 1)
            }
            (Stage::Comment(_) | Stage::Section(_), _) => return Step::Not,
            (Stage::End, b'>') => return Step::Whole { empty: false },
            (Stage::End, _) if space => Stage::End,
            (Stage::End, _) => return Step::Torn,
            (Stage::Attributes { slash, .. }, b'>') => return Step::Whole { empty: slash },
            // The condition of a control block may have a `<`.
            (Stage::Quoted(_), b'<') if markup.at(self.names.0).kind == Kind::Control => self.stage,
            (Stage::Attributes { .. } | Stage::Quoted(_), b'<') => return Step::Torn,
            (Stage::Attributes { value: true, .. }, b'"' | b'\'') => Stage::Quoted(byte),
            (Stage::Attributes { value: true, .. }, b'[' | b'{') => {
                Stage::Bracket { depth: 1, string: false, escape: false }
            }
            (Stage::Attributes { value, .. }, _) => {
                Stage::Attributes { value: byte == b'=' || (value && space), slash: byte == b'/' }
            }
            (Stage::Quoted(quote), _) if byte == quote => {
                Stage::Attributes { value: false, slash: false }
            }
            (Stage::Quoted(_), _) => self.stage,
            (Stage::Bracket { depth, string, escape }, _) => bracket(depth, string, escape, byte),
        };
        Step::More
    }

    fn name_step(&mut self, byte: u8, markup: &Markup) -> Step {
        let ends = byte == b'>' || byte.is_ascii_whitespace() || (byte == b'/' && !self.closes);
        if ends && self.stage == Stage::Name {
            let whole = markup.at(self.names.0).text.len() == self.length;
            return if whole { Step::Name(self.names.0) } else { Step::Not };
        }
        self.names = markup.narrow(self.names, self.length, byte);
        self.length += 1;
        self.stage = Stage::Name;
        if self.names.0 == self.names.1 { Step::Not } else { Step::More }
    }
}

const SECTION: &[u8] = b"[CDATA[";

fn bracket(depth: u32, string: bool, escape: bool, byte: u8) -> Stage {
    let depth = match byte {
        b'[' | b'{' if !string => depth.saturating_add(1),
        b']' | b'}' if !string => depth - 1,
        _ => depth,
    };
    if depth == 0 {
        return Stage::Attributes { value: false, slash: false };
    }
    let quote = byte == b'"' && !escape;
    Stage::Bracket { depth, string: string != quote, escape: string && byte == b'\\' && !escape }
}

/// The attributes of an open tag, and the repairs and errors in them.
#[derive(Debug, Default)]
pub(super) struct Inside {
    pub(super) attributes: Vec<Attribute>,
    /// The repairs that were made, in words.
    pub(super) repairs: Vec<String>,
    /// The name of an attribute that stands in the tag twice, with different values.
    pub(super) twice: Option<String>,
}

/// Reads the attributes of a complete open tag, `<name …>` or `<name …/>`.
pub(super) fn inside(tag: &str) -> Inside {
    let mut found = Inside::default();
    let rest = tag.strip_prefix('<').unwrap_or(tag);
    let rest = rest.strip_suffix('>').unwrap_or(rest);
    let end = rest.find(|it: char| it.is_ascii_whitespace() || it == '/').unwrap_or(rest.len());
    let mut rest = &rest[end..];
    loop {
        rest = rest.trim_ascii_start();
        if rest.is_empty() || rest == "/" {
            return found;
        }
        let end = rest.find(|it: char| it == '=' || it.is_ascii_whitespace() || it == '/');
        let end = end.unwrap_or(rest.len());
        if end == 0 {
            let stray = rest.chars().next().unwrap_or('/');
            found.repairs.push(format!("`{stray}` between attributes is dropped"));
            rest = &rest[stray.len_utf8()..];
            continue;
        }
        let (name, after) = rest.split_at(end);
        rest = after.trim_ascii_start();
        let Some(after) = rest.strip_prefix('=') else {
            found.repairs.push(format!("attribute {name} has no value; it is taken as empty"));
            found.add(name, "");
            continue;
        };
        let (value, after) = value(name, after.trim_ascii_start(), &mut found.repairs);
        let value = entities(value, &mut found.repairs);
        found.add(name, &value);
        rest = after;
    }
}

impl Inside {
    fn add(&mut self, name: &str, value: &str) {
        match self.attributes.iter().find(|it| it.name == name) {
            None => self.attributes.push(Attribute::new(name, value)),
            Some(it) if it.value == value => {
                self.repairs.push(format!("attribute {name} stands twice with one value"));
            }
            Some(_) => self.twice = self.twice.take().or_else(|| Some(name.to_owned())),
        }
    }
}

/// The value that `rest` begins with, and the text after it.
fn value<'a>(name: &str, rest: &'a str, repairs: &mut Vec<String>) -> (&'a str, &'a str) {
    if let Some(quote @ ('"' | '\'')) = rest.chars().next()
        && let Some((value, after)) = rest[1..].split_once(quote)
    {
        return (value, after);
    }
    repairs.push(format!("the value of attribute {name} has no quotes"));
    let mut stage = Stage::Attributes { value: true, slash: false };
    let end = rest.bytes().enumerate().position(|(at, byte)| {
        stage = match stage {
            Stage::Bracket { depth, string, escape } => bracket(depth, string, escape, byte),
            _ if at == 0 && matches!(byte, b'[' | b'{') => {
                Stage::Bracket { depth: 1, string: false, escape: false }
            }
            _ if byte.is_ascii_whitespace() => return true,
            _ => stage,
        };
        false
    });
    let (value, after) = rest.split_at(end.unwrap_or(rest.len()));
    if let (Some(value), true) = (value.strip_suffix('/'), after.trim_ascii().is_empty()) {
        return (value, "/");
    }
    (value, after)
}

/// Decodes the five named entities of XML and numeric entities. Any other `&` stays as it is, with
/// a note in `repairs`.
pub(super) fn entities(text: &str, repairs: &mut Vec<String>) -> String {
    let mut decoded = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('&') {
        decoded.push_str(&rest[..at]);
        rest = &rest[at..];
        match entity_at(rest) {
            Some((character, end)) => {
                decoded.push(character);
                rest = &rest[end + 1..];
            }
            None => {
                repairs.push("`&` that begins no entity is taken as `&amp;`".to_owned());
                decoded.push('&');
                rest = &rest[1..];
            }
        }
    }
    decoded.push_str(rest);
    decoded
}

/// The entity that `text` begins with: its character, and the index of its `;`.
pub(super) fn entity_at(text: &str) -> Option<(char, usize)> {
    // No entity needs to be longer than `&#x0010FFFF;`.
    let end = text.bytes().take(12).position(|it| it == b';')?;
    Some((entity(text.get(1..end)?)?, end))
}

/// The character that an entity stands for.
fn entity(name: &str) -> Option<char> {
    match name {
        "amp" => Some('&'),
        "lt" => Some('<'),
        "gt" => Some('>'),
        "quot" => Some('"'),
        "apos" => Some('\''),
        _ => {
            let digits = name.strip_prefix('#')?;
            let code = match digits.strip_prefix('x') {
                Some(hex) if hex.starts_with(|it: char| it.is_ascii_hexdigit()) => {
                    u32::from_str_radix(hex, 16).ok()?
                }
                None if digits.starts_with(|it: char| it.is_ascii_digit()) => {
                    digits.parse().ok()?
                }
                _ => return None,
            };
            char::from_u32(code).filter(|it| *it >= ' ' || matches!(it, '\t' | '\n' | '\r'))
        }
    }
}
