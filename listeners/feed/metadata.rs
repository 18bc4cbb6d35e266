//! Metadata in feeds: the values of `${metadata.…}` in a feed's parameters, and the source of the
//! type `metadata`, which shows the metadata of another agent.

use std::collections::BTreeMap;

use pumphouse::listener::Described;
use pumphouse::prelude::*;
use pumphouse::schema::nearest;
use serde_json::{Map, Value};

use super::super::action::call::{self, Called};
use super::super::action::variables::{
    KnownValue, Lookup, Piece, Resolved, Unresolved, fill, pieces, resolve_json,
};
use super::super::agent_context::{self, AgentFacts};
use super::super::feed_contents::source::{Source, UrlPath};
use super::super::metadata::{Fields, METADATA};
use super::Handling;
use super::refresh::FeedId;

/// The parameter of a service that is a path.
const PATH: &str = "path";

impl Handling {
    /// The parameters of a feed, with the values of their references. An error if a reference to
    /// metadata has no value.
    pub(super) fn params(
        &self,
        of: &FeedId,
        called: &Called<'_>,
        source: &Source,
        fresh: &BTreeMap<String, KnownValue>,
    ) -> Result<Value, String> {
        let params = source.params.as_ref().map(|it| it.0.clone());
        let params = params.unwrap_or_else(|| Value::Object(Map::new()));
        let lookup = |name: &str| self.value(&of.agent, name, fresh);
        let mut unresolved = Vec::new();
        let mut filled = resolve_json(&params, &lookup, &mut unresolved);
        if called.listener.extension::<UrlPath>().is_some()
            && let Some(path) = params.get(PATH).and_then(Value::as_str)
        {
            filled[PATH] = filled_path(path, lookup)?.into();
        }
        let is_missing =
            |it: &&Unresolved| it.name == METADATA && it.reference.starts_with("${metadata");
        match unresolved.iter().find(is_missing) {
            Some(it) => Err(format!("{} has no value", it.reference)),
            None => Ok(filled),
        }
    }

    /// What `${metadata.field}` refers to: the agent's own metadata. `$metadata` is what the last
    /// prompt showed of them. None if the agent has no fields.
    pub(super) fn own_metadata(&self, agent: &str) -> Option<KnownValue> {
        let facts = self.capabilities.listener(agent)?.extension::<AgentFacts>()?;
        let fields = Some(&facts.fields).filter(|it| !it.is_empty())?;
        let mut all = self.refreshes.metadata().of(agent).all(fields);
        all.retain(|_, it| !it.is_null());
        let shown = self.shown.get(agent, METADATA).filter(|it| !it.text.is_empty());
        let all = Value::Object(all);
        let value = shown.map_or_else(|| all.clone(), |it| call::text(&it.text));
        Some(KnownValue { value, fields: Some(all) })
    }

    /// The metadata of the agent that a source names, as of the message at hand. An error if there
    /// is no such agent, or if it has no such field.
    pub(super) async fn other_metadata(
        &self,
        source: &Source,
    ) -> Result<Result<Map<String, Value>, String>, Fault> {
        let (agent, fields) = match named(&self.capabilities, source, |_| true) {
            Ok(it) => it,
            Err(why) => return Ok(Err(why)),
        };
        let found = agent_context::nearest(&agent.name, &self.message, &self.tree).await?;
        let mut all = match found {
            Some(it) => it.metadata(fields),
            None => super::super::metadata::KnownFields::default().all(fields),
        };
        let chosen = source.fields.as_ref().map(|it| &it.name);
        all.retain(|name, _| chosen.is_none_or(|it| it.contains(name)));
        Ok(Ok(all))
    }
}

/// The agent that a source of the type `metadata` names, among those that `may` allows, and the
/// fields of its metadata.
///
/// # Errors
/// If `may` allows no such agent, or if the agent has no such field. The text doesn't say whether
/// another agent has the name.
pub(super) fn named<'a>(
    all: &'a Capabilities,
    source: &Source,
    may: impl Fn(&Described) -> bool,
) -> Result<(&'a Described, &'a Fields), String> {
    let facts = |it: &'a Described| Some((it, &it.extension::<AgentFacts>()?.fields));
    let agents = all.listeners().iter().filter(|it| may(it)).filter_map(facts);
    let agents: Vec<(&Described, &Fields)> = agents.collect();
    let name = source.agent.as_deref().unwrap_or_default();
    let advised =
        |text: String, wrong: &str, right: &[&str]| match nearest(wrong, right.iter().copied()) {
            Some(near) => format!("{text}; did you mean {near}?"),
            None => text,
        };
    let Some((agent, fields)) = agents.iter().find(|(it, _)| it.name == name) else {
        let names: Vec<&str> = agents.iter().map(|(it, _)| &*it.name).collect();
        return Err(advised(format!("there is no agent {name}"), name, &names));
    };
    let mut chosen = source.fields.iter().flat_map(|it| &it.name);
    match chosen.find(|it| fields.get(it).is_none()) {
        None => Ok((agent, fields)),
        Some(field) => {
            let names: Vec<&str> = fields.all().map(|it| it.name()).collect();
            Err(advised(format!("{name} has no metadata field {field}"), field, &names))
        }
    }
}

/// A path with the values of its references. Values of metadata are percent-encoded, so that none
/// of them leads to another path.
fn filled_path<'a>(path: &str, lookup: impl Fn(&str) -> Lookup<'a>) -> Result<String, String> {
    let (mut filled, mut has_values) = (String::new(), false);
    for piece in pieces(path) {
        let Resolved { text, unresolved } = fill(&[piece], &lookup);
        let is_metadata = matches!(piece, Piece::Reference(it) if it.name == METADATA);
        if is_metadata && unresolved.is_empty() {
            has_values = true;
            text.bytes().for_each(|it| put_encoded(it, &mut filled));
        } else {
            filled += &text;
        }
    }
    let path = filled.split(['?', '#']).next().unwrap_or_default();
    match has_values && path.split('/').any(|it| matches!(it, "." | "..")) {
        true => Err(format!("the path {filled} leads elsewhere")),
        false => Ok(filled),
    }
}

/// Appends a byte, percent-encoded unless any part of a URL may have it.
fn put_encoded(byte: u8, text: &mut String) {
    match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
            text.push(char::from(byte));
        }
        _ => *text += &format!("%{byte:02X}"),
    }
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(path: &str, project: &str, expected: Result<&str, &str>) {
        let fields = Some(json!({ "project": project }));
        let known = KnownValue { value: Value::Null, fields };
        let lookup = |name: &str| match name {
            "metadata" => Lookup::Value(Cow::Borrowed(&known)),
            _ => Lookup::Unknown,
        };
        let filled = filled_path(path, lookup);
        assert_eq!(filled.as_deref(), expected.map_err(str::to_owned).as_deref());
    }

    #[test]
    fn a_value_in_a_path_stays_one_part_of_it() {
        let path = "/projects/${metadata.project}/news?of=${metadata.project}";
        check(path, "apollo", Ok("/projects/apollo/news?of=apollo"));
        check(path, "a/b?c", Ok("/projects/a%2Fb%3Fc/news?of=a%2Fb%3Fc"));
        check(path, "..", Err("the path /projects/../news?of=.. leads elsewhere"));
        check("/a/.${metadata.project}", ".", Err("the path /a/.. leads elsewhere"));
        check("/a/../b", "c", Ok("/a/../b"));
    }
}
