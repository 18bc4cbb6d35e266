//! What a model is offered as tools in its provider's own protocol: what its agent's peers take.

use std::collections::BTreeMap;

use pumphouse::listener::Described;
use pumphouse::model::{Call, Tool};
use pumphouse::prelude::*;
use pumphouse::schema::Schema;
use serde_json::Value;

use super::super::view::ReadResult;
use super::peer_text::{calls, parameters};
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

/// A tool for each call of these peers.
pub(super) fn offered(seen: &Capabilities, peers: &[&Described]) -> Tools {
    let mut tools = Tools::default();
    for it in peers.iter().flat_map(|it| calls(seen, it)) {
        tools.add(it.name, it.text, parameters(it.schema));
    }
    tools.with_read_result(seen)
}

/// The same by rules before 5: a tool for each payload that one of these takes.
pub(super) fn offered_before(seen: &Capabilities, peers: &[&Described]) -> Tools {
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
            tools.add(meant, text, parameters(schema));
        }
    }
    tools.with_read_result(seen)
}

impl Tools {
    fn add(&mut self, meant: String, text: &str, parameters: Value) {
        let name = self.free(&meant);
        self.all.push(Tool::new(name.clone(), text, parameters));
        self.meant.insert(name, meant);
    }

    /// With the tool that reads on in a long result, where there is any other.
    fn with_read_result(mut self, seen: &Capabilities) -> Tools {
        let rest = seen.schema(&ReadResult::NAME).filter(|_| !self.all.is_empty());
        if let Some(schema) = rest {
            self.add(schema.name.local().to_owned(), schema.doc(), parameters(schema));
        }
        self
    }

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
