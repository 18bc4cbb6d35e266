//! Reads a long thread, or the list of all threads, page by page.

use std::sync::Arc;

use crate::id::ThreadId;
use crate::log::entry::{Entry, ThreadSummary};
use crate::log::error::Error;
use crate::log::interface::Log;

/// How many entries or threads a page has at most.
const PAGE: usize = 1_024;

/// Reads the entries of a thread in order, page by page.
///
/// ```
/// # extern crate pumphouse_log as pumphouse;
/// # use pumphouse_ground::ThreadId;
/// # use pumphouse::log::{Log, Pages};
/// # async fn count(log: &dyn Log, thread: &ThreadId) -> Result<usize, pumphouse::log::Error> {
/// let (mut pages, mut count) = (Pages::of(log, thread), 0);
/// while let Some(page) = pages.next().await? {
///     count += page.len();
/// }
/// # Ok(count) }
/// ```
pub struct Pages<'a> {
    log: &'a dyn Log,
    thread: &'a ThreadId,
    after: u64,
    upto: u64,
}

impl<'a> Pages<'a> {
    /// Begins with the first entry. Entries that are appended during the reading are read, too.
    #[must_use]
    pub fn of(log: &'a dyn Log, thread: &'a ThreadId) -> Pages<'a> {
        Pages { log, thread, after: 0, upto: u64::MAX }
    }

    /// Reads only the entries after this number.
    #[must_use]
    pub fn after(self, after: u64) -> Pages<'a> {
        Pages { after, ..self }
    }

    /// Reads only the entries up to this number.
    #[must_use]
    pub fn upto(self, upto: u64) -> Pages<'a> {
        Pages { upto, ..self }
    }

    /// The next page, which has at least one entry. `None` if there are no more entries.
    ///
    /// # Errors
    /// If there is no such thread, or if the log can't be read.
    pub async fn next(&mut self) -> Result<Option<Vec<Arc<Entry>>>, Error> {
        if self.after >= self.upto {
            return Ok(None);
        }
        let page = self.log.read(self.thread, self.after, self.upto, PAGE).await?;
        let Some(last) = page.last() else { return Ok(None) };
        self.after = last.id.seq;
        Ok(Some(page))
    }
}

/// Lists all threads in the order in which they were opened, page by page.
pub struct ThreadPages<'a> {
    log: &'a dyn Log,
    after: Option<ThreadId>,
}

impl<'a> ThreadPages<'a> {
    /// Begins with the thread that was opened first.
    #[must_use]
    pub fn of(log: &'a dyn Log) -> ThreadPages<'a> {
        ThreadPages { log, after: None }
    }

    /// The next page, which has at least one thread. `None` if there are no more threads.
    ///
    /// # Errors
    /// If the log can't be read.
    pub async fn next(&mut self) -> Result<Option<Vec<ThreadSummary>>, Error> {
        let page = self.log.threads(self.after.as_ref(), PAGE).await?;
        let Some(last) = page.last() else { return Ok(None) };
        self.after = Some(last.id.clone());
        Ok(Some(page))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::conformance::{batch, wait};
    use crate::log::memory::MemoryLog;

    #[test]
    fn pages_have_every_entry_once_between_their_bounds() {
        let log = MemoryLog::new();
        for seq in 1..=2_500 {
            wait(log.append(batch(&["a"][usize::from(seq > 1)..], &[&format!("a/{seq}")])))
                .unwrap();
        }
        let thread = ThreadId::new("a");
        let read = |mut pages: Pages<'_>| {
            let mut all: Vec<Vec<u64>> = Vec::new();
            while let Some(page) = wait(pages.next()).unwrap() {
                all.push(page.iter().map(|entry| entry.id.seq).collect());
            }
            (all.len(), all.concat())
        };
        let all = || Pages::of(&log, &thread);
        assert_eq!(read(all()), (3, (1..=2_500).collect()));
        assert_eq!(read(all().after(7).upto(9)), (1, vec![8, 9]));
        assert_eq!(read(all().after(9).upto(9)), (0, vec![]));
        assert_eq!(read(all().after(2_500)), (0, vec![]));
    }
}
