//! The arena of a document: its text, flat lists of nodes and bindings, and their builder.
//!
//! Nodes are in document order, so a subtree is a range and nothing recurses. Prefixes and
//! namespaces are represented by numbers, so the cost of comparing and restoring them doesn't
//! depend on their length.

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
/// The number of a name without a prefix where no default namespace is in force. The number of a
/// name stands for the name's prefix and namespace, without the local name.
pub(super) const BARE: u32 = 0;
/// The number of a name with the prefix `xml`.
const XML_NAME: u32 = 1;
/// The number of a name that the document's first binding resolves. Names that later bindings
/// resolve have the following numbers.
const FIRST: u32 = 2;
/// The bit that is set in both ends of a span in [`Text::extra`].
const EXTRA: u32 = 1 << 31;
/// The most bytes that a document may have, without its decoded values. Offsets up to this limit
/// leave the top bit of a span's ends free for [`EXTRA`].
pub(super) const BYTES_MAX: usize = (EXTRA / 2) as usize;
/// The limit on the bytes of namespaces in a document, as a multiple of
/// [`XmlLimits::message_bytes_max`]. A namespace is counted at every name that uses it, because
/// canonical form may declare a namespace at every use of its prefix. Without the limit, short
/// prefixes for long namespaces could make the canonical form much larger than the document.
const SWELL_MAX: usize = 8;

/// A part of a document's [`Text`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Span {
    start: u32,
    end: u32,
}

impl Span {
    /// Creates a span. Both ends must be within [`BYTES_MAX`], which the reader and the writer
    /// check first.
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

    /// Returns the span of this length that starts at [`bits`](Span::bits).
    pub(super) const fn of_length(bits: u32, length: u32) -> Span {
        Span { start: bits, end: bits + length }
    }

    /// Returns the start as the span stores it: an offset, with the bit [`EXTRA`] if the span lies
    /// in the extra text.
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

/// The text of a document. `main` is the source; a writer's source is the text written so far.
/// `extra` holds the texts and values that had to be decoded.
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

    /// Returns the span from `start` to the end of `extra`.
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
    /// The number of the name. A name without a prefix has [`BARE`], even where a default namespace
    /// is in force.
    pub(super) name: u32,
}

/// A namespace declaration.
#[derive(Clone, Copy, Debug)]
pub(super) struct Binding {
    pub(super) prefix: u32,
    pub(super) namespace: u32,
    /// The element with the declaration.
    pub(super) owner: u32,
}

/// A binding in force. `hidden` is the outer binding of the same prefix that this binding hides, or
/// [`NONE`].
#[derive(Clone, Copy, Debug)]
struct InForce {
    binding: u32,
    hidden: u32,
}

/// Returns the numbers of the prefix and of the namespace of a name.
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

/// A qualified name in the value of an `xsi:type`. Canonical form counts the name's prefix as used.
#[derive(Clone, Copy, Debug)]
pub(super) struct Use {
    /// A place after the start of the attribute's element, and before the element's content.
    pub(super) place: u32,
    pub(super) name: u32,
}

/// A whole document. It is never changed after it is built.
#[derive(Debug)]
pub(super) struct Document {
    pub(super) text: Text,
    pub(super) nodes: Nodes,
    pub(super) bindings: Vec<Binding>,
    pub(super) uses: Vec<Use>,
    prefixes: Vec<Span>,
    namespaces: Vec<Span>,
    /// Whether `text.main` is the root in canonical form.
    pub(super) is_canonical: bool,
    /// The root in canonical form, once it is known.
    pub(super) canonical: OnceLock<Bytes>,
}

impl Document {
    #[inline]
    pub(super) fn get(&self, span: Span) -> &str {
        self.text.get(span)
    }

    /// Returns the numbers of the prefix and of the namespace of an element's or an attribute's
    /// name.
    #[inline]
    pub(super) fn pair(&self, name: u32) -> (u32, u32) {
        pair(&self.bindings, name)
    }

