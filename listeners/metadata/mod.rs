//! Metadata: fields in which an agent reports its own state.
//!
//! ```
//! # extern crate pumphouse_listeners as pumphouse;
//! use pumphouse::listeners::metadata::{Field, Fields, Kind};
//!
//! let status = Field::choice("status", ["IDLE", "CODING"]).default("IDLE");
//! let fields = Fields::new([status, Field::new("context", Kind::Object)])?;
//! assert!(Fields::new([Field::choice("status", ["IDLE"]).default("BUSY")]).is_err());
//! # let _ = fields;
//! # Ok::<(), pumphouse::listeners::metadata::field::WrongField>(())
//! ```
//!
//! The agent's model writes `<metadata>{"status": "CODING"}</metadata>`. Values that the fields
//! allow are kept. The agent's next prompt reports all other values as errors. [`Metadatas`] is the
//! fold of the values that were kept. `docs/metadata.md` is the manual.

pub mod words;
pub mod show;
mod state;
mod update;
pub mod field;
#[cfg(test)]
mod tests;

/// The name under which conditions and parameters refer to metadata.
pub const METADATA: &str = "metadata";

pub use field::{Field, Fields, Injection, Kind, Method};
pub use state::{KnownFields, Metadatas};
pub use update::MetadataUpdate;
