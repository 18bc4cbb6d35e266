//! An organism from its manifest: the lists of all kinds of listeners, sinks, sources of triggers,
//! and the reader of the YAML that names them.
//!
//! The modules stand in the order of their dependencies: each may use only the modules above it.

extern crate self as pumphouse;

// The modules name each other, and those of the crates below, by their paths in `pumphouse`.
#[doc(hidden)]
pub use pumphouse_core::builder;
use pumphouse_core::{engine, entry_json, follower, listener, wire};
#[doc(hidden)]
pub use pumphouse_door as door;
use pumphouse_ground::{
    address, bounded_yaml, clock, id, limits, name, own_files, regular_file, schema, secret, xml,
};
use pumphouse_log as log;
#[doc(hidden)]
pub use pumphouse_model as model;
#[cfg(feature = "otel")]
use pumphouse_otel as otel;
use pumphouse_reply as reply;
use pumphouse_tls as tls_trust;

#[path = "../sink/mod.rs"]
pub mod sink;
#[path = "../trigger_source/mod.rs"]
pub mod trigger_source;
#[path = "../house/mod.rs"]
pub mod house;

/// The listeners that come with the product, and the lists of them.
pub mod listeners {
    pub use pumphouse_listeners::*;
    pub use pumphouse_tools as tool;

    pub use crate::house::{
        accepting_factories, asking_factories, factories, live_factories, model_metrics, standard,
        usual,
    };
}

#[path = "../manifest/mod.rs"]
pub mod manifest;
