//! The tools that a model is offered in its provider's own protocol: one for each payload by which
//! the model may call the agent's peers, and one that reads long results.

use std::collections::BTreeMap;

use pumphouse::listener::Described;
use pumphouse::model::{Call, Tool};
use pumphouse::prelude::*;
use pumphouse::schema::Schema;
use serde_json::Value;

use super::super::view::ReadResult;
use super::peer_text::{calls, parameters};
use super::words::is_offered;

/// The maximum length of a tool's name that providers accept, in characters.
const NAME_MAX: usize = 64;

/// Tools, and the names by which actions call the same payloads.
#[derive(Debug, Default)]
pub(super) struct Tools {
    all: Vec<Tool>,
    /// Maps a tool's name to the name by which an action calls the same payload.
    meant: BTreeMap<String, String>,
}

impl Tools {
    pub(super) fn all(&self) -> &Vec<Tool> {
        &self.all
    }

    /// Replaces the tool's name in a call by the name that an action has for the same payload.
    pub(super) fn meant(&self, call: Call) -> Call {
        match self.meant.get(&call.name) {
            Some(name) => Call::new(call.id, name, call.arguments),
            None => call,
        }
    }
}

/// Returns a tool for each payload by which the model may call these peers, and the tool that reads
/// long results.
pub(super) fn offered(seen: &Capabilities, peers: &[&Described]) -> Tools {
    let mut tools = Tools::default();
    for it in peers.iter().flat_map(|it| calls(seen, it)) {
        tools.add(it.name, it.text, parameters(it.schema));
    }
    tools.with_read_result(seen)
}

/// Returns the tools of turns whose rules are older than 5: one for each offered payload that one
/// of these peers takes.
pub(super) fn offered_before_5(seen: &Capabilities, peers: &[&Described]) -> Tools {
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

    /// Adds the tool that reads the rest of a long result, if there are other tools.
    fn with_read_result(mut self, seen: &Capabilities) -> Tools {
        let rest = seen.schema(&ReadResult::NAME).filter(|_| !self.all.is_empty());
        if let Some(schema) = rest {
            self.add(schema.name.local().to_owned(), schema.doc(), parameters(schema));
        }
        self
    }

    /// Returns a legal name that no tool has yet.
    fn free(&self, name: &str) -> String {
        let name = legal(name);
        let others = (2..).map(|it| format!("{name}_{it}"));
        let mut all = std::iter::once(name.clone()).chain(others);
        all.find(|it| !self.meant.contains_key(it)).unwrap_or(name)
    }
}

/// Replaces each character that some provider refuses in a name. Cuts the name so that a suffix
/// from `_2` to `_99` fits.
pub(super) fn legal(name: &str) -> String {
    let fits = |it: char| if it.is_ascii_alphanumeric() || it == '-' { it } else { '_' };
    name.chars().map(fits).take(NAME_MAX - 3).collect()
}
