//! The format of an answer in JSON. A model that can follow a JSON Schema ends the work with one of
//! its agent's final payloads. The model writes this payload as JSON, as the whole text of a reply
//! without calls.

use pumphouse::model::Format;
use pumphouse::prelude::*;
use pumphouse::schema::{self, Schema, json};
use serde_json::{Map, Value, json};

use super::Agent;
use super::peer_text;
use super::settings::Dialect;
use super::tools::legal;

/// The key of the answer if an agent has several final payloads.
const ANSWER: &str = "answer";
/// The key within the answer for the local name of the payload.
const PAYLOAD: &str = "payload";
/// The key within the answer for the payload itself.
const VALUE: &str = "value";

/// The format of an agent's answers.
#[derive(Debug)]
pub(super) struct AnswerFormat {
    /// The JSON Schema that the model has to follow.
    pub(super) format: Format,
    /// The local names of the final payloads.
    payloads: Vec<String>,
}

impl AnswerFormat {
    /// The format of an agent's answers. None if the dialect isn't native, if the agent has no
    /// final payload, or if the format can't express one of them.
    pub(super) fn of(agent: &Agent, all: &Capabilities) -> Option<AnswerFormat> {
        let settings = &agent.settings;
        let payloads = settings.final_payloads.clone();
        if settings.dialect != Dialect::Native || payloads.is_empty() {
            return None;
        }
        let seen = all.seen_by(&agent.name);
        let schemas = payloads.iter().map(|local| seen.schema(open_name(&seen, local)?));
        let schemas: Vec<&Schema> = schemas.collect::<Option<_>>()?;
        let described = |it: &&Schema| Some((it.name.local().to_owned(), described(it)?));
        let all: Vec<(String, Value)> = schemas.iter().map(described).collect::<Option<_>>()?;
        let (name, text, schema) = match (&schemas[..], &all[..]) {
            ([], _) | (_, []) => return None,
            ([one], [(name, schema)]) => (legal(name), one.doc().to_owned(), schema.clone()),
            _ => (ANSWER.to_owned(), String::new(), one_of(&all)?),
        };
        Some(AnswerFormat { format: Format::new(name, text, schema), payloads })
    }

    /// The text about the format in a prompt: how each of the final payloads is written.
    pub(super) fn text(&self, seen: &Capabilities) -> String {
        let mut text = String::new();
        for local in &self.payloads {
            let schema = open_name(seen, local).and_then(|it| seen.schema(it));
            let Some(schema) = schema else { continue };
            let example = peer_text::example(seen, schema);
            let example = match self.payloads.len() {
                1 => example,
                _ => json!({ ANSWER: { PAYLOAD: local, VALUE: example } }),
            };
            let fields = peer_text::fields_of(&peer_text::parameters(schema));
            text += &format!("{}\n{example}\n{fields}", schema.doc());
        }
        text
    }

    /// Reads an answer as a final payload, and returns its local name and the payload. The error
    /// has the local name of the payload that the answer was meant to be, and the reason.
    pub(super) fn read(
        &self,
        all: &Capabilities,
        text: &str,
    ) -> Result<(String, Element), (String, String)> {
        let first = || self.payloads.first().cloned().unwrap_or_default();
        let value = json::read(text).map_err(|it| (first(), it.to_string()))?;
        let (local, value) = match &self.payloads[..] {
            [one] => (one, &value),
            many => {
                let (local, within) = (&value[ANSWER][PAYLOAD], &value[ANSWER][VALUE]);
                let local = many.iter().find(|it| local.as_str() == Some(it.as_str()));
                let why = || format!("{ANSWER}.{PAYLOAD} names none of {}", many.join(", "));
                (local.ok_or_else(|| (first(), why()))?, within)
            }
        };
        let schema = open_name(all, local).and_then(|it| all.schema(it));
        let unknown = || (local.clone(), "nobody knows it".to_owned());
        let element = schema::from_json(schema.ok_or_else(unknown)?, value);
        Ok((local.clone(), element.map_err(|it| (local.clone(), it.to_string()))?))
    }
}

