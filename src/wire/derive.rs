//! The functions that the code of `#[derive(Payload)]` calls. The derive writes data, and these
//! functions do the work.
//!
//! Not for other callers: it changes with the derive.

use std::borrow::Cow;

pub use super::payload::{Live, Payload};
pub use super::value::{
    Attribute, Item, Items, ListAttribute, ListItems, ListText, Names, Part, Text, read_text,
};
pub use crate::name::Name;
pub use crate::schema::walk::{At, Found, choose, walk};
pub use crate::schema::{
    Bound, Content, Error, Facets, Field, Form, Kind, Link, Occurs, Scalar, Schema, Shape, Word,
    Words,
};
pub use crate::xml::{View, Writer};

/// A variant with fields or without any, described.
#[must_use]
pub fn fields(
    name: &'static str,
    doc: &'static str,
    attributes: Vec<Field>,
    content: Content,
) -> Field {
    let shape = Shape::new("", "", attributes, content);
    Field::new(name, doc, Kind::Shape(Link::new(shape)), Occurs::One)
}

/// A payload, described.
#[must_use]
pub fn schema(name: Name, live: bool, reserved: bool, bookkeeping: bool, shape: Shape) -> Schema {
    let mut schema = Schema::new(name, shape);
    schema.live = live;
    schema.reserved = reserved;
    schema.bookkeeping = bookkeeping;
    schema
}

/// What a type that is a text is to a schema.
#[must_use]
pub fn text_kind<T: Text>() -> Kind {
    Kind::Scalar(T::scalar())
}

/// What a type that is one of a few words is to a schema.
#[must_use]
pub fn words(words: &'static Words) -> Scalar {
    Scalar::Words(Cow::Borrowed(words))
}

/// A field, narrowed; each item of a list, each value of a map.
#[must_use]
pub fn narrow(field: Field, facets: Facets) -> Field {
    Field { kind: narrow_kind(field.kind, facets), ..field }
}

/// A field that an example leaves out.
#[must_use]
pub fn without_example(field: Field) -> Field {
    Field { in_example: false, ..field }
}

/// A field that is its payload's value.
#[must_use]
pub fn value(field: Field) -> Field {
    Field { is_value: true, ..field }
}

/// A text that is its payload's value.
#[must_use]
pub fn value_text(content: Content) -> Content {
    text_with(content, value)
}

/// A text, narrowed.
#[must_use]
pub fn narrow_text(content: Content, facets: Facets) -> Content {
    text_with(content, |field| narrow(field, facets))
}

fn text_with(content: Content, change: impl FnOnce(Field) -> Field) -> Content {
    match content {
        Content::Text(field) => Content::Text(change(field)),
        other => other,
    }
}

/// A scalar, narrowed.
#[must_use]
pub fn narrow_scalar(scalar: Scalar, facets: Facets) -> Scalar {
    scalar.narrowed(facets)
}

fn narrow_kind(kind: Kind, facets: Facets) -> Kind {
    match kind {
        Kind::Scalar(scalar) => Kind::Scalar(scalar.narrowed(facets)),
        other => other,
    }
}

/// Whether a pattern may narrow it.
#[must_use]
pub const fn takes_pattern(form: Form) -> bool {
    matches!(form, Form::Text)
}

/// Whether it may be one of a few texts.
#[must_use]
pub const fn takes_texts(form: Form) -> bool {
    matches!(form, Form::Text | Form::Character)
}

/// Whether it has whole numbers for bounds.
#[must_use]
pub const fn takes_bounds(form: Form) -> bool {
    matches!(form, Form::Whole | Form::Float)
}

/// Whether it is a whole number, and may be one of a few.
#[must_use]
pub const fn takes_whole(form: Form) -> bool {
    matches!(form, Form::Whole)
}

/// Whether it has digits behind the point.
#[must_use]
pub const fn takes_fraction(form: Form) -> bool {
    matches!(form, Form::Float)
}

/// Whether it has a length.
#[must_use]
pub const fn takes_length(form: Form) -> bool {
    matches!(form, Form::Text | Form::Bytes)
}

/// Whether a list may hold it: it has no white space of its own.
#[must_use]
pub const fn takes_list(form: Form) -> bool {
    matches!(form, Form::Whole | Form::Float | Form::Token)
}

