//! Filters that choose entries and threads.

use std::fmt;
use std::str::FromStr;

use memchr::memmem::Finder;

use crate::audit::state::States;
use crate::log::{Entry, Error, Flags, Log, Pages, State, ThreadRecord};
use crate::name::Name;
use crate::wire::is_failure;
use crate::xml::{self, escape_text};

/// Selects entries or threads. An entry must match every field that has a value. Of a list, the
/// entry must match at least one value.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Filter {
    /// Entries that one of these listeners sent or got.
    pub listeners: Vec<String>,
    /// Entries that one of these identities sent or got.
    pub identities: Vec<String>,
    /// Entries whose payload has one of these names.
    pub payloads: Vec<Called>,
    /// Entries with one of these texts in their payload or `<meta>`.
    pub texts: Vec<Words>,
    /// Entries whose thread was in one of these states right after the entry.
    pub states: Vec<State>,
    /// Only entries that report failures: faults, `Err`s of listeners, agents that stopped without
    /// an interrupt, and the like.
    pub failed: bool,
    /// Entries of this time or later, in microseconds since the epoch.
    pub since_us: Option<u64>,
    /// Entries before this time, in microseconds since the epoch.
    pub before_us: Option<u64>,
}

impl Filter {
    /// Whether the filter lets everything through.
    #[must_use]
    pub fn wants_all(&self) -> bool {
        let Filter { listeners, identities, payloads, texts, states, failed, .. } = self;
        let Filter { since_us, before_us, .. } = self;
        let names = listeners.is_empty() && identities.is_empty() && payloads.is_empty();
        let times = since_us.is_none() && before_us.is_none();
        names && times && texts.is_empty() && states.is_empty() && !failed
    }

    /// Whether an entry is wanted. If the filter asks for states, all entries of the log must be
    /// passed to this method in their order.
    pub fn wants(&self, entry: &Entry, states: &mut States) -> bool {
        let fits = !self.asks_for_states() || self.states.contains(&states.with(entry));
        fits && self.wants_aside(entry)
    }

    /// Whether the states of threads matter, so that entries must be read from the log's first
    /// entry on.
    #[must_use]
    pub fn asks_for_states(&self) -> bool {
        !self.states.is_empty()
    }

    /// Whether an entry is wanted, whatever the state of its thread.
    fn wants_aside(&self, entry: &Entry) -> bool {
        let is_end = |name: &str, outside: bool| {
            let from = entry.flags.contains(Flags::FROM_IDENTITY) == outside;
            let to = entry.flags.contains(Flags::TO_IDENTITY) == outside;
            from && *entry.from == *name || to && entry.to.as_deref() == Some(name)
        };
        self.since_us.is_none_or(|it| entry.at_us >= it)
            && self.before_us.is_none_or(|it| entry.at_us < it)
            && (!self.failed || is_failure(&entry.name, entry.flags, &entry.body))
            && any(&self.listeners, |it| is_end(it, false))
            && any(&self.identities, |it| is_end(it, true))
            && any(&self.payloads, |it| it.is(&entry.name))
            && any(&self.texts, |it| it.are_in(entry))
    }

