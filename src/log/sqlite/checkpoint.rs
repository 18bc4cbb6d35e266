//! Checkpoints: copies of the write-ahead log into the database file. The checkpointer thread makes
//! most of them, so that the writer needn't wait. With [`Durability::Normal`], appends don't sync,
//! and the checkpointer thread also syncs the write-ahead log about once a second.

use std::fs::OpenOptions;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;
use std::time::Duration;

use flume::{Receiver, RecvTimeoutError, Sender};

use crate::clock;
use crate::log::durability::Durability;
use crate::log::error::Error;
use crate::log::sqlite::connect;
use crate::log::sqlite::files::{Db, beside};
use crate::log::sqlite::retry::{Retry, retry};
use crate::log::sqlite::shared_state::Shared;
use crate::log::sqlite::wal::{Wal, passive, wal};

/// The text of the error for a failed checkpoint.
pub(super) const CHECKPOINT_FAILED: &str = "copying the write-ahead log failed";
/// How long the data of an append of [`Durability::Normal`] may be in the operating system's cache
/// only. Left to itself, the system may keep the data there for half a minute.
const SYNC_WAIT: Duration = Duration::from_secs(1);

/// The length of the write-ahead log, in pages (128 MiB), at which the checkpointer thread begins
/// to copy it. A page that is written many times before that, such as an index page, is copied only
/// once.
const CHECKPOINT_PAGES: i64 = 32_768;
/// The length of the write-ahead log, in pages (256 MiB), at which the writer itself copies all of
/// it. This bounds the length, unless a reader keeps SQLite from restarting the write-ahead log.
const PAGES_MAX: i64 = 65_536;
/// Pages (1 MiB) that the write-ahead log may always have, even if the disk is nearly full.
const PAGES_LEAST: i64 = 256;
/// Bytes of a page.
const PAGE_BYTES: u64 = 4_096;
/// A divisor: the write-ahead log may take one quarter of the sum of its own size and the free disk
/// space. The rest is for the database file, which grows with each copy.
const PART_OF_ROOM: u64 = 4;
/// Pages (1 MiB) after which the free disk space is measured again.
pub(super) const MEASURE_PAGES: i64 = 256;
/// How often the checkpointer thread checks that the log's files are still there.
const LOOK_WAIT: Duration = Duration::from_millis(400);
/// If at most this many pages are left to copy, the writer itself copies them, provided that the
/// database file is settled (see [`Settling`]). SQLite starts the write-ahead log from its
/// beginning only when all of it is copied. A copy that runs during steady writing never quite
/// reaches the end.
const PAGES_LEFT: i64 = 32;
/// The bound [`PAGES_LEFT`] grows by one page for each `PART_BEYOND` pages that the write-ahead log
/// has beyond the length at which copying begins. With large commits, a copy never leaves as few as
/// [`PAGES_LEFT`] pages.
const PART_BEYOND: i64 = 8;
/// After this many quick copies in a row, each of at least one page, the database file is most
/// likely synced: see [`Settling`].
const QUICK_COPIES: u32 = 4;
/// A copy that takes less than this many microseconds is quick. A copy of a few pages with its
/// syncs takes half as long.
const QUICK_US: u64 = 2_000;
/// After this many copies the database file counts as settled even if no copy was quick. On a slow
/// disk, no copy is quick.
const COPIES_MAX: u32 = 32;
/// Pages (4 MiB) by which the write-ahead log must grow before the writer copies its end again.
/// This matters while a reader keeps SQLite from restarting the write-ahead log.
const PAGES_AGAIN: i64 = 1_024;

/// A handle to the checkpointer thread, which has a connection of its own.
pub(super) struct Checkpointer {
    requests: Sender<()>,
    thread: JoinHandle<()>,
}

impl Checkpointer {
    /// Starts the thread, which waits until [`Checkpointer::request`] asks for a copy.
    pub(super) fn start(
        path: &Path,
        durability: Durability,
        shared: &Arc<Shared>,
    ) -> Result<Checkpointer, Error> {
        let db = connect::writing(path)?;
        connect::tune(&db, path, durability)?;
        let (requests, inbox) = flume::bounded(1);
        let shared = shared.clone();
        let path = path.to_owned();
        let thread = std::thread::Builder::new()
            .name("log-copy".to_owned())
            .spawn(move || {
                let checkpoints = CheckpointThread { db, shared, settling: Settling::default() };
                match durability {
                    Durability::Normal => checkpoints.run_and_sync(&path, &inbox),
                    Durability::Full | Durability::Memory => checkpoints.run(&inbox),
                }
            })
            .map_err(|error| Error::Io(error.to_string().into()))?;
        Ok(Checkpointer { requests, thread })
    }

