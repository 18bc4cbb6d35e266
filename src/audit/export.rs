//! Writes a thread as one XML document in the namespace [`EXPORT`]. A program can recompute the
//! digests from this document. `docs/audit.md` describes the document.

use std::fmt::Write as _;

use crate::entry_json::hex;
use crate::hidden_characters::is_hidden;
use crate::id::{EntryId, ThreadId};
use crate::limits::XmlLimits;
use crate::log::{Entry, Error, Head, Identity, Log, Pages, ThreadRecord};
use crate::wire::iso_time;
use crate::xml::{self, Profile, escape_attribute};

/// The namespace of an exported thread.
pub const EXPORT: &str = "https://xml-pipeline.org/ns/export/v1";

/// What an export has, if it isn't one whole thread.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Selected {
    /// How many threads it has entries of.
    pub threads: usize,
    /// How many entries it has.
    pub entries: u64,
    /// The identities whose sessions it has. Empty if it doesn't go by identities.
    pub identities: Vec<String>,
    /// The time from which on it has entries, in microseconds since the epoch.
    pub since_us: Option<u64>,
    /// The time before which it has entries, in microseconds since the epoch.
    pub before_us: Option<u64>,
}

impl Selected {
    /// Whether the export has an entry of a thread that it has.
    #[must_use]
    pub fn wants(&self, entry: &Entry) -> bool {
        self.since_us.is_none_or(|it| entry.at_us >= it)
            && self.before_us.is_none_or(|it| entry.at_us < it)
    }

    /// The number of a thread's entries that the export has.
    ///
    /// # Errors
    /// If the log can't be read.
    pub async fn count(&self, log: &dyn Log, thread: &ThreadRecord) -> Result<u64, Error> {
        let mut pages = Pages::of(log, &thread.id).upto(thread.last_seq);
        let mut count = 0;
        while let Some(page) = pages.next().await? {
            count += page.iter().filter(|it| self.wants(it)).count() as u64;
        }
        Ok(count)
    }

    /// The beginning of such an export: the log, its head, and what was selected.
    #[must_use]
    pub fn xml_head(&self, log: &Identity, head: Head) -> String {
        let mut out = root(log, head);
        attribute(&mut out, "threads", &self.threads.to_string());
        attribute(&mut out, "entries", &self.entries.to_string());
        let identities = self.identities.join(" ");
        optional(&mut out, "identities", Some(&*identities).filter(|it| !it.is_empty()));
        optional(&mut out, "since", self.since_us.map(iso_time).as_deref());
        optional(&mut out, "until", self.before_us.map(iso_time).as_deref());
        out.push_str(">\n");
        out
    }
}

fn root(log: &Identity, head: Head) -> String {
    let mut out = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<x:export");
    attribute(&mut out, "xmlns:x", EXPORT);
    attribute(&mut out, "log", &log.uuid.to_string());
    attribute(&mut out, "head", &head.to_string());
    out
}

/// The beginning of an export: the log, its head, and the thread.
#[must_use]
pub fn xml_head(thread: &ThreadRecord, log: &Identity, head: Head) -> String {
    let mut out = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<x:export");
    attribute(&mut out, "xmlns:x", EXPORT);
    attribute(&mut out, "log", &log.uuid.to_string());
    attribute(&mut out, "head", &head.to_string());
    attribute(&mut out, "thread", thread.id.as_str());
    attribute(&mut out, "state", thread.state.as_str());
    attribute(&mut out, "entries", &thread.last_seq.to_string());
    out.push_str(">\n");
    out
}

/// The element with the origin of a thread, which stands before the first entry of that thread. The
/// export of a fork also has such an element for the fork's source.
#[must_use]
pub fn xml_thread(thread: &ThreadRecord) -> String {
    let mut out = String::from("  <x:thread");
    attribute(&mut out, "id", thread.id.as_str());
    optional(&mut out, "parent", thread.parent.as_ref().map(ThreadId::as_str));
    link(&mut out, "fork", thread.fork.as_ref());
    out.push_str("/>\n");
    out
}

