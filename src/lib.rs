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
//! Without any of its features this crate has payloads, a log in memory, listeners, the pump and
//! its simulator. `sqlite`, `json-schema`, `models`, `tokenizers`, `tools`, `pdf` and `server` add
//! the rest, and are on by default; `otel` isn't. Most modules are crates of their own, and
//! `ARCHITECTURE.md` describes the path of a message through them.

extern crate self as pumphouse;

#[cfg(feature = "server")]
pub use pumphouse_audit as audit;
#[cfg(feature = "tools")]
pub use pumphouse_client as client;
#[cfg(feature = "otel")]
use pumphouse_core::follower;
#[cfg(not(feature = "models"))]
pub use pumphouse_core::prelude;
pub use pumphouse_core::{builder, engine, listener, sim, wire};
#[cfg(feature = "server")]
pub use pumphouse_door::{self as door, scene};
pub use pumphouse_ground::{
    address, atomic_file, bounded_yaml, clock, id, limits, name, own_files, regular_file, schema,
    secret, xml,
};
#[cfg(feature = "models")]
pub use pumphouse_listeners::prelude;
pub use pumphouse_log as log;
#[cfg(feature = "models")]
pub use pumphouse_model as model;
#[cfg(feature = "server")]
pub use pumphouse_organism::{listeners, manifest, sink, trigger_source};
#[cfg(feature = "otel")]
pub use pumphouse_otel as otel;
#[cfg(feature = "models")]
pub use pumphouse_reply as reply;

/// The listeners that come with the product.
#[cfg(all(feature = "models", not(feature = "server")))]
pub mod listeners {
    pub use pumphouse_listeners::*;
    #[cfg(feature = "tools")]
    pub use pumphouse_tools as tool;
}

#[cfg(feature = "server")]
pub mod cli;

#[cfg(feature = "server")]
pub use cli::main as cli;
pub use engine::{AskError, Builder, Pump};
pub use id::{EntryId, ThreadId};
pub use limits::Limits;
pub use listener::Listener;
pub use name::Name;
pub use wire::{Fault, Live, Payload};
pub use xml::Element;

/// The examples of the manual, which doctests compile and run.
#[cfg(all(doctest, feature = "server"))]
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
