//! Places in a reply: counts lines and columns, and cuts snippets out of texts. Only `\n` ends a
//! line.

use crate::xml::Place;

/// The place where a reply begins.
pub(super) const START: Place = Place { line: 1, column: 1, offset: 0 };

/// The place after `text`, which begins at `place`.
pub(super) fn behind(place: Place, text: &str) -> Place {
    let bytes = text.as_bytes();
    if bytes.len() <= SMALL {
        return bytes.iter().fold(place, |it, &byte| after(it, byte));
    }
    let offset = place.offset + bytes.len();
    let (line, column, tail) = match memchr::memrchr(b'\n', bytes) {
        None => (place.line, place.column, bytes),
        Some(last) => {
            let lines = memchr::memchr_iter(b'\n', &bytes[..=last]).count();
            let line = place.line.saturating_add(u32::try_from(lines).unwrap_or(u32::MAX));
            (line, 1, &bytes[last + 1..])
        }
    };
    let column = column.saturating_add(u32::try_from(characters(tail)).unwrap_or(u32::MAX));
    Place { line, column, offset }
}

/// The length in bytes up to which counting byte by byte is faster than searching. A token of a
/// model is about as long.
const SMALL: usize = 16;

fn after(place: Place, byte: u8) -> Place {
    let Place { line, column, offset } = place;
    let offset = offset + 1;
    match byte {
        b'\n' => Place { line: line.saturating_add(1), column: 1, offset },
        _ if byte & 0xC0 == 0x80 => Place { line, column, offset },
        _ => Place { line, column: column.saturating_add(1), offset },
    }
}

/// The number of characters. In UTF-8 each character has one byte that isn't of the form
/// `10xxxxxx`.
fn characters(bytes: &[u8]) -> usize {
    // The sums are bytes, so that the compiler can add many of them in one instruction. A sum of
    // 255 bytes can't overflow.
    let begins = |byte: u8| u8::from(byte & 0xC0 != 0x80);
    let sum = |bytes: &[u8]| bytes.iter().fold(0_u8, |sum, &it| sum.wrapping_add(begins(it)));
    bytes.chunks(255).map(|it| usize::from(sum(it))).sum()
}

/// The part of a text around a byte, up to 40 characters on either side.
pub(super) fn snippet(text: &str, at: usize) -> &str {
    const CHARACTERS: usize = 40;
    let at = text.floor_char_boundary(at);
    let from = text[..at].char_indices().rev().nth(CHARACTERS - 1).map_or(0, |(from, _)| from);
    let to = text[at..].char_indices().nth(CHARACTERS).map_or(text.len(), |(to, _)| at + to);
    &text[from..to]
}
