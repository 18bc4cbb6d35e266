//! Bodies that the writer has at hand, to find in a new one what the file has already. It forgets
//! them as it pleases: that costs bytes and nothing else.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::VecDeque;
use std::ops::Range;

use memchr::memmem::Finder;
use rustc_hash::FxHashMap;

use crate::log::entry::Entry;
use crate::log::sqlite::shares::{BODY_BYTES_MAX, SHARES_MAX, Share};

/// Bytes that are worth a row of their own, and a look-up by whoever reads the entry.
const CONTENT_BYTES_MIN: usize = 512;
/// Bodies of one thread: an agent's turn repeats what it has just said.
const BODIES_MAX: usize = 16;
/// Bytes of all threads' bodies.
const BYTES_MAX: usize = 4 * 1024 * 1024;
/// A content is looked for by what it begins with, so that long ones aren't prepared for it.
const BEGINNING_BYTES: usize = 32;
/// Places that begin as a content does and are compared with it: a body of nothing but such places
/// holds up nobody.
const PLACES_MAX: usize = 8;

/// What threads said of late, by their numbers.
#[derive(Default)]
pub(super) struct Sources {
    threads: FxHashMap<u64, VecDeque<Source>>,
    bytes: usize,
}

/// A body, or the rest of one, as an entry's row has it.
struct Source {
    position: u64,
    body: Vec<u8>,
    content: Range<usize>,
    beginning: Finder<'static>,
}

/// A stretch of a new body, and where a source's has it.
struct Stretch {
    here: Range<usize>,
    source: u64,
    start: usize,
}

impl Sources {
    /// What an entry shares with those at hand, in its order, and the rest of its body. It is at
    /// hand itself from now on.
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

    /// What a body repeats, in its order, with something of its own in between.
    fn find(&self, thread: u64, body: &[u8]) -> Vec<Stretch> {
        let Some(sources) = self.threads.get(&thread) else { return Vec::new() };
        // Something longer may have said all of it.
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

/// A body without the tags that it begins and ends with, if that is worth it: who repeats what was
/// said puts it between others. Tags end no character half-way.
fn content(body: &[u8]) -> Option<Range<usize>> {
    let (mut start, mut end) = (0, body.len());
    while body[start..end].starts_with(b"<") && body[start..end].ends_with(b">") {
        start += memchr::memchr(b'>', &body[start..end])? + 1;
        end = start + memchr::memrchr(b'<', &body[start..end])?;
    }
    (end - start >= CONTENT_BYTES_MIN).then_some(start..end)
}

/// Where a content stands in a body.
fn places(body: &[u8], beginning: &Finder<'_>, content: &[u8]) -> impl Iterator<Item = usize> {
    let begins = beginning.find_iter(body).take(PLACES_MAX);
    begins.filter(move |at| body[*at..].starts_with(content))
}
