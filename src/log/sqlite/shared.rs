//! What the writer shares with the copying thread and with those who append.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use crate::log::sqlite::connect::Mark;
use crate::log::{Error, Health};

/// What the writer shares with those who append.
#[derive(Default)]
pub(super) struct Shared {
    poison: Mutex<Option<Arc<str>>>,
    /// How the next process hears of it.
    pub(super) mark: OnceLock<Mark>,
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
        let mut poison = self.poison.lock().unwrap_or_else(PoisonError::into_inner);
        let is_first = poison.is_none();
        let why = poison.get_or_insert_with(|| why.into()).clone();
        // Nobody waits here for a disk that is sick.
        drop(poison);
        if let Some(mark) = self.mark.get().filter(|_| is_first) {
            mark.make();
        }
        Error::Poisoned(why)
    }
}
