//! Exclusive XML canonicalization of an element, as a walk over the element and its content. The
//! walk finds the declarations that each element needs, and sorts the attributes. A [`Sink`]
//! receives the walk: the sinks in this file write bytes, and the sink in `write` copies the
//! element into another document.

use std::cmp::Ordering;

use bytes::Bytes;

use super::tree::{AttributeNode, BARE, Document, EMPTY, RESERVED};
use super::write::{escape_attribute, escape_text};

/// Receives the parts of a canonical walk in document order.
pub(super) trait Sink {
    /// Receives the start of an element. Each declaration is the number of a prefix and the number
    /// of a namespace.
    fn start(&mut self, number: u32, declarations: &[(u32, u32)], attributes: &[AttributeNode]);
    /// Receives a text.
    fn text(&mut self, text: &str);
    /// Receives the end of the element that started as `number`.
    fn end(&mut self, number: u32);
}

/// Returns an element's canonical bytes.
pub(super) fn write(document: &Document, number: u32) -> Bytes {
    write_within(document, number, "")
}

/// Returns an element's canonical bytes for a place where the default namespace is `outer` already.
pub(super) fn write_within(document: &Document, number: u32, outer: &str) -> Bytes {
    let mut bytes = Writing { document, out: String::with_capacity(document.text.main.len()) };
    walk(document, number, outer, &mut bytes);
    Bytes::from(bytes.out)
}

/// Passes an element's canonical bytes to `take` piece by piece, so that they are never in memory
/// as a whole.
pub(super) fn pieces(document: &Document, number: u32, take: impl FnMut(&[u8])) {
    let out = String::with_capacity(2 * PIECE);
    let mut pieces = Pieces { writing: Writing { document, out }, take };
    walk(document, number, "", &mut pieces);
    pieces.pass(0);
}

/// The minimum size of a piece in bytes, except for the last piece. A piece ends after the tag or
/// the stretch of text that reaches this size, so a piece may be larger.
const PIECE: usize = 32 * 1024;

/// Walks an element for a place where the default namespace is `outer` already.
pub(super) fn walk(document: &Document, number: u32, outer: &str, sink: &mut impl Sink) {
    let mut walk = Walk {
        document,
        declared: vec![EMPTY; document.prefix_count()],
        undo: Vec::new(),
        declarations: Vec::new(),
        attributes: Vec::new(),
        ranks: Vec::new(),
    };
    walk.declared[EMPTY as usize] = walk.number_of(outer);
    let mut open: Vec<(u32, usize)> = Vec::new();
    let nodes = &document.nodes;
    let (mut at, end) = (number, nodes.end(number));
    while at < end {
        while let Some(&(inner, mark)) = open.last()
            && nodes.end(inner) <= at
        {
            sink.end(inner);
            walk.forget(mark);
            open.pop();
        }
        if nodes.is_text(at) {
            sink.text(document.get(nodes.text(at)));
        } else {
            open.push((at, walk.undo.len()));
            walk.prepare(at);
            sink.start(at, &walk.declarations, &walk.attributes);
        }
        at = nodes.after(at);
    }
    while let Some((inner, _)) = open.pop() {
        sink.end(inner);
    }
}

/// The number that stands for a namespace that the document doesn't have.
const FOREIGN: u32 = u32::MAX;

struct Walk<'a> {
    document: &'a Document,
    /// Maps each prefix to the namespace that the output binds it to at this point, both as
    /// numbers.
    declared: Vec<u32>,
    undo: Vec<(u32, u32)>,
    declarations: Vec<(u32, u32)>,
    attributes: Vec<AttributeNode>,
    /// Maps each namespace, by its number, to its rank in the sorted order of all namespaces. The
    /// list is empty until a rank is needed.
    ranks: Vec<u32>,
}

