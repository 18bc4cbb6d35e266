//! The listener `recall`: finds earlier entries of the caller's tree of threads, including those
//! that prompts no longer show.
//!
//! ```yaml
//! listeners:
//!   - {use: recall}
//! ```
//!
//! `recall` reads the thread of the request, up to the request, and the other threads of the same
//! tree. With the grant `read:identity`, `recall` also reads the other trees that the same identity
//! opened.

use std::collections::VecDeque;

use pumphouse::clock::now_us;
use pumphouse::listener::{DoorAccess, TreeHistory};
use pumphouse::prelude::*;
use pumphouse::wire::iso_time;
use pumphouse::xml::{Child, View as Part};
use serde::Deserialize;

/// The listener's default name. The payloads' namespace contains the name in use.
const NAME: &str = "recall";
/// The maximum number of entries that are read from the log at once.
const PAGE: usize = 32;
/// The maximum number of entries that an answer lists.
const FOUND_MAX: usize = 50;
/// The maximum number of entries that an answer lists if the request has no `limit`.
const FOUND_USUAL: usize = 10;
/// The maximum number of characters of a request's `text`.
const QUESTION_CHARS_MAX: usize = 500;
/// The maximum number of characters of an entry's text that an answer shows.
const EXCERPT_CHARS: usize = 300;

/// Finds earlier entries that match all given fields, the newest last. Searches this tree of
/// threads and, if granted, the other trees of the same identity.
#[derive(Clone, Debug, Default, PartialEq, Eq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/recall/v1")]
pub struct Recall {
    /// Words that the entry's text has, in any order; case is ignored.
    #[payload(example = "green tea")]
    pub text: Option<String>,
    /// The sender of the entry.
    #[payload(example = "ada")]
    pub from: Option<String>,
    /// The local name of the entry's payload.
    #[payload(no_example)]
    pub name: Option<String>,
    /// The entry's thread; by default all threads.
    #[payload(no_example)]
    pub thread: Option<String>,
    /// Only entries after this number in `thread`; by default in this thread.
    #[payload(no_example)]
    pub after: Option<u64>,
    /// Only entries before this number in `thread`; by default in this thread.
    #[payload(no_example)]
    pub before: Option<u64>,
    /// The `read_on` of an earlier answer: the search continues there.
    #[payload(no_example)]
    pub read_on: Option<String>,
    /// How many matches to list, the newest ones; default 10, at most 50.
    #[payload(no_example, min = 1)]
    pub limit: Option<u64>,
}

/// What was found.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/recall/v1")]
pub struct Recalled {
    /// How many older matches were left out.
    #[payload(attribute, note)]
    pub left_out: u64,
    /// The limit that stopped the search early.
    #[payload(attribute, note, no_example)]
    pub stopped_by: Option<String>,
    /// Where the search stopped: send this with the same request to continue.
    #[payload(attribute, note, no_example)]
    pub read_on: Option<String>,
    /// What was found, as a text: each entry with its place, its sender and its time, and below it
    /// its text.
    #[payload(value, example = "[sess-k3v9x2ma/4] ada, note, 2026-01-01T12:00:00Z\nGreen tea.\n")]
    pub text: String,
    /// The entries, the newest last.
    pub found: Vec<Found>,
}

/// An entry.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
pub struct Found {
    /// The entry's id.
    #[payload(attribute, example = "sess-k3v9x2ma/4")]
    pub entry: String,
    /// Its sender.
    #[payload(attribute, example = "ada")]
    pub from: String,
    /// The local name of its payload.
    #[payload(attribute, example = "note")]
    pub name: String,
    /// When it was sent.
    #[payload(attribute, example = "2026-01-01T12:00:00Z")]
    pub time: String,
    /// Its text; of a long one, an excerpt around the first of the searched words.
    #[payload(text, example = "Two cups of green tea.")]
    pub text: String,
}

/// The request says nothing to search for, or one of its fields is invalid.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/recall/v1")]
pub struct NotRecalled {
    /// Why.
    #[payload(value, example = "say which: by text, from, name, thread, after or before")]
    pub text: String,
}

