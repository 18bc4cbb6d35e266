//! An entry as listeners see it. After an entry is read from the log, its payload is parsed only
//! when a listener needs it.

use std::borrow::Cow;
use std::fmt;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;

use crate::id::{EntryId, ThreadId};
use crate::log;
use crate::name::{CORE_NAME, META, Name};
use crate::wire::{Code, Fault, Payload, is_failure};
use crate::xml::{Element, escape_text, root_attribute, root_text};

/// One entry of a thread: a payload with its number, sender, time and cause. Cloning it only raises
/// a reference count.
///
/// An older program may have written the entry, and the payload's type may have changed since. If
/// the type can't read the payload any more, decoding returns an `Err`.
#[derive(Clone)]
pub struct Entry(Arc<Inner>);

struct Inner {
    id: EntryId,
    at_us: u64,
    from: Arc<str>,
    to: Option<Arc<str>>,
    name: Name,
    cause: Option<EntryId>,
    reply_to: Option<EntryId>,
    flags: log::Flags,
    receivers: u32,
    meta: Option<Bytes>,
    body: Bytes,
    element: OnceLock<Element>,
}

/// The end tag of the `<key>` element in an entry's `<meta>`.
const END: &str = "</key>";

/// The `<key>` element that holds a request's key in an entry's `<meta>`.
pub fn key_meta(key: &str) -> Bytes {
    let mut meta = format!("<key xmlns=\"{META}\">");
    escape_text(key, &mut meta);
    meta.push_str(END);
    meta.into()
}

impl Entry {
    /// The entry's thread, and its number there.
    #[must_use]
    pub fn id(&self) -> &EntryId {
        &self.0.id
    }

    /// The entry's thread.
    #[must_use]
    pub fn thread(&self) -> &ThreadId {
        &self.0.id.thread
    }

    /// The entry's number in the thread, from 1.
    #[must_use]
    pub fn seq(&self) -> u64 {
        self.0.id.seq
    }

    /// When the pump accepted the entry, in microseconds since the Unix epoch.
    #[must_use]
    pub fn at_us(&self) -> u64 {
        self.0.at_us
    }

    /// The entry's sender: the name of a listener or an identity, or `core` for the pump itself.
    #[must_use]
    pub fn from(&self) -> &str {
        &self.0.from
    }

    /// Whether the pump itself sent the entry.
    #[must_use]
    pub fn is_from_core(&self) -> bool {
        *self.0.from == *CORE_NAME
    }

    /// The receiver that the entry names. None if there is no receiver, or if there are several.
    #[must_use]
    pub fn to(&self) -> Option<&str> {
        self.0.to.as_deref()
    }

    /// The payload's name.
    #[must_use]
    pub fn name(&self) -> &Name {
        &self.0.name
    }

    /// Whether the payload has the name of `P`. Reading the payload as a `P` may still fail.
    #[must_use]
    pub fn is<P: Payload>(&self) -> bool {
        self.0.name == P::NAME
    }

    /// The entry's cause: the entry whose handling sent this one.
    #[must_use]
    pub fn cause(&self) -> Option<&EntryId> {
        self.0.cause.as_ref()
    }

    /// Whether one listener handles the entry, and that listener is an
    /// [agent](crate::Listener::agent). Folds know agents by this.
    #[must_use]
    pub fn is_to_agent(&self) -> bool {
        self.0.flags.contains(log::Flags::TO_AGENT)
    }

    /// The entry that this one answers.
    #[must_use]
    pub fn reply_to(&self) -> Option<&EntryId> {
        self.0.reply_to.as_ref()
    }

    /// Whether an identity sent the entry, from outside, rather than a listener or the pump.
    #[must_use]
    pub fn is_from_identity(&self) -> bool {
        self.0.flags.contains(log::Flags::FROM_IDENTITY)
    }

    /// Whether the entry is a failure, as [`is_failure`](crate::wire::is_failure) says.
    #[must_use]
    pub fn is_failure(&self) -> bool {
        is_failure(self.name(), self.flags(), self.body())
    }

    /// Whether the entry was refused. A refused entry is in the log, but no listener got it.
    #[must_use]
    pub fn is_refused(&self) -> bool {
        self.0.flags.contains(log::Flags::REFUSED)
    }

    /// How many listeners handle the entry. 0 if the entry is for an identity or is only recorded.
    #[must_use]
    pub fn receivers(&self) -> u32 {
        self.0.receivers
    }

