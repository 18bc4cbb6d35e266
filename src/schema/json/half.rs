//! Halves of surrogate pairs in JSON. JSON writes a character beyond U+FFFF as two escapes, such as
//! `\ud83d\ude00`, and text of others may have one of the two alone. A half that stays alone
//! becomes U+FFFD. Of a pair that is split over two texts of a stream, both halves are joined.

use std::borrow::Cow;

/// The character in place of a half that stays alone.
const REPLACEMENT: char = '\u{FFFD}';
/// The first of the characters that mark halves: the last 2,048 code points, for private use.
const FIRST_MARK: u32 = 0x10_F800;
/// The bytes that begin every escape of a half, in lower case.
const BEGIN: &[u8; 3] = b"\\ud";

/// Replaces each escape of half a surrogate pair by `\ufffd`. The text keeps its length.
///
/// ```
/// # extern crate pumphouse_ground as pumphouse;
/// use pumphouse::schema::json::mended;
///
/// assert_eq!(mended(r#"["\ud83d", "\ud83d\ude00"]"#), r#"["\ufffd", "\ud83d\ude00"]"#);
/// ```
#[must_use]
pub fn mended(text: &str) -> Cow<'_, str> {
    replaced(text, |_| Cow::Borrowed("\\ufffd"))
}

/// Replaces each escape of half a surrogate pair by a character that marks this half, for
/// [`joined`]. The flag says whether there is a mark. If the text itself may have such a character,
/// the halves become U+FFFD instead.
pub fn marked(text: &str) -> (Cow<'_, str>, bool) {
    let has_own = text.contains(|it: char| u32::from(it) >= FIRST_MARK)
        || has_escape(text, |it| matches!(it, 0xDBFE | 0xDBFF));
    if has_own {
        return (mended(text), false);
    }
    let mark = |half: u16| char::from_u32(FIRST_MARK + u32::from(half - 0xD800));
    let marked = replaced(text, |half| match mark(half) {
        Some(mark) => Cow::Owned(mark.to_string()),
        None => Cow::Borrowed("\\ufffd"),
    });
    let is_marked = matches!(marked, Cow::Owned(_));
    (marked, is_marked)
}

/// Joins the halves in the next text of a stream. `waiting` is the half at the end of the text
/// before, and gets the half at the end of this text. `is_marked` says that the text may have marks
/// of [`marked`].
pub fn joined<'a>(waiting: &mut Option<u16>, text: &'a str, is_marked: bool) -> Cow<'a, str> {
    if text.is_empty() || (waiting.is_none() && !is_marked) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 4);
    for letter in text.chars() {
        let half = half_of(letter).filter(|_| is_marked);
        let first = waiting.take();
        if let (Some(first), Some(second)) = (first, half.filter(|it| !is_first(*it))) {
            out.extend(char::decode_utf16([first, second]).filter_map(Result::ok));
            continue;
        }
        out.extend(first.map(|_| REPLACEMENT));
        match half {
            Some(half) if is_first(half) => *waiting = Some(half),
            Some(_) => out.push(REPLACEMENT),
            None => out.push(letter),
        }
    }
    Cow::Owned(out)
}

/// Returns the character for a half that no other half followed.
pub fn rest(waiting: &mut Option<u16>) -> Option<char> {
    waiting.take().map(|_| REPLACEMENT)
}

/// Returns a whole text without marks: halves that stand side by side are joined.
pub fn whole(text: &str) -> String {
    let mut waiting = None;
    let mut text = joined(&mut waiting, text, true).into_owned();
    text.extend(rest(&mut waiting));
    text
}

/// The half that a character marks.
fn half_of(letter: char) -> Option<u16> {
    let number = u32::from(letter).checked_sub(FIRST_MARK)?;
    u16::try_from(number).ok().map(|it| 0xD800 + it)
}

fn is_first(half: u16) -> bool {
    (0xD800..0xDC00).contains(&half)
}

