//! Lays out the canonical bytes of a payload for people. White space between elements is changed,
//! an empty element becomes one tag, and hidden characters become character references. The white
//! space of text is kept, and elements that stand among text stay there.
//!
//! A line of the layout begins with a margin of spaces. If a text has a line end, the next line
//! begins with a bar. The text continues to the right of the bar, with all its spaces.

use crate::audit::text::{Paint, Style, text};

/// The start of each line of a payload, except the lines that start with [`BAR`]. Because of the
/// margin, no text can look like the header above the payload.
pub(super) const MARGIN: &str = "  ";
/// The start of a line that continues a text after a line end.
pub(super) const BAR: &str = "│ ";
/// The indentation of one level.
const INDENT: &str = "  ";
/// How many levels are indented. Deeper levels have the same indentation.
const LEVELS_MAX: usize = 64;

/// A payload with each element on a line of its own, except elements that stand among text. Each
/// line begins with the margin or the bar, and has a line end.
#[must_use]
pub fn pretty(canonical: &[u8], style: Style) -> String {
    let whole = String::from_utf8_lossy(canonical);
    let mut out = MARGIN.to_owned();
    match tokens(&whole) {
        Some(tokens) => lay_out(&tokens, style, &mut out),
        None => go_on(&whole, &mut out),
    }
    out.push('\n');
    out
}

/// A text with the margin before its first line and the bar before its further lines. The last line
/// has a line end, too.
#[must_use]
pub fn quoted(text: &str) -> String {
    let mut out = MARGIN.to_owned();
    go_on(text, &mut out);
    out.push('\n');
    out
}

/// Adds a text to the current line. Further lines of the text begin with the bar.
fn go_on(it: &str, out: &mut String) {
    for (number, line) in text(it).split('\n').enumerate() {
        if number > 0 {
            out.push('\n');
            out.push_str(BAR);
        }
        out.push_str(line);
    }
}

