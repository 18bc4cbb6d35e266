//! Pages of entries of all threads that end at a number of bytes, for readers that hold a page
//! while they send it on.

use std::sync::Arc;

use crate::log::entry::Entry;
use crate::log::error::Error;
use crate::log::sqlite::read::{Reader, signed};

impl Reader {
    /// The entries after a position, as [`tail`](Reader::tail) returns them, up to the entry with
    /// which they have `bytes_max` bytes.
    pub(super) fn tail_within(
        &mut self,
        after: u64,
        limit: usize,
        bytes_max: usize,
    ) -> Result<Vec<Arc<Entry>>, Error> {
        self.at_once(|reader| {
            let count = reader.count_within(after, limit, bytes_max)?;
            reader.tail(after, count)
        })
    }

    /// How many entries after a position are needed to have `bytes_max` bytes. The entries
    /// themselves aren't read.
    fn count_within(&mut self, after: u64, limit: usize, bytes_max: usize) -> Result<usize, Error> {
        let sql = "SELECT length(body) + coalesce(length(meta), 0)
               + coalesce((SELECT sum(length) FROM shares WHERE entry = position), 0)
             FROM entries WHERE position > ?1 ORDER BY position LIMIT ?2";
        let mut find = self.sql(self.db.prepare_cached(sql))?;
        let after = i64::try_from(after).unwrap_or(i64::MAX);
        let sizes = find.query_map([after, signed(limit)], |row| row.get::<_, Option<i64>>(0));
        let (mut count, mut bytes) = (0, 0_usize);
        for size in self.sql(sizes)? {
            count += 1;
            let size = self.sql(size)?.unwrap_or_default();
            bytes = bytes.saturating_add(usize::try_from(size).unwrap_or_default());
            if bytes >= bytes_max {
                break;
            }
        }
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use crate::log::conformance::{batch, note, wait};
    use crate::log::durability::Durability;
    use crate::log::entry::{Batch, Draft};
    use crate::log::interface::Log as _;
    use crate::log::memory::MemoryLog;
    use crate::log::sqlite::SqliteLog;

    #[test]
    fn a_page_in_a_file_ends_where_a_page_in_memory_does() {
        let folder = tempfile::tempdir().unwrap();
        let file = SqliteLog::open(folder.path().join("log.db"), Durability::Normal).unwrap();
        let memory = MemoryLog::new();
        let draft = |(seq, bytes): (u64, usize)| Draft {
            body: vec![b'x'; bytes].into(),
            ..note(&format!("a/{seq}"))
        };
        let entries: Vec<Draft> = (1..).zip([10, 5_000, 10, 3_000, 3_000]).map(draft).collect();
        let all = Batch { entries, ..batch(&["a"], &[]) };
        wait(file.append(all.clone())).unwrap();
        wait(memory.append(all)).unwrap();
        for (after, limit, bytes_max) in [
            (0, 9, 1),
            (0, 9, 11),
            (0, 9, 5_011),
            (1, 9, 1),
            (2, 2, usize::MAX),
            (0, 0, 9),
            (5, 9, 9),
        ] {
            let ids = |page: Vec<std::sync::Arc<crate::log::entry::Entry>>| -> Vec<u64> {
                page.iter().map(|it| it.id.seq).collect()
            };
            let [found, expected] = [
                wait(file.tail_within(after, limit, bytes_max)),
                wait(memory.tail_within(after, limit, bytes_max)),
            ]
            .map(|it| ids(it.unwrap()));
            assert_eq!(found, expected, "{limit} after {after} within {bytes_max}");
        }
        wait(file.close()).unwrap();
    }
}
