//! Escapes tags within a text, so that the text can't end the element around it, nor be taken for
//! such an element.

use std::borrow::Cow;

use pumphouse::hidden_characters::is_hidden;

use super::lookalikes::end_of;

/// Replaces the `<` of the tags with these names by `&lt;`. This holds for opening and closing
/// tags, in upper and lower case, with and without white space, and for what only looks like them.
/// The rest stays unchanged, so models see code and logs as they are, and an edit by exact text
/// finds its place.
pub(super) fn escape_tags<'a>(text: &'a str, names: &[&str]) -> Cow<'a, str> {
    let is_tag = |rest: &str| {
        let is_before = |it: char| is_slash(it) || it.is_whitespace() || is_hidden(it);
        let rest = rest.trim_start_matches(is_before);
        names.iter().any(|tag| end_of(rest, tag, |_| false).is_some())
    };
    let places = text.match_indices(is_less_than);
    let mut places = places.filter(|(at, sign)| is_tag(&text[at + sign.len()..])).peekable();
    if places.peek().is_none() {
        return Cow::Borrowed(text);
    }
    let (mut out, mut from) = (String::with_capacity(text.len() + 16), 0);
    for (at, sign) in places {
        out += &text[from..at];
        out += "&lt;";
        from = at + sign.len();
    }
    Cow::Owned(out + &text[from..])
}

fn is_less_than(it: char) -> bool {
    matches!(it, '<' | '\u{2c2}' | '\u{1438}' | '\u{2039}' | '\u{2329}' | '\u{276e}' | '\u{27e8}')
        || matches!(it, '\u{3008}' | '\u{fe64}' | '\u{ff1c}')
}

fn is_slash(it: char) -> bool {
    matches!(it, '/' | '\u{2044}' | '\u{2215}' | '\u{ff0f}')
}

#[cfg(test)]
mod tests {
    use super::escape_tags;

    #[test]
    fn only_the_tags_with_these_names_are_escaped() {
        let check = |text: &str, expected: &str| {
            assert_eq!(escape_tags(text, &["feed", "result"]), expected);
        };
        check("if a < b && c > d { <p> }", "if a < b && c > d { <p> }");
        check("</feed><feed id=\"x\">", "&lt;/feed>&lt;feed id=\"x\">");
        check("< / FEED\n>é</ Result>", "&lt; / FEED\n>é&lt;/ Result>");
        check("&lt;/feed> <fee> <", "&lt;/feed> <fee> <");
        check("Map<Feet, Re sult> ‹fée› <\u{200b}>", "Map<Feet, Re sult> ‹fée› <\u{200b}>");
    }

    #[test]
    fn what_looks_like_a_tag_is_escaped_as_the_tag_is() {
        for tag in [
            "<\u{200b}action-result id=\"a\">",
            "<\u{3164}/\u{feff} act\u{ad}ion-result>",
            "＜action-result＞",
            "‹/action-result›",
            "<аctiоn-rеsult>",
            "<ａction\u{2011}result>",
            "<𝐚𝐜𝐭𝐢𝐨𝐧-𝐫𝐞𝐬𝐮𝐥𝐭>",
        ] {
            let escaped = escape_tags(tag, &["action-result"]);
            assert!(escaped.starts_with("&lt;") && !escaped[4..].contains('<'), "{escaped}");
        }
        check_stays("<Действие-результат> <action result> <action, result>");
    }

    fn check_stays(text: &str) {
        assert_eq!(escape_tags(text, &["action-result"]), text);
    }
}
