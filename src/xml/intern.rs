//! Interned strings. Up to 16 strings are searched one after another. A larger number of strings is
//! searched by a keyed hash.

use std::hash::{BuildHasher as _, RandomState};

use super::tree::{EMPTY, NONE, RESERVED, Span, Text, number};

/// The prefixes or the namespaces of a document, each with a number.
#[derive(Debug)]
pub(super) struct Interner {
    reserved: &'static str,
    spans: Vec<Span>,
    /// A hash table with open addressing and linear probing. The table holds the numbers of the
    /// strings, and [`NONE`] in its free places. Its length is a power of two, and at least a
    /// quarter of its places is free. The table is empty while there are at most
    /// [`LOOKED_AT_MAX`](Interner::LOOKED_AT_MAX) strings.
    index: Vec<u32>,
    /// Random keys of the hash, so that no sender can choose strings that collide. The numbers of
    /// the strings don't depend on the keys.
    keys: RandomState,
}

impl Interner {
    const LOOKED_AT_MAX: usize = 16;

    pub(super) fn new(reserved: &'static str) -> Interner {
        let keys = RandomState::new();
        Interner { reserved, spans: Vec::with_capacity(2), index: Vec::new(), keys }
    }

    pub(super) fn get<'a>(&'a self, text: &'a Text, number: u32) -> &'a str {
        match number {
            EMPTY => "",
            RESERVED => self.reserved,
            _ => text.get(self.spans[number as usize - 2]),
        }
    }

    pub(super) fn length(&self, number: u32) -> usize {
        match number {
            EMPTY => 0,
            RESERVED => self.reserved.len(),
            _ => self.spans[number as usize - 2].length() as usize,
        }
    }

    pub(super) fn find(&self, text: &Text, wanted: &str) -> Option<u32> {
        if wanted.is_empty() {
            return Some(EMPTY);
        }
        if wanted == self.reserved {
            return Some(RESERVED);
        }
        if self.index.is_empty() {
            let found = self.spans.iter().position(|&span| text.get(span) == wanted)?;
            return Some(number(found + 2));
        }
        let found = self.index[self.place(text, wanted)];
        (found != NONE).then_some(found)
    }

    /// Returns the number of the string at `span`. A string that isn't known yet gets the next
    /// number.
    pub(super) fn intern(&mut self, text: &Text, span: Span) -> u32 {
        if let Some(found) = self.find(text, text.get(span)) {
            return found;
        }
        let new = number(self.spans.len() + 2);
        if self.spans.len() == self.spans.capacity() {
            self.spans.reserve_exact(self.spans.len() / 4 + 4);
        }
        self.spans.push(span);
        if self.spans.len() > Interner::LOOKED_AT_MAX {
            self.note(text, new);
        }
        new
    }

    /// Returns the strings with the numbers from 2 on.
    pub(super) fn finish(self) -> Vec<Span> {
        self.spans
    }

    /// Puts the newest number into the index.
    fn note(&mut self, text: &Text, newest: u32) {
        let all = self.spans.len();
        if all * 4 <= self.index.len() * 3 {
            let place = self.place(text, self.get(text, newest));
            self.index[place] = newest;
            return;
        }
        // Frees the old index before the new one is allocated.
        self.index = Vec::new();
        self.index = vec![NONE; (all * 3 / 2).next_power_of_two()];
        for known in (2..).take(all) {
            let place = self.place(text, self.get(text, known));
            self.index[place] = known;
        }
    }

    /// Returns the place in the index that holds the number of `wanted`, or else the free place for
    /// it.
    fn place(&self, text: &Text, wanted: &str) -> usize {
        let last = self.index.len() - 1;
        #[expect(clippy::cast_possible_truncation, reason = "only its low bits count")]
        let mut place = self.keys.hash_one(wanted) as usize & last;
        while let found = self.index[place]
            && found != NONE
            && self.get(text, found) != wanted
        {
            place = (place + 1) & last;
        }
        place
    }
}
