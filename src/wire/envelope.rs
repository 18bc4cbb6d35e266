//! The `<message>` around a payload: read from a sender, written to a receiver.

use bytes::Bytes;

use crate::id::EntryId;
use crate::limits::Limits;
use crate::name::{CORE, ENVELOPE};
use crate::wire::{Code, Fault, quoted};
use crate::xml::{Child, Element, View, escape_attribute, escape_text};

/// What a sender sent: a payload, and what it said about it.
#[derive(Clone, Debug)]
pub struct Envelope {
    /// Who it says it is; the pump knows better and compares.
    pub from: Option<String>,
    /// The listener it names.
    pub to: Option<String>,
    /// The thread it names; none opens a session.
    pub thread: Option<String>,
    /// Its own id for the message.
    pub id: Option<String>,
    /// What else stood in `<meta>`, canonical, one element after another.
    pub meta: Option<Bytes>,
    /// The payload.
    pub payload: Element,
}

impl Envelope {
    /// Opens a `<message>`; any other element is a bare payload, which opens a session.
    ///
    /// # Errors
    /// `P0008` where it is not an envelope, `P0010` where its `<meta>` holds the pump's own words.
    pub fn open(document: &Element, limits: &Limits) -> Result<Envelope, Fault> {
        if !document.is(ENVELOPE, "message") {
            return Ok(Envelope::bare(document.clone()));
        }
        refuse_attributes(document.view())?;
        let mut parts = elements(document.view())?;
        let meta = parts.next().filter(|it| it.is(ENVELOPE, "meta"));
        let meta = meta.ok_or_else(|| wrong(document.view(), "<meta> comes first in <message>"))?;
        let payload = parts
            .next()
            .ok_or_else(|| wrong(document.view(), "<message> holds no payload after its <meta>"))?;
        if let Some(second) = parts.next() {
            return Err(wrong(second, "<message> holds more than one payload"));
        }
        if payload.is(ENVELOPE, "message") {
            return Err(wrong(payload, "a <message> is no payload"));
        }
        let mut envelope = Envelope::bare(payload.to_element());
        match envelope.read_meta(meta, limits) {
            Ok(()) => Ok(envelope),
            Err(fault) => {
                let fits = |it: &&str| it.len() <= limits.client_id_bytes_max;
                Err(fault.of_client(envelope.id.as_deref().filter(fits)))
            }
        }
    }

    /// A payload about which nothing is said.
    #[must_use]
    pub fn bare(payload: Element) -> Envelope {
        Envelope { from: None, to: None, thread: None, id: None, meta: None, payload }
    }

    /// Writes what [`open`](Envelope::open) reads: a `<message>`, or the bare payload where there
    /// is nothing to say about it.
    pub fn write(&self, out: &mut String) {
        let told = [
            ("from", self.from.as_deref()),
            ("to", self.to.as_deref()),
            ("thread", self.thread.as_deref()),
            ("id", self.id.as_deref()),
        ];
        if told.iter().all(|(_, it)| it.is_none()) && self.meta.is_none() {
            out.push_str(&String::from_utf8_lossy(&self.payload.canonical()));
            return;
        }
        open_message(told, out);
        close_message(self.meta.as_deref(), &self.payload, out);
    }

    fn read_meta(&mut self, meta: View<'_>, limits: &Limits) -> Result<(), Fault> {
        refuse_attributes(meta)?;
        let mut foreign = Vec::new();
        for element in elements(meta)? {
            if element.namespace() == CORE {
                let text = format!("<{}> in <meta> is the pump's own", quoted(element.local()));
                return Err(Fault::new(Code::Reserved, text).at(element.place()));
            }
            if element.namespace() != ENVELOPE {
                foreign.extend_from_slice(&element.canonical_within(ENVELOPE));
                continue;
            }
            let slot = match element.local() {
                "from" => &mut self.from,
                "to" => &mut self.to,
                "thread" => &mut self.thread,
                "id" => &mut self.id,
                other => {
                    let text = format!("<meta> holds from, to, thread and id, but no <{other}>");
                    return Err(wrong(element, &text));
                }
            };
            refuse_attributes(element)?;
            let text = element.text().trim().to_owned();
            if element.elements().next().is_some() || text.is_empty() {
                return Err(wrong(element, &format!("<{}> holds a text", element.local())));
            }
            if slot.replace(text).is_some() {
                return Err(wrong(element, &format!("<meta> holds <{}> twice", element.local())));
            }
        }
        let id_max = limits.client_id_bytes_max;
        if self.id.as_ref().is_some_and(|it| it.len() > id_max) {
            let text = format!("<id> is longer than client_id_bytes_max, {id_max}");
            return Err(Fault::new(Code::Limit, text).at(meta.place()));
        }
        self.meta = (!foreign.is_empty()).then(|| foreign.into());
        Ok(())
    }
}

