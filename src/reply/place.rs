//! Lines and columns, counted along the way.

use crate::xml::Place;

/// Where a reply begins.
pub(super) const START: Place = Place { line: 1, column: 1, offset: 0 };

/// The place behind `text` that begins at `place`.
pub(super) fn behind(place: Place, text: &str) -> Place {
    let bytes = text.as_bytes();
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

fn characters(bytes: &[u8]) -> usize {
    bytes.iter().filter(|&&byte| byte & 0xC0 != 0x80).count()
}

/// Up to 40 characters on either side of a byte.
pub(super) fn snippet(text: &str, at: usize) -> &str {
    const CHARACTERS: usize = 40;
    let at = text.floor_char_boundary(at);
    let from = text[..at].char_indices().rev().nth(CHARACTERS - 1).map_or(0, |(from, _)| from);
    let to = text[at..].char_indices().nth(CHARACTERS).map_or(text.len(), |(to, _)| at + to);
    &text[from..to]
}
