//! Writes canonical bytes from method calls, and builds the tree at the same time. So the bytes
//! needn't be parsed again.

use std::borrow::Cow;
use std::sync::Arc;

use super::canon::{self, Sink};
use super::chars::{
    Survey, find_escaped_in_text, find_escaped_in_value, find_illegal, is_name, survey, writable_in,
};
use super::element::{Element, View};
use super::error::{Error, Kind, Refusal, clip};
use super::tree::{AttributeNode, BARE, BYTES_MAX, Builder, Document, Span};
use super::{XML, XMLNS};
use crate::limits::XmlLimits;

/// Writes one element.
///
/// ```
/// # extern crate pumphouse_ground as pumphouse;
/// use pumphouse::limits::XmlLimits;
/// use pumphouse::xml::Writer;
///
/// let mut writer = Writer::new(XmlLimits::INSIDE);
/// writer.start("urn:x", "sum");
/// writer.attribute("unit", "m");
/// writer.text("1 < 2");
/// writer.end();
/// let sum = writer.finish()?;
/// assert_eq!(&sum.canonical()[..], br#"<sum xmlns="urn:x" unit="m">1 &lt; 2</sum>"#);
/// # Ok::<(), pumphouse::xml::Error>(())
/// ```
///
/// Only [`finish`](Writer::finish) can fail. It returns the first error of all calls.
#[derive(Debug)]
pub struct Writer {
    tree: Builder,
    /// Whether the start tag of the open element may still get attributes.
    in_tag: bool,
    /// The open start tag's attributes, as names and values.
    attributes: Vec<(String, String)>,
    /// The least number of bytes that `attributes` take once they are written.
    attributes_bytes: usize,
    /// The last node, if it is a text. The next text would continue it.
    text: Option<Continued>,
    refusal: Option<Refusal>,
    /// Whether a character that no document may hold is refused, and not replaced.
    is_strict: bool,
}

/// The last node, which is a text. `start` is the offset of its beginning. `is_extra` says whether
/// `start` is an offset in the extra text.
#[derive(Clone, Copy, Debug)]
struct Continued {
    start: usize,
    is_extra: bool,
}

/// The initial capacity of the written text, in bytes: enough for most payloads.
const TEXT_BYTES: usize = 256;

impl Writer {
    /// Creates a writer of an element that must stay within `limits`.
    #[must_use]
    pub fn new(limits: XmlLimits) -> Writer {
        Writer {
            tree: Builder::new(String::with_capacity(TEXT_BYTES), limits),
            in_tag: false,
            attributes: Vec::new(),
            attributes_bytes: 0,
            text: None,
            refusal: None,
            is_strict: false,
        }
    }

    /// Creates a writer that refuses a character that no document may hold, instead of writing
    /// U+FFFD. It is for texts whose sender can be told of the refusal.
    #[must_use]
    pub fn strict(limits: XmlLimits) -> Writer {
        Writer { is_strict: true, ..Writer::new(limits) }
    }

    /// Starts an element without a prefix. The element's namespace is declared unless the default
    /// namespace in force is the same.
    pub fn start(&mut self, namespace: &str, local: &str) {
        self.attempt_content(|writer| writer.try_start(namespace, local));
    }

    /// Adds an attribute without a namespace to the element just started. Attributes may be added
    /// in any order. A character that no document may hold is written as U+FFFD.
    pub fn attribute(&mut self, local: &str, value: &str) {
        self.attempt(|writer| writer.try_attribute(local, value));
    }

    /// Writes text into the open element. A character that no document may hold is written as
    /// U+FFFD: text from a file name, a page or a model may hold one, and the rest of that text
    /// isn't lost with it.
    pub fn text(&mut self, text: &str) {
        self.attempt_content(|writer| writer.try_text(text));
    }

    /// Copies an element from another document, with the declarations that it needs here.
    pub fn element(&mut self, view: View<'_>) {
        self.attempt_content(|writer| writer.try_element(view));
    }

    /// Ends the open element.
    pub fn end(&mut self) {
        self.attempt_content(Writer::try_end);
    }

    /// Returns the element, if every call was valid.
    ///
    /// # Errors
    /// Returns the first error: an invalid name, a character that a [strict](Writer::strict) writer
    /// refuses, an attribute given twice, a crossed limit, or a start without an end. The error's
    /// place refers to the bytes written so far.
    pub fn finish(mut self) -> Result<Element, Error> {
        self.attempt_content(|_| Ok(()));
        if self.refusal.is_none() && self.tree.is_inside() {
            self.refusal = Some(self.refuse("an element is started and not ended"));
        }
        if self.refusal.is_none() && self.tree.nodes.is_empty() {
            self.refusal = Some(self.refuse("nothing is written"));
        }
        match self.refusal {
            Some(refusal) => Err(refusal.placed(self.tree.text.main.as_bytes())),
            None => Ok(Element::root(Arc::new(self.tree.finish(true)))),
        }
    }

