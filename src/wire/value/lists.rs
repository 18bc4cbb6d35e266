//! Lists: several scalars in one text, with spaces between them.

use std::borrow::Cow;
use std::sync::Arc;

use super::{Names, Text, first};
use crate::schema::walk::{At, Found};
use crate::schema::{Content, Error, Field, Form, Kind, List, Occurs, Scalar, items};
use crate::xml::Writer;

/// A list that is an attribute. Derived code calls it like an [`Attribute`](super::Attribute).
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be a list",
    label = "not a list of texts",
    note = "a list is a `Vec` of numbers, truths, words, times or UUIDs, or an `Option` of one"
)]
pub trait ListAttribute: Sized {
    /// Whether a schema requires the list.
    const OCCURS: Occurs;
    /// The form of each item's text.
    const FORM: Form;
    /// Describes the field for a schema.
    fn describe(name: &'static str, doc: &'static str) -> Field;
    /// Writes the attribute, unless the list is left out.
    fn write(&self, local: &str, to: &mut Writer);
    /// Returns the empty slot that reading fills.
    #[must_use]
    fn slot() -> Option<Self> {
        None
    }
    /// Reads the list into its slot.
    ///
    /// # Errors
    ///
    /// Returns an error if the content is more than text, or one of its words isn't a valid item.
    fn fill(slot: &mut Option<Self>, found: &Found<'_>) -> Result<(), Error>;
    /// Returns the field's value, from the list in the slot.
    ///
    /// # Errors
    ///
    /// Returns an error if a required list is missing. The error can't occur once the payload has
    /// passed its schema's check.
    fn finish(slot: Option<Self>, at: At<'_>) -> Result<Self, Error>;
}

/// A list that is an element of its own. Derived code calls it like [`Items`](super::Items).
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be a list",
    label = "not a list of texts",
    note = "a list is a `Vec` of numbers, truths, words, times or UUIDs, or an `Option` of one"
)]
pub trait ListItems: ListAttribute {
    /// Whether a schema requires the list.
    const OCCURS: Occurs = <Self as ListAttribute>::OCCURS;
    /// The names of the list's element: only the field's name.
    const NAMES: Names = Names::Field;
    /// The form of each item's text.
    const FORM: Form = <Self as ListAttribute>::FORM;

    /// Describes the field for a schema.
    fn describe(name: &'static str, doc: &'static str) -> Field {
        <Self as ListAttribute>::describe(name, doc)
    }

    /// Writes the element, unless the list is left out.
    fn write(&self, namespace: &str, local: &str, to: &mut Writer);

    /// Returns the empty slot that reading fills.
    #[must_use]
    fn slot() -> Option<Self> {
        None
    }

    /// Reads the list into its slot.
    ///
    /// # Errors
    ///
    /// Returns an error if the content is more than text, or one of its words isn't a valid item.
    fn fill(slot: &mut Option<Self>, found: &Found<'_>) -> Result<(), Error> {
        <Self as ListAttribute>::fill(slot, found)
    }

    /// Returns the field's value, from the list in the slot.
    ///
    /// # Errors
    ///
    /// Returns an error if a required list is missing. The error can't occur once the payload has
    /// passed its schema's check.
    fn finish(slot: Option<Self>, at: At<'_>) -> Result<Self, Error> {
        <Self as ListAttribute>::finish(slot, at)
    }
}

/// A list that is the text of an element. Derived code calls it like a [`Text`].
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be a list",
    label = "not a list of texts",
    note = "a list is a `Vec` of numbers, truths, words, times or UUIDs"
)]
pub trait ListText: ListAttribute {
    /// The form of each item's text.
    const FORM: Form = <Self as ListAttribute>::FORM;

    /// Describes, for a schema, an element whose whole content is this list.
    fn describe(name: &'static str, doc: &'static str) -> Content {
        Content::Text(<Self as ListAttribute>::describe(name, doc))
    }

    /// Writes the list into the open element.
    fn write(&self, to: &mut Writer);

