//! Copies the write-ahead log into the file beside the writer, so that writing needn't wait for it;
//! and syncs it now and then, where an append doesn't.

use std::fs::OpenOptions;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;
use std::time::Duration;

use flume::{Receiver, RecvTimeoutError, Sender};
use rusqlite::Connection;

use crate::log::sqlite::connect;
use crate::log::sqlite::write::{Retry, Shared, retry};
use crate::log::{Durability, Error};

/// How long the system alone may know what an append of [`Durability::Normal`] wrote. Left to
/// itself, it may wait for half a minute.
const SYNC_WAIT: Duration = Duration::from_secs(1);

/// The thread that copies, on a connection of its own.
pub(super) struct Copier {
    wanted: Sender<()>,
    thread: JoinHandle<()>,
}

impl Copier {
    /// Starts it; it waits until it is wanted.
    pub(super) fn start(
        path: &Path,
        durability: Durability,
        shared: &Arc<Shared>,
    ) -> Result<Copier, Error> {
        let db = connect::writing(path)?;
        connect::tune(&db, path, durability)?;
        let (wanted, wishes) = flume::bounded(1);
        let shared = shared.clone();
        let wal = connect::beside(path, "-wal");
        let thread = std::thread::Builder::new()
            .name("log-copy".to_owned())
            .spawn(move || match durability {
                Durability::Normal => copy_and_sync(&db, &wal, &wishes, &shared),
                Durability::Full | Durability::Memory => run(&db, &wishes, &shared),
            })
            .map_err(|error| Error::Io(error.to_string().into()))?;
        Ok(Copier { wanted, thread })
    }

    /// Asks for a copy; once is enough while one is being made.
    pub(super) fn want(&self) {
        // Full: it is asked already. Disconnected: the log is poisoned, and says so itself.
        let _ = self.wanted.try_send(());
    }

    /// Ends it, after the copy it may be making.
    pub(super) fn stop(self) {
        drop(self.wanted);
        let _ = self.thread.join();
    }
}

fn run(db: &Connection, wishes: &Receiver<()>, shared: &Shared) {
    while wishes.recv().is_ok() && copied(db, shared) {}
}

/// The same, and where nothing is to be copied for a while, a sync of what was written meanwhile.
fn copy_and_sync(db: &Connection, wal: &Path, wishes: &Receiver<()>, shared: &Shared) {
    loop {
        let well = match wishes.recv_timeout(SYNC_WAIT) {
            // A copy begins with a sync.
            Ok(()) => copied(db, shared),
            Err(RecvTimeoutError::Timeout) => synced(wal, shared),
            Err(RecvTimeoutError::Disconnected) => false,
        };
        if !well {
            return;
        }
    }
}

/// Copies, unless another is in the way; whether the log is still to be trusted.
fn copied(db: &Connection, shared: &Shared) -> bool {
    match copy(db) {
        Err(error) if retry(&error) == Retry::Never => {
            shared.poison(&format!("copying the write-ahead log failed: {error}"));
            false
        }
        _ => true,
    }
}

/// Syncs what was written since the last time; whether the log is still to be trusted.
///
/// SQLite keeps its locks elsewhere, so that its write-ahead log may be opened and closed.
fn synced(wal: &Path, shared: &Shared) -> bool {
    if !shared.unsynced.swap(false, Ordering::AcqRel) {
        return true;
    }
    let sync = OpenOptions::new().write(true).open(wal).and_then(|it| it.sync_data());
    if let Err(error) = &sync {
        shared.poison(&format!("syncing the write-ahead log failed: {error}"));
    }
    sync.is_ok()
}

/// Copies what no reader keeps from being copied; whether another copy was in the way.
pub(super) fn copy(db: &Connection) -> rusqlite::Result<bool> {
    db.prepare_cached("PRAGMA wal_checkpoint(PASSIVE)")?.query_row([], |row| row.get(0))
}

/// How many pages of the write-ahead log there are.
pub(super) fn pages(db: &Connection) -> rusqlite::Result<i64> {
    db.prepare_cached("PRAGMA wal_checkpoint(NOOP)")?.query_row([], |row| row.get(1))
}