    fn attempt(&mut self, write: impl FnOnce(&mut Writer) -> Result<(), Refusal>) {
        if self.refusal.is_none()
            && let Err(refusal) = write(self).and_then(|()| self.check_size(0))
        {
            self.refusal = Some(refusal);
        }
    }

    /// Writes something other than an attribute. An open start tag is closed first.
    fn attempt_content(&mut self, write: impl FnOnce(&mut Writer) -> Result<(), Refusal>) {
        self.attempt(|writer| {
            if writer.in_tag {
                writer.close_tag()?;
            }
            write(writer)
        });
    }

    fn try_start(&mut self, namespace: &str, local: &str) -> Result<(), Refusal> {
        self.check_root()?;
        self.check_name(local)?;
        self.text = None;
        let offset = self.at();
        self.tree.text.main.push('<');
        let local = self.put_name("", local);
        let mut name = self.bare_name();
        if namespace != self.tree.namespace_text(self.tree.namespace_of(name)) {
            self.check_namespace(namespace)?;
            self.put_declaration("", namespace, offset)?;
            name = self.bare_name();
        }
        self.tree.open(local, name, offset)?;
        self.in_tag = true;
        Ok(())
    }

    fn try_attribute(&mut self, local: &str, value: &str) -> Result<(), Refusal> {
        self.check_name(local)?;
        let value = &*self.writable(value, survey(value))?;
        let bytes = local.len() + value.len() + " =\"\"".len();
        self.check_size(self.attributes_bytes.saturating_add(bytes))?;
        if local == "xmlns" {
            let message = "xmlns is a namespace declaration, not an attribute";
            return Err(Refusal::namespace(self.at(), message));
        }
        if !self.in_tag {
            let message = format!("attribute {local} comes after its element's content");
            return Err(self.refuse(message));
        }
        if self.attributes.len() >= self.tree.limits.attributes_max {
            let (what, max) = ("too many attributes in one element", self.tree.limits);
            return Err(Refusal::limit(self.at(), what, "attributes_max", max.attributes_max));
        }
        self.attributes.push((local.to_owned(), value.to_owned()));
        self.attributes_bytes += bytes;
        Ok(())
    }

    fn try_text(&mut self, text: &str) -> Result<(), Refusal> {
        if !self.tree.is_inside() {
            return Err(self.refuse("text outside an element"));
        }
        self.put_text(text)
    }

    fn put_text(&mut self, text: &str) -> Result<(), Refusal> {
        if text.is_empty() {
            return Ok(());
        }
        self.check_size(text.len())?;
        let start = self.at();
        let seen = survey(text);
        let text = &*self.writable(text, seen)?;
        if seen.is_escaped_in_text() {
            escape_text(text, &mut self.tree.text.main);
        } else {
            self.tree.text.main.push_str(text);
        }
        let is_plain = self.at() - start == text.len();
        let Some(before) = self.text else {
            let (span, extra) = self.decoded(start, text, is_plain);
            self.text = Some(Continued { start: extra, is_extra: !is_plain });
            return self.tree.push_text(span, start);
        };
        let Continued { start: mut first, mut is_extra } = before;
        if !is_extra && !is_plain {
            let decoded = self.tree.text.extra.len();
            let Builder { text, .. } = &mut self.tree;
            text.extra.push_str(&text.main[first..start]);
            (first, is_extra) = (decoded, true);
        }
        let span = if is_extra {
            self.tree.text.extra.push_str(text);
            self.tree.text.extra_since(first)
        } else {
            Span::new(first, self.at())
        };
        self.tree.nodes.set_text(span);
        self.text = Some(Continued { start: first, is_extra });
        Ok(())
    }

    /// Returns the span of the decoded text that was written at `start`, and the offset at which
    /// that span begins. A text that had to be escaped is added to the extra text, and the span
    /// refers to that copy.
    fn decoded(&mut self, start: usize, text: &str, is_plain: bool) -> (Span, usize) {
        if is_plain {
            return (Span::new(start, start + text.len()), start);
        }
        let extra = self.tree.text.extra.len();
        self.tree.text.extra.push_str(text);
        (self.tree.text.extra_since(extra), extra)
    }

