//! Which feeds a thread's agents have, and what those hold: definitions and folds. The listener
//! `feed` keeps them up to date.

pub(super) mod internal_sources;
pub mod definition;
pub mod words;
pub mod registry;
pub mod shown;
