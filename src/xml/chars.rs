//! The characters that XML 1.0 (fifth edition) allows in documents and in names.

use std::borrow::Cow;

/// Returns whether `text` is a name without a colon (`NCName`).
#[must_use]
pub fn is_name(text: &str) -> bool {
    !text.is_empty() && name_end(text, 0) == text.len()
}

/// Returns the offset at which the name that starts at `at` ends, or `at` if no name starts there.
/// A colon ends a name.
#[inline]
pub(super) fn name_end(text: &str, at: usize) -> usize {
    let bytes = text.as_bytes();
    let mut end = at;
    let mut wanted = START;
    while let Some(&byte) = bytes.get(end) {
        if CLASS[usize::from(byte)] & wanted != 0 {
            end += 1;
        } else if byte < 0x80 {
            return end;
        } else {
            match text[end..].chars().next() {
                Some(c) if is_wide_start(c) || (wanted == NAME && is_wide_name(c)) => {
                    end += c.len_utf8();
                }
                _ => return end,
            }
        }
        wanted = NAME;
    }
    end
}

/// Returns the offset at which the white space that starts at `at` ends.
#[inline]
pub(super) fn space_end(bytes: &[u8], at: usize) -> usize {
    let mut end = at;
    while bytes.get(end).is_some_and(|&byte| is_space(byte)) {
        end += 1;
    }
    end
}

/// Returns whether a byte is white space in XML: one of four ASCII characters.
#[inline]
pub(super) const fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r')
}

/// Returns whether a document may hold this character at all.
#[must_use]
pub const fn is_character(c: char) -> bool {
    !matches!(c, '\0'..='\x08' | '\x0B' | '\x0C' | '\x0E'..='\x1F' | '\u{FFFE}' | '\u{FFFF}')
}

/// Replaces each character that no document may hold with U+FFFD.
#[must_use]
pub fn writable(text: &str) -> String {
    text.chars().map(|c| if is_character(c) { c } else { '\u{FFFD}' }).collect()
}

/// Returns a text with each character that no document may hold replaced with U+FFFD.
pub(super) fn writable_in(text: &str, seen: Survey) -> Cow<'_, str> {
    match seen.suspicious() && find_illegal(text).is_some() {
        true => Cow::Owned(writable(text)),
        false => Cow::Borrowed(text),
    }
}

/// Returns the first character that no document may hold, with its byte offset. Only a text that is
/// [`suspicious`](Survey::suspicious) can hold such a character.
pub(super) fn find_illegal(text: &str) -> Option<(usize, char)> {
    text.char_indices().find(|&(_, c)| !is_character(c))
}

/// The kinds of bytes that a text holds, found in one pass. With a survey, the caller can skip
/// later passes that aren't needed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Survey(u8);

/// Surveys a text. The survey looks at every byte once, without a branch.
#[inline]
pub(super) fn survey(text: &str) -> Survey {
    Survey(text.bytes().fold(0, |all, byte| all | MARKS[usize::from(byte)]))
}

impl Survey {
    /// Returns whether there may be a character that no document may hold.
    pub(super) const fn suspicious(self) -> bool {
        self.0 & SUSPICIOUS != 0
    }

    /// Returns whether there is a carriage return, so that line ends have to be normalised.
    pub(super) const fn returns(self) -> bool {
        self.0 & RETURN != 0
    }

    /// Returns whether there is a `]`. Without a `]`, text can't hold `]]>`.
    pub(super) const fn brackets(self) -> bool {
        self.0 & BRACKET != 0
    }

    /// Returns whether there is a character that canonical form escapes in text.
    pub(super) const fn is_escaped_in_text(self) -> bool {
        self.0 & ESCAPED_IN_TEXT != 0
    }

    /// Returns whether there is a character that canonical form escapes in attribute values.
    pub(super) const fn is_escaped_in_value(self) -> bool {
        self.0 & ESCAPED_IN_VALUE != 0
    }
}

/// Returns the offset of the first byte that canonical form escapes in text.
#[inline]
pub(super) fn find_escaped_in_text(text: &str) -> Option<usize> {
    text.bytes().position(|byte| MARKS[usize::from(byte)] & ESCAPED_IN_TEXT != 0)
}

/// Returns the offset of the first byte that canonical form escapes in attribute values.
#[inline]
pub(super) fn find_escaped_in_value(value: &str) -> Option<usize> {
    value.bytes().position(|byte| MARKS[usize::from(byte)] & ESCAPED_IN_VALUE != 0)
}

const SUSPICIOUS: u8 = 1;
const RETURN: u8 = 1 << 1;
const BRACKET: u8 = 1 << 2;
const ESCAPED_IN_TEXT: u8 = 1 << 3;
const ESCAPED_IN_VALUE: u8 = 1 << 4;

/// The bits that each byte adds to a [`Survey`]. 0xEF is the first byte of U+FFFE and U+FFFF, among
/// other characters.
const MARKS: [u8; 256] = {
    let mut table = [0_u8; 256];
    let mut byte = 0;
    while byte < 256 {
        table[byte] = match byte as u8 {
            b'&' | b'<' => ESCAPED_IN_TEXT | ESCAPED_IN_VALUE,
            b'>' => ESCAPED_IN_TEXT,
            b'"' | b'\t' | b'\n' => ESCAPED_IN_VALUE,
            b'\r' => RETURN | ESCAPED_IN_TEXT | ESCAPED_IN_VALUE,
            b']' => BRACKET,
            0..=0x1F | 0xEF => SUSPICIOUS,
            _ => 0,
        };
        byte += 1;
    }
    table
};

const START: u8 = 1;
const NAME: u8 = 2;

/// Maps each byte to the positions in a name at which it may stand: `START`, `NAME`, both or none.
/// Only ASCII bytes have such positions. A colon has none, since it separates prefix and local
/// name.
const CLASS: [u8; 256] = {
    let mut table = [0_u8; 256];
    let mut byte = 0;
    while byte < 256 {
        table[byte] = match byte as u8 {
            b'A'..=b'Z' | b'a'..=b'z' | b'_' => START | NAME,
            b'0'..=b'9' | b'-' | b'.' => NAME,
            _ => 0,
        };
        byte += 1;
    }
    table
};

const fn is_wide_start(c: char) -> bool {
    matches!(c,
        '\u{C0}'..='\u{D6}' | '\u{D8}'..='\u{F6}' | '\u{F8}'..='\u{2FF}'
        | '\u{370}'..='\u{37D}' | '\u{37F}'..='\u{1FFF}' | '\u{200C}'..='\u{200D}'
        | '\u{2070}'..='\u{218F}' | '\u{2C00}'..='\u{2FEF}' | '\u{3001}'..='\u{D7FF}'
        | '\u{F900}'..='\u{FDCF}' | '\u{FDF0}'..='\u{FFFD}' | '\u{10000}'..='\u{EFFFF}')
}

const fn is_wide_name(c: char) -> bool {
    matches!(c, '\u{B7}' | '\u{300}'..='\u{36F}' | '\u{203F}'..='\u{2040}')
}
