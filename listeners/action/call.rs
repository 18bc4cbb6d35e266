//! Finds the listener and the payload that an action calls.

use std::borrow::Cow;
use std::collections::BTreeMap;

use pumphouse::limits::XmlLimits;
use pumphouse::listener::{Capabilities, Described};
use pumphouse::name::CORE;
use pumphouse::prelude::*;
use pumphouse::schema::{self, Content, Schema, json};
use pumphouse::xml::{self, Child, View, Writer};
use serde_json::{Map, Value};

use super::super::feed_contents::words::{DeclareFeeds, RefreshFeeds};
use super::super::metadata::METADATA;
use super::super::words::agent::is_offered;
use super::filling::{Filling, put};
use super::graph::{self, ActionDefinition, Parameters};
use super::open_payload::open_payload;
use super::parameters;
use super::scalar_texts::as_scalars;
use super::settings::Settings;
use super::unresolved::Unresolved;
use super::value::known;
use super::variables::{KnownValue, Lookup};
use super::words::{Action, ActionError, ActionKind, CommandLine, Dialect, NAME};
use super::words::{TemplateText, WORKFLOWS};

/// The types of listeners that are agents and workflows.
const AGENT: &str = "agent";
const WORKFLOW: &str = "workflow";
/// The maximum number of references that the error about references without values names.
const LOST_MAX: usize = 20;
/// The maximum number of names that the error about an unknown name lists.
const NAMES_MAX: usize = 20;

/// A payload that can be called, and the listener that takes it.
#[derive(Clone, Copy)]
pub struct Called<'a> {
    /// The listener.
    pub listener: &'a Described,
    /// The payload.
    pub schema: &'a Schema,
}

/// Whether the called name means this payload of this listener.
type Means<'a> = &'a dyn Fn(&Described, &Name) -> bool;

/// Finds the listener and the payload that an agent's action calls.
///
/// # Errors
/// Fails if nothing has this name, or if the agent may not call it. The text is the same in both
/// cases. Also fails if the name has several meanings; the text lists them.
pub(super) fn called<'a>(
    all: &'a Capabilities,
    agent: &str,
    definition: &ActionDefinition,
    settings: &Settings,
) -> Result<Called<'a>, ActionError> {
    let name = &*definition.action.name;
    let kind = definition.action.kind;
    let is_internal = matches!(kind, ActionKind::Internal | ActionKind::ContextFeed);
    if is_internal && !settings.allows(agent, name) {
        return Err(undeliverable());
    }
    let may = |described: &&'a Described| match is_internal {
        true => settings.internal.contains(&described.name),
        false => described.name != NAME,
    };
    let peers = all.listener(agent).and_then(|it| it.peers.as_ref());
    let is_peer =
        |it: &Described| it.name == agent || peers.is_none_or(|peers| peers.contains(&it.name));
    // Every agent may call the payloads of the core.
    let is_open =
        |it: &Called<'_>| is_internal || is_peer(it.listener) || it.schema.name.namespace() == CORE;
    let given = given(&definition.parameters);
    find(all, name, &given, |it| may(&it.listener) && is_open(it))
}

/// The names of an action's parameters.
fn given(parameters: &Parameters) -> Vec<&str> {
    match parameters {
        Parameters::Json(Value::Object(all)) => all.keys().map(String::as_str).collect(),
        Parameters::Json(_) => Vec::new(),
        Parameters::Elements(all) => {
            let attributes = all.attributes().map(|it| it.local);
            attributes.chain(all.elements().map(|it| it.local())).collect()
        }
    }
}

/// Notes in an action without a timeout that it calls an agent or a workflow. Both work as long as
/// they need: a workflow has a timeout of its own, or none.
pub fn untimed(action: &mut Action, all: &Capabilities) {
    let is_long = |it: Called<'_>| matches!(&*it.listener.kind, AGENT | WORKFLOW);
    if action.timeout.is_none() && find(all, &action.name, &[], |_| true).is_ok_and(is_long) {
        action.untimed = Some(true);
    }
}

/// The field of a called payload that lists a program and its arguments. None if the name isn't
/// that of a listener that runs programs.
#[must_use]
pub fn command_field(all: &Capabilities, name: &str) -> Option<&'static str> {
    let called = find(all, name, &[], |_| true).ok()?;
    Some(called.listener.extension::<CommandLine>()?.field)
}

