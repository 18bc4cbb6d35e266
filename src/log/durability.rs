//! The durabilities of a log, that is, the failures that an acknowledged append survives, and their
//! words in a manifest.
//!
//! `sqlite/connect.rs` tells the database how to flush for each durability. For
//! [`Durability::Normal`], `sqlite/checkpoint.rs` flushes about once a second.

use std::fmt;
use std::str::FromStr;

/// The failures that an acknowledged append survives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
// Exhaustive, since a manifest has exactly these three.
pub enum Durability {
    /// An append survives a power cut: the batch is on the disk before any client hears of it.
    #[default]
    Full,
    /// An append survives when the process is killed. A power cut loses about the last second.
    Normal,
    /// An append doesn't survive the process: the log is in memory only.
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
