//! A small validator for tests: checks a value against a JSON Schema. The validator knows only the
//! keywords of draft 2020-12 that this crate writes. Any other keyword is an error, so that no
//! keyword is overlooked.

use regex::Regex;
use serde_json::Value;

/// Checks `value` against `schema`, which is a part of `root`. Returns the first violation as an
/// error.
pub(super) fn judge(root: &Value, schema: &Value, value: &Value) -> Result<(), String> {
    let all = schema.as_object().ok_or("a schema is an object")?;
    for (word, said) in all {
        let right = match (word.as_str(), value) {
            ("type", _) => is_type(said, value),
            ("$ref", _) => {
                let name = said.as_str().and_then(|it| it.strip_prefix("#/$defs/"));
                judge(root, &root["$defs"][name.ok_or("a reference")?], value)?;
                true
            }
            ("enum", _) => list(said).contains(value),
            ("properties", Value::Object(object)) => {
                for (name, value) in object {
                    if let Some(schema) = said.get(name) {
                        judge(root, schema, value).map_err(|it| format!(".{name}{it}"))?;
                    }
                }
                true
            }
            ("additionalProperties", Value::Object(object)) => {
                let declared = all.get("properties");
                let more =
                    object.iter().filter(|it| declared.is_none_or(|all| all.get(it.0).is_none()));
                for (name, value) in more {
                    if *said == Value::Bool(false) {
                        return Err(format!(".{name} is too much"));
                    }
                    judge(root, said, value).map_err(|it| format!(".{name}{it}"))?;
                }
                true
            }
            ("required", Value::Object(object)) => {
                list(said).iter().all(|it| it.as_str().is_some_and(|it| object.contains_key(it)))
            }
            ("items", Value::Array(items)) => {
                for (place, value) in items.iter().enumerate() {
                    judge(root, said, value).map_err(|it| format!("[{place}]{it}"))?;
                }
                true
            }
            ("minItems", Value::Array(items)) => Some(items.len() as u64) >= said.as_u64(),
            ("maxItems", Value::Array(items)) => Some(items.len() as u64) <= said.as_u64(),
            ("oneOf", _) => fits(root, said, value) == 1,
            ("anyOf", _) => fits(root, said, value) > 0,
            ("allOf", _) => fits(root, said, value) == list(said).len(),
            ("not", _) => judge(root, said, value).is_err(),
            ("minimum", Value::Number(it)) => it.as_f64() >= said.as_f64(),
            ("maximum", Value::Number(it)) => said.is_null() || it.as_f64() <= said.as_f64(),
            ("minLength", Value::String(it)) => Some(it.chars().count() as u64) >= said.as_u64(),
            ("maxLength", Value::String(it)) => Some(it.chars().count() as u64) <= said.as_u64(),
            ("pattern", Value::String(regex)) => {
                let pattern = Regex::new(said.as_str().ok_or("a pattern")?);
                pattern.map_err(|it| it.to_string())?.is_match(regex)
            }
            _ => KNOWN.contains(&word.as_str()),
        };
        if !right {
            return Err(format!(" breaks {word}: {said}, being {value}"));
        }
    }
    Ok(())
}

/// The keywords that [`judge`] ignores if they don't apply to a value's type. Some of these
/// keywords restrict no value at all.
const KNOWN: [&str; 18] = [
    "$schema",
    "$defs",
    "title",
    "description",
    "format",
    "contentEncoding",
    "contentMediaType",
    "properties",
    "additionalProperties",
    "required",
    "items",
    "minItems",
    "maxItems",
    "minimum",
    "maximum",
    "minLength",
    "maxLength",
    "pattern",
];

fn is_type(said: &Value, value: &Value) -> bool {
    match said.as_str() {
        Some("object") => value.is_object(),
        Some("array") => value.is_array(),
        Some("string") => value.is_string(),
        Some("boolean") => value.is_boolean(),
        Some("number") => value.is_number(),
        Some("integer") => value.is_i64() || value.is_u64(),
        _ => false,
    }
}

fn list(said: &Value) -> &[Value] {
    said.as_array().map_or(&[], Vec::as_slice)
}

fn fits(root: &Value, said: &Value, value: &Value) -> usize {
    list(said).iter().filter(|it| judge(root, it, value).is_ok()).count()
}
