//! The walk over an element, guided by the element's shape. The walk calls a function for each
//! field that it finds. Checking and decoding both use this walk.
//!
//! So checking and decoding see the same fields in the same order, and stop at the same error.
//! Neither accepts an element that the other refuses. The code of `#[derive(Payload)]` calls this
//! module; other code doesn't need it.

use std::borrow::Cow;
use std::collections::BTreeSet;

use super::{
    Content, ENTRY, Error, Field, KEY, Kind, Occurs, Scalar, Schema, Shape, error, scalar,
};
use crate::limits::XmlLimits;
use crate::xml::{Attribute, Child, View};

/// How deep elements of a payload may be nested. Each level of the walk takes a stack frame.
pub(super) const DEPTH_MAX: usize = XmlLimits::INSIDE.depth_max;
/// The namespace of attributes that XSD allows on any element: `xsi:type`, `xsi:nil` and so on.
const INSTANCE: &str = "http://www.w3.org/2001/XMLSchema-instance";
/// The namespace of attributes that XML allows on any element: `xml:lang`, `xml:space` and so on.
const XML: &str = "http://www.w3.org/XML/1998/namespace";

/// An element, and how deep it is nested in its payload.
#[derive(Clone, Copy)]
pub struct At<'a> {
    /// The element.
    pub view: View<'a>,
    depth: usize,
    /// The name of the attribute with the key, if the element is an entry of a map. The shape of
    /// the entry's value doesn't declare this attribute.
    key: Option<&'static str>,
}

impl<'a> At<'a> {
    /// Returns the root element of a payload, if it has the schema's name.
    ///
    /// # Errors
    ///
    /// Returns an error if the element has another name.
    pub fn root(view: View<'a>, schema: &Schema) -> Result<At<'a>, Error> {
        if schema.name.is(view.namespace(), view.local()) {
            return Ok(At { view, depth: 1, key: None });
        }
        Err(error::root(view, &schema.name))
    }

    /// Returns the text of an element that has only text.
    ///
    /// # Errors
    ///
    /// Returns an error if the element has attributes or child elements.
    pub fn text(self) -> Result<Cow<'a, str>, Error> {
        attributes(&[], self, &mut |_| Ok(()))?;
        text(self.view)
    }

    /// Checks the element's text against a scalar's facets. Skips scalars that accept each value of
    /// their Rust type, since decoding the text checks those.
    ///
    /// # Errors
    ///
    /// Returns an error if the scalar doesn't accept the text, or the element has more than text.
    pub fn holds(self, scalar: &Scalar) -> Result<(), Error> {
        if !scalar.may_break() || scalar.accepts(&self.text()?) {
            return Ok(());
        }
        Err(self.mismatch(scalar))
    }

    /// Returns the error for an element whose text the scalar doesn't accept.
    #[must_use]
    pub fn mismatch(self, scalar: &Scalar) -> Error {
        error::value(self.view, None, &self.view.text(), scalar)
    }

    /// Returns the error for a decoder that lacks a required field after the walk. Only a bug in
    /// the walk can cause this error.
    #[must_use]
    pub fn incomplete(self) -> Error {
        error::incomplete(self.view)
    }

    /// Treats an element as a root, without checking the element's name.
    pub(super) fn alone(view: View<'a>) -> At<'a> {
        At { view, depth: 1, key: None }
    }

    fn child(self, view: View<'a>) -> At<'a> {
        At { view, depth: self.depth + 1, key: None }
    }
}

/// A field that the walk has met.
pub struct Found<'a> {
    /// The field's index among all fields of the shape: attributes first, then the content. In a
    /// value from [`choose`], this is the index among the variants.
    pub index: usize,
    /// The field in the shape.
    pub field: &'a Field,
    /// The field's element. For an attribute or a text, this is the element that contains it.
    pub at: At<'a>,
    part: Part<'a>,
}

/// The part of the element that holds a field.
enum Part<'a> {
    Attribute(&'a str),
    Text,
    Element,
}

impl<'a> Found<'a> {
    /// Makes the [`Found`] for an entry of a map.
    pub(super) fn entry(field: &'a Field, at: At<'a>) -> Found<'a> {
        Found { index: 0, field, at, part: Part::Element }
    }

    /// Checks a field's text against the field's facets, before the visitor gets the field. So
    /// decoding respects the facets, as checking does.
    fn held(self) -> Result<Found<'a>, Error> {
        match &self.field.kind {
            Kind::Scalar(scalar) if scalar.may_break() && !scalar.accepts(&self.text()?) => {
                Err(self.mismatch(scalar))
            }
            _ => Ok(self),
        }
    }

    /// Returns the text of a scalar field, whether the field is an attribute, a text or an element.
    ///
    /// # Errors
    ///
    /// Returns an error if the element has more than text.
    pub fn text(&self) -> Result<Cow<'a, str>, Error> {
        match self.part {
            Part::Attribute(value) => Ok(Cow::Borrowed(value)),
            Part::Text => text(self.at.view),
            Part::Element => self.at.text(),
        }
    }

    /// Returns the error for a field whose text the scalar doesn't accept.
    #[must_use]
    pub fn mismatch(&self, scalar: &Scalar) -> Error {
        match self.part {
            Part::Attribute(value) => {
                error::value(self.at.view, Some(&self.field.name), value, scalar)
            }
            Part::Text | Part::Element => self.at.mismatch(scalar),
        }
    }
}

