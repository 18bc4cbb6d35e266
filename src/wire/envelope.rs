//! The `<message>` around a payload. It is read from senders and written to receivers.

use bytes::Bytes;

use crate::id::EntryId;
use crate::limits::Limits;
use crate::name::{CORE, ENVELOPE};
use crate::wire::{Code, Fault, quoted};
use crate::xml::{Child, Element, View, escape_attribute, escape_text};

/// A message as its sender sent it: a payload, and the sender's `<meta>`.
#[derive(Clone, Debug)]
pub struct Envelope {
    /// The name that the sender gives itself. The pump refuses any name but the connection's
    /// identity.
    pub from: Option<String>,
    /// The receiving listener, if the sender names one.
    pub to: Option<String>,
    /// The thread, if the sender names one. Without a thread, the message opens a session.
    pub thread: Option<String>,
    /// The client id: the sender's own id for the message.
    pub id: Option<String>,
    /// The other elements of `<meta>`, in canonical form, one after another.
    pub meta: Option<Bytes>,
    /// The payload.
    pub payload: Element,
}

impl Envelope {
    /// Reads a `<message>`. Any other element is a bare payload, which opens a session.
    ///
    /// # Errors
    /// Returns `P0008` if the `<message>` isn't a valid envelope, `P0010` if its `<meta>` holds an
    /// element of the core namespace, or `P0006` if its `<id>` is too long.
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

    /// Returns an envelope that has nothing but a payload.
    #[must_use]
    pub fn bare(payload: Element) -> Envelope {
        Envelope { from: None, to: None, thread: None, id: None, meta: None, payload }
    }

    /// Writes the form that [`open`](Envelope::open) reads: a `<message>`, or the bare payload if
    /// the envelope has nothing else.
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
                    let other = quoted(other);
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

/// Refuses attributes on the envelope's own elements, since reading would lose these attributes.
fn refuse_attributes(of: View<'_>) -> Result<(), Fault> {
    match of.attributes().next() {
        Some(found) => {
            Err(wrong(of, &format!("<{}> has no attribute {}", of.local(), quoted(found.local))))
        }
        None => Ok(()),
    }
}

/// Returns the child elements of an element. Text between them must be white space.
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

/// The parts of a message that the pump writes around the payload.
#[derive(Clone, Copy, Debug)]
pub struct Outside<'a> {
    /// The sender.
    pub from: &'a str,
    /// The receiver, if there is one.
    pub to: Option<&'a str>,
    /// The thread, if the message belongs to one.
    pub thread: Option<&'a str>,
    /// The message's entry, if it is in the log.
    pub entry: Option<Facts<'a>>,
    /// The reason why the client gets the message, if the client only follows the thread.
    pub shown: Option<Shown<'a>>,
    /// Further elements that the sender put into `<meta>`, in canonical form.
    pub meta: Option<&'a [u8]>,
}

/// The reason why a follower gets a message, for the `<followed>` in the message's `<meta>`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "a door says both")]
pub enum Shown<'a> {
    /// The client follows the message's thread.
    Followed,
    /// The client follows the thread, and the payload is live: it isn't in the log.
    Live {
        /// The entry whose handler sent the payload.
        cause: &'a EntryId,
    },
}

/// An entry's data in the log, for the `<entry>` in a message's `<meta>`.
#[derive(Clone, Copy, Debug)]
pub struct Facts<'a> {
    /// The entry's id.
    pub id: &'a EntryId,
    /// The entry's cause.
    pub cause: Option<&'a EntryId>,
    /// The entry's time, in microseconds since the epoch.
    pub at_us: u64,
    /// Whether the entry is a failure, such as a fault or an `Err` of a listener.
    pub failed: bool,
}

/// Writes a payload in its `<message>`, without a line end.
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

/// Writes an empty element of the core namespace, which no sender may put into a `<meta>`.
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

/// Writes a payload within `<message>`. If its root has a namespace and no prefix, the root
/// declares the namespace itself, and the canonical bytes need no change. Any other payload is
/// written again for its new surroundings, since `<message>` declares a default namespace.
fn write_payload(payload: &Element, out: &mut String) {
    let bytes = if payload.prefix().is_empty() && !payload.namespace().is_empty() {
        payload.canonical()
    } else {
        payload.view().canonical_within(ENVELOPE)
    };
    out.push_str(&String::from_utf8_lossy(&bytes));
}

/// Formats microseconds since the epoch as `2026-11-21T22:15:36.123456Z`.
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

    /// A payload that was enclosed is equal when it is read back.
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

    /// Reading an envelope drops nothing silently.
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
