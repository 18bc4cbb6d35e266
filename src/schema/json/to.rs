//! Converts a payload's element to JSON, by the payload's schema.

use serde_json::{Map, Value};

use super::member::{Member, members};
use super::scalar;
use crate::limits::XmlLimits;
use crate::schema::example::{example as xml_example, of_field};
use crate::schema::walk::{At, Found, choose, entries, walk};
use crate::schema::{Content, Error, Field, Kind, Occurs, Schema, Shape, XML, error};
use crate::xml::{self, Profile, View};

/// Returns the JSON form of a payload. The conversion also checks that the element fits the
/// schema's shape.
///
/// # Errors
///
/// Returns an error for the first place where the element doesn't fit the shape. For a schema made
/// from a JSON Schema, also returns an error if the element gives one property two values.
pub fn to_json(schema: &Schema, element: View<'_>) -> Result<Value, Error> {
    let value = object(&schema.shape, At::root(element, schema)?).map(Value::Object)?;
    match &schema.source {
        Some(source) => source.outward(value).map_err(|it| error::twofold(element, &it)),
        None => Ok(value),
    }
}

/// Returns an example of the payload's JSON form: the XML from
/// [`example`](crate::schema::example), converted to JSON. Returns null if that XML can't be
/// converted.
#[must_use]
pub fn example(schema: &Schema) -> Value {
    let example = xml::read(xml_example(schema), Profile::Wire, &XmlLimits::FILE).ok();
    example.and_then(|it| to_json(schema, it.view()).ok()).unwrap_or_default()
}

/// Returns an example of a field's value in JSON.
pub(super) fn example_of(field: &Field) -> Option<Value> {
    let value = match &field.kind {
        Kind::Scalar(scalar) => scalar::to_json(scalar, &crate::schema::example_text(scalar)),
        _ => {
            let element = xml::read(of_field(field)?, Profile::Wire, &XmlLimits::FILE).ok()?;
            value(&Found::entry(field, At::alone(element.view()))).ok()?
        }
    };
    // A field that may be repeated has an array as its value.
    Some(match field.occurs {
        Occurs::Many => Value::Array(vec![value]),
        _ => value,
    })
}

fn object(shape: &Shape, at: At<'_>) -> Result<Map<String, Value>, Error> {
    let mut all = Map::new();
    if matches!(shape.content, Content::Any) {
        walk(shape, at, &mut |_| Ok(()))?;
        all.insert(XML.to_owned(), xml_text(at.view));
        return Ok(all);
    }
    let members = members(shape);
    for member in &members {
        if let Member::Field(field) = member
            && field.field.occurs == Occurs::Many
        {
            all.insert(field.name.to_string(), Value::Array(Vec::new()));
        }
    }
    walk(shape, at, &mut |found| {
        // If the shape's content is a choice, its variants share the last member.
        let last = members.len().saturating_sub(1);
        match &members[found.index.min(last)] {
            Member::Field(field) if field.field.occurs == Occurs::Many => {
                if let Some(Value::Array(items)) = all.get_mut(&*field.name) {
                    items.push(value(&found)?);
                }
            }
            Member::Field(field) => {
                all.insert(field.name.to_string(), value(&found)?);
            }
            Member::Choice { variants, .. } => {
                let (index, value) = match (&found.field.kind, &shape.content) {
                    (Kind::Choice(link), Content::Sequence(_)) => {
                        let chosen = choose(link.shape(), found.at)?;
                        (chosen.index, value(&chosen)?)
                    }
                    _ => (found.index - last, value(&found)?),
                };
                all.insert(variants[index].name.to_string(), value);
            }
        }
        Ok(())
    })?;
    // The text of a payload doesn't depend on whether its fields are attributes or elements.
    all.sort_keys();
    Ok(all)
}

fn value(found: &Found<'_>) -> Result<Value, Error> {
    match &found.field.kind {
        Kind::Scalar(scalar) => {
            let text = found.text()?;
            match scalar.accepts(&text) {
                true => Ok(scalar::to_json(scalar, &text)),
                false => Err(found.mismatch(scalar)),
            }
        }
        Kind::Shape(link) => object(link.shape(), found.at).map(Value::Object),
        Kind::Choice(link) => {
            let chosen = choose(link.shape(), found.at)?;
            let name = chosen.field.name.to_string();
            Ok(Value::Object(Map::from_iter([(name, value(&chosen)?)])))
        }
        Kind::Element => Ok(xml_text(found.at.view)),
        Kind::Map(entry) => {
            let mut all = Map::new();
            entries(found.at, &mut |key, at| {
                all.insert(key.to_owned(), value(&Found::entry(entry, at))?);
                Ok(())
            })?;
            Ok(Value::Object(all))
        }
    }
}

fn xml_text(view: View<'_>) -> Value {
    String::from_utf8_lossy(&view.canonical()).into_owned().into()
}
