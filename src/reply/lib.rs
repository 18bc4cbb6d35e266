//! Parses a model's reply while the model writes it. The parser takes chunks of text of any size,
//! and emits events such as pieces of text and complete calls. The agent runs the calls and shows
//! the text.
//!
//! ```
//! # extern crate pumphouse_reply as pumphouse;
//! use pumphouse::reply::{Body, Config, Parser, What};
//!
//! let mut parser = Parser::new(Config::default());
//! let mut seen = Vec::new();
//! let chunks = ["<thought>Look it u", "p.<action>{\"name\": \"cl", "ock\"}</action></thought>"];
//! for chunk in chunks {
//!     parser.feed(chunk, &mut |event| match event.what {
//!         What::Text { .. } => seen.push(event.source.to_owned()),
//!         What::Closed(element) => seen.push(match element.body {
//!             Body::Json(json) => format!("{} {json}", element.name),
//!             _ => format!("{} is over", element.name),
//!         }),
//!         _ => {}
//!     });
//! }
//! assert_eq!(seen, ["Look it u", "p.", "action {\"name\": \"clock\"}", "thought is over"]);
//! # parser.finish(&mut |_| {});
//! ```
//!
//! * The events don't depend on how the reply is cut into chunks, once adjacent pieces of text are
//!   joined. Text is emitted as soon as the parser is sure that it is text.
//! * [`Markup`] lists the names whose tags are markup. All other tags are text.
//! * Calls in code, comments, CDATA sections, a tool's output or a response are text.
//!   [`Config::actions_in_response`] makes an exception for calls in a response.
//! * Broken JSON is reported and never repaired. Broken markup is repaired if its meaning is
//!   unambiguous, and each repair is reported.
//! * The sources of all events, joined in order, are the whole reply.
//!
//! This module knows nothing of models, threads or IO.

extern crate self as pumphouse;

// The modules name each other, and those of the crates below, by their paths in `pumphouse`.
#[doc(hidden)]
pub use crate as reply;
use pumphouse_ground::{bounded_yaml, limits, schema, xml};

mod body;
mod code;
mod config;
mod ambiguity;
mod element;
mod event;
mod html;
mod inline;
mod json;
mod markdown;
mod mention;
mod repair;
mod names;
mod nest;
mod parser;
mod place;
mod streaming;
mod tag;
mod text;
mod json_probe;

#[cfg(test)]
mod tests;

pub use code::{Why, code_ranges};
pub use config::{Config, Dialect};
pub use event::{Attribute, Body, Broken, Cut, Element, Event, Fault, What};
pub use names::{Kind, Markup};
pub use parser::Parser;
pub use streaming::{Formats, JsonFormat, JsonSchema, Property, Streaming, StreamingError, Tags};
