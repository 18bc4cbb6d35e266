//! The arena: one text, flat lists of nodes, attributes and bindings, and what builds them.
//!
//! Nodes stand in document order, so a subtree is a range and nothing recurses. They are what a
//! document of many small elements costs in memory, so they hold no more than every walk needs.
//! Prefixes and namespaces are numbers, so that comparing and restoring them costs the same
//! however long they are.

use std::collections::HashMap;
use std::hash::BuildHasher as _;
use std::sync::OnceLock;

use bytes::Bytes;

use super::error::{Refusal, clip};
use super::{XML, XSI};
use crate::limits::XmlLimits;

/// No node, no binding.
pub(super) const NONE: u32 = u32::MAX;
/// The number of the empty prefix and of the empty namespace.
pub(super) const EMPTY: u32 = 0;
/// The number of the prefix `xml` and of its namespace.
pub(super) const RESERVED: u32 = 1;
/// In place of a name: the node is a text.
const TEXT: u32 = u32::MAX;
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
    /// Both are within [`BYTES_MAX`], which whoever makes a document checks first.
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

    const fn length(self) -> usize {
        (self.end - self.start) as usize
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

/// An element or a text.
#[derive(Clone, Copy, Debug)]
pub(super) struct Node {
    /// The local name, or the text.
    pub(super) text: Span,
    /// Which binding its prefix, or none, has: what it is called is looked up there.
    pub(super) name: u32,
    /// One after the last node of the subtree.
    pub(super) end: u32,
    /// The first attribute; the next node's first is one after the last.
    pub(super) attributes: u32,
}

impl Node {
    pub(super) const fn is_text(&self) -> bool {
        self.name == TEXT
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
    /// The binding of the same prefix that this one hides.
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
    pub(super) attribute: u32,
    pub(super) name: u32,
}

/// A whole document, never changed once it is built.
#[derive(Debug)]
pub(super) struct Document {
    pub(super) text: Text,
    pub(super) nodes: Vec<Node>,
    pub(super) attributes: Vec<AttributeNode>,
    pub(super) bindings: Vec<Binding>,
    pub(super) uses: Vec<Use>,
    prefixes: Vec<Span>,
    namespaces: Vec<Span>,
    /// Whether the source is the root in canonical form already.
    pub(super) is_canonical: bool,
    /// The root in canonical form, once someone asked.
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
    pub(super) fn offset(&self, node: &Node) -> usize {
        let prefix = self.prefix(self.pair(node.name).0).len();
        node.text.start() - prefix - usize::from(prefix > 0) - 1
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

    /// The numbers of an element's attributes.
    #[inline]
    pub(super) fn attributes_of(&self, node: u32) -> std::ops::Range<usize> {
        let start = self.nodes[node as usize].attributes as usize;
        let end = match self.nodes.get(node as usize + 1) {
            Some(next) => next.attributes as usize,
            None => self.attributes.len(),
        };
        start..end
    }
}

/// Strings by number. Few are looked at one after another, many by a keyed hash.
#[derive(Debug)]
struct Interner {
    reserved: &'static str,
    spans: Vec<Span>,
    /// By their hash, so that no text is kept twice.
    index: HashMap<u64, u32>,
}

impl Interner {
    const LOOKED_AT_MAX: usize = 16;

    fn new(reserved: &'static str) -> Interner {
        Interner { reserved, spans: Vec::new(), index: HashMap::new() }
    }

    fn get<'a>(&'a self, text: &'a Text, number: u32) -> &'a str {
        match number {
            EMPTY => "",
            RESERVED => self.reserved,
            _ => text.get(self.spans[number as usize - 2]),
        }
    }

    fn length(&self, number: u32) -> usize {
        match number {
            EMPTY => 0,
            RESERVED => self.reserved.len(),
            _ => self.spans[number as usize - 2].length(),
        }
    }

    fn find(&self, text: &Text, wanted: &str) -> Option<u32> {
        if wanted.is_empty() {
            return Some(EMPTY);
        }
        if wanted == self.reserved {
            return Some(RESERVED);
        }
        if self.spans.len() > Interner::LOOKED_AT_MAX {
            let found = *self.index.get(&self.hash(wanted))?;
            // Hashes are keyed: two texts share one by chance, if ever.
            return match self.get(text, found) == wanted {
                true => Some(found),
                false => self.look(text, wanted),
            };
        }
        self.look(text, wanted)
    }

    fn look(&self, text: &Text, wanted: &str) -> Option<u32> {
        let found = self.spans.iter().position(|&span| text.get(span) == wanted)?;
        Some(number(found + 2))
    }

    fn hash(&self, text: &str) -> u64 {
        self.index.hasher().hash_one(text)
    }

    /// The number of what stands at `span`, which is new if it was not there.
    fn intern(&mut self, text: &Text, span: Span) -> u32 {
        if let Some(found) = self.find(text, text.get(span)) {
            return found;
        }
        let new = number(self.spans.len() + 2);
        self.spans.push(span);
        if self.spans.len() == Interner::LOOKED_AT_MAX + 1 {
            for (at, &span) in self.spans.iter().enumerate() {
                self.index.entry(self.hash(text.get(span))).or_insert(number(at + 2));
            }
        } else if self.spans.len() > Interner::LOOKED_AT_MAX {
            self.index.entry(self.hash(text.get(span))).or_insert(new);
        }
        new
    }
}

/// Lists never grow longer than the text they describe, which is within [`BYTES_MAX`].
#[expect(clippy::cast_possible_truncation, reason = "documents are within BYTES_MAX")]
fn number(length: usize) -> u32 {
    length as u32
}

/// Builds a [`Document`] in document order, and holds its limits.
#[derive(Debug)]
pub(super) struct Builder {
    pub(super) text: Text,
    pub(super) limits: XmlLimits,
    pub(super) nodes: Vec<Node>,
    attributes: Vec<AttributeNode>,
    bindings: Vec<Binding>,
    uses: Vec<Use>,
    prefixes: Interner,
    namespaces: Interner,
    /// What each prefix is bound to just now.
    current: Vec<u32>,
    /// The open elements, outermost first.
    open: Vec<u32>,
    /// The bindings in force, oldest first.
    in_force: Vec<u32>,
    /// The first binding of the element that is about to open.
    first_binding: usize,
    swell: usize,
}

impl Builder {
    pub(super) fn new(main: String, limits: XmlLimits) -> Builder {
        let expected = (main.capacity() / 20 + 4).min(256);
        Builder {
            text: Text { main, extra: String::new() },
            limits,
            nodes: Vec::with_capacity(expected),
            attributes: Vec::new(),
            bindings: Vec::with_capacity(2),
            uses: Vec::new(),
            prefixes: Interner::new("xml"),
            namespaces: Interner { spans: Vec::with_capacity(2), ..Interner::new(XML) },
            current: Vec::with_capacity(2),
            open: Vec::with_capacity(8),
            in_force: Vec::with_capacity(2),
            first_binding: 0,
            swell: 0,
        }
    }

    /// The innermost open element.
    #[inline]
    pub(super) fn open_element(&self) -> Option<&Node> {
        self.nodes.get(*self.open.last()? as usize)
    }

    /// The qualified name of an element, as it stands in the source.
    #[inline]
    pub(super) fn written_name(&self, node: &Node) -> (usize, usize) {
        let (prefix, _) = pair(&self.bindings, node.name);
        let before = match prefix {
            EMPTY => 0,
            _ => self.prefixes.get(&self.text, prefix).len() + 1,
        };
        (node.text.start() - before, node.text.end())
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
        self.in_force.push(binding);
        let owner = number(self.nodes.len());
        self.bindings.push(Binding { prefix, namespace, owner, hidden });
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

    /// Opens an element; what it declares is declared before.
    pub(super) fn open(&mut self, local: Span, name: u32, offset: usize) -> Result<(), Refusal> {
        if self.open.len() >= self.limits.depth_max {
            let what = "elements too deep within elements";
            return Err(Refusal::limit(offset, what, "depth_max", self.limits.depth_max));
        }
        self.swell(self.namespace_of(name), offset)?;
        let attributes = number(self.attributes.len());
        self.open.push(number(self.nodes.len()));
        self.first_binding = self.bindings.len();
        self.push(Node { text: local, name, end: NONE, attributes }, offset)
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
        if self.attributes.len() == self.attributes.capacity() {
            self.make_room_for_attributes(offset);
        }
        self.attributes.push(attribute);
        self.count(offset)
    }

    /// Adds a text to the open element.
    pub(super) fn push_text(&mut self, text: Span, offset: usize) -> Result<(), Refusal> {
        let end = number(self.nodes.len() + 1);
        let attributes = number(self.attributes.len());
        self.push(Node { text, name: TEXT, end, attributes }, offset)
    }

    /// Closes the innermost element.
    pub(super) fn close(&mut self) {
        let end = number(self.nodes.len());
        let Some(open) = self.open.pop() else { return };
        self.nodes[open as usize].end = end;
        while let Some(&newest) = self.in_force.last()
            && let Binding { prefix, owner, hidden, .. } = self.bindings[newest as usize]
            && owner == open
        {
            self.current[prefix as usize] = hidden;
            self.in_force.pop();
        }
    }

    pub(super) fn finish(self, is_canonical: bool) -> Document {
        Document {
            text: self.text,
            nodes: self.nodes,
            attributes: self.attributes,
            bindings: self.bindings,
            uses: self.uses,
            prefixes: self.prefixes.spans,
            namespaces: self.namespaces.spans,
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
            let attribute = number(self.attributes.len());
            self.uses.push(Use { attribute, name });
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

    #[inline]
    fn push(&mut self, node: Node, offset: usize) -> Result<(), Refusal> {
        if self.nodes.len() == self.nodes.capacity() {
            self.make_room(offset);
        }
        self.nodes.push(node);
        self.count(offset)
    }

    #[cold]
    fn make_room(&mut self, offset: usize) {
        // An element brings one node, and one more with the text before it.
        let more = self.more(self.nodes.len(), offset, b'<', 2);
        self.nodes.reserve_exact(more);
    }

    #[cold]
    fn make_room_for_attributes(&mut self, offset: usize) {
        let more = self.more(self.attributes.len(), offset, b'=', 1);
        self.attributes.reserve_exact(more);
    }

    /// How many more there may be after the `length` that there are at `offset`: if it goes on
    /// like this, but no more than `each` for every `mark`. So lists are neither moved often nor
    /// left half empty. What is being written has nothing after it: its lists double.
    fn more(&self, length: usize, offset: usize, mark: u8, each: usize) -> usize {
        let rest = self.text.main.as_bytes().get(offset..).unwrap_or_default();
        let most = each * memchr::memchr_iter(mark, rest).count() + 1;
        let likely = length as u64 * rest.len() as u64 / offset.max(1) as u64;
        let likely = usize::try_from(likely + likely / 16).unwrap_or(usize::MAX);
        let more = if most > each + 1 { likely.max(length / 4).min(most) } else { length };
        more.min(self.limits.nodes_max).max(16)
    }

    fn count(&self, offset: usize) -> Result<(), Refusal> {
        if self.nodes.len() + self.attributes.len() > self.limits.nodes_max {
            let what = "too many elements, texts and attributes";
            return Err(Refusal::limit(offset, what, "nodes_max", self.limits.nodes_max));
        }
        Ok(())
    }
}
