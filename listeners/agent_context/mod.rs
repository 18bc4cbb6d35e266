//! The context of an agent: its metadata, recent actions, settings and so on. [`FIELDS`] has the
//! names of its fields.
//!
//! A handler that takes a [`CallingAgent`] learns for which agent it works:
//!
//! ```
//! # extern crate pumphouse_listeners as pumphouse;
//! use pumphouse::listeners::agent_context::CallingAgent;
//! use pumphouse::prelude::*;
//!
//! /// Asks for a line for the changelog.
//! #[derive(Payload)]
//! #[payload(ns = "urn:changelog")]
//! struct Describe;
//!
//! /// A line for the changelog.
//! #[derive(Payload)]
//! #[payload(ns = "urn:changelog")]
//! struct Line(String);
//!
//! async fn describe(agent: CallingAgent, _: Describe) -> Result<Line, Fault> {
//!     let Some(agent) = agent.context().await? else { return Ok(Line("by hand".into())) };
//!     let status = agent.metadata.0.get("status").and_then(|it| it.as_str()).unwrap_or("busy");
//!     Ok(Line(format!("{} was {status} in turn {}", agent.agent_name, agent.iteration_count)))
//! }
//! # let _ = Listener::new("changelog").on(describe);
//! ```
//!
//! Workflows and the listener `agent_context` build their contexts with the same functions.
//! `docs/metadata.md` is the manual.

pub mod words;
mod facts;
mod history;
mod find;
mod argument;

pub use argument::{CallingAgent, Variables};
pub use facts::AgentFacts;
pub(super) use find::{calling, nearest};
pub use words::{AgentContext, FIELDS};
