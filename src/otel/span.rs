//! Spans as data. Their ids come from the log.

use std::fmt;

use crate::id::{EntryId, ThreadId};
use crate::otel::names::Named;

/// The id of a trace. All spans of a session and of the threads below it share one trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TraceId([u8; 16]);

impl TraceId {
    /// Returns the id that this trace has for spans with content. Spans without content are in
    /// another trace, so the two kinds never mix.
    #[must_use]
    pub fn with_content(&self) -> TraceId {
        TraceId(prefix(&format!("{self} content")))
    }

    /// Returns the id of the trace of a tree of threads.
    #[must_use]
    pub fn of(root: &ThreadId) -> TraceId {
        TraceId(prefix(root.as_str()))
    }

    /// Returns the bytes of the id.
    #[must_use]
    pub fn bytes(&self) -> &[u8; 16] {
        &self.0
    }
}

/// The id of a span. The id is made from the span's first entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SpanId([u8; 8]);

impl SpanId {
    /// Returns the id that this span has with content. Without content the span has another id, so
    /// no id is ever sent with two contents.
    #[must_use]
    pub fn with_content(&self) -> SpanId {
        SpanId(prefix(&format!("{self} content")))
    }

    /// Returns the id of the span of a turn or of a tool's execution. `entry` is the turn's
    /// `cognition_in`, or the tool's `action`.
    #[must_use]
    pub fn of(entry: &EntryId) -> SpanId {
        SpanId(prefix(&entry.to_string()))
    }

    /// Returns the id of the span of an agent's work, which begins with `entry`. Work of several
    /// agents may begin with one entry, so the id also depends on the agent's name.
    #[must_use]
    pub fn of_work(entry: &EntryId, agent: &str) -> SpanId {
        SpanId(prefix(&format!("{entry} {agent}")))
    }

    /// Returns the bytes of the id.
    #[must_use]
    pub fn bytes(&self) -> &[u8; 8] {
        &self.0
    }
}

/// Returns the first `N` bytes of the text's BLAKE3 digest.
fn prefix<const N: usize>(text: &str) -> [u8; N] {
    let mut bytes = [0; N];
    bytes.copy_from_slice(&blake3::hash(text.as_bytes()).as_bytes()[..N]);
    bytes
}

impl fmt::Display for TraceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|it| write!(f, "{it:02x}"))
    }
}

impl fmt::Display for SpanId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|it| write!(f, "{it:02x}"))
    }
}

/// OpenTelemetry's kind of a span.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Kind {
    /// Work within the pump.
    Internal,
    /// A request to a model.
    Client,
}

/// The value of an attribute.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Value {
    /// A text.
    Text(String),
    /// A whole number.
    Whole(i64),
    /// A number, with a fraction or without.
    Number(f64),
    /// `true` or `false`.
    Flag(bool),
    /// Several texts.
    Texts(Vec<String>),
}

impl From<&str> for Value {
    fn from(it: &str) -> Value {
        Value::Text(it.to_owned())
    }
}

impl From<String> for Value {
    fn from(it: String) -> Value {
        Value::Text(it)
    }
}

impl From<u64> for Value {
    fn from(it: u64) -> Value {
        Value::Whole(i64::try_from(it).unwrap_or(i64::MAX))
    }
}

/// An attribute: a name from the table in `names`, and its value.
pub type Attribute = (Named, Value);

/// Why the work of a span failed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Failure {
    /// What went wrong, in a word or by the number of a fault.
    pub kind: String,
    /// What went wrong, in a sentence. Only spans with content have a message, because the message
    /// may quote a payload.
    pub message: Option<String>,
}

/// A span of another trace that led to this span: the `traceparent` of a push.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Link {
    /// The other trace.
    pub trace: TraceId,
    /// The other span.
    pub span: SpanId,
}

