//! References of the form `${metadata.field}` in responses and in the parameters of actions.

use std::borrow::Cow;

use pumphouse::wire::Json;
use serde_json::{Map, Value};

use super::super::action::variables::{self, KnownValue, Lookup};
use super::super::action::words::Action;
use super::words::{reading, refers_to_metadata};

/// Collects the metadata fields to which a response refers, with their values. `value` returns a
/// field's value at the response's place in the reply.
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

/// Stores in an action the metadata fields to which its parameters refer, with their values.
/// `value` returns a field's value at the action's place in the reply.
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

/// Returns the meaning of `metadata` in a response that refers to metadata fields. A path refers to
/// these fields. Without a path, `metadata` means the content that the prompt showed, or all of
/// these fields if it showed none.
pub(super) fn with_metadata<'a>(
    shown: Option<Lookup<'_>>,
    metadata: &Map<String, Value>,
) -> Lookup<'a> {
    let fields = Value::Object(metadata.clone());
    let value = match shown {
        Some(Lookup::Value(it)) => it.into_owned().value,
        _ => fields.clone(),
    };
    Lookup::Value(Cow::Owned(KnownValue { value, fields: Some(fields), body: None }))
}