    /// Returns the offset of an element's start tag in the source. An element's name always stands
    /// in the source.
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

/// Converts a length or an index into a number. The number fits, since no list is longer than the
/// text that it describes, and that text is within [`BYTES_MAX`].
#[expect(clippy::cast_possible_truncation, reason = "documents are within BYTES_MAX")]
pub(super) fn number(length: usize) -> u32 {
    length as u32
}

/// Builds a [`Document`] in document order, and enforces its limits.
#[derive(Debug)]
pub(super) struct Builder {
    pub(super) text: Text,
    pub(super) limits: XmlLimits,
    pub(super) nodes: Nodes,
    bindings: Vec<Binding>,
    uses: Vec<Use>,
    prefixes: Interner,
    namespaces: Interner,
    /// Maps each prefix, by its number, to its binding in force, or to [`NONE`].
    current: Vec<u32>,
    /// The open elements, outermost first.
    open: Vec<u32>,
    /// The bindings in force, oldest first.
    in_force: Vec<InForce>,
    /// The index of the first binding of the element that is about to open.
    first_binding: usize,
    /// The length of the source that a reader reads. 0 for a writer.
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

    /// Returns the innermost open element.
    #[inline]
    pub(super) fn open_element(&self) -> Option<u32> {
        self.open.last().copied()
    }

    /// Returns the start and the end of an element's qualified name in the source.
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

    /// Adds a declaration to the element that is about to open. An empty `prefix` declares the
    /// default namespace.
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

    /// Returns the number of a name with this prefix. An empty `prefix` stands for a name without a
    /// prefix. Returns `None` if the prefix is bound to nothing.
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

    /// Returns the number of a name's namespace.
    #[inline]
    pub(super) fn namespace_of(&self, name: u32) -> u32 {
        pair(&self.bindings, name).1
    }

    /// Opens an element. The element's declarations must have been added with `declare` before.
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

    /// Records the qualified name in `value` as used. `value` is the value of an attribute that is
    /// about to be added.
    fn count_as_used(&mut self, value: Span, offset: usize) -> Result<(), Refusal> {
        let name = self.text.get(value).trim_matches([' ', '\t', '\n', '\r']);
        let prefix = name.split_once(':').map_or("", |(prefix, _)| prefix);
        if let Some(name) = self.resolve(prefix)
            && name != XML_NAME
        {
            self.swell(self.namespace_of(name), offset)?;
            // This number is greater than that of the attribute's element and smaller than that of
            // every later element.
            self.uses.push(Use { place: self.nodes.next(), name });
        }
        Ok(())
    }

    /// Adds the length of `namespace` to the count that [`SWELL_MAX`] bounds.
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

    /// Makes room for one node or attribute with all its places.
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

    /// Returns how many more items to reserve for a list that has `length` items at `offset`. The
    /// estimate assumes that the rest of the source has as many items per byte as the part before
    /// `offset`. It is at most the number that `most` finds in the rest, and at least 16. So lists
    /// rarely move, and stay nearly full. A writer has no source to estimate from, so its lists
    /// double.
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

/// Returns an upper bound for the places that the nodes of a source take. Each start tag, text and
/// attribute counts one. Each reference, and each `=` beside white space, counts one more. Every
/// seven attributes count one more, since an element with seven or more places of attributes has a
/// further place for their number. The further places of very long names and values aren't counted.
fn places_at_most(source: &[u8]) -> usize {
    // A `u8` can count the marks of a piece, since a piece has 96 bytes and a byte counts as at
    // most two marks. The loop has neither a branch nor an overflow check, so the compiler can
    // vectorise it.
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

/// Returns an upper bound for the namespace declarations in a source: the number of its equals
/// signs.
fn equals_signs(source: &[u8]) -> usize {
    memchr::memchr_iter(b'=', source).count()
}
