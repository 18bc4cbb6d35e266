//! What a model is offered as tools in its provider's own protocol: what its agent's peers take.

use std::collections::BTreeMap;

use pumphouse::listener::Described;
use pumphouse::model::{Call, Tool};
use pumphouse::prelude::*;
use pumphouse::schema::{self, Content, Schema};
use serde_json::{Value, json};

use super::super::view::ReadResult;
use super::words::is_offered;

/// What providers take as the name of a tool, at the most.
const NAME_MAX: usize = 64;

/// Tools, and what their names stand for.
#[derive(Debug, Default)]
pub(super) struct Tools {
    all: Vec<Tool>,
    /// Whom an action would name, by the name of the tool.
    meant: BTreeMap<String, String>,
}

impl Tools {
    pub(super) fn all(&self) -> &Vec<Tool> {
        &self.all
    }

    /// A call of a tool, with the name that an action would have.
    pub(super) fn meant(&self, call: Call) -> Call {
        match self.meant.get(&call.name) {
            Some(name) => Call::new(call.id, name, call.arguments),
            None => call,
        }
    }
}

/// A tool for each payload that one of these takes.
pub(super) fn offered(seen: &Capabilities, peers: &[&Described]) -> Tools {
    let mut tools = Tools::default();
    for it in peers {
        let schemas: Vec<&Schema> = it
            .takes
            .iter()
            .filter_map(|name| seen.schema(name))
            .filter(|it| is_offered(it))
            .collect();
        for schema in &schemas {
            let (meant, text) = match schemas.len() {
                1 => (it.name.clone(), it.text.as_deref().unwrap_or(schema.doc())),
                _ => (format!("{}.{}", it.name, schema.name.local()), schema.doc()),
            };
            let name = tools.free(&meant);
            tools.all.push(Tool::new(name.clone(), text, parameters(schema)));
            tools.meant.insert(name, meant);
        }
    }
    let rest = seen.schema(&ReadResult::NAME).filter(|_| !tools.all.is_empty());
    if let Some(schema) = rest {
        let name = tools.free(schema.name.local());
        tools.all.push(Tool::new(name.clone(), schema.doc(), parameters(schema)));
        tools.meant.insert(name, schema.name.local().to_owned());
    }
    tools
}

impl Tools {
    /// A legal name that no other tool has.
    fn free(&self, name: &str) -> String {
        let name = legal(name);
        let others = (2..).map(|it| format!("{name}_{it}"));
        let mut all = std::iter::once(name.clone()).chain(others);
        all.find(|it| !self.meant.contains_key(it)).unwrap_or(name)
    }
}

/// A name in the characters that every provider takes.
pub(super) fn legal(name: &str) -> String {
    let fits = |it: char| if it.is_ascii_alphanumeric() || it == '-' { it } else { '_' };
    name.chars().map(fits).take(NAME_MAX - 3).collect()
}

/// What a call takes, as JSON Schema.
fn parameters(schema: &Schema) -> Value {
    if matches!(schema.shape.content, Content::Any) {
        let text = json!({ "type": "string", "description": "What is wanted, in words." });
        return json!({ "type": "object", "properties": { "text": text }, "required": ["text"] });
    }
    let mut schema = schema::json_schema(schema);
    if let Some(it) = schema.as_object_mut() {
        it.remove("$schema");
        it.remove("title");
    }
    schema
}
