//! Metadata in feeds: the values of `${metadata.…}` in a feed's parameters, and the source of the
//! type `metadata`, which shows the metadata of another agent.

use pumphouse::listener::Described;
use pumphouse::prelude::*;
use pumphouse::schema::nearest;
use serde_json::{Map, Value};

use super::super::action::call::{self, Called};
use super::super::action::command_arguments::{check_options, check_places};
use super::super::action::filling::{Filling, Resolved, fill, resolve_json};
use super::super::action::unresolved::Unresolved;
use super::super::action::variables::{KnownValue, Lookup, Piece, Reference, pieces};
use super::super::action::words::CommandLine;
use super::super::agent_context::{self, AgentFacts};
use super::super::feed_contents::source::{Source, UrlPath};
use super::super::metadata::{Fields, METADATA};
use super::refresh::FeedId;
use super::{FreshContents, Handling};

/// The name of a service's parameter that is the path of a URL.
const PATH: &str = "path";

impl Handling {
    /// The parameters of a feed, with each reference replaced by its value. Fails if a reference to
    /// metadata has no value.
    pub(super) fn params(
        &self,
        of: &FeedId,
        called: &Called<'_>,
        source: &Source,
        fresh: &FreshContents,
    ) -> Result<Value, String> {
        let params = source.params.as_ref().map(|it| it.0.clone());
        let params = params.unwrap_or_else(|| Value::Object(Map::new()));
        let lookup = |name: &str| self.value(&of.agent, name, fresh);
        let mut filling = Filling::default();
        let mut filled = resolve_json(&params, &lookup, &mut filling);
        if called.listener.extension::<UrlPath>().is_some()
            && let Some(path) = params.get(PATH).and_then(Value::as_str)
        {
            filled[PATH] = filled_path(path, lookup)?.into();
        }
        if let Some(CommandLine { field }) = called.listener.extension::<CommandLine>() {
            let is_known = |it: &Reference<'_>| !matches!(lookup(it.name), Lookup::Unknown);
            let wrong = |why: String| format!("$.{field}: {why}");
            check_places(&params[*field], is_known).map_err(wrong)?;
            let options = check_options(&params[*field], &filled[*field]);
            options.map_err(|it| format!("$.{field}{it}"))?;
        }
        let is_missing =
            |it: &&Unresolved| it.name == METADATA && it.reference.starts_with("${metadata");
        if let Some(it) = filling.unresolved.iter().find(|it| it.is_too_large) {
            return Err(it.lost());
        }
        match filling.unresolved.iter().find(is_missing) {
            Some(it) => Err(format!("{} has no value", it.reference)),
            None => Ok(filled),
        }
    }

    /// The agent's own metadata, to which `${metadata.field}` refers. `$metadata` stands for the
    /// text in which the last prompt showed all fields. If no prompt showed them, it stands for all
    /// values that aren't null. None if the agent declares no metadata fields.
    pub(super) fn own_metadata(&self, agent: &str) -> Option<KnownValue> {
        let facts = self.capabilities.listener(agent)?.extension::<AgentFacts>()?;
        let fields = Some(&facts.fields).filter(|it| !it.is_empty())?;
        let mut all = self.refreshes.metadata().of(agent).all(fields);
        all.retain(|_, it| !it.is_null());
        let shown = self.shown.get(agent, METADATA).filter(|it| !it.text.is_empty());
        let all = Value::Object(all);
        let value = shown.map_or_else(|| all.clone(), |it| call::content(&it.text).value);
        Some(KnownValue { value, fields: Some(all), ..KnownValue::default() })
    }

    /// The metadata of the agent that a source names, as of the current message. The inner error
    /// says that there is no such agent, or that the agent lacks a field that the source names.
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

/// Finds the agent that a source of the type `metadata` names, and the agent's metadata fields.
/// Only agents that `may` allows are found.
///
/// # Errors
/// Fails if `may` allows no such agent, or if the agent lacks a field that the source names. The
/// text doesn't reveal whether a forbidden agent has the name.
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

/// Replaces the references in a path. Values of metadata are percent-encoded, so that each stays
/// within its path segment. Fails if a path with such values has a segment `.` or `..`.
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

/// Appends a byte, percent-encoded unless it is an unreserved character of URLs (RFC 3986).
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
        let known = KnownValue { fields, ..KnownValue::default() };
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
