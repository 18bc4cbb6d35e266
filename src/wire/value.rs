//! The traits of a payload's fields: texts, parts, choices, and how many there may be.
//!
//! [`Text`] is what an attribute can hold, [`Part`] what one element can, [`Item`] what stands in
//! a sequence, [`Items`] how many of those. The derive implements the first three.

mod lists;
mod maps;
mod texts;

use std::borrow::Cow;

pub use self::lists::{ListAttribute, ListItems, ListText};
pub use self::texts::Json;
use crate::schema::walk::{At, Found};
use crate::schema::{self, Content, Error, Field, Form, Kind, Occurs};
use crate::xml::{Element, Writer};

/// One text: a number, a word, whatever an attribute can hold.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a text",
    label = "neither a scalar nor an enum of plain words",
    note = "an attribute or a text is a `String`, `bool`, `char`, a number, `Bytes`, `Timestamp`, \
            `SignedDuration`, `Uuid`, or a type that derives `Payload` and is an enum without data \
            or a struct around one of these"
)]
pub trait Text: Sized + Send + 'static {
    /// What the type is for, where the scalar itself doesn't say.
    const DOC: &'static str = "";
    /// What sort of text it is: what may narrow it.
    const FORM: Form;
    /// Which texts it may be.
    fn scalar() -> schema::Scalar;
    /// The value of a text, if it is one that [`Text::scalar`] accepts.
    fn parse(text: Cow<'_, str>) -> Option<Self>;
    /// Hands on the text of the value.
    fn with_text<R>(&self, then: impl FnOnce(&str) -> R) -> R;

    /// The text of an element, for a schema.
    fn describe(name: &'static str, doc: &'static str) -> Content {
        let kind = Kind::Scalar(Self::scalar());
        Content::Text(Field::new(name, first(doc, Self::DOC), kind, Occurs::One))
    }

    /// Writes the text into the element that is open.
    fn write(&self, to: &mut Writer) {
        self.with_text(|it| to.text(it));
    }

    /// Where the text goes when it is met.
    #[must_use]
    fn slot() -> Option<Self> {
        None
    }

    /// Reads the text, wherever it stands, into its slot.
    ///
    /// # Errors
    ///
    /// There is another text, or more than text.
    fn fill(slot: &mut Option<Self>, found: &Found<'_>) -> Result<(), Error> {
        let value = Self::parse(found.text()?).ok_or_else(|| found.mismatch(&Self::scalar()))?;
        *slot = Some(value);
        Ok(())
    }

    /// What the slot came to.
    ///
    /// # Errors
    ///
    /// Nothing was put into it; no walk lets that pass.
    fn finish(slot: Option<Self>, at: At<'_>) -> Result<Self, Error> {
        slot.ok_or_else(|| at.incomplete())
    }
}

/// What one element holds between its tags, and in its attributes.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be what an element holds",
    label = "not a part of a payload",
    note = "put `#[derive(Payload)]` on the type, below a doc comment"
)]
pub trait Part: Sized + Send + 'static {
    /// What the type is for, where its kind doesn't say.
    const DOC: &'static str = "";
    /// What sort of text it is, if it is one.
    const FORM: Form = Form::Other;
    /// Whether it has an attribute that is called as the key of a map's entry.
    const HAS_KEY: bool = false;
    /// What it is to a schema: a scalar or a shape.
    fn kind() -> Kind;
    /// Writes attributes and content into the element that is open.
    fn write(&self, namespace: &str, to: &mut Writer);
    /// Reads what the element holds.
    ///
    /// # Errors
    ///
    /// The first place where the element isn't what its shape says.
    fn read(at: At<'_>) -> Result<Self, Error>;

    /// A variant that holds it, for a schema.
    fn describe(name: &'static str, doc: &'static str) -> Field {
        Field::new(name, first(doc, Self::DOC), Self::kind(), Occurs::One)
    }

    /// Writes an element by this name around it.
    fn write_as(&self, namespace: &str, local: &str, to: &mut Writer) {
        to.start(namespace, local);
        self.write(namespace, to);
        to.end();
    }
}

/// What stands once in a sequence: an element by the field's name, or under names of its own.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be a field of a payload",
    label = "not a part of a payload",
    note = "a field is a scalar, a type that derives `Payload`, an `Element`, or an `Option`, \
            `Vec`, `Box` or `BTreeMap<String, …>` of one of these"
)]
pub trait Item: Sized + Send + 'static {
    /// What the type is for, where its kind doesn't say.
    const DOC: &'static str = "";
    /// What sort of text it is, if it is one.
    const FORM: Form = Form::Other;
    /// Whether it is a map whose parts have a key of their own.
    const HAS_TWO_KEYS: bool = false;
    /// Under which names it stands.
    const NAMES: Names;
    /// What it is to a schema.
    fn kind() -> Kind;
    /// Writes the whole element; `local` is the field's name.
    fn write(&self, namespace: &str, local: &str, to: &mut Writer);
    /// Reads the whole element.
    ///
    /// # Errors
    ///
    /// The first place where the element isn't what its shape says.
    fn read(at: At<'_>) -> Result<Self, Error>;
}

