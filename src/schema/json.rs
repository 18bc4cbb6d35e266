//! The JSON form of payloads: converts payloads to JSON and back, by their schemas.
//! `docs/schema.md` has the rules.
//!
//! ```
//! # extern crate pumphouse_ground as pumphouse;
//! use pumphouse::Name;
//! use pumphouse::schema::{self, Content, Field, Kind, Occurs, Scalar, Schema, Shape, json};
//!
//! let field = |name| Field::new(name, "", Kind::Scalar(Scalar::I64), Occurs::One);
//! let fields = Content::Sequence(vec![field("a"), field("b")]);
//! let shape = Shape::new("add", "Adds two integers.", Vec::new(), fields);
//! let schema = Schema::new(Name::new("urn:x", "add"), shape);
//!
//! let value = json::read(r#"{ "a": 1, "b": 5 }"#)?;
//! let add = schema::from_json(&schema, &value)?;
//! assert_eq!(&add.canonical()[..], br#"<add xmlns="urn:x"><a>1</a><b>5</b></add>"#);
//! assert_eq!(schema::to_json(&schema, add.view())?, value);
//!
//! let wrong = schema::from_json(&schema, &json::read(r#"{ "a": "1", "c": 2 }"#)?);
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
pub use self::half::{joined, marked, rest, whole};
pub(super) use self::member::{Member, Property, members};
pub use self::read::deserialize;
pub use self::read::{Broken, BrokenKind, DEPTH_MAX, read};
pub(super) use self::scalar::{constant, is_written};
pub use self::to::{example, to_json};
pub use self::value::{missing, notes, value, values};
pub use self::write::{sorted, text};

#[cfg(test)]
mod tests;