/// The envelope's own elements have none: what is said there would be lost.
fn refuse_attributes(of: View<'_>) -> Result<(), Fault> {
    match of.attributes().next() {
        Some(found) => {
            Err(wrong(of, &format!("<{}> has no attribute {}", of.local(), quoted(found.local))))
        }
        None => Ok(()),
    }
}

/// The elements of one that holds nothing else but white space.
fn elements(of: View<'_>) -> Result<impl Iterator<Item = View<'_>>, Fault> {
    let is_blank = |it: &str| it.trim_matches([' ', '\t', '\r', '\n']).is_empty();
    if of.children().any(|it| matches!(it, Child::Text(text) if !is_blank(text))) {
        return Err(wrong(of, &format!("<{}> holds elements, no text", of.local())));
    }
    Ok(of.elements())
}

fn wrong(at: View<'_>, text: &str) -> Fault {
    Fault {
        path: Some(quoted(&at.path()).into_owned()),
        ..Fault::new(Code::Envelope, text).at(at.place())
    }
}

/// What the pump writes around a payload.
#[derive(Clone, Copy, Debug)]
pub struct Outside<'a> {
    /// Who it is from.
    pub from: &'a str,
    /// Who it is for.
    pub to: Option<&'a str>,
    /// The thread, where there is one.
    pub thread: Option<&'a str>,
    /// The entry that the log has of it, where it is in the log.
    pub entry: Option<Facts<'a>>,
    /// Why somebody is shown it who neither sent it nor is sent it.
    pub shown: Option<Shown<'a>>,
    /// What the sender put into `<meta>` beside the envelope's own, canonical.
    pub meta: Option<&'a [u8]>,
}

/// Why a message is shown to somebody, for the `<followed>` in its `<meta>`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "a door says both")]
pub enum Shown<'a> {
    /// They follow its thread.
    Followed,
    /// They follow its thread, and it is live: it is in no log.
    Live {
        /// The entry that was being handled when it was shown.
        cause: &'a EntryId,
    },
}

/// What the log knows of an entry, for the `<entry>` in its `<meta>`.
#[derive(Clone, Copy, Debug)]
pub struct Facts<'a> {
    /// Its id.
    pub id: &'a EntryId,
    /// The entry that caused it.
    pub cause: Option<&'a EntryId>,
    /// Microseconds since the epoch.
    pub at_us: u64,
    /// Whether it tells of a failure: a fault, an `Err`, an agent that stopped.
    pub failed: bool,
}

/// Writes the `<message>` around the canonical bytes of a payload, without a line end.
pub fn enclose(outside: &Outside<'_>, payload: &Element, out: &mut String) {
    let told = [("from", Some(outside.from)), ("to", outside.to), ("thread", outside.thread)];
    open_message(told, out);
    if let Some(facts) = outside.entry {
        write_facts(facts, out);
    }
    match outside.shown {
        None => {}
        Some(Shown::Followed) => own("followed", &[], out),
        Some(Shown::Live { cause }) => {
            own("followed", &[("cause", &cause.to_string()), ("live", "true")], out);
        }
    }
    close_message(outside.meta, payload, out);
}

fn open_message<const N: usize>(told: [(&str, Option<&str>); N], out: &mut String) {
    out.push_str("<message xmlns=\"");
    out.push_str(ENVELOPE);
    out.push_str("\"><meta>");
    for (name, text) in told.into_iter().filter_map(|(name, it)| Some((name, it?))) {
        out.push('<');
        out.push_str(name);
        out.push('>');
        escape_text(text, out);
        out.push_str("</");
        out.push_str(name);
        out.push('>');
    }
}

