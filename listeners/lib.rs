//! The house staff: the listeners that come with the product. They use only the public interface,
//! as any other listener does.

extern crate self as pumphouse;

// The listeners name their neighbours by the paths that every user of `pumphouse` has.
#[doc(hidden)]
pub use crate as listeners;
#[doc(hidden)]
pub use pumphouse_core::{
    AskError, Builder, Fault, Payload, Pump, builder, engine, listener, sim, wire,
};
#[doc(hidden)]
pub use pumphouse_ground::{
    Element, EntryId, Limits, Name, ThreadId, clock, hidden_characters, id, limits, name, schema,
    secret, xml,
};
#[doc(hidden)]
pub use pumphouse_log as log;
#[doc(hidden)]
pub use pumphouse_model as model;
#[doc(hidden)]
pub use pumphouse_reply as reply;

/// The items that the author of a listener needs.
pub mod prelude {
    pub use pumphouse_core::prelude::*;

    pub use super::models::WithModels;
}

pub mod models;
pub mod echo;
pub mod metadata;
mod schedule;
pub mod thread;
pub mod timer;
pub mod todo;
pub mod words;
#[doc(hidden)]
pub mod caller;
mod lookalikes;
mod escape_tags;
mod thread_mark;
pub mod agent_context;
pub mod feed_contents;
pub mod feed_values;
pub mod condition;
pub mod action;
pub mod workflow;
pub mod trigger;
pub mod view;
pub mod mind;
pub mod feed;
pub mod agent;
pub mod describe;
pub mod demo;

use pumphouse::prelude::Listener;

/// The listeners that every organism needs: `thread`, `timer`, `todo` and `view`.
#[must_use]
pub fn core() -> Vec<Listener> {
    vec![thread::thread(), timer::timer(), todo::todo(), view::view()]
}

/// The listeners that agents need besides [`mod@core`]: `action` and `feed`. Actions of the type
/// `internal` go to `feed`.
#[must_use]
pub fn agent_support() -> Vec<Listener> {
    let internal = [feed::NAME.to_owned()].into();
    let settings = action::Settings { internal, ..action::Settings::default() };
    vec![action::action(settings), feed::feed()]
}

/// The listeners that every server has, whatever its manifest says: [`mod@core`] and
/// [`agent_support`].
#[must_use]
pub fn staff() -> Vec<Listener> {
    core().into_iter().chain(agent_support()).collect()
}
