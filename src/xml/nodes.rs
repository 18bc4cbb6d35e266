//! The nodes of a document: elements and texts in document order, each element with its attributes.
//!
//! The nodes are kept in a list of *places* of eight bytes each. A node or an attribute takes one
//! place if its numbers fit there, and up to four places otherwise. The layout is compact because
//! nodes take most of the memory of a document with many small elements.
//!
//! A node's number is the index of its first place. The places of an element's attributes follow
//! those of the element. So use [`Nodes::after`] to find the next node, never `+ 1`.
//!
//! The number of a name stands for the name's prefix and namespace, without the local name.

use std::ops::Range;

use super::tree::{AttributeNode, Span, number};

/// One place: the start of a text or a name, and further data in bit fields.
#[derive(Clone, Copy, Debug)]
struct Packed {
    start: u32,
    rest: u32,
}

/// A bit in a node's `rest`: the node is a text, and the other bits are its length.
const TEXT: u32 = 1 << 31;
/// A bit in an element's `rest`: the next place holds the length of the element's local name and
/// the number of its name.
const UNUSUAL: u32 = 1 << 30;
/// A field in an element's `rest`: how many places the element's attributes take, or [`MANY`].
const ATTRIBUTES: Bits = Bits { low: 27, max: 0x7 };
/// A value of [`ATTRIBUTES`]: the number of places is too large for the field, and is stored in the
/// place before the first attribute.
const MANY: u32 = ATTRIBUTES.max;
/// A field in an element's `rest`: how many places the element takes with its attributes and its
/// content. The field is 0 while the element is open. It is also 0 if the number doesn't fit; in
/// that case, [`Nodes::large`] holds the element's end.
const PLACES: Bits = Bits { low: 18, max: 0x1FF };
/// A field in an element's `rest`: the length of the element's local name.
const LENGTH: Bits = Bits { low: 13, max: 0x1F };
/// A field in an element's `rest`: the number of the element's name.
const NAME: Bits = Bits { low: 0, max: 0x1FFF };

/// A bit in an attribute's `rest`: the next place holds the span of the value. Without this bit,
/// exactly `="` stands between the name and the value.
const APART: u32 = 1 << 31;
/// A field in an attribute's `rest` without [`APART`]: the length of the attribute's local name.
const LOCAL: Bits = Bits { low: 25, max: 0x3F };
/// A field in an attribute's `rest`: the number of the attribute's name, or [`AS_ELEMENT`], or
/// [`ELSEWHERE`].
const PREFIX: Bits = Bits { low: 16, max: 0x1FF };
/// A field in an attribute's `rest`. Without [`APART`], it is the length of the attribute's value.
/// With [`APART`], it is the length of the attribute's local name.
const VALUE: Bits = Bits { low: 0, max: 0xFFFF };
/// A value of [`PREFIX`]: the attribute's name has the same number as its element's name.
const AS_ELEMENT: u32 = PREFIX.max;
/// A value of [`PREFIX`]: the place after that of the value holds the length of the local name and
/// the number of the name.
const ELSEWHERE: u32 = PREFIX.max - 1;
/// The length of the text `="`, which usually stands between an attribute's name and its value.
const BETWEEN: u32 = "=\"".len() as u32;

/// A bit field of a `rest`.
struct Bits {
    low: u32,
    max: u32,
}

impl Bits {
    const fn get(&self, rest: u32) -> u32 {
        rest >> self.low & self.max
    }

    const fn put(&self, value: u32) -> u32 {
        value << self.low
    }
}

/// The nodes of a document.
#[derive(Debug, Default)]
pub(super) struct Nodes {
    places: Vec<Packed>,
    /// The number and the end of each element that takes too many places for [`PLACES`].
    large: Vec<(u32, u32)>,
    /// How many elements, texts and attributes there are.
    count: usize,
}

impl Nodes {
    /// The most places that one element, text or attribute takes.
    pub(super) const PLACES_MAX: usize = 4;