    /// Returns the empty slot that reading fills.
    #[must_use]
    fn slot() -> Option<Self> {
        None
    }

    /// Reads the list into its slot.
    ///
    /// # Errors
    ///
    /// Returns an error if the content is more than text, or one of its words isn't a valid item.
    fn fill(slot: &mut Option<Self>, found: &Found<'_>) -> Result<(), Error> {
        <Self as ListAttribute>::fill(slot, found)
    }

    /// Returns the field's value, from the list in the slot.
    ///
    /// # Errors
    ///
    /// Returns an error if a required list is missing. The error can't occur once the payload has
    /// passed its schema's check.
    fn finish(slot: Option<Self>, at: At<'_>) -> Result<Self, Error> {
        <Self as ListAttribute>::finish(slot, at)
    }
}

impl<T: Text> ListAttribute for Vec<T> {
    const OCCURS: Occurs = Occurs::One;
    const FORM: Form = T::FORM;

    fn describe(name: &'static str, doc: &'static str) -> Field {
        Field::new(name, first(doc, T::DOC), Kind::Scalar(list::<T>()), Occurs::One)
    }

    fn write(&self, local: &str, to: &mut Writer) {
        to.attribute(local, &joined(self));
    }

    fn fill(slot: &mut Option<Vec<T>>, found: &Found<'_>) -> Result<(), Error> {
        *slot = Some(read(found)?);
        Ok(())
    }

    fn finish(slot: Option<Vec<T>>, at: At<'_>) -> Result<Vec<T>, Error> {
        slot.ok_or_else(|| at.incomplete())
    }
}

impl<T: Text> ListAttribute for Option<Vec<T>> {
    const OCCURS: Occurs = Occurs::Optional;
    const FORM: Form = T::FORM;

    fn describe(name: &'static str, doc: &'static str) -> Field {
        Field::new(name, first(doc, T::DOC), Kind::Scalar(list::<T>()), Occurs::Optional)
    }

    fn write(&self, local: &str, to: &mut Writer) {
        if let Some(all) = self {
            to.attribute(local, &joined(all));
        }
    }

    fn fill(slot: &mut Option<Option<Vec<T>>>, found: &Found<'_>) -> Result<(), Error> {
        *slot = Some(Some(read(found)?));
        Ok(())
    }

    fn finish(slot: Option<Option<Vec<T>>>, _: At<'_>) -> Result<Option<Vec<T>>, Error> {
        Ok(slot.flatten())
    }
}

impl<T: Text> ListItems for Vec<T> {
    fn write(&self, namespace: &str, local: &str, to: &mut Writer) {
        element(self, namespace, local, to);
    }
}

impl<T: Text> ListItems for Option<Vec<T>> {
    fn write(&self, namespace: &str, local: &str, to: &mut Writer) {
        if let Some(all) = self {
            element(all, namespace, local, to);
        }
    }
}

impl<T: Text> ListText for Vec<T> {
    fn write(&self, to: &mut Writer) {
        to.text(&joined(self));
    }
}

fn list<T: Text>() -> Scalar {
    Scalar::List(Arc::new(List { item: T::scalar(), length_min: None, length_max: None }))
}

fn element<T: Text>(all: &[T], namespace: &str, local: &str, to: &mut Writer) {
    to.start(namespace, local);
    to.text(&joined(all));
    to.end();
}

fn joined<T: Text>(all: &[T]) -> String {
    let mut text = String::new();
    for name in all {
        if !text.is_empty() {
            text.push(' ');
        }
        name.with_text(|it| text.push_str(it));
    }
    text
}

fn read<T: Text>(found: &Found<'_>) -> Result<Vec<T>, Error> {
    let text = found.text()?;
    let all: Option<Vec<T>> = items(&text).map(|it| T::parse(Cow::Borrowed(it))).collect();
    all.ok_or_else(|| match &found.field.kind {
        Kind::Scalar(scalar) => found.mismatch(scalar),
        _ => found.mismatch(&list::<T>()),
    })
}
