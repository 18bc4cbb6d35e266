//! Shows entries: as lines for people, and as objects for programs. Widths are in cells, the
//! columns of a terminal.

use crate::audit::payload::{MARGIN, compact, pretty};
use crate::audit::text::{Paint, Style, cells, cut, line};
use crate::entry_json::hex;
use crate::id::{EntryId, ThreadId};
use crate::log::{Entry, Flags};
use crate::wire::{is_failure, iso_time};

/// How many bytes of a digest are shown to people.
const DIGEST_SHOWN: usize = 4;
/// The fewest cells of a payload that are shown, even if the terminal is narrower.
pub(super) const LEFT_MIN: usize = 16;
/// How many characters of a time are shown: down to the seconds, or to the milliseconds.
const SECONDS: usize = "2026-11-21T22:15:36".len();
const MILLISECONDS: usize = "2026-11-21T22:15:36.123".len();

/// An entry with its whole payload: a header line, then the payload, indented by a margin. The text
/// ends in a line end.
#[must_use]
pub fn lines(entry: &Entry, style: Style) -> String {
    below(header(entry, style), entry, style)
}

/// An entry as [`lines`] shows it, but the header says that prompts don't show the entry.
#[must_use]
pub fn hidden_lines(entry: &Entry, style: Style) -> String {
    let mut header = header(entry, style);
    add(&mut header, &style.paint(Paint::Faint, "hidden"));
    below(header, entry, style)
}

/// Adds an entry's `<meta>` and payload below its header.
fn below(header: String, entry: &Entry, style: Style) -> String {
    let mut out = header;
    out.push('\n');
    if let Some(meta) = &entry.meta {
        out.push_str(&style.paint(Paint::Faint, "  with <meta>"));
        out.push('\n');
        out.push_str(&payload(entry.key, meta, style));
    }
    out.push_str(&payload(entry.key, &entry.body, style));
    out
}

/// The facts about an entry, without its `<meta>` and its payload, in one line.
#[must_use]
pub fn header(entry: &Entry, style: Style) -> String {
    let mut out = format!(
        "{}  {}  {}",
        style.paint(Paint::Faint, &time(entry.at_us, MILLISECONDS)),
        style.paint(Paint::Strong, &line(&entry.id.to_string())),
        ends(entry, style),
    );
    let within = &entry.id.thread;
    match (&entry.reply_to, &entry.cause) {
        (Some(it), cause) => {
            add(&mut out, &format!("answers {}", link(it, within)));
            if let Some(cause) = cause.as_ref().filter(|cause| *cause != it) {
                add(&mut out, &format!("caused by {}", link(cause, within)));
            }
        }
        (None, Some(it)) => add(&mut out, &format!("caused by {}", link(it, within))),
        (None, None) => {}
    }
    if let Some(id) = &entry.client_id {
        add(&mut out, &format!("id {}", line(id)));
    }
    if entry.receivers > 1 {
        add(&mut out, &format!("{} receivers", entry.receivers));
    }
    let refused = entry.flags.contains(Flags::REFUSED);
    if entry.flags != Flags::NONE {
        let paint = if refused { Paint::Wrong } else { Paint::Faint };
        add(&mut out, &style.paint(paint, &format!("[{}]", entry.flags)));
    }
    add(&mut out, &style.paint(Paint::Faint, &hex(&entry.digest[..DIGEST_SHOWN])));
    out
}

/// An entry in one line, which is cut at the style's width. The text has no line end.
#[must_use]
pub fn brief(entry: &Entry, style: Style) -> String {
    let at = time(entry.at_us, SECONDS);
    let id = entry.id.to_string();
    let (from, to) = (line(&entry.from), to(entry));
    let mut rest = said(entry);
    let refused = entry.flags.contains(Flags::REFUSED);
    let failed = is_failure(&entry.name, entry.flags, &entry.body);
    if refused || failed {
        rest.insert_str(0, if refused { "refused: " } else { "failed: " });
    }
    let head = format!("{at}  {}  {from} → {to}  ", line(&id));
    let left = style.width.saturating_sub(cells(&head));
    format!(
        "{}  {}  {}  {}",
        style.paint(Paint::Faint, &at),
        style.paint(Paint::Strong, &line(&id)),
        ends(entry, style),
        style.paint(
            if refused || failed { Paint::Wrong } else { Paint::Tag },
            &cut(&rest, left.max(LEFT_MIN))
        ),
    )
}

/// Indents every line by one more margin.
#[must_use]
pub fn margin(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 64);
    for line in text.split('\n') {
        out.push_str(MARGIN);
        out.push_str(line);
        out.push('\n');
    }
    out
}

/// A number with its noun, such as `1 entry` or `2 entries`.
#[must_use]
pub fn count(number: u64, one: &str, many: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { many })
}

/// An entry's id. For an entry of the thread `within`, the id is short, such as `/3`.
#[must_use]
pub fn link(id: &EntryId, within: &ThreadId) -> String {
    if id.thread == *within { format!("/{}", id.seq) } else { line(&id.to_string()).into_owned() }
}

/// The payload in one line.
pub(super) fn said(entry: &Entry) -> String {
    match entry.key {
        Some(key) => encrypted(key, entry.body.len()),
        None => compact(&entry.body),
    }
}

fn payload(key: Option<u64>, bytes: &[u8], style: Style) -> String {
    match key {
        Some(key) => margin(&encrypted(key, bytes.len())),
        None => pretty(bytes, style),
    }
}

fn encrypted(key: u64, bytes: usize) -> String {
    format!("({bytes} bytes, encrypted with key {key})")
}

