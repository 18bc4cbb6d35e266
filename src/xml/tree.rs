//! The arena of a document: one text, flat lists of nodes, attributes and bindings, and their
//! builder.
//!
//! Nodes are in document order, so a subtree is a range and nothing recurses. Prefixes and
//! namespaces are numbers, so the cost of comparing and restoring them doesn't depend on their
//! length.

use std::sync::OnceLock;

use bytes::Bytes;

use super::error::{Refusal, clip};
use super::intern::Interner;
use super::nodes::Nodes;
use super::{XML, XSI};
use crate::limits::XmlLimits;

/// The number that stands for no node or no binding.
pub(super) const NONE: u32 = u32::MAX;
/// The number of the empty prefix and of the empty namespace.
pub(super) const EMPTY: u32 = 0;
/// The number of the prefix `xml` and of its namespace.
pub(super) const RESERVED: u32 = 1;
/// The number of a name without a prefix where no default namespace is in force.
pub(super) const BARE: u32 = 0;
/// The number of a name with the prefix `xml`.
const XML_NAME: u32 = 1;
/// The number of a name whose prefix the first binding binds.
const FIRST: u32 = 2;
/// Set in a span's ends: it lies in [`Text::extra`].
const EXTRA: u32 = 1 << 31;
/// How many bytes a document may have, decoded values not counted: their spans need the top bit.
pub(super) const BYTES_MAX: usize = (EXTRA / 2) as usize;
/// How much larger than a message its elements may be in canonical form, all added up as if each
/// stood alone. Short prefixes for long namespaces would otherwise swell without bound.
const SWELL_MAX: usize = 8;

/// Part of the document's text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Span {
    start: u32,
    end: u32,
}

impl Span {
    /// Both ends must be within [`BYTES_MAX`], which reader and writer check first.
    #[expect(clippy::cast_possible_truncation, reason = "documents are within BYTES_MAX")]
    pub(super) const fn new(start: usize, end: usize) -> Span {
        Span { start: start as u32, end: end as u32 }
    }

    pub(super) const fn start(self) -> usize {
        (self.start & !EXTRA) as usize
    }

    pub(super) const fn end(self) -> usize {
        (self.end & !EXTRA) as usize
    }

    /// The span of this length that starts at [`bits`](Span::bits).
    pub(super) const fn of_length(bits: u32, length: u32) -> Span {
        Span { start: bits, end: bits + length }
    }

    /// Where it starts, and in which text.
    pub(super) const fn bits(self) -> u32 {
        self.start
    }

    pub(super) const fn length(self) -> u32 {
        self.end - self.start
    }

    pub(super) const fn is_extra(self) -> bool {
        self.start & EXTRA != 0
    }
}

/// The source, and beside it what had to be decoded.
#[derive(Debug, Default)]
pub(super) struct Text {
    pub(super) main: String,
    pub(super) extra: String,
}

impl Text {
    #[inline]
    pub(super) fn get(&self, span: Span) -> &str {
        let whole = if span.is_extra() { &self.extra } else { &self.main };
        &whole[span.start()..span.end()]
    }

    /// The span of what was put into `extra` since `start`.
    #[expect(clippy::cast_possible_truncation, reason = "never longer than what it decodes")]
    pub(super) fn extra_since(&self, start: usize) -> Span {
        Span { start: start as u32 | EXTRA, end: self.extra.len() as u32 | EXTRA }
    }
}

/// An attribute that is no namespace declaration.
#[derive(Clone, Copy, Debug)]
pub(super) struct AttributeNode {
    pub(super) local: Span,
    pub(super) value: Span,
    /// As a node's; without a prefix it has no namespace, whatever is in force.
    pub(super) name: u32,
}

/// A namespace declaration.
#[derive(Clone, Copy, Debug)]
pub(super) struct Binding {
    pub(super) prefix: u32,
    pub(super) namespace: u32,
    /// The element that declares it.
    pub(super) owner: u32,
}

/// A binding in force, and the one of the same prefix that it hides.
#[derive(Clone, Copy, Debug)]
struct InForce {
    binding: u32,
    hidden: u32,
}

/// The prefix and the namespace, by number, of a name.
#[inline]
fn pair(bindings: &[Binding], name: u32) -> (u32, u32) {
    match name {
        BARE => (EMPTY, EMPTY),
        XML_NAME => (RESERVED, RESERVED),
        _ => {
            let binding = &bindings[(name - FIRST) as usize];
            (binding.prefix, binding.namespace)
        }
    }
}

