//! What tests do to the disk.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use rusqlite::Connection;

/// What goes wrong with the next commits.
#[derive(Default)]
pub(crate) struct Trouble {
    /// Pages that the disk has room for; 0 for any number.
    pub(crate) pages_max: AtomicU32,
    /// A sync fails.
    pub(crate) sync: AtomicBool,
    /// Bytes that the disk has left for the write-ahead log; 0 for any number.
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