    /// The entry's flags.
    #[must_use]
    pub fn flags(&self) -> log::Flags {
        self.0.flags
    }

    /// Further elements of the entry's `<meta>`, in canonical form: those that the sender put
    /// there, or the [key](Entry::key).
    #[must_use]
    pub fn meta(&self) -> Option<&[u8]> {
        self.0.meta.as_deref()
    }

    /// The key of a [request](crate::listener::Request), if the entry has one. Requests with equal
    /// keys are attempts at the same request.
    #[must_use]
    pub fn key(&self) -> Option<String> {
        let meta = self.0.meta.as_ref()?;
        let end = memchr::memmem::find(meta, END.as_bytes())? + END.len();
        let element = Element::from_canonical(meta.slice(..end)).ok()?;
        element.is(META, "key").then(|| element.text().into_owned())
    }

    /// The payload's canonical bytes.
    #[must_use]
    pub fn body(&self) -> &Bytes {
        &self.0.body
    }

    /// The payload as an element.
    ///
    /// # Errors
    /// `P0027` if the log's bytes can't be read as XML any more.
    pub fn element(&self) -> Result<&Element, Fault> {
        if let Some(element) = self.0.element.get() {
            return Ok(element);
        }
        let element = Element::from_canonical(self.0.body.clone()).map_err(|error| {
            Fault::new(Code::Unreadable, format!("entry {}: {error}", self.0.id))
        })?;
        Ok(self.0.element.get_or_init(|| element))
    }

    /// The value of the payload's attribute with this local name and no namespace. If the
    /// payload isn't parsed yet, this reads only its start tag.
    #[must_use]
    pub fn attribute(&self, local: &str) -> Option<Cow<'_, str>> {
        match self.0.element.get() {
            Some(element) => element.attribute(local).map(Cow::Borrowed),
            None => root_attribute(&self.0.body, local),
        }
    }

    /// The payload's text, if the payload contains no elements. None otherwise. This call doesn't
    /// parse the payload.
    #[must_use]
    pub fn text(&self) -> Option<Cow<'_, str>> {
        match self.0.element.get() {
            Some(element) if element.elements().next().is_none() => Some(element.text()),
            Some(_) => None,
            None => root_text(&self.0.body),
        }
    }

    /// The payload as a `P`.
    ///
    /// # Errors
    /// `P0027` if the payload has another name, or can't be read as a `P` any more.
    pub fn decode<P: Payload>(&self) -> Result<P, Fault> {
        if !self.is::<P>() {
            let text = format!("entry {} is {}, no {}", self.0.id, self.0.name, P::NAME);
            return Err(Fault::new(Code::Unreadable, text));
        }
        P::read(self.element()?.view())
            .map_err(|error| Fault::new(Code::Unreadable, format!("entry {}: {error}", self.0.id)))
    }

    /// The payload, if it is a `P` that can be read.
    #[must_use]
    pub fn decode_if<P: Payload>(&self) -> Option<P> {
        // Folds call this for every entry, and most entries have another payload. So this function
        // compares the names first, and makes no fault if they differ.
        if self.is::<P>() { self.decode().ok() } else { None }
    }

    /// An entry on its way into the log. Its payload is already parsed.
    pub fn fresh(draft: &log::Draft, element: Element) -> Entry {
        Entry(Arc::new(Inner {
            id: draft.id.clone(),
            at_us: draft.at_us,
            from: draft.from.clone(),
            to: draft.to.clone(),
            name: draft.name.clone(),
            cause: draft.cause.clone(),
            reply_to: draft.reply_to.clone(),
            flags: draft.flags,
            receivers: draft.receivers,
            meta: draft.meta.clone(),
            body: draft.body.clone(),
            element: OnceLock::from(element),
        }))
    }

    /// An entry that was read from the log. Its payload isn't parsed yet.
    pub fn kept(entry: &log::Entry) -> Entry {
        Entry(Arc::new(Inner {
            id: entry.id.clone(),
            at_us: entry.at_us,
            from: entry.from.clone(),
            to: entry.to.clone(),
            name: entry.name.clone(),
            cause: entry.cause.clone(),
            reply_to: entry.reply_to.clone(),
            flags: entry.flags,
            receivers: entry.receivers,
            meta: entry.meta.clone(),
            body: entry.body.clone(),
            element: OnceLock::new(),
        }))
    }

    /// An entry that isn't in the log. Its payload isn't parsed yet.
    pub(crate) fn unparsed(entry: &log::Draft) -> Entry {
        Entry(Arc::new(Inner {
            id: entry.id.clone(),
            at_us: entry.at_us,
            from: entry.from.clone(),
            to: entry.to.clone(),
            name: entry.name.clone(),
            cause: entry.cause.clone(),
            reply_to: entry.reply_to.clone(),
            flags: entry.flags,
            receivers: entry.receivers,
            meta: entry.meta.clone(),
            body: entry.body.clone(),
            element: OnceLock::new(),
        }))
    }

    /// Whether the payload has been parsed.
    pub(crate) fn is_parsed(&self) -> bool {
        self.0.element.get().is_some()
    }

    /// The name of the sender, to be shared.
    #[doc(hidden)]
    pub fn sender(&self) -> &Arc<str> {
        &self.0.from
    }
}