impl Link {
    /// Reads a `traceparent` as W3C's Trace Context writes it: `00-TRACE-SPAN-FLAGS`. Returns None
    /// if the text is no such `traceparent`, or one of its ids is zero.
    #[must_use]
    pub fn parse(text: &str) -> Option<Link> {
        let mut parts = text.trim().split('-');
        let version: [u8; 1] = bytes(parts.next()?)?;
        let link =
            Link { trace: TraceId(bytes(parts.next()?)?), span: SpanId(bytes(parts.next()?)?) };
        let _flags: [u8; 1] = bytes(parts.next()?)?;
        // A later version may append parts; version 0 has four.
        let is_whole = version != [0xff] && (version != [0] || parts.next().is_none());
        (is_whole && link.trace.0 != [0; 16] && link.span.0 != [0; 8]).then_some(link)
    }
}

/// Reads exactly `N` bytes, each written as two lower-case hexadecimal digits.
fn bytes<const N: usize>(text: &str) -> Option<[u8; N]> {
    let is_hex = |it: u8| it.is_ascii_digit() || (b'a'..=b'f').contains(&it);
    if text.len() != 2 * N || !text.bytes().all(is_hex) {
        return None;
    }
    let mut bytes = [0; N];
    for (at, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&text[2 * at..2 * at + 2], 16).ok()?;
    }
    Some(bytes)
}

/// A piece of work that has ended.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Span {
    /// The id of the span's trace.
    pub trace: TraceId,
    /// The id of the span.
    pub id: SpanId,
    /// The parent span, if there is one.
    pub parent: Option<SpanId>,
    /// The name, such as `chat small`.
    pub name: String,
    /// OpenTelemetry's kind of the span.
    pub kind: Kind,
    /// The time of the span's first entry, in microseconds since the epoch.
    pub start_us: u64,
    /// The time of the span's last entry, in microseconds since the epoch; never before `start_us`.
    pub end_us: u64,
    /// The names and values that describe the work.
    pub attributes: Vec<Attribute>,
    /// Why the work failed, if it did.
    pub failure: Option<Failure>,
    /// The span of the caller, if the push had a `traceparent`.
    pub link: Option<Link>,
}

impl Span {
    /// Replaces the ids by those of spans with content.
    pub(super) fn with_content(self) -> Span {
        let parent = self.parent.map(|it| it.with_content());
        Span { trace: self.trace.with_content(), id: self.id.with_content(), parent, ..self }
    }

    /// Returns the value of an attribute, if the span has the attribute.
    #[must_use]
    pub fn attribute(&self, named: Named) -> Option<&Value> {
        self.attributes.iter().find(|it| it.0 == named).map(|it| &it.1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_the_first_bytes_of_a_hash_of_thread_and_entry() {
        let thread = ThreadId::new("sess-k3v9x2ma");
        let entry = EntryId::new(&thread, 7);
        let hex = |text: &str| blake3::hash(text.as_bytes()).to_hex().to_string();
        assert_eq!(TraceId::of(&thread).to_string(), hex("sess-k3v9x2ma")[..32]);
        assert_eq!(SpanId::of(&entry).to_string(), hex("sess-k3v9x2ma/7")[..16]);
        assert_eq!(SpanId::of_work(&entry, "ada").to_string(), hex("sess-k3v9x2ma/7 ada")[..16]);
        assert_ne!(SpanId::of_work(&entry, "ada"), SpanId::of_work(&entry, "bob"));
    }

    #[test]
    fn a_traceparent_is_read_as_w3c_writes_it() {
        let (trace, span) = ("4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7");
        for right in
            [format!("00-{trace}-{span}-01"), format!(" cc-{trace}-{span}-00-what-comes-later\n")]
        {
            let link = Link::parse(&right).unwrap();
            assert_eq!(
                (link.trace.to_string(), link.span.to_string()),
                (trace.into(), span.into())
            );
        }
        for wrong in [
            String::new(),
            "00".to_owned(),
            format!("00-{trace}-{span}"),
            format!("00-{trace}-{span}-01-x"),
            format!("ff-{trace}-{span}-01"),
            format!("00-{}-{span}-01", trace.to_uppercase()),
            format!("00-{}-{span}-01", "0".repeat(32)),
            format!("00-{trace}-{}-01", "0".repeat(16)),
            format!("00-{trace}-{}é-01", &span[..14]),
        ] {
            assert_eq!(Link::parse(&wrong), None, "{wrong}");
        }
    }
}