    /// Asks for a copy. While a copy is being made, at most one further request is kept.
    pub(super) fn request(&self) {
        // An error needs no treatment. `Full` means that a copy is requested already.
        // `Disconnected` means that the log is poisoned, which the log itself reports.
        let _ = self.requests.try_send(());
    }

    /// Stops the thread. A copy that is under way is finished first.
    pub(super) fn stop(self) {
        drop(self.requests);
        let _ = self.thread.join();
    }
}

/// The checkpointer thread's state.
struct CheckpointThread {
    db: Db,
    shared: Arc<Shared>,
    settling: Settling,
}

impl CheckpointThread {
    fn run(mut self, inbox: &Receiver<()>) {
        loop {
            let well = match inbox.recv_timeout(LOOK_WAIT) {
                Ok(()) => self.checkpoint(),
                Err(RecvTimeoutError::Timeout) => true,
                Err(RecvTimeoutError::Disconnected) => false,
            };
            if !well || self.shared.look(&self.db).is_err() {
                return;
            }
        }
    }

    /// Like `run`, but also syncs the write-ahead log about once a second. The syncs of the copies
    /// aren't enough: if a reader keeps a copy from copying anything, the copy doesn't sync.
    fn run_and_sync(mut self, path: &Path, inbox: &Receiver<()>) {
        let wait_us = u64::try_from(SYNC_WAIT.as_micros()).unwrap_or(u64::MAX);
        let mut last_us = clock::now_us();
        loop {
            let left_us = wait_us.saturating_sub(clock::now_us().abs_diff(last_us));
            let wait = Duration::from_micros(left_us).min(LOOK_WAIT);
            let mut well = match inbox.recv_timeout(wait) {
                Ok(()) => self.checkpoint(),
                Err(RecvTimeoutError::Timeout) => true,
                Err(RecvTimeoutError::Disconnected) => false,
            };
            well = well && self.shared.look(&self.db).is_ok();
            if well && clock::now_us().abs_diff(last_us) >= wait_us {
                well = sync(path, &self.shared).is_ok();
                last_us = clock::now_us();
            }
            if !well {
                return;
            }
        }
    }

    /// Copies the write-ahead log, unless another copy is under way. Returns false if the copy
    /// failed for good, which poisons the log.
    fn checkpoint(&mut self) -> bool {
        match self.checkpoint_and_settle() {
            Err(error) if retry(&error) == Retry::Never => {
                self.shared.poison(&format!("{CHECKPOINT_FAILED}: {error}"));
                false
            }
            _ => true,
        }
    }

    fn checkpoint_and_settle(&mut self) -> rusqlite::Result<()> {
        let before = wal(&self.db)?;
        let since_us = clock::now_us();
        let is_busy = passive(&self.db)?;
        let took_us = clock::now_us().abs_diff(since_us);
        if !is_busy {
            let is_settled = self.settling.note_copy(before, wal(&self.db)?, took_us);
            self.shared.is_settled.store(is_settled, Ordering::Relaxed);
        }
        Ok(())
    }
}

/// Estimates whether the pages that were copied into the database file are synced there. If so, the
/// file is settled.
///
/// A commit overtakes a copy if it is written while the copy is made. SQLite syncs the file only in
/// a copy that no commit overtook, and doesn't report the sync. So the first such copy takes long,
/// because it syncs what all earlier copies wrote: 3 to 20 ms for 128 MiB. If the writer's own copy
/// were the first, the writer would have to wait.
#[derive(Debug, Default)]
struct Settling {
    /// How many pages of the write-ahead log were copied when the last copy ended.
    pages: i64,
    /// The number of copies since SQLite last restarted the write-ahead log.
    copies: u32,
    /// How many copies in a row were quick, up to the last one.
    quick: u32,
}

impl Settling {
    /// Notes a copy and how long it took. Returns whether the file counts as settled.
    fn note_copy(&mut self, before: Wal, after: Wal, took_us: u64) -> bool {
        if before.copied() < self.pages {
            // The write-ahead log has started from its beginning since the last copy.
            (self.copies, self.quick) = (0, 0);
        }
        self.pages = after.copied();
        self.copies += 1;
        // A copy that found nothing to copy doesn't show whether anything is left to sync.
        if after.copied() > before.copied() {
            self.quick = if took_us < QUICK_US { self.quick + 1 } else { 0 };
        }
        after.left == 0 || self.quick >= QUICK_COPIES || self.copies >= COPIES_MAX
    }
}

