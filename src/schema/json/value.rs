//! Finds the value in a payload's JSON form, for programs that want only a call's result.

use serde_json::{Map, Value};

use super::member::{Member, Property, members};
use crate::schema::{Content, Field, Kind, Occurs, Schema, Shape};

/// Returns the value of a payload, given the payload's JSON form. If fields are marked with
/// `#[payload(value)]`, the value is that of the first of them that the payload has. A list without
/// items counts as missing. If all of them are missing, the value is null, or the empty list.
/// Otherwise, if the payload consists of one scalar, the value is that scalar. The scalar is the
/// payload's text, or its only field. Returns `None` if neither rule applies. Callers then take
/// the whole payload as the value.
///
/// ```
/// # extern crate pumphouse_ground as pumphouse;
/// use pumphouse::Name;
/// use pumphouse::schema::{self, Content, Field, Kind, Occurs, Scalar, Schema, Shape};
/// use serde_json::json;
///
/// let took = Field::new("took_ms", "", Kind::Scalar(Scalar::U64), Occurs::One);
/// let mut title = Field::new("title", "", Kind::Scalar(Scalar::String), Occurs::One);
/// title.is_value = true;
/// let content = Content::Sequence(vec![title]);
/// let found = Shape::new("found", "What was found.", vec![took], content);
/// let found = Schema::new(Name::new("urn:x", "found"), found);
///
/// let json = json!({ "took_ms": 7, "title": "Tides" });
/// assert_eq!(schema::value(&found, &json), Some(json!("Tides")));
/// ```
#[must_use]
pub fn value(schema: &Schema, json: &Value) -> Option<Value> {
    let all = json.as_object()?;
    let shape = &schema.shape;
    let mut marked = marked(shape, |it| it.is_value, all).map(|(_, value)| value).peekable();
    if marked.peek().is_none() {
        return all.values().next().filter(|_| is_scalar(shape)).cloned();
    }
    let first = marked.peek().cloned();
    marked.find(is_there).or(first)
}

/// Returns what a payload has of the fields that are marked with `#[payload(value)]`, in their
/// order. The first is the payload's [`value`](fn@value).
#[must_use]
pub fn values(schema: &Schema, json: &Value) -> Vec<Value> {
    let all = json.as_object().into_iter();
    let marked = all.flat_map(|all| marked(&schema.shape, |it| it.is_value, all));
    marked.map(|(_, value)| value).filter(is_there).collect()
}

/// Returns what a payload has of the fields that are marked with `#[payload(note)]`, with their
/// names, in their order. A field that is false or 0, or a list without items, counts as missing.
#[must_use]
pub fn notes<'a>(schema: &'a Schema, json: &Value) -> Vec<(&'a str, Value)> {
    let all = json.as_object().into_iter();
    let marked = all.flat_map(|all| marked(&schema.shape, |it| it.is_note, all));
    let is_nothing = |it: &Value| matches!(it, Value::Bool(false)) || it.as_u64() == Some(0);
    marked.filter(|(_, value)| is_there(value) && !is_nothing(value)).collect()
}

/// Returns the names of the JSON properties that a payload of this type may have, and that this one
/// lacks.
#[must_use]
pub fn missing(schema: &Schema, json: &Value) -> Vec<String> {
    let all = members(&schema.shape).into_iter().flat_map(|it| match it {
        Member::Field(it) => vec![it],
        Member::Choice { variants, .. } => variants,
    });
    let names = all.map(|it| it.name.into_owned());
    names.filter(|name| json.get(name).is_none_or(Value::is_null)).collect()
}

/// The marked fields of a shape, with what the payload has of them. Null if a field is missing.
fn marked<'a>(
    shape: &'a Shape,
    is_marked: impl Fn(&Field) -> bool,
    all: &Map<String, Value>,
) -> impl Iterator<Item = (&'a str, Value)> {
    let fields = shape.fields().zip(members(shape)).filter(move |(field, _)| is_marked(field));
    fields.map(|(field, member)| {
        let value = match &member {
            Member::Field(it) => all.get(&*it.name).cloned().unwrap_or_default(),
            Member::Choice { variants, .. } => chosen(variants, all),
        };
        (&*field.name, value)
    })
}

/// Whether a payload has the field with this value.
fn is_there(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Array(items) => !items.is_empty(),
        _ => true,
    }
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
