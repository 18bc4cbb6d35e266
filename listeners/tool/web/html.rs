//! Converts HTML to text, in one pass over its tags. No tree is built, so the cost depends only on
//! the number of bytes, and not on the depth or the number of elements.

use html5gum::{DefaultEmitter, EndTag, StartTag, Token, Tokenizer};
use reqwest::Url;

/// The maximum depth of nested lists. Items of deeper lists are written like items of a list at
/// this depth.
const LISTS_MAX: usize = 8;
/// The maximum number of bytes of a link's address. A longer address is left out.
const LINK_BYTES_MAX: usize = 1_000;
/// The maximum number of bytes of a title. A longer title is cut.
const TITLE_BYTES_MAX: usize = 300;

/// The text of a page.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct HtmlText {
    pub(super) title: Option<String>,
    pub(super) text: String,
}

/// Converts a page to text of at most `most` bytes. A longer text is cut, possibly within a line.
pub(super) fn read(html: &str, base: &Url, most: usize) -> HtmlText {
    let mut emitter = DefaultEmitter::default();
    emitter.naively_switch_states(true);
    let mut writer = Writer::new(base);
    for token in Tokenizer::new_with_emitter(html, emitter) {
        let Ok(token) = token;
        match token {
            Token::StartTag(it) => writer.open(&it),
            Token::EndTag(it) => writer.close(&it),
            Token::String(it) => writer.text(&String::from_utf8_lossy(&it)),
            _ => {}
        }
        if writer.out.len() >= most {
            break;
        }
    }
    writer.finish(most)
}

/// How an element's text is handled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TextMode {
    Shown,
    /// Shown, with all white space.
    As,
    Title,
    /// Left out until the end of the element of this name.
    Hidden(&'static [u8]),
}

/// An open list: an `ol` with the number of its last item, or a `ul`.
#[derive(Clone, Copy, Debug)]
enum List {
    Numbered(u32),
    Plain,
}

struct Writer {
    /// The address at which relative links begin: the page's own, or that of its first `<base>`.
    base: Url,
    has_base: bool,
    title: String,
    out: String,
    mode: TextMode,
    /// The mode outside of the hidden element.
    outer: TextMode,
    /// The number of line ends to write before the next text.
    breaks: usize,
    /// Whether to write a space before the next text.
    space: bool,
    lists: Vec<List>,
    /// The number of open lists that are deeper than [`LISTS_MAX`].
    deeper: usize,
    /// The open link: the position in `out` at which its text begins, and its address. `None` if no
    /// link is open.
    link: Option<(usize, Url)>,
    /// Whether the current row of a table has a cell already.
    in_row: bool,
}

impl Writer {
    fn new(base: &Url) -> Writer {
        Writer {
            base: base.clone(),
            has_base: false,
            title: String::new(),
            out: String::new(),
            mode: TextMode::Shown,
            outer: TextMode::Shown,
            breaks: 0,
            space: false,
            lists: Vec::new(),
            deeper: 0,
            link: None,
            in_row: false,
        }
    }

    fn open(&mut self, tag: &StartTag<()>) {
        if matches!(self.mode, TextMode::Hidden(_)) {
            return;
        }
        if let Some(name) = hidden(&tag.name) {
            // A self-closing element counts as empty, as in XHTML.
            if !tag.self_closing {
                (self.outer, self.mode) = (self.mode, TextMode::Hidden(name));
            }
            return;
        }
        match &tag.name[..] {
            b"title" if self.title.is_empty() => self.mode = TextMode::Title,
            b"pre" | b"textarea" => {
                self.separate(2);
                self.mode = TextMode::As;
            }
            b"br" => self.separate_more(),
            b"hr" => {
                self.separate(2);
                self.put("---");
                self.separate(2);
            }
            b"base" if !self.has_base => self.set_base(tag),
            b"a" => self.begin_link(tag),
            b"img" => self.image(tag),
            b"ul" | b"ol" => self.begin_list(&tag.name),
            b"li" => self.item(),
            b"tr" => {
                self.separate(1);
                self.in_row = false;
            }
            b"td" | b"th" => {
                if self.in_row {
                    self.put(" | ");
                }
                self.in_row = true;
            }
            name => match heading(name) {
                Some(level) => {
                    self.separate(2);
                    self.put(&"#".repeat(level));
                    self.space = true;
                }
                None => self.separate(breaks_of(name)),
            },
        }
    }

    /// Takes the address of a `<base>`. As in a browser, the first one with an address counts, and
    /// an address of data or of a script is ignored.
    fn set_base(&mut self, tag: &StartTag<()>) {
        let Some(to) = tag.attributes.get(&b"href"[..]) else { return };
        self.has_base = true;
        let to = String::from_utf8_lossy(to);
        let base = self.base.join(to.trim()).ok();
        if let Some(base) = base.filter(|it| !matches!(it.scheme(), "data" | "javascript")) {
            self.base = base;
        }
    }

