//! Reads an exported document again, and checks it: each digest is computed anew, and what entries
//! say of each other has to fit.

use std::collections::{BTreeMap, HashMap};

use bytes::Bytes;

use crate::audit::export::EXPORT;
use crate::entry_json::hex;
use crate::id::{EntryId, ThreadId};
use crate::limits::XmlLimits;
use crate::log::{Draft, Entry, Flags, digest_of};
use crate::name::Name;
use crate::xml::{self, Profile, View};

/// How many findings are told one by one.
const FINDINGS_MAX: usize = 1_000;

/// What an exported document holds, and what is wrong with it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ExportReport {
    /// The UUID of the log that the document was written from.
    pub log: String,
    /// The head of that log when the document was written.
    pub head: String,
    /// How many threads it has entries of.
    pub threads: usize,
    /// How many entries it has.
    pub entries: usize,
    /// What is wrong, in the order of the document.
    pub findings: Vec<String>,
    /// How many further findings there were.
    pub findings_more: usize,
}

impl ExportReport {
    /// Whether nothing is wrong.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        self.findings.is_empty()
    }

    fn wrong(&mut self, what: String) {
        match self.findings.len() < FINDINGS_MAX {
            true => self.findings.push(what),
            false => self.findings_more += 1,
        }
    }
}

/// The parent and the fork link of a thread.
type Origin = (Option<ThreadId>, Option<EntryId>);

/// Reads and checks an exported document.
///
/// # Errors
/// If the text isn't such a document.
pub fn check_export(text: &str) -> Result<ExportReport, String> {
    let root = xml::read(text, Profile::Wire, &XmlLimits::FILE).map_err(|it| it.to_string())?;
    if !root.is(EXPORT, "export") {
        return Err(format!("its root is <{}>, and no <export> of {EXPORT}", root.local()));
    }
    let of = |name: &str| root.attribute(name).unwrap_or_default().to_owned();
    let mut report = ExportReport { log: of("log"), head: of("head"), ..ExportReport::default() };
    let mut origins: HashMap<ThreadId, Origin> = HashMap::new();
    let mut last: BTreeMap<ThreadId, u64> = BTreeMap::new();
    // An export that was limited to a time may lack entries of its threads.
    let is_whole = ["since", "until"].iter().all(|it| root.attribute(it).is_none());
    for child in root.elements() {
        match child.local() {
            "thread" => {
                let id = ThreadId::new(child.attribute("id").unwrap_or_default());
                let parent = child.attribute("parent").map(ThreadId::new);
                let fork = child.attribute("fork").and_then(|it| it.parse().ok());
                origins.insert(id, (parent, fork));
            }
            "entry" => match read(child) {
                Ok(entry) => {
                    report.entries += 1;
                    check(&entry, &origins, is_whole, &mut last, &mut report);
                }
                Err(why) => {
                    let of = |name: &str| child.attribute(name).unwrap_or("?");
                    report.wrong(format!("{}/{}: {why}", of("thread"), of("seq")));
                }
            },
            other => report.wrong(format!("<{other}> has no meaning here")),
        }
    }
    report.threads = last.len();
    let said = root.attribute("entries").and_then(|it| it.parse::<usize>().ok());
    if let Some(said) = said.filter(|it| *it != report.entries) {
        report.wrong(format!("it says that it has {said} entries, and has {}", report.entries));
    }
    Ok(report)
}

/// Checks one entry. If the document has whole threads, no number may be left out.
fn check(
    entry: &Entry,
    origins: &HashMap<ThreadId, Origin>,
    is_whole: bool,
    last: &mut BTreeMap<ThreadId, u64>,
    report: &mut ExportReport,
) {
    let Entry { id, .. } = entry;
    let Some((parent, fork)) = origins.get(&id.thread) else {
        return report.wrong(format!("{id}: there is no <thread> before it that says its origin"));
    };
    let digest = digest_of(entry, parent.as_ref(), fork.as_ref());
    if digest != entry.digest {
        let text = "its digest is another one, so the entry was changed";
        report.wrong(format!("{id}: {text}: {}", hex(&digest)));
    }
    let first = fork.as_ref().map_or(0, |it| it.seq);
    let before = last.insert(id.thread.clone(), id.seq).unwrap_or(first);
    if id.seq <= before || is_whole && id.seq != before + 1 {
        report.wrong(format!("{id}: it follows {before}, so entries are missing or moved"));
    }
}