/// The prefix in an `xsi:type`, which canonical form counts as used.
#[derive(Clone, Copy, Debug)]
pub(super) struct Use {
    /// The place of the attribute, or the one before it.
    pub(super) place: u32,
    pub(super) name: u32,
}

/// A whole document, never changed once it is built.
#[derive(Debug)]
pub(super) struct Document {
    pub(super) text: Text,
    pub(super) nodes: Nodes,
    pub(super) bindings: Vec<Binding>,
    pub(super) uses: Vec<Use>,
    prefixes: Vec<Span>,
    namespaces: Vec<Span>,
    /// Whether the source is the root in canonical form already.
    pub(super) is_canonical: bool,
    /// The root in canonical form, once it has been asked for.
    pub(super) canonical: OnceLock<Bytes>,
}

impl Document {
    #[inline]
    pub(super) fn get(&self, span: Span) -> &str {
        self.text.get(span)
    }

    /// The prefix and the namespace, by number, of a node or an attribute.
    #[inline]
    pub(super) fn pair(&self, name: u32) -> (u32, u32) {
        pair(&self.bindings, name)
    }

    /// Where an element's start tag begins: its name always stands in the source.
    pub(super) fn offset(&self, element: u32) -> usize {
        let prefix = self.prefix(self.pair(self.nodes.name(element)).0).len();
        self.nodes.text(element).start() - prefix - usize::from(prefix > 0) - 1
    }

    #[inline]
    pub(super) fn prefix(&self, number: u32) -> &str {
        match number {
            EMPTY => "",
            RESERVED => "xml",
            _ => self.get(self.prefixes[number as usize - 2]),
        }
    }

    #[inline]
    pub(super) fn namespace(&self, number: u32) -> &str {
        match number {
            EMPTY => "",
            RESERVED => XML,
            _ => self.get(self.namespaces[number as usize - 2]),
        }
    }

    pub(super) fn prefix_count(&self) -> usize {
        self.prefixes.len() + 2
    }

    pub(super) fn namespace_count(&self) -> usize {
        self.namespaces.len() + 2
    }
}

/// Lists never grow longer than the text they describe, which is within [`BYTES_MAX`].
#[expect(clippy::cast_possible_truncation, reason = "documents are within BYTES_MAX")]
pub(super) fn number(length: usize) -> u32 {
    length as u32
}

/// Builds a [`Document`] in document order, and holds its limits.
#[derive(Debug)]
pub(super) struct Builder {
    pub(super) text: Text,
    pub(super) limits: XmlLimits,
    pub(super) nodes: Nodes,
    bindings: Vec<Binding>,
    uses: Vec<Use>,
    prefixes: Interner,
    namespaces: Interner,
    /// What each prefix is bound to just now.
    current: Vec<u32>,
    /// The open elements, outermost first.
    open: Vec<u32>,
    /// The bindings in force, oldest first.
    in_force: Vec<InForce>,
    /// The first binding of the element that is about to open.
    first_binding: usize,
    /// The length of the source that is read; 0 for a writer.
    source: usize,
    swell: usize,
}

impl Builder {
    pub(super) fn new(main: String, limits: XmlLimits) -> Builder {
        let (source, expected) = (main.len(), (main.capacity() / 8 + 8).min(256));
        let (prefixes, namespaces) = (Interner::new("xml"), Interner::new(XML));
        Builder {
            text: Text { main, extra: String::new() },
            limits,
            nodes: Nodes::with_capacity(expected),
            bindings: Vec::with_capacity(2),
            uses: Vec::new(),
            prefixes,
            namespaces,
            current: Vec::with_capacity(2),
            open: Vec::with_capacity(8),
            in_force: Vec::with_capacity(2),
            first_binding: 0,
            source,
            swell: 0,
        }
    }

    /// The innermost open element.
    #[inline]
    pub(super) fn open_element(&self) -> Option<u32> {
        self.open.last().copied()
    }

    /// The qualified name of an element, as it stands in the source.
    #[inline]
    pub(super) fn written_name(&self, element: u32) -> (usize, usize) {
        let (prefix, _) = pair(&self.bindings, self.nodes.name(element));
        let before = match prefix {
            EMPTY => 0,
            _ => self.prefixes.get(&self.text, prefix).len() + 1,
        };
        let local = self.nodes.text(element);
        (local.start() - before, local.end())
    }

    #[inline]
    pub(super) fn is_inside(&self) -> bool {
        !self.open.is_empty()
    }

    pub(super) fn namespace_text(&self, number: u32) -> &str {
        self.namespaces.get(&self.text, number)
    }

