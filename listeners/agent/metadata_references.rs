//! `${metadata.field}` in responses and in the parameters of actions.

use std::borrow::Cow;

use pumphouse::wire::Json;
use serde_json::{Map, Value};

use super::super::action::variables::{self, KnownValue, Lookup};
use super::super::action::words::Action;
use super::words::{reading, refers_to_metadata};

/// The metadata to which a response refers, by their fields. `value` is the value of a field at the
/// response's place.
pub(super) fn metadata_in(
    text: &str,
    rules: Option<u32>,
    value: impl Fn(&str) -> Option<Value>,
) -> Map<String, Value> {
    if !refers_to_metadata(rules) || !text.contains("${metadata") {
        return Map::new();
    }
    let pieces = variables::in_prose(text, reading(rules));
    let fields = variables::references(&pieces).filter_map(|it| it.metadata_field());
    fields.filter_map(|it| Some((it.to_owned(), value(it)?))).collect()
}

/// Records with an action the metadata to which its parameters refer. `value` is the value of a
/// field at the action's place.
pub(super) fn note_fields(
    action: &mut Action,
    rules: Option<u32>,
    value: impl Fn(&str) -> Option<Value>,
) {
    let element = || action.elements.as_ref().map(|it| it.parameters.canonical());
    let text = match &action.parameters {
        Some(text) => Cow::Borrowed(&**text),
        None => match element() {
            Some(bytes) => Cow::Owned(String::from_utf8_lossy(&bytes).into_owned()),
            None => return,
        },
    };
    if !refers_to_metadata(rules) || !text.contains("${metadata") {
        return;
    }
    let pieces = variables::pieces(&text);
    let fields = variables::references(&pieces).filter_map(|it| it.metadata_field());
    let known: Map<String, Value> =
        fields.filter_map(|it| Some((it.to_owned(), value(it)?))).collect();
    action.metadata_fields = (!known.is_empty()).then_some(Json(Value::Object(known)));
}

/// What `metadata` means in a response that refers to fields of it. Without a path it is what the
/// prompt showed.
pub(super) fn with_metadata<'a>(
    shown: Option<Lookup<'_>>,
    metadata: &Map<String, Value>,
) -> Lookup<'a> {
    let fields = Value::Object(metadata.clone());
    let value = match shown {
        Some(Lookup::Value(it)) => it.into_owned().value,
        _ => fields.clone(),
    };
    Lookup::Value(Cow::Owned(KnownValue { value, fields: Some(fields) }))
}
