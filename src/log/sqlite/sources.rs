//! A cache of recent bodies, in which the writer looks for text that a new body repeats. A body
//! that is evicted costs bytes in the file and nothing else.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::VecDeque;
use std::ops::Range;

use memchr::memmem::Finder;
use rustc_hash::FxHashMap;

use crate::log::entry::Entry;
use crate::log::sqlite::shares::{BODY_BYTES_MAX, SHARES_MAX, Share};

/// The shortest text that is worth a row of its own, and a query by each reader.
const CONTENT_BYTES_MIN: usize = 512;
/// How many bodies of a thread are kept. An agent's turn repeats what it has just said.
const BODIES_MAX: usize = 16;
/// The most bytes of all threads' bodies.
const BYTES_MAX: usize = 4 * 1024 * 1024;
/// Text is searched by its first bytes, so that long text needs no preparation.
const BEGINNING_BYTES: usize = 32;
/// How many places with the same first bytes are compared. This bounds the search in a body that is
/// full of such places.
const PLACES_MAX: usize = 8;

/// Recent bodies, by the numbers of their threads.
#[derive(Default)]
pub(super) struct Sources {
    threads: FxHashMap<u64, VecDeque<Source>>,
    bytes: usize,
}

/// A body, or the rest of one, as in an entry's row.
struct Source {
    position: u64,
    body: Vec<u8>,
    content: Range<usize>,
    beginning: Finder<'static>,
}

/// A range of a new body, and the source that has it.
struct Stretch {
    here: Range<usize>,
    source: u64,
    start: usize,
}

impl Sources {
    /// Splits an entry's body into its shares, in order, and the rest. The body is in the cache
    /// from now on.
    pub(super) fn part<'a>(
        &mut self,
        thread: u64,
        entry: &'a Entry,
    ) -> (Vec<Share>, Cow<'a, [u8]>) {
        let body = &*entry.body;
        let is_apt = (CONTENT_BYTES_MIN..=BODY_BYTES_MAX).contains(&body.len());
        if !is_apt || entry.key.is_some() {
            return (Vec::new(), body.into());
        }
        let found = self.find(thread, body);
        if found.is_empty() {
            self.add(thread, entry.position, body);
            return (Vec::new(), body.into());
        }
        let (mut shares, mut rest, mut done) = (Vec::new(), Vec::new(), 0);
        for Stretch { here, source, start } in found {
            rest.extend_from_slice(&body[done..here.start]);
            shares.push(Share { at: rest.len(), source, start, length: here.len() });
            done = here.end;
        }
        rest.extend_from_slice(&body[done..]);
        self.add(thread, entry.position, &rest);
        (shares, rest.into())
    }

    /// The ranges that a body repeats, in order, with text of its own in between.
    fn find(&self, thread: u64, body: &[u8]) -> Vec<Stretch> {
        let Some(sources) = self.threads.get(&thread) else { return Vec::new() };
        // A longer body may contain all of it.
        if let Some(here) = content(body) {
            let content = &body[here.clone()];
            let beginning = Finder::new(&content[..BEGINNING_BYTES]);
            for source in sources {
                if let Some(start) = places(&source.body, &beginning, content).next() {
                    return vec![Stretch { here, source: source.position, start }];
                }
            }
        }
        let mut found: Vec<Stretch> = Vec::new();
        let mut longest: Vec<&Source> = sources.iter().collect();
        longest.sort_by_key(|it| Reverse(it.content.len()));
        for Source { position, body: theirs, content, beginning } in longest {
            for at in places(body, beginning, &theirs[content.clone()]) {
                let here = at..at + content.len();
                let apart = |it: &Stretch| here.end < it.here.start || it.here.end < here.start;
                if found.len() < SHARES_MAX && found.iter().all(apart) {
                    found.push(Stretch { here, source: *position, start: content.start });
                }
            }
        }
        found.sort_by_key(|it| it.here.start);
        found
    }

    fn add(&mut self, thread: u64, position: u64, body: &[u8]) {
        let Some(content) = content(body) else { return };
        if self.bytes > BYTES_MAX {
            *self = Sources::default();
        }
        let beginning = &body[content.start..content.start + BEGINNING_BYTES];
        let beginning = Finder::new(beginning).into_owned();
        let sources = self.threads.entry(thread).or_default();
        sources.push_back(Source { position, body: body.to_vec(), content, beginning });
        self.bytes += body.len();
        if sources.len() > BODIES_MAX {
            self.bytes -= sources.pop_front().map_or(0, |it| it.body.len());
        }
    }
}

/// A body without its first and last tag, if that is long enough: a repetition has other tags
/// around it. A tag never ends in the middle of a character.
fn content(body: &[u8]) -> Option<Range<usize>> {
    let (mut start, mut end) = (0, body.len());
    while body[start..end].starts_with(b"<") && body[start..end].ends_with(b">") {
        start += memchr::memchr(b'>', &body[start..end])? + 1;
        end = start + memchr::memrchr(b'<', &body[start..end])?;
    }
    (end - start >= CONTENT_BYTES_MIN).then_some(start..end)
}

/// The places of a text in a body.
fn places(body: &[u8], beginning: &Finder<'_>, content: &[u8]) -> impl Iterator<Item = usize> {
    let begins = beginning.find_iter(body).take(PLACES_MAX);
    begins.filter(move |at| body[*at..].starts_with(content))
}
