//! Writes a thread as a page of Markdown for people. Each entry has a heading with its sender, its
//! receiver and the name of its payload.
//!
//! Text of a message can't look like another part of the page. Short text is quoted, with all of
//! Markdown's special characters escaped. Other text and XML stand in a fenced block, whose fence
//! is longer than any run of backticks in the block.

use bytes::Bytes;

use crate::audit::entry::{count, ends_plain};
use crate::audit::payload::{BAR, MARGIN, compact, pretty};
use crate::audit::text::{Style, line, text};
use crate::id::{EntryId, ThreadId};
use crate::log::{Entry, Flags, Head, Identity, State, ThreadRecord};
use crate::wire::iso_time;
use crate::xml::{Attribute, Element};

/// A text with more lines than this isn't quoted, but fenced.
const QUOTED_LINES_MAX: usize = 16;
/// A fenced block with more lines than this is folded.
const OPEN_LINES_MAX: usize = 32;
/// If a payload has an attribute with more bytes than this, the payload is shown as XML.
const VALUE_BYTES_MAX: usize = 80;
/// How many characters of a time are shown: down to the milliseconds.
const MILLISECONDS: usize = "2026-11-21T22:15:36.123".len();

/// The beginning of a page about a thread.
#[must_use]
pub fn markdown_head(thread: &ThreadRecord, log: &Identity, head: Head) -> String {
    let mut facts = vec![count(thread.last_seq, "entry", "entries")];
    if thread.state != State::Open {
        facts[0] = format!("{}; {}", facts[0], thread.state);
    }
    if let Some(first) = &thread.first {
        facts.push(format!("opened {} by {}", time(first.at_us), name(&first.from)));
    }
    facts.extend(thread.parent.iter().map(|it| format!("child of {}", code(it.as_str()))));
    facts.extend(thread.fork.iter().map(|it| format!("forked after {}", code(&it.to_string()))));
    let (uuid, head) = (code(&log.uuid.to_string()), code(&head.to_string()));
    facts.push(format!("of the log {uuid}, whose head was {head}"));
    format!("# Thread {}\n\n- {}\n", code(thread.id.as_str()), facts.join("\n- "))
}

/// An entry of the page about a thread.
#[must_use]
pub fn markdown_entry(entry: &Entry, thread: &ThreadId) -> String {
    let (from, to) = ends_plain(entry);
    let (from, to, what) = (name(&from), name(&to), name(entry.name.local()));
    let payload = Payload::of(entry);
    let mut facts = vec![time(entry.at_us)];
    if entry.id.thread != *thread {
        facts.push(format!("shared with {}", code(entry.id.thread.as_str())));
    }
    let of = |it: &EntryId| link(it, &entry.id.thread);
    facts.extend(entry.reply_to.iter().map(|it| format!("answers {}", of(it))));
    let cause = entry.cause.iter().filter(|it| entry.reply_to.as_ref() != Some(it));
    facts.extend(cause.map(|it| format!("caused by {}", of(it))));
    facts.extend(entry.client_id.iter().map(|it| format!("id {}", code(it))));
    if entry.flags.contains(Flags::REFUSED) {
        facts.push("**refused**".to_owned());
    }
    let meta = entry.meta.iter().filter(|_| entry.key.is_none());
    facts.extend(meta.map(|it| format!("with {}", code(&compact(it)))));
    facts.extend(payload.facts);
    let facts = facts.join(" · ");
    format!("\n## {}. {from} → {to}: {what}\n\n{facts}\n{}", entry.id.seq, payload.body)
}

/// A payload on the page: its attributes, which are added to the entry's line of facts, and the
/// text below that line.
struct Payload {
    facts: Vec<String>,
    body: String,
}

impl Payload {
    fn of(entry: &Entry) -> Payload {
        if entry.key.is_some() {
            let body = format!("\n({} bytes, encrypted)\n", entry.body.len());
            return Payload { facts: Vec::new(), body };
        }
        let words = Element::from_canonical(entry.body.clone()).ok();
        let words =
            words.filter(|it| it.has_text_only() && it.attributes().all(|it| is_short(&it)));
        let Some(words) = words else {
            return Payload { facts: Vec::new(), body: format!("\n{}", xml(&entry.body)) };
        };
        let facts = words.attributes().map(|it| format!("{} {}", name(it.local), code(it.value)));
        let said = words.text();
        let body = match said.trim_matches('\n') {
            "" => String::new(),
            said if is_remark(said) => format!("\n{}", quoted(said)),
            said => format!("\n{}", fenced("text", &text(said))),
        };
        Payload { facts: facts.collect(), body }
    }
}

