//! What a start takes up: what isn't consumed yet.
//!
//! Marks decide what runs again and what doesn't, so the chain that they are part of is computed
//! anew on the way. An entry's own digest is checked where the entry is read.

use crate::log::Error;
use crate::log::chain::{self, Commit, CommitRow, Link};
use crate::log::entry::Open;
use crate::log::open::Opens;
use crate::log::sqlite::read::{COMMITS_AT_ONCE, Reader};
use crate::log::sqlite::row::{THREADS, Thread};
use crate::log::sqlite::schema;

/// How far the walk over the commits has come.
struct At {
    number: u64,
    chain: [u8; 32],
    position: u64,
    thread: u64,
}

impl Reader {
    /// Walks all commits, some at once, and keeps of them what is still open.
    pub(super) fn open_entries(&mut self) -> Result<Vec<Open>, Error> {
        let identity = schema::identity(&self.db, &self.path)?;
        let mut at = At { number: 0, chain: chain::genesis(&identity), position: 0, thread: 0 };
        let mut opens = Opens::default();
        loop {
            self.go_on()?;
            let some = self.commits(at.number.cast_signed(), COMMITS_AT_ONCE)?;
            if some.is_empty() {
                break;
            }
            for row in some {
                at = self.open_of(&mut opens, &at, &row)?;
            }
        }
        let mut open = Vec::new();
        for waiting in opens.finish() {
            let position = waiting.position;
            let entry = self.at(position.cast_signed())?;
            let missing = || schema::damaged(&self.path, &format!("entry {position} is missing"));
            open.push(waiting.of(entry.ok_or_else(missing)?));
        }
        Ok(open)
    }

    /// One commit: what came with it, and what was consumed.
    fn open_of(&self, opens: &mut Opens, at: &At, row: &CommitRow) -> Result<At, Error> {
        let Commit { number, last_position, last_thread, .. } = row.commit;
        let mut link = Link::new(at.chain, row.commit);
        if last_thread > at.thread {
            self.sql(self.link_threads(&mut link, at.thread, last_thread))?;
        }
        self.sql(self.link_entries(&mut link, opens, at.position, last_position))?;
        let fits = number == at.number + 1 && link.finish(&row.marks) == row.chain;
        let marks = chain::read_marks(&row.marks).filter(|_| fits);
        let what = "its chain doesn't fit what it holds: something was changed";
        let changed = || schema::damaged(&self.path, &format!("commit {number}: {what}"));
        for mark in marks.ok_or_else(changed)? {
            opens.mark(&mark);
        }
        Ok(At { number, chain: row.chain, position: last_position, thread: last_thread })
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

    fn link_entries(
        &self,
        link: &mut Link,
        opens: &mut Opens,
        after: u64,
        last: u64,
    ) -> rusqlite::Result<()> {
        let mut find = self.db.prepare_cached(
            "SELECT position, thread, seq, receivers, digest FROM entries
             WHERE position > ?1 AND position <= ?2 ORDER BY position",
        )?;
        let mut rows = find.query([after.cast_signed(), last.cast_signed()])?;
        while let Some(row) = rows.next()? {
            let number = |at| row.get::<_, i64>(at).map(i64::cast_unsigned);
            let receivers = u32::try_from(row.get::<_, i64>(3)?).unwrap_or(u32::MAX);
            opens.entry(number(1)?, number(2)?, number(0)?, receivers);
            // One of another length fits no chain.
            link.entry(
                &row.get_ref(4)?
                    .as_bytes()
                    .ok()
                    .and_then(|it| it.try_into().ok())
                    .unwrap_or_default(),
            );
        }
        Ok(())
    }
}
