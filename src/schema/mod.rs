//! Schemas: a [`Schema`] is one value that describes the allowed form of a payload. Checks, XSD,
//! JSON Schema, prompts, examples and JSON forms of the payload are all derived from its schema.
//!
//! `#[derive(Payload)]` writes schemas, and code may also build schemas at run time. A schema can
//! check a payload without the payload's Rust type.

mod check;
mod error;
mod example;
mod facet;
mod forms;
pub mod import;
pub mod json;
mod json_schema;
mod markup;
pub mod pattern;
mod prompt;
mod same;
mod scalar;
pub mod walk;
mod xsd;

use std::borrow::Cow;
use std::fmt;
use std::sync::{Arc, OnceLock};

pub use self::error::{Error, Rule, nearest};
pub use self::example::{example, example_text, example_with};
pub use self::facet::{Bound, Facets, List, Narrow};
pub use self::forms::{
    base64, base64_text, duration, duration_text, items, timestamp, timestamp_text, uuid,
};
pub use self::json::{from_json, missing, notes, to_json, value, values};
pub use self::json_schema::{TEXT, XML, fits, json_schema};
pub use self::prompt::{outline, prompt, prompt_with};
pub use self::scalar::{Form, Scalar, Word, Words, boolean, character, double, float, integer};
pub use self::xsd::xsd;
use crate::name::Name;

/// The schema of a payload: its name, its flags, and its shape.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Schema {
    /// The name of the root element.
    pub name: Name,
    /// Whether the payload may be sent live, which means only to followers and not to the log.
    pub live: bool,
    /// Whether the payload is reserved. Only the pump, and listeners with the grant `emit:core` or
    /// with a grant for this payload, may send a reserved payload.
    pub reserved: bool,
    /// Whether the payload only records the progress of work, so that prompts leave it out.
    pub bookkeeping: bool,
    /// The allowed form of the root element. The shape includes the payload's description.
    pub shape: Shape,
    /// The cached result of [`is_narrow`](Schema::is_narrow).
    is_narrow: OnceLock<bool>,
    /// The JSON Schema from which this schema was made, if any.
    source: Option<Arc<import::Source>>,
}

impl Schema {
    /// Creates a schema that is neither live, reserved nor bookkeeping.
    #[must_use]
    pub fn new(name: Name, shape: Shape) -> Schema {
        let (live, reserved, bookkeeping) = (false, false, false);
        let is_narrow = OnceLock::new();
        Schema { name, live, reserved, bookkeeping, shape, is_narrow, source: None }
    }

    /// Returns the schema of a root element that may have any content.
    #[must_use]
    pub fn any(name: Name, doc: impl Into<Cow<'static, str>>) -> Schema {
        let shape = Shape::new(name.local().to_owned(), doc, Vec::new(), Content::Any);
        Schema::new(name, shape)
    }

    /// Returns whether a value of the payload's Rust type may break the schema, so that the value
    /// must be checked before it is sent. A schema with facets is narrow, because Rust types don't
    /// enforce facets. A schema with timestamps is narrow, because Rust's timestamps may lie
    /// outside the years 1 to 9999.
    #[must_use]
    pub fn is_narrow(&self) -> bool {
        *self.is_narrow.get_or_init(|| is_narrow(&self.shape, &mut Vec::new()))
    }

    /// Returns the description of the payload.
    #[must_use]
    pub fn doc(&self) -> &str {
        &self.shape.doc
    }
}

fn is_narrow(shape: &Shape, seen: &mut Vec<*const Shape>) -> bool {
    if seen.contains(&std::ptr::from_ref(shape)) {
        return false;
    }
    seen.push(shape);
    let fields: Vec<&Field> = shape.fields().collect();
    fields.into_iter().any(|it| kind_is_narrow(&it.kind, seen))
}

fn kind_is_narrow(kind: &Kind, seen: &mut Vec<*const Shape>) -> bool {
    match kind {
        Kind::Scalar(scalar) => scalar.may_break(),
        Kind::Shape(link) | Kind::Choice(link) => is_narrow(link.shape(), seen),
        Kind::Map(entry) => kind_is_narrow(&entry.kind, seen),
        Kind::Element => false,
    }
}

/// The allowed form of an element: its attributes, in any order, and its content.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Shape {
    /// The name of the type, in kebab-case for Rust types. Empty if the type has no name.
    pub name: Cow<'static, str>,
    /// The description of the type. Empty if there is none.
    pub doc: Cow<'static, str>,
    /// The attributes. Each is a scalar, and is required or optional.
    pub attributes: Vec<Field>,
    /// The content between the tags.
    pub content: Content,
}