fn ends(entry: &Entry, style: Style) -> String {
    let (from, to) = (line(&entry.from), to(entry));
    format!("{} → {}", style.paint(Paint::Who, &from), style.paint(Paint::Who, &to))
}

/// The names of the sender and the receiver, not made safe for a terminal.
pub(super) fn ends_plain(entry: &Entry) -> (String, String) {
    let to = entry.to.as_deref().map_or_else(|| to(entry), str::to_owned);
    (entry.from.as_ref().to_owned(), to)
}

/// The receiver's name. For an entry that names no receiver, words such as `nobody`.
pub(super) fn to(entry: &Entry) -> String {
    match (&entry.to, entry.receivers) {
        (Some(to), _) => line(to).into_owned(),
        (None, 0) => "nobody".to_owned(),
        (None, _) => "all who take it".to_owned(),
    }
}

/// When the entry was recorded, to the second.
pub(super) fn time_of(entry: &Entry) -> String {
    seconds(entry.at_us)
}

/// A time in microseconds since 1970, as UTC to the second.
pub(super) fn seconds(at_us: u64) -> String {
    time(at_us, SECONDS)
}

/// A time in UTC, cut to this many characters, with a `Z` at its end.
fn time(at_us: u64, characters: usize) -> String {
    let time = iso_time(at_us);
    format!("{}Z", time.get(..characters).unwrap_or(&time))
}

/// Adds a fact to a line, two spaces after the text before it.
pub(super) fn add(out: &mut String, what: &str) {
    out.push_str("  ");
    out.push_str(what);
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use bytes::Bytes;

    use serde_json::json;

    use super::*;
    use crate::entry_json::json;
    use crate::log::{Batch, Draft, Log as _, MemoryLog, NewThread};
    use crate::name::Name;

    async fn kept(change: impl FnOnce(&mut Draft)) -> Arc<Entry> {
        let log = MemoryLog::new();
        let id = ThreadId::new("sess-a");
        let draft = |seq| {
            let (from, name) = ("console".into(), Name::of("urn:x", "a"));
            let body = Bytes::from_static(b"<a xmlns=\"urn:x\"><b>\xe6\x97\xa5\xc2\x9b</b></a>");
            let at_us = 1_795_300_536_123_456;
            Draft::new(EntryId::new(&id, seq), at_us, from, name, body)
        };
        let mut second = draft(2);
        change(&mut second);
        let threads = vec![NewThread { id: id.clone(), parent: None, fork: None }];
        let batch = Batch { threads, entries: vec![draft(1), second], marks: Vec::new() };
        log.append(batch).await.unwrap().entries[1].clone()
    }

    fn first() -> EntryId {
        EntryId::new(&ThreadId::new("sess-a"), 1)
    }

    #[tokio::test]
    async fn an_entry_is_shown_whole_behind_a_margin() {
        let entry = kept(|it| {
            it.to = Some("calc".into());
            (it.cause, it.reply_to) = (Some(first()), Some(first()));
            it.flags = Flags::REFUSED.with(Flags::FROM_IDENTITY);
            it.client_id = Some("a\nb".into());
        });
        let entry = entry.await;
        let digest = hex(&entry.digest[..4]);
        assert_eq!(
            lines(&entry, Style::PLAIN),
            format!(
                "2026-11-21T22:35:36.123Z  sess-a/2  console → calc  answers /1  id a&#xA;b  \
                 [from-identity refused]  {digest}\n  \
                 <a xmlns=\"urn:x\">\n    <b>日&#x9B;</b>\n  </a>\n"
            )
        );
    }

    #[tokio::test]
    async fn no_text_passes_for_a_header() {
        let text = Bytes::from_static(b"<a>\n2026-11-21T22:35:36.123Z  sess-a/3  core</a>");
        let entry = kept(|it| it.body = text).await;
        let shown = lines(&entry, Style::PLAIN);
        let headers = shown.lines().filter(|it| !it.starts_with(MARGIN) && !it.starts_with("│ "));
        assert_eq!(headers.count(), 1, "{shown}");
        let (header, rest) = shown.split_once('\n').unwrap();
        let hidden = hidden_lines(&entry, Style::PLAIN);
        assert_eq!(hidden, format!("{header}  hidden\n{rest}"));
    }

    #[tokio::test]
    async fn a_brief_entry_fits_the_width() {
        let entry = kept(|it| it.body = format!("<a>{}</a>", "日".repeat(100)).into()).await;
        for width in [80, 81, 120] {
            let brief = brief(&entry, Style { width, ..Style::PLAIN });
            let cells = cells(&brief);
            assert!(brief.ends_with('…') && (width - 1..=width).contains(&cells), "{brief}");
        }
    }

    #[tokio::test]
    async fn an_object_has_the_very_payload() {
        let entry = kept(|it| it.cause = Some(first())).await;
        let object = json(&entry);
        assert_eq!(object["payload"].as_str().unwrap().as_bytes(), &entry.body[..]);
        assert_eq!((&object["cause"], &object["seq"]), (&json!("sess-a/1"), &json!(2)));
        assert_eq!(object["flags"], json!([]));
        let bytes = Bytes::from_static(b"\xff\x00");
        let secret = kept(|it| (it.key, it.body) = (Some(3), bytes)).await;
        let object = json(&secret);
        assert_eq!((&object["payload"], &object["payload_hex"]), (&json!(null), &json!("ff00")));
        let shown = lines(&secret, Style::PLAIN);
        assert!(shown.ends_with("\n  (2 bytes, encrypted with key 3)\n"), "{shown}");
    }
}