/// An entry: its digest, and all that the digest covers except the thread's origin.
#[must_use]
pub fn xml_entry(entry: &Entry) -> String {
    let mut out = String::from("  <x:entry");
    attribute(&mut out, "thread", entry.id.thread.as_str());
    attribute(&mut out, "seq", &entry.id.seq.to_string());
    attribute(&mut out, "position", &entry.position.to_string());
    attribute(&mut out, "time", &iso_time(entry.at_us));
    attribute(&mut out, "from", &entry.from);
    optional(&mut out, "to", entry.to.as_deref());
    attribute(&mut out, "namespace", entry.name.namespace());
    attribute(&mut out, "name", entry.name.local());
    link(&mut out, "cause", entry.cause.as_ref());
    link(&mut out, "reply-to", entry.reply_to.as_ref());
    attribute(&mut out, "flags", &entry.flags.bits().to_string());
    attribute(&mut out, "says", &entry.flags.to_string());
    attribute(&mut out, "receivers", &entry.receivers.to_string());
    optional(&mut out, "client-id", entry.client_id.as_deref());
    optional(&mut out, "key", entry.key.map(|it| it.to_string()).as_deref());
    attribute(&mut out, "digest", &hex(&entry.digest));
    out.push('>');
    let encrypted = entry.key.is_some();
    if let Some(meta) = &entry.meta {
        held(&mut out, "meta", meta, encrypted);
    }
    held(&mut out, "payload", &entry.body, encrypted);
    out.push_str("</x:entry>\n");
    out
}

/// The end of an export.
#[must_use]
pub fn xml_foot() -> &'static str {
    "</x:export>\n"
}

/// Writes bytes of the log into an element. The bytes are written as XML if they are whole elements
/// and a reader gets the same canonical bytes again. Any other bytes are written in hexadecimal.
fn held(out: &mut String, name: &str, bytes: &[u8], encrypted: bool) {
    let shown = std::str::from_utf8(bytes).ok().filter(|_| !encrypted).and_then(same_again);
    // Writing to a string can't fail.
    match shown {
        Some(shown) => write!(out, "<x:{name}>{shown}</x:{name}>"),
        None => write!(out, "<x:{name} in=\"hex\">{}</x:{name}>", hex(bytes)),
    }
    .unwrap_or_default();
}

/// Writes canonical text with character references for hidden characters. `None` if a reader of the
/// result would not get the same canonical text again.
fn same_again(canonical: &str) -> Option<String> {
    let mut shown = String::with_capacity(canonical.len());
    for it in canonical.chars() {
        match it {
            // Line ends and tabs stand for themselves in canonical bytes, too.
            '\n' | '\t' => shown.push(it),
            it if is_hidden(it) => reference(&mut shown, it),
            it => shown.push(it),
        }
    }
    let within = |text: &str| {
        let whole = format!("<x:x xmlns:x=\"{EXPORT}\">{text}</x:x>");
        xml::read(&whole, Profile::Wire, &XmlLimits::FILE).ok()
    };
    let read = within(&shown)?;
    let again: Vec<u8> = read.elements().flat_map(|it| it.canonical().to_vec()).collect();
    (again == canonical.as_bytes()).then_some(shown)
}

fn link(out: &mut String, name: &str, to: Option<&EntryId>) {
    optional(out, name, to.map(ToString::to_string).as_deref());
}

fn optional(out: &mut String, name: &str, value: Option<&str>) {
    if let Some(value) = value {
        attribute(out, name, value);
    }
}

fn attribute(out: &mut String, name: &str, value: &str) {
    let mut escaped = String::with_capacity(value.len());
    escape_attribute(value, &mut escaped);
    // Writing to a string can't fail.
    write!(out, " {name}=\"").unwrap_or_default();
    for it in escaped.chars() {
        match it {
            // Line ends and tabs are escaped already. XML doesn't allow the other characters here,
            // and a pump's doors let none in.
            '\0'..='\u{1f}' | '\u{fffe}' | '\u{ffff}' => out.push('\u{fffd}'),
            it if is_hidden(it) => reference(out, it),
            it => out.push(it),
        }
    }
    out.push('"');
}

