//! Elements, texts and attributes in document order, in eight bytes each. In a document of many
//! small elements they take most of the memory.
//!
//! A node's number is its index in the list. An element is followed by its attributes, and by
//! values that are too unusual to be packed. So ask [`Nodes::after`] for the next node, and never
//! count.

use std::ops::Range;

use super::tree::{AttributeNode, Span, number};

/// Eight bytes: where a text is, or a name, and what else there is to say about it, packed.
#[derive(Clone, Copy, Debug)]
struct Packed {
    start: u32,
    rest: u32,
}

/// In a node's `rest`: it is a text, and the other bits are its length.
const TEXT: u32 = 1 << 31;
/// In an element's `rest`: the length and the number of its name have the place that follows.
const UNUSUAL: u32 = 1 << 30;
/// How many places an element's attributes take, or [`MANY`].
const ATTRIBUTES: Bits = Bits { low: 27, max: 0x7 };
/// Instead of how many: the place before the first attribute says it.
const MANY: u32 = ATTRIBUTES.max;
/// How many places an element takes; none where they are too many to say.
const PLACES: Bits = Bits { low: 18, max: 0x1FF };
/// The length of its local name.
const LENGTH: Bits = Bits { low: 13, max: 0x1F };
/// The number of its name.
const NAME: Bits = Bits { low: 0, max: 0x1FFF };

/// In an attribute's `rest`: the value has the next place. Otherwise it follows the name after
/// `="`.
const APART: u32 = 1 << 31;
/// The length of an attribute's local name, where the value follows.
const LOCAL: Bits = Bits { low: 25, max: 0x3F };
/// The number of its name, or [`AS_ELEMENT`], or [`ELSEWHERE`].
const PREFIX: Bits = Bits { low: 16, max: 0x1FF };
/// The length of its value where it follows, of its local name where it doesn't.
const VALUE: Bits = Bits { low: 0, max: 0xFFFF };
/// Instead of the number of an attribute's name: it is the same as its element's.
const AS_ELEMENT: u32 = PREFIX.max;
/// Instead of the number of an attribute's name: it has the place after the value's, and so has
/// the name's length.
const ELSEWHERE: u32 = PREFIX.max - 1;
/// What stands between an attribute's name and its value, mostly.
const BETWEEN: u32 = "=\"".len() as u32;

/// Some bits of a `rest`.
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
    /// Where the elements end that take more places than a node can say, by their number.
    large: Vec<(u32, u32)>,
    /// Elements, texts and attributes.
    count: usize,
}

impl Nodes {
    /// How many places an element without attributes takes at the most, or an attribute.
    pub(super) const PLACES_MAX: usize = 4;

    pub(super) fn with_capacity(expected: usize) -> Nodes {
        Nodes { places: Vec::with_capacity(expected), ..Nodes::default() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// How many elements, texts and attributes there are.
    pub(super) fn count(&self) -> usize {
        self.count
    }

    /// The number of the node that comes next.
    pub(super) fn next(&self) -> u32 {
        number(self.places.len())
    }

    /// How many more places there is room for.
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

    /// The text, or the local name of an element.
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

    /// Which binding the prefix of an element, or none, has.
    #[inline]
    pub(super) fn name(&self, element: u32) -> u32 {
        match self.at(element).rest {
            rest if rest & UNUSUAL != 0 => self.at(element + 1).rest,
            rest => NAME.get(rest),
        }
    }

    /// One after the last place of what is within a node.
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

    /// The first node within an element; what follows a text.
    #[inline]
    pub(super) fn after(&self, node: u32) -> u32 {
        if self.is_text(node) {
            return node + 1;
        }
        self.attribute_places(node).end
    }

    /// Where an element's attributes stand.
    #[inline]
    pub(super) fn attribute_places(&self, element: u32) -> Range<u32> {
        let rest = self.at(element).rest;
        let start = element + 1 + u32::from(rest & UNUSUAL != 0);
        match ATTRIBUTES.get(rest) {
            MANY => start + 1..start + 1 + self.at(start).rest,
            few => start..start + few,
        }
    }

    /// An element's attributes.
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

    /// Makes the last node, a text, another text.
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

    /// Gives `element`, which was just opened, an attribute.
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

    /// Closes an element: all that is within it is there.
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

    /// Once all are closed: elements close in another order than they open.
    pub(super) fn finish(&mut self) {
        self.large.sort_unstable();
    }

    #[cold]
    fn large_end(&self, element: u32) -> u32 {
        let found = self.large.binary_search_by_key(&element, |&(element, _)| element);
        // One that isn't there is still open: what there is so far is within it.
        found.map_or(self.next(), |at| self.large[at].1)
    }

    #[inline]
    fn at(&self, place: u32) -> Packed {
        self.places[place as usize]
    }
}
