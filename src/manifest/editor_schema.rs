//! The manifest's JSON Schema, for editors. The schema is made from the table that manifests are
//! checked with.

use serde_json::{Map, Value, json};

use crate::manifest::key_table;
use crate::manifest::key_table::{Key, Kind, ORGANISM};

/// The JSON Schema of a manifest. A copy is the file `schemas/organism.schema.json`.
#[must_use]
pub fn json_schema() -> Value {
    let mut schema = Map::new();
    schema.insert("$schema".into(), "https://json-schema.org/draft/2020-12/schema".into());
    schema.insert("title".into(), "A Pumphouse manifest, organism.yaml".into());
    if let Value::Object(rest) = of(&ORGANISM) {
        schema.extend(rest);
    }
    schema.into()
}

/// The pattern of a text with a variable. An editor doesn't know the variable's value.
const FILLED: &str = r"\$\{";

fn of(kind: &Kind) -> Value {
    let or_filled = |it: Value| json!({ "anyOf": [it, { "type": "string", "pattern": FILLED }] });
    match kind {
        Kind::Path => json!({ "type": "string", "minLength": 1 }),
        Kind::Text => json!({ "type": ["string", "number"], "minLength": 1 }),
        Kind::Name => or_filled(json!({ "type": "string", "pattern": "^[A-Za-z0-9_.-]+$" })),
        Kind::Word(words) => {
            let each =
                words.iter().map(|(word, text)| json!({ "const": word, "description": text }));
            let each: Vec<Value> = each.collect();
            or_filled(json!({ "oneOf": each }))
        }
        Kind::Allowance => {
            let word = json!({ "const": "unlimited" });
            or_filled(json!({ "anyOf": [{ "type": "integer", "minimum": 0 }, spaced(), word] }))
        }
        Kind::Keep => {
            let number = json!({ "type": "integer", "minimum": 1, "maximum": u32::MAX });
            let text = json!({ "type": "string", "pattern": "^[0-9_]+ tokens$" });
            or_filled(json!({ "anyOf": [number, text] }))
        }
        Kind::Count { min, max } => {
            let number = json!({ "type": "integer", "minimum": min, "maximum": max });
            or_filled(json!({ "anyOf": [number, spaced()] }))
        }
        Kind::Flag => or_filled(json!({ "type": "boolean" })),
        Kind::FlagOrNames => {
            json!({ "anyOf": [of(&Kind::Flag), of(&Kind::List(Box::new(Kind::Name)))] })
        }
        Kind::Number => or_filled(json!({ "type": "number" })),
        Kind::Bytes { min } => {
            let number = json!({ "type": "integer", "minimum": min });
            let text =
                json!({ "type": "string", "pattern": "^[0-9_]+ *(B|[kK]B|[MG]B|[KMG]iB)?$" });
            or_filled(json!({ "anyOf": [number, text] }))
        }
        Kind::Time { .. } => or_filled(json!({ "type": "string", "pattern": "[a-z]$" })),
        Kind::Address => or_filled(json!({ "type": "string", "pattern": ":[0-9]+$" })),
        Kind::Words(map) => json!({ "anyOf": [of(&Kind::Text), keys(map)] }),
        Kind::List(of_items) => json!({ "type": ["array", "null"], "items": of(of_items) }),
        Kind::Map(map) => keys(map),
        Kind::Named(of_values) => json!({
            "type": ["object", "null"],
            "propertyNames": { "pattern": "^[A-Za-z0-9_.-]+$" },
            "additionalProperties": of(of_values),
        }),
        Kind::Use { by, maps, other } => {
            let each = maps.iter().map(|(word, map)| {
                let mut schema = keys(map);
                schema["properties"][by] = match word.strip_prefix('*') {
                    Some(end) => {
                        let pattern = format!("{}$", end.replace('.', "\\."));
                        json!({ "type": "string", "pattern": pattern })
                    }
                    None => json!({ "const": word }),
                };
                schema
            });
            let words: Vec<&str> = maps.iter().map(|(word, _)| *word).collect();
            let other = other.iter().map(|map| {
                let mut schema = keys(map);
                schema["properties"][by]["not"] = json!({ "enum": words });
                schema
            });
            json!({ "oneOf": each.chain(other).collect::<Vec<_>>() })
        }
        Kind::Settings => json!({ "type": ["object", "null"] }),
        Kind::Any => json!({}),
    }
}

/// A whole number whose digits are grouped, as in `1_000`. YAML reads such a number as a text.
fn spaced() -> Value {
    json!({ "type": "string", "pattern": "^[0-9_]*[0-9][0-9_]*$" })
}

/// The value of a key's example.
fn example(key: &Key) -> Value {
    let parsed = serde_yaml::from_str::<Map<String, Value>>(&key.example);
    parsed.ok().and_then(|mut it| it.remove(key.name)).unwrap_or_default()
}

fn keys(map: &key_table::Map) -> Value {
    let described = |key: &Key| {
        let mut schema = of(&key.kind);
        if let Some(it) = schema.as_object_mut() {
            it.insert("description".into(), key.text.into());
            it.insert("examples".into(), json!([example(key)]));
        }
        (key.name.to_owned(), schema)
    };
    let properties: Map<String, Value> = map.keys.iter().map(described).collect();
    let needed: Vec<&str> = map.keys.iter().filter(|it| it.needed).map(|it| it.name).collect();
    let mut schema = json!({
        "type": ["object", "null"],
        "additionalProperties": false,
        "properties": properties,
    });
    if !needed.is_empty() {
        schema["required"] = json!(needed);
    }
    if !map.one_of.is_empty() {
        let each = map.one_of.iter().map(|it| json!({ "required": [it] }));
        schema["oneOf"] = each.collect();
    }
    schema
}
