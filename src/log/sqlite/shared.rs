//! What the writer shares with the copying thread and with those who append.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use rusqlite::Connection;

use crate::log::sqlite::connect::Mark;
use crate::log::sqlite::copy;
use crate::log::sqlite::files::{Files, Gone};
use crate::log::{Error, Health};

/// What the writer shares with those who append.
#[derive(Default)]
pub(super) struct Shared {
    poison: Mutex<Option<Arc<str>>>,
    /// How the next process hears of it.
    pub(super) mark: OnceLock<Mark>,
    /// Where the log's files were when it was opened.
    pub(super) files: OnceLock<Files>,
    pub(super) full: AtomicBool,
    /// Something was written since the last sync, where an append doesn't sync.
    pub(super) unsynced: AtomicBool,
    /// What was copied into the file is most likely synced there.
    pub(super) is_settled: AtomicBool,
    /// No more appends; a full disk is waited for no longer.
    pub(super) closing: Arc<AtomicBool>,
    #[cfg(test)]
    pub(super) trouble: crate::log::sqlite::write::trouble::Trouble,
}

impl Shared {
    pub(super) fn health(&self) -> Health {
        if let Some(why) = self.poison.lock().unwrap_or_else(PoisonError::into_inner).clone() {
            return Health::Poisoned(why);
        }
        if self.full.load(Ordering::Relaxed) { Health::Full } else { Health::Well }
    }

    /// Looks whether the log's files are where they were. Where they aren't, nothing more is taken;
    /// what stands in a write-ahead log without a name is copied into the file while it can be.
    pub(super) fn look(&self, db: &Connection) -> Result<(), Error> {
        let Some((files, gone)) = self.files.get().and_then(|it| Some((it, it.gone()?))) else {
            return Ok(());
        };
        if let Health::Poisoned(why) = self.health() {
            return Err(Error::Poisoned(why));
        }
        let (why, _) = self.take_no_more(&files.told(gone));
        tracing::error!(%why, "nothing more is accepted");
        if gone == Gone::Wal {
            // It can't be worse for that.
            let _ = copy::copy(db);
        }
        Err(Error::Poisoned(why))
    }

    /// Notes that the disk is full, and says so once.
    pub(super) fn note_full(&self, file: &Path) {
        if !self.full.swap(true, Ordering::Relaxed) {
            let file = file.display();
            tracing::warn!(%file, "the log's disk is full: pushes are refused until it has room");
        }
    }

    /// Notes that there was room, and says so where there had been none.
    pub(super) fn note_room(&self, file: &Path) {
        if self.full.swap(false, Ordering::Relaxed) {
            let file = file.display();
            tracing::warn!(%file, "the log's disk has room again: pushes are taken");
        }
    }

    pub(super) fn poison(&self, why: &str) -> Error {
        let (why, is_first) = self.take_no_more(why);
        // Nobody waits here for a disk that is sick.
        if let Some(mark) = self.mark.get().filter(|_| is_first) {
            mark.make();
        }
        Error::Poisoned(why)
    }

    /// Why nothing more is taken from now on, and whether something was until now.
    fn take_no_more(&self, why: &str) -> (Arc<str>, bool) {
        let mut poison = self.poison.lock().unwrap_or_else(PoisonError::into_inner);
        let is_first = poison.is_none();
        (poison.get_or_insert_with(|| why.into()).clone(), is_first)
    }
}
