//! References of the form `${metadata.field}` in responses and in the parameters of actions.

use std::borrow::Cow;

use pumphouse::wire::Json;
use serde_json::{Map, Value};

use super::super::action::parameters;
use super::super::action::variables::{self, KnownValue, Lookup};
use super::super::action::words::Action;
use super::super::metadata::Fields;

/// Collects the metadata fields to which a response refers, with their values. A declared field
/// without a value is null. `value` returns a declared field's value at the response's place in the
/// reply.
pub(super) fn metadata_in(text: &str, value: impl Fn(&str) -> Option<Value>) -> Map<String, Value> {
    if !text.contains("${metadata") {
        return Map::new();
    }
    let pieces = variables::in_prose(text);
    let fields = variables::references(&pieces).filter_map(|it| it.metadata_field());
    fields.filter_map(|it| Some((it.to_owned(), value(it)?))).collect()
}

/// Stores in an action the metadata fields to which its parameters refer, with their values. A
/// declared field without a value is null. `value` returns a declared field's value at the action's
/// place in the reply.
pub(super) fn note_fields(action: &mut Action, value: impl Fn(&str) -> Option<Value>) {
    let fields = parameters::metadata_fields(action).into_iter();
    let known: Map<String, Value> =
        fields.filter_map(|it| value(&it).map(|value| (it, value))).collect();
    action.metadata_fields = (!known.is_empty()).then_some(Json(Value::Object(known)));
}

/// Returns the meaning of `metadata` in a response of an agent with metadata fields. A path refers
/// to these fields; `noted` has those to which the response refers. Without a path, `metadata`
/// means the content that the prompt showed, or all of these fields if it showed none.
pub(super) fn with_metadata<'a>(
    shown: Option<Lookup<'_>>,
    fields: &Fields,
    noted: &Map<String, Value>,
) -> Lookup<'a> {
    let value = |name: &str| noted.get(name).cloned().unwrap_or_default();
    let all = fields.all().map(|it| (it.name().to_owned(), value(it.name())));
    let all = Value::Object(all.collect());
    let value = match shown {
        Some(Lookup::Value(it)) => it.into_owned().value,
        _ => {
            let has_value = |(_, it): &(&String, &Value)| !it.is_null();
            let noted = noted.iter().filter(has_value);
            Value::Object(noted.map(|(name, it)| (name.clone(), it.clone())).collect())
        }
    };
    Lookup::Value(Cow::Owned(KnownValue { value, fields: Some(all), ..KnownValue::default() }))
}