fn close_message(meta: Option<&[u8]>, payload: &Element, out: &mut String) {
    out.push_str(&String::from_utf8_lossy(meta.unwrap_or_default()));
    out.push_str("</meta>");
    write_payload(payload, out);
    out.push_str("</message>");
}

fn write_facts(facts: Facts<'_>, out: &mut String) {
    let (id, time) = (facts.id.to_string(), iso_time(facts.at_us));
    let cause = facts.cause.map(ToString::to_string);
    let cause = cause.as_deref().map(|it| ("cause", it));
    let failed = facts.failed.then_some(("failed", "true"));
    let known = [cause, failed, Some(("id", &id)), Some(("time", &time))];
    let told: Vec<_> = known.into_iter().flatten().collect();
    own("entry", &told, out);
}

/// Writes an element of the pump's own, which no sender can put into a `<meta>`.
fn own(local: &str, attributes: &[(&str, &str)], out: &mut String) {
    out.push('<');
    out.push_str(local);
    out.push_str(" xmlns=\"");
    out.push_str(CORE);
    out.push('"');
    for (name, text) in attributes {
        out.push(' ');
        out.push_str(name);
        out.push_str("=\"");
        escape_attribute(text, out);
        out.push('"');
    }
    out.push_str("></");
    out.push_str(local);
    out.push('>');
}

/// A payload whose root has no prefix declares its namespace itself, so its canonical bytes stand
/// within `<message>` as they are; any other is written for the place.
fn write_payload(payload: &Element, out: &mut String) {
    let bytes = if payload.prefix().is_empty() && !payload.namespace().is_empty() {
        payload.canonical()
    } else {
        payload.view().canonical_within(ENVELOPE)
    };
    out.push_str(&String::from_utf8_lossy(&bytes));
}

/// `2026-11-21T22:15:36.123456Z`, from microseconds since the epoch.
#[must_use]
pub fn iso_time(at_us: u64) -> String {
    let at = i64::try_from(at_us).ok().and_then(|it| jiff::Timestamp::from_microsecond(it).ok());
    at.unwrap_or(jiff::Timestamp::MAX).strftime("%Y-%m-%dT%H:%M:%S.%6fZ").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::XmlLimits;
    use crate::xml::{Profile, read};

    /// What is enclosed is the same element to whoever opens it.
    #[test]
    fn a_payload_is_the_same_inside_its_envelope() {
        let xsi = "http://www.w3.org/2001/XMLSchema-instance";
        for text in [
            "<a xmlns='u'><b/></a>".to_owned(),
            "<p:a xmlns:p='u'><b/></p:a>".to_owned(),
            "<p:a xmlns:p='u'><p:b/></p:a>".to_owned(),
            format!("<w:d xmlns:w='urn:w' xmlns='urn:d' xmlns:xsi='{xsi}' xsi:type='t'/>"),
            format!("<w:d xmlns:w='urn:w' xmlns:xsi='{xsi}' xsi:type='t'><e/></w:d>"),
        ] {
            let element = read(&text, Profile::Wire, &XmlLimits::DOOR).unwrap();
            let outside =
                Outside { from: "a", to: None, thread: None, entry: None, shown: None, meta: None };
            let mut message = String::new();
            enclose(&outside, &element, &mut message);
            let message = read(&message, Profile::Wire, &XmlLimits::DOOR).unwrap();
            let envelope = Envelope::open(&message, &Limits::default()).unwrap();
            assert_eq!(envelope.payload.canonical(), element.canonical(), "{text}");
        }
    }

    /// Nothing that is said in an envelope is dropped without a word.
    #[test]
    fn an_envelope_has_no_attributes() {
        for (message, meta, from) in
            [(" a='1'", "", ""), ("", " xml:lang='de'", ""), ("", "", " xmlns:x='urn:x' x:a='1'")]
        {
            let text = format!(
                "<message xmlns='{ENVELOPE}'{message}><meta{meta}><from{from}>me</from></meta>\
                 <a xmlns='urn:a'/></message>"
            );
            let message = read(&text, Profile::Wire, &XmlLimits::DOOR).unwrap();
            let fault = Envelope::open(&message, &Limits::default()).unwrap_err();
            assert_eq!(fault.code, Code::Envelope, "{text}");
            assert!(fault.message.contains("has no attribute"), "{fault}");
        }
    }
}
