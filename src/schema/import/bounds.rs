//! Limits for JSON Schemas, whose authors may be hostile. The limits bound the size of a JSON
//! Schema, and the work of checking a value against it.

use std::collections::hash_map::Entry;

use percent_encoding::percent_decode_str;
use rustc_hash::FxHashMap;
use serde_json::{Map, Value};

use super::Error;

/// How many values a JSON Schema may have, counting all objects, arrays and simple values.
pub const NODES_MAX: usize = 20_000;
/// How deep objects and arrays of a JSON Schema may be nested.
pub const DEPTH_MAX: usize = 64;
/// How many values an `enum` may list.
pub const ENUM_MAX: usize = 1_000;
/// How deep references may be nested: the target of one reference contains the next reference.
/// Beyond this depth, the shape allows any JSON value.
pub const REFERENCES_MAX: usize = 16;
/// How many properties, items and other values a JSON Schema may describe, once all its references
/// are followed.
pub const PLACES_MAX: usize = 2_048;
/// How many schemas may check the same value, through `$ref`, `anyOf` and the like.
const AT_ONCE_MAX: u64 = 1_000;
/// Checks a JSON Schema against the limits.
pub(super) fn check(root: &Value) -> Result<(), Error> {
    sizes(root)?;
    let mut work = Work { root, known: FxHashMap::default() };
    let mut next = vec![("#".to_owned(), root)];
    while let Some((path, schema)) = next.pop() {
        if let Some(reference) = schema.get("$ref") {
            referred(root, &path, reference)?;
        }
        for word in ["$dynamicRef", "$recursiveRef"] {
            if schema.get(word).is_some() {
                return Err(Error::new(&*path, format!("{word} isn't understood here")));
            }
        }
        if path != "#"
            && ["$id", "id"].iter().any(|it| schema.get(it).is_some_and(Value::is_string))
        {
            let text = "it has an $id of its own: a schema within a schema isn't understood here";
            return Err(Error::new(&*path, text));
        }
        work.schemas(&path, schema, 0)?;
        let below = below(schema).map(|(step, it)| (format!("{path}/{step}"), it));
        next.extend(below);
    }
    Ok(())
}

/// Returns the part of a JSON Schema to which a reference such as `#/$defs/part` points. As in any
/// URL, `%25` stands for `%`. Returns `None` for a reference to another document or to an anchor.
///
/// ```
/// # extern crate pumphouse_ground as pumphouse;
/// use pumphouse::schema::import::target;
///
/// let schema = serde_json::json!({ "$defs": { "a b": { "type": "string" } } });
/// assert_eq!(target(&schema, "#/$defs/a%20b"), Some(&schema["$defs"]["a b"]));
/// ```
#[must_use]
pub fn target<'a>(root: &'a Value, reference: &str) -> Option<&'a Value> {
    let pointer = percent_decode_str(reference.strip_prefix('#')?).decode_utf8().ok()?;
    root.pointer(&pointer)
}

fn referred(root: &Value, path: &str, reference: &Value) -> Result<(), Error> {
    let text = reference.as_str().unwrap_or_default();
    if target(root, text).is_some_and(|it| it.is_object() || it.is_boolean()) {
        return Ok(());
    }
    let text = format!("it refers to {reference}, which isn't in it; nothing is fetched");
    Err(Error::new(path, text))
}

fn sizes(root: &Value) -> Result<(), Error> {
    let (mut count, mut next) = (0_usize, vec![(root, 0_usize)]);
    while let Some((value, depth)) = next.pop() {
        count += 1;
        if count > NODES_MAX {
            return Err(Error::new("#", format!("it has more than {NODES_MAX} values")));
        }
        if depth > DEPTH_MAX {
            let text = format!("more than {DEPTH_MAX} objects and arrays stand in one another");
            return Err(Error::new("#", text));
        }
        match value {
            Value::Array(all) => next.extend(all.iter().map(|it| (it, depth + 1))),
            Value::Object(all) => {
                let list = all.get("enum").and_then(Value::as_array);
                if list.is_some_and(|it| it.len() > ENUM_MAX) {
                    let text = format!("an enum lists more than {ENUM_MAX} values");
                    return Err(Error::new("#", text));
                }
                next.extend(all.values().map(|it| (it, depth + 1)));
            }
            _ => {}
        }
    }
    Ok(())
}

/// Returns the schemas directly within a schema, with the path to each.
fn below(schema: &Value) -> impl Iterator<Item = (String, &Value)> {
    let all = schema.as_object().into_iter().flatten();
    all.flat_map(|(word, form)| {
        let found: Vec<(String, &Value)> = match (word.as_str(), form) {
            (
                "properties" | "patternProperties" | "$defs" | "definitions" | "dependentSchemas"
                | "dependencies",
                Value::Object(all),
            ) => all.iter().map(|(name, it)| (format!("{word}/{name}"), it)).collect(),
            ("allOf" | "anyOf" | "oneOf" | "prefixItems" | "items", Value::Array(all)) => {
                (0..).zip(all).map(|(at, it): (usize, _)| (format!("{word}/{at}"), it)).collect()
            }
            (
                "not"
                | "if"
                | "then"
                | "else"
                | "items"
                | "additionalItems"
                | "contains"
                | "additionalProperties"
                | "propertyNames"
                | "unevaluatedItems"
                | "unevaluatedProperties"
                | "contentSchema",
                schema,
            ) => vec![(word.clone(), schema)],
            _ => Vec::new(),
        };
        found.into_iter().filter(|(_, it)| it.is_object())
    })
}

/// Counts the schemas that check one value.
struct Work<'a> {
    root: &'a Value,
    /// Maps each schema to the number of schemas that check a value with it, or to `None` while
    /// they are being counted.
    known: FxHashMap<*const Value, Option<u64>>,
}

impl<'a> Work<'a> {
    fn schemas(&mut self, path: &str, schema: &'a Value, depth: usize) -> Result<u64, Error> {
        let key = std::ptr::from_ref(schema);
        match self.known.entry(key) {
            Entry::Occupied(entry) => {
                let text = "it refers to itself without an object or an array between";
                return entry.get().ok_or_else(|| Error::new(path, text));
            }
            Entry::Vacant(it) => drop(it.insert(None)),
        }
        if depth > DEPTH_MAX {
            let text = format!("more than {DEPTH_MAX} references lead to references");
            return Err(Error::new(path, text));
        }
        let mut count = 1_u64;
        for rule in at_once(self.root, schema) {
            count = count.saturating_add(self.schemas(path, rule, depth + 1)?);
        }
        if count > AT_ONCE_MAX {
            let text = format!("it holds one value against more than {AT_ONCE_MAX} schemas");
            return Err(Error::new(path, text));
        }
        self.known.insert(key, Some(count));
        Ok(count)
    }
}

/// Returns the schemas that also check the value that this schema checks.
pub fn at_once<'a>(root: &'a Value, schema: &'a Value) -> Vec<&'a Value> {
    let said = |word: &str| schema.get(word);
    let mut all = Vec::new();
    all.extend(said("$ref").and_then(Value::as_str).and_then(|it| target(root, it)));
    all.extend(["not", "if", "then", "else"].into_iter().filter_map(said));
    let lists = ["allOf", "anyOf", "oneOf"].into_iter().filter_map(said);
    all.extend(lists.filter_map(Value::as_array).flatten());
    let maps = ["dependentSchemas", "dependencies"].into_iter().filter_map(said);
    all.extend(maps.filter_map(Value::as_object).flat_map(Map::values));
    all.retain(|it| it.is_object());
    all
}