/// Whether it is a text at all.
#[must_use]
pub const fn takes_example(form: Form) -> bool {
    !matches!(form, Form::Other)
}

/// Writes a payload's root and what it holds.
pub fn write_root<P: Payload + Part>(payload: &P, to: &mut Writer) {
    payload.write_as(P::NAME.namespace(), P::NAME.local(), to);
}

/// Reads a payload's root and what it holds.
///
/// # Errors
///
/// The first place where the element isn't what the schema says.
pub fn read_root<P: Payload + Part>(element: View<'_>) -> Result<P, Error> {
    <P as Part>::read(At::root(element, P::schema())?)
}

/// Reads an element that holds a choice.
///
/// # Errors
///
/// It holds none or two, or the first place where what it holds isn't what its shape says.
pub fn read_choice<T>(
    shape: &Shape,
    at: At<'_>,
    read: fn(&Found<'_>) -> Result<T, Error>,
) -> Result<T, Error> {
    let mut slot = None;
    walk(shape, at, &mut |found| {
        slot = Some(read(&found)?);
        Ok(())
    })?;
    slot.ok_or_else(|| at.incomplete())
}

/// Reads a variant that holds nothing.
///
/// # Errors
///
/// It holds something.
pub fn read_nothing(found: &Found<'_>) -> Result<(), Error> {
    walk(inner(found), found.at, &mut |_| Ok(()))
}

/// The shape of a variant with fields.
#[must_use]
pub fn inner<'a>(found: &Found<'a>) -> &'a Shape {
    static EMPTY: Shape = Shape {
        name: Cow::Borrowed(""),
        doc: Cow::Borrowed(""),
        attributes: Vec::new(),
        content: Content::Empty,
    };
    match &found.field.kind {
        Kind::Shape(link) => link.shape(),
        _ => &EMPTY,
    }
}

/// How a field stands in its sequence.
#[derive(Clone, Copy)]
pub struct Stand {
    name: &'static str,
    names: Names,
    occurs: Occurs,
}

impl Stand {
    /// A field that the schema calls so, and what its type says.
    #[must_use]
    pub const fn of(name: &'static str, names: Names, occurs: Occurs) -> Stand {
        Stand { name, names, occurs }
    }
}

/// Whether no two fields of a sequence stand under one name.
#[must_use]
pub const fn are_apart(stands: &[Stand]) -> bool {
    let mut left = 0;
    while left < stands.len() {
        let mut right = left + 1;
        while right < stands.len() {
            if share(stands[left], stands[right]) {
                return false;
            }
            right += 1;
        }
        left += 1;
    }
    true
}

/// Whether it is clear which field an element of any name is.
#[must_use]
pub const fn are_clear(stands: &[Stand]) -> bool {
    let mut doubtful = false;
    let mut place = 0;
    while place < stands.len() {
        if let Names::Any = stands[place].names {
            if doubtful {
                return false;
            }
            doubtful = !matches!(stands[place].occurs, Occurs::One);
        }
        place += 1;
    }
    true
}

const fn share(one: Stand, other: Stand) -> bool {
    match (one.names, other.names) {
        (Names::Any, _) | (_, Names::Any) => false,
        (Names::Field, Names::Field) => same(one.name, other.name),
        (Names::Field, Names::Own(names)) => has(names, one.name),
        (Names::Own(names), Names::Field) => has(names, other.name),
        (Names::Own(left), Names::Own(right)) => {
            let mut place = 0;
            while place < left.len() {
                if has(right, left[place]) {
                    return true;
                }
                place += 1;
            }
            false
        }
    }
}

const fn has(names: &[&str], name: &str) -> bool {
    let mut place = 0;
    while place < names.len() {
        if same(names[place], name) {
            return true;
        }
        place += 1;
    }
    false
}

const fn same(left: &str, right: &str) -> bool {
    let (left, right) = (left.as_bytes(), right.as_bytes());
    if left.len() != right.len() {
        return false;
    }
    let mut place = 0;
    while place < left.len() {
        if left[place] != right[place] {
            return false;
        }
        place += 1;
    }
    true
}

#[cfg(test)]
mod tests;