/// Finds the payload that a name means, among those that `may` allows. The name is a listener's
/// name, `listener.payload`, or a payload's name. These forms are tried in this order. If the name
/// means several payloads, that one counts whose fields fit the names of the parameters, `given`.
///
/// # Errors
/// Fails if no payload that `may` allows has the name. The text doesn't reveal whether a forbidden
/// payload has the name. Also fails if the name has several meanings; the text lists them.
pub fn find<'a>(
    all: &'a Capabilities,
    name: &str,
    given: &[&str],
    may: impl Fn(&Called<'a>) -> bool,
) -> Result<Called<'a>, ActionError> {
    let is_listener = |it: &Described, _: &Name| it.name == name;
    let is_dotted = |described: &Described, of: &Name| {
        let rest = name.strip_prefix(&*described.name);
        rest.and_then(|it| it.strip_prefix('.')) == Some(of.local())
    };
    let is_payload = |_: &Described, of: &Name| {
        of.local() == name || name.ends_with(of.local()) && of.to_string() == name
    };
    let meanings: [Means<'_>; 3] = [&is_listener, &is_dotted, &is_payload];
    for is_meant in meanings {
        let takes = |described: &'a Described| {
            let meant = described.takes.iter().filter(|of| is_meant(described, of));
            let schemas = meant.filter_map(|of| all.schema(of)).filter(|of| is_offered(of));
            schemas.map(move |schema| Called { listener: described, schema })
        };
        let found = all.listeners().iter().flat_map(takes).filter(&may);
        let mut found: Vec<Called<'a>> = found.collect();
        match (found.pop(), &found[..]) {
            (None, _) => {}
            (Some(one), []) => return Ok(one),
            (Some(last), others) => {
                let is_fit = |it: &&Called<'a>| schema::fits(it.schema, given);
                let mut fitting = others.iter().chain([&last]).filter(is_fit);
                if let (Some(&one), None) = (fitting.next(), fitting.next()) {
                    return Ok(one);
                }
                let word =
                    |it: &Called<'_>| format!("{}.{}", it.listener.name, it.schema.name.local());
                let choices: Vec<String> = others.iter().chain([&last]).map(word).collect();
                let message = format!("{name} may be any of {}; say which", choices.join(", "));
                return Err(ActionError { code: "ambiguous".to_owned(), message });
            }
        }
    }
    Err(undeliverable())
}

/// The payloads that a model may send to a listener. Each comes with the name by which an action
/// calls the payload. This name is the listener's name if there is only one such payload, else
/// `listener.payload`. Payloads that only operators or the pump's own code send are left out. For
/// the listener `action` the list is empty, since no action can call `action`.
pub fn offered<'a>(all: &'a Capabilities, described: &'a Described) -> Vec<(String, &'a Schema)> {
    let is_machinery =
        |of: &&Schema| of.name == DeclareFeeds::NAME || of.name == RefreshFeeds::NAME;
    let taken = described.takes.iter().filter(|_| described.name != NAME);
    let schemas = taken.filter_map(|name| all.schema(name));
    let schemas: Vec<&Schema> = schemas.filter(|of| is_offered(of) && !is_machinery(of)).collect();
    match schemas[..] {
        [one] => vec![(described.name.clone(), one)],
        _ => {
            let named = |of: &'a Schema| (format!("{}.{}", described.name, of.name.local()), of);
            schemas.into_iter().map(named).collect()
        }
    }
}

/// Rewrites the error of an action that calls an unknown or forbidden name. The new message lists
/// the names that the agent may call, the most similar one first. The message is the same for
/// unknown and for forbidden names. The error stays as it is in turns with older rules, for
/// internal actions, and for senders without a list of peers.
pub(super) fn with_peers(
    error: ActionError,
    all: &Capabilities,
    agent: &str,
    definition: &ActionDefinition,
) -> ActionError {
    let action = &definition.action;
    let is_internal = matches!(action.kind, ActionKind::Internal | ActionKind::ContextFeed);
    let peers = all.listener(agent).and_then(|it| it.peers.as_ref());
    let Some(peers) = peers.filter(|_| !is_internal) else {
        return error;
    };
    if error.code != undeliverable().code {
        return error;
    }
    let own = all.listeners().iter().filter(|it| peers.contains(&it.name));
    let mut names: Vec<String> = own.flat_map(|it| offered(all, it)).map(|it| it.0).collect();
    if let Some(near) = schema::nearest(&action.name, names.iter().map(String::as_str))
        && let Some(at) = names.iter().position(|it| it == near)
    {
        names[..=at].rotate_right(1);
    }
    let more = names.len().saturating_sub(NAMES_MAX);
    names.truncate(NAMES_MAX);
    let message = match (&names[..], more) {
        ([], _) => format!("you have no peer {}, nor any other", action.name),
        (names, 0) => {
            format!("you have no peer {}; you may call {}", action.name, names.join(", "))
        }
        (names, more) => format!(
            "you have no peer {}; you may call {} and {more} more",
            action.name,
            names.join(", ")
        ),
    };
    ActionError { message, ..error }
}