/// The visitor: the function that gets each field. An error from the visitor ends the walk.
pub type Visit<'v> = dyn FnMut(Found<'_>) -> Result<(), Error> + 'v;

/// Walks over an element: its attributes in the shape's order, then its content. With
/// [`Content::Any`], the walk visits only the attributes that the shape declares.
///
/// # Errors
///
/// Returns an error for the first place where the element doesn't fit the shape, or the visitor's
/// error.
pub fn walk<'a>(shape: &'a Shape, at: At<'a>, visit: &mut Visit<'_>) -> Result<(), Error> {
    if at.depth > DEPTH_MAX {
        return Err(error::depth(at.view, DEPTH_MAX));
    }
    if matches!(shape.content, Content::Any) {
        return declared(&shape.attributes, at, visit);
    }
    attributes(&shape.attributes, at, visit)?;
    let first = shape.attributes.len();
    match &shape.content {
        Content::Text(field) => visit(Found { index: first, field, at, part: Part::Text }.held()?),
        Content::Sequence(fields) => sequence(fields, first, at, visit),
        Content::Choice(variants) => one(variants, first, at, visit),
        Content::Empty | Content::Any => sequence(&[], first, at, visit),
    }
}

/// Finds the variant of a choice that has the element's name.
///
/// # Errors
///
/// Returns an error if the element is none of the variants.
pub fn choose<'a>(shape: &'a Shape, at: At<'a>) -> Result<Found<'a>, Error> {
    let variants = match &shape.content {
        Content::Choice(variants) => variants.as_slice(),
        _ => &[],
    };
    let local = at.view.local();
    match variants.iter().enumerate().find(|(_, it)| it.name == local) {
        Some((index, field)) => Found { index, field, at, part: Part::Element }.held(),
        None => Err(error::none_of(at.view, variants)),
    }
}

/// Walks over the entries of a map, and calls the visitor with the key and the element of each.
///
/// # Errors
///
/// Returns an error if the map contains anything but entries, an entry without a key, or a key
/// twice. Also returns the visitor's error.
pub fn entries<'a>(
    at: At<'a>,
    visit: &mut dyn FnMut(&'a str, At<'a>) -> Result<(), Error>,
) -> Result<(), Error> {
    if at.depth > DEPTH_MAX {
        return Err(error::depth(at.view, DEPTH_MAX));
    }
    attributes(&[], at, &mut |_| Ok(()))?;
    let mut keys = BTreeSet::new();
    for child in at.view.children() {
        let child = match child {
            Child::Element(child) => child,
            Child::Text(text) => {
                blank(at.view, text, false)?;
                continue;
            }
        };
        if child.namespace() != at.view.namespace() || child.local() != ENTRY {
            return Err(error::no_entry(at.view, child));
        }
        let key = child.attribute(KEY).ok_or_else(|| error::no_key(child))?;
        if !keys.insert(key) {
            return Err(error::key_twice(at.view, child, key));
        }
        visit(key, At { key: Some(KEY), ..at.child(child) })?;
    }
    Ok(())
}

/// Returns whether the element `child` belongs to this field of a sequence.
///
/// A field of the kind [`Kind::Element`] doesn't take an element that has the namespace of the
/// parent and the name of another field. Such an element always belongs to the other field.
pub(super) fn takes(field: &Field, fields: &[Field], parent: View<'_>, child: View<'_>) -> bool {
    let ours = child.shares_namespace(parent);
    match field.kind {
        Kind::Element => !ours || !fields.iter().any(|it| is_called(it, child.local())),
        _ => ours && is_called(field, child.local()),
    }
}

pub(super) fn is_called(field: &Field, local: &str) -> bool {
    match &field.kind {
        Kind::Choice(link) => match &link.shape().content {
            Content::Choice(variants) => variants.iter().any(|it| it.name == local),
            _ => false,
        },
        Kind::Element => false,
        Kind::Scalar(_) | Kind::Shape(_) | Kind::Map(_) => field.name == local,
    }
}

fn attributes<'a>(fields: &'a [Field], at: At<'a>, visit: &mut Visit<'_>) -> Result<(), Error> {
    let mut values = Values::of(fields);
    for attribute in at.view.attributes() {
        let is_known = match attribute.namespace {
            "" => values.take(fields, &attribute) || at.key == Some(attribute.local),
            namespace => matches!(namespace, XML | INSTANCE),
        };
        if !is_known {
            return Err(error::attribute(at.view, attribute.namespace, attribute.local, fields));
        }
    }
    visit_each(fields, &values, at, visit)
}