    /// Whether a thread is wanted: it must be in one of the states now, and one of its entries must
    /// be wanted.
    ///
    /// # Errors
    /// If the log can't be read.
    pub async fn wants_thread(&self, log: &dyn Log, it: &ThreadRecord) -> Result<bool, Error> {
        if !any(&self.states, |state| *state == it.state) {
            return Ok(false);
        }
        if (Filter { states: Vec::new(), ..self.clone() }).wants_all() {
            return Ok(true);
        }
        let mut pages = Pages::of(log, &it.id).upto(it.last_seq);
        while let Some(page) = pages.next().await? {
            if page.iter().any(|it| self.wants_aside(it)) {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// Whether one of the values matches, or there are no values.
fn any<T>(wanted: &[T], is: impl Fn(&T) -> bool) -> bool {
    wanted.is_empty() || wanted.iter().any(is)
}

/// A payload's name, with or without its namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Called {
    /// This local name, in any namespace.
    Local(String),
    /// This name in its namespace.
    Whole(Name),
}

impl Called {
    fn is(&self, name: &Name) -> bool {
        match self {
            Called::Local(local) => local == name.local(),
            Called::Whole(whole) => whole == name,
        }
    }
}

impl FromStr for Called {
    type Err = NotCalled;

    fn from_str(text: &str) -> Result<Called, NotCalled> {
        let (namespace, local) = match text.strip_prefix('{') {
            Some(rest) => rest.split_once('}').map(|(it, local)| (Some(it), local)),
            None => Some((None, text)),
        }
        .ok_or(NotCalled)?;
        if !xml::is_name(local) || local.contains(':') {
            return Err(NotCalled);
        }
        Ok(match namespace {
            Some(namespace) => Called::Whole(Name::new(namespace, local)),
            None => Called::Local(local.to_owned()),
        })
    }
}

/// The error of a text that isn't a payload's name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotCalled;

impl fmt::Display for NotCalled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a payload is called LOCAL or {NAMESPACE}LOCAL, such as calculate")
    }
}

impl std::error::Error for NotCalled {}

/// A text to look for in payloads and in `<meta>`. The text is found both as it was typed and as
/// XML escapes it.
#[derive(Clone, Debug)]
pub struct Words {
    typed: Finder<'static>,
    written: Option<Finder<'static>>,
}

impl Words {
    /// Makes a text to look for. The search is case-sensitive.
    #[must_use]
    pub fn new(text: &str) -> Words {
        let mut written = String::new();
        escape_text(text, &mut written);
        let written = (written != text).then(|| Finder::new(&written).into_owned());
        Words { typed: Finder::new(text).into_owned(), written }
    }