/// The limits of the search for one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct RecallLimits {
    /// The maximum number of entries that are read.
    pub entries_max: usize,
    /// The maximum number of bytes of the entries that are read. The last page may exceed it.
    pub bytes_max: usize,
    /// The maximum number of threads that are examined, including those of other identities.
    pub threads_max: usize,
    /// The maximum time of the search, in seconds.
    pub seconds_max: u64,
}

impl Default for RecallLimits {
    fn default() -> RecallLimits {
        RecallLimits {
            entries_max: 10_000,
            bytes_max: 16 * 1024 * 1024,
            threads_max: 10_000,
            seconds_max: 5,
        }
    }
}

/// The `settings` of `use: recall` in a manifest.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Settings {
    /// The limits of the search for one request.
    pub limits: RecallLimits,
}

/// Makes the listener `recall`.
#[must_use]
pub fn recall(settings: &Settings) -> Listener {
    let text =
        "Finds what was said before in this tree of threads, also what isn't shown any more.";
    Listener::with_state(NAME, settings.limits)
        .own_namespace()
        .on(find)
        .describe(text)
        .reader()
        // It shows a sender the tree of its own thread.
        .door(DoorAccess::Everybody)
        .stateless()
}

async fn find(
    State(limits): State<RecallLimits>,
    Message(question): Message,
    tree: TreeHistory,
    known: Capabilities,
    request: Recall,
) -> Result<Result<Recalled, NotRecalled>, Fault> {
    let wanted = match Wanted::new(&request) {
        Ok(it) => it,
        Err(text) => return Ok(Err(NotRecalled { text })),
    };
    let own = question.to().unwrap_or(NAME);
    let cause = question.cause();
    let mut reading = match Reading::new(&tree, limits, question.thread(), &request).await? {
        Ok(it) => it,
        Err(text) => return Ok(Err(NotRecalled { text })),
    };
    let mut found: Vec<(Order, Found)> = Vec::new();
    let mut left_out = 0;
    while let Some(page) = reading.next().await? {
        for entry in &page {
            let is_own = entry.from() == own || entry.to() == Some(own);
            let schema = known.schema(entry.name());
            let is_bookkeeping = schema.is_some_and(|it| it.bookkeeping) || repeats(entry);
            if is_own || is_bookkeeping || Some(entry.id()) == cause || entry.is_refused() {
                continue;
            }
            let Some(hit) = wanted.found(entry) else { continue };
            let order = order(entry);
            let at = found.partition_point(|(it, _)| *it < order);
            found.insert(at, (order, hit));
            if found.len() > wanted.limit {
                found.remove(0);
                left_out += 1;
            }
        }
    }
    let found: Vec<Found> = found.into_iter().map(|(_, it)| it).collect();
    let read_on = reading.read_on(request.read_on.as_deref());
    let stopped_by = reading.stopped_by.map(str::to_owned);
    Ok(Ok(Recalled { left_out, stopped_by, read_on, text: text_of(&found), found }))
}

/// What was found, as a text.
fn text_of(found: &[Found]) -> String {
    let one = |Found { entry, from, name, time, text }: &Found| {
        format!("[{entry}] {from}, {name}, {time}\n{text}\n")
    };
    match found {
        [] => "Nothing was found.\n".to_owned(),
        found => found.iter().map(one).collect::<Vec<_>>().join("\n"),
    }
}

/// The sort key of entries of several threads: the time, the thread and the number.
type Order = (u64, ThreadId, u64);

fn order(entry: &Entry) -> Order {
    (entry.at_us(), entry.thread().clone(), entry.seq())
}

/// Reads the entries of several threads, page by page: first the caller's thread, then the other
/// threads of its tree, then the threads of the identity's other trees. If the request has
/// `thread`, `after` or `before`, only one thread is read.
struct Reading<'a> {
    tree: &'a TreeHistory,
    limits: RecallLimits,
    threads: VecDeque<ThreadId>,
    /// The threads of the identity's other trees are listed in pages. The field has the thread
    /// after which the next page begins. `Some(None)` stands for the first page, and `None` means
    /// that no page is left.
    others: Option<Option<ThreadId>>,
    /// The thread and the number of the last entry that was read. Before the first page, this is
    /// the entry after which the reading starts.
    at: (ThreadId, u64),
    before: u64,
    entries: usize,
    bytes: usize,
    looked_at: usize,
    until_us: u64,
    stopped_by: Option<&'static str>,
}

