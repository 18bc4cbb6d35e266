//! Metadata: fields in which an agent reports its own state.
//!
//! ```
//! use pumphouse::listeners::metadata::{Field, Fields, Kind};
//!
//! let status = Field::choice("status", ["IDLE", "CODING"]).default("IDLE");
//! let fields = Fields::new([status, Field::new("context", Kind::Object)])?;
//! assert!(Fields::new([Field::choice("status", ["IDLE"]).default("BUSY")]).is_err());
//! # let _ = fields;
//! # Ok::<(), pumphouse::listeners::metadata::field::WrongField>(())
//! ```
//!
//! Its model writes `<metadata>{"status": "CODING"}</metadata>`. What fits is kept, field by field;
//! what doesn't is told in the next turn. What is kept is a fold of what the agent recorded.
//! `docs/metadata.md` is the manual.

pub mod words;
pub mod show;
mod state;
mod update;
pub mod field;
#[cfg(test)]
mod tests;

pub use field::{Field, Fields, Injection, Kind, Method};
pub use state::{KnownFields, Metadatas};
pub use update::MetadataUpdate;
