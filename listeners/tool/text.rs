//! Text from elsewhere, as XML can hold it.

/// A character, or U+FFFD in place of one that XML has no word for.
pub(super) fn known(it: char) -> char {
    match it {
        '\t' | '\n' | '\r' => it,
        '\u{fffe}' | '\u{ffff}' => '\u{fffd}',
        it if it < ' ' => '\u{fffd}',
        it => it,
    }
}

/// Bytes as text.
pub(super) fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).chars().map(known).collect()
}