/// Syncs the write-ahead log, if it was written to since the last sync. A failure poisons the log.
///
/// SQLite has its locks on other files, so closing the write-ahead log here drops no lock.
pub(super) fn sync(path: &Path, shared: &Shared) -> Result<(), Error> {
    if !shared.unsynced.swap(false, Ordering::AcqRel) {
        return Ok(());
    }
    let wal = OpenOptions::new().write(true).open(beside(path, "-wal"));
    let synced = wal.and_then(|it| it.sync_data());
    synced.map_err(|it| shared.poison(&format!("syncing the write-ahead log failed: {it}")))
}

/// A copy of the write-ahead log that is due between two commits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Due {
    Nothing,
    /// The checkpointer thread makes a copy, while the writer goes on.
    InBackground,
    /// The writer copies the few pages that are left, so that the next commit starts the
    /// write-ahead log from its beginning.
    End,
    /// The writer copies all of the write-ahead log, however long that takes.
    All,
}

/// Bounds of the write-ahead log's length, in pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct WalBounds {
    /// From this length on, the checkpointer thread copies the write-ahead log.
    copied: i64,
    /// From this length on, the writer itself copies all of it.
    max: i64,
}

impl Default for WalBounds {
    fn default() -> WalBounds {
        WalBounds { copied: CHECKPOINT_PAGES, max: PAGES_MAX }
    }
}

impl WalBounds {
    /// The bounds for a disk on which the write-ahead log and the free room together have this many
    /// bytes.
    pub(super) fn for_disk(room: u64) -> WalBounds {
        let pages = i64::try_from(room / PART_OF_ROOM / PAGE_BYTES).unwrap_or(PAGES_MAX);
        let max = pages.clamp(PAGES_LEAST, PAGES_MAX);
        WalBounds { copied: (max / 2).min(CHECKPOINT_PAGES), max }
    }

    /// How many bytes the write-ahead log's file keeps at most, once all of it was copied.
    pub(super) fn bytes_kept(self) -> u64 {
        match self.max {
            PAGES_MAX => u64::from(connect::WAL_BYTES_KEPT),
            max => max.cast_unsigned() * PAGE_BYTES,
        }
    }
}

/// The size of the write-ahead log plus the free room on the disk, in bytes. `None` if the system
/// doesn't say.
#[cfg(not(test))]
pub(super) fn room(path: &Path) -> Option<u64> {
    let own = std::fs::metadata(beside(path, "-wal")).map_or(0, |it| it.len());
    free_bytes(path).map(|it| it.saturating_add(own))
}

#[cfg(all(unix, not(test)))]
#[allow(clippy::useless_conversion, reason = "some systems count in 32 bits")]
fn free_bytes(path: &Path) -> Option<u64> {
    let disk = nix::sys::statvfs::statvfs(path).ok()?;
    Some(u64::from(disk.blocks_available()).saturating_mul(u64::from(disk.fragment_size())))
}

#[cfg(all(not(unix), not(test)))]
fn free_bytes(_: &Path) -> Option<u64> {
    None
}

