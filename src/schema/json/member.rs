//! Assigns a JSON property to each field of a shape. Conversions in both directions and the JSON
//! Schema use the same assignment.

use std::borrow::Cow;
use std::collections::BTreeSet;

use crate::schema::{Content, Field, Kind, Occurs, Shape, TEXT};

/// The JSON properties of a field. There is one member for each field, in the order of the shape's
/// fields. If the shape's content is a choice, its variants share one member, which is the last
/// one.
pub(in crate::schema) enum Member<'a> {
    /// The field has a property of its own.
    Field(Property<'a>),
    /// Each variant of a choice has a property of its own. Exactly one of these properties must be
    /// there, or at most one if the choice is optional.
    Choice { occurs: Occurs, variants: Vec<Property<'a>> },
}

/// A property, and the field whose value the property holds.
pub(in crate::schema) struct Property<'a> {
    pub(in crate::schema) name: Cow<'a, str>,
    pub(in crate::schema) field: &'a Field,
}

/// Returns the members of a shape's fields. An attribute and an element may have the same name, but
/// two properties of one object can't. So a number is appended to a name that is already taken.
pub(in crate::schema) fn members(shape: &Shape) -> Vec<Member<'_>> {
    let mut names = Names::default();
    let member = |field, names: &mut Names| match variants(field) {
        Some(variants) => names.choice(field.occurs, variants),
        None => Member::Field(names.property(field)),
    };
    let mut members: Vec<Member<'_>> =
        shape.attributes.iter().map(|it| Member::Field(names.property(it))).collect();
    match &shape.content {
        Content::Text(field) => members.push(Member::Field(names.property(field))),
        Content::Sequence(fields) => members.extend(fields.iter().map(|it| member(it, &mut names))),
        Content::Choice(variants) => members.push(names.choice(Occurs::One, variants)),
        Content::Empty | Content::Any => {}
    }
    members
}

/// Returns the variants of a field that is a choice, if the field may not be repeated.
fn variants(field: &Field) -> Option<&[Field]> {
    match (&field.kind, field.occurs) {
        (Kind::Choice(link), Occurs::One | Occurs::Optional) => match &link.shape().content {
            Content::Choice(variants) => Some(variants),
            _ => None,
        },
        _ => None,
    }
}

/// The property names that are already taken.
#[derive(Default)]
struct Names(BTreeSet<String>);

impl Names {
    fn choice<'a>(&mut self, occurs: Occurs, variants: &'a [Field]) -> Member<'a> {
        Member::Choice { occurs, variants: variants.iter().map(|it| self.property(it)).collect() }
    }

    fn property<'a>(&mut self, field: &'a Field) -> Property<'a> {
        let name = if field.name.is_empty() { TEXT } else { &field.name };
        if self.0.insert(name.to_owned()) {
            return Property { name: Cow::Borrowed(name), field };
        }
        let numbered = (2..).map(|it| format!("{name}-{it}"));
        let mut free = numbered.skip_while(|it| self.0.contains(it));
        let name = free.next().unwrap_or_default();
        self.0.insert(name.clone());
        Property { name: Cow::Owned(name), field }
    }
}
