//! Escapes the characters of a model's text that XML doesn't allow. An escape has the character's
//! code point in hexadecimal: `␛[1B]` stands for the escape character, and `␛[241B]` for the symbol
//! `␛` itself.

use std::borrow::Cow;
use std::fmt::Write as _;

use pumphouse::xml::is_character;

const MARK: char = '\u{241B}';

/// Whether the text has only ASCII characters that XML allows. Most texts do. This test of bytes
/// has no branches, so it is faster than a search for a character.
fn is_ascii_of_xml(text: &str) -> bool {
    let is_odd = |it: u8| (it < b' ') & !matches!(it, b'\t' | b'\n' | b'\r') | (it >= 0x80);
    !text.bytes().fold(false, |odd, it| odd | is_odd(it))
}

/// Whether the text has a character that XML doesn't allow.
pub(super) fn has_foreign(text: &str) -> bool {
    !is_ascii_of_xml(text) && text.contains(|it| !is_character(it))
}

/// Adds the escapes, and returns the text as the log has it.
pub(super) fn recorded(text: &str) -> Cow<'_, str> {
    let is_odd = |it: char| it == MARK || !is_character(it);
    if is_ascii_of_xml(text) || !text.contains(is_odd) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 8);
    for character in text.chars() {
        if is_odd(character) {
            let _ = write!(out, "{MARK}[{:X}]", u32::from(character));
        } else {
            out.push(character);
        }
    }
    Cow::Owned(out)
}

/// Adds the escapes to a text that may have some already.
pub(super) fn carried(text: &str) -> Cow<'_, str> {
    if !has_foreign(text) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 8);
    for character in text.chars() {
        match is_character(character) {
            true => out.push(character),
            false => drop(write!(out, "{MARK}[{:X}]", u32::from(character))),
        }
    }
    Cow::Owned(out)
}

/// Removes the escapes, and returns the text as the model wrote it.
pub(super) fn written(text: &str) -> Cow<'_, str> {
    if !text.contains(MARK) {
        return Cow::Borrowed(text);
    }
    let (mut out, mut rest) = (String::with_capacity(text.len()), text);
    while let Some(at) = rest.find(MARK) {
        out.push_str(&rest[..at]);
        let behind = &rest[at + MARK.len_utf8()..];
        let number = behind.strip_prefix('[').and_then(|it| it.split_once(']'));
        let found = number.and_then(|(number, later)| {
            Some((char::from_u32(u32::from_str_radix(number, 16).ok()?)?, later))
        });
        let (character, later) = found.unwrap_or((MARK, behind));
        out.push(character);
        rest = later;
    }
    out.push_str(rest);
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::{recorded, written};

    #[test]
    fn a_character_that_xml_does_not_have_is_kept() {
        let check = |text: &str, expected: &str| {
            assert_eq!(recorded(text), expected);
            assert_eq!(written(expected), text);
        };
        check("red \u{1B}[31m", "red ␛[1B][31m");
        check("\0\u{FFFE}\u{C}", "␛[0]␛[FFFE]␛[C]");
        check("␛[1B]", "␛[241B][1B]");
        check("plain é\t\n", "plain é\t\n");
    }
}
