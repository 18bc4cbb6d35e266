//! The definitions of agents' feeds, and the folds of the feeds' contents. The listener `feed`
//! refreshes the contents.

#[doc(hidden)]
pub mod pump_sources;
pub mod injection;
pub mod source;
mod transform;
pub mod definition;
pub mod words;
pub mod registry;
pub mod shown;