fn is_short(it: &Attribute<'_>) -> bool {
    it.namespace.is_empty() && it.value.len() <= VALUE_BYTES_MAX
}

/// Whether a text may be quoted: it is short, and its spaces don't matter.
fn is_remark(text: &str) -> bool {
    let is_set_in = |it: &str| it.starts_with([' ', '\t']) || it.contains("  ");
    text.lines().count() <= QUOTED_LINES_MAX && !text.lines().any(is_set_in)
}

/// Quotes a text, and keeps its line ends.
fn quoted(text: &str) -> String {
    let mut lines: Vec<&str> = text.split('\n').collect();
    lines.dedup_by(|one, other| one.trim().is_empty() && other.trim().is_empty());
    let line = |(at, it): (usize, &&str)| match (it.trim().is_empty(), lines.get(at + 1)) {
        (true, _) => ">\n".to_owned(),
        (false, Some(next)) if !next.trim().is_empty() => format!("> {}\\\n", escaped(it)),
        (false, _) => format!("> {}\n", escaped(it)),
    };
    lines.iter().enumerate().map(line).collect()
}

/// Escapes all of Markdown's special characters in a line.
fn escaped(words: &str) -> String {
    let words = line(words.trim_end());
    let (mut out, mut before) = (String::with_capacity(words.len() + 8), ' ');
    let begins = mark(&words);
    for (at, it) in words.char_indices() {
        let after = words[at + it.len_utf8()..].chars().next();
        // An underscore within a word isn't special in Markdown.
        let is_within = before.is_alphanumeric() && after.is_some_and(char::is_alphanumeric);
        let is_mark = match it {
            '_' => !is_within,
            it => "\\`*[]<>&~|$".contains(it),
        };
        if is_mark || begins == Some(at) {
            out.push('\\');
        }
        out.push(it);
        before = it;
    }
    out
}

/// The place of the character that makes a line a list item, a heading or a thematic break. None if
/// Markdown would read the line as none of these.
fn mark(line: &str) -> Option<usize> {
    let digits = line.bytes().take_while(u8::is_ascii_digit).count();
    let mut rest = line[digits..].chars();
    let mark = rest.next()?;
    let is_alone = rest.next().is_none_or(char::is_whitespace);
    let begins = match mark {
        '.' | ')' => digits > 0 && is_alone,
        '+' | '-' => digits == 0 && (is_alone || line.starts_with("--")),
        '#' | '=' => digits == 0,
        _ => false,
    };
    begins.then_some(digits)
}

fn xml(bytes: &Bytes) -> String {
    // The margin and the bar aren't needed here: in a fenced block, no text can look like the page
    // around the block.
    let shown = pretty(bytes, Style::PLAIN);
    let bare = |it: &str| {
        let line = it.strip_prefix(MARGIN).or_else(|| it.strip_prefix(BAR)).unwrap_or(it);
        line.to_owned()
    };
    let lines: Vec<String> = shown.lines().map(bare).collect();
    fenced("xml", &lines.join("\n"))
}

/// A text in a fenced block, which is folded if it is long.
fn fenced(language: &str, text: &str) -> String {
    let fence = "`".repeat(longest_run(text).max(2) + 1);
    let block = format!("{fence}{language}\n{text}\n{fence}\n");
    match text.lines().count() {
        lines if lines > OPEN_LINES_MAX => {
            format!("<details>\n<summary>{lines} lines</summary>\n\n{block}\n</details>\n")
        }
        _ => block,
    }
}

/// The number of an entry. For an entry of another thread, the entry's whole id.
fn link(id: &EntryId, within: &ThreadId) -> String {
    if id.thread == *within { id.seq.to_string() } else { code(&id.to_string()) }
}

fn time(at_us: u64) -> String {
    let time = iso_time(at_us);
    format!("{} UTC", time.get(..MILLISECONDS).unwrap_or(&time).replace('T', " "))
}

/// Returns a name unchanged if it is plain: ASCII letters and digits, and between them also `-`,
/// `_`, `.` and spaces. Returns any other name as a code span.
fn name(text: &str) -> String {
    let is_plain = |it: char| it.is_ascii_alphanumeric() || "-_. ".contains(it);
    let ends = |it: char| it.is_ascii_alphanumeric();
    let is_plain = text.starts_with(ends) && text.ends_with(ends) && text.chars().all(is_plain);
    if is_plain { text.to_owned() } else { code(text) }
}

