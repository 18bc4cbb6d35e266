//! Finds the value in a payload's JSON form, for programs that want only a call's result.

use serde_json::{Map, Value};

use super::member::{Member, Property, members};
use crate::schema::{Content, Field, Kind, Occurs, Schema, Shape};

/// Returns the value of a payload, given the payload's JSON form. If a field is marked with
/// `#[payload(value)]`, the value is that field's value, or null if the field is missing.
/// Otherwise, if the payload consists of one scalar, the value is that scalar. The scalar is the
/// payload's text, or its only field. Returns `None` if neither rule applies. Callers then take
/// the whole payload as the value.
///
/// ```
/// use pumphouse::Payload;
/// use pumphouse::schema;
/// use serde_json::json;
///
/// /// What was found.
/// #[derive(Payload)]
/// #[payload(ns = "urn:x")]
/// struct Found {
///     #[payload(attribute)]
///     took_ms: u64,
///     #[payload(value)]
///     title: String,
/// }
///
/// let json = json!({ "took_ms": 7, "title": "Tides" });
/// assert_eq!(schema::value(Found::schema(), &json), Some(json!("Tides")));
/// ```
#[must_use]
pub fn value(schema: &Schema, json: &Value) -> Option<Value> {
    let all = json.as_object()?;
    let shape = &schema.shape;
    let Some(marked) = shape.fields().position(|it| it.is_value) else {
        return all.values().next().filter(|_| is_scalar(shape)).cloned();
    };
    Some(match members(shape).get(marked)? {
        Member::Field(it) => all.get(&*it.name).cloned().unwrap_or_default(),
        Member::Choice { variants, .. } => chosen(variants, all),
    })
}

/// Finds the variant of a choice that occurs in `all`, and returns an object with only that
/// variant. Returns null if no variant occurs in `all`.
fn chosen(variants: &[Property<'_>], all: &Map<String, Value>) -> Value {
    let there = variants.iter().find_map(|it| Some((it.field, all.get(&*it.name)?)));
    there.map_or(Value::Null, |(variant, value)| {
        Value::Object(Map::from_iter([(variant.name.to_string(), value.clone())]))
    })
}

/// Returns whether a shape consists of one required scalar, without attributes.
fn is_scalar(shape: &Shape) -> bool {
    let is_one = |it: &Field| it.occurs == Occurs::One && matches!(it.kind, Kind::Scalar(_));
    let content = match &shape.content {
        Content::Text(_) => true,
        Content::Sequence(fields) => matches!(&fields[..], [field] if is_one(field)),
        Content::Empty | Content::Choice(_) | Content::Any => false,
    };
    content && shape.attributes.is_empty()
}
