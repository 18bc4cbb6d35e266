//! A cache of recent bodies, in which the writer looks for text that a new body repeats. If a body
//! was evicted, text that repeats it is stored a second time. Nothing else depends on the cache.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::VecDeque;
use std::ops::Range;

use memchr::memmem::Finder;
use rustc_hash::FxHashMap;

use crate::log::entry::Entry;
use crate::log::sqlite::limits::{
    BODY_BYTES_MAX, CACHED_BODIES_BYTES_MAX, CACHED_BODIES_MAX, SHARES_MAX,
};
use crate::log::sqlite::shared_text::Share;

/// The shortest text that is shared. A share costs a row in the file, and a query when the body is
/// read.
const CONTENT_BYTES_MIN: usize = 512;
/// A search for a text looks for only this many of its first bytes, so that a long text needs no
/// long preparation.
const BEGINNING_BYTES: usize = 32;
/// How many places with the same first bytes are compared. This bounds the search in a body that is
/// full of such places.
const PLACES_MAX: usize = 8;

/// The cache: maps the number of a thread to recent bodies of the thread.
#[derive(Default)]
pub(super) struct Sources {
    threads: FxHashMap<u64, VecDeque<Source>>,
    bytes: usize,
}

/// A body in the cache, as the entry's row has it: without the text that it shares with earlier
/// bodies.
struct Source {
    position: u64,
    body: Vec<u8>,
    content: Range<usize>,
    beginning: Finder<'static>,
}

/// A range of a new body, and the source that has the same bytes.
struct Stretch {
    here: Range<usize>,
    source: u64,
    start: usize,
}

impl Sources {
    /// Splits an entry's body into shares, in order, and the rest. A rest that is long enough is
    /// added to the cache.
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

    /// Finds the ranges of a body that repeat text of earlier bodies, in order. Between two ranges
    /// there is always some of the body's own text.
    fn find(&self, thread: u64, body: &[u8]) -> Vec<Stretch> {
        let Some(sources) = self.threads.get(&thread) else { return Vec::new() };
        // A body in the cache may contain the whole content of this body.
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
        if self.bytes > CACHED_BODIES_BYTES_MAX {
            *self = Sources::default();
        }
        let beginning = &body[content.start..content.start + BEGINNING_BYTES];
        let beginning = Finder::new(beginning).into_owned();
        let sources = self.threads.entry(thread).or_default();
        sources.push_back(Source { position, body: body.to_vec(), content, beginning });
        self.bytes += body.len();
        if sources.len() > CACHED_BODIES_MAX {
            self.bytes -= sources.pop_front().map_or(0, |it| it.body.len());
        }
    }
}

/// The range of a body without the tags around it. `None` if the range is too short. The tags are
/// left out because repeated text has other tags around it. The range begins and ends between
/// characters, because tags do.
fn content(body: &[u8]) -> Option<Range<usize>> {
    let (mut start, mut end) = (0, body.len());
    while body[start..end].starts_with(b"<") && body[start..end].ends_with(b">") {
        start += memchr::memchr(b'>', &body[start..end])? + 1;
        end = start + memchr::memrchr(b'<', &body[start..end])?;
    }
    (end - start >= CONTENT_BYTES_MIN).then_some(start..end)
}

/// Finds the places in a body at which a text occurs. `beginning` finds the text's first bytes.
fn places(body: &[u8], beginning: &Finder<'_>, content: &[u8]) -> impl Iterator<Item = usize> {
    let begins = beginning.find_iter(body).take(PLACES_MAX);
    begins.filter(move |at| body[*at..].starts_with(content))
}
