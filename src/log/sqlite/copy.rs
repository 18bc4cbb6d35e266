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

use crate::clock;
use crate::log::sqlite::connect;
use crate::log::sqlite::write::{Retry, Shared, retry};
use crate::log::{Durability, Error};

/// How long the system alone may know what an append of [`Durability::Normal`] wrote. Left to
/// itself, it may wait for half a minute.
const SYNC_WAIT: Duration = Duration::from_secs(1);

/// Pages of the write-ahead log (128 MiB) at which it is copied into the file beside the writing:
/// what is written to often meanwhile, as an index is, is copied once.
const PAGES_COPIED: i64 = 32_768;
/// Pages (256 MiB) at which writing waits for the copy: the log must not grow without bound.
const PAGES_MAX: i64 = 65_536;
/// Pages that the writer copies itself once no more are left. It begins anew only where all of it
/// is copied, and beside steady writing a copy is never quite at its end.
const PAGES_LEFT: i64 = 32;
/// The part of what is beyond [`PAGES_COPIED`] that it copies too: where much is written at a time,
/// so little is never left.
const PART_BEYOND: i64 = 8;
/// Copies beside the writing that must have been quick, one after another, before that. SQLite
/// syncs the file only after a copy that no commit overtook, so the first such copy takes long: the
/// sync of all that those before it wrote. A few quick ones say that it lies behind us; the writer
/// would wait for it otherwise, up to 20 ms for 128 MiB.
const QUICK_COPIES: u32 = 4;
/// Microseconds that a quick one takes at the most: a copy of a few pages and its syncs take half.
const QUICK_US: u64 = 2_000;
/// Pages (160 MiB) at which that is waited for no longer: where the disk is slow, none is quick.
const PAGES_PATIENT: i64 = 40_960;
/// Pages (4 MiB) after which the writer does so again, where a reader kept it from beginning anew.
const PAGES_AGAIN: i64 = 1_024;

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

/// The same, and every while a sync of what was written meanwhile. A copy needn't begin with one:
/// where a reader keeps it from copying anything, it doesn't.
fn copy_and_sync(db: &Connection, wal: &Path, wishes: &Receiver<()>, shared: &Shared) {
    let wait_us = u64::try_from(SYNC_WAIT.as_micros()).unwrap_or(u64::MAX);
    let mut last_us = clock::now_us();
    loop {
        let left_us = wait_us.saturating_sub(clock::now_us().abs_diff(last_us));
        let mut well = match wishes.recv_timeout(Duration::from_micros(left_us)) {
            Ok(()) => copied(db, shared),
            Err(RecvTimeoutError::Timeout) => true,
            Err(RecvTimeoutError::Disconnected) => false,
        };
        if well && clock::now_us().abs_diff(last_us) >= wait_us {
            well = synced(wal, shared);
            last_us = clock::now_us();
        }
        if !well {
            return;
        }
    }
}

/// Copies, unless another is in the way; whether the log is still to be trusted.
fn copied(db: &Connection, shared: &Shared) -> bool {
    let since_us = clock::now_us();
    let copied = copy(db);
    if clock::now_us().saturating_sub(since_us) < QUICK_US {
        shared.quick_copies.fetch_add(1, Ordering::Relaxed);
    } else {
        shared.quick_copies.store(0, Ordering::Relaxed);
    }
    match copied {
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

/// How much of the write-ahead log there is, in pages.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wal {
    pub(super) pages: i64,
    /// Those of them that aren't in the file yet.
    left: i64,
}

pub(super) fn wal(db: &Connection) -> rusqlite::Result<Wal> {
    db.prepare_cached("PRAGMA wal_checkpoint(NOOP)")?.query_row([], |row| {
        let (pages, copied): (i64, i64) = (row.get(1)?, row.get(2)?);
        Ok(Wal { pages, left: pages - copied })
    })
}

/// What is to be done about the write-ahead log between two commits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Due {
    Nothing,
    /// A copy beside the writing.
    Beside,
    /// The little that is left, here and now, so that the next commit begins it anew.
    End,
    /// All of it, however long that takes.
    All,
}

/// What is due after so many quick copies, where the writer copied the end of it at a length, since
/// when it only grew.
pub(super) fn due(Wal { pages, left }: Wal, quick_copies: u32, ended_at: i64) -> Due {
    let little = PAGES_LEFT + (pages - PAGES_COPIED) / PART_BEYOND;
    match pages {
        ..PAGES_COPIED => Due::Nothing,
        PAGES_MAX.. => Due::All,
        _ if left > little => Due::Beside,
        ..PAGES_PATIENT if quick_copies < QUICK_COPIES => Due::Beside,
        _ if pages < ended_at + PAGES_AGAIN => Due::Nothing,
        _ => Due::End,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_writer_copies_only_the_end_itself_and_not_over_and_over() {
        let cases = [
            ((1_000, 1_000), 0, Due::Nothing),
            ((PAGES_COPIED, PAGES_COPIED), 0, Due::Beside),
            ((PAGES_COPIED + 400, 100), 0, Due::Beside),
            ((PAGES_COPIED + 480, 80), 0, Due::End),
            // A reader is in the way, so it goes on where it was.
            ((PAGES_COPIED + 500, 20), PAGES_COPIED + 480, Due::Nothing),
            ((PAGES_COPIED + 1_480, 1_000), PAGES_COPIED + 480, Due::Beside),
            ((PAGES_COPIED + 1_504, 24), PAGES_COPIED + 480, Due::End),
            // Much at a time.
            ((PAGES_COPIED + 400, 400), 0, Due::Beside),
            ((PAGES_COPIED + 3_200, 400), 0, Due::End),
            ((PAGES_MAX, PAGES_MAX), 0, Due::All),
            ((PAGES_MAX, 0), PAGES_MAX - 1, Due::All),
        ];
        for ((pages, left), ended_at, is_due) in cases {
            let wal = Wal { pages, left };
            assert_eq!(due(wal, QUICK_COPIES, ended_at), is_due, "{wal:?} after {ended_at}");
        }
    }

    #[test]
    fn the_writer_leaves_the_sync_of_what_was_copied_to_the_copies_beside_it_for_a_while() {
        let wal = |pages| Wal { pages, left: 8 };
        assert_eq!(due(wal(PAGES_COPIED), QUICK_COPIES - 1, 0), Due::Beside);
        assert_eq!(due(wal(PAGES_COPIED), QUICK_COPIES, 0), Due::End);
        assert_eq!(due(wal(PAGES_PATIENT - 1), 0, 0), Due::Beside);
        assert_eq!(due(wal(PAGES_PATIENT), 0, 0), Due::End);
    }
}