    fn try_element(&mut self, view: View<'_>) -> Result<(), Refusal> {
        self.check_root()?;
        self.text = None;
        let outer = self.tree.namespace_text(self.tree.namespace_of(self.bare_name())).to_owned();
        let mut copy = Copying { writer: self, document: view.document(), refusal: None };
        canon::walk(view.document(), view.number(), &outer, &mut copy);
        copy.refusal.map_or(Ok(()), Err)
    }

    fn try_end(&mut self) -> Result<(), Refusal> {
        let Some(node) = self.tree.open_element() else {
            return Err(self.refuse("an end without a start"));
        };
        let (start, end) = self.tree.written_name(node);
        let out = &mut self.tree.text.main;
        out.push_str("</");
        out.extend_from_within(start..end);
        out.push('>');
        self.text = None;
        self.tree.close();
        Ok(())
    }

    /// Writes the rest of a start tag that gets no further attributes.
    fn close_tag(&mut self) -> Result<(), Refusal> {
        self.in_tag = false;
        if !self.attributes.is_empty() {
            self.put_attributes()?;
        }
        self.tree.text.main.push('>');
        Ok(())
    }

    fn put_attributes(&mut self) -> Result<(), Refusal> {
        let mut attributes = std::mem::take(&mut self.attributes);
        self.attributes_bytes = 0;
        attributes.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
        for pair in attributes.windows(2) {
            if pair[0].0 == pair[1].0 {
                return Err(self.refuse(format!("attribute {} is given twice", pair[0].0)));
            }
        }
        for (local, value) in attributes.drain(..) {
            self.put_attribute("", &local, &value, BARE)?;
        }
        self.attributes = attributes;
        Ok(())
    }

    fn put_declaration(
        &mut self,
        prefix: &str,
        namespace: &str,
        offset: usize,
    ) -> Result<(), Refusal> {
        self.check_size(namespace.len())?;
        let out = &mut self.tree.text.main;
        out.push_str(if prefix.is_empty() { " xmlns" } else { " xmlns:" });
        let start = out.len();
        out.push_str(prefix);
        let prefix = Span::new(start, out.len());
        let namespace = self.put_value(namespace)?;
        self.tree.declare(prefix, namespace, offset)
    }

    fn put_attribute(
        &mut self,
        prefix: &str,
        local: &str,
        value: &str,
        name: u32,
    ) -> Result<(), Refusal> {
        self.check_size(value.len())?;
        self.tree.text.main.push(' ');
        let offset = self.at();
        let local = self.put_name(prefix, local);
        let value = self.put_value(value)?;
        self.tree.attribute(AttributeNode { local, value, name }, offset)
    }

    /// Writes a name and returns the span of its local part.
    fn put_name(&mut self, prefix: &str, local: &str) -> Span {
        let out = &mut self.tree.text.main;
        if !prefix.is_empty() {
            out.push_str(prefix);
            out.push(':');
        }
        out.push_str(local);
        Span::new(out.len() - local.len(), out.len())
    }

    /// Writes `="…"` and returns the span of the value.
    fn put_value(&mut self, value: &str) -> Result<Span, Refusal> {
        self.tree.text.main.push_str("=\"");
        let start = self.at();
        let seen = survey(value);
        let value = &*self.writable(value, seen)?;
        if seen.is_escaped_in_value() {
            escape_attribute(value, &mut self.tree.text.main);
        } else {
            self.tree.text.main.push_str(value);
        }
        let is_plain = self.at() - start == value.len();
        let (span, _) = self.decoded(start, value, is_plain);
        self.tree.text.main.push('"');
        Ok(span)
    }

    /// Returns the number of an element's name without a prefix.
    fn bare_name(&self) -> u32 {
        self.tree.resolve("").unwrap_or(BARE)
    }

    fn check_root(&self) -> Result<(), Refusal> {
        if self.tree.is_inside() || self.tree.nodes.is_empty() {
            return Ok(());
        }
        Err(self.refuse("a second root element"))
    }

    fn check_name(&self, name: &str) -> Result<(), Refusal> {
        let max = self.tree.limits.name_bytes_max;
        if name.len() > max {
            let what = format!("a name of {} bytes", name.len());
            return Err(Refusal::limit(self.at(), &what, "name_bytes_max", max));
        }
        if is_name(name) {
            return Ok(());
        }
        Err(self.refuse(format!("`{}` is no name", clip(name).escape_debug())))
    }

    fn check_namespace(&self, namespace: &str) -> Result<(), Refusal> {
        if namespace == XML || namespace == XMLNS {
            let message = format!("{namespace} can't be a default namespace");
            return Err(Refusal::namespace(self.at(), message));
        }
        self.refuse_illegal(namespace)
    }