/// Replaces the escapes of halves that have no other half beside them.
fn replaced<'a>(text: &'a str, by: impl Fn(u16) -> Cow<'static, str>) -> Cow<'a, str> {
    let (mut out, mut from) = (String::new(), 0);
    let mut first: Option<(usize, u16)> = None;
    let mut lone = |at: usize, half: u16| {
        out.push_str(&text[from..at]);
        out.push_str(&by(half));
        from = at + 6;
    };
    each_escape(text, |at, half| {
        match (first.take(), half) {
            // Both halves of a pair.
            (Some((before, _)), half) if before + 6 == at && !is_first(half) => return false,
            (Some((before, one)), _) => lone(before, one),
            (None, _) => {}
        }
        match is_first(half) {
            true => first = Some((at, half)),
            false => lone(at, half),
        }
        false
    });
    if let Some((at, half)) = first {
        lone(at, half);
    }
    if from == 0 {
        return Cow::Borrowed(text);
    }
    out.push_str(&text[from..]);
    Cow::Owned(out)
}

fn has_escape(text: &str, is: impl Fn(u16) -> bool) -> bool {
    let mut found = false;
    each_escape(text, |_, half| {
        found |= is(half);
        found
    });
    found
}

/// Calls `then` with the place and the half of each escape of a half, until it returns true.
fn each_escape(text: &str, mut then: impl FnMut(usize, u16) -> bool) {
    let bytes = text.as_bytes();
    let mut from = 0;
    while let Some(found) = memchr::memchr(b'\\', &bytes[from..]) {
        let at = from + found;
        let is_half = bytes[at..].get(..3).is_some_and(|it| it.eq_ignore_ascii_case(BEGIN))
            && bytes[at + 1] == b'u';
        let digits = text.get(at + 2..at + 6).filter(|_| is_half);
        let half =
            digits.and_then(|it| u16::from_str_radix(it, 16).ok()).filter(|it| *it >= 0xD800);
        match half {
            Some(half) if then(at, half) => return,
            Some(_) => from = at + 6,
            // The character behind a backslash is part of its escape.
            None => from = (at + 2).min(bytes.len()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_half_that_stays_alone_becomes_a_replacement_character() {
        let check = |text: &str, expected: &str| assert_eq!(mended(text), expected, "{text}");
        check(r#""a\ud83d b""#, r#""a\ufffd b""#);
        check(r#""\uDEAD""#, r#""\ufffd""#);
        check(r#""\ud83d\ud83d\ude00\ude00""#, r#""\ufffd\ud83d\ude00\ufffd""#);
        check(r#""\\ud83d \ud83d\\ude00""#, r#""\\ud83d \ufffd\\ude00""#);
        check(r#""\ud83d\n\ude00 \uD7FF \u00e9""#, r#""\ufffd\n\ufffd \uD7FF \u00e9""#);
        check(r#""\ud83"#, r#""\ud83"#);
        check("\"\\ud8é\"", "\"\\ud8é\"");
    }

    #[test]
    fn the_halves_of_two_texts_become_one_character() {
        let check = |texts: &[&str], expected: &str| {
            let (mut waiting, mut all) = (None, String::new());
            for text in texts {
                let (text, is_marked) = marked(text);
                all += &joined(&mut waiting, &text, is_marked);
            }
            all.extend(rest(&mut waiting));
            assert_eq!(all, expected, "{texts:?}");
        };
        check(&[r"good \ud83d", r"\ude00 day"], "good \u{1F600} day");
        check(&[r"\ud83d", "", r"\ude00"], "\u{1F600}");
        check(&[r"\ud83d", "x", r"\ude00"], "\u{FFFD}x\u{FFFD}");
        check(&[r"\ud83d", r"\ud83d", r"\ude00"], "\u{FFFD}\u{1F600}");
        check(&[r"\ud83d"], "\u{FFFD}");
        // Characters that could be marks stay what they are.
        check(&["\u{10F83D}", r"\ude00"], "\u{10F83D}\u{FFFD}");
        check(&["\u{10F83D}\\ude00"], "\u{10F83D}\\ufffd");
    }
}
