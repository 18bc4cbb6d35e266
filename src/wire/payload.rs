//! The trait of payload types. Such a type describes, writes and reads one XML element.

pub use pumphouse_macros::Payload;

use super::Fault;
use crate::limits::XmlLimits;
use crate::name::Name;
use crate::schema::{self, Schema};
use crate::xml::{Element, View, Writer};

/// The content of a message, as a Rust type.
///
/// ```
/// # extern crate pumphouse_core as pumphouse;
/// use pumphouse::Payload;
///
/// /// Adds two integers.
/// #[derive(Payload)]
/// #[payload(ns = "https://xml-pipeline.org/ns/calculator/v1")]
/// struct Add {
///     /// The first.
///     a: i64,
///     /// The second.
///     b: i64,
/// }
///
/// assert_eq!(Add::NAME.local(), "add");
/// assert_eq!(Add::schema().doc(), "Adds two integers.");
/// ```
///
/// Implement this trait with `#[derive(Payload)]`. The type's doc comment is the payload's
/// description, and `ns` is the payload's namespace.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a payload",
    label = "not a payload",
    note = "put `#[derive(Payload)]` and `#[payload(ns = \"…\")]` on the type, below a doc comment",
    note = "a type without `ns` is a part: it stands in payloads and is none itself"
)]
pub trait Payload: Sized + Send + 'static {
    /// The name of the root element. Messages are routed by this name.
    const NAME: Name;

    /// Returns the payload's schema, for code that doesn't know the type. The schema is built once.
    fn schema() -> &'static Schema;

    /// Writes the whole element.
    fn write(&self, to: &mut Writer);

    /// Checks and reads the element in one pass.
    ///
    /// # Errors
    ///
    /// Returns an error for the first place where the element doesn't fit the schema.
    /// [`Schema::check`] returns an equal error.
    fn read(element: View<'_>) -> Result<Self, schema::Error>;

    /// Writes the payload as an element.
    ///
    /// # Errors
    ///
    /// Returns an error if a value breaks its facets, or if the payload exceeds
    /// [`XmlLimits::INSIDE`]. A character that no document may hold, such as NUL, is written as
    /// U+FFFD.
    fn encode(&self) -> Result<Element, Fault> {
        encoded_by(self, Writer::new(XmlLimits::INSIDE))
    }

    /// Reads the payload from an element.
    ///
    /// # Errors
    ///
    /// Returns an error if the element doesn't fit the schema.
    fn decode(element: &Element) -> Result<Self, Fault> {
        Ok(Self::read(element.view())?)
    }
}

/// Writes a payload that a program sends. Unlike [`Payload::encode`], this refuses a character that
/// no document may hold: the program can be told.
pub(crate) fn encode_sent<P: Payload>(payload: &P) -> Result<Element, Fault> {
    encoded_by(payload, Writer::strict(XmlLimits::INSIDE))
}

fn encoded_by<P: Payload>(payload: &P, mut to: Writer) -> Result<Element, Fault> {
    payload.write(&mut to);
    let element = to.finish()?;
    if P::schema().is_narrow() {
        P::schema().check(element.view())?;
    }
    Ok(element)
}

/// A payload that may be sent live. Followers see a payload that is sent live, and the log doesn't
/// get it.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not live",
    label = "sent through the log only",
    note = "say `#[payload(live)]` on the type"
)]
pub trait Live: Payload {}
