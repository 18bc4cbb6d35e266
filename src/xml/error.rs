//! Errors of a document, with their places.

use std::borrow::Cow;
use std::fmt;

/// A place in a document.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
// Exhaustive: a place is these three numbers.
pub struct Place {
    /// The line, counted from 1. In XML, `\n`, `\r\n` and `\r` each end a line.
    pub line: u32,
    /// The column, counted from 1 in characters.
    pub column: u32,
    /// The offset, counted from 0 in bytes.
    pub offset: usize,
}

/// The sort of rule that a document breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Kind {
    /// The document has a document type declaration, well-formed or not.
    Doctype,
    /// The stream has unexpected bytes where a message must begin or end.
    Framing,
    /// The document crosses a limit of [`XmlLimits`](crate::limits::XmlLimits).
    Limit,
    /// The document breaks a rule of the recommendation Namespaces in XML 1.0.
    Namespace,
    /// The document has a processing instruction where none is allowed.
    ProcessingInstruction,
    /// The document breaks a rule of XML 1.0, fifth edition.
    Syntax,
    /// The bytes aren't in the document's encoding.
    Utf8,
}

/// The reason why a document was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Error {
    /// The sort of rule that is broken.
    pub kind: Kind,
    /// Where the document breaks the rule.
    pub place: Place,
    /// The description of the mistake and, where useful, of what would be right.
    pub message: String,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Place { line, column, .. } = self.place;
        write!(f, "line {line}, column {column}: {}", self.message)
    }
}

impl std::error::Error for Error {}

/// Returns the line and column of a byte.
///
/// The time is linear in `offset`, so call this function only for places that a person will read.
#[must_use]
pub fn place_of(bytes: &[u8], offset: usize) -> Place {
    let offset = offset.min(bytes.len());
    let before = &bytes[..offset];
    let mut line = 1_u32;
    let mut start = if before.starts_with(BYTE_ORDER_MARK) { BYTE_ORDER_MARK.len() } else { 0 };
    for at in memchr::memchr2_iter(b'\n', b'\r', before) {
        if bytes[at] == b'\r' && bytes.get(at + 1) == Some(&b'\n') {
            continue;
        }
        line = line.saturating_add(1);
        start = at + 1;
    }
    let characters = before[start..].iter().filter(|&&byte| byte & 0xC0 != 0x80).count();
    let column = u32::try_from(characters).unwrap_or(u32::MAX).saturating_add(1);
    Place { line, column, offset }
}

/// The byte order mark of UTF-8. It may stand before a document without being part of the document.
pub(super) const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// An error whose line and column aren't counted yet: [`placed`](Refusal::placed) counts them.
#[derive(Debug)]
pub(super) struct Refusal {
    pub(super) kind: Kind,
    pub(super) offset: usize,
    pub(super) message: String,
}

impl Refusal {
    pub(super) fn new(kind: Kind, offset: usize, message: impl Into<String>) -> Refusal {
        Refusal { kind, offset, message: message.into() }
    }

    pub(super) fn syntax(offset: usize, message: impl Into<String>) -> Refusal {
        Refusal::new(Kind::Syntax, offset, message)
    }

    pub(super) fn namespace(offset: usize, message: impl Into<String>) -> Refusal {
        Refusal::new(Kind::Namespace, offset, message)
    }

    /// Returns the refusal for a crossed limit. The message names the limit and its value, so that
    /// the sender can respect the limit and the operator can raise it.
    pub(super) fn limit(offset: usize, what: &str, name: &str, value: usize) -> Refusal {
        Refusal::new(Kind::Limit, offset, format!("{what}: {name} is {value}"))
    }

    pub(super) fn placed(self, bytes: &[u8]) -> Error {
        Error { kind: self.kind, place: place_of(bytes, self.offset), message: self.message }
    }
}

/// Returns the first 60 characters of a text from outside, for an error message. `…` follows if the
/// text is longer.
pub(super) fn clip(text: &str) -> Cow<'_, str> {
    const CHARACTERS_MAX: usize = 60;
    match text.char_indices().nth(CHARACTERS_MAX) {
        Some((end, _)) => Cow::Owned(format!("{}…", &text[..end])),
        None => Cow::Borrowed(text),
    }
}