    pub(super) fn with_capacity(expected: usize) -> Nodes {
        Nodes { places: Vec::with_capacity(expected), ..Nodes::default() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// Returns how many elements, texts and attributes there are.
    pub(super) fn count(&self) -> usize {
        self.count
    }

    /// Returns the number that the next node will get.
    pub(super) fn next(&self) -> u32 {
        number(self.places.len())
    }

    /// Returns how many more places fit before the list has to grow.
    pub(super) fn room(&self) -> usize {
        self.places.capacity() - self.places.len()
    }

    pub(super) fn reserve_exact(&mut self, more: usize) {
        self.places.reserve_exact(more);
    }

    #[inline]
    pub(super) fn is_text(&self, node: u32) -> bool {
        self.at(node).rest & TEXT != 0
    }

    /// Returns the span of a text, or of an element's local name.
    #[inline]
    pub(super) fn text(&self, node: u32) -> Span {
        let Packed { start, rest } = self.at(node);
        let length = match rest {
            _ if rest & TEXT != 0 => rest & !TEXT,
            _ if rest & UNUSUAL != 0 => self.at(node + 1).start,
            _ => LENGTH.get(rest),
        };
        Span::of_length(start, length)
    }

    /// Returns the number of an element's name, which stands for a prefix and its namespace.
    #[inline]
    pub(super) fn name(&self, element: u32) -> u32 {
        match self.at(element).rest {
            rest if rest & UNUSUAL != 0 => self.at(element + 1).rest,
            rest => NAME.get(rest),
        }
    }

    /// Returns the first place after a node, its attributes and its content.
    #[inline]
    pub(super) fn end(&self, node: u32) -> u32 {
        let rest = self.at(node).rest;
        if rest & TEXT != 0 {
            return node + 1;
        }
        match PLACES.get(rest) {
            0 => self.large_end(node),
            places => node + places,
        }
    }

    /// Returns the next element or text in document order. After an element with content, its first
    /// child is next.
    #[inline]
    pub(super) fn after(&self, node: u32) -> u32 {
        if self.is_text(node) {
            return node + 1;
        }
        self.attribute_places(node).end
    }

    /// Returns the places of an element's attributes.
    #[inline]
    pub(super) fn attribute_places(&self, element: u32) -> Range<u32> {
        let rest = self.at(element).rest;
        let start = element + 1 + u32::from(rest & UNUSUAL != 0);
        match ATTRIBUTES.get(rest) {
            MANY => start + 1..start + 1 + self.at(start).rest,
            few => start..start + few,
        }
    }

    /// Returns an element's attributes.
    #[inline]
    pub(super) fn attributes(&self, element: u32) -> impl Iterator<Item = AttributeNode> {
        let Range { start: mut at, end } = self.attribute_places(element);
        std::iter::from_fn(move || {
            let Packed { start, rest } = (at < end).then(|| self.at(at))?;
            at += 1;
            let prefix = PREFIX.get(rest);
            let named = |number| if number == AS_ELEMENT { self.name(element) } else { number };
            if rest & APART == 0 {
                let length = LOCAL.get(rest);
                let value = Span::of_length(start + length + BETWEEN, VALUE.get(rest));
                let local = Span::of_length(start, length);
                return Some(AttributeNode { local, value, name: named(prefix) });
            }
            let value = self.at(at);
            at += 1;
            let (length, name) = if prefix == ELSEWHERE {
                at += 1;
                (self.at(at - 1).start, self.at(at - 1).rest)
            } else {
                (VALUE.get(rest), named(prefix))
            };
            let value = Span::of_length(value.start, value.rest);
            Some(AttributeNode { local: Span::of_length(start, length), value, name })
        })
    }

    /// Adds a text.
    #[inline]
    pub(super) fn push_text(&mut self, text: Span) {
        self.places.push(Packed { start: text.bits(), rest: TEXT | text.length() });
        self.count += 1;
    }

    /// Replaces the last node, which must be a text.
    pub(super) fn set_text(&mut self, text: Span) {
        if let Some(last) = self.places.last_mut() {
            *last = Packed { start: text.bits(), rest: TEXT | text.length() };
        }
    }

    /// Opens an element.
    #[inline]
    pub(super) fn open(&mut self, local: Span, name: u32) {
        let (start, length) = (local.bits(), local.length());
        if length <= LENGTH.max && name <= NAME.max {
            self.places.push(Packed { start, rest: LENGTH.put(length) | NAME.put(name) });
        } else {
            self.places.push(Packed { start, rest: UNUSUAL });
            self.places.push(Packed { start: length, rest: name });
        }
        self.count += 1;
    }

    /// Adds an attribute to `element`, which must be the last node.
    #[inline]
    pub(super) fn push_attribute(&mut self, element: u32, attribute: AttributeNode) {
        let AttributeNode { local, value, name } = attribute;
        let first = self.attribute_places(element).start as usize;
        let (start, length) = (local.bits(), local.length());
        let prefix = match name {
            _ if name == self.name(element) => AS_ELEMENT,
            _ if name < ELSEWHERE => name,
            _ => ELSEWHERE,
        };
        let follows = value.bits() == start + length + BETWEEN && value.length() <= VALUE.max;
        if follows && length <= LOCAL.max && prefix != ELSEWHERE {
            let lengths = LOCAL.put(length) | VALUE.put(value.length());
            self.places.push(Packed { start, rest: PREFIX.put(prefix) | lengths });
        } else if length <= VALUE.max && prefix != ELSEWHERE {
            let rest = APART | PREFIX.put(prefix) | VALUE.put(length);
            self.places.push(Packed { start, rest });
            self.places.push(Packed { start: value.bits(), rest: value.length() });
        } else {
            self.places.push(Packed { start, rest: APART | PREFIX.put(ELSEWHERE) });
            self.places.push(Packed { start: value.bits(), rest: value.length() });
            self.places.push(Packed { start: length, rest: name });
        }
        let places = number(self.places.len() - first);
        let node = &mut self.places[element as usize];
        match ATTRIBUTES.get(node.rest) {
            MANY => self.places[first - 1].rest = places,
            before if places < MANY => node.rest += ATTRIBUTES.put(places - before),
            before => {
                node.rest += ATTRIBUTES.put(MANY - before);
                self.places.insert(first, Packed { start: 0, rest: places });
            }
        }
        self.count += 1;
    }

    /// Closes an element whose attributes and content have been added.
    #[inline]
    pub(super) fn close(&mut self, element: u32) {
        let end = self.next();
        match end - element {
            places if places <= PLACES.max => {
                self.places[element as usize].rest |= PLACES.put(places);
            }
            _ => self.large.push((element, end)),
        }
    }

    /// Sorts `large` by number once all elements are closed, since elements close in another order
    /// than they open.
    pub(super) fn finish(&mut self) {
        self.large.sort_unstable();
    }

    #[cold]
    fn large_end(&self, element: u32) -> u32 {
        let found = self.large.binary_search_by_key(&element, |&(element, _)| element);
        // An element that isn't found is still open, so its content reaches to the end.
        found.map_or(self.next(), |at| self.large[at].1)
    }

    #[inline]
    fn at(&self, place: u32) -> Packed {
        self.places[place as usize]
    }
}