fn undeliverable() -> ActionError {
    let fault = Fault::undeliverable();
    ActionError { code: fault.code.to_string(), message: fault.message }
}

/// Makes the payload that an action sends: its parameters, with each reference replaced by its
/// value.
///
/// # Errors
/// Fails if the path of a reference leads to nothing, or if the parameters don't fit the payload's
/// schema.
pub(super) fn payload(
    definition: &ActionDefinition,
    called: &Called<'_>,
    values: &ResolvedValues,
) -> Result<Element, ActionError> {
    let schema = called.schema;
    let wrong = |message| ActionError { code: "parameters".to_owned(), message };
    match &definition.parameters {
        Parameters::Json(said) => {
            let mut filling = Filling::default();
            let json = resolved(definition, said, values, &mut filling);
            lost(&filling.unresolved)?;
            if let Some(it) = called.listener.extension::<CommandLine>() {
                no_option(definition, it.field, &json).map_err(wrong)?;
            }
            from_json(schema, &json).or_else(|why| {
                let scalars = as_scalars(schema, said, &json);
                scalars.and_then(|it| from_json(schema, &it).ok()).ok_or_else(|| wrong(why))
            })
        }
        Parameters::Elements(elements) => {
            let (writer, unresolved) = written(elements, schema, &definition.references, values);
            lost(&unresolved)?;
            let element = writer.finish().map_err(|error| wrong(error.to_string()))?;
            schema.check(element.view()).map_err(|error| wrong(error.to_string()))?;
            Ok(element)
        }
    }
}

/// The references in an action's parameters that have no value.
pub(super) fn unresolved(
    definition: &ActionDefinition,
    schema: &Schema,
    values: &ResolvedValues,
) -> Vec<Unresolved> {
    match &definition.parameters {
        Parameters::Json(json) => {
            let mut filling = Filling::default();
            resolved(definition, json, values, &mut filling);
            filling.unresolved
        }
        Parameters::Elements(elements) => {
            written(elements, schema, &definition.references, values).1
        }
    }
}

/// Parameters in JSON, with each reference replaced by its value.
fn resolved(
    definition: &ActionDefinition,
    json: &Value,
    values: &ResolvedValues,
    filling: &mut Filling,
) -> Value {
    definition.references.resolve(json, &|name| values.get(name), filling)
}

/// Fails if a value that an author's template makes an argument of its own begins with `-`, since
/// the program could take it for an option. Behind the argument `--` it may begin so. `field` is
/// the list of the arguments in the parameters.
fn no_option(definition: &ActionDefinition, field: &str, json: &Value) -> Result<(), String> {
    let Some(Value::Array(arguments)) = json.get(field) else { return Ok(()) };
    for TemplateText { at, references } in &definition.action.template_text {
        let number = at.strip_prefix(&format!("/parameters/{field}/"));
        let number = number.and_then(|it| it.parse::<usize>().ok());
        let is_alone = references.as_ref().is_some_and(|it| it.first() == Some(&0));
        let Some(number) = number.filter(|it| is_alone && *it < arguments.len()) else { continue };
        let is_behind_dashes = arguments[..number].iter().any(|it| it == "--");
        if arguments[number].as_str().is_some_and(|it| it.starts_with('-')) && !is_behind_dashes {
            let text = "begins with `-`, and the program could take it for an option";
            return Err(format!("$.{field}[{number}] {text}"));
        }
    }
    Ok(())
}

/// Fails if a name is known, and the path behind it leads to nothing or to too much.
fn lost(unresolved: &[Unresolved]) -> Result<(), ActionError> {
    let lost = unresolved.iter().filter(|it| it.missing.is_some() || it.is_too_large);
    // Many references may lead to nothing.
    let lost: Vec<String> = lost.take(LOST_MAX).map(Unresolved::lost).collect();
    if lost.is_empty() {
        return Ok(());
    }
    Err(ActionError { code: "reference".to_owned(), message: lost.join("; ") })
}

