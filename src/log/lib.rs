//! The log: threads of entries, which are appended and never changed. A pump has no other durable
//! memory.
//!
//! The log doesn't parse XML: to it, a payload is a name and bytes. [`SqliteLog`] keeps a log in a
//! file, [`MemoryLog`] in memory.

extern crate self as pumphouse;

// The modules name each other, and those of the crates below, by their paths in `pumphouse`.
#[doc(hidden)]
pub use crate as log;
#[cfg(feature = "sqlite")]
use pumphouse_ground::{atomic_file, limits, own_files};
use pumphouse_ground::{clock, id, name};

mod identity;
mod error;
mod head;
mod durability;
mod entry;
mod mark_bytes;
mod chain;
mod admit;
mod verify;
mod interface;
#[cfg(any(test, feature = "conformance"))]
#[allow(clippy::unwrap_used, reason = "it is tests, for logs of other crates, too")]
pub mod conformance;
mod open_entries;
mod memory;
mod pages;
mod last_position;
#[cfg(feature = "sqlite")]
mod sqlite;

pub use chain::digest_of;
pub use durability::{Durability, NoDurability};
pub use entry::{
    Batch, Draft, Entry, Flags, LastStart, Mark, NewThread, Noted, Open, Receipt, State,
    ThreadRecord, ThreadSummary,
};
pub use error::{Boxed, Error};
pub use head::{Head, NoHead};
pub use identity::Identity;
pub use interface::bytes_of;
pub use interface::{Health, Log};
pub use last_position::{last_position, last_position_from};
pub use memory::MemoryLog;
pub use pages::{Pages, ThreadPages};
#[cfg(feature = "sqlite")]
pub use sqlite::{Copied, Existing, SqliteLog};
pub use verify::{Finding, Report, Wrong};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_durability_is_read_as_it_is_written() {
        for one in [Durability::Full, Durability::Normal, Durability::Memory] {
            assert_eq!(one.to_string().parse(), Ok(one));
        }
        assert_eq!("relaxed".parse::<Durability>(), Err(NoDurability));
    }

    #[test]
    fn a_page_ends_at_its_bytes_and_has_one_entry_at_least() {
        let log = MemoryLog::new();
        let body = |bytes: usize| vec![b'x'; bytes].into();
        let sizes = [(1, 10), (2, 30), (3, 10), (4, 10)];
        let entries = sizes.map(|(seq, bytes)| Draft {
            body: body(bytes),
            ..conformance::note(&format!("a/{seq}"))
        });
        let all = Batch { entries: entries.into(), ..conformance::batch(&["a"], &[]) };
        conformance::wait(log.append(all)).unwrap();
        let count = |after, limit, bytes_max| {
            conformance::wait(log.tail_within(after, limit, bytes_max)).unwrap().len()
        };
        let counts = [10, 11, 40, 41].map(|it| count(0, 9, it));
        assert_eq!(counts, [1, 2, 2, 3]);
        assert_eq!([count(1, 9, 1), count(0, 9, usize::MAX), count(0, 3, 99)], [1, 4, 3]);
        assert_eq!([count(4, 9, 1), count(0, 0, 1)], [0, 0]);
    }
}
