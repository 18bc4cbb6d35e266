//! The JSON form of payloads: converts payloads to JSON and back, by their schemas.
//! `docs/schema.md` has the rules.
//!
//! ```
//! use pumphouse::Payload;
//! use pumphouse::schema::{self, json};
//!
//! /// Adds two integers.
//! #[derive(Payload)]
//! #[payload(ns = "urn:x")]
//! struct Add {
//!     a: i64,
//!     b: i64,
//! }
//!
//! let value = json::read(r#"{ "a": 1, "b": 5 }"#)?;
//! let add = schema::from_json(Add::schema(), &value)?;
//! assert_eq!(&add.canonical()[..], br#"<add xmlns="urn:x"><a>1</a><b>5</b></add>"#);
//! assert_eq!(schema::to_json(Add::schema(), add.view())?, value);
//!
//! let wrong = schema::from_json(Add::schema(), &json::read(r#"{ "a": "1", "c": 2 }"#)?);
//! let told = [
//!     r#"$ has no property "c"; it has "a" and "b""#,
//!     r#"$.a takes a whole number of 64 bits, not "1""#,
//!     r#"$ needs the property "b""#,
//! ];
//! assert_eq!(wrong.unwrap_err().to_string(), told.join("\n"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod error;
mod from;
mod half;
mod member;
mod number;
mod read;
mod scalar;
mod to;
mod value;
mod write;

pub use self::error::{Error, Errors, Rule};
pub use self::from::from_json;
pub use self::half::mended;
pub(crate) use self::half::{joined, marked, rest, whole};
pub(super) use self::member::{Member, Property, members};
pub(crate) use self::read::deserialize;
pub use self::read::{Broken, BrokenKind, DEPTH_MAX, read};
pub(super) use self::scalar::{constant, is_written};
pub use self::to::{example, to_json};
pub use self::value::{missing, notes, value, values};
pub use self::write::{sorted, text};

#[cfg(test)]
mod tests;
