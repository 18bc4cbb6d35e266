//! Reads the marks of entries from the commits.

use std::collections::HashSet;

use crate::id::ThreadId;
use crate::log::entry::Noted;
use crate::log::error::Error;
use crate::log::mark_bytes;
use crate::log::mark_bytes::MarkRow;
use crate::log::sqlite::read::{BELOW, COMMITS_AT_ONCE, Reader};
use crate::log::sqlite::schema;

/// Some marks, each with the last position before its commit. The second value says where to
/// continue: it is the number and the last position of the last commit that was read, or `None` if
/// there are no more commits.
type Walked = (Vec<(u64, MarkRow)>, Option<(i64, u64)>);

impl Reader {
    /// Walks over all commits, a few in each transaction, and collects the marks of a thread and
    /// its descendants.
    pub(super) fn marks(&mut self, root: &ThreadId) -> Result<Vec<Noted>, Error> {
        let Some(number) = self.number(root)? else { return Ok(Vec::new()) };
        let branch = {
            let mut find =
                self.sql(self.db.prepare_cached(&format!("{BELOW} SELECT number FROM below")))?;
            let rows = find.query_map([number], |row| row.get(0)).and_then(Iterator::collect);
            self.sql::<HashSet<i64>>(rows)?
        };
        let (mut noted, mut next) = (Vec::new(), Some((0, 0)));
        while let Some((number, position)) = next {
            self.go_on()?;
            let (marks, then) = self.marks_in(&branch, number, position)?;
            for (after, mark) in marks {
                let thread = self.thread_of(mark.thread.cast_signed())?.id;
                noted.push(Noted { after, mark: mark.mark(&thread) });
            }
            next = then;
        }
        Ok(noted)
    }

    /// Reads the marks of some commits after `number`. `position` is the last position before these
    /// commits.
    fn marks_in(&self, branch: &HashSet<i64>, number: i64, position: u64) -> Result<Walked, Error> {
        let (mut all, mut next, mut position) = (Vec::new(), None, position);
        for row in self.commits(number, COMMITS_AT_ONCE)? {
            let number = row.commit.number;
            let unreadable = || format!("the marks of commit {number} can't be read");
            let marks = mark_bytes::read_marks(&row.marks);
            let marks = marks.ok_or_else(|| schema::damaged(&self.path, &unreadable()))?;
            let own = |it: &MarkRow| branch.contains(&it.thread.cast_signed());
            all.extend(marks.into_iter().filter(own).map(|it| (position, it)));
            position = row.commit.last_position;
            next = Some((number.cast_signed(), position));
        }
        Ok((all, next))
    }
}
