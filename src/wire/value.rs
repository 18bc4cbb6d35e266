//! The traits of the fields of payloads. The traits differ in where a field may stand and in how
//! often it may occur.
//!
//! - [`Text`]: one scalar, which may also be an attribute.
//! - [`Part`]: the inside of one element.
//! - [`Item`]: one element of a sequence.
//! - [`Items`]: a field of a sequence, with any number of items.
//! - [`Attribute`]: a field that is an attribute.
//!
//! The derive implements the first three.

mod lists;
mod maps;
mod texts;

use std::borrow::Cow;

pub use self::lists::{ListAttribute, ListItems, ListText};
pub use self::texts::Json;
use crate::schema::walk::{At, Found};
use crate::schema::{self, Content, Error, Field, Form, Kind, Occurs};
use crate::xml::{Element, Writer};

/// A scalar that is written as one text, such as a number or a word. An attribute can hold such a
/// text.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a text",
    label = "neither a scalar nor an enum of plain words",
    note = "an attribute or a text is a `String`, `bool`, `char`, a number, `Bytes`, `Timestamp`, \
            `SignedDuration`, `Uuid`, or a type that derives `Payload` and is an enum without data \
            or a struct around one of these"
)]
pub trait Text: Sized + Send + 'static {
    /// The type's doc comment, for fields without one. Empty if the scalar carries the doc comment
    /// itself.
    const DOC: &'static str = "";
    /// The form of the text, which determines the facets that the type may have.
    const FORM: Form;
    /// Returns the scalar that schemas have for this type. The scalar determines the allowed texts.
    fn scalar() -> schema::Scalar;
    /// Reads a value from its text. Returns `None` if [`Text::scalar`] doesn't accept the text.
    fn parse(text: Cow<'_, str>) -> Option<Self>;
    /// Calls `then` with the value's text.
    fn with_text<R>(&self, then: impl FnOnce(&str) -> R) -> R;

    /// Describes, for a schema, an element whose whole content is this text.
    fn describe(name: &'static str, doc: &'static str) -> Content {
        let kind = Kind::Scalar(Self::scalar());
        Content::Text(Field::new(name, first(doc, Self::DOC), kind, Occurs::One))
    }

    /// Writes the text into the open element.
    fn write(&self, to: &mut Writer) {
        self.with_text(|it| to.text(it));
    }

    /// Returns the empty slot that reading fills.
    #[must_use]
    fn slot() -> Option<Self> {
        None
    }

    /// Reads the text into its slot, from an attribute or an element.
    ///
    /// # Errors
    ///
    /// Returns an error if the scalar doesn't accept the text, or the element has more than text.
    fn fill(slot: &mut Option<Self>, found: &Found<'_>) -> Result<(), Error> {
        let value = Self::parse(found.text()?).ok_or_else(|| found.mismatch(&Self::scalar()))?;
        *slot = Some(value);
        Ok(())
    }

    /// Returns the value in the slot.
    ///
    /// # Errors
    ///
    /// Returns an error if the slot is empty. The error can't occur once the payload has passed its
    /// schema's check.
    fn finish(slot: Option<Self>, at: At<'_>) -> Result<Self, Error> {
        slot.ok_or_else(|| at.incomplete())
    }
}

/// The inside of one element: its attributes, and the content between its tags.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be what an element holds",
    label = "not a part of a payload",
    note = "put `#[derive(Payload)]` on the type, below a doc comment"
)]
pub trait Part: Sized + Send + 'static {
    /// The type's doc comment, for fields without one. Empty if the kind carries the doc comment
    /// itself.
    const DOC: &'static str = "";
    /// The form of the type's text, or [`Form::Other`] if the type isn't a scalar.
    const FORM: Form = Form::Other;
    /// Whether the type has an attribute `key`. A map can't hold such a type, since each entry of a
    /// map has an attribute of that name.
    const HAS_KEY: bool = false;
    /// Returns the kind for schemas: a scalar or a shape.
    fn kind() -> Kind;
    /// Writes the attributes and the content into the open element.
    fn write(&self, namespace: &str, to: &mut Writer);
    /// Reads the attributes and the content of an element.
    ///
    /// # Errors
    ///
    /// Returns an error for the first place where the element doesn't fit its shape.
    fn read(at: At<'_>) -> Result<Self, Error>;

    /// Describes, for a schema, a variant that holds this part.
    fn describe(name: &'static str, doc: &'static str) -> Field {
        Field::new(name, first(doc, Self::DOC), Self::kind(), Occurs::One)
    }

    /// Writes an element with this name, with the part inside.
    fn write_as(&self, namespace: &str, local: &str, to: &mut Writer) {
        to.start(namespace, local);
        self.write(namespace, to);
        to.end();
    }
}

