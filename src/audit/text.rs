//! Makes text safe to show in a terminal, so that no part of the text moves the cursor, is
//! invisible, or changes the direction of writing.

use std::borrow::Cow;
use std::fmt::Write as _;

use crate::hidden_characters::is_hidden;

/// How text is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "whoever shows says both")]
pub struct Style {
    /// Whether text is coloured.
    pub colour: bool,
    /// The width at which lines are cut, in cells of the terminal.
    pub width: usize,
}

impl Style {
    /// No colour, and lines of up to 160 cells.
    pub const PLAIN: Style = Style { colour: false, width: 160 };

    /// Returns the text in the colour of its kind, or unchanged if the style has no colour.
    #[must_use]
    pub fn paint(self, paint: Paint, text: &str) -> String {
        let code = match paint {
            _ if !self.colour || text.is_empty() => return text.to_owned(),
            Paint::Strong => "1",
            Paint::Faint => "2",
            Paint::Wrong => "1;31",
            Paint::Well => "32",
            Paint::Who => "33",
            Paint::Tag => "36",
        };
        format!("\u{1b}[{code}m{text}\u{1b}[0m")
    }
}

/// The kind of a text, which decides the text's colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Paint {
    /// Something that a reader looks for, such as an id.
    Strong,
    /// Something that a reader rarely needs, such as a digest.
    Faint,
    /// An error or a failure.
    Wrong,
    /// A good result.
    Well,
    /// A sender or a receiver.
    Who,
    /// A tag of a payload.
    Tag,
}

/// Makes a text of several lines safe. Each character that a terminal would take as a command, or
/// show as nothing, is replaced by its character reference in XML.
#[must_use]
pub fn text(text: &str) -> Cow<'_, str> {
    escape(text, |it| matches!(it, '\n' | '\t'))
}

/// Makes a text safe in one line. Works as [`text`] does, and also replaces line ends and tabs.
#[must_use]
pub fn line(text: &str) -> Cow<'_, str> {
    escape(text, |_| false)
}

/// Makes JSON safe to show in a terminal. Each hidden character is replaced by its escape in JSON,
/// so the values stay the same.
#[must_use]
pub fn ascii(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    for it in json.chars() {
        if !is_hidden(it) {
            out.push(it);
            continue;
        }
        for unit in it.encode_utf16(&mut [0; 2]) {
            // Writing to a string can't fail.
            write!(out, "\\u{unit:04x}").unwrap_or_default();
        }
    }
    out
}

fn escape(text: &str, stays: impl Fn(char) -> bool) -> Cow<'_, str> {
    let hidden = |it: char| is_hidden(it) && !stays(it);
    if !text.contains(hidden) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for it in text.chars() {
        if hidden(it) {
            // Writing to a string can't fail.
            write!(out, "&#x{:X};", u32::from(it)).unwrap_or_default();
        } else {
            out.push(it);
        }
    }
    Cow::Owned(out)
}

/// How many cells of a terminal a text takes.
#[must_use]
pub fn cells(text: &str) -> usize {
    text.chars().map(width).sum()
}

/// Cuts a line to at most `max` cells. A line that was cut ends with `…`.
#[must_use]
pub fn cut(text: &str, max: usize) -> Cow<'_, str> {
    if text.len() <= max || cells(text) <= max {
        return Cow::Borrowed(text);
    }
    let mut taken = 0;
    let fits = |it: &char| {
        taken += width(*it);
        taken < max
    };
    let mut out: String = text.chars().take_while(fits).collect();
    if max > 0 {
        out.push('…');
    }
    Cow::Owned(out)
}