/// The JSON Schema of a payload. None if the payload isn't an object with known fields.
fn described(schema: &Schema) -> Option<Value> {
    let it = peer_text::parameters(schema);
    let is_object = it["type"] == "object" && !matches!(schema.shape.content, schema::Content::Any);
    is_object.then_some(it)
}

/// Builds a schema for one of several payloads. Each payload becomes a definition. The names of a
/// payload's own definitions get the payload's name as a prefix, since two payloads may have
/// definitions of the same name. None if a reference leads outside of its payload's schema.
fn one_of(all: &[(String, Value)]) -> Option<Value> {
    let (mut defined, mut choices) = (Map::new(), Vec::new());
    for (local, schema) in all {
        let mut schema = schema.clone();
        let own = schema.as_object_mut().and_then(|it| it.shift_remove("$defs"));
        for (name, mut it) in own.as_ref().and_then(Value::as_object).cloned().unwrap_or_default() {
            refer(&mut it, local)?;
            defined.insert(format!("{local}.{name}"), it);
        }
        refer(&mut schema, local)?;
        defined.insert(local.clone(), schema);
        let which = json!({ "type": "string", "enum": [local] });
        let value = json!({ "$ref": format!("#/$defs/{local}") });
        choices.push(object(&[(PAYLOAD, which), (VALUE, value)]));
    }
    let mut schema = object(&[(ANSWER, json!({ "anyOf": choices }))]);
    schema["$defs"] = defined.into();
    Some(schema)
}

fn object(properties: &[(&str, Value)]) -> Value {
    let names: Vec<&str> = properties.iter().map(|(name, _)| *name).collect();
    let all: Map<String, Value> =
        properties.iter().map(|(name, it)| ((*name).to_owned(), it.clone())).collect();
    json!({
        "type": "object",
        "properties": all,
        "required": names,
        "additionalProperties": false,
    })
}

/// Renames the references in a payload's schema as `one_of` renames the definitions. None if a
/// reference leads to anything but the payload or one of its definitions.
fn refer(schema: &mut Value, local: &str) -> Option<()> {
    match schema {
        Value::Object(all) => {
            if let Some(Value::String(to)) = all.get_mut("$ref") {
                *to = match to.strip_prefix("#/$defs/") {
                    Some(name) if !name.contains('/') => format!("#/$defs/{local}.{name}"),
                    None if *to == "#" => format!("#/$defs/{local}"),
                    _ => return None,
                };
            }
            all.values_mut().try_for_each(|it| refer(it, local))
        }
        Value::Array(all) => all.iter_mut().try_for_each(|it| refer(it, local)),
        _ => Some(()),
    }
}

/// The first payload with this local name that isn't reserved for the pump.
pub(super) fn open_name<'a>(all: &'a Capabilities, local: &str) -> Option<&'a Name> {
    let is_open = |it: &&Name| all.schema(it).is_some_and(|it| !it.reserved);
    all.named(local).iter().find(is_open)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_of_several_payloads_is_named_beside_its_value() {
        let part = json!({ "$ref": "#/$defs/Part" });
        let mut first = object(&[("part", part)]);
        first["$defs"] = json!({ "Part": object(&[("again", json!({ "$ref": "#" }))]) });
        let second = object(&[]);
        let all = [("report".to_owned(), first), ("refusal".to_owned(), second.clone())];
        let schema = one_of(&all).unwrap();
        let choices = &schema["properties"]["answer"]["anyOf"];
        assert_eq!(choices[1]["properties"]["payload"]["enum"], json!(["refusal"]));
        assert_eq!(choices[0]["properties"]["value"]["$ref"], "#/$defs/report");
        let defined = &schema["$defs"];
        assert_eq!(defined["report"]["properties"]["part"]["$ref"], "#/$defs/report.Part");
        let again = &defined["report.Part"]["properties"]["again"]["$ref"];
        assert_eq!((again.as_str(), &defined["refusal"]), (Some("#/$defs/report"), &second));
        let elsewhere = object(&[("x", json!({ "$ref": "https://example.org/x" }))]);
        assert_eq!(one_of(&[("a".to_owned(), elsewhere.clone()), ("b".to_owned(), second)]), None);
    }
}
