//! Rewrites the JSON Schemas of tools into forms that providers and local servers take. What a
//! model writes is checked by the tool's own schema, so a rewritten schema may allow more, but
//! never less. `docs/models.md` has the rules for each wire, with their sources.

use std::borrow::Cow;

use serde_json::{Map, Value, json};

use super::property_names::{Names, names_of};
use crate::model::prompt::Tool;
use crate::model::wire_name::Wire;
use crate::schema::import::target;

/// How many bytes the JSON Schema of a tool may have in a request to a model. Each request repeats
/// it, and providers count it as tokens of the prompt.
const TOOL_SCHEMA_BYTES_MAX: usize = 64 << 10;

/// The keywords that say nothing about a value.
const SILENT: [&str; 9] = [
    "$schema",
    "$id",
    "id",
    "$comment",
    "$anchor",
    "$vocabulary",
    "$defs",
    "definitions",
    "$dynamicAnchor",
];
/// The keywords that Gemini knows.
const OF_GEMINI: [&str; 20] = [
    "$ref",
    "additionalProperties",
    "anyOf",
    "const",
    "default",
    "description",
    "enum",
    "format",
    "items",
    "maxItems",
    "maximum",
    "minItems",
    "minimum",
    "oneOf",
    "pattern",
    "prefixItems",
    "properties",
    "required",
    "title",
    "type",
];
/// The keywords that several providers refuse at the top of a schema.
const REFUSED_ON_TOP: [&str; 9] =
    ["anyOf", "oneOf", "allOf", "not", "enum", "const", "if", "then", "else"];
/// The largest bound that every server reads as the number that it is: some have 32 bits for it.
const BOUND_MAX: f64 = i32::MAX as f64;
/// The least length whose grammar local servers refuse.
const LENGTH_MAX: u64 = 2_000;
/// The longest rule that a description repeats, in bytes.
const NOTE_BYTES_MAX: usize = 2_000;

/// Rewrites a tool for a wire.
///
/// # Errors
/// If the wire can't take the tool. The error completes a sentence about the tool.
pub(super) fn rewritten(wire: Wire, tool: &Tool) -> Result<Tool, String> {
    let inlined = Rewriter::new(wire, &tool.parameters, true).tool(tool);
    let size = |it: &Tool| it.parameters.to_string().len();
    if size(&inlined) <= TOOL_SCHEMA_BYTES_MAX {
        return Ok(inlined);
    }
    // The references may be what makes it large.
    let referring = Rewriter::new(wire, &tool.parameters, false).tool(tool);
    match size(&referring) {
        bytes if bytes <= TOOL_SCHEMA_BYTES_MAX => Ok(referring),
        bytes => Err(format!(
            "its schema has {bytes} bytes, and the limit tool_schema_bytes_max is \
             {TOOL_SCHEMA_BYTES_MAX}"
        )),
    }
}

/// Returns the JSON Schema of an answer without the bounds and the patterns that some servers
/// misread or refuse.
pub(super) fn without_wide_bounds(schema: &Value) -> Value {
    match schema {
        Value::Array(all) => all.iter().map(without_wide_bounds).collect(),
        Value::Object(all) => {
            let is_kept = |(key, it): &(&String, &Value)| match it {
                Value::String(it) if *key == "pattern" => is_of_grammar(it),
                it => !is_bound(key) || !is_wide(it),
            };
            let each = all.iter().filter(is_kept);
            each.map(|(key, it)| (key.clone(), without_wide_bounds(it))).collect()
        }
        other => other.clone(),
    }
}

struct Rewriter<'a> {
    wire: Wire,
    root: &'a Value,
    /// Whether references are replaced by what they refer to.
    inlines: bool,
    /// The definitions that are being inlined.
    open: Vec<&'a Value>,
    /// The definitions that the rewritten schema refers to, and how many of them are written.
    defined: Vec<&'a Value>,
    /// How many schemas were rewritten.
    count: usize,
}

/// The properties of a root whose rules are joined.
#[derive(Default)]
struct Joined {
    properties: Map<String, Value>,
    required: Vec<Value>,
    additional: Option<Value>,
    /// Rules that the root can't have.
    rules: Vec<Value>,
}