/// How many cells a character takes. A combining mark takes none. Wide characters, such as those of
/// East Asian scripts, take two.
fn width(it: char) -> usize {
    match u32::from(it) {
        0x0300..=0x036f
        | 0x0483..=0x0489
        | 0x0591..=0x05bd
        | 0x0610..=0x061a
        | 0x064b..=0x065f
        | 0x0900..=0x0902
        | 0x093a
        | 0x093c
        | 0x0941..=0x0948
        | 0x094d
        | 0x0e31
        | 0x0e34..=0x0e3a
        | 0x0e47..=0x0e4e
        | 0x1ab0..=0x1aff
        | 0x1dc0..=0x1dff
        | 0x200c..=0x200f
        | 0x20d0..=0x20ff
        | 0xfe00..=0xfe0f
        | 0xfe20..=0xfe2f
        | 0xe0100..=0xe01ef => 0,
        0x1100..=0x115f
        | 0x231a..=0x231b
        | 0x23e9..=0x23ec
        | 0x2e80..=0x303e
        | 0x3041..=0xa4cf
        | 0xa960..=0xa97c
        | 0xac00..=0xd7a3
        | 0xf900..=0xfaff
        | 0xfe30..=0xfe6f
        | 0xff00..=0xff60
        | 0xffe0..=0xffe6
        | 0x16fe0..=0x1b2ff
        | 0x1f004
        | 0x1f0cf
        | 0x1f18e..=0x1f19a
        | 0x1f200..=0x1f64f
        | 0x1f680..=0x1f6ff
        | 0x1f7e0..=0x1f7eb
        | 0x1f900..=0x1faff
        | 0x20000..=0x3fffd => 2,
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminal_obeys_nothing_that_a_payload_says() {
        for (given, expected) in [
            ("plain, żółć, 日本, 👩\u{200d}🔬", "plain, żółć, 日本, 👩&#x200D;🔬"),
            ("a\u{1b}[2Jb", "a&#x1B;[2Jb"),
            ("a\u{9b}2Jb\u{7f}\u{8}", "a&#x9B;2Jb&#x7F;&#x8;"),
            ("over\u{202e}ride\u{2066}", "over&#x202E;ride&#x2066;"),
            ("tag\u{e0041}", "tag&#xE0041;"),
            ("left\u{200e}right\u{200f}\u{61c}", "left&#x200E;right&#x200F;&#x61C;"),
            ("soft\u{ad}, selected\u{e0100}", "soft&#xAD;, selected&#xE0100;"),
            ("two\nlines\tand\r", "two\nlines\tand&#xD;"),
        ] {
            assert_eq!(text(given), expected);
        }
        assert_eq!(line("two\nlines\t"), "two&#xA;lines&#x9;");
    }

    #[test]
    fn json_keeps_every_character() {
        let given = serde_json::json!("a\u{9b}\u{202e}\u{e0041}é\n");
        let escaped = ascii(&given.to_string());
        assert_eq!(escaped, r#""a\u009b\u202e\udb40\udc41é\n""#);
        assert_eq!(serde_json::from_str::<serde_json::Value>(&escaped).unwrap(), given);
    }

    #[test]
    fn a_cut_counts_cells() {
        assert_eq!(cells("日本 żółć e\u{301}"), 4 + 1 + 4 + 1 + 1);
        for (given, max, expected) in [
            ("abcdef", 6, "abcdef"),
            ("abcdef", 5, "abcd…"),
            ("日本語", 6, "日本語"),
            ("日本語", 5, "日本…"),
            ("日本語", 4, "日…"),
            ("e\u{301}e\u{301}e\u{301}", 3, "e\u{301}e\u{301}e\u{301}"),
            ("abc", 0, ""),
        ] {
            assert_eq!(cut(given, max), expected, "{given} in {max}");
        }
    }

    #[test]
    fn colour_is_on_terminals_only() {
        assert_eq!(Style::PLAIN.paint(Paint::Wrong, "no"), "no");
        let colour = Style { colour: true, ..Style::PLAIN };
        assert_eq!(colour.paint(Paint::Well, "yes"), "\u{1b}[32myes\u{1b}[0m");
    }
}
