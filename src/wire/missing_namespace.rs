//! Payloads that arrive without a namespace: finds the namespace that their sender means, and puts
//! them into it.

use crate::name::{CORE, Name};
use crate::schema::{Kind, Schema, Shape};
use crate::wire::{Code, Fault};
use crate::xml::{Child, Element, Place, View, Writer};

/// The local names that stand for payloads of the core namespace in elements without a namespace.
const PROTOCOL: &[&str] = &[
    "accepted",
    "action-result",
    "authenticate",
    "authenticated",
    "context-cleared",
    "context_feed",
    "done",
    "huh",
    "system-thread-error",
    "thread-result",
    "thread-spawned",
    "tick",
    "timer-set",
];

/// Returns the namespace that the sender of an element without a namespace means. `names` are the
/// permitted names with the element's local name.
///
/// # Errors
/// Returns `P0011` if `names` has no name or more than one. Local names in `PROTOCOL` are never an
/// error.
pub fn meant(element: &Element, names: &[&Name]) -> Result<String, Fault> {
    if PROTOCOL.contains(&element.local()) {
        return Ok(CORE.to_owned());
    }
    match names {
        [one] => Ok(one.namespace().to_owned()),
        _ => Err(Fault::undeliverable()),
    }
}

/// Translates a place in an adopted element into the place in the element as it was sent. Both
/// versions hold the same elements in the same order.
#[must_use]
pub fn place_in(element: &Element, adopted: &Element, line: u32, column: u32) -> Place {
    let is_before = |view: &View<'_>| {
        let place = view.place();
        (place.line, place.column) < (line, column)
    };
    let at = all(adopted).partition_point(is_before);
    all(element).get(at).map_or_else(|| element.place(), |it| it.place())
}

/// Returns an element and all elements within it, in document order.
fn all(element: &Element) -> Vec<View<'_>> {
    let (mut all, mut next) = (Vec::new(), vec![element.view()]);
    while let Some(item) = next.pop() {
        all.push(item);
        let within = next.len();
        next.extend(item.elements());
        next[within..].reverse();
    }
    all
}

/// Puts an element without a namespace into this namespace, and likewise the elements within it
/// that have no namespace. Two kinds of elements stay as they are, with all that they contain:
/// elements with a namespace, and elements where the schema allows any element.
///
/// # Errors
/// Returns an error if an element without a namespace has an attribute with one, or if the result
/// crosses a limit.
pub fn adopt(
    element: &Element,
    namespace: &str,
    schema: Option<&Schema>,
    mut to: Writer,
) -> Result<Element, Fault> {
    enum Next<'a> {
        Open(View<'a>, Option<&'a Shape>),
        Own(View<'a>),
        Text(&'a str),
        Close,
    }
    let mut next = vec![Next::Open(element.view(), schema.map(|it| &it.shape))];
    while let Some(item) = next.pop() {
        match item {
            Next::Open(it, _) if !it.namespace().is_empty() => to.element(it),
            Next::Open(element, shape) => {
                to.start(namespace, element.local());
                for attribute in element.attributes() {
                    if !attribute.namespace.is_empty() {
                        let text = "attributes with a namespace need an element with one";
                        return Err(Fault::new(Code::Invalid, text).at(element.place()));
                    }
                    to.attribute(attribute.local, attribute.value);
                }
                next.push(Next::Close);
                let children: Vec<_> = element.children().collect();
                for child in children.into_iter().rev() {
                    next.push(match child {
                        Child::Text(it) => Next::Text(it),
                        Child::Element(element) => match below(shape, element.local()) {
                            Below::Open => Next::Own(element),
                            Below::Shape(shape) => Next::Open(element, shape),
                        },
                    });
                }
            }
            Next::Own(it) => to.element(it),
            Next::Text(it) => to.text(it),
            Next::Close => to.end(),
        }
    }
    Ok(to.finish()?)
}

/// The rule of a shape for a child element.
enum Below<'a> {
    /// The child may be any element.
    Open,
    /// The child has this shape, if one is known.
    Shape(Option<&'a Shape>),
}

fn below<'a>(shape: Option<&'a Shape>, local: &str) -> Below<'a> {
    let Some(shape) = shape else { return Below::Shape(None) };
    // A choice has the names of its variants, and no element of its own.
    let named = shape.fields().find_map(|field| match &field.kind {
        Kind::Element => None,
        Kind::Choice(link) => link.shape().fields().find(|variant| variant.name == local),
        _ => (field.name == local).then_some(field),
    });
    match named.map(|it| &it.kind) {
        Some(Kind::Shape(link)) => Below::Shape(Some(link.shape())),
        Some(_) => Below::Shape(None),
        None if shape.fields().any(|it| matches!(it.kind, Kind::Element)) => Below::Open,
        None => Below::Shape(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::XmlLimits;
    use crate::schema::{Content, Field, Link, Occurs};
    use crate::xml::{self, Profile};

    fn shape(name: &'static str, fields: Vec<Field>) -> Shape {
        Shape::new(name, "", Vec::new(), Content::Sequence(fields))
    }

    fn any() -> Field {
        Field::new("any", "", Kind::Element, Occurs::One)
    }

    /// A payload with one of two variants, of which `note` holds any element.
    fn schema(more: Vec<Field>) -> Schema {
        let note = Kind::Shape(Link::new(shape("note", vec![any()])));
        let variant = |name, kind| Field::new(name, "", kind, Occurs::One);
        let other = Kind::Shape(Link::new(shape("other", Vec::new())));
        let variants = Content::Choice(vec![variant("note", note), variant("other", other)]);
        let choice = Kind::Choice(Link::new(Shape::new("", "", Vec::new(), variants)));
        let mut fields = vec![Field::new("body", "", choice, Occurs::One)];
        fields.extend(more);
        Schema::new(Name::new("urn:test", "s"), shape("s", fields))
    }

    #[track_caller]
    fn check(schema: &Schema, text: &str, expected: &str) {
        let element = xml::read(text, Profile::Wire, &XmlLimits::INSIDE).unwrap();
        let to = Writer::new(XmlLimits::INSIDE);
        let adopted = adopt(&element, "urn:test", Some(schema), to).unwrap();
        assert_eq!(String::from_utf8_lossy(&adopted.canonical()), expected);
    }

    #[test]
    fn a_variant_is_adopted_and_any_element_within_it_stays_as_it_is() {
        check(
            &schema(Vec::new()),
            "<s><note><x/></note></s>",
            "<s xmlns=\"urn:test\"><note><x xmlns=\"\"></x></note></s>",
        );
        check(
            &schema(vec![any()]),
            "<s><other/><x/></s>",
            "<s xmlns=\"urn:test\"><other></other><x xmlns=\"\"></x></s>",
        );
    }
}