impl Shape {
    /// The shape of an element without a name, attributes and content.
    pub const EMPTY: Shape = Shape {
        name: Cow::Borrowed(""),
        doc: Cow::Borrowed(""),
        attributes: Vec::new(),
        content: Content::Empty,
    };

    /// Creates a shape with these parts.
    #[must_use]
    pub fn new(
        name: impl Into<Cow<'static, str>>,
        doc: impl Into<Cow<'static, str>>,
        attributes: Vec<Field>,
        content: Content,
    ) -> Shape {
        Shape { name: name.into(), doc: doc.into(), attributes, content }
    }

    /// Returns all fields: first the attributes, then those of the content.
    pub fn fields(&self) -> impl Iterator<Item = &Field> {
        let content = match &self.content {
            Content::Text(field) => std::slice::from_ref(field),
            Content::Sequence(fields) | Content::Choice(fields) => fields,
            Content::Empty | Content::Any => &[],
        };
        self.attributes.iter().chain(content)
    }
}

/// The allowed content between an element's tags.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Content {
    /// Nothing but white space.
    Empty,
    /// One scalar. The field's name doesn't occur in XML; formats such as JSON use it.
    Text(Field),
    /// Elements in this order, with only white space between them.
    Sequence(Vec<Field>),
    /// Exactly one of these elements.
    Choice(Vec<Field>),
    /// Anything. The element may have any attributes, too.
    Any,
}

/// A field of a shape: an attribute, the text, an element of a sequence, or a variant of a choice.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Field {
    /// The attribute's or the element's name. XML doesn't use this name for a choice or for a
    /// [`Kind::Element`], whose elements have names of their own.
    pub name: Cow<'static, str>,
    /// The description of the field. Empty if there is none.
    pub doc: Cow<'static, str>,
    /// The allowed values of the field.
    pub kind: Kind,
    /// How many times the field may occur.
    pub occurs: Occurs,
    /// Whether examples of the payload contain the field. Examples always contain a required field.
    pub in_example: bool,
    /// Whether the field is the payload's value, which [`value`](fn@value) returns. Of several such
    /// fields, the first one that the payload has is its value.
    pub is_value: bool,
    /// Whether prompts show the field beside the value, as [`notes`] returns it.
    pub is_note: bool,
}

impl Field {
    /// Creates a field with these parts. Examples contain the field, and the field is neither the
    /// payload's value nor a note.
    #[must_use]
    pub fn new(
        name: impl Into<Cow<'static, str>>,
        doc: impl Into<Cow<'static, str>>,
        kind: Kind,
        occurs: Occurs,
    ) -> Field {
        let (in_example, is_value, is_note) = (true, false, false);
        Field { name: name.into(), doc: doc.into(), kind, occurs, in_example, is_value, is_note }
    }
}

/// How many times a field may occur.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Occurs {
    /// Exactly once.
    One,
    /// Once or not at all.
    Optional,
    /// Any number of times, directly one after another.
    Many,
}

/// The allowed values of a field.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Kind {
    /// A text of a certain form.
    Scalar(Scalar),
    /// An element with the field's name and this shape.
    Shape(Link),
    /// One of the elements that this shape's [`Content::Choice`] lists. The element stands directly
    /// in the place of the field, without another element around it.
    Choice(Link),
    /// One element of any name, except the names of the fields beside it.
    Element,
    /// A map: an element with any number of elements named [`ENTRY`]. The boxed field describes
    /// the value of an entry. Each entry also has an attribute [`KEY`], which is unique in the map.
    Map(Box<Field>),
}

/// The name of a map's entries.
pub const ENTRY: &str = "entry";
/// The attribute with the key of a map's entry.
pub const KEY: &str = "key";

/// A reference to a shape. Links make recursive shapes possible.
#[derive(Clone)]
pub struct Link(LinkTarget);

#[derive(Clone)]
enum LinkTarget {
    Type(fn() -> &'static Shape),
    Owned(Arc<Shape>),
}

impl Link {
    /// Returns a link to the shape of a Rust type. The function is only called when the shape is
    /// needed.
    #[must_use]
    pub const fn of(shape: fn() -> &'static Shape) -> Link {
        Link(LinkTarget::Type(shape))
    }

    /// Creates a link to this shape.
    #[must_use]
    pub fn new(shape: Shape) -> Link {
        Link(LinkTarget::Owned(Arc::new(shape)))
    }

    /// Returns the shape that this link refers to.
    #[must_use]
    pub fn shape(&self) -> &Shape {
        match &self.0 {
            LinkTarget::Type(shape) => shape(),
            LinkTarget::Owned(shape) => shape,
        }
    }
}

impl fmt::Debug for Link {
    /// Shows only the shape's name, since its fields may lead back to this link.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Link({})", self.shape().name)
    }
}

#[cfg(test)]
mod tests;