fn reference(out: &mut String, it: char) {
    // Writing to a string can't fail.
    write!(out, "&#x{:X};", u32::from(it)).unwrap_or_default();
}

#[cfg(test)]
pub(super) mod tests {
    use std::sync::Arc;

    use bytes::Bytes;

    use super::*;
    use crate::log::{Batch, Draft, Flags, MemoryLog, NewThread};
    use crate::name::Name;

    pub(crate) async fn kept(change: impl FnOnce(&mut Draft)) -> Arc<Entry> {
        let log = MemoryLog::new();
        let id = ThreadId::new("sess-a");
        let body = Bytes::from_static(b"<a xmlns=\"urn:x\">1</a>");
        let at_us = 1_795_300_536_123_456;
        let name = Name::of("urn:x", "a");
        let mut draft = Draft::new(EntryId::new(&id, 1), at_us, "console".into(), name, body);
        change(&mut draft);
        let threads = vec![NewThread { id, parent: None, fork: None }];
        let batch = Batch { threads, entries: vec![draft], marks: Vec::new() };
        log.append(batch).await.unwrap().entries[0].clone()
    }

    /// Exports an entry with this payload, checks that the document is well-formed, and returns the
    /// text between `<x:payload` and `</x:payload>`.
    async fn payload(body: &'static [u8]) -> String {
        let entry = xml_entry(&*kept(|it| it.body = Bytes::from_static(body)).await);
        let whole = format!("<x:export xmlns:x=\"{EXPORT}\">{entry}</x:export>");
        xml::read(&whole, Profile::Wire, &XmlLimits::FILE).unwrap();
        let (_, rest) = entry.split_once("<x:payload").unwrap();
        rest.split_once("</x:payload>").unwrap().0.to_owned()
    }

    #[tokio::test]
    async fn an_entry_is_exported_with_all_that_its_digest_is_over() {
        let entry = kept(|it| {
            it.to = Some("a\"<&\n".into());
            it.client_id = Some("mine\u{9b}".into());
            it.flags = Flags::FROM_IDENTITY.with(Flags::TO_GIVEN);
            it.meta = Some(Bytes::from_static(b"<m xmlns=\"urn:m\"></m><n xmlns=\"\"></n>"));
        });
        let entry = entry.await;
        assert_eq!(
            xml_entry(&entry),
            format!(
                "  <x:entry thread=\"sess-a\" seq=\"1\" position=\"1\" \
                 time=\"2026-11-21T22:35:36.123456Z\" from=\"console\" \
                 to=\"a&quot;&lt;&amp;&#xA;\" namespace=\"urn:x\" name=\"a\" flags=\"17\" \
                 says=\"from-identity to-given\" receivers=\"0\" client-id=\"mine&#x9B;\" \
                 digest=\"{}\"><x:meta in=\"hex\">{}</x:meta>\
                 <x:payload><a xmlns=\"urn:x\">1</a></x:payload></x:entry>\n",
                hex(&entry.digest),
                hex(b"<m xmlns=\"urn:m\"></m><n xmlns=\"\"></n>"),
            )
        );
    }

    #[tokio::test]
    async fn a_payload_is_exported_as_it_stands_or_in_digits() {
        for same in ["<a xmlns=\"urn:x\">1</a>", "<b>\n\t&amp; no namespace</b>"] {
            assert_eq!(payload(same.as_bytes()).await, format!(">{same}"));
        }
        assert_eq!(payload(b"<a>\xc2\x9b2J</a>").await, "><a>&#x9B;2J</a>");
        for other in
            [&b"</x:payload>"[..], b"\xff", b"<a/>", b"<!-- no --><a></a>", b"<a b='1'></a>"]
        {
            assert_eq!(payload(other).await, format!(" in=\"hex\">{}", hex(other)));
        }
        let name = "<a\u{e0101}></a\u{e0101}>";
        assert_eq!(payload(name.as_bytes()).await, format!(" in=\"hex\">{}", hex(name.as_bytes())));
    }
}