    fn close(&mut self, tag: &EndTag<()>) {
        match (self.mode, &tag.name[..]) {
            (TextMode::Hidden(name), it) if name == it => self.mode = self.outer,
            (TextMode::Hidden(_), _) => {}
            (TextMode::Title, _) => self.mode = TextMode::Shown,
            (TextMode::As, b"pre" | b"textarea") => {
                self.mode = TextMode::Shown;
                self.separate(2);
            }
            (_, b"a") => self.end_link(),
            (_, b"ul" | b"ol") => self.end_list(),
            (_, b"li" | b"tr") => self.separate(1),
            (_, name) if heading(name).is_some() => self.separate(2),
            (_, name) => self.separate(breaks_of(name)),
        }
    }

    fn text(&mut self, text: &str) {
        match self.mode {
            TextMode::Hidden(_) => {}
            TextMode::Title => self.title.push_str(text),
            TextMode::As => self.put(text),
            TextMode::Shown => {
                for (number, word) in text.split(is_space).enumerate() {
                    self.space |= number > 0;
                    if !word.is_empty() {
                        self.put(word);
                    }
                }
            }
        }
    }

    /// Writes the pending line ends or the pending space, and then the text.
    fn put(&mut self, text: &str) {
        if self.out.is_empty() {
            // The first text has no line end and no space before it.
        } else if self.breaks > 0 {
            self.out.extend(std::iter::repeat_n('\n', self.breaks));
        } else if self.space && !self.out.ends_with(['\n', ' ', '[']) {
            self.out.push(' ');
        }
        (self.breaks, self.space) = (0, false);
        self.out.push_str(text);
    }

    fn separate(&mut self, breaks: usize) {
        self.breaks = self.breaks.max(breaks);
    }

    fn separate_more(&mut self) {
        self.breaks = (self.breaks + 1).min(2);
    }

    fn begin_link(&mut self, tag: &StartTag<()>) {
        self.end_link();
        let Some(to) = tag.attributes.get(&b"href"[..]) else { return };
        let to = String::from_utf8_lossy(to);
        // A link within the same page isn't shown.
        if to.starts_with('#') || to.len() > LINK_BYTES_MAX {
            return;
        }
        let Ok(to) = self.base.join(to.trim()) else { return };
        let is_page = matches!(to.scheme(), "http" | "https" | "mailto");
        if is_page && to.as_str().len() <= LINK_BYTES_MAX {
            self.put("[");
            self.link = Some((self.out.len(), to));
        }
    }

    fn end_link(&mut self) {
        let Some((start, to)) = self.link.take() else { return };
        match self.out[start..].trim().is_empty() {
            true => self.out.truncate(start - 1),
            false => {
                self.out.push_str("](");
                self.out.push_str(to.as_str());
                self.out.push(')');
            }
        }
    }

    fn image(&mut self, tag: &StartTag<()>) {
        let Some(alt) = tag.attributes.get(&b"alt"[..]) else { return };
        let alt = String::from_utf8_lossy(alt);
        if !alt.trim().is_empty() {
            self.text(&alt);
        }
    }

    fn begin_list(&mut self, name: &[u8]) {
        self.separate(if self.lists.is_empty() { 2 } else { 1 });
        match self.lists.len() < LISTS_MAX {
            true => self.lists.push(if name == b"ol" { List::Numbered(0) } else { List::Plain }),
            false => self.deeper += 1,
        }
    }

    fn end_list(&mut self) {
        if self.deeper > 0 {
            self.deeper -= 1;
        } else {
            self.lists.pop();
        }
        self.separate(if self.lists.is_empty() { 2 } else { 1 });
    }

    fn item(&mut self) {
        self.separate(1);
        let indent = "  ".repeat(self.lists.len().saturating_sub(1));
        let mark = match self.lists.last_mut() {
            Some(List::Numbered(number)) => {
                *number = number.saturating_add(1);
                format!("{indent}{number}.")
            }
            _ => format!("{indent}-"),
        };
        self.put(&mark);
        self.space = true;
    }

    fn finish(mut self, most: usize) -> HtmlText {
        self.end_link();
        let mut text = self.out;
        text.truncate(text.floor_char_boundary(most));
        let mut title = self.title.split_whitespace().collect::<Vec<_>>().join(" ");
        title.truncate(title.floor_char_boundary(TITLE_BYTES_MAX));
        HtmlText { title: Some(title).filter(|it| !it.is_empty()), text }
    }
}

/// Returns whether a character is white space of HTML or the no-break space.
fn is_space(letter: char) -> bool {
    matches!(letter, ' ' | '\t' | '\n' | '\r' | '\x0c' | '\u{a0}')
}