impl Walk<'_> {
    /// Finds the declarations and the order of the attributes of one element.
    fn prepare(&mut self, number: u32) {
        let document = self.document;
        self.declarations.clear();
        self.attributes.clear();
        self.need(document.nodes.name(number));
        let places = document.nodes.attribute_places(number);
        if places.is_empty() {
            return;
        }
        self.attributes.extend(document.nodes.attributes(number));
        for at in 0..self.attributes.len() {
            if self.attributes[at].name != BARE {
                self.need(self.attributes[at].name);
            }
        }
        let first = document.uses.partition_point(|it| it.place < number);
        for used in document.uses[first..].iter().take_while(|it| it.place < places.end) {
            self.need(used.name);
        }
        if self.declarations.len() > 1 {
            let prefix = |&(prefix, _): &(u32, u32)| document.prefix(prefix);
            self.declarations.sort_unstable_by(|a, b| prefix(a).cmp(prefix(b)));
        }
        self.sort_attributes();
    }

    /// Declares a name's prefix, unless the prefix is already bound to the name's namespace.
    fn need(&mut self, name: u32) {
        let (prefix, namespace) = self.document.pair(name);
        if prefix == RESERVED || self.declared[prefix as usize] == namespace {
            return;
        }
        self.undo.push((prefix, self.declared[prefix as usize]));
        self.declared[prefix as usize] = namespace;
        self.declarations.push((prefix, namespace));
    }

    fn forget(&mut self, mark: usize) {
        for (prefix, namespace) in self.undo.drain(mark..).rev() {
            self.declared[prefix as usize] = namespace;
        }
    }

    /// Sorts the attributes by namespace, then by local name. A walk ranks the namespaces of the
    /// document once, because comparing long and similar namespaces for each element would be slow.
    fn sort_attributes(&mut self) {
        if self.attributes.len() < 2 {
            return;
        }
        if self.ranks.is_empty() && self.attributes.iter().any(|it| it.name != BARE) {
            self.ranks = ranks(self.document);
        }
        let (document, ranks) = (self.document, &self.ranks);
        let rank = |name: u32| ranks.get(document.pair(name).1 as usize).copied().unwrap_or(EMPTY);
        self.attributes.sort_unstable_by(|a, b| match rank(a.name).cmp(&rank(b.name)) {
            Ordering::Equal => document.get(a.local).cmp(document.get(b.local)),
            unequal => unequal,
        });
    }

    fn number_of(&self, namespace: &str) -> u32 {
        let known = |&number: &u32| self.document.namespace(number) == namespace;
        (0..).take(self.document.namespace_count()).find(known).unwrap_or(FOREIGN)
    }
}

fn ranks(document: &Document) -> Vec<u32> {
    let mut order: Vec<u32> = (0..).take(document.namespace_count()).collect();
    order.sort_by(|&a, &b| document.namespace(a).cmp(document.namespace(b)));
    let mut ranks = vec![EMPTY; order.len()];
    for (rank, &number) in (0..).zip(&order) {
        ranks[number as usize] = rank;
    }
    ranks
}

/// Writes the bytes of a walk.
struct Writing<'a> {
    document: &'a Document,
    out: String,
}

impl Writing<'_> {
    fn element_name(&mut self, element: u32) {
        let nodes = &self.document.nodes;
        self.name(nodes.name(element), self.document.get(nodes.text(element)));
    }

    fn name(&mut self, name: u32, local: &str) {
        let prefix = self.document.prefix(self.document.pair(name).0);
        if !prefix.is_empty() {
            self.out.push_str(prefix);
            self.out.push(':');
        }
        self.out.push_str(local);
    }
}

impl Sink for Writing<'_> {
    fn start(&mut self, number: u32, declarations: &[(u32, u32)], attributes: &[AttributeNode]) {
        let document = self.document;
        self.out.push('<');
        self.element_name(number);
        for &(prefix, namespace) in declarations {
            self.out.push_str(if prefix == EMPTY { " xmlns" } else { " xmlns:" });
            self.out.push_str(document.prefix(prefix));
            self.out.push_str("=\"");
            escape_attribute(document.namespace(namespace), &mut self.out);
            self.out.push('"');
        }
        for attribute in attributes {
            self.out.push(' ');
            self.name(attribute.name, document.get(attribute.local));
            self.out.push_str("=\"");
            escape_attribute(document.get(attribute.value), &mut self.out);
            self.out.push('"');
        }
        self.out.push('>');
    }

    fn text(&mut self, text: &str) {
        escape_text(text, &mut self.out);
    }

    fn end(&mut self, number: u32) {
        self.out.push_str("</");
        self.element_name(number);
        self.out.push('>');
    }
}

/// Writes the bytes of a walk, and passes them to `take` once there are [`PIECE`] bytes.
struct Pieces<'a, F> {
    writing: Writing<'a>,
    take: F,
}

impl<F: FnMut(&[u8])> Pieces<'_, F> {
    fn pass(&mut self, length_min: usize) {
        if self.writing.out.len() >= length_min {
            (self.take)(self.writing.out.as_bytes());
            self.writing.out.clear();
        }
    }
}

impl<F: FnMut(&[u8])> Sink for Pieces<'_, F> {
    fn start(&mut self, number: u32, declarations: &[(u32, u32)], attributes: &[AttributeNode]) {
        self.writing.start(number, declarations, attributes);
        self.pass(PIECE);
    }

    fn text(&mut self, text: &str) {
        let mut rest = text;
        while !rest.is_empty() {
            let (piece, after) = rest.split_at(rest.floor_char_boundary(PIECE));
            self.writing.text(piece);
            self.pass(PIECE);
            rest = after;
        }
    }

    fn end(&mut self, number: u32) {
        self.writing.end(number);
        self.pass(PIECE);
    }
}
