//! Copies of the write-ahead log, by SQLite itself, and its length.

use rusqlite::Connection;

/// Copies as much of the write-ahead log as its readers allow. Returns whether another copy was
/// under way.
pub(super) fn passive(db: &Connection) -> rusqlite::Result<bool> {
    db.prepare_cached("PRAGMA wal_checkpoint(PASSIVE)")?.query_row([], |row| row.get(0))
}

/// Waits a while for readers, then copies the whole write-ahead log and truncates it. Returns
/// whether the copy succeeded.
pub(super) fn truncate(db: &Connection) -> rusqlite::Result<bool> {
    let is_busy: bool = db.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0))?;
    Ok(!is_busy)
}

/// The length of the write-ahead log, and the part of it that isn't copied, in pages.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wal {
    pub(super) pages: i64,
    /// The pages that aren't in the database file yet.
    pub(super) left: i64,
}

impl Wal {
    pub(super) fn copied(self) -> i64 {
        self.pages - self.left
    }
}

/// Reads the length of the write-ahead log.
pub(super) fn wal(db: &Connection) -> rusqlite::Result<Wal> {
    db.prepare_cached("PRAGMA wal_checkpoint(NOOP)")?.query_row([], |row| {
        let (pages, copied): (i64, i64) = (row.get(1)?, row.get(2)?);
        Ok(Wal { pages, left: pages - copied })
    })
}