/// Programs that read a log themselves convert the log's entries with this.
impl From<&log::Entry> for Entry {
    fn from(entry: &log::Entry) -> Entry {
        Entry::kept(entry)
    }
}

impl fmt::Debug for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let entry = &self.0;
        write!(f, "{} {} → {}: ", entry.id, entry.from, entry.to.as_deref().unwrap_or("*"))?;
        f.write_str(&String::from_utf8_lossy(&entry.body))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::conformance::note;
    use crate::wire::core::{Done, Huh};

    /// An entry with this name and this payload.
    fn entry(name: &Name, body: &'static str) -> Entry {
        let draft = log::Draft { name: name.clone(), body: body.into(), ..note("a/1") };
        Entry::fresh(&draft, Element::from_canonical(draft.body.clone()).unwrap())
    }

    /// An entry whose payload isn't parsed yet, like an entry that was read from the log.
    fn unparsed(draft: &log::Draft) -> Entry {
        let element = Element::from_canonical(draft.body.clone()).unwrap();
        let mut inner = Arc::into_inner(Entry::fresh(draft, element).0).unwrap();
        inner.element = OnceLock::new();
        Entry(Arc::new(inner))
    }

    #[test]
    fn an_attribute_reads_the_same_before_and_after_the_payload_is_parsed() {
        let name = Name::new("urn:t", "done");
        let escaped = "a=\"1 > &quot;0&quot; &amp;&#xA;\" empty=\"\"";
        for body in [
            format!("<done xmlns=\"urn:t\" {escaped}><e c=\"3\"></e></done>"),
            format!("<t:done xmlns:t=\"urn:t\" {escaped} t:b=\"2\"></t:done>"),
        ] {
            let draft = log::Draft { name: name.clone(), body: body.into(), ..note("a/1") };
            let parsed = Entry::fresh(&draft, Element::from_canonical(draft.body.clone()).unwrap());
            let kept = unparsed(&draft);
            for name in ["a", "empty", "b", "c", "xmlns", "t"] {
                assert_eq!(kept.attribute(name), parsed.attribute(name), "{name}");
            }
            assert_eq!(kept.attribute("a").as_deref(), Some("1 > \"0\" &\n"));
            assert!(kept.0.element.get().is_none(), "it was parsed");
        }
    }

    #[test]
    fn a_text_reads_the_same_before_and_after_the_payload_is_parsed() {
        let name = Name::new("urn:t", "done");
        for (content, text) in [
            ("", Some("")),
            ("a &lt;b> &amp;amp; \"c\"&#xD;\n", Some("a <b> &amp; \"c\"\r\n")),
            ("<e></e>", None),
            ("a<e>b</e>", None),
        ] {
            let body = format!("<done xmlns=\"urn:t\" a=\"1 > 0\">{content}</done>");
            let draft = log::Draft { name: name.clone(), body: body.into(), ..note("a/1") };
            let parsed = Entry::fresh(&draft, Element::from_canonical(draft.body.clone()).unwrap());
            let kept = unparsed(&draft);
            assert_eq!(kept.text().as_deref(), text);
            assert_eq!(parsed.text().as_deref(), text);
            assert!(kept.0.element.get().is_none(), "it was parsed");
        }
    }

    #[test]
    fn a_payload_is_decoded_where_it_is_of_that_type_and_can_be_read() {
        let done = "<done xmlns=\"https://xml-pipeline.org/ns/core/v1\"></done>";
        let settled = entry(&Done::NAME, done);
        assert!(settled.decode_if::<Done>().is_some());
        assert!(settled.decode_if::<Huh>().is_none());
        assert!(entry(&Huh::NAME, done).decode_if::<Huh>().is_none());
    }
}