/// Under which names an [`Item`] stands.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Names {
    /// The field's.
    Field,
    /// These, whatever the field is called.
    Own(&'static [&'static str]),
    /// Any that no field beside it has.
    Any,
}

/// How many items a field is: one, perhaps one, any number.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be a field of a payload",
    label = "not a part of a payload",
    note = "a field is a scalar, a type that derives `Payload`, an `Element`, or an `Option`, \
            `Vec`, `Box` or `BTreeMap<String, …>` of one of these"
)]
pub trait Items: Sized {
    /// One of them.
    type Item: Item;
    /// What was read so far.
    type Slot: Default;
    /// How many they are to a schema.
    const OCCURS: Occurs;
    /// Under which names they stand.
    const NAMES: Names = <Self::Item as Item>::NAMES;
    /// What sort of text each is, if it is one.
    const FORM: Form = <Self::Item as Item>::FORM;
    /// Whether each is a map whose parts have a key of their own.
    const HAS_TWO_KEYS: bool = <Self::Item as Item>::HAS_TWO_KEYS;
    /// Puts one more into the slot.
    fn add(slot: &mut Self::Slot, item: Self::Item);
    /// What the slot came to, if it is enough.
    fn take(slot: Self::Slot) -> Option<Self>;
    /// All of them, in their order.
    fn items(&self) -> &[Self::Item];

    /// The field, for a schema.
    fn describe(name: &'static str, doc: &'static str) -> Field {
        let doc = first(doc, <Self::Item as Item>::DOC);
        Field::new(name, doc, <Self::Item as Item>::kind(), Self::OCCURS)
    }

    /// Writes all of them.
    fn write(&self, namespace: &str, local: &str, to: &mut Writer) {
        for item in self.items() {
            Item::write(item, namespace, local, to);
        }
    }

    /// Where they go when they are met.
    #[must_use]
    fn slot() -> Self::Slot {
        Self::Slot::default()
    }

    /// Reads one more into the slot.
    ///
    /// # Errors
    ///
    /// The first place where the element isn't what its shape says.
    fn fill(slot: &mut Self::Slot, found: &Found<'_>) -> Result<(), Error> {
        Self::add(slot, <Self::Item as Item>::read(found.at)?);
        Ok(())
    }

    /// What the slot came to.
    ///
    /// # Errors
    ///
    /// It isn't enough; no walk lets that pass.
    fn finish(slot: Self::Slot, at: At<'_>) -> Result<Self, Error> {
        Self::take(slot).ok_or_else(|| at.incomplete())
    }
}

/// What an attribute is: a text that must be there, or one that may.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be an attribute",
    label = "not a text",
    note = "an attribute is a scalar, an enum of plain words, or an `Option` of one of these"
)]
pub trait Attribute: Sized {
    /// Its text.
    type Text: Text;
    /// How often it is there to a schema: once or perhaps.
    const OCCURS: Occurs;
    /// What sort of text it is.
    const FORM: Form = <Self::Text as Text>::FORM;
    /// What a text that was there, or none, comes to, if that is enough.
    fn take(text: Option<Self::Text>) -> Option<Self>;
    /// Its text, if it is there.
    fn text(&self) -> Option<&Self::Text>;

    /// The attribute, for a schema.
    fn describe(name: &'static str, doc: &'static str) -> Field {
        let doc = first(doc, <Self::Text as Text>::DOC);
        Field::new(name, doc, Kind::Scalar(<Self::Text as Text>::scalar()), Self::OCCURS)
    }

    /// Writes it, if it is there.
    fn write(&self, local: &str, to: &mut Writer) {
        if let Some(text) = self.text() {
            text.with_text(|it| to.attribute(local, it));
        }
    }

    /// Where its text goes when it is met.
    #[must_use]
    fn slot() -> Option<Self::Text> {
        None
    }

    /// Reads it into its slot.
    ///
    /// # Errors
    ///
    /// It has another text than it should.
    fn fill(slot: &mut Option<Self::Text>, found: &Found<'_>) -> Result<(), Error> {
        <Self::Text as Text>::fill(slot, found)
    }

    /// What the slot came to.
    ///
    /// # Errors
    ///
    /// It isn't enough; no walk lets that pass.
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

/// Reads an element that holds one text.
///
/// # Errors
///
/// It holds more, or another text than it should.
pub fn read_text<T: Text>(at: At<'_>) -> Result<T, Error> {
    let scalar = T::scalar();
    at.holds(&scalar)?;
    T::parse(at.text()?).ok_or_else(|| at.mismatch(&scalar))
}

/// What a field says of itself, or else what its type says.
fn first(field: &'static str, ty: &'static str) -> &'static str {
    if field.is_empty() { ty } else { field }
}