/// Visits the attributes that a shape declares. The element may have other attributes, too.
fn declared<'a>(fields: &'a [Field], at: At<'a>, visit: &mut Visit<'_>) -> Result<(), Error> {
    let mut values = Values::of(fields);
    for attribute in at.view.attributes().filter(|it| it.namespace.is_empty()) {
        values.take(fields, &attribute);
    }
    visit_each(fields, &values, at, visit)
}

/// The values of the attributes that a shape declares. One pass over the element's attributes
/// collects them.
struct Values<'a> {
    few: [Option<&'a str>; FEW_ATTRIBUTES],
    /// The values, if the shape has more than `FEW_ATTRIBUTES` attributes.
    many: Vec<Option<&'a str>>,
}

/// Up to this number of attributes, the values need no allocation.
const FEW_ATTRIBUTES: usize = 16;

impl<'a> Values<'a> {
    fn of(fields: &[Field]) -> Values<'a> {
        let is_few = fields.len() <= FEW_ATTRIBUTES;
        let many = if is_few { Vec::new() } else { vec![None; fields.len()] };
        Values { few: [None; FEW_ATTRIBUTES], many }
    }

    fn all(&mut self) -> &mut [Option<&'a str>] {
        if self.many.is_empty() { &mut self.few } else { &mut self.many }
    }

    fn get(&self, index: usize) -> Option<&'a str> {
        let all = if self.many.is_empty() { &self.few[..] } else { &self.many[..] };
        *all.get(index)?
    }

    /// Keeps the value of an attribute that the shape declares. Returns false for other attributes.
    fn take(&mut self, fields: &[Field], attribute: &Attribute<'a>) -> bool {
        let found = fields.iter().position(|field| field.name == attribute.local);
        let value = found.and_then(|index| self.all().get_mut(index));
        value.map(|value| *value = Some(attribute.value)).is_some()
    }
}

fn visit_each<'a>(
    fields: &'a [Field],
    values: &Values<'a>,
    at: At<'a>,
    visit: &mut Visit<'_>,
) -> Result<(), Error> {
    for (index, field) in fields.iter().enumerate() {
        match values.get(index) {
            Some(value) => {
                visit(Found { index, field, at, part: Part::Attribute(value) }.held()?)?;
            }
            None if field.occurs == Occurs::One => {
                return Err(error::no_attribute(at.view, field));
            }
            None => {}
        }
    }
    Ok(())
}

fn sequence<'a>(
    fields: &'a [Field],
    first: usize,
    at: At<'a>,
    visit: &mut Visit<'_>,
) -> Result<(), Error> {
    let mut place = 0;
    for child in at.view.children() {
        let child = match child {
            Child::Element(child) => child,
            Child::Text(text) => {
                blank(at.view, text, fields.is_empty())?;
                continue;
            }
        };
        loop {
            let Some(field) = fields.get(place) else {
                return Err(error::unexpected(at.view, child, fields, place));
            };
            if takes(field, fields, at.view, child) {
                let at = at.child(child);
                visit(Found { index: first + place, field, at, part: Part::Element }.held()?)?;
                place += usize::from(field.occurs != Occurs::Many);
                break;
            }
            if field.occurs == Occurs::One {
                return Err(error::unexpected(at.view, child, fields, place));
            }
            place += 1;
        }
    }
    let rest = fields.get(place..).unwrap_or_default();
    match rest.iter().find(|it| it.occurs == Occurs::One) {
        Some(missing) => Err(error::missing(at.view, missing, fields)),
        None => Ok(()),
    }
}

fn one<'a>(
    variants: &'a [Field],
    first: usize,
    at: At<'a>,
    visit: &mut Visit<'_>,
) -> Result<(), Error> {
    let mut chosen = false;
    for child in at.view.children() {
        let child = match child {
            Child::Element(child) => child,
            Child::Text(text) => {
                blank(at.view, text, false)?;
                continue;
            }
        };
        let is_it = |it: &Field| it.name == child.local();
        let ours = child.shares_namespace(at.view);
        let Some(index) = variants.iter().position(is_it).filter(|_| ours) else {
            return Err(error::unexpected(at.view, child, variants, 0));
        };
        if chosen {
            return Err(error::two(at.view, child, variants));
        }
        chosen = true;
        let (field, at) = (&variants[index], at.child(child));
        visit(Found { index: first + index, field, at, part: Part::Element }.held()?)?;
    }
    if chosen { Ok(()) } else { Err(error::no_choice(at.view, variants)) }
}

fn text(view: View<'_>) -> Result<Cow<'_, str>, Error> {
    match view.elements().next() {
        Some(child) => Err(error::element(view, child)),
        None => Ok(view.text()),
    }
}

fn blank(view: View<'_>, text: &str, empty: bool) -> Result<(), Error> {
    if scalar::trim(text).is_empty() {
        return Ok(());
    }
    Err(error::text(view, text, empty))
}