    /// A text without characters that no document may hold.
    fn writable<'t>(&self, text: &'t str, seen: Survey) -> Result<Cow<'t, str>, Refusal> {
        match self.is_strict && seen.suspicious() {
            true => self.refuse_illegal(text).map(|()| Cow::Borrowed(text)),
            false => Ok(writable_in(text, seen)),
        }
    }

    fn refuse_illegal(&self, text: &str) -> Result<(), Refusal> {
        let Some((at, c)) = find_illegal(text) else { return Ok(()) };
        let message = format!("U+{:04X}, at byte {at}, is no XML character", u32::from(c));
        Err(self.refuse(message))
    }

    /// Refuses `more` bytes that would cross the limit. Callers check before they write the bytes,
    /// so that the limit also bounds memory.
    fn check_size(&self, more: usize) -> Result<(), Refusal> {
        let max = self.tree.limits.message_bytes_max.min(BYTES_MAX);
        if self.at().saturating_add(more) <= max {
            return Ok(());
        }
        Err(Refusal::limit(self.at(), "too large a message", "message_bytes_max", max))
    }

    fn at(&self) -> usize {
        self.tree.text.main.len()
    }

    fn refuse(&self, message: impl Into<String>) -> Refusal {
        Refusal::new(Kind::Syntax, self.at(), message)
    }
}

/// The sink that copies an element into a writer. The names and texts of the copied document are
/// valid already.
struct Copying<'w, 'd> {
    writer: &'w mut Writer,
    document: &'d Document,
    refusal: Option<Refusal>,
}

impl Copying<'_, '_> {
    fn try_start(
        &mut self,
        number: u32,
        declarations: &[(u32, u32)],
        attributes: &[AttributeNode],
    ) -> Result<(), Refusal> {
        let (writer, document) = (&mut *self.writer, self.document);
        let name = document.nodes.name(number);
        let offset = writer.at();
        writer.text = None;
        writer.tree.text.main.push('<');
        let prefix = document.prefix(document.pair(name).0);
        let local = writer.put_name(prefix, document.get(document.nodes.text(number)));
        for &(prefix, namespace) in declarations {
            let (prefix, namespace) = (document.prefix(prefix), document.namespace(namespace));
            writer.put_declaration(prefix, namespace, offset)?;
        }
        let name = self.resolve(prefix)?;
        self.writer.tree.open(local, name, offset)?;
        for attribute in attributes {
            let prefix = document.prefix(document.pair(attribute.name).0);
            let name = if prefix.is_empty() { BARE } else { self.resolve(prefix)? };
            let (local, value) = (document.get(attribute.local), document.get(attribute.value));
            self.writer.put_attribute(prefix, local, value, name)?;
        }
        self.writer.tree.text.main.push('>');
        self.writer.check_size(0)
    }

    fn resolve(&self, prefix: &str) -> Result<u32, Refusal> {
        self.writer.tree.resolve(prefix).ok_or_else(|| {
            self.writer.refuse(format!("the prefix {} is bound to nothing", clip(prefix)))
        })
    }

    fn attempt(&mut self, write: impl FnOnce(&mut Self) -> Result<(), Refusal>) {
        if self.refusal.is_none() {
            self.refusal = write(self).err();
        }
    }
}

impl Sink for Copying<'_, '_> {
    fn start(&mut self, number: u32, declarations: &[(u32, u32)], attributes: &[AttributeNode]) {
        self.attempt(|copy| copy.try_start(number, declarations, attributes));
    }

    fn text(&mut self, text: &str) {
        self.attempt(|copy| copy.writer.put_text(text));
    }

    fn end(&mut self, _: u32) {
        self.attempt(|copy| copy.writer.try_end());
    }
}

/// Writes text as in canonical form, in which `&`, `<`, `>` and carriage returns are escaped.
pub fn escape_text(text: &str, out: &mut String) {
    escape(text, out, find_escaped_in_text);
}

/// Writes an attribute's value as in canonical form, in which `&`, `<`, `"`, tabs and line ends are
/// escaped.
pub fn escape_attribute(value: &str, out: &mut String) {
    escape(value, out, find_escaped_in_value);
}

#[inline]
fn escape(text: &str, out: &mut String, find: impl Fn(&str) -> Option<usize>) {
    let mut rest = text;
    while let Some(at) = find(rest) {
        out.push_str(&rest[..at]);
        out.push_str(match rest.as_bytes()[at] {
            b'&' => "&amp;",
            b'<' => "&lt;",
            b'>' => "&gt;",
            b'"' => "&quot;",
            b'\t' => "&#x9;",
            b'\n' => "&#xA;",
            _ => "&#xD;",
        });
        rest = &rest[at + 1..];
    }
    out.push_str(rest);
}
