//! The feeds of a thread's agents: their definitions, and folds of their contents. The listener
//! `feed` refreshes the contents.

pub(super) mod pump_sources;
pub mod injection;
pub mod source;
mod transform;
pub mod definition;
pub mod words;
pub mod registry;
pub mod shown;
