//! `${metadata.field}` in responses.

use std::borrow::Cow;

use serde_json::{Map, Value};

use super::super::action::variables::{self, KnownValue, Lookup};
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
