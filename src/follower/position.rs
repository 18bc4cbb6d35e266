//! The position of a follower in the log. The position may be kept in a file beside the log, but
//! never in the log itself.

use std::fmt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::clock;
use crate::follower::kept_file;
use crate::log::{Error, Log, last_position};

/// The shortest time between two writes of a position, in microseconds.
const KEEP_EVERY_US: u64 = 1_000_000;

/// The advice about a position file that can't be read.
pub const FROM_BEGINNING: &str = "remove it, and the whole log is sent again";

/// The content of a position file.
#[derive(Debug, Serialize, Deserialize)]
struct StoredPosition {
    /// The UUID of the log.
    log: String,
    position: u64,
}

/// Why a follower has no position to begin at.
#[derive(Debug)]
pub enum NoPosition {
    /// The position file can't be used. The text says why, and what to do.
    File(String),
    /// The log can't be read.
    Log(Error),
}

impl fmt::Display for NoPosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NoPosition::File(text) => f.write_str(text),
            NoPosition::Log(error) => error.fmt(f),
        }
    }
}

/// Returns the path of a follower's position file: the log's path with `-NAME.json` appended.
pub fn file_beside(log: &Path, name: &str) -> PathBuf {
    let mut file = log.as_os_str().to_owned();
    file.push(format!("-{name}.json"));
    file.into()
}

/// A follower's position. If it has a file, the position survives the process.
pub struct KeptPosition {
    /// The UUID of the log.
    log: String,
    file: Option<PathBuf>,
    kept: u64,
    kept_us: u64,
}

impl KeptPosition {
    /// Reads the position for this log from the file. If there is no file, or the file is for
    /// another log, the position is the log's beginning.
    ///
    /// # Errors
    /// If the file can't be read or holds no position, or if the log can't be read.
    pub async fn read(log: &dyn Log, file: Option<PathBuf>) -> Result<KeptPosition, NoPosition> {
        let uuid = log.identity().uuid.to_string();
        let there = file.as_deref().map_or(Ok(None), position_in);
        let kept = match there.map_err(NoPosition::File)? {
            // A log that was restored from a backup may end before the position.
            Some(known) if known.log == uuid => {
                known.position.min(last_position(log).await.map_err(NoPosition::Log)?)
            }
            _ => 0,
        };
        Ok(KeptPosition { log: uuid, file, kept, kept_us: 0 })
    }

    /// Reads the position for this log from the file. If there is no file, or the file is for
    /// another log, the position is `first`. In that case `first` is written to `file` at once.
    ///
    /// # Errors
    /// If the file can't be read or holds no position, or if the log can't be read.
    pub async fn read_or(
        log: &dyn Log,
        file: Option<PathBuf>,
        first: u64,
    ) -> Result<KeptPosition, NoPosition> {
        let there = file.as_deref().map_or(Ok(None), position_in).map_err(NoPosition::File)?;
        let uuid = log.identity().uuid.to_string();
        if there.is_some_and(|it| it.log == uuid) {
            return KeptPosition::read(log, file).await;
        }
        // `u64::MAX` means that no position is kept yet, so that `keep` writes any `first`, even 0.
        let mut position = KeptPosition { log: uuid, file, kept: u64::MAX, kept_us: 0 };
        position.keep(first);
        position.kept = first;
        Ok(position)
    }

    /// A position without a file.
    pub fn unkept(log: &dyn Log, position: u64) -> KeptPosition {
        let log = log.identity().uuid.to_string();
        KeptPosition { log, file: None, kept: position, kept_us: 0 }
    }

    /// The position at which the follower began, or the last one that was written into the file
    /// since.
    pub fn get(&self) -> u64 {
        self.kept
    }

    /// Whether the file should be written now that the follower is at this position.
    pub fn is_due(&self, position: u64) -> bool {
        self.is_behind(position) && clock::now_us() >= self.kept_us.saturating_add(KEEP_EVERY_US)
    }

    /// Whether there is a file, and the last kept position differs from `position`.
    pub fn is_behind(&self, position: u64) -> bool {
        self.file.is_some() && self.kept != position
    }

    /// Writes a position into the file, if there is one.
    pub fn keep(&mut self, position: u64) {
        let Some(file) = self.file.as_deref().filter(|_| self.kept != position) else { return };
        self.kept_us = clock::now_us();
        match kept_file::write(file, &StoredPosition { log: self.log.clone(), position }) {
            Ok(()) => self.kept = position,
            Err(error) => {
                let file = file.display();
                tracing::warn!(
                    %file, %error,
                    "a position in the log can't be kept; what was sent since is sent again after \
                     a restart"
                );
            }
        }
    }
}

/// Checks that a position file can be read, if there is one. `advice` says what to do otherwise.
pub fn check(file: &Path, advice: &str) -> Result<(), String> {
    kept_file::read::<StoredPosition>(file, "position", advice).map(drop)
}

/// Reads a position file. Returns None if there is no file.
fn position_in(file: &Path) -> Result<Option<StoredPosition>, String> {
    kept_file::read(file, "position", FROM_BEGINNING)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::MemoryLog;

    #[tokio::test]
    async fn a_position_of_another_log_is_none_of_this_one() {
        let folder = tempfile::tempdir().unwrap();
        let file = file_beside(&folder.path().join("a.db"), "sink-ui");
        assert_eq!(file, folder.path().join("a.db-sink-ui.json"));
        let log = MemoryLog::new();
        let mut position = KeptPosition::read(&log, Some(file.clone())).await.unwrap();
        assert!(position.is_due(7) && !position.is_behind(0));
        position.keep(7);
        assert_eq!((position.get(), position.is_due(8)), (7, false), "once a second at the most");
        let other = KeptPosition::read(&MemoryLog::new(), Some(file.clone())).await.unwrap();
        assert_eq!(other.get(), 0);
        std::fs::write(&file, "nonsense").unwrap();
        let wrong = KeptPosition::read(&log, Some(file)).await.err().unwrap().to_string();
        assert!(wrong.contains("holds no position") && wrong.contains("remove it"), "{wrong}");
    }
}