impl<'a> Rewriter<'a> {
    fn new(wire: Wire, root: &'a Value, inlines: bool) -> Rewriter<'a> {
        let (open, defined) = (Vec::new(), Vec::new());
        Rewriter { wire, root, inlines, open, defined, count: 0 }
    }

    fn tool(mut self, tool: &Tool) -> Tool {
        let names = names_of(self.wire, self.root, &[self.root]);
        let mut joined = Joined::default();
        self.join(self.root, &names, &mut joined);
        let Joined { properties, required, additional, rules } = joined;
        let mut out = Map::new();
        let mut put = |key: &str, it: Value| drop(out.insert(key.to_owned(), it));
        put("type", "object".into());
        put("properties", properties.into());
        if !required.is_empty() {
            put("required", required.into());
        }
        if let Some(additional) = additional {
            put("additionalProperties", additional);
        }
        let mut defined = Map::new();
        let mut place = 0;
        while let Some(definition) = self.defined.get(place).copied() {
            let names = names_of(self.wire, self.root, &[definition]);
            let is_open = self.inlines;
            self.open.extend(is_open.then_some(definition));
            let schema = self.place(definition, &names);
            self.open.clear();
            defined.insert(defined_name(place), schema);
            place += 1;
        }
        if !defined.is_empty() {
            put("$defs", defined.into());
        }
        let mut description = tool.description.clone();
        for rule in rules {
            let rule = rule.to_string();
            description += " The arguments must also be valid against ";
            description += match rule.len() > NOTE_BYTES_MAX {
                true => "further rules, which are checked.",
                false => &rule,
            };
        }
        Tool::new(tool.name.clone(), description, out.into())
    }

    /// Joins the rules of a root: what they say of properties, and the rest for the description.
    fn join(&mut self, schema: &'a Value, names: &Names, to: &mut Joined) {
        let Value::Object(said) = schema else { return };
        if let Some(referred) = self.referred(said)
            && !self.is_open(referred)
        {
            self.open.push(referred);
            self.join(referred, names, to);
            self.open.pop();
        }
        let own = said.get("properties").and_then(Value::as_object);
        for (name, inner) in own.into_iter().flatten() {
            self.property(name, inner, names, &mut to.properties);
        }
        let required = said.get("required").and_then(Value::as_array).into_iter().flatten();
        for name in required.filter_map(Value::as_str).map(|it| Value::from(names.sent(it))) {
            if !to.required.contains(&name) {
                to.required.push(name);
            }
        }
        if let Some(additional) = said.get("additionalProperties") {
            to.additional = Some(match additional {
                Value::Bool(_) => additional.clone(),
                more => self.place(more, &Names::default()),
            });
        }
        for part in said.get("allOf").and_then(Value::as_array).into_iter().flatten() {
            self.join(part, names, to);
        }
        for word in ["anyOf", "oneOf"] {
            let Some(choices) = said.get(word).and_then(Value::as_array) else { continue };
            let mut required: Option<Vec<Value>> = None;
            for choice in choices {
                let mut one = Joined::default();
                self.join(choice, names, &mut one);
                for (name, inner) in one.properties {
                    put_property(name, inner, &mut to.properties);
                }
                to.additional = to.additional.take().filter(|_| one.additional.is_some());
                required = Some(match required {
                    None => one.required,
                    Some(mut all) => {
                        all.retain(|it| one.required.contains(it));
                        all
                    }
                });
            }
            let required = required.into_iter().flatten();
            let new = required.filter(|it| !to.required.contains(it)).collect::<Vec<_>>();
            to.required.extend(new);
        }
        let rest = said.iter().filter(|(key, _)| REFUSED_ON_TOP.contains(&key.as_str()));
        let rest: Map<String, Value> = rest
            .filter(|(key, _)| *key != "allOf")
            .map(|(key, it)| (key.clone(), self.keyword(it, names)))
            .collect();
        if !rest.is_empty() {
            to.rules.push(rest.into());
        }
    }

    fn property(
        &mut self,
        name: &str,
        inner: &'a Value,
        names: &Names,
        to: &mut Map<String, Value>,
    ) {
        if *inner == Value::Bool(false) {
            return;
        }
        let own = names_of(self.wire, self.root, &[inner]);
        let mut schema = self.place(inner, &own);
        let sent = names.sent(name);
        if sent != name
            && let Some(said) = schema.as_object_mut()
        {
            describe(said, &format!("It is called {name}."));
        }
        put_property(sent.into_owned(), schema, to);
    }

    /// Rewrites the value of a keyword: a schema, or a list of schemas or values.
    fn keyword(&mut self, value: &'a Value, names: &Names) -> Value {
        match value {
            Value::Array(all) => all
                .iter()
                .map(|it| if it.is_object() { self.place(it, names) } else { it.clone() })
                .collect(),
            Value::Object(_) => self.place(value, names),
            other => other.clone(),
        }
    }

    /// Rewrites a schema within the root. `names` are those of the properties of its value.
    fn place(&mut self, schema: &'a Value, names: &Names) -> Value {
        self.count += 1;
        let Value::Object(said) = schema else {
            return if *schema == Value::Bool(false) { json!({ "not": {} }) } else { json!({}) };
        };
        // A schema that grows beyond all bounds is told by its size.
        if self.count > TOOL_SCHEMA_BYTES_MAX {
            return json!({});
        }
        if let Some(referred) = self.referred(said) {
            return self.reference(referred, said, names);
        }
        let mut out = Map::new();
        for (key, value) in said {
            // A property may have the name `id`.
            let is_silent = SILENT.contains(&key.as_str()) && (key != "id" || value.is_string());
            let is_unknown = self.wire == Wire::Gemini && !OF_GEMINI.contains(&key.as_str());
            if let (true, "allOf", Value::Array(parts)) = (is_unknown, key.as_str(), value) {
                parts.iter().for_each(|it| join_part(self.place(it, names), &mut out));
            }
            if is_silent || is_unknown {
                continue;
            }
            self.put(key, value, names, &mut out);
        }
        // Of a list of several types, each stands by itself.
        match out.get("type").and_then(Value::as_array).map(Vec::len) {
            Some(1) => out["type"] = out["type"][0].take(),
            Some(_) => out = by_type(out),
            None => {}
        }
        with_items(&mut out);
        out.into()
    }

    /// Puts a keyword of a schema into the rewritten one.
    fn put(&mut self, key: &str, value: &'a Value, names: &Names, out: &mut Map<String, Value>) {
        let rewritten = match (key, value) {
            ("properties", Value::Object(all)) => {
                let mut properties = Map::new();
                for (name, inner) in all {
                    self.property(name, inner, names, &mut properties);
                }
                properties.into()
            }
            ("required", Value::Array(all)) => {
                let each = all.iter().filter_map(Value::as_str);
                each.map(|it| Value::from(names.sent(it))).collect()
            }
            ("patternProperties" | "dependentSchemas", Value::Object(all)) => {
                let each = all.iter();
                each.map(|(name, it)| (name.clone(), self.keyword(it, &Names::default()))).collect()
            }
            ("items", Value::Array(all)) => {
                out.insert("prefixItems".to_owned(), self.each(all));
                return;
            }
            ("prefixItems", Value::Array(all)) => self.each(all),
            ("items" | "contains" | "additionalProperties" | "unevaluatedItems", it) => {
                let own = names_of(self.wire, self.root, &[it]);
                match it {
                    Value::Bool(_) if key != "items" => it.clone(),
                    it => self.place(it, &own),
                }
            }
            ("anyOf" | "oneOf" | "allOf" | "not" | "if" | "then" | "else", it) => {
                self.keyword(it, names)
            }
            (key, Value::Number(it)) if is_bound(key) && is_wide(value) => {
                if !is_limit_of_type(it) {
                    describe(out, &format!("Its {key} is {it}."));
                }
                return;
            }
            ("maxLength" | "minLength" | "maxItems" | "minItems", it)
                if self.is_local() && it.as_u64().is_some_and(|it| it >= LENGTH_MAX) =>
            {
                describe(out, &format!("Its {key} is {it}."));
                return;
            }
            ("pattern", Value::String(it)) if self.is_local() && !is_of_grammar(it) => {
                describe(out, &format!("Its pattern is {it}."));
                return;
            }
            // A note may have come before.
            ("description", Value::String(text)) => {
                let note = out.shift_remove("description");
                let note = note.as_ref().and_then(Value::as_str).map(|it| format!(" {it}"));
                format!("{text}{}", note.unwrap_or_default()).into()
            }
            (_, it) => it.clone(),
        };
        out.insert(key.to_owned(), rewritten);
    }

    fn each(&mut self, all: &'a [Value]) -> Value {
        let each = all.iter().map(|it| {
            let own = names_of(self.wire, self.root, &[it]);
            self.place(it, &own)
        });
        each.collect()
    }

    fn reference(&mut self, to: &'a Value, said: &'a Map<String, Value>, names: &Names) -> Value {
        let is_open = self.is_open(to);
        let mut schema = match () {
            () if !is_open && (self.inlines || self.wire == Wire::Gemini) => {
                self.open.push(to);
                let schema = self.place(to, names);
                self.open.pop();
                schema
            }
            // The wire has no recursion, so the inner value is checked by the tool's own schema.
            () if self.wire == Wire::Gemini => {
                let kind = to.get("type").filter(|it| it.is_string()).cloned();
                json!({ "type": kind.unwrap_or_else(|| "object".into()) })
            }
            () => {
                let known = self.defined.iter().position(|it| std::ptr::eq(*it, to));
                let place = known.unwrap_or_else(|| {
                    self.defined.push(to);
                    self.defined.len() - 1
                });
                return json!({ "$ref": format!("#/$defs/{}", defined_name(place)) });
            }
        };
        if let (Some(schema), Some(text)) = (schema.as_object_mut(), said.get("description")) {
            schema.insert("description".to_owned(), text.clone());
        }
        with_items_of(&mut schema);
        schema
    }

    fn referred(&self, said: &Map<String, Value>) -> Option<&'a Value> {
        target(self.root, said.get("$ref")?.as_str()?)
    }

