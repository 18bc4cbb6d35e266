//! Names of properties that a provider takes, in place of those that it refuses. What a model
//! writes gets its own names back.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use crate::model::wire_name::Wire;
use crate::schema::import::at_once;

/// The longest name of a property that each provider takes, in characters.
const NAME_MAX: usize = 64;

/// Maps names of properties to the names that are sent instead.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Names(BTreeMap<String, String>);

impl Names {
    /// The name that is sent for a property.
    pub(super) fn sent<'a>(&'a self, name: &'a str) -> Cow<'a, str> {
        Cow::Borrowed(self.0.get(name).map_or(name, |it| it))
    }

    /// The name of a property that was sent by this name.
    fn own(&self, sent: &str) -> Option<&str> {
        self.0.iter().find(|(_, it)| *it == sent).map(|(name, _)| name.as_str())
    }
}

/// Returns the names for the properties of a value that these schemas describe. Empty if the wire
/// takes all of them.
pub(super) fn names_of(wire: Wire, root: &Value, schemas: &[&Value]) -> Names {
    if !matches!(wire, Wire::AnthropicMessages | Wire::Gemini) {
        return Names::default();
    }
    let all = together(root, schemas);
    let properties = all.iter().filter_map(|it| it.get("properties")?.as_object());
    let all: BTreeSet<&String> = properties.flat_map(Map::keys).collect();
    let mut taken: BTreeSet<String> =
        all.iter().filter(|it| is_taken(it)).map(|it| (*it).clone()).collect();
    let mut names = BTreeMap::new();
    for name in all.into_iter().filter(|it| !is_taken(it)) {
        let like = like(name);
        let mut numbered = (2..).map(|it| format!("{like}_{it}"));
        let free = Some(like.clone()).filter(|it| !taken.contains(it));
        let free = free.or_else(|| numbered.find(|it| !taken.contains(it))).unwrap_or_default();
        taken.insert(free.clone());
        names.insert(name.clone(), free);
    }
    Names(names)
}

/// Whether providers take a name.
fn is_taken(name: &str) -> bool {
    !name.is_empty() && name.len() <= NAME_MAX && name.chars().all(is_inside)
}

fn is_inside(it: char) -> bool {
    it.is_ascii_alphanumeric() || matches!(it, '_' | '.' | '-')
}

/// A name that providers take, with room for a number.
fn like(name: &str) -> String {
    let letters = name.chars().map(|it| if is_inside(it) { it } else { '_' });
    let like: String = letters.take(NAME_MAX - 5).collect();
    if like.is_empty() { "_".to_owned() } else { like }
}

/// The schemas that check a value together: these, and those that they name or choose from.
fn together<'a>(root: &'a Value, schemas: &[&'a Value]) -> Vec<&'a Value> {
    let (mut all, mut next): (Vec<&Value>, Vec<&Value>) = (Vec::new(), schemas.to_vec());
    while let Some(schema) = next.pop() {
        if all.iter().any(|it| std::ptr::eq(*it, schema)) {
            continue;
        }
        all.push(schema);
        next.extend(at_once(root, schema));
    }
    all
}

/// Whether a wire refuses a name anywhere in a schema.
pub(super) fn has_refused(wire: Wire, root: &Value) -> bool {
    fn any(value: &Value) -> bool {
        match value {
            Value::Object(all) => {
                let named = all.get("properties").and_then(Value::as_object);
                named.is_some_and(|it| it.keys().any(|name| !is_taken(name)))
                    || all.values().any(any)
            }
            Value::Array(all) => all.iter().any(any),
            _ => false,
        }
    }
    matches!(wire, Wire::AnthropicMessages | Wire::Gemini) && any(root)
}

/// The direction in which names are replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Toward {
    /// From the tool's own names to those that are sent.
    Provider,
    /// From the names that were sent to the tool's own.
    Tool,
}

/// Replaces the names in a value that a tool's schema describes.
pub(super) fn renamed(wire: Wire, root: &Value, value: Value, toward: Toward) -> Value {
    Renaming { wire, root, toward }.value(value, &[root])
}

struct Renaming<'a> {
    wire: Wire,
    root: &'a Value,
    toward: Toward,
}

impl<'a> Renaming<'a> {
    fn value(&self, value: Value, schemas: &[&'a Value]) -> Value {
        let all = together(self.root, schemas);
        match value {
            Value::Object(fields) => {
                let names = names_of(self.wire, self.root, schemas);
                fields.into_iter().map(|(name, it)| self.field(&names, &name, it, &all)).collect()
            }
            Value::Array(items) => {
                let each = |(at, it)| self.value(it, &items_of(&all, at));
                items.into_iter().enumerate().map(each).collect()
            }
            other => other,
        }
    }

    fn field(&self, names: &Names, name: &str, value: Value, all: &[&'a Value]) -> (String, Value) {
        let (own, becomes) = match self.toward {
            Toward::Provider => (name.to_owned(), names.sent(name).into_owned()),
            Toward::Tool => {
                let own = names.own(name).unwrap_or(name).to_owned();
                (own.clone(), own)
            }
        };
        let inner = |schema: &&'a Value| {
            let named = schema.get("properties").and_then(|it| it.get(&own));
            named.or_else(|| schema.get("additionalProperties"))
        };
        let inner: Vec<&Value> = all.iter().filter_map(inner).filter(|it| it.is_object()).collect();
        (becomes, self.value(value, &inner))
    }
}

/// The schemas of an array's item.
fn items_of<'a>(all: &[&'a Value], at: usize) -> Vec<&'a Value> {
    let each = |schema: &&'a Value| {
        let places = [schema.get("prefixItems"), schema.get("items")];
        let own = places.into_iter().flatten().find_map(|it| it.get(at));
        own.or_else(|| schema.get("items"))
    };
    all.iter().filter_map(each).filter(|it| it.is_object()).collect()
}