    fn are_in(&self, entry: &Entry) -> bool {
        let within = |bytes: &[u8]| {
            let written = self.written.as_ref().is_some_and(|it| it.find(bytes).is_some());
            written || self.typed.find(bytes).is_some()
        };
        // Encrypted bytes can't be searched.
        entry.key.is_none() && (within(&entry.body) || entry.meta.as_deref().is_some_and(within))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use bytes::Bytes;

    use super::*;
    use crate::id::{EntryId, ThreadId};
    use crate::log::{Batch, Draft, MemoryLog, NewThread};

    fn draft(thread: &str, seq: u64, from: &str, to: &str) -> Draft {
        let id = EntryId::new(&ThreadId::new(thread), seq);
        let body = Bytes::from(format!("<a xmlns=\"urn:x\">{seq} &amp; more</a>"));
        let draft = Draft::new(id, seq * 100, from.into(), Name::of("urn:x", "a"), body);
        Draft { to: Some(to.into()), ..draft }
    }

    /// A log with two threads: one with a question and its answer, and one that was closed.
    async fn log() -> MemoryLog {
        let log = MemoryLog::new();
        let new = |id| NewThread { id: ThreadId::new(id), parent: None, fork: None };
        let question = draft("sess-a", 1, "ada", "work");
        let answer = Draft { name: Name::of("urn:y", "b"), ..draft("sess-a", 2, "work", "ada") };
        let entries = vec![
            Draft { flags: Flags::FROM_IDENTITY, ..question },
            Draft { flags: Flags::TO_IDENTITY, ..answer },
            Draft { flags: Flags::ERROR, ..draft("sess-b", 1, "plan", "ada") },
            Draft { flags: Flags::CLOSES, ..draft("sess-b", 2, "plan", "ada") },
        ];
        let threads = vec![new("sess-a"), new("sess-b")];
        log.append(Batch { threads, entries, marks: Vec::new() }).await.unwrap();
        log
    }

    /// The entries and the threads that a filter lets through.
    async fn taken(filter: &Filter) -> (Vec<String>, Vec<String>) {
        let log = log().await;
        let all: Vec<Arc<Entry>> = log.tail(0, 10).await.unwrap();
        let (mut states, mut entries, mut threads) = (States::default(), Vec::new(), Vec::new());
        for entry in all {
            if filter.wants(&entry, &mut states) {
                entries.push(entry.id.to_string());
            }
        }
        for thread in log.threads(None, 10).await.unwrap() {
            let thread = log.thread(&thread.id).await.unwrap().unwrap();
            if filter.wants_thread(&log, &thread).await.unwrap() {
                threads.push(thread.id.to_string());
            }
        }
        (entries, threads)
    }

    async fn check(filter: Filter, entries: &[&str], threads: &[&str]) {
        let taken = taken(&filter).await;
        let expected = (entries.to_vec(), threads.to_vec());
        assert_eq!(taken, (own(&expected.0), own(&expected.1)), "{filter:?}");
    }

    fn own(texts: &[&str]) -> Vec<String> {
        texts.iter().map(ToString::to_string).collect()
    }

    fn words(texts: &[&str]) -> Filter {
        Filter { texts: texts.iter().map(|it| Words::new(it)).collect(), ..Filter::default() }
    }

    fn called(names: &[&str]) -> Filter {
        let payloads = names.iter().map(|it| it.parse().unwrap()).collect();
        Filter { payloads, ..Filter::default() }
    }

    #[tokio::test]
    async fn ends_are_listeners_or_identities() {
        let listener = |it: &[&str]| Filter { listeners: own(it), ..Filter::default() };
        let identity = |it: &[&str]| Filter { identities: own(it), ..Filter::default() };
        check(listener(&["work"]), &["sess-a/1", "sess-a/2"], &["sess-a"]).await;
        // In the second thread, a listener has the name `ada`.
        check(listener(&["ada"]), &["sess-b/1", "sess-b/2"], &["sess-b"]).await;
        let all = ["sess-a/1", "sess-a/2", "sess-b/1", "sess-b/2"];
        check(listener(&["plan", "work"]), &all, &["sess-a", "sess-b"]).await;
        check(identity(&["ada"]), &["sess-a/1", "sess-a/2"], &["sess-a"]).await;
        check(identity(&["work"]), &[], &[]).await;
    }

    #[tokio::test]
    async fn a_payload_has_a_name_with_or_without_its_namespace() {
        check(called(&["b"]), &["sess-a/2"], &["sess-a"]).await;
        check(called(&["{urn:y}b"]), &["sess-a/2"], &["sess-a"]).await;
        check(called(&["{urn:x}b"]), &[], &[]).await;
        for wrong in ["", "{urn:x", "{urn:x}", "x:a", "a b", "1"] {
            assert_eq!(wrong.parse::<Called>(), Err(NotCalled), "{wrong}");
        }
    }

    #[tokio::test]
    async fn a_text_is_found_as_it_is_typed_or_written() {
        check(words(&["2 & more"]), &["sess-a/2", "sess-b/2"], &["sess-a", "sess-b"]).await;
        check(words(&["2 &amp; m"]), &["sess-a/2", "sess-b/2"], &["sess-a", "sess-b"]).await;
        check(words(&["MORE"]), &[], &[]).await;
    }

    #[tokio::test]
    async fn a_time_begins_before_it_ends() {
        let between = |since_us, before_us| Filter { since_us, before_us, ..Filter::default() };
        let all = ["sess-a/1", "sess-a/2", "sess-b/1", "sess-b/2"];
        check(between(Some(100), Some(201)), &all, &["sess-a", "sess-b"]).await;
        check(between(Some(101), None), &["sess-a/2", "sess-b/2"], &["sess-a", "sess-b"]).await;
        check(between(None, Some(100)), &[], &[]).await;
    }

    #[tokio::test]
    async fn a_state_is_the_threads_with_the_entry() {
        let filter = |it| Filter { states: vec![it], ..Filter::default() };
        check(filter(State::Closed), &["sess-b/2"], &["sess-b"]).await;
        check(filter(State::Open), &["sess-a/1", "sess-a/2", "sess-b/1"], &["sess-a"]).await;
        check(filter(State::Failed), &[], &[]).await;
        let both = Filter { texts: words(&["1 & more"]).texts, ..filter(State::Closed) };
        check(both, &[], &["sess-b"]).await;
    }

    #[tokio::test]
    async fn failures_are_found_among_all_that_else_is_wanted() {
        let failed = Filter { failed: true, ..Filter::default() };
        check(failed.clone(), &["sess-b/1"], &["sess-b"]).await;
        check(Filter { since_us: Some(101), ..failed }, &[], &[]).await;
    }

    #[tokio::test]
    async fn everything_is_taken_where_nothing_is_asked() {
        assert!(Filter::default().wants_all() && !words(&["a"]).wants_all());
        assert_eq!(taken(&Filter::default()).await.0.len(), 4);
    }
}
