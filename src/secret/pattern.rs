//! The texts by which a secret is found: the secret and its halves, as they are and in base64.

use super::spelling::{LEVELS, SPELLING_BYTES_MAX, decoded, is_escape};
use super::{BYTES_MIN, Found, HALVES_BYTES_MIN};
use crate::schema::base64_text;

/// How many ends of lines may stand between two characters of base64. More than one stand there
/// where lines are joined.
const LINE_ENDS_MAX: usize = 4;

/// A text to look for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Pattern {
    text: String,
    /// How many characters of it, from the first, count as the secret.
    chars_min: usize,
    is_base64: bool,
}

/// The texts by which a secret is found. None if it is too short to be hidden.
pub(super) fn patterns(secret: &str) -> Vec<Pattern> {
    if secret.len() < BYTES_MIN {
        return Vec::new();
    }
    let middle = match secret.len() {
        HALVES_BYTES_MIN.. => secret.floor_char_boundary(secret.len() / 2),
        bytes => bytes,
    };
    let (first, second) = secret.split_at(middle);
    let plain =
        |text: &str, chars_min| Pattern { text: text.to_owned(), chars_min, is_base64: false };
    let mut all = vec![plain(secret, first.chars().count())];
    all.extend(Some(plain(second, second.chars().count())).filter(|_| !second.is_empty()));
    for before in 0..3 {
        let mut add = |text: &str, least: &str| {
            let (text, least) = (base64_inside(text, before), base64_inside(least, before));
            let for_url = text.replace('+', "-").replace('/', "_");
            let of = |text| Pattern { text, chars_min: least.len(), is_base64: true };
            all.extend([text, for_url].map(of));
        };
        add(secret, first);
        if !second.is_empty() {
            add(second, second);
        }
    }
    all
}

impl Pattern {
    /// The most bytes that a text has which this pattern matches.
    pub(super) fn bytes_max(&self) -> usize {
        let line_ends = if self.is_base64 { 2 * LINE_ENDS_MAX } else { 0 };
        self.text.chars().count() * (1 + line_ends) * SPELLING_BYTES_MAX
    }

    /// The bytes that a text may begin with, if it begins with the pattern as it is.
    pub(super) fn first_bytes(&self) -> impl Iterator<Item = u8> {
        let first = self.text.as_bytes()[0];
        let other = match first {
            b' ' => Some(b'+'),
            it if it.is_ascii_alphabetic() && !self.is_base64 => Some(it ^ b' '),
            _ => None,
        };
        [Some(first), other].into_iter().flatten()
    }

    /// Looks for the pattern at the beginning of a text.
    pub(super) fn found(&self, text: &str, is_whole: bool) -> Found {
        let is_same = |(own, other): &(u8, u8)| {
            own == other || !self.is_base64 && own.eq_ignore_ascii_case(other)
        };
        let same = self.text.bytes().zip(text.bytes()).take_while(is_same).count();
        if same == self.text.len() {
            return Found::Secret(same);
        }
        if same == text.len() && !is_whole {
            return Found::Open;
        }
        let looked_at = &text.as_bytes()[..text.len().min(same + 1)];
        let may_go_on = |it: &u8| is_escape(*it) || matches!(it, b'+' | b'\n' | b'\r');
        if looked_at.iter().any(may_go_on) {
            return self.found_escaped(text, is_whole);
        }
        let same = text.floor_char_boundary(same);
        match text[..same].chars().count() {
            chars if chars >= self.chars_min => Found::Secret(same),
            _ => Found::Nothing,
        }
    }

    /// As `found`, with escapes undone. The longest spelling counts.
    fn found_escaped(&self, text: &str, is_whole: bool) -> Found {
        let mut longest = 0;
        for level in 0..=LEVELS {
            match self.found_at(level, text, is_whole) {
                Found::Secret(bytes) => longest = longest.max(bytes),
                Found::Open => return Found::Open,
                Found::Nothing => {}
            }
        }
        if longest > 0 { Found::Secret(longest) } else { Found::Nothing }
    }

    /// Looks for the pattern, with escapes undone up to a level.
    fn found_at(&self, level: usize, text: &str, is_whole: bool) -> Found {
        let (mut chars, mut bytes, mut rest) = (0, 0, text);
        let mut all = self.text.chars().peekable();
        let mut line_ends_left = 0;
        while let Some(it) = all.peek() {
            match step(level, rest, is_whole, |other| self.is_same(*it, other)) {
                Step::Over(length) => {
                    rest = &rest[length..];
                    (chars, bytes) = (chars + 1, text.len() - rest.len());
                    all.next();
                    line_ends_left = if self.is_base64 { LINE_ENDS_MAX } else { 0 };
                }
                Step::Open => return Found::Open,
                // A line of base64 may end anywhere.
                Step::Other if line_ends_left > 0 => match line_end(level, rest, is_whole) {
                    Step::Over(length) => {
                        (rest, line_ends_left) = (&rest[length..], line_ends_left - 1);
                    }
                    Step::Open => return Found::Open,
                    Step::Other => break,
                },
                Step::Other => break,
            }
        }
        if chars >= self.chars_min { Found::Secret(bytes) } else { Found::Nothing }
    }

    fn is_same(&self, own: char, other: char) -> bool {
        own == other
            || !self.is_base64 && (own.eq_ignore_ascii_case(&other) || (own, other) == (' ', '+'))
    }
}

/// How a text begins.
enum Step {
    /// With the character that is looked for, in this number of bytes.
    Over(usize),
    /// The text ends before it shows that.
    Open,
    /// With another character, or the text is empty.
    Other,
}

/// Looks for a character at the beginning of a text, with escapes undone up to a level.
fn step(level: usize, text: &str, is_whole: bool, is_one: impl Fn(char) -> bool) -> Step {
    for level in (0..=level).rev() {
        match decoded(text, level) {
            None if is_whole => return Step::Other,
            None => return Step::Open,
            Some(it) if it.is_open && !is_whole => return Step::Open,
            Some(it) if is_one(it.char) => return Step::Over(it.bytes),
            Some(_) => {}
        }
    }
    Step::Other
}

/// Looks for one end of a line at the beginning of a text: `\r\n`, `\n` or `\r`.
fn line_end(level: usize, text: &str, is_whole: bool) -> Step {
    let Step::Over(first) = step(level, text, is_whole, |it| it == '\r') else {
        return step(level, text, is_whole, |it| it == '\n');
    };
    match step(level, &text[first..], is_whole, |it| it == '\n') {
        Step::Over(second) => Step::Over(first + second),
        Step::Open => Step::Open,
        Step::Other => Step::Over(first),
    }
}

/// The characters of a text in base64 that depend on the text alone, if `before` bytes stand before
/// it in the encoded bytes, or 3 or 6 bytes more.
fn base64_inside(text: &str, before: usize) -> String {
    let bytes = [&[0; 2][..before], text.as_bytes()].concat();
    let encoded = base64_text(&bytes);
    let (begin, end) = ((before * 8).div_ceil(6), bytes.len() * 8 / 6);
    encoded[begin.min(end)..end].to_owned()
}
