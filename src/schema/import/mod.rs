//! Converts a foreign JSON Schema into a schema of ours. `docs/schema.md` has the rules.
//!
//! ```
//! use pumphouse::Name;
//! use pumphouse::schema::{self, Schema, json};
//!
//! let theirs = json::read(
//!     r#"{
//!         "type": "object",
//!         "properties": { "city": { "type": "string" }, "in days": { "type": "integer" } },
//!         "required": ["city"],
//!         "additionalProperties": false
//!     }"#,
//! )?;
//! let weather = Schema::from_json_schema(Name::new("urn:x", "weather"), &theirs)?;
//! let asked = json::read(r#"{ "city": "Oslo", "in days": 2 }"#)?;
//! let element = schema::from_json(&weather, &asked)?;
//! let text = r#"<weather xmlns="urn:x"><city>Oslo</city><in_days>2</in_days></weather>"#;
//! assert_eq!(&element.canonical()[..], text.as_bytes());
//! assert_eq!(schema::to_json(&weather, element.view())?, asked);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The original stays with the schema. The shape lets through whatever the original does; a value
//! is held against both, so the shape may be the wider of the two.

mod bounds;
mod names;
mod pattern;
mod scalar;
mod plan;
mod read;
mod shape;
mod source;

use std::fmt;
use std::sync::Arc;

use serde_json::Value;

pub use self::bounds::{DEPTH_MAX, ENUM_MAX, NODES_MAX, PLACES_MAX, REFERENCES_MAX};
pub(super) use self::source::{Source, Wrong};
use super::Schema;
use crate::name::Name;

/// Why a JSON Schema won't do.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Error {
    /// Where, as a reference: `#/properties/city`.
    pub path: String,
    /// What is wrong there.
    pub message: String,
}

impl Error {
    fn new(path: impl Into<String>, message: impl Into<String>) -> Error {
        Error { path: path.into(), message: message.into() }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Error { path, message } = self;
        write!(f, "{path}: {message}")
    }
}

impl std::error::Error for Error {}

/// A place of which our schema says less than the original, which is asked for the rest.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Loose {
    /// Where, in the JSON form: `$.filter`.
    pub path: String,
    /// Why: the words of JSON Schema that ours has no counterpart for.
    pub why: String,
    /// Whether any JSON value may stand there, as far as the shape says.
    pub is_open: bool,
}

impl Schema {
    /// The schema of a payload whose JSON form a JSON Schema describes: draft 2020-12, or an older
    /// one that its `$schema` names.
    ///
    /// # Errors
    ///
    /// It is no JSON Schema, refers to what isn't in it, or is larger than the bounds of this
    /// module.
    pub fn from_json_schema(name: Name, original: &Value) -> Result<Schema, Error> {
        let spread = bounds::check(original)?;
        let (plan, doc, loose) = read::read(original)?;
        let shape = shape::root(name.local(), &doc, &plan);
        let source = Source::new(original.clone(), plan, loose, spread)?;
        let mut schema = Schema::new(name, shape);
        schema.source = Some(Arc::new(source));
        Ok(schema)
    }

    /// The JSON Schema that it was made of.
    #[must_use]
    pub fn original(&self) -> Option<&Value> {
        self.source.as_ref().map(|it| it.original())
    }

    /// The places of which it says less than the JSON Schema that it was made of.
    #[must_use]
    pub fn loose(&self) -> &[Loose] {
        self.source.as_ref().map_or(&[], |it| it.loose())
    }
}

/// A name of XML that is like this one: itself where it is one.
///
/// ```
/// use pumphouse::schema::import::xml_name;
///
/// assert_eq!([xml_name("get_time"), xml_name("a/b c")], ["get_time", "a_b_c"]);
/// ```
#[must_use]
pub fn xml_name(text: &str) -> String {
    names::like(text)
}

#[cfg(test)]
mod tests;