    fn is_open(&self, schema: &Value) -> bool {
        self.open.iter().any(|it| std::ptr::eq(*it, schema))
    }

    /// Whether the wire is spoken by servers that make grammars of schemas.
    fn is_local(&self) -> bool {
        matches!(self.wire, Wire::OpenAiChat | Wire::Ollama)
    }
}

/// Whether llama.cpp can make a grammar of a pattern: it has both anchors, no group with a `?`, and
/// no class such as `\d`.
fn is_of_grammar(pattern: &str) -> bool {
    let has_anchors = pattern.starts_with('^') && pattern.ends_with('$');
    let has_class = |it: &str| it.starts_with(|it: char| it.is_ascii_alphanumeric());
    has_anchors && !pattern.contains("(?") && !pattern.split('\\').skip(1).any(has_class)
}

/// Joins a rewritten part of `allOf` with the schema around it, whose own keywords stay.
fn join_part(part: Value, out: &mut Map<String, Value>) {
    let Value::Object(part) = part else { return };
    for (key, more) in part {
        match (out.get_mut(&key), more) {
            (Some(Value::Object(own)), Value::Object(more)) if key == "properties" => {
                more.into_iter().for_each(|(name, it)| put_property(name, it, own));
            }
            (Some(Value::Array(own)), Value::Array(more)) if key == "required" => own.extend(more),
            (None, more) => drop(out.insert(key, more)),
            _ => {}
        }
    }
}

