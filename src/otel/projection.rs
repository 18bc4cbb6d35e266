//! Turns the log's entries, in the order of their positions, into spans.
//!
//! Threads with their open spans are cached in memory. A thread that isn't cached is read from its
//! beginning, so spans don't depend on the position at which a projection began.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::id::ThreadId;
use crate::listener::Entry as ListenerEntry;
use crate::log::{Boxed, Entry, Error, Log, Pages};
use crate::otel::span::{Span, SpanId};
use crate::otel::thread_spans::{ThreadSpans, TracedThread};

/// The most threads that are cached.
const THREADS_MAX: usize = 4_096;

/// Makes spans of a log.
///
/// ```
/// # extern crate pumphouse_otel as pumphouse;
/// # use std::sync::Arc;
/// # use pumphouse::log::{Log, MemoryLog};
/// # use pumphouse::otel::Projection;
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), pumphouse::log::Error> {
/// let log: Arc<dyn Log> = Arc::new(MemoryLog::new());
/// let mut projection = Projection::new(log.clone());
/// for entry in log.tail(0, 256).await? {
///     for span in projection.take(&entry).await? {
///         println!("{} {}", span.trace, span.name);
///     }
/// }
/// # Ok(()) }
/// ```
pub struct Projection {
    log: Arc<dyn Log>,
    content: bool,
    threads: BTreeMap<ThreadId, ThreadSpans>,
}

impl Projection {
    /// Makes a projection without content: its spans have no texts of messages.
    #[must_use]
    pub fn new(log: Arc<dyn Log>) -> Projection {
        Projection { log, content: false, threads: BTreeMap::new() }
    }

    /// Sets whether spans have content: messages, arguments, results, and the texts of errors.
    /// Spans with content have [other ids](SpanId::with_content).
    #[must_use]
    pub fn content(self, content: bool) -> Projection {
        Projection { content, ..self }
    }

    /// Takes the next entry, and returns the spans that end with it. Entries must come in the order
    /// of their positions, and may begin at any position.
    ///
    /// # Errors
    /// The log can't be read.
    pub async fn take(&mut self, entry: &Entry) -> Result<Vec<Span>, Error> {
        let thread = &entry.id.thread;
        let mut spans = match self.threads.remove(thread) {
            Some(spans) => spans,
            None => {
                self.make_room();
                self.read(thread, entry.position).await?
            }
        };
        let mut ended = spans.take(&ListenerEntry::kept(entry));
        if self.content {
            ended = ended.into_iter().map(Span::with_content).collect();
        }
        spans.position = entry.position;
        if entry.flags.state().is_none_or(|it| it.is_live()) {
            self.threads.insert(thread.clone(), spans);
        }
        Ok(ended)
    }

    /// Makes room in a full cache: drops about half of its threads. Threads whose last entries are
    /// older are dropped first.
    fn make_room(&mut self) {
        if self.threads.len() < THREADS_MAX {
            return;
        }
        let mut positions: Vec<u64> = self.threads.values().map(|it| it.position).collect();
        positions.sort_unstable();
        let middle = positions[positions.len() / 2];
        self.threads.retain(|_, it| it.position >= middle);
    }

    /// Reads a thread with its open spans, up to the entry before a position.
    fn read<'a>(&'a self, thread: &'a ThreadId, before: u64) -> Boxed<'a, ThreadSpans> {
        Box::pin(async move {
            let (root, above) = self.above(thread).await?;
            let traced =
                TracedThread { thread: thread.clone(), root, above, content: self.content };
            let mut spans = ThreadSpans::new(traced);
            let mut pages = Pages::of(&*self.log, thread);
            while let Some(page) = pages.next().await? {
                for entry in &page {
                    if entry.position >= before {
                        return Ok(spans);
                    }
                    drop(spans.take(&ListenerEntry::kept(entry)));
                    spans.position = entry.position;
                }
            }
            Ok(spans)
        })
    }

    /// Returns the root of a thread's tree, and the span in which the thread was opened, if there
    /// is one.
    async fn above(&self, thread: &ThreadId) -> Result<(ThreadId, Option<SpanId>), Error> {
        let Some(record) = self.log.thread(thread).await? else {
            return Err(Error::UnknownThread(thread.clone()));
        };
        let Some(parent) = &record.parent else { return Ok((thread.clone(), None)) };
        let Some(opening) = self.log.opening(&record).await? else {
            return Ok((parent.clone(), None));
        };
        // A cached parent can't be used if it has already taken the opening or later entries.
        let kept = self.threads.get(parent).filter(|it| it.position < opening.position);
        let read = match kept {
            Some(_) => None,
            None => Some(self.read(parent, opening.position).await?),
        };
        let Some(spans) = kept.or(read.as_ref()) else { return Ok((parent.clone(), None)) };
        Ok((spans.traced().root.clone(), spans.parent_of(&ListenerEntry::kept(&opening))))
    }
}
