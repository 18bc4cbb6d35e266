//! The text about an agent's peers in its prompt: each call as JSON, with its fields.

use pumphouse::limits::XmlLimits;
use pumphouse::listener::Described;
use pumphouse::prelude::*;
use pumphouse::schema::import::target;
use pumphouse::schema::{self, Content, Schema, to_json};
use pumphouse::xml::{self, Profile};
use serde_json::{Map, Value, json};

use super::super::action::call::offered;
use super::abilities::STAFF;
use super::settings::{Ability, Settings};

/// A payload that a peer takes, with the name by which an agent calls it.
pub(super) struct PeerCall<'a> {
    /// The name by which an action calls the payload.
    pub(super) name: String,
    /// The description of the call.
    pub(super) text: &'a str,
    pub(super) schema: &'a Schema,
}

/// The calls of a peer that are offered to models.
pub(super) fn calls<'a>(seen: &'a Capabilities, it: &'a Described) -> Vec<PeerCall<'a>> {
    let calls = offered(seen, it);
    // The description of a listener with only one call describes this call.
    let text = it.text.as_deref().filter(|_| calls.len() == 1);
    let call = |(name, schema): (String, &'a Schema)| PeerCall {
        name,
        text: text.unwrap_or(schema.doc()),
        schema,
    };
    calls.into_iter().map(call).collect()
}

/// The JSON Schema of a call's parameters.
pub(super) fn parameters(schema: &Schema) -> Value {
    if matches!(schema.shape.content, Content::Any) {
        let text = json!({ "type": "string", "description": "What is wanted, in words." });
        return json!({ "type": "object", "properties": { "text": text }, "required": ["text"] });
    }
    let mut schema = schema::json_schema(schema);
    if let Some(it) = schema.as_object_mut() {
        it.shift_remove("$schema");
        it.shift_remove("title");
    }
    schema
}

/// Whether a prompt shows a peer's calls. The calls of a house-staff listener are left out if the
/// text about an ability describes them already.
pub(super) fn is_shown(settings: &Settings, peer: &str) -> bool {
    let told = STAFF.iter().find(|(staff, _)| *staff == peer);
    told.is_none_or(|(_, ability): &(&str, Ability)| !settings.abilities.contains(ability))
}

/// The text about a peer in a prompt.
pub(super) fn call(seen: &Capabilities, it: &Described) -> String {
    let calls = calls(seen, it);
    let mut text = format!("## {}\n", it.name);
    if calls.len() > 1
        && let Some(about) = &it.text
    {
        text += &format!("{}\n", one_line(about));
    }
    for it in calls {
        let parameters = parameters(it.schema);
        let example = example(seen, it.schema);
        let name = Value::String(it.name);
        let about = one_line(it.text);
        text += &format!("{about}\n{{\"name\": {name}, \"parameters\": {example}}}\n");
        text += &fields_of(&parameters);
    }
    text
}

/// A description in one line, so that no line of it passes for a heading of the prompt.
fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// An example of a payload in JSON.
pub(super) fn example(seen: &Capabilities, schema: &Schema) -> Value {
    if matches!(schema.shape.content, Content::Any) {
        return json!({ "text": "…" });
    }
    let written = xml::read(seen.example(schema), Profile::Wire, &XmlLimits::INSIDE);
    let json = written.ok().and_then(|it| to_json(schema, it.view()).ok());
    json.unwrap_or_default()
}

/// The fields of an object by its JSON Schema, with a line for each.
pub(super) fn fields_of(schema: &Value) -> String {
    fields(schema, schema, 0)
}

/// The maximum number of levels of nested fields that are listed.
const DEPTH_MAX: usize = 3;

/// Lists the fields of an object at the level `depth`, and at the levels below. `root` is the
/// schema with the definitions.
fn fields(schema: &Value, root: &Value, depth: usize) -> String {
    let required = schema["required"].as_array().cloned().unwrap_or_default();
    let mut text = String::new();
    let none = Map::new();
    for (name, field) in schema["properties"].as_object().unwrap_or(&none) {
        let field = resolved(field, root);
        let often = match required.iter().any(|it| it == name) {
            true => "",
            false => ", optional",
        };
        let doc = field["description"].as_str();
        let doc = doc.map(|it| format!(": {}", one_line(it))).unwrap_or_default();
        let indent = "  ".repeat(depth);
        text += &format!("{indent}- {name} ({}{often}){doc}\n", kind(field, root));
        let inner = match field["type"].as_str() {
            Some("array") => resolved(&field["items"], root),
            _ => field,
        };
        if depth + 1 < DEPTH_MAX {
            text += &fields(inner, root, depth + 1);
        }
    }
    text
}

/// Returns the schema that a reference leads to, or else the schema itself.
fn resolved<'a>(schema: &'a Value, root: &'a Value) -> &'a Value {
    schema["$ref"].as_str().and_then(|it| target(root, it)).unwrap_or(schema)
}

/// The type of a field, in a few words.
fn kind(schema: &Value, root: &Value) -> String {
    if let Some(words) = schema["enum"].as_array() {
        let words: Vec<String> = words.iter().map(ToString::to_string).collect();
        return words.join(" or ");
    }
    match schema["type"].as_str() {
        Some("string") => schema["format"].as_str().unwrap_or("text").to_owned(),
        Some("integer") => "whole number".to_owned(),
        Some("boolean") => "true or false".to_owned(),
        Some("array") => format!("list of {}", kind(resolved(&schema["items"], root), root)),
        Some(other) => other.to_owned(),
        None => "any value".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::fields;

    #[test]
    fn fields_are_said_in_words() {
        let schema = json!({
            "$defs": { "Part": {
                "type": "object", "properties": { "at": { "type": "integer" } },
            } },
            "properties": {
                "mode": { "enum": ["fast", "slow"], "description": "How." },
                "parts": { "type": "array", "items": { "$ref": "#/$defs/Part" } },
                "url": { "type": "string" },
            },
            "required": ["url"],
        });
        assert_eq!(
            fields(&schema, &schema, 0),
            "- mode (\"fast\" or \"slow\", optional): How.\n\
             - parts (list of object, optional)\n  - at (whole number, optional)\n- url (text)\n"
        );
    }
}