/// One element of a sequence. The element has the field's name, or a name that the type determines.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be a field of a payload",
    label = "not a part of a payload",
    note = "a field is a scalar, a type that derives `Payload`, an `Element`, or an `Option`, \
            `Vec`, `Box` or `BTreeMap<String, …>` of one of these"
)]
pub trait Item: Sized + Send + 'static {
    /// The type's doc comment, for fields without one. Empty if the kind carries the doc comment
    /// itself.
    const DOC: &'static str = "";
    /// The form of the type's text, or [`Form::Other`] if the type isn't a scalar.
    const FORM: Form = Form::Other;
    /// Whether the type is a map of parts with an attribute `key` of their own, which is forbidden.
    const HAS_TWO_KEYS: bool = false;
    /// The names that the item's element may have.
    const NAMES: Names;
    /// Returns the kind for schemas.
    fn kind() -> Kind;
    /// Writes the whole element; `local` is the field's name.
    fn write(&self, namespace: &str, local: &str, to: &mut Writer);
    /// Reads the whole element.
    ///
    /// # Errors
    ///
    /// Returns an error for the first place where the element doesn't fit its shape.
    fn read(at: At<'_>) -> Result<Self, Error>;
}

/// The names that the element of an [`Item`] may have.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Names {
    /// The field's name.
    Field,
    /// These names instead of the field's name. They are the names of a choice's variants.
    Own(&'static [&'static str]),
    /// Any name that no other field of the sequence has.
    Any,
}

/// A field of a sequence: exactly one item, an optional one, or any number.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be a field of a payload",
    label = "not a part of a payload",
    note = "a field is a scalar, a type that derives `Payload`, an `Element`, or an `Option`, \
            `Vec`, `Box` or `BTreeMap<String, …>` of one of these"
)]
pub trait Items: Sized {
    /// The type of each item.
    type Item: Item;
    /// The items read so far.
    type Slot: Default;
    /// How many items a schema allows.
    const OCCURS: Occurs;
    /// The names that an item's element may have.
    const NAMES: Names = <Self::Item as Item>::NAMES;
    /// The form of each item's text, or [`Form::Other`] if the items aren't scalars.
    const FORM: Form = <Self::Item as Item>::FORM;
    /// Whether each item is a map of parts with an attribute `key` of their own, which is
    /// forbidden.
    const HAS_TWO_KEYS: bool = <Self::Item as Item>::HAS_TWO_KEYS;
    /// Puts an item into the slot.
    fn add(slot: &mut Self::Slot, item: Self::Item);
    /// Returns the field's value, or `None` if the slot has too few items.
    fn take(slot: Self::Slot) -> Option<Self>;
    /// Returns all items, in their order.
    fn items(&self) -> &[Self::Item];

    /// Describes the field for a schema.
    fn describe(name: &'static str, doc: &'static str) -> Field {
        let doc = first(doc, <Self::Item as Item>::DOC);
        Field::new(name, doc, <Self::Item as Item>::kind(), Self::OCCURS)
    }

    /// Writes all items.
    fn write(&self, namespace: &str, local: &str, to: &mut Writer) {
        for item in self.items() {
            Item::write(item, namespace, local, to);
        }
    }

    /// Returns the empty slot that reading fills.
    #[must_use]
    fn slot() -> Self::Slot {
        Self::Slot::default()
    }

    /// Reads one more item into the slot.
    ///
    /// # Errors
    ///
    /// Returns an error for the first place where the element doesn't fit its shape.
    fn fill(slot: &mut Self::Slot, found: &Found<'_>) -> Result<(), Error> {
        Self::add(slot, <Self::Item as Item>::read(found.at)?);
        Ok(())
    }

    /// Returns the field's value, from the items in the slot.
    ///
    /// # Errors
    ///
    /// Returns an error if the slot has too few items. The error can't occur once the payload has
    /// passed its schema's check.
    fn finish(slot: Self::Slot, at: At<'_>) -> Result<Self, Error> {
        Self::take(slot).ok_or_else(|| at.incomplete())
    }
}

/// A field that is an attribute: a required text, or an optional one.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be an attribute",
    label = "not a text",
    note = "an attribute is a scalar, an enum of plain words, or an `Option` of one of these"
)]
pub trait Attribute: Sized {
    /// The type of the attribute's text.
    type Text: Text;
    /// Whether a schema requires the attribute.
    const OCCURS: Occurs;
    /// The form of the text.
    const FORM: Form = <Self::Text as Text>::FORM;
    /// Returns the field's value, from the text that was read. Returns `None` if a required text is
    /// missing.
    fn take(text: Option<Self::Text>) -> Option<Self>;
    /// Returns the attribute's text, or `None` if the attribute is left out.
    fn text(&self) -> Option<&Self::Text>;

    /// Describes the attribute for a schema.
    fn describe(name: &'static str, doc: &'static str) -> Field {
        let doc = first(doc, <Self::Text as Text>::DOC);
        Field::new(name, doc, Kind::Scalar(<Self::Text as Text>::scalar()), Self::OCCURS)
    }