impl Reading<'_> {
    async fn new<'a>(
        tree: &'a TreeHistory,
        limits: RecallLimits,
        own: &ThreadId,
        request: &Recall,
    ) -> Result<Result<Reading<'a>, String>, Fault> {
        let one = match &request.thread {
            Some(thread) => Some(ThreadId::new(thread)),
            None => (request.after.is_some() || request.before.is_some()).then(|| own.clone()),
        };
        let mut others = one.is_none().then_some(None);
        let mut threads = VecDeque::new();
        match one {
            Some(one) => threads.push_back(one),
            None => {
                threads.push_back(own.clone());
                threads.extend(tree.threads().await?.into_iter().filter(|it| it != own));
            }
        }
        let mut after = request.after.unwrap_or(0);
        if let Some(text) = &request.read_on {
            let Ok(from) = text.parse::<EntryId>() else {
                return Ok(Err("`read_on` is what an earlier answer said as such".to_owned()));
            };
            match threads.iter().position(|it| *it == from.thread) {
                Some(at) => drop(threads.drain(..at)),
                None => {
                    others = others.map(|_| Some(from.thread.clone()));
                    threads = [from.thread].into();
                }
            }
            after = after.max(from.seq);
        }
        let at = (threads[0].clone(), after);
        let until_us = now_us().saturating_add(limits.seconds_max.saturating_mul(1_000_000));
        let before = request.before.unwrap_or(u64::MAX);
        let (entries, bytes, looked_at, stopped_by) = (0, 0, 0, None);
        Ok(Ok(Reading {
            tree,
            limits,
            threads,
            others,
            at,
            before,
            entries,
            bytes,
            looked_at,
            until_us,
            stopped_by,
        }))
    }

    /// Returns the next entries. `None` at the end, or if a limit is reached.
    async fn next(&mut self) -> Result<Option<Vec<Entry>>, Fault> {
        loop {
            let Some(thread) = self.threads.front().cloned() else {
                let Some(after) = self.others.take() else { return Ok(None) };
                if self.check_limits() {
                    return Ok(None);
                }
                let page = self.tree.others(after.as_ref()).await?;
                // The identity's own threads count once they have been read.
                self.looked_at += page.looked_at.saturating_sub(page.threads.len());
                self.threads.extend(page.threads);
                self.others = page.next.map(Some);
                continue;
            };
            if self.check_limits() {
                return Ok(None);
            }
            let after = if self.at.0 == thread { self.at.1 } else { 0 };
            let limit = PAGE.min(self.limits.entries_max - self.entries);
            let page = self.tree.read(&thread, after, limit).await?;
            let Some(last) = page.last().filter(|_| after.saturating_add(1) < self.before) else {
                self.threads.pop_front();
                self.looked_at += 1;
                continue;
            };
            self.at = (thread, last.seq());
            self.entries += page.len();
            self.bytes += page.iter().map(|it| it.body().len()).sum::<usize>();
            return Ok(Some(page));
        }
    }

    /// Checks the limits and stores the first limit that is reached in `stopped_by`. Returns
    /// whether a limit is reached.
    fn check_limits(&mut self) -> bool {
        let limits = &self.limits;
        let reached = [
            ("entries_max", self.entries >= limits.entries_max),
            ("bytes_max", self.bytes >= limits.bytes_max),
            ("threads_max", self.looked_at >= limits.threads_max),
            ("seconds_max", now_us() >= self.until_us),
        ];
        self.stopped_by = reached.into_iter().find(|it| it.1).map(|it| it.0);
        self.stopped_by.is_some()
    }

    /// Returns the entry after which the next request can continue. `None` if no limit stopped this
    /// reading, or if nothing was read. `before` is the `read_on` of the current request.
    fn read_on(&self, before: Option<&str>) -> Option<String> {
        self.stopped_by?;
        let (thread, seq) = &self.at;
        let at = format!("{thread}/{seq}");
        (*seq > 0 && before != Some(&*at)).then_some(at)
    }
}

