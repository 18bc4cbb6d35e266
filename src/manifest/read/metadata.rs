//! Checks the references to metadata in the feeds of a manifest's agents: `${metadata.field}` in
//! their parameters, and sources of the type `metadata`.

use crate::listeners::action::variables::{Reference, pieces, references, references_in};
use crate::listeners::feed::Definition;
use crate::listeners::metadata::Fields;
use crate::manifest::check::joined;
use crate::manifest::key_table::AGENT;
use crate::manifest::mistake::{Mistake, Place, cut, listed};
use crate::manifest::read::Reader;
use crate::manifest::yaml::{Node, Value};

/// The item of a list of feeds that stands for the feeds of `feeds-defaults`.
const SPREAD: &str = "...";

impl Reader<'_> {
    /// Adds a mistake for each reference to undeclared metadata in the feeds of an agent. Does
    /// nothing for other listeners. `items` has all listeners of the manifest.
    pub(super) fn metadata_of_feeds(&self, item: &Node, path: &str, items: &[(String, &Node)]) {
        if !is_agent(item) {
            return;
        }
        let Some(fields) = self.surroundings::<Fields>(item, "metadata", path) else { return };
        let feeds = item.key("context_feeds").map(Node::items).unwrap_or_default();
        for (number, feed) in feeds.iter().enumerate() {
            let Some(source) = feed.key("source") else { continue };
            let path = joined(path, &format!("context_feeds[{number}].source"));
            if let Some(params) = source.key("params") {
                self.referring(params, &joined(&path, "params"), &fields);
            }
            if source.key("type").and_then(Node::text) == Some("metadata") {
                self.other_agent(source, &path, items);
            }
        }
        let (at, path) = (item.key("feeds"), joined(path, "feeds"));
        let defaults = || self.common_feeds.defaults.iter().flatten();
        match at {
            None => defaults().for_each(|it| self.refers(it, item.place, &path, &fields)),
            Some(list) => list.items().iter().enumerate().for_each(|(number, feed)| {
                let path = format!("{path}[{number}]");
                match feed.text() {
                    Some(SPREAD) => {
                        defaults().for_each(|it| self.refers(it, feed.place, &path, &fields));
                    }
                    Some(name) => {
                        let named = self.common_feeds.advertised.get(name).into_iter().flatten();
                        named.for_each(|it| self.refers(it, feed.place, &path, &fields));
                    }
                    None => {
                        if let Some(at) = feed.key("path") {
                            self.referring(at, &joined(&path, "path"), &fields);
                        }
                    }
                }
            }),
        }
    }

    /// Checks the references in a value of the manifest, each at its own place.
    fn referring(&self, node: &Node, path: &str, fields: &Fields) {
        match &node.value {
            Value::Map(entries) => entries.iter().for_each(|it| {
                self.referring(&it.value, &joined(path, &it.key), fields);
            }),
            Value::List(items) => items.iter().enumerate().for_each(|(number, it)| {
                self.referring(it, &format!("{path}[{number}]"), fields);
            }),
            Value::Scalar(scalar) => {
                let pieces = pieces(&scalar.text);
                for it in references(&pieces) {
                    self.declared_field(&it, node.place, path, fields);
                }
            }
        }
    }

    /// Checks the references of a feed that is declared elsewhere. `place` is where the agent names
    /// the feed.
    fn refers(&self, feed: &Definition, place: Place, path: &str, fields: &Fields) {
        let mut found = Vec::new();
        let source = feed.source.as_ref();
        if let Some(params) = source.and_then(|it| it.params.as_ref()) {
            references_in(&params.0, &mut found);
        }
        for it in &found {
            self.declared_field(it, place, path, fields);
        }
    }

    fn declared_field(&self, it: &Reference<'_>, place: Place, path: &str, fields: &Fields) {
        let Some(name) = it.metadata_field().filter(|it| fields.get(it).is_none()) else { return };
        let text = format!("{}: the agent has no metadata field `{}`", cut(it.whole), cut(name));
        self.wrong(unknown_field(Mistake::new(place, text).at(path), name, fields));
    }

    /// Checks a source of the type `metadata`: the agent that it names, and the agent's fields.
    fn other_agent(&self, source: &Node, path: &str, items: &[(String, &Node)]) {
        let Some((at, name)) = source.key("agent").and_then(|it| Some((it, it.text()?))) else {
            return;
        };
        let agents = items.iter().filter(|(_, it)| is_agent(it));
        let agents: Vec<(&str, &Node, &str)> = agents
            .filter_map(|(path, it)| Some((it.key("name")?.text()?, *it, path.as_str())))
            .collect();
        let Some((_, other, other_path)) = agents.iter().find(|it| it.0 == name) else {
            let names = || agents.iter().map(|it| it.0);
            let text = format!("there is no agent `{}`", cut(name));
            let mistake = Mistake::new(at.place, text).at(&joined(path, "agent"));
            let mistake = mistake.or_nearest(name, names());
            return self.wrong(mistake.advice(format!("there is {}", listed(names()))));
        };
        let Some(fields) = self.surroundings::<Fields>(other, "metadata", other_path) else {
            return;
        };
        let named = source.key("fields").map(Node::items).unwrap_or_default();
        for (number, at) in named.iter().enumerate() {
            let Some(field) = at.text().filter(|it| fields.get(it).is_none()) else { continue };
            let text = format!("`{}` has no metadata field `{}`", cut(name), cut(field));
            let mistake = Mistake::new(at.place, text).at(&format!("{path}.fields[{number}]"));
            self.wrong(unknown_field(mistake, field, &fields));
        }
    }
}

/// Adds advice to a mistake about an undeclared field: the declared fields, and the most similar
/// one. If no field is declared, the advice says how to declare one.
fn unknown_field(mistake: Mistake, name: &str, fields: &Fields) -> Mistake {
    let names = || fields.all().map(|it| it.name());
    match fields.is_empty() {
        true => mistake.advice("declare it under `metadata.fields` of the agent"),
        false => mistake.or_nearest(name, names()).advice(format!("it has {}", listed(names()))),
    }
}

fn is_agent(item: &Node) -> bool {
    item.key("use").and_then(Node::text) == Some(AGENT)
}