/// Reads an entry with the digest that the document says.
fn read(it: View<'_>) -> Result<Entry, String> {
    let text = |name: &str| it.attribute(name).ok_or_else(|| format!("it has no {name}"));
    let number = |name: &str| -> Result<u64, String> {
        text(name)?.parse().map_err(|_| format!("its {name} is no number"))
    };
    let link = |name: &str| -> Result<Option<EntryId>, String> {
        let link = it.attribute(name).map(str::parse::<EntryId>).transpose();
        link.map_err(|_| format!("its {name} is no THREAD/SEQ"))
    };
    let time: jiff::Timestamp = text("time")?.parse().map_err(|_| "its time is none".to_owned())?;
    let held = |name: &str| -> Result<Option<Bytes>, String> {
        let Some(held) = it.elements().find(|it| it.is(EXPORT, name)) else { return Ok(None) };
        match held.attribute("in") {
            Some("hex") => bytes(&held.text()).map(Some),
            _ => Ok(Some(held.elements().flat_map(|it| it.canonical().to_vec()).collect())),
        }
    };
    let flags = u32::try_from(number("flags")?).map_err(|_| "its flags are too many".to_owned())?;
    let receivers = u32::try_from(number("receivers")?).unwrap_or(u32::MAX);
    let digest = bytes(text("digest")?)?;
    let id = EntryId::new(&ThreadId::new(text("thread")?), number("seq")?);
    let at_us =
        u64::try_from(time.as_microsecond()).map_err(|_| "its time is too early".to_owned())?;
    let name = Name::new(text("namespace")?.to_owned(), text("name")?.to_owned());
    let body = held("payload")?.ok_or_else(|| "it has no payload".to_owned())?;
    let draft = Draft {
        to: it.attribute("to").map(Into::into),
        cause: link("cause")?,
        reply_to: link("reply-to")?,
        flags: Flags::of_bits(flags),
        receivers,
        client_id: it.attribute("client-id").map(Into::into),
        meta: held("meta")?,
        key: it.attribute("key").map(str::parse).transpose().map_err(|_| "its key".to_owned())?,
        ..Draft::new(id, at_us, text("from")?.into(), name, body)
    };
    let digest = (&*digest).try_into().map_err(|_| "its digest isn't 32 bytes".to_owned())?;
    let mut entry = draft.seal(digest);
    entry.position = number("position")?;
    Ok(entry)
}

/// Reads bytes in hexadecimal.
fn bytes(text: &str) -> Result<Bytes, String> {
    let wrong = || "it holds digits that aren't hexadecimal".to_owned();
    let text = text.trim().as_bytes();
    let digit = |it: u8| char::from(it).to_digit(16).and_then(|it| u8::try_from(it).ok());
    let pair = |it: &[u8]| match it {
        [high, low] => Some(digit(*high)? << 4 | digit(*low)?),
        _ => None,
    };
    text.chunks(2)
        .map(|it| pair(it).ok_or_else(wrong))
        .collect::<Result<Vec<u8>, _>>()
        .map(Bytes::from)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::audit::export::{tests::kept, xml_entry, xml_foot};

    async fn document(change: impl FnOnce(&mut Draft)) -> String {
        let entry = xml_entry(&*kept(change).await);
        let head = format!(
            "<x:export xmlns:x=\"{EXPORT}\" log=\"l\" head=\"1:2\" thread=\"sess-a\" entries=\"1\">"
        );
        format!("{head}<x:thread id=\"sess-a\"/>{entry}{}", xml_foot())
    }

    #[tokio::test]
    async fn a_document_is_as_it_was_written() {
        for body in [&b"<a xmlns=\"urn:x\">1 &amp; 2\t</a>"[..], b"\xff\x00 no element"] {
            let text = document(|it| {
                it.body = Bytes::from_static(body);
                it.to = Some("b\u{e9}".into());
                it.meta = Some(Bytes::from_static(b"<m xmlns=\"urn:m\"></m>"));
            });
            let report = check_export(&text.await).unwrap();
            assert_eq!(report.findings, [""; 0]);
            assert_eq!((report.entries, report.threads), (1, 1));
        }
    }

    #[tokio::test]
    async fn a_change_is_found_wherever_it_is() {
        let text = document(|_| {}).await;
        for (from, to, said) in [
            (">1<", ">2<", "its digest is another one"),
            ("from=\"console\"", "from=\"root\"", "its digest is another one"),
            ("<x:thread id=\"sess-a\"/>", "<x:thread id=\"sess-a\" parent=\"b\"/>", "its digest"),
            ("<x:thread id=\"sess-a\"/>", "", "there is no <thread> before it"),
            ("entries=\"1\"", "entries=\"2\"", "it says that it has 2 entries, and has 1"),
            ("seq=\"1\"", "seq=\"3\"", "its digest is another one"),
        ] {
            assert!(text.contains(from), "{from} in {text}");
            let report = check_export(&text.replacen(from, to, 1)).unwrap();
            let found = report.findings.first().is_some_and(|it| it.contains(said));
            assert!(found, "{from}: {report:?}");
        }
        // Only an export of a range of time may lack entries of its threads.
        let later = text.replacen("seq=\"1\"", "seq=\"3\"", 1);
        for (head, may_lack) in [
            ("thread=\"sess-a\"", false),
            ("threads=\"1\"", false),
            ("threads=\"1\" identities=\"ada\"", false),
            ("threads=\"1\" since=\"2026-11-30T00:00:00Z\"", true),
            ("threads=\"1\" until=\"2026-11-30T00:00:00Z\"", true),
        ] {
            let report = check_export(&later.replacen("thread=\"sess-a\"", head, 1)).unwrap();
            let is_missing = |it: &String| it.contains("entries are missing");
            assert_ne!(report.findings.iter().any(is_missing), may_lack, "{head}: {report:?}");
        }
        assert!(check_export("<a/>").is_err() && check_export("no XML").is_err());
    }
}