    /// Binds a prefix (or none, for an empty span) for the element about to open.
    pub(super) fn declare(
        &mut self,
        prefix: Span,
        namespace: Span,
        offset: usize,
    ) -> Result<(), Refusal> {
        let limits = &self.limits;
        if self.bindings.len() - self.first_binding >= limits.declarations_max {
            let what = "too many namespace declarations in one element";
            return Err(Refusal::limit(offset, what, "declarations_max", limits.declarations_max));
        }
        if self.in_force.len() >= limits.bindings_max {
            let what = "too many namespace declarations in force";
            return Err(Refusal::limit(offset, what, "bindings_max", limits.bindings_max));
        }
        let prefix = self.prefixes.intern(&self.text, prefix);
        let namespace = self.namespaces.intern(&self.text, namespace);
        if self.current.len() <= prefix as usize {
            self.current.resize(prefix as usize + 1, NONE);
        }
        let hidden = self.current[prefix as usize];
        if hidden != NONE && hidden as usize >= self.first_binding {
            let message = match self.prefixes.get(&self.text, prefix) {
                "" => "xmlns is declared twice".to_owned(),
                name => format!("xmlns:{} is declared twice", clip(name)),
            };
            return Err(Refusal::namespace(offset, message));
        }
        let binding = number(self.bindings.len());
        self.current[prefix as usize] = binding;
        self.in_force.push(InForce { binding, hidden });
        let owner = self.nodes.next();
        if self.bindings.len() == self.bindings.capacity() {
            self.make_room_for_bindings(offset);
        }
        self.bindings.push(Binding { prefix, namespace, owner });
        Ok(())
    }

    /// The number of a name with this prefix, or without one.
    #[inline]
    pub(super) fn resolve(&self, prefix: &str) -> Option<u32> {
        let prefix =
            if prefix.is_empty() { EMPTY } else { self.prefixes.find(&self.text, prefix)? };
        if prefix == RESERVED {
            return Some(XML_NAME);
        }
        match self.current.get(prefix as usize) {
            Some(&binding) if binding != NONE => Some(binding + FIRST),
            _ if prefix == EMPTY => Some(BARE),
            _ => None,
        }
    }

    /// The namespace of a name, by number.
    #[inline]
    pub(super) fn namespace_of(&self, name: u32) -> u32 {
        pair(&self.bindings, name).1
    }

    /// Opens an element. Its declarations must have been added with `declare` before.
    pub(super) fn open(&mut self, local: Span, name: u32, offset: usize) -> Result<(), Refusal> {
        if self.open.len() >= self.limits.depth_max {
            let what = "elements too deep within elements";
            return Err(Refusal::limit(offset, what, "depth_max", self.limits.depth_max));
        }
        self.swell(self.namespace_of(name), offset)?;
        self.make_room(offset);
        self.open.push(self.nodes.next());
        self.first_binding = self.bindings.len();
        self.nodes.open(local, name);
        self.count(offset)
    }

    /// Adds an attribute to the element just opened.
    pub(super) fn attribute(
        &mut self,
        attribute: AttributeNode,
        offset: usize,
    ) -> Result<(), Refusal> {
        if attribute.name > XML_NAME {
            let namespace = self.namespace_of(attribute.name);
            self.swell(namespace, offset)?;
            let is_type = self.text.get(attribute.local) == "type";
            if is_type && self.namespace_text(namespace) == XSI {
                self.count_as_used(attribute.value, offset)?;
            }
        }
        self.make_room(offset);
        if let Some(element) = self.open_element() {
            self.nodes.push_attribute(element, attribute);
        }
        self.count(offset)
    }

    /// Adds a text to the open element.
    pub(super) fn push_text(&mut self, text: Span, offset: usize) -> Result<(), Refusal> {
        self.make_room(offset);
        self.nodes.push_text(text);
        self.count(offset)
    }

    /// Closes the innermost element.
    pub(super) fn close(&mut self) {
        let Some(open) = self.open.pop() else { return };
        self.nodes.close(open);
        while let Some(&InForce { binding, hidden }) = self.in_force.last()
            && let Binding { prefix, owner, .. } = self.bindings[binding as usize]
            && owner == open
        {
            self.current[prefix as usize] = hidden;
            self.in_force.pop();
        }
    }

    pub(super) fn finish(mut self, is_canonical: bool) -> Document {
        self.nodes.finish();
        Document {
            text: self.text,
            nodes: self.nodes,
            bindings: self.bindings,
            uses: self.uses,
            prefixes: self.prefixes.finish(),
            namespaces: self.namespaces.finish(),
            is_canonical,
            canonical: OnceLock::new(),
        }
    }

