//! The functions that the code of `#[derive(Payload)]` calls. The generated code consists mostly of
//! data, which it passes to these functions.
//!
//! Other code must not use this module: it changes with the derive.

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

/// A variant that has named fields or holds nothing, as a schema describes it.
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

/// The schema of a payload.
#[must_use]
pub fn schema(name: Name, live: bool, reserved: bool, bookkeeping: bool, shape: Shape) -> Schema {
    let mut schema = Schema::new(name, shape);
    schema.live = live;
    schema.reserved = reserved;
    schema.bookkeeping = bookkeeping;
    schema
}

/// The kind of a type that is a scalar.
#[must_use]
pub fn text_kind<T: Text>() -> Kind {
    Kind::Scalar(T::scalar())
}

/// The scalar of an enum without data: one of a few words.
#[must_use]
pub fn words(words: &'static Words) -> Scalar {
    Scalar::Words(Cow::Borrowed(words))
}

/// A scalar field with facets. Any other field stays as it is.
#[must_use]
pub fn narrow(field: Field, facets: Facets) -> Field {
    Field { kind: narrow_kind(field.kind, facets), ..field }
}

/// A field that an example leaves out.
#[must_use]
pub fn without_example(field: Field) -> Field {
    Field { in_example: false, ..field }
}

/// A field marked as its payload's value.
#[must_use]
pub fn value(field: Field) -> Field {
    Field { is_value: true, ..field }
}

/// A text marked as its payload's value.
#[must_use]
pub fn value_text(content: Content) -> Content {
    text_with(content, value)
}

/// A text with facets.
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

/// A scalar with facets.
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

/// Whether scalars of this form may have a `pattern`.
#[must_use]
pub const fn takes_pattern(form: Form) -> bool {
    matches!(form, Form::Text)
}

/// Whether scalars of this form may have `one_of` with texts.
#[must_use]
pub const fn takes_texts(form: Form) -> bool {
    matches!(form, Form::Text | Form::Character)
}

/// Whether scalars of this form may have `digits`, and `min` and `max` without a fraction.
#[must_use]
pub const fn takes_bounds(form: Form) -> bool {
    matches!(form, Form::Whole | Form::Float)
}

/// Whether scalars of this form may have `one_of` with whole numbers.
#[must_use]
pub const fn takes_whole(form: Form) -> bool {
    matches!(form, Form::Whole)
}

/// Whether scalars of this form may have `fraction_digits`, and `min` and `max` with a fraction.
#[must_use]
pub const fn takes_fraction(form: Form) -> bool {
    matches!(form, Form::Float)
}

/// Whether scalars of this form may have `length`, `min_length` and `max_length`. A `list` may have
/// these facets, too.
#[must_use]
pub const fn takes_length(form: Form) -> bool {
    matches!(form, Form::Text | Form::Bytes)
}

/// Whether a `list` may hold scalars of this form. It may if their texts have no white space.
#[must_use]
pub const fn takes_list(form: Form) -> bool {
    matches!(form, Form::Whole | Form::Float | Form::Token)
}

/// Whether a type of this form may have an `example`. Every scalar may.
#[must_use]
pub const fn takes_example(form: Form) -> bool {
    !matches!(form, Form::Other)
}

/// Writes a payload's root element.
pub fn write_root<P: Payload + Part>(payload: &P, to: &mut Writer) {
    payload.write_as(P::NAME.namespace(), P::NAME.local(), to);
}

/// Reads a payload's root element.
///
/// # Errors
///
/// The first place where the element doesn't fit the schema.
pub fn read_root<P: Payload + Part>(element: View<'_>) -> Result<P, Error> {
    <P as Part>::read(At::root(element, P::schema())?)
}

/// Reads an element that holds a choice.
///
/// # Errors
///
/// If the element holds none of the variants or more than one; otherwise the first place where the
/// variant doesn't fit its shape.
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
/// If the variant's element holds something.
pub fn read_nothing(found: &Found<'_>) -> Result<(), Error> {
    walk(inner(found), found.at, &mut |_| Ok(()))
}

/// The shape of a variant with fields; the empty shape for any other variant.
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

/// How a field's elements differ from those of other fields in the sequence: by their names, and by
/// how often they occur.
#[derive(Clone, Copy)]
pub struct Stand {
    name: &'static str,
    names: Names,
    occurs: Occurs,
}

impl Stand {
    /// A field with its name in the schema. Its type gives `names` and `occurs`.
    #[must_use]
    pub const fn of(name: &'static str, names: Names, occurs: Occurs) -> Stand {
        Stand { name, names, occurs }
    }
}

/// Whether no two fields of a sequence share an element's name.
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

/// Whether a reader can tell to which field an element of any name belongs. A reader can't if a
/// field for any element follows an optional or repeated field for any element.
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
