//! Reduces the JSON Schema of an answer's format to the keywords that a provider supports. The
//! answer is checked against the whole schema when it arrives.

use serde_json::{Map, Value, json};

/// The keywords that OpenAI's strict mode supports. The mode also wants all properties to be
/// required, and no other properties to be allowed.
///
/// See <https://platform.openai.com/docs/guides/structured-outputs>.
const STRICT: [&str; 20] = [
    "$defs",
    "$ref",
    "additionalProperties",
    "anyOf",
    "const",
    "description",
    "enum",
    "exclusiveMaximum",
    "exclusiveMinimum",
    "format",
    "items",
    "maxItems",
    "maximum",
    "minItems",
    "minimum",
    "multipleOf",
    "pattern",
    "properties",
    "required",
    "type",
];
const STRICT_FORMATS: [&str; 9] =
    ["date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"];

/// The part of JSON Schema that a provider supports.
struct Known {
    /// Supported keywords that not every provider supports. [`reduced`] itself names the others.
    keys: &'static [&'static str],
    formats: &'static [&'static str],
    /// Whether every object has to forbid properties that it doesn't name.
    is_closed: bool,
}

/// See <https://platform.claude.com/docs/en/build-with-claude/structured-outputs>. Anthropic also
/// doesn't support recursive schemas, which [`anthropic`] checks.
const ANTHROPIC: Known = Known {
    keys: &[],
    formats: &[
        "date-time",
        "time",
        "date",
        "duration",
        "email",
        "hostname",
        "uri",
        "ipv4",
        "ipv6",
        "uuid",
    ],
    is_closed: true,
};

/// See <https://ai.google.dev/gemini-api/docs/structured-output>.
const GEMINI: Known = Known {
    keys: &["minItems", "maxItems", "minimum", "maximum"],
    formats: &["date-time", "date", "time"],
    is_closed: false,
};

/// Whether OpenAI's strict mode supports a schema.
pub(super) fn is_strict(schema: &Value) -> bool {
    let Some(it) = schema.as_object().filter(|it| !it.is_empty()) else { return false };
    if !it.keys().all(|key| STRICT.contains(&key.as_str())) {
        return false;
    }
    let is_known = |format: &Value| format.as_str().is_some_and(|it| STRICT_FORMATS.contains(&it));
    let is_object = may_be_object(it);
    let is_named = |name: &String| {
        it.get("required").and_then(Value::as_array).is_some_and(|all| all.contains(&json!(name)))
    };
    let properties = it.get("properties").and_then(Value::as_object);
    let is_closed = it.get("additionalProperties") == Some(&Value::Bool(false));
    // The provider wants optional properties to be required and nullable. That is another schema.
    let all_required = properties.is_none_or(|all| all.keys().all(is_named));
    it.get("format").is_none_or(is_known)
        && (!is_object || is_closed && all_required)
        && within(it).all(is_strict)
}

/// A schema reduced to what Anthropic supports. None if the provider can't take it.
pub(super) fn anthropic(schema: &Value) -> Option<Value> {
    reduced(schema, &ANTHROPIC).filter(|_| !leads_to_itself(schema))
}

/// A schema reduced to what Gemini supports. None if the provider can't take it.
pub(super) fn gemini(schema: &Value) -> Option<Value> {
    reduced(schema, &GEMINI)
}

/// A schema without the keywords that a provider doesn't support. None if an object allows more
/// properties than the provider does, or if a reduced schema would say nothing about its values.
fn reduced(schema: &Value, known: &Known) -> Option<Value> {
    let it = schema.as_object().filter(|it| !it.is_empty())?;
    let mut out = Map::new();
    let mut put = |key: &str, value: Value| drop(out.insert(key.to_owned(), value));
    if let Some(all) = it.get("$defs").and_then(Value::as_object) {
        put("$defs", each(all, known)?);
    }
    if let Some(reference) = it.get("$ref") {
        put("$ref", reference.clone());
        return Some(out.into());
    }
    for key in ["type", "description", "title"].iter().chain(known.keys) {
        if let Some(value) = it.get(*key) {
            put(key, value.clone());
        }
    }
    if let Some(values) = it.get("enum") {
        put("enum", values.clone());
    } else if let Some(value) = it.get("const") {
        put("enum", json!([value]));
    }
    let is_format = |it: &&Value| it.as_str().is_some_and(|it| known.formats.contains(&it));
    if let Some(format) = it.get("format").filter(is_format) {
        put("format", format.clone());
    }
    if let Some(items) = it.get("items") {
        put("items", reduced(items, known)?);
    }
    // If a choice says only which properties are required, all choices are left to the later check
    // of the answer.
    let choices = it.get("anyOf").or(it.get("oneOf")).and_then(Value::as_array);
    if let Some(all) = choices.and_then(|all| all.iter().map(|it| typed(it, known)).collect()) {
        put("anyOf", Value::Array(all));
    }
    if may_be_object(it) {
        let none = Map::new();
        let properties = it.get("properties").and_then(Value::as_object).unwrap_or(&none);
        put("properties", each(properties, known)?);
        let more = it.get("additionalProperties").unwrap_or(&Value::Bool(true));
        if known.is_closed && *more != Value::Bool(false) {
            return None;
        }
        put("additionalProperties", more.clone());
        if let Some(required) = it.get("required") {
            put("required", required.clone());
        }
    }
    let says_what = ["type", "enum", "anyOf"].iter().any(|it| out.contains_key(*it));
    says_what.then(|| out.into())
}

/// Whether a schema allows an object: by its type, or by one of its types.
fn may_be_object(it: &Map<String, Value>) -> bool {
    match it.get("type") {
        Some(Value::Array(all)) => all.iter().any(|it| it == "object"),
        Some(one) => one == "object",
        None => false,
    }
}

