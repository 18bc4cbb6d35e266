//! The core of Pumphouse: payloads, listeners, the pump that runs them, and its simulator. A
//! program that needs no models, tools or doors needs no more than this.
//!
//! The modules stand in the order of their dependencies: each may use only the modules above it.

extern crate self as pumphouse;

// The modules name each other, and those of the crates below, by their paths in `pumphouse`.
pub use pumphouse_ground::{
    atomic_file, clock, id, limits, name, regular_file, schema, secret, xml,
};
pub use pumphouse_log as log;

#[path = "../wire/mod.rs"]
pub mod wire;
#[path = "../listener/mod.rs"]
pub mod listener;
#[path = "../entry_json.rs"]
pub mod entry_json;
#[path = "../engine/mod.rs"]
pub mod engine;
#[path = "../follower/mod.rs"]
pub mod follower;
#[path = "../sim/mod.rs"]
pub mod sim;

pub use engine::{AskError, Builder, Pump};
pub use id::{EntryId, ThreadId};
pub use limits::Limits;
pub use listener::Listener;
pub use name::Name;
pub use wire::{Fault, Live, Payload};
pub use xml::Element;

/// Returns a builder for a pump. Add its parts by `.with(…)`, then call `.build()?.start()`.
#[must_use]
pub fn builder() -> Builder {
    Builder::default()
}

/// The items that the author of a listener needs.
pub mod prelude {
    pub use crate::Payload;
    pub use crate::engine::{AskError, Builder, Factory, Plugin, Pump};
    pub use crate::id::{EntryId, ThreadId};
    pub use crate::limits::Limits;
    pub use crate::listener::{
        Again, Apply, Arrivals, Asked, Attempt, Cancel, Capabilities, Clock, EmitCore, Entry,
        Final, Fold, History, Join, Later, Listener, Message, Note, Outbox, Partial, Peers, Queue,
        Random, Reply, Request, Role, Sender, Spawn, State, Thread, ThreadControl, Threads, Timers,
        To, View,
    };
    pub use crate::name::Name;
    pub use crate::wire::core::{Done, Huh, ThreadResult};
    pub use crate::wire::{Fault, Live};
    pub use crate::xml::Element;
}