/// Writes parameters in XML, with each reference replaced by its value. Returns the references
/// without a value, too.
fn written(
    elements: &Element,
    schema: &Schema,
    rules: &parameters::Parameters,
    values: &ResolvedValues,
) -> (Writer, Vec<Unresolved>) {
    let (writer, filling) = (Writer::new(XmlLimits::INSIDE), Filling::default());
    let mut elements_writer = ElementsWriter { name: &schema.name, rules, values, writer, filling };
    elements_writer.write(elements.view(), schema.name.local());
    (elements_writer.writer, elements_writer.filling.unresolved)
}

/// Makes a payload whose text is a JSON object. Workflows take such payloads.
///
/// # Errors
/// Fails if the payload is too large.
pub fn json_payload(name: &Name, object: &Map<String, Value>) -> Result<Element, xml::Error> {
    let mut writer = Writer::new(XmlLimits::INSIDE);
    writer.start(name.namespace(), name.local());
    if !object.is_empty() {
        writer.text(&json::text(&Value::Object(object.clone())));
    }
    writer.end();
    writer.finish()
}

/// Makes a payload from parameters in JSON. A payload with open content takes any parameters whose
/// names are valid names of elements. The payload of a workflow takes any parameters.
///
/// # Errors
/// Fails if the parameters don't fit the payload's schema. The text says why.
pub fn from_json(schema: &Schema, json: &Value) -> Result<Element, String> {
    match (&schema.shape.content, json) {
        (Content::Any, Value::Object(object)) if !object.contains_key(schema::XML) => {
            if schema.name.namespace().starts_with(WORKFLOWS) {
                return json_payload(&schema.name, object).map_err(|error| error.to_string());
            }
            open_payload(&schema.name, object)
        }
        _ => schema::from_json(schema, json).map_err(|error| error.to_string()),
    }
}

/// Writes parameters that are elements.
struct ElementsWriter<'a> {
    name: &'a Name,
    rules: &'a parameters::Parameters,
    values: &'a ResolvedValues,
    writer: Writer,
    filling: Filling,
}

impl ElementsWriter<'_> {
    /// A text, with the reference that it is replaced by its value.
    fn filled<'t>(&mut self, text: &'t str) -> Cow<'t, str> {
        let lookup = |name: &str| self.values.get(name);
        match self.rules.resolve_text("", text, &lookup, &mut self.filling) {
            None => Cow::Borrowed(text),
            Some(value) => {
                let mut filled = String::new();
                put(&value, &mut filled);
                Cow::Owned(filled)
            }
        }
    }

    /// Writes an element, with each reference replaced by its value. An element without a namespace
    /// gets that of the payload. An element with a namespace is copied as it is.
    fn write(&mut self, view: View<'_>, local: &str) {
        self.writer.start(self.name.namespace(), local);
        for attribute in view.attributes().filter(|it| it.namespace.is_empty()) {
            let value = self.filled(attribute.value);
            self.writer.attribute(attribute.local, &value);
        }
        if view.has_text_only() {
            let text = view.text();
            let text = self.filled(&text);
            self.writer.text(&text);
            return self.writer.end();
        }
        for child in view.children() {
            match child {
                Child::Text(text) if text.trim().is_empty() => {}
                Child::Text(text) => self.writer.text(text),
                Child::Element(element) if element.namespace().is_empty() => {
                    self.write(element, element.local());
                }
                Child::Element(it) => self.writer.element(it),
            }
        }
        self.writer.end();
    }
}

/// Maps the names of references to their values.
#[derive(Debug, Default)]
pub(super) struct ResolvedValues(BTreeMap<String, Lookup<'static>>);

impl ResolvedValues {
    /// Converts the graph's values to JSON, by the organism's schemas.
    pub(super) fn of(all: &Capabilities, values: &graph::Values) -> ResolvedValues {
        let each = values.iter();
        ResolvedValues(each.map(|(name, it)| (name.clone(), lookup(all, it))).collect())
    }

    /// Resolves references to metadata with a path, such as `${metadata.status}`, to these fields.
    /// A reference without a path still has the value that the prompt showed, if there is one.
    pub(super) fn with_metadata(mut self, fields: &Value) -> ResolvedValues {
        let value = match self.0.remove(METADATA) {
            Some(Lookup::Value(shown)) => shown.into_owned().value,
            _ => fields.clone(),
        };
        let fields = Some(fields.clone());
        let known = KnownValue { value, fields, ..KnownValue::default() };
        self.0.insert(METADATA.to_owned(), Lookup::Value(Cow::Owned(known)));
        self
    }

    fn get(&self, name: &str) -> Lookup<'_> {
        self.0.get(name).map_or(Lookup::Unknown, Lookup::borrowed)
    }
}

