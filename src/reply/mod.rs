//! The parser of a model's reply. It reads a reply while it is written: characters in any chunks,
//! events out.
//!
//! ```
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
//! * The same events for every chunking, once adjacent text is joined. Text is handed on as it
//!   comes; what may still become a tag is held back, and nothing else.
//! * Which names are markup is said at construction ([`Markup`]); all else is text.
//! * What stands in code, in comments, in CDATA sections, in a tool's output or in a response is
//!   text, and never runs.
//! * JSON is never repaired, markup is where its meaning is plain, and both are said.
//! * The sources of all events, one behind the other, are the reply.
//!
//! Nothing here knows models, threads or IO.

mod body;
mod code;
mod config;
mod ambiguity;
mod element;
mod event;
mod first;
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
pub use config::{Config, Dialect, Reading};
pub use event::{Attribute, Body, Broken, Cut, Element, Event, Fault, What};
pub use names::{Kind, Markup};
pub use parser::Parser;
pub use streaming::{Formats, JsonFormat, JsonSchema, Property, Streaming, StreamingError, Tags};
