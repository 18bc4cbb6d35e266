//! Converts a JSON Schema that others wrote into a [`Schema`]. `docs/schema.md` has the rules.
//!
//! ```
//! # extern crate pumphouse_ground as pumphouse;
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
//! The schema keeps the JSON Schema, which is called the original. The shape may allow more than
//! the original, so values are checked against both. The conversion refuses three things that the
//! original may allow:
//!
//! * a whole number that doesn't fit into the field's 64-bit type
//! * a text with a character that XML doesn't have
//! * a value that takes more than 5 million checks of its parts against parts of the schema

mod bounds;
mod effort;
mod names;
mod pattern;
mod scalar;
mod plan;
mod read;
mod shape;
mod validator;
mod source;

use std::fmt;
use std::sync::Arc;

use serde_json::Value;

pub use self::bounds::at_once;
pub use self::bounds::{DEPTH_MAX, ENUM_MAX, NODES_MAX, PLACES_MAX, REFERENCES_MAX, target};
pub(super) use self::source::Source;
pub(super) use self::validator::Wrong;
use super::Schema;
use crate::name::Name;

/// The reason why a JSON Schema can't be converted.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Error {
    /// The place in the JSON Schema, as a reference: `#/properties/city`.
    pub path: String,
    /// The description of the problem.
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

/// A place where the shape allows values that the original JSON Schema forbids. Only the check
/// against the original refuses such values.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Loose {
    /// The place in the JSON form, such as `$.filter`.
    pub path: String,
    /// The reason, such as the keywords of JSON Schema that the shape can't express.
    pub why: String,
    /// Whether the shape allows any JSON value there.
    pub is_open: bool,
}

impl Schema {
    /// Converts a JSON Schema into the schema of a payload. The JSON Schema describes the payload's
    /// JSON form. Its draft is 2020-12, unless its `$schema` names an older draft.
    ///
    /// # Errors
    ///
    /// Returns an error if the value isn't a JSON Schema, refers to another document, uses a
    /// feature that isn't supported, or exceeds the limits of this module. Also if the crate was
    /// built without its feature `json-schema`.
    pub fn from_json_schema(name: Name, original: &Value) -> Result<Schema, Error> {
        bounds::check(original)?;
        let (plan, doc, loose) = read::read(original)?;
        let shape = shape::root(name.local(), &doc, &plan);
        let source = Source::new(original.clone(), plan, loose)?;
        let mut schema = Schema::new(name, shape);
        schema.source = Some(Arc::new(source));
        Ok(schema)
    }

    /// Returns the JSON Schema from which this schema was made, if any.
    #[must_use]
    pub fn original(&self) -> Option<&Value> {
        self.source.as_ref().map(|it| it.original())
    }

    /// Returns places where this schema's shape allows more than the original JSON Schema. The list
    /// may be incomplete.
    #[must_use]
    pub fn loose(&self) -> &[Loose] {
        self.source.as_ref().map_or(&[], |it| it.loose())
    }
}

/// Returns an XML name that is similar to this text. A text that is a suitable XML name is returned
/// unchanged.
///
/// A suitable name has up to 100 ASCII letters, digits, `_`, `-` and `.`. It begins with a letter
/// or `_`, but not with `xml` in upper or lower case.
///
/// ```
/// # extern crate pumphouse_ground as pumphouse;
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
