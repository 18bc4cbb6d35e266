//! Copies the write-ahead log into the file beside the writer, so that writing needn't wait for it.

use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;

use flume::{Receiver, Sender};
use rusqlite::Connection;

use crate::log::sqlite::connect;
use crate::log::sqlite::write::{Retry, Shared, retry};
use crate::log::{Durability, Error};

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
        let thread = std::thread::Builder::new()
            .name("log-copy".to_owned())
            .spawn(move || run(&db, &wishes, &shared))
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
    while wishes.recv().is_ok() {
        if let Err(error) = copy(db)
            && retry(&error) == Retry::Never
        {
            shared.poison(&format!("copying the write-ahead log failed: {error}"));
            return;
        }
    }
}

/// Copies what no reader keeps from being copied; whether another copy was in the way.
pub(super) fn copy(db: &Connection) -> rusqlite::Result<bool> {
    db.prepare_cached("PRAGMA wal_checkpoint(PASSIVE)")?.query_row([], |row| row.get(0))
}

/// How many pages of the write-ahead log there are.
pub(super) fn pages(db: &Connection) -> rusqlite::Result<i64> {
    db.prepare_cached("PRAGMA wal_checkpoint(NOOP)")?.query_row([], |row| row.get(1))
}