/// Decides what the writer does between two commits. `ended_at` is the length at which the writer
/// last copied the end of the write-ahead log, or 0 if the log has started from its beginning
/// since.
pub(super) fn due(
    Wal { pages, left }: Wal,
    is_settled: bool,
    ended_at: i64,
    bounds: WalBounds,
) -> Due {
    let little = PAGES_LEFT + (pages - bounds.copied) / PART_BEYOND;
    match pages {
        _ if pages < bounds.copied => Due::Nothing,
        _ if pages >= bounds.max => Due::All,
        _ if left > little => Due::InBackground,
        _ if pages < ended_at + PAGES_AGAIN => Due::Nothing,
        _ if !is_settled => Due::InBackground,
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
            ((CHECKPOINT_PAGES, CHECKPOINT_PAGES), 0, Due::InBackground),
            ((CHECKPOINT_PAGES + 400, 100), 0, Due::InBackground),
            ((CHECKPOINT_PAGES + 480, 80), 0, Due::End),
            // A reader keeps the write-ahead log from starting from its beginning, so the log grows
            // further.
            ((CHECKPOINT_PAGES + 500, 20), CHECKPOINT_PAGES + 480, Due::Nothing),
            ((CHECKPOINT_PAGES + 1_480, 1_000), CHECKPOINT_PAGES + 480, Due::InBackground),
            ((CHECKPOINT_PAGES + 1_504, 24), CHECKPOINT_PAGES + 480, Due::End),
            // Large commits.
            ((CHECKPOINT_PAGES + 400, 400), 0, Due::InBackground),
            ((CHECKPOINT_PAGES + 3_200, 400), 0, Due::End),
            ((PAGES_MAX, PAGES_MAX), 0, Due::All),
            ((PAGES_MAX, 0), PAGES_MAX - 1, Due::All),
        ];
        for ((pages, left), ended_at, is_due) in cases {
            let wal = Wal { pages, left };
            assert_eq!(
                due(wal, true, ended_at, WalBounds::default()),
                is_due,
                "{wal:?} after {ended_at}"
            );
        }
    }

    #[test]
    fn the_writer_copies_nothing_before_the_file_is_settled() {
        let wal = Wal { pages: CHECKPOINT_PAGES, left: 8 };
        assert_eq!(due(wal, false, 0, WalBounds::default()), Due::InBackground);
        assert_eq!(due(wal, true, 0, WalBounds::default()), Due::End);
    }

    #[test]
    fn where_room_is_short_the_write_ahead_log_is_copied_early() {
        let mib = |it: u64| it << 20;
        let pages = |it: WalBounds| (it.copied, it.max, it.bytes_kept());
        let all = (CHECKPOINT_PAGES, PAGES_MAX, u64::from(connect::WAL_BYTES_KEPT));
        assert_eq!(pages(WalBounds::for_disk(mib(100_000))), all);
        assert_eq!(pages(WalBounds::for_disk(mib(1_024))), all);
        assert_eq!(pages(WalBounds::for_disk(mib(96))), (3_072, 6_144, mib(24)));
        assert_eq!(pages(WalBounds::for_disk(0)), (128, PAGES_LEAST, mib(1)));
        let due = |pages, left| due(Wal { pages, left }, true, 0, WalBounds::for_disk(mib(96)));
        assert_eq!(due(3_071, 3_071), Due::Nothing);
        assert_eq!(due(3_072, 3_072), Due::InBackground);
        assert_eq!(due(3_072, 20), Due::End);
        assert_eq!(due(6_144, 6_144), Due::All);
    }

    /// Returns, for each of some copies, whether the file is settled after it. Each copy is given
    /// as four numbers: the pages that were copied before it and after it, all pages of the
    /// write-ahead log, and the time that the copy took.
    fn settled(copies: &[(i64, i64, i64, u64)]) -> Vec<bool> {
        let mut settling = Settling::default();
        let copied = |&(from, to, pages, took_us)| {
            let wal = |copied| Wal { pages, left: pages - copied };
            settling.note_copy(wal(from), wal(to), took_us)
        };
        copies.iter().map(copied).collect()
    }

    /// A copy that a commit overtook.
    fn overtaken(from: i64, took_us: u64) -> (i64, i64, i64, u64) {
        (from, from + 10, from + 12, took_us)
    }

    #[test]
    fn the_file_is_settled_after_a_few_quick_copies_in_a_row() {
        let quick = |from| overtaken(from, QUICK_US - 1);
        let long = |from| overtaken(from, QUICK_US);
        let in_a_row = [quick(0), quick(10), quick(20), quick(30)];
        assert_eq!(settled(&in_a_row), [false, false, false, true]);
        assert_eq!(settled(&[quick(0), quick(10), long(20), quick(30)]), [false; 4]);
        let anew = [in_a_row, [quick(0), quick(10), quick(20), quick(30)]].concat();
        let of_each = [false, false, false, true];
        assert_eq!(settled(&anew), [of_each, of_each].concat());
        // A reader keeps the copies from copying anything.
        assert_eq!(settled(&[(10, 10, 12, 0); 8]), [false; 8]);
    }

    #[test]
    fn the_file_is_settled_where_no_commit_overtook_a_copy() {
        assert_eq!(settled(&[overtaken(0, QUICK_US), (10, 20, 20, QUICK_US)]), [false, true]);
    }

    #[test]
    fn where_no_copy_is_quick_it_is_waited_for_only_so_often() {
        let slow: Vec<_> =
            (0..i64::from(COPIES_MAX)).map(|it| overtaken(it * 10, QUICK_US)).collect();
        let settled = settled(&slow);
        assert_eq!(settled.iter().position(|it| *it), Some(slow.len() - 1));
    }
}
