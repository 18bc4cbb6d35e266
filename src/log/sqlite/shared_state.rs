//! State that the writer thread, the checkpointer thread and the callers share.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use rusqlite::Connection;

use crate::log::error::Error;
use crate::log::interface::Health;
use crate::log::sqlite::connect::Mark;
use crate::log::sqlite::files::{Files, MissingFile};
use crate::log::sqlite::wal;

/// State that the writer thread, the checkpointer thread and the callers share.
#[derive(Default)]
pub(super) struct Shared {
    poison: Mutex<Option<Arc<str>>>,
    /// The file that tells the next process that a write failed.
    pub(super) mark: OnceLock<Mark>,
    /// The log's files as they were when it was opened.
    pub(super) files: OnceLock<Files>,
    pub(super) full: AtomicBool,
    /// Whether commits were written since `checkpoint::sync` last synced the write-ahead log.
    pub(super) unsynced: AtomicBool,
    /// Whether the pages that were copied into the database file are most likely synced.
    pub(super) is_settled: AtomicBool,
    /// Whether the log is being closed. From then on, the writer no longer waits for a full disk,
    /// and long reads end.
    pub(super) closing: Arc<AtomicBool>,
    #[cfg(test)]
    pub(super) trouble: crate::log::sqlite::simulated_disk_errors::Trouble,
}

impl Shared {
    pub(super) fn health(&self) -> Health {
        if let Some(why) = self.poison.lock().unwrap_or_else(PoisonError::into_inner).clone() {
            return Health::Poisoned(why);
        }
        if self.full.load(Ordering::Relaxed) { Health::Full } else { Health::Well }
    }

    /// Checks that the log's files are still at their paths. If a file is missing, the log takes no
    /// more appends. If only the write-ahead log is missing, its pages are copied into the database
    /// file, which is possible because SQLite still has it open.
    pub(super) fn look(&self, db: &Connection) -> Result<(), Error> {
        let Some((files, gone)) = self.files.get().and_then(|it| Some((it, it.missing()?))) else {
            return Ok(());
        };
        if let Health::Poisoned(why) = self.health() {
            return Err(Error::Poisoned(why));
        }
        let (why, _) = self.take_no_more(&files.missing_text(gone));
        tracing::error!(%why, "nothing more is accepted");
        if gone == MissingFile::Wal {
            // A failure is ignored, since it makes nothing worse.
            let _ = wal::passive(db);
        }
        Err(Error::Poisoned(why))
    }

    /// Notes that the disk is full, and traces it once.
    pub(super) fn note_full(&self, file: &Path) {
        if !self.full.swap(true, Ordering::Relaxed) {
            let file = file.display();
            tracing::warn!(%file, "the log's disk is full: pushes are refused until it has room");
        }
    }

    /// Notes that the disk has room, and traces it if the disk was full before.
    pub(super) fn note_room(&self, file: &Path) {
        if self.full.swap(false, Ordering::Relaxed) {
            let file = file.display();
            tracing::warn!(%file, "the log's disk has room again: pushes are taken");
        }
    }

    pub(super) fn poison(&self, why: &str) -> Error {
        let (why, is_first) = self.take_no_more(why);
        // The mutex is unlocked again here, so no caller waits for a failing disk.
        if let Some(mark) = self.mark.get().filter(|_| is_first) {
            mark.make();
        }
        Error::Poisoned(why)
    }

    /// Poisons the log. If the log is poisoned already, the first reason stays. Returns the first
    /// reason, and whether it is the given one.
    fn take_no_more(&self, why: &str) -> (Arc<str>, bool) {
        let mut poison = self.poison.lock().unwrap_or_else(PoisonError::into_inner);
        let is_first = poison.is_none();
        (poison.get_or_insert_with(|| why.into()).clone(), is_first)
    }
}