/// Returns the name if browsers don't show the text of the element. `None` for other elements.
fn hidden(name: &[u8]) -> Option<&'static [u8]> {
    const ALL: [&[u8]; 8] =
        [b"script", b"style", b"noscript", b"template", b"svg", b"iframe", b"noembed", b"noframes"];
    ALL.into_iter().find(|it| *it == name)
}

fn heading(name: &[u8]) -> Option<usize> {
    match name {
        [b'h', level @ b'1'..=b'6'] => Some(usize::from(level - b'0')),
        _ => None,
    }
}

/// Returns the number of line ends before and after an element.
fn breaks_of(name: &[u8]) -> usize {
    match name {
        b"p" | b"table" | b"blockquote" | b"article" | b"section" | b"figure" | b"dl" | b"form" => {
            2
        }
        b"address" | b"aside" | b"body" | b"caption" | b"dd" | b"details" | b"div" | b"dt"
        | b"fieldset" | b"figcaption" | b"footer" | b"header" | b"html" | b"legend" | b"main"
        | b"nav" | b"option" | b"select" | b"summary" => 1,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_all(html: &str) -> HtmlText {
        let base = "https://example.org/a/b".parse().unwrap();
        read(html, &base, 1_000_000)
    }

    #[track_caller]
    fn check(html: &str, expected: &str) {
        assert_eq!(read_all(html).text, expected);
    }

    #[test]
    fn a_page_is_text_with_its_headings_lists_links_and_tables() {
        check("<h1>One</h1>\n<p>a  b\n c</p><p>d<br>e", "# One\n\na b c\n\nd\ne");
        check("<ul><li>a<li>b<ol><li>c</ol></ul>d", "- a\n- b\n  1. c\n\nd");
        check("<p>see <a href=/x>the <b>page</b></a>.", "see [the page](https://example.org/x).");
        check("a <a href='#x'>b</a> <a href='javascript:x()'>c</a> <a href=d></a>e", "a b c e");
        check("<table><tr><th>a<th>b<tr><td>1</td><td>2</td></table>", "a | b\n1 | 2");
        check("<pre>a\n  b</pre>c", "a\n  b\n\nc");
        check("<pre>a<script>x</script>\n  b</pre>c", "a\n  b\n\nc");
        check("a&amp;b &lt;c&gt; &#233; <img alt='a tree' src=x>", "a&b <c> é a tree");
    }

    #[test]
    fn links_lead_where_a_browser_goes() {
        let there = "<base href='http://docs.example/v2/'><a href=guide.html>guide</a>";
        check(there, "[guide](http://docs.example/v2/guide.html)");
        check("<head><base href=/v3/></head><a href=g>g</a>", "[g](https://example.org/v3/g)");
        check("<base target=_top><base href=/x/><base href=/y/><a href=g>g</a>", {
            "[g](https://example.org/x/g)"
        });
        check("<base href='data:,x'><a href=g>g</a>", "[g](https://example.org/a/g)");
        check("<base href=/x/><a href=//b.org/g>g</a>", "[g](https://b.org/g)");
    }

    #[test]
    fn what_nobody_sees_is_left_out() {
        let html = "<title> A \n page</title><style>p{}</style><script>if (a<b) '</p>'</script>\
                    <svg><text>x</text></svg><template><p>y</p></template><!-- z -->seen";
        let HtmlText { title, text } = read_all(html);
        assert_eq!((title.as_deref(), text.as_str()), (Some("A page"), "seen"));
    }

    #[test]
    fn what_is_no_html_is_read_all_the_same() {
        for text in
            ["", "<", "</", "<a", "<a href=", "</a></ul></li></pre>", "<!", "<![CDATA[", "\0"]
        {
            read_all(text);
        }
        check("</ul></ol><li>a", "- a");
    }

    #[test]
    fn depth_and_number_cost_no_more_than_their_bytes() {
        for tag in
            ["<div>", "<ul>", "<a href=x>", "<b>", "<p><table>", "<svg>", "<li>", "</p>", "&"]
        {
            let html = tag.repeat(1_000_000 / tag.len()) + "end";
            let HtmlText { text, .. } = read_all(&html);
            assert!(text.len() <= 1_000_000, "{tag}");
        }
        let attributes =
            format!("<p {}>end", (0..100_000).map(|it| format!("a{it} ")).collect::<String>());
        check(&attributes, "end");
    }

    #[test]
    fn no_link_makes_a_page_larger_than_its_limit() {
        let base = format!("https://example.org/{}/", "x".repeat(900)).parse().unwrap();
        let HtmlText { text, .. } = read(&"<a href=y>z</a>".repeat(10_000), &base, 10_000);
        assert_eq!(text.len(), 10_000);
    }
}