/// Returns whether an agent's entry only repeats other entries. Prompts and raw replies
/// (`cognition_…`) repeat messages that are entries themselves. Actions and their results repeat
/// calls and answers that are entries themselves.
fn repeats(entry: &Entry) -> bool {
    let (namespace, local) = (entry.name().namespace(), entry.name().local());
    let is_action = ["action", "action-result"].contains(&local);
    namespace == pumphouse::name::AGENT && (is_action || local.starts_with("cognition_"))
}

/// The conditions for an entry to be found.
struct Wanted<'a> {
    request: &'a Recall,
    words: Vec<String>,
    limit: usize,
}

impl Wanted<'_> {
    fn new(request: &Recall) -> Result<Wanted<'_>, String> {
        let text = request.text.as_deref().unwrap_or_default();
        if text.chars().count() > QUESTION_CHARS_MAX {
            return Err(format!("`text` has more than {QUESTION_CHARS_MAX} characters"));
        }
        let words: Vec<String> = text.split_whitespace().map(str::to_lowercase).collect();
        let limits =
            request.after.is_some() || request.before.is_some() || request.thread.is_some();
        if words.is_empty() && request.from.is_none() && request.name.is_none() && !limits {
            return Err("say which: by text, from, name, thread, after or before".to_owned());
        }
        let limit =
            request.limit.map_or(FOUND_USUAL, |it| usize::try_from(it).unwrap_or(FOUND_MAX));
        Ok(Wanted { request, words, limit: limit.clamp(1, FOUND_MAX) })
    }

    fn found(&self, entry: &Entry) -> Option<Found> {
        let fits = |wanted: &Option<String>, is: &str| wanted.as_deref().is_none_or(|it| it == is);
        let (from, name) = (entry.from(), entry.name().local());
        let is_before = self.request.before.is_none_or(|it| entry.seq() < it);
        if !is_before || !fits(&self.request.from, from) || !fits(&self.request.name, name) {
            return None;
        }
        let mut text = String::new();
        write(entry.element().ok()?.view(), &mut text);
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let lower = text.to_lowercase();
        if !self.words.iter().all(|it| lower.contains(&**it)) {
            return None;
        }
        let first = self.words.iter().filter_map(|it| lower.find(&**it)).min().unwrap_or(0);
        Some(Found {
            entry: entry.id().to_string(),
            from: from.to_owned(),
            name: name.to_owned(),
            time: iso_time(entry.at_us()),
            text: excerpt(&text, lower[..first].chars().count()),
        })
    }
}

/// Appends all text of an element, with a space at the end of the element and of each element in
/// it.
fn write(part: Part<'_>, to: &mut String) {
    for child in part.children() {
        match child {
            Child::Text(text) => to.push_str(text),
            Child::Element(it) => write(it, to),
        }
    }
    to.push(' ');
}

/// Returns an excerpt of up to `EXCERPT_CHARS` characters around the character number `at`. A `…`
/// marks each end at which the text is cut.
fn excerpt(text: &str, at: usize) -> String {
    let count = text.chars().count();
    let from = at.saturating_sub(EXCERPT_CHARS / 3).min(count.saturating_sub(EXCERPT_CHARS));
    let piece: String = text.chars().skip(from).take(EXCERPT_CHARS).collect();
    let (before, behind) = (from > 0, from + EXCERPT_CHARS < count);
    let mark = |is_cut: bool| if is_cut { "…" } else { "" };
    format!("{}{piece}{}", mark(before), mark(behind))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_excerpt_has_what_was_looked_for() {
        assert_eq!(excerpt("a b", 2), "a b");
        let long = format!("{} tea {}", "x".repeat(500), "y".repeat(500));
        let piece = excerpt(&long, 501);
        assert!(piece.contains(" tea ") && piece.starts_with('…') && piece.ends_with('…'));
        assert_eq!(piece.chars().count(), EXCERPT_CHARS + 2);
        assert!(excerpt(&long, 1_003).ends_with('y'));
    }

    #[test]
    fn a_question_asks_for_something() {
        let nothing = Recall::default();
        assert!(Wanted::new(&nothing).is_err());
        let many = Recall { after: Some(0), limit: Some(1_000), ..nothing.clone() };
        assert_eq!(Wanted::new(&many).map(|it| it.limit).ok(), Some(FOUND_MAX));
        let long = Recall { text: Some("x".repeat(501)), ..nothing };
        assert!(Wanted::new(&long).is_err());
    }
}