/// Converts a value of the graph to the value that replaces a reference.
#[must_use]
pub fn lookup(all: &Capabilities, value: &graph::Value) -> Lookup<'static> {
    let known: KnownValue = match value {
        graph::Value::Result(None) => Value::Null.into(),
        graph::Value::Result(Some(it)) => known(all, it),
        graph::Value::List(answers) => {
            let each = answers.iter();
            let value =
                |it: &Option<Element>| it.as_ref().map_or(Value::Null, |it| known(all, it).value);
            Value::Array(each.map(value).collect()).into()
        }
        graph::Value::Item(it) => it.clone().into(),
        graph::Value::Feed(it) => content(it),
        graph::Value::Failed => return Lookup::Failed,
        graph::Value::Skipped => return Lookup::Skipped,
        graph::Value::Named => Value::Null.into(),
        graph::Value::Unavailable => return Lookup::Unavailable,
    };
    Lookup::Value(Cow::Owned(known))
}

/// The content of a feed: an object or an array if it can be read as JSON, else a text. If the text
/// is a code fence around JSON, paths lead into this JSON.
#[must_use]
pub fn content(text: &str) -> KnownValue {
    let text = text.trim();
    if let Some(json) = composite(text) {
        return json.into();
    }
    let fields = fenced(text).and_then(composite);
    KnownValue { value: Value::String(text.to_owned()), fields, ..KnownValue::default() }
}

/// Reads a text as a JSON object or array. None if it is neither.
fn composite(text: &str) -> Option<Value> {
    text.trim_start().starts_with(['{', '[']).then(|| json::read(text).ok()).flatten()
}

/// The content of a text that is one code fence of backticks.
fn fenced(text: &str) -> Option<&str> {
    let (open, rest) = text.split_once('\n')?;
    let fence = &open[..open.len() - open.trim_start_matches('`').len()];
    let inside = rest.strip_suffix(fence).filter(|_| fence.len() >= 3)?;
    inside.ends_with('\n').then_some(inside)
}

/// Returns a warning if the action's `type` isn't the type of the called listener, or if the action
/// has the field `metadata` and the called listener isn't an agent.
pub(super) fn oddity(definition: &ActionDefinition, called: &Called<'_>) -> Option<String> {
    let Described { name, kind, .. } = called.listener;
    match said_kind(&definition.action).filter(|said| said != kind) {
        Some(said) => Some(format!("type is {said}, but {name} is of the type {kind}")),
        None if definition.action.metadata.is_some() && kind != AGENT => {
            Some(format!("metadata says what a called agent gets, and {name} is no agent"))
        }
        None => None,
    }
}

/// The listener type that an action states. None if the action states no type.
fn said_kind(action: &Action) -> Option<&'static str> {
    // The native tool calls of a provider have no place for a type.
    if action.dialect == Some(Dialect::Native) {
        return None;
    }
    match action.kind {
        ActionKind::Tool => Some("tool"),
        ActionKind::Agent => Some("agent"),
        ActionKind::Relic => Some("relic"),
        ActionKind::Workflow => Some("workflow"),
        ActionKind::Llm => Some("llm"),
        ActionKind::Internal | ActionKind::ContextFeed => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_path_leads_into_the_json_of_a_feed_in_a_fence_or_not() {
        let check = |text: &str, value: Value, fields: Option<Value>| {
            let expected = KnownValue { value, fields, ..KnownValue::default() };
            assert_eq!(content(text), expected, "{text}");
        };
        let json = json!({"dax": 18001, "a": ["`x`"]});
        check(" {\"dax\": 18001, \"a\": [\"`x`\"]}\n", json.clone(), None);
        for fence in ["```", "`````"] {
            let text = format!("{fence}json\n{json}\n{fence}");
            check(&text, json!(text), Some(json.clone()));
        }
        for text in
            ["Fine.", "```json\n{\n```", "```\nx\n```", "```json\n{}\n``", "``\n{}\n``", "{ no"]
        {
            check(text, json!(text), None);
        }
    }
}
