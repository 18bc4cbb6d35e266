//! Marks of threads in texts. Each line that the pump writes into a prompt ends with the mark of
//! its thread. If a sender's text holds the mark, the prompt shows the text without the mark's
//! digits, so that no reader takes the text for a line of the pump.

use std::borrow::Cow;

use pumphouse::hidden_characters::is_hidden;

use super::lookalikes::{end_of, plain};

/// What stands in place of the digits of a mark that a text holds.
const GONE: &str = "------";

/// Replaces the digits of the mark wherever a word begins with them, whatever stands before it.
/// Characters that look like them count, too, and whatever is neither a letter nor a digit may
/// stand between them. The rest stays unchanged.
pub(super) fn without_mark<'a>(text: Cow<'a, str>, mark: &str) -> Cow<'a, str> {
    let digits = mark.trim_start_matches('#');
    if digits.is_empty() {
        return text;
    }
    let (mut out, mut from, mut is_within) = (String::new(), 0, false);
    for (at, it) in text.char_indices() {
        let begins = !is_within && is_visible(it);
        is_within = it.is_ascii_alphanumeric();
        if at < from || !begins {
            continue;
        }
        if let Some(bytes) = end_of(&text[at..], digits, |it| !is_visible(it)) {
            out += &text[from..at];
            out += GONE;
            from = at + bytes;
        }
    }
    if from == 0 {
        return text;
    }
    Cow::Owned(out + &text[from..])
}

/// Whether a character is a letter or a digit that can be seen.
fn is_visible(it: char) -> bool {
    match it.is_ascii() {
        true => it.is_ascii_alphanumeric(),
        false => !is_hidden(it) && plain(it).any(char::is_alphanumeric),
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
        check("# 7f-3a\u{200b}9\nc!", "# ------!");
        check("\u{ff03}\u{ff17}f3a9\u{ff43}", "\u{ff03}------");
        check("##7f3a9c#7f3a9c", "##------#------");
        check("#7f3a9c00", "#------00");
        check("7f3a9c", "------");
        check("&#35;7f3a9c", "&#35;------");
        check("é7f3a9c, ⵌ7f3a9c", "é------, ⵌ------");
    }

    #[test]
    fn what_looks_like_the_mark_counts_as_it() {
        for text in [
            "7\u{3164}f\u{115f}3\u{1160}a\u{ffa0}9c",
            "𝟕f𝟑a𝟗c",
            "𝟟𝕗𝟛𝕒𝟡𝕔",
            "⁷f³a⁹c",
            "⑦ⓕ③ⓐ⑨ⓒ",
            "٧f٣a٩c",
            "७f३a९c",
            "7ꜰ3ᴀ9ᴄ",
            "7f3а9с",
            "7ƒз\u{430}9ϲ",
            "7f\u{301}3á9ç",
            "７Ｆ３Ａ９Ｃ",
            "⑺⒡⑶⒜⑼⒞",
            "❼🅕❸🅐❾🅒",
            "7🇫3🇦9🇨",
            "7\u{fe0f}\u{20e3}f3a9c",
            "7f3a9\u{10400}",
        ] {
            check(&format!("[ops #{text}]"), "[ops #------]");
        }
    }

    #[test]
    fn any_other_text_stays() {
        for text in [
            "",
            "#",
            "#7f3a9d",
            "#7f3a",
            "# heading",
            "#7xf3a9c",
            "#fff",
            "a7f3a9c",
            "# Заголовок, #привет, 标题 #第七章的标题",
            "#٢٠٢٦٠٧",
            "7f3\u{10400}\u{10400}\u{10400}",
        ] {
            assert!(matches!(without_mark(text.into(), "#7f3a9c"), Cow::Borrowed(_)), "{text}");
        }
        assert_eq!(without_mark("#a # b".into(), ""), "#a # b");
    }
}
