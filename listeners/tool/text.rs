//! Converts text from outside into text that XML can hold.

/// The maximum number of characters of a caller's text that a refusal repeats.
const SHOWN_MAX: usize = 200;

/// Returns the character, or U+FFFD if XML can't hold the character.
pub(super) fn known(letter: char) -> char {
    match letter {
        '\t' | '\n' | '\r' => letter,
        '\u{fffe}' | '\u{ffff}' => '\u{fffd}',
        it if it < ' ' => '\u{fffd}',
        it => it,
    }
}

/// Replaces each character that XML can't hold by U+FFFD.
pub(super) fn clean(text: &str) -> String {
    text.chars().map(known).collect()
}

/// Converts bytes to text. Bytes that aren't UTF-8 and characters that XML can't hold are replaced
/// by U+FFFD.
pub(super) fn lossy(bytes: &[u8]) -> String {
    clean(&String::from_utf8_lossy(bytes))
}

/// Makes a text from outside safe to show. Control characters, and characters that change the
/// direction of writing, are replaced by U+FFFD, so that the text can't control a terminal.
pub(super) fn shown(text: &str) -> String {
    let turns = |it: char| matches!(it, '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}');
    let plain = |letter: char| match letter {
        '\n' | '\t' => letter,
        it if it.is_control() || turns(it) => '\u{FFFD}',
        it => known(it),
    };
    text.chars().map(plain).collect()
}

/// Returns the beginning of a caller's text, for a refusal. If the text is longer, `…` is added.
pub(super) fn cut(text: &str) -> String {
    let mut characters = text.chars().map(known);
    let mut shown: String = characters.by_ref().take(SHOWN_MAX).collect();
    if characters.next().is_some() {
        shown.push('…');
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_repeats_the_beginning_of_a_long_text_and_no_control_characters() {
        assert_eq!(cut("a\u{1b}b"), "a\u{fffd}b");
        assert_eq!(cut(&"é".repeat(200)), "é".repeat(200));
        assert_eq!(cut(&"é".repeat(201)), "é".repeat(200) + "…");
    }
}
