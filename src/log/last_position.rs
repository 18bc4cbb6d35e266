//! Finds the position of a log's last entry.

use crate::log::error::Error;
use crate::log::interface::Log;

/// The position of the last entry. 0 if the log has no entry.
///
/// # Errors
/// If the log can't be read.
pub async fn last_position(log: &dyn Log) -> Result<u64, Error> {
    last_position_from(log, 0).await
}

/// The position of the last entry. `known` is the position of an earlier entry or of the last one.
/// The closer `known` is to the last position, the fewer queries are needed.
///
/// # Errors
/// If the log can't be read.
pub async fn last_position_from(log: &dyn Log, known: u64) -> Result<u64, Error> {
    let (mut there, mut step) = (known, 1_u64);
    // Positions have no gaps. The step is doubled until it leads beyond the last position, then
    // halved until the last position is found.
    while is_beyond(log, there.saturating_add(step)).await? {
        there = there.saturating_add(step);
        step = step.saturating_mul(2);
    }
    while step > 0 {
        if is_beyond(log, there + step).await? {
            there += step;
        }
        step /= 2;
    }
    let beyond = is_beyond(log, there).await?;
    Ok(there + u64::from(beyond))
}

/// Whether there is an entry after a position.
async fn is_beyond(log: &dyn Log, position: u64) -> Result<bool, Error> {
    Ok(!log.tail(position, 1).await?.is_empty())
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::id::{EntryId, ThreadId};
    use crate::log::entry::{Batch, Draft, NewThread};
    use crate::log::memory::MemoryLog;
    use crate::name::Name;

    async fn log(entries: u64) -> MemoryLog {
        let log = MemoryLog::new();
        let id = ThreadId::new("sess-a");
        let threads = vec![NewThread { id: id.clone(), parent: None, fork: None }];
        let draft = |seq| {
            let body = Bytes::from_static(b"<a></a>");
            Draft::new(EntryId::new(&id, seq), 1, "console".into(), Name::of("urn:x", "a"), body)
        };
        let entries = (1..=entries).map(draft).collect();
        log.append(Batch { threads, entries, marks: Vec::new() }).await.unwrap();
        log
    }

    #[tokio::test]
    async fn the_last_position_is_found() {
        for entries in [0, 1, 2, 3, 4, 5, 7, 8, 9, 100, 1_023, 1_024] {
            assert_eq!(last_position(&log(entries).await).await, Ok(entries), "of {entries}");
        }
    }
}