    /// Writes the attribute, unless its value is left out.
    fn write(&self, local: &str, to: &mut Writer) {
        if let Some(text) = self.text() {
            text.with_text(|it| to.attribute(local, it));
        }
    }

    /// Returns the empty slot that reading fills.
    #[must_use]
    fn slot() -> Option<Self::Text> {
        None
    }

    /// Reads the attribute's text into its slot.
    ///
    /// # Errors
    ///
    /// Returns an error if the scalar doesn't accept the text.
    fn fill(slot: &mut Option<Self::Text>, found: &Found<'_>) -> Result<(), Error> {
        <Self::Text as Text>::fill(slot, found)
    }

    /// Returns the field's value, from the text in the slot.
    ///
    /// # Errors
    ///
    /// Returns an error if a required text is missing. The error can't occur once the payload has
    /// passed its schema's check.
    fn finish(slot: Option<Self::Text>, at: At<'_>) -> Result<Self, Error> {
        Self::take(slot).ok_or_else(|| at.incomplete())
    }
}

impl<T: Item> Items for T {
    type Item = T;
    type Slot = Option<T>;
    const OCCURS: Occurs = Occurs::One;

    fn add(slot: &mut Option<T>, item: T) {
        *slot = Some(item);
    }

    fn take(slot: Option<T>) -> Option<T> {
        slot
    }

    fn items(&self) -> &[T] {
        std::slice::from_ref(self)
    }
}

impl<T: Item> Items for Option<T> {
    type Item = T;
    type Slot = Option<T>;
    const OCCURS: Occurs = Occurs::Optional;

    fn add(slot: &mut Option<T>, item: T) {
        *slot = Some(item);
    }

    fn take(slot: Option<T>) -> Option<Option<T>> {
        Some(slot)
    }

    fn items(&self) -> &[T] {
        self.as_slice()
    }
}

impl<T: Item> Items for Vec<T> {
    type Item = T;
    type Slot = Vec<T>;
    const OCCURS: Occurs = Occurs::Many;

    fn add(slot: &mut Vec<T>, item: T) {
        slot.push(item);
    }

    fn take(slot: Vec<T>) -> Option<Vec<T>> {
        Some(slot)
    }

    fn items(&self) -> &[T] {
        self
    }
}

impl<T: Text> Attribute for T {
    type Text = T;
    const OCCURS: Occurs = Occurs::One;

    fn take(text: Option<T>) -> Option<T> {
        text
    }

    fn text(&self) -> Option<&T> {
        Some(self)
    }
}

impl<T: Text> Attribute for Option<T> {
    type Text = T;
    const OCCURS: Occurs = Occurs::Optional;

    fn take(text: Option<T>) -> Option<Option<T>> {
        Some(text)
    }

    fn text(&self) -> Option<&T> {
        self.as_ref()
    }
}

impl Item for Element {
    const NAMES: Names = Names::Any;

    fn kind() -> Kind {
        Kind::Element
    }

    fn write(&self, _: &str, _: &str, to: &mut Writer) {
        to.element(self.view());
    }

    fn read(at: At<'_>) -> Result<Element, Error> {
        Ok(at.view.to_element())
    }
}

impl<T: Item> Item for Box<T> {
    const DOC: &'static str = T::DOC;
    const FORM: Form = T::FORM;
    const HAS_TWO_KEYS: bool = T::HAS_TWO_KEYS;
    const NAMES: Names = T::NAMES;

    fn kind() -> Kind {
        T::kind()
    }

    fn write(&self, namespace: &str, local: &str, to: &mut Writer) {
        T::write(self, namespace, local, to);
    }

    fn read(at: At<'_>) -> Result<Box<T>, Error> {
        T::read(at).map(Box::new)
    }
}

impl<T: Part> Part for Box<T> {
    const DOC: &'static str = T::DOC;
    const FORM: Form = T::FORM;
    const HAS_KEY: bool = T::HAS_KEY;

    fn kind() -> Kind {
        T::kind()
    }

    fn write(&self, namespace: &str, to: &mut Writer) {
        T::write(self, namespace, to);
    }

    fn read(at: At<'_>) -> Result<Box<T>, Error> {
        T::read(at).map(Box::new)
    }
}

/// Reads an element that has only text.
///
/// # Errors
///
/// Returns an error if the scalar doesn't accept the text, or the element has more than text.
pub fn read_text<T: Text>(at: At<'_>) -> Result<T, Error> {
    let scalar = T::scalar();
    at.holds(&scalar)?;
    T::parse(at.text()?).ok_or_else(|| at.mismatch(&scalar))
}

/// Returns the doc of the field, or the doc of its type if the field has none.
fn first(field: &'static str, ty: &'static str) -> &'static str {
    if field.is_empty() { ty } else { field }
}