fn defined_name(place: usize) -> String {
    format!("part_{}", place + 1)
}

/// Adds a property. If it has another schema already, a value may be as either says.
fn put_property(name: String, schema: Value, to: &mut Map<String, Value>) {
    match to.get_mut(&name) {
        None => drop(to.insert(name, schema)),
        Some(there) if *there == schema => {}
        Some(there) => *there = json!({ "anyOf": [there.take(), schema] }),
    }
}

/// Writes a schema with several types as a choice of schemas with one type each.
fn by_type(mut said: Map<String, Value>) -> Map<String, Value> {
    let types = said.shift_remove("type").unwrap_or_default();
    let mut out = Map::new();
    for word in ["title", "description", "default"] {
        out.extend(said.shift_remove(word).map(|it| (word.to_owned(), it)));
    }
    let one = |kind: &Value| {
        let mut one = Map::from_iter([("type".to_owned(), kind.clone())]);
        if *kind == "null" {
            return Value::Object(one);
        }
        one.extend(said.clone());
        if let Some(Value::Array(words)) = one.get_mut("enum") {
            words.retain(|it| !it.is_null());
        }
        with_items(&mut one);
        Value::Object(one)
    };
    let each = types.as_array().into_iter().flatten().map(one).collect();
    out.insert("anyOf".to_owned(), Value::Array(each));
    out
}

/// Gives an array the keyword `items`, without which some providers refuse it.
fn with_items(said: &mut Map<String, Value>) {
    let is_array = said.get("type").is_some_and(|it| it == "array");
    if !is_array || said.get("items").is_some_and(Value::is_object) {
        return;
    }
    let mut each: Vec<Value> = Vec::new();
    for item in said.get("prefixItems").and_then(Value::as_array).into_iter().flatten() {
        if !each.contains(item) {
            each.push(item.clone());
        }
    }
    let items = match each.len() {
        0 => json!({}),
        1 => each.swap_remove(0),
        _ => json!({ "anyOf": each }),
    };
    said.insert("items".to_owned(), items);
}

fn with_items_of(schema: &mut Value) {
    if let Some(said) = schema.as_object_mut() {
        with_items(said);
    }
}

/// Adds a sentence to a schema's description.
fn describe(said: &mut Map<String, Value>, note: &str) {
    let text = match said.get("description").and_then(Value::as_str) {
        Some(text) => Cow::Owned(format!("{text} {note}")),
        None => Cow::Borrowed(note),
    };
    said.insert("description".to_owned(), text.into_owned().into());
}

fn is_bound(key: &str) -> bool {
    matches!(key, "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum")
}

fn is_wide(bound: &Value) -> bool {
    bound.as_f64().is_some_and(|it| it.abs() > BOUND_MAX)
}

/// Whether a bound only says of which type a number is.
fn is_limit_of_type(bound: &serde_json::Number) -> bool {
    const SAFE: i128 = 9_007_199_254_740_991;
    let limits: [i128; 7] = [
        i32::MIN.into(),
        u32::MAX.into(),
        i64::MIN.into(),
        i64::MAX.into(),
        u64::MAX.into(),
        SAFE,
        -SAFE,
    ];
    let whole = bound.as_i64().map(i128::from).or(bound.as_u64().map(i128::from));
    whole.is_none_or(|it| limits.contains(&it))
}

#[cfg(test)]
mod tests;