    /// Notes the prefix of a qualified name in the value of the attribute about to be pushed.
    fn count_as_used(&mut self, value: Span, offset: usize) -> Result<(), Refusal> {
        let name = self.text.get(value).trim_matches([' ', '\t', '\n', '\r']);
        let prefix = name.split_once(':').map_or("", |(prefix, _)| prefix);
        if let Some(name) = self.resolve(prefix)
            && name != XML_NAME
        {
            self.swell(self.namespace_of(name), offset)?;
            // No attribute stands before its element, none of an earlier one after it.
            self.uses.push(Use { place: self.nodes.next(), name });
        }
        Ok(())
    }

    /// Counts what canonical form may repeat, since it declares a prefix wherever it is used.
    fn swell(&mut self, namespace: u32, offset: usize) -> Result<(), Refusal> {
        if namespace == EMPTY {
            return Ok(());
        }
        self.swell = self.swell.saturating_add(self.namespaces.length(namespace));
        let max = self.limits.message_bytes_max.saturating_mul(SWELL_MAX);
        if self.swell > max {
            let what = "long namespaces used too often, counted in bytes";
            return Err(Refusal::limit(offset, what, "8 times message_bytes_max", max));
        }
        Ok(())
    }

    /// For one node or attribute, with all its places.
    #[inline]
    fn make_room(&mut self, offset: usize) {
        if self.nodes.room() < Nodes::PLACES_MAX {
            self.make_room_for_nodes(offset);
        }
    }

    #[cold]
    fn make_room_for_nodes(&mut self, offset: usize) {
        let more = self.more(self.nodes.next() as usize, offset, places_at_most);
        self.nodes.reserve_exact(more + Nodes::PLACES_MAX);
    }

    #[cold]
    fn make_room_for_bindings(&mut self, offset: usize) {
        let more = self.more(self.bindings.len(), offset, equals_signs);
        self.bindings.reserve_exact(more);
    }

    /// How many more there may be after the `length` that there are at `offset`: if it goes on
    /// like this, but no more than `most` finds in what follows. So lists are neither moved often
    /// nor left half empty. What is being written has nothing after it: its lists double.
    fn more(&self, length: usize, offset: usize, most: fn(&[u8]) -> usize) -> usize {
        let Some(rest) = self.text.main.as_bytes().get(offset..self.source) else {
            return length.max(16);
        };
        let likely = length as u64 * rest.len() as u64 / offset.max(1) as u64;
        let likely = usize::try_from(likely + likely / 32).unwrap_or(usize::MAX);
        likely.max(length / 4).min(most(rest)).min(self.limits.nodes_max).max(16)
    }

    fn count(&self, offset: usize) -> Result<(), Refusal> {
        if self.nodes.count() > self.limits.nodes_max {
            let what = "too many elements, texts and attributes";
            return Err(Refusal::limit(offset, what, "nodes_max", self.limits.nodes_max));
        }
        Ok(())
    }
}

/// How many places a source may take: one for each start tag, each text and each attribute, one
/// more for each that must be decoded or has space about its `=`, and one more for seven of an
/// element.
fn places_at_most(source: &[u8]) -> usize {
    // So few at once that a byte counts them, and no branch, also none for an overflow: many bytes
    // are looked at together.
    const AT_ONCE: usize = 96;
    let marks = |(&byte, &next): (&u8, &u8)| {
        let (equals, reference) = (byte == b'=', byte == b'&');
        let tag_or_section = (byte == b'<') & (next != b'/') & (next != b'?');
        let text = (byte == b'>') & (next != b'<');
        let space_after = equals & (next != b'"') & (next != b'\'');
        let space_before = (byte == b' ') & (next == b'=');
        let more = u8::from(space_after | space_before | reference);
        u8::from(tag_or_section | text | equals).wrapping_add(more)
    };
    let nexts = source.get(1..).unwrap_or_default();
    let pieces = source.chunks(AT_ONCE).zip(nexts.chunks(AT_ONCE));
    let count = |(bytes, nexts): (&[u8], &[u8])| {
        bytes.iter().zip(nexts).map(marks).fold(0_u8, u8::wrapping_add)
    };
    pieces.map(|piece| usize::from(count(piece))).sum::<usize>() + equals_signs(source) / 7
}

/// How many declarations a source may have.
fn equals_signs(source: &[u8]) -> usize {
    memchr::memchr_iter(b'=', source).count()
}
