//! An XML message pump for agents.
//!
//! The pump routes namespaced XML payloads between *listeners*, and records them in *threads*. A
//! thread's history is the only memory of the listeners in it.
//!
//! ```
//! use pumphouse::prelude::*;
//!
//! /// Adds two integers.
//! #[derive(Payload)]
//! #[payload(ns = "https://xml-pipeline.org/ns/calculator/v1")]
//! struct Add {
//!     a: i64,
//!     b: i64,
//! }
//!
//! /// The sum of two integers.
//! #[derive(Payload)]
//! #[payload(ns = "https://xml-pipeline.org/ns/calculator/v1")]
//! struct Sum {
//!     value: i64,
//! }
//!
//! async fn add(Add { a, b }: Add) -> Sum {
//!     Sum { value: a + b }
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let pump = pumphouse::builder().with(Listener::new("calculator").on(add)).build()?.start();
//! let Sum { value } = pump.ask(Add { a: 1, b: 2 }).await?;
//! assert_eq!(value, 3);
//! # pump.shutdown().await?;
//! # Ok(()) }
//! ```
//!
//! The modules below stand in the order of their dependencies: each may use only the modules above
//! it. `ARCHITECTURE.md` describes the path of a message through the modules.

extern crate self as pumphouse;

pub use pumphouse_audit as audit;
pub use pumphouse_client as client;
#[cfg(feature = "otel")]
use pumphouse_core::follower;
pub use pumphouse_core::{builder, engine, listener, sim, wire};
pub use pumphouse_door as door;
pub use pumphouse_door::scene;
pub use pumphouse_ground::{
    address, atomic_file, bounded_yaml, clock, id, limits, name, own_files, regular_file, schema,
    secret, xml,
};
pub use pumphouse_log as log;
pub use pumphouse_model as model;
pub use pumphouse_organism::{listeners, manifest, sink, trigger_source};
#[cfg(feature = "otel")]
pub use pumphouse_otel as otel;
pub use pumphouse_reply as reply;

pub mod cli;

pub use cli::main as cli;
pub use engine::{AskError, Builder, Pump};
pub use id::{EntryId, ThreadId};
pub use limits::Limits;
pub use listener::Listener;
pub use name::Name;
pub use wire::{Fault, Live, Payload};
pub use xml::Element;

pub use pumphouse_listeners::prelude;

/// The examples of the manual, which doctests compile and run.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
#[doc = include_str!("../docs/listeners.md")]
#[doc = include_str!("../docs/actions.md")]
#[doc = include_str!("../docs/simulation.md")]
#[doc = include_str!("../docs/manifest.md")]
#[doc = include_str!("../docs/models.md")]
#[doc = include_str!("../docs/tutorial.md")]
#[doc = include_str!("../docs/doors.md")]
#[doc = include_str!("../docs/schema.md")]
#[doc = include_str!("../docs/threads.md")]
#[doc = include_str!("../docs/agents.md")]
#[doc = include_str!("../docs/feeds.md")]
#[doc = include_str!("../docs/metadata.md")]
#[doc = include_str!("../docs/sinks.md")]
pub struct Manual;
