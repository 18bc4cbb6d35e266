//! Escapes tags within a text, so that the text can't end the element around it, nor be taken for
//! such an element.

use std::borrow::Cow;

/// Replaces the `<` of the tags with these names by `&lt;`. This holds for opening and closing
/// tags, in upper and lower case, with and without white space. The rest stays unchanged, so models
/// see code and logs as they are, and an edit by exact text finds its place.
pub(super) fn escape_tags<'a>(text: &'a str, names: &[&str]) -> Cow<'a, str> {
    let is_tag = |rest: &str| {
        let rest = rest.trim_start_matches(|it: char| it == '/' || it.is_whitespace());
        let begins =
            |tag: &&str| rest.get(..tag.len()).is_some_and(|it| it.eq_ignore_ascii_case(tag));
        names.iter().any(begins)
    };
    let mut places = text.match_indices('<').filter(|(at, _)| is_tag(&text[at + 1..])).peekable();
    if places.peek().is_none() {
        return Cow::Borrowed(text);
    }
    let (mut out, mut from) = (String::with_capacity(text.len() + 16), 0);
    for (at, _) in places {
        out += &text[from..at];
        out += "&lt;";
        from = at + 1;
    }
    Cow::Owned(out + &text[from..])
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
    }
}
