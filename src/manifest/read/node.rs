//! Access to the contents of a manifest's values, and the replacement of an agent's model.

use crate::manifest::expand_variables::{Environment, expand};
use crate::manifest::key_table::AGENT;
use crate::manifest::read::pods;
use crate::manifest::yaml::{Node, Plain, Scalar, Value};

impl Node {
    /// The text of a scalar.
    pub(in crate::manifest) fn text(&self) -> Option<&str> {
        match &self.value {
            Value::Scalar(it) => Some(&it.text),
            _ => None,
        }
    }

    /// The value of a scalar that is `true` or `false`.
    pub(in crate::manifest) fn flag(&self) -> Option<bool> {
        match &self.value {
            Value::Scalar(Scalar { kind: Plain::Flag(it), .. }) => Some(*it),
            _ => None,
        }
    }

    pub(in crate::manifest) fn keys(&self) -> Vec<&str> {
        match &self.value {
            Value::Map(entries) => entries.iter().map(|it| it.key.as_str()).collect(),
            _ => Vec::new(),
        }
    }

    /// Replaces the model of an agent under `listeners`. This happens before variables are filled
    /// in, so the old value of `model` may have unset variables. Only variables in the names of
    /// listeners are filled in, to find the agent.
    pub(in crate::manifest) fn set_model(
        &mut self,
        agent: &str,
        model: &str,
        environment: Environment<'_>,
    ) {
        let Value::Map(entries) = &mut self.value else { return };
        let listeners = entries.iter_mut().find(|it| it.key == "listeners");
        let Some(Value::List(items)) = listeners.map(|it| &mut it.value.value) else { return };
        let is_meant = |it: &&mut Node| {
            let mut name = it.key("name").cloned();
            name.iter_mut().for_each(|it| expand(it, environment, &mut Vec::new()));
            name.as_ref().and_then(Node::text) == Some(agent)
        };
        for item in items.iter_mut().filter(is_meant) {
            let place = item.place;
            let is_agent = item.key("use").and_then(Node::text) == Some(AGENT);
            let Value::Map(entries) = &mut item.value else { continue };
            if is_agent && entries.iter().all(|it| it.key != "model") {
                entries.push(pods::entry("model", pods::text(place, model)));
            }
            let said = entries.iter_mut().find(|it| it.key == "model");
            if let Some(Value::Scalar(said)) = said.map(|it| &mut it.value.value) {
                (said.kind, said.is_plain) = (Plain::Text, false);
                (said.source, said.text) = (model.to_owned(), model.to_owned());
            }
        }
    }

    /// The keys of a map, each with its value.
    pub(in crate::manifest) fn entries(&self) -> Vec<(&str, &Node)> {
        match &self.value {
            Value::Map(entries) => entries.iter().map(|it| (&*it.key, &it.value)).collect(),
            _ => Vec::new(),
        }
    }

    pub(in crate::manifest) fn items(&self) -> &[Node] {
        match &self.value {
            Value::List(items) => items,
            _ => &[],
        }
    }
}