/// A choice, reduced, if it says something about the type or the values.
fn typed(schema: &Value, known: &Known) -> Option<Value> {
    let says_what = ["type", "enum", "const", "$ref", "anyOf", "oneOf"];
    says_what.iter().any(|it| schema.get(it).is_some()).then(|| reduced(schema, known))?
}

fn each(all: &Map<String, Value>, known: &Known) -> Option<Value> {
    let reduced = |(name, it): (&String, &Value)| Some((name.clone(), reduced(it, known)?));
    all.iter().map(reduced).collect::<Option<Map<String, Value>>>().map(Value::Object)
}

/// The schemas directly within a schema.
fn within(it: &Map<String, Value>) -> impl Iterator<Item = &Value> {
    let named = ["properties", "$defs"].into_iter().filter_map(move |key| it.get(key)?.as_object());
    let listed = it.get("anyOf").and_then(Value::as_array).into_iter().flatten();
    named.flat_map(Map::values).chain(listed).chain(it.get("items"))
}

/// Whether a schema is recursive.
fn leads_to_itself(schema: &Value) -> bool {
    let Some(defined) = schema["$defs"].as_object() else { return has_reference(schema, "#") };
    // Definitions that refer to no remaining definition are removed, again and again. If any
    // definitions remain, they form a circle or lead to one.
    let mut left: Vec<&String> = defined.keys().collect();
    loop {
        let before = left.len();
        let all = left.clone();
        left.retain(|name| {
            all.iter().any(|it| has_reference(&defined[*name], &format!("#/$defs/{it}")))
        });
        if left.len() == before {
            return !left.is_empty() || has_reference(schema, "#");
        }
    }
}

fn has_reference(schema: &Value, to: &str) -> bool {
    match schema {
        Value::Object(all) => {
            all.get("$ref").is_some_and(|it| it == to)
                || all.values().any(|it| has_reference(it, to))
        }
        Value::Array(all) => all.iter().any(|it| has_reference(it, to)),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(properties: &Value, required: &[&str]) -> Value {
        json!({
            "type": "object",
            "properties": properties,
            "required": required,
            "additionalProperties": false,
        })
    }

    #[test]
    fn a_schema_is_strict_where_all_is_required_and_nothing_else_may_be_there() {
        let plain = object(&json!({ "a": { "type": "string" } }), &["a"]);
        assert!(is_strict(&plain));
        assert!(is_strict(&object(&json!({ "b": { "type": "array", "items": plain } }), &["b"])));
        assert!(!is_strict(&object(&json!({ "a": { "type": "string" } }), &[])));
        assert!(!is_strict(&json!({ "type": "object", "properties": {} })));
        for inner in [
            json!({}),
            json!({ "type": "string", "maxLength": 3 }),
            json!({ "type": "string", "format": "uri" }),
            json!({ "oneOf": [{ "type": "string" }] }),
        ] {
            assert!(!is_strict(&object(&json!({ "a": inner }), &["a"])), "{inner}");
        }
    }

    #[test]
    fn an_object_that_may_be_null_is_an_object() {
        let mut maybe = object(&json!({ "a": { "type": "string" } }), &["a"]);
        maybe["type"] = json!(["object", "null"]);
        let schema = object(&json!({ "m": maybe }), &["m"]);
        assert!(is_strict(&schema));
        assert_eq!(anthropic(&schema).as_ref(), Some(&schema));
        assert_eq!(gemini(&schema).as_ref(), Some(&schema));
        maybe["additionalProperties"] = json!(true);
        let open = object(&json!({ "m": maybe }), &["m"]);
        assert!(!is_strict(&open));
        assert_eq!(anthropic(&open), None);
    }

    #[test]
    fn what_a_provider_does_not_know_is_left_out() {
        let text = json!({ "type": "string", "pattern": "^a", "format": "uri", "minLength": 2 });
        let number = json!({ "type": "integer", "minimum": 0 });
        let schema = object(&json!({ "a": text, "n": number, "k": { "const": 1 } }), &["a"]);
        let text = json!({ "type": "string", "format": "uri" });
        let constant = json!({ "enum": [1] });
        let expected =
            object(&json!({ "a": text, "n": { "type": "integer" }, "k": constant }), &["a"]);
        assert_eq!(anthropic(&schema), Some(expected));
        let text = json!({ "type": "string" });
        let expected = object(&json!({ "a": text, "n": number, "k": constant }), &["a"]);
        assert_eq!(gemini(&schema), Some(expected));
    }

    #[test]
    fn a_choice_by_what_is_required_is_left_to_the_check() {
        let mut schema = object(&json!({ "a": { "type": "string" } }), &[]);
        let expected = anthropic(&schema);
        schema["oneOf"] = json!([{ "required": ["a"] }, { "required": ["b"] }]);
        assert_eq!(anthropic(&schema), expected);
    }

    #[test]
    fn a_form_that_a_provider_cannot_be_told_is_none() {
        let map = json!({ "type": "object", "additionalProperties": { "type": "string" } });
        let schema = object(&json!({ "map": map }), &["map"]);
        assert_eq!(anthropic(&schema), None);
        assert!(gemini(&schema).is_some());
        assert_eq!(gemini(&object(&json!({ "any": {} }), &["any"])), None);
        let part = object(&json!({ "next": { "$ref": "#/$defs/Part" } }), &[]);
        let mut schema = object(&json!({ "part": { "$ref": "#/$defs/Part" } }), &["part"]);
        schema["$defs"] = json!({ "Part": part });
        assert_eq!(anthropic(&schema), None, "it leads to itself");
        schema["$defs"]["Part"] = object(&json!({}), &[]);
        assert!(anthropic(&schema).is_some());
    }
}
