//! A log's durability says which failures an acknowledged append survives. A manifest names it by a
//! word.
//!
//! `sqlite/connect.rs` tells SQLite how to sync for each durability. For [`Durability::Normal`],
//! `sqlite/checkpoint.rs` also syncs about once a second.

use std::fmt;
use std::str::FromStr;

/// Says which failures an acknowledged append survives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
// Exhaustive, since a manifest has exactly these three.
pub enum Durability {
    /// An append survives a power cut: the batch is on the disk before any client hears of it.
    #[default]
    Full,
    /// An append survives the end of the process, even if the process is killed. A power cut may
    /// lose about the last second.
    Normal,
    /// An append doesn't survive the end of the process: the log is in memory only.
    Memory,
}

impl Durability {
    /// The durability's word in a manifest: `full`, `normal` or `memory`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Durability::Full => "full",
            Durability::Normal => "normal",
            Durability::Memory => "memory",
        }
    }
}

impl fmt::Display for Durability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The error of a text that isn't a durability.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoDurability;

impl fmt::Display for NoDurability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("durability is full, normal or memory")
    }
}

impl std::error::Error for NoDurability {}

impl FromStr for Durability {
    type Err = NoDurability;

    fn from_str(text: &str) -> Result<Durability, NoDurability> {
        [Durability::Full, Durability::Normal, Durability::Memory]
            .into_iter()
            .find(|it| it.as_str() == text)
            .ok_or(NoDurability)
    }
}
