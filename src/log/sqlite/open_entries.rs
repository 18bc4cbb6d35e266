//! Finds the entries that some receiver hasn't consumed yet. A pump reads these entries when it
//! starts.
//!
//! Marks decide which handlers run again, and a damaged mark must not make a handler run twice. The
//! chain covers the marks, so the chain is recomputed from the first open entry on. All entries
//! before it were consumed, and only `verify` checks their commits. An entry's own digest is
//! checked when the entry is read.

use rusqlite::Rows;

use crate::log::chain;
use crate::log::chain::Commit;
use crate::log::chain::CommitRow;
use crate::log::chain::Link;
use crate::log::entry::Open;
use crate::log::error::Error;
use crate::log::mark_bytes;
use crate::log::open_entries::{EntryNumbers, OpenEntries};
use crate::log::sqlite::check::at_once;
use crate::log::sqlite::read::{COMMITS_AT_ONCE, Reader};
use crate::log::sqlite::row::{THREADS, Thread};
use crate::log::sqlite::schema;

/// The cursor of a walk over the commits: the last commit that was read, with the last position and
/// the last thread number that it covers.
#[derive(Clone, Copy)]
struct CommitCursor {
    number: u64,
    chain: [u8; 32],
    position: u64,
    thread: u64,
}

impl CommitCursor {
    fn after(row: &CommitRow) -> CommitCursor {
        let Commit { number, last_position, last_thread, .. } = row.commit;
        CommitCursor { number, chain: row.chain, position: last_position, thread: last_thread }
    }
}

/// Reads the next entry's row.
fn next_entry(rows: &mut Rows<'_>) -> rusqlite::Result<Option<EntryNumbers>> {
    let Some(row) = rows.next()? else { return Ok(None) };
    let number = |at| row.get::<_, i64>(at).map(i64::cast_unsigned);
    let receivers = u32::try_from(row.get::<_, i64>(3)?).unwrap_or(u32::MAX);
    Ok(Some(EntryNumbers { position: number(0)?, thread: number(1)?, seq: number(2)?, receivers }))
}

impl Reader {
    /// Walks over all commits, a few in each transaction, and collects the open entries.
    pub(super) fn open_entries(&mut self) -> Result<Vec<Open>, Error> {
        let identity = schema::identity(&self.db, &self.path)?;
        let genesis = chain::genesis(&identity);
        let mut at = CommitCursor { number: 0, chain: genesis, position: 0, thread: 0 };
        let (mut opens, mut before) = (OpenEntries::default(), vec![at]);
        while let Some(then) = at_once(self, |it| it.some_open(&mut opens, at))? {
            at = then;
            before.push(at);
            self.go_on()?;
        }
        let waiting = opens.finish();
        if let Some(first) = waiting.first() {
            let known = before.iter().rfind(|it| it.position < first.position);
            self.prove(*known.unwrap_or(&before[0]))?;
        }
        let mut open = Vec::new();
        for waiting in waiting {
            let position = waiting.position;
            let entry = self.at(position.cast_signed())?;
            let missing = || schema::damaged(&self.path, &format!("entry {position} is missing"));
            open.push(waiting.of(entry.ok_or_else(missing)?));
        }
        Ok(open)
    }

    /// Reads the next few commits with their entries and marks. Returns the cursor after them, or
    /// `None` if there are no more commits.
    fn some_open(
        &self,
        opens: &mut OpenEntries,
        at: CommitCursor,
    ) -> Result<Option<CommitCursor>, Error> {
        let some = self.commits(at.number.cast_signed(), COMMITS_AT_ONCE)?;
        let Some(end) = some.last().map(CommitCursor::after) else { return Ok(None) };
        let find = self.db.prepare_cached(
            "SELECT position, thread, seq, receivers FROM entries
             WHERE position > ?1 AND position <= ?2 AND receivers <> 0 ORDER BY position",
        );
        let mut find = self.sql(find)?;
        let bounds = [at.position.cast_signed(), end.position.cast_signed()];
        let mut rows = self.sql(find.query(bounds))?;
        let mut next = self.sql(next_entry(&mut rows))?;
        for row in some {
            let Commit { number, last_position, .. } = row.commit;
            while let Some(numbers) = next.take_if(|it| it.position <= last_position) {
                opens.entry(numbers);
                next = self.sql(next_entry(&mut rows))?;
            }
            let marks = mark_bytes::read_marks(&row.marks);
            for mark in marks.ok_or_else(|| self.changed(number))? {
                opens.mark(&mark);
            }
        }
        Ok(Some(end))
    }

    /// Recomputes the chain of all commits after `at`. Returns an error if a commit's chain
    /// differs.
    fn prove(&self, mut at: CommitCursor) -> Result<(), Error> {
        loop {
            self.go_on()?;
            let some = self.commits(at.number.cast_signed(), COMMITS_AT_ONCE)?;
            if some.is_empty() {
                return Ok(());
            }
            for row in some {
                let mut link = Link::new(at.chain, row.commit);
                self.sql(self.link_threads(&mut link, at.thread, row.commit.last_thread))?;
                self.sql(self.link_entries(&mut link, at.position, row.commit.last_position))?;
                let follows = row.commit.number == at.number + 1;
                if !follows || link.finish(&row.marks) != row.chain {
                    return Err(self.changed(row.commit.number));
                }
                at = CommitCursor::after(&row);
            }
        }
    }

    fn changed(&self, commit: u64) -> Error {
        let what = "its chain doesn't fit what it holds: something was changed";
        schema::damaged(&self.path, &format!("commit {commit}: {what}"))
    }

    fn link_threads(&self, link: &mut Link, after: u64, last: u64) -> rusqlite::Result<()> {
        let sql = format!("{THREADS} t.number > ?1 AND t.number <= ?2 ORDER BY t.number");
        let mut find = self.db.prepare_cached(&sql)?;
        let mut rows = find.query([after.cast_signed(), last.cast_signed()])?;
        while let Some(row) = rows.next()? {
            let thread = Thread::of(row)?;
            link.thread(&thread.id, thread.origin.as_deref());
        }
        Ok(())
    }

    fn link_entries(&self, link: &mut Link, after: u64, last: u64) -> rusqlite::Result<()> {
        let mut find = self.db.prepare_cached(
            "SELECT digest FROM entries WHERE position > ?1 AND position <= ?2 ORDER BY position",
        )?;
        let mut rows = find.query([after.cast_signed(), last.cast_signed()])?;
        while let Some(row) = rows.next()? {
            let digest = row.get_ref(0)?.as_bytes().ok().and_then(|it| it.try_into().ok());
            // A digest of another length is read as zeros, so that the chain differs.
            link.entry(&digest.unwrap_or_default());
        }
        Ok(())
    }
}
