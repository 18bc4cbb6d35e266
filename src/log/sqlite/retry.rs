//! Whether a failed operation of SQLite may succeed later.

use rusqlite::ErrorCode;

/// Whether and when to retry after an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Retry {
    Never,
    Soon,
    WhenThereIsRoom,
}

/// Decides by the error of SQLite.
pub(super) fn retry(error: &rusqlite::Error) -> Retry {
    /// The code of SQLite's error if there is no room for the index of the write-ahead log.
    const SHARED_MEMORY_SIZE: i32 = 10 | 19 << 8;
    match error.sqlite_error() {
        Some(it) if it.code == ErrorCode::DiskFull => Retry::WhenThereIsRoom,
        Some(it) if it.extended_code == SHARED_MEMORY_SIZE => Retry::WhenThereIsRoom,
        Some(it) if it.code == ErrorCode::DatabaseBusy => Retry::Soon,
        _ => Retry::Never,
    }
}