fn lay_out(tokens: &[Token<'_>], style: Style, out: &mut String) {
    let blocks = blocks(tokens);
    let (mut depth, mut inline) = (0, 0);
    let mut at = 0;
    while let Some(token) = tokens.get(at) {
        let own_line = |out: &mut String, depth: usize| {
            if out.len() > MARGIN.len() {
                out.push('\n');
                out.push_str(MARGIN);
            }
            (0..depth.min(LEVELS_MAX)).for_each(|_| out.push_str(INDENT));
        };
        match token {
            Token::Open(tag) => {
                if inline == 0 {
                    own_line(out, depth);
                }
                if let Some(Token::Close(_)) = tokens.get(at + 1) {
                    let tag = tag.trim_end_matches('>');
                    out.push_str(&style.paint(Paint::Tag, &format!("{}/>", text(tag))));
                    at += 2;
                    continue;
                }
                out.push_str(&style.paint(Paint::Tag, &text(tag)));
                if inline > 0 || !blocks[at] {
                    inline += 1;
                } else {
                    depth += 1;
                }
            }
            Token::Close(tag) => {
                if inline > 0 {
                    inline -= 1;
                } else {
                    depth -= 1;
                    own_line(out, depth);
                }
                out.push_str(&style.paint(Paint::Tag, &text(tag)));
            }
            Token::Text(it) if inline > 0 => go_on(it, out),
            Token::Text(_) => {}
        }
        at += 1;
    }
}

/// A payload in one line, without its namespaces, for a list.
#[must_use]
pub fn compact(canonical: &[u8]) -> String {
    /// How many bytes of the payload are read. More isn't needed, since the line is cut.
    const BYTES_MAX: usize = 4_096;
    let whole = String::from_utf8_lossy(&canonical[..canonical.len().min(BYTES_MAX)]);
    let mut out = String::new();
    let mut rest = &*whole;
    while let Some((token, after)) = next(rest) {
        rest = after;
        match token {
            Token::Open(tag) => {
                let parts = parts(tag);
                let kept = parts.iter().filter(|it| !it.starts_with("xmlns"));
                let tag: Vec<&str> = kept.copied().collect();
                out.push_str(tag.join(" ").trim_end_matches('>'));
                let empty = matches!(next(rest), Some((Token::Close(_), _)));
                out.push_str(if empty { "/>" } else { ">" });
                if let Some((Token::Close(_), after)) = next(rest) {
                    rest = after;
                }
            }
            Token::Close(tag) => out.push_str(tag),
            Token::Text(it) => out.push_str(it),
        }
    }
    out.push_str(rest);
    let words: Vec<&str> = out.split([' ', '\t', '\n']).filter(|it| !it.is_empty()).collect();
    crate::audit::text::line(&words.join(" ")).into_owned()
}

/// A piece of canonical XML. There are only start tags, end tags and text.
enum Token<'a> {
    Open(&'a str),
    Close(&'a str),
    Text(&'a str),
}

/// Splits XML into its pieces. `None` if elements aren't closed or there is text outside of them.
fn tokens(whole: &str) -> Option<Vec<Token<'_>>> {
    let (mut tokens, mut depth, mut rest) = (Vec::new(), 0_usize, whole);
    while !rest.is_empty() {
        let (token, after) = next(rest)?;
        match &token {
            Token::Open(_) => depth += 1,
            Token::Close(_) => depth = depth.checked_sub(1)?,
            Token::Text(_) if depth == 0 => return None,
            Token::Text(_) => {}
        }
        rest = after;
        tokens.push(token);
    }
    (depth == 0).then_some(tokens)
}

fn next(rest: &str) -> Option<(Token<'_>, &str)> {
    if !rest.starts_with('<') {
        let end = rest.find('<').unwrap_or(rest.len());
        let (text, after) = rest.split_at(end);
        return (!text.is_empty()).then_some((Token::Text(text), after));
    }
    let mut quoted = false;
    let end = rest.bytes().position(|it| {
        quoted ^= it == b'"';
        it == b'>' && !quoted
    })?;
    let (tag, after) = rest.split_at(end + 1);
    let token = if tag.starts_with("</") { Token::Close(tag) } else { Token::Open(tag) };
    Some((token, after))
}

/// Splits a start tag into its name and its attributes.
fn parts(tag: &str) -> Vec<&str> {
    let mut quoted = false;
    let between = |it: char| {
        quoted ^= it == '"';
        it == ' ' && !quoted
    };
    tag.split(between).collect()
}

/// For each start tag: whether the element directly contains elements and no text. White space
/// isn't counted as text. An element that preserves white space gets `false`.
fn blocks(tokens: &[Token<'_>]) -> Vec<bool> {
    struct Open {
        at: usize,
        elements: bool,
        keeps: bool,
    }
    let mut blocks = vec![false; tokens.len()];
    let mut open: Vec<Open> = Vec::new();
    for (at, token) in tokens.iter().enumerate() {
        match token {
            Token::Open(tag) => {
                if let Some(parent) = open.last_mut() {
                    parent.elements = true;
                }
                let keeps = tag.contains(" xml:space=\"preserve\"");
                open.push(Open { at, elements: false, keeps });
            }
            Token::Text(it) => {
                if let Some(parent) = open.last_mut() {
                    parent.keeps |= !it.trim_matches([' ', '\t', '\n']).is_empty();
                }
            }
            Token::Close(_) => {
                if let Some(it) = open.pop() {
                    blocks[it.at] = it.elements && !it.keeps;
                }
            }
        }
    }
    blocks
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compares the lines without the margin. In `expected`, a `¶` stands for a line end within a
    /// text.
    fn check(canonical: &str, expected: &str) {
        let shown = pretty(canonical.as_bytes(), Style::PLAIN);
        let expected = expected.replace('\n', "\n  ").replace('¶', "\n│ ");
        assert_eq!(shown, format!("  {expected}\n"), "{canonical}");
    }

    #[test]
    fn elements_stand_on_lines_of_their_own() {
        check("<a></a>", "<a/>");
        check("<a>1</a>", "<a>1</a>");
        check(
            "<a xmlns=\"urn:x\" b=\"1 > 0\"><c>1</c><d><e f=\"\"></e></d></a>",
            "<a xmlns=\"urn:x\" b=\"1 > 0\">\n  <c>1</c>\n  <d>\n    <e f=\"\"/>\n  </d>\n</a>",
        );
        check("<a>\n <b></b>\n\t<c></c>\n</a>", "<a>\n  <b/>\n  <c/>\n</a>");
    }

    #[test]
    fn a_text_stays_as_it_is() {
        for same in [
            "<a>  </a>",
            "<a> 1 </a>",
            "<a>one¶   two¶</a>",
            "<a>say <b><c>this</c></b> so</a>",
            "<a xml:space=\"preserve\"> <b/> </a>",
            "<a>&lt;b&gt;&amp;&#xD;</a>",
        ] {
            check(&same.replace("<b/>", "<b></b>").replace('¶', "\n"), same);
        }
        check("<a><b>x <c></c></b></a>", "<a>\n  <b>x <c/></b>\n</a>");
        check("<a><b>x\n y\n\n</b></a>", "<a>\n  <b>x¶ y¶¶</b>\n</a>");
    }

    #[test]
    fn what_is_no_payload_is_shown_safely() {
        check("", "");
        check("<a><b></a", "<a><b></a");
        check("</a>", "</a>");
        check("\u{1b}[2J<a b=\"", "&#x1B;[2J<a b=\"");
        check("no\nelement", "no¶element");
        assert_eq!(pretty(b"\xff\xfe", Style::PLAIN), "  \u{fffd}\u{fffd}\n");
        assert_eq!(compact(b"\xff<a b=\"\x1b"), "\u{fffd}<a b=\"&#x1B;");
    }

    #[test]
    fn deep_payloads_cost_no_stack() {
        let deep = format!("{}{}", "<a>".repeat(100_000), "</a>".repeat(100_000));
        assert!(compact(deep.as_bytes()).starts_with("<a><a>"));
        let deep = format!("{}{}", "<a>".repeat(2_000), "</a>".repeat(2_000));
        assert!(pretty(deep.as_bytes(), Style::PLAIN).starts_with("  <a>\n    <a>"));
    }

    #[test]
    fn a_list_has_no_namespaces() {
        let given =
            "<x:a xmlns:x=\"urn:x\" b=\"a  xmlns\"><c xmlns=\"\">one\n two</c><d></d></x:a>";
        assert_eq!(compact(given.as_bytes()), "<x:a b=\"a xmlns\"><c>one two</c><d/></x:a>");
    }
}
