//! Lets tests simulate a disk that is full or fails.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use rusqlite::Connection;

/// The simulated disk errors of the next commits.
#[derive(Default)]
pub(crate) struct Trouble {
    /// The most pages that the disk has room for; 0 stands for no limit.
    pub(crate) pages_max: AtomicU32,
    /// Whether commits fail as if a sync had failed.
    pub(crate) sync: AtomicBool,
    /// The size of the write-ahead log plus the free room on the disk, in bytes; 0 stands for no
    /// limit.
    pub(crate) room: AtomicU64,
}

impl Trouble {
    pub(super) fn room(&self) -> Option<u64> {
        Some(self.room.load(Ordering::Relaxed)).filter(|it| *it > 0)
    }

    pub(super) fn before(&self, db: &Connection) -> rusqlite::Result<()> {
        let pages = match self.pages_max.load(Ordering::Relaxed) {
            0 => i64::from(u32::MAX - 1),
            pages => i64::from(pages),
        };
        db.pragma_update_and_check(None, "max_page_count", pages, |_| Ok(()))?;
        if self.sync.load(Ordering::Relaxed) {
            let failed = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_IOERR_FSYNC);
            return Err(rusqlite::Error::SqliteFailure(failed, None));
        }
        Ok(())
    }
}
