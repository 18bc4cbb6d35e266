//! Schemas: one value that says what a payload may look like. Everything that is said about the
//! payload is made from it.
//!
//! The derive writes schemas, and code may build them at run time, too. A schema knows neither Rust
//! types nor senders.

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
pub use self::json::{from_json, to_json, value};
pub use self::json_schema::{TEXT, XML, json_schema};
pub use self::prompt::{outline, prompt, prompt_with};
pub use self::scalar::{Form, Scalar, Word, Words, boolean, character, double, float, integer};
pub use self::xsd::xsd;
use crate::name::Name;

/// What one payload is: its name, what it is for, and its shape.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Schema {
    /// The root element.
    pub name: Name,
    /// Whether it may be sent live: to followers only, past the log.
    pub live: bool,
    /// Whether only a listener with the grant `emit:core` may send it.
    pub reserved: bool,
    /// Whether no prompt shows it: it keeps an account of the work, and is no message to a reader.
    pub bookkeeping: bool,
    /// What the root element holds.
    pub shape: Shape,
    /// Whether a value of its type may break it; found out when it is asked first.
    is_narrow: OnceLock<bool>,
    /// The JSON Schema that it was made of.
    source: Option<Arc<import::Source>>,
}

impl Schema {
    /// The schema of an ordinary payload.
    #[must_use]
    pub fn new(name: Name, shape: Shape) -> Schema {
        let (live, reserved, bookkeeping) = (false, false, false);
        let is_narrow = OnceLock::new();
        Schema { name, live, reserved, bookkeeping, shape, is_narrow, source: None }
    }

    /// The schema of a root element that may hold anything.
    #[must_use]
    pub fn any(name: Name, doc: impl Into<Cow<'static, str>>) -> Schema {
        let shape = Shape::new(name.local().to_owned(), doc, Vec::new(), Content::Any);
        Schema::new(name, shape)
    }

    /// Whether a value of the payload's own type may break it: it has facets, which no type
    /// holds to, or times, of which XSD has fewer.
    #[must_use]
    pub fn is_narrow(&self) -> bool {
        *self.is_narrow.get_or_init(|| is_narrow(&self.shape, &mut Vec::new()))
    }

    /// What the payload is for.
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

/// What one element holds: attributes in any order, then its content.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Shape {
    /// What the type is called, in kebab-case; empty where it has no name of its own.
    pub name: Cow<'static, str>,
    /// What the type is for; empty where nobody said.
    pub doc: Cow<'static, str>,
    /// The attributes: scalars, each there once or optional.
    pub attributes: Vec<Field>,
    /// What stands between the tags.
    pub content: Content,
}

impl Shape {
    /// A shape of these parts.
    #[must_use]
    pub fn new(
        name: impl Into<Cow<'static, str>>,
        doc: impl Into<Cow<'static, str>>,
        attributes: Vec<Field>,
        content: Content,
    ) -> Shape {
        Shape { name: name.into(), doc: doc.into(), attributes, content }
    }

    /// All fields: the attributes, then the content.
    pub fn fields(&self) -> impl Iterator<Item = &Field> {
        let content = match &self.content {
            Content::Text(field) => std::slice::from_ref(field),
            Content::Sequence(fields) | Content::Choice(fields) => fields,
            Content::Empty | Content::Any => &[],
        };
        self.attributes.iter().chain(content)
    }
}

/// What stands between an element's tags.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Content {
    /// Nothing but white space.
    Empty,
    /// One scalar. Its field's name is not written; it is there for formats that need one.
    Text(Field),
    /// Elements in this order, nothing but white space between them.
    Sequence(Vec<Field>),
    /// Exactly one of these elements.
    Choice(Vec<Field>),
    /// Whatever is there, attributes included.
    Any,
}

/// One attribute, one text, one place in a sequence, or one variant of a choice.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Field {
    /// The attribute's or the element's name. A choice and an `Element` stand under their own.
    pub name: Cow<'static, str>,
    /// What it is for; empty where nobody said.
    pub doc: Cow<'static, str>,
    /// What it holds.
    pub kind: Kind,
    /// How often it stands there.
    pub occurs: Occurs,
    /// Whether an example of the whole has it, where it may be missing.
    pub in_example: bool,
    /// Whether it is the payload's value. One field of a payload at the most is.
    pub is_value: bool,
}

impl Field {
    /// A field of these parts, that examples have and that isn't the payload's value.
    #[must_use]
    pub fn new(
        name: impl Into<Cow<'static, str>>,
        doc: impl Into<Cow<'static, str>>,
        kind: Kind,
        occurs: Occurs,
    ) -> Field {
        let (in_example, is_value) = (true, false);
        Field { name: name.into(), doc: doc.into(), kind, occurs, in_example, is_value }
    }
}

/// How often a field stands in its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Occurs {
    /// Exactly once.
    One,
    /// Once or not at all.
    Optional,
    /// Any number of times, one after another.
    Many,
}

/// What a field holds.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Kind {
    /// One text of a certain form.
    Scalar(Scalar),
    /// An element by the field's name that has this shape.
    Shape(Link),
    /// One of the elements that this shape's [`Content::Choice`] lists, without one around it.
    Choice(Link),
    /// Any one element but those that the fields beside it are called.
    Element,
    /// An element that holds any number of these, each called [`ENTRY`] and each with another
    /// [`KEY`].
    Map(Box<Field>),
}

/// What an entry of a map is called.
pub const ENTRY: &str = "entry";
/// The attribute that says which entry of a map it is.
pub const KEY: &str = "key";

/// A shape that is described elsewhere, so that a shape may hold itself.
#[derive(Clone)]
pub struct Link(Way);

#[derive(Clone)]
enum Way {
    Type(fn() -> &'static Shape),
    Owned(Arc<Shape>),
}

impl Link {
    /// The shape that a type has. It is asked for when it is needed and not before.
    #[must_use]
    pub const fn of(shape: fn() -> &'static Shape) -> Link {
        Link(Way::Type(shape))
    }

    /// A shape made here.
    #[must_use]
    pub fn new(shape: Shape) -> Link {
        Link(Way::Owned(Arc::new(shape)))
    }

    /// The shape.
    #[must_use]
    pub fn shape(&self) -> &Shape {
        match &self.0 {
            Way::Type(shape) => shape(),
            Way::Owned(shape) => shape,
        }
    }
}

impl fmt::Debug for Link {
    /// Only the name: what is behind it may lead back here.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Link({})", self.shape().name)
    }
}

#[cfg(test)]
mod tests;