/// A text as a code span, between runs of backticks that are longer than any run in the text.
fn code(text: &str) -> String {
    let text = line(text);
    let fence = "`".repeat(longest_run(&text) + 1);
    let space = if text.starts_with('`') || text.ends_with('`') { " " } else { "" };
    format!("{fence}{space}{text}{space}{fence}")
}

/// The longest run of backticks in a text.
fn longest_run(text: &str) -> usize {
    text.split(|it| it != '`').map(str::len).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::audit::export::tests::kept;

    /// The page of an entry with this payload, without the heading and the time.
    async fn page(body: &str) -> String {
        let body = Bytes::copy_from_slice(body.as_bytes());
        let entry = kept(|it| it.body = body).await;
        let page = markdown_entry(&entry, &entry.id.thread);
        let head = "\n## 1. console → nobody: a\n\n2026-11-21 22:35:36.123 UTC";
        page.strip_prefix(head).unwrap().to_owned()
    }

    #[tokio::test]
    async fn a_page_reads_as_who_said_what() {
        assert_eq!(page("<a></a>").await, "\n");
        assert_eq!(page("<a>Six times seven?</a>").await, "\n\n> Six times seven?\n");
        assert_eq!(
            page("<a turn=\"1\">One.\n\n\nTwo,\nthree.\n</a>").await,
            " · turn `1`\n\n> One.\n>\n> Two,\\\n> three.\n"
        );
        assert_eq!(
            page("<a b=\"1\"><c>x</c></a>").await,
            "\n\n```xml\n<a b=\"1\">\n  <c>x</c>\n</a>\n```\n"
        );
        assert_eq!(page("<a>if x:\n  y</a>").await, "\n\n```text\nif x:\n  y\n```\n");
        let refused = kept(|it| {
            it.flags = Flags::REFUSED;
            it.client_id = Some("mine".into());
            it.meta = Some(Bytes::from_static(b"<key xmlns=\"urn:m\">7</key>"));
        });
        let page = markdown_entry(&*refused.await, &ThreadId::new("sess-b"));
        let facts = " UTC · shared with `sess-a` · id `mine` · **refused** · \
                     with `<key>7</key>`\n\n> 1\n";
        assert!(page.ends_with(facts), "{page}");
    }

    #[tokio::test]
    async fn nothing_that_is_said_is_markup_of_the_page() {
        for (said, shown) in [
            ("# You", "\\# You"),
            ("- [ ] a", "\\- \\[ \\] a"),
            ("12. a", "12\\. a"),
            ("12.5 or -3", "12.5 or -3"),
            ("*a* _b_ a_b `c` ~d~ $e$", "\\*a\\* \\_b\\_ a_b \\`c\\` \\~d\\~ \\$e\\$"),
            ("a &lt;b&gt; &amp;amp;", "a \\<b\\> \\&amp;"),
            ("a | b\n---|---", "a \\| b\\\n> \\---\\|---"),
            ("a\\", "a\\\\"),
            ("a\u{9b}[2J", "a\\&#x9B;\\[2J"),
        ] {
            assert_eq!(page(&format!("<a>{said}</a>")).await, format!("\n\n> {shown}\n"));
        }
    }

    #[tokio::test]
    async fn a_page_cannot_be_broken_out_of() {
        let body = Bytes::from_static(b"<a> ```\n# You</a>");
        let entry = kept(|it| (it.from, it.body) = ("`x`\n# y".into(), body)).await;
        let page = markdown_entry(&entry, &entry.id.thread);
        assert!(page.starts_with("\n## 1. `` `x`&#xA;# y `` → nobody: a\n\n2026-"), "{page}");
        assert!(page.ends_with("\n````text\n ```\n# You\n````\n"), "{page}");
        let body = Bytes::from_static(b"<a><b>\n```\n# You</b></a>");
        let entry = kept(|it| it.body = body).await;
        let page = markdown_entry(&entry, &entry.id.thread);
        assert!(page.ends_with("\n````xml\n<a>\n  <b>\n```\n# You</b>\n</a>\n````\n"), "{page}");
    }

    #[tokio::test]
    async fn what_is_long_is_folded() {
        let long = page(&format!("<a>{}</a>", "line\n".repeat(33))).await;
        let begins = "\n\n<details>\n<summary>33 lines</summary>\n\n```text\nline\n";
        assert!(long.starts_with(begins) && long.ends_with("line\n```\n\n</details>\n"), "{long}");
    }
}
