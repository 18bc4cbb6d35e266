//! Writes parameters as a payload with open content, such as an agent's: each becomes an element.

use pumphouse::limits::XmlLimits;
use pumphouse::prelude::*;
use pumphouse::xml::{Writer, is_name};
use serde_json::{Map, Value};

/// The parameter that is the payload's own text, if it is the only one.
const TEXT: &str = "text";

/// Makes the payload. `{"text": "…"}` is its text. Otherwise each property becomes an element, and
/// a list as many elements.
pub(super) fn open_payload(
    name: &Name,
    parameters: &Map<String, Value>,
) -> Result<Element, String> {
    let mut writer = Writer::new(XmlLimits::INSIDE);
    writer.start(name.namespace(), name.local());
    match parameters.get(TEXT) {
        Some(Value::String(text)) if parameters.len() == 1 => writer.text(text),
        _ => properties(name.namespace(), parameters, &mut writer)?,
    }
    writer.end();
    writer.finish().map_err(|error| error.to_string())
}

fn properties(
    namespace: &str,
    all: &Map<String, Value>,
    writer: &mut Writer,
) -> Result<(), String> {
    for (name, value) in all {
        if !is_name(name) {
            return Err(format!("no element can be called {name:?}: begin it with a letter"));
        }
        let one = std::slice::from_ref(value);
        for item in value.as_array().map_or(one, Vec::as_slice) {
            writer.start(namespace, name);
            put(namespace, item, writer)?;
            writer.end();
        }
    }
    Ok(())
}

fn put(namespace: &str, value: &Value, writer: &mut Writer) -> Result<(), String> {
    match value {
        Value::Null => {}
        Value::String(text) => writer.text(text),
        Value::Object(all) => return properties(namespace, all, writer),
        // A list within a list has no names for its parts, so it stays JSON.
        Value::Bool(_) | Value::Number(_) | Value::Array(_) => writer.text(&value.to_string()),
    }
    Ok(())
}
