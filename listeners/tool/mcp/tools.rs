//! Converts a server's definition of a tool into a payload.

use std::collections::BTreeSet;

use pumphouse::Name;
use pumphouse::schema::import::xml_name;
use pumphouse::schema::{Schema, json};
use serde_json::{Map, Value, json};

use super::super::text::shown;

/// The keys of a definition that are recorded. Other keys, such as `icons`, may change.
const SAID: [&str; 6] =
    ["name", "title", "description", "inputSchema", "outputSchema", "annotations"];

/// A tool that can be called.
#[derive(Clone, Debug)]
pub(super) struct Tool {
    /// The tool's name at its server.
    pub(super) name: String,
    /// The schema of the payload that calls the tool.
    pub(super) schema: Schema,
    /// Whether the server describes the tool in another way than the record.
    pub(super) is_changed: bool,
}

/// Returns the recorded parts of definitions, by the tools' names. Of two tools with one name, the
/// first counts.
pub(super) fn pinned(definitions: &[Value]) -> Map<String, Value> {
    let mut all = Map::new();
    for definition in definitions {
        let Some(name) = definition.get("name").and_then(Value::as_str) else { continue };
        let said =
            SAID.into_iter().filter_map(|key| Some((key.to_owned(), definition.get(key)?.clone())));
        all.entry(name).or_insert_with(|| Value::Object(said.collect()));
    }
    // Some servers list their tools in another order each time.
    all.sort_keys();
    all
}

/// Returns the digest of a definition.
pub(super) fn digest(definition: &Value) -> String {
    blake3::hash(json::sorted(definition).as_bytes()).to_hex().to_string()
}

/// Returns the server's new description of each recorded tool whose description has changed. The
/// new description is null if the server no longer has the tool.
pub(super) fn changes(
    recorded: &Map<String, Value>,
    there: &Map<String, Value>,
) -> Map<String, Value> {
    let is_changed = |(name, it): &(&String, &Value)| there.get(*name) != Some(*it);
    let changed = recorded.iter().filter(is_changed);
    changed.map(|(name, _)| (name.clone(), there.get(name).cloned().unwrap_or_default())).collect()
}

/// Returns the tools that the patterns choose. The second list has the chosen tools that can't be
/// offered, each with the reason.
pub(super) fn tools(
    definitions: &Map<String, Value>,
    patterns: &[String],
    namespace: &str,
    taken: &[&str],
) -> (Vec<Tool>, Vec<String>) {
    let mut names: BTreeSet<String> = taken.iter().map(|it| (*it).to_owned()).collect();
    let (mut tools, mut left_out) = (Vec::new(), Vec::new());
    for (name, definition) in definitions {
        if !patterns.is_empty() && !patterns.iter().any(|it| matches(it, name)) {
            continue;
        }
        let meant = xml_name(name);
        let numbered = (2..).map(|it| format!("{meant}-{it}"));
        let mut free = std::iter::once(meant.clone()).chain(numbered);
        let local = free.find(|it| !names.contains(it)).unwrap_or_default();
        names.insert(local.clone());
        match schema(Name::new(namespace, local), definition) {
            Ok(schema) => tools.push(Tool { name: name.clone(), schema, is_changed: false }),
            Err(why) => left_out.push(format!("{} ({})", shown(name), shown(&why))),
        }
    }
    (tools, left_out)
}

/// Returns whether a server says of a tool that it may be called twice with the effect of once.
pub(super) fn is_idempotent(definition: Option<&Value>) -> bool {
    let hints = definition.and_then(|it| it.get("annotations"));
    let says = |key: &str| hints.and_then(|it| it.get(key)).is_some_and(|it| *it == true);
    says("readOnlyHint") || says("idempotentHint")
}

fn schema(name: Name, definition: &Value) -> Result<Schema, String> {
    let input = definition.get("inputSchema").and_then(Value::as_object);
    let mut input = input.cloned().unwrap_or_default();
    // The protocol requires the type, and some servers leave it out.
    let of_object = [None, Some(json!("object")), Some(json!(["object"]))];
    if input.is_empty() || !of_object.contains(&input.get("type").cloned()) {
        return Err("its inputSchema is of no object".to_owned());
    }
    input.insert("type".to_owned(), "object".into());
    let mut schema = Schema::from_json_schema(name, &input.into()).map_err(|it| it.to_string())?;
    let said = |key: &str| definition.get(key).and_then(Value::as_str).map(shown);
    let text = said("description").or_else(|| said("title"));
    let mut doc =
        text.filter(|it| !it.trim().is_empty()).unwrap_or_else(|| schema.name.local().to_owned());
    if let Some(hints) = definition.get("annotations").and_then(Value::as_object) {
        let hints = hints.iter().filter(|(_, it)| it.is_boolean());
        let hints: Vec<String> = hints.map(|(key, it)| format!("{} {it}", shown(key))).collect();
        if !hints.is_empty() {
            doc = format!("{doc} Its server says of it: {}.", hints.join(", "));
        }
    }
    schema.shape.doc = doc.into();
    Ok(schema)
}

/// Returns whether a name matches a pattern, in which `*` stands for any characters or none.
pub(super) fn matches(pattern: &str, name: &str) -> bool {
    let Some((before, behind)) = pattern.split_once('*') else { return pattern == name };
    let Some(mut rest) = name.strip_prefix(before) else { return false };
    let mut pieces = behind.split('*');
    let last = pieces.next_back().unwrap_or_default();
    // The first place of each piece leaves most to the others, so no other place has to be tried.
    for piece in pieces {
        let Some(at) = rest.find(piece) else { return false };
        rest = &rest[at + piece.len()..];
    }
    rest.ends_with(last)
}
