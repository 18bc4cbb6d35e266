//! Makes payloads with open content from JSON parameters. Open content means that the schema allows
//! any text and any elements. The payload that an agent takes is an example.

use pumphouse::limits::XmlLimits;
use pumphouse::prelude::*;
use pumphouse::schema::json;
use pumphouse::xml::{Writer, is_name};
use serde_json::{Map, Value};

/// The name of the parameter that becomes the payload's text. It must be a string and the only
/// parameter.
const TEXT: &str = "text";

/// Makes a payload with this name. The parameters `{"text": "…"}` become the payload's text.
/// Otherwise each property becomes an element, and each item of a list becomes an element of its
/// own.
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
        // The items of a list within a list have no name, so the inner list stays JSON.
        Value::Bool(_) | Value::Number(_) | Value::Array(_) => writer.text(&json::text(value)),
    }
    Ok(())
}
