//! The tools that a model is offered in its provider's own protocol: one for each payload by which
//! the model may call the agent's peers, and one that reads long results.

use std::collections::BTreeMap;

use pumphouse::listener::Described;
use pumphouse::model::{Call, Model, Tool};
use pumphouse::prelude::*;
use pumphouse::schema::Schema;

use super::super::view::ReadResult;
use super::peer_text::{calls, parameters};

/// The maximum length of a tool's name that providers accept, in characters.
const NAME_MAX: usize = 64;

/// Tools, and the names by which actions call the same payloads.
#[derive(Debug, Default)]
pub(super) struct Tools {
    all: Vec<Tool>,
    /// Maps a tool's name to the name by which an action calls the same payload.
    meant: BTreeMap<String, String>,
    /// Maps a tool's name to the payload that it sends.
    payloads: BTreeMap<String, Name>,
}

/// A call that an agent's model can't be offered.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LeftOut {
    /// The name by which an action would call it.
    pub name: String,
    /// The payload that the call would send.
    pub payload: Name,
    /// Why the model's provider can't take it, as the rest of a sentence.
    pub why: String,
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
        tools.add(it.name, it.text, it.schema);
    }
    tools.with_read_result(seen)
}

impl Tools {
    fn add(&mut self, meant: String, text: &str, schema: &Schema) {
        let name = self.free(&meant);
        self.all.push(Tool::new(name.clone(), text, parameters(schema)));
        self.payloads.insert(name.clone(), schema.name.clone());
        self.meant.insert(name, meant);
    }

    /// Takes out the tools that the model's provider can't take, and returns them.
    pub(super) fn leave_out(&mut self, model: &dyn Model) -> Vec<LeftOut> {
        let left_out = model.left_out(&self.all);
        self.all.retain(|it| !left_out.iter().any(|(name, _)| *name == it.name));
        let one = |(tool, why): (String, String)| {
            let name = self.meant.get(&tool)?.clone();
            Some(LeftOut { name, payload: self.payloads.get(&tool)?.clone(), why })
        };
        left_out.into_iter().filter_map(one).collect()
    }

    /// Adds the tool that reads the rest of a long result, if there are other tools.
    fn with_read_result(mut self, seen: &Capabilities) -> Tools {
        let rest = seen.schema(&ReadResult::NAME).filter(|_| !self.all.is_empty());
        if let Some(schema) = rest {
            self.add(schema.name.local().to_owned(), schema.doc(), schema);
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
