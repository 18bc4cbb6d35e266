//! What `#[derive(Payload)]` calls: it writes the data down, and these functions do the work.
//!
//! Not for other callers: it changes with the derive.

use std::borrow::Cow;

pub use super::payload::{Live, Payload};
pub use super::value::{
    Attribute, Item, Items, Names, Part, Text, read_found, read_text, write_part,
};
pub use crate::name::Name;
pub use crate::schema::walk::{At, Found, choose, walk};
pub use crate::schema::{Content, Error, Field, Kind, Link, Occurs, Scalar, Schema, Shape};
pub use crate::schema::{Word, Words};
pub use crate::xml::{View, Writer};

/// An attribute, described.
#[must_use]
pub fn attribute<T: Attribute>(name: &'static str, doc: &'static str) -> Field {
    Field::new(name, doc, Kind::Scalar(<T::Text as Text>::scalar()), T::OCCURS)
}

/// A place in a sequence, described.
#[must_use]
pub fn element<T: Items>(name: &'static str, doc: &'static str) -> Field {
    Field::new(name, doc, <T::Item as Item>::kind(), T::OCCURS)
}

/// The text of an element, described.
#[must_use]
pub fn text<T: Text>(name: &'static str, doc: &'static str) -> Content {
    let field = Field::new(name, doc, Kind::Scalar(T::scalar()), Occurs::One);
    Content::Text(field)
}

/// A variant that holds one value, described.
#[must_use]
pub fn variant<T: Part>(name: &'static str, doc: &'static str) -> Field {
    Field::new(name, doc, T::kind(), Occurs::One)
}

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
pub fn schema(name: Name, live: bool, reserved: bool, shape: Shape) -> Schema {
    let mut schema = Schema::new(name, shape);
    schema.live = live;
    schema.reserved = reserved;
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

/// Writes a payload's root and what it holds.
pub fn write_root<P: Payload + Part>(payload: &P, to: &mut Writer) {
    write_part(payload, P::NAME.namespace(), P::NAME.local(), to);
}

/// Writes an attribute, if it is there.
pub fn write_attribute<T: Attribute>(it: &T, local: &str, to: &mut Writer) {
    if let Some(text) = it.text() {
        text.with_text(|text| to.attribute(local, text));
    }
}

/// Writes the text of the element that is open.
pub fn write_text<T: Text>(it: &T, to: &mut Writer) {
    it.with_text(|text| to.text(text));
}

/// Writes the elements of a field.
pub fn write_items<T: Items>(it: &T, namespace: &str, local: &str, to: &mut Writer) {
    for item in it.items() {
        item.write(namespace, local, to);
    }
}

/// Reads a payload's root and what it holds.
///
/// # Errors
///
/// The first place where the element isn't what the schema says.
pub fn read_root<P: Payload + Part>(element: View<'_>) -> Result<P, Error> {
    <P as Part>::read(At::root(element, P::schema())?)
}

/// Reads an attribute into its slot.
///
/// # Errors
///
/// It has another text than it should.
pub fn read_attribute<T: Attribute>(
    slot: &mut Option<T::Text>,
    found: &Found<'_>,
) -> Result<(), Error> {
    *slot = Some(read_found(found)?);
    Ok(())
}

/// Reads the text of an element into its slot.
///
/// # Errors
///
/// There is another text, or more than text.
pub fn read_content<T: Text>(slot: &mut Option<T>, found: &Found<'_>) -> Result<(), Error> {
    *slot = Some(read_found(found)?);
    Ok(())
}

/// Reads one more element of a field into its slot.
///
/// # Errors
///
/// The first place where the element isn't what its shape says.
pub fn read_item<T: Items>(slot: &mut T::Slot, found: &Found<'_>) -> Result<(), Error> {
    T::add(slot, <T::Item as Item>::read(found.at)?);
    Ok(())
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

/// What a slot came to. The walk has made sure that it is enough.
///
/// # Errors
///
/// It isn't, after all.
pub fn take<T: Items>(slot: T::Slot, at: At<'_>) -> Result<T, Error> {
    T::take(slot).ok_or_else(|| at.incomplete())
}

/// What the slot of an attribute came to.
///
/// # Errors
///
/// Never after a walk, as [`take`].
pub fn take_attribute<T: Attribute>(slot: Option<T::Text>, at: At<'_>) -> Result<T, Error> {
    T::take(slot).ok_or_else(|| at.incomplete())
}

/// What the slot of a text came to.
///
/// # Errors
///
/// Never after a walk, as [`take`].
pub fn take_content<T: Text>(slot: Option<T>, at: At<'_>) -> Result<T, Error> {
    slot.ok_or_else(|| at.incomplete())
}

/// A place in a sequence, as [`apart`] looks at it.
#[derive(Clone, Copy)]
pub struct Stand {
    name: &'static str,
    names: Names,
    occurs: Occurs,
}

/// How a field of this type stands in its sequence.
#[must_use]
pub const fn stand<T: Items>(name: &'static str) -> Stand {
    Stand { name, names: <T::Item as Item>::NAMES, occurs: T::OCCURS }
}

/// Asserts, while compiling, that a reader can tell the fields of a sequence apart.
///
/// # Panics
///
/// Two fields stand under one name, or nothing says where one `Element` ends and another begins.
pub const fn apart(stands: &[Stand]) {
    let mut left = 0;
    while left < stands.len() {
        let mut right = left + 1;
        while right < stands.len() {
            let (one, other) = (stands[left], stands[right]);
            let both_any = matches!((one.names, other.names), (Names::Any, Names::Any));
            assert!(
                !both_any || matches!(one.occurs, Occurs::One),
                "an `Element` follows one that is optional or repeated: a reader cannot tell \
                 which is which"
            );
            assert!(!share(one, other), "two fields of a payload stand under one name");
            right += 1;
        }
        left += 1;
    }
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
