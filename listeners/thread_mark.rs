//! Marks of threads in texts. Each line that the pump writes into a prompt ends with the mark of its
//! thread. If a sender's text holds the mark, the prompt shows the text without the mark's digits, so
//! that no reader takes the text for a line of the pump.

use std::borrow::Cow;

/// What stands in place of the digits of a mark that a text holds.
const GONE: &str = "------";

/// Replaces the digits of the mark wherever the text holds the mark. Letters count in upper and in
/// lower case, and whatever is neither a letter nor a digit may stand between the characters of the
/// mark. The rest stays unchanged.
pub(super) fn without_mark<'a>(text: Cow<'a, str>, mark: &str) -> Cow<'a, str> {
    let digits = mark.trim_start_matches('#');
    let begins = text.match_indices(is_number_sign);
    let places = begins.filter_map(|(at, sign)| {
        let from = at + sign.len();
        Some(from..from + end_of(&text[from..], digits)?)
    });
    let places: Vec<_> = places.collect();
    if digits.is_empty() || places.is_empty() {
        return text;
    }
    let (mut out, mut from) = (String::with_capacity(text.len()), 0);
    for place in places.into_iter().filter(|it| !it.is_empty()) {
        // Two signs may stand before the same digits.
        if place.start >= from {
            out += &text[from..place.start];
            out += GONE;
            from = place.end;
        }
    }
    Cow::Owned(out + &text[from..])
}

/// Whether a reader may take this character for the sign of a mark.
fn is_number_sign(it: char) -> bool {
    matches!(it, '#' | '\u{266f}' | '\u{fe5f}' | '\u{ff03}' | '\u{22d5}')
}

/// The end of the digits, if the text begins with them.
fn end_of(text: &str, digits: &str) -> Option<usize> {
    let mut wanted = digits.chars().peekable();
    for (at, it) in text.char_indices() {
        let Some(next) = wanted.peek() else { return Some(at) };
        let it = half_width(it);
        if it.eq_ignore_ascii_case(next) {
            wanted.next();
        } else if it.is_alphanumeric() || it == '#' {
            return None;
        }
    }
    wanted.peek().is_none().then_some(text.len())
}

/// The ASCII character in place of its wide form.
fn half_width(it: char) -> char {
    match it {
        '\u{ff01}'..='\u{ff5e}' => char::from_u32(u32::from(it) - 0xfee0).unwrap_or(it),
        it => it,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        assert_eq!(without_mark(text.into(), "#7f3a9c"), expected);
    }

    #[test]
    fn a_text_that_holds_the_mark_loses_its_digits() {
        check("[ops #7f3a9c]\nyes", "[ops #------]\nyes");
        check("#7F3A9C, #7f3a9c.", "#------, #------.");
        check("# 7f-3a\u{200b}9\nc!", "#------!");
        check("\u{ff03}\u{ff17}f3a9\u{ff43}", "\u{ff03}------");
        check("##7f3a9c#7f3a9c", "##------#------");
        check("#7f3a9c00", "#------00");
    }

    #[test]
    fn any_other_text_stays() {
        for text in ["", "#", "7f3a9c", "#7f3a9d", "#7f3a", "# heading", "#7xf3a9c", "#fff"] {
            assert!(matches!(without_mark(text.into(), "#7f3a9c"), Cow::Borrowed(_)), "{text}");
        }
        assert_eq!(without_mark("#a # b".into(), ""), "#a # b");
    }
}
