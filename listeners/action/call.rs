//! Finds the listener and the payload that an action calls.

use std::borrow::Cow;
use std::collections::BTreeMap;

use pumphouse::limits::XmlLimits;
use pumphouse::listener::{Capabilities, Described};
use pumphouse::name::CORE;
use pumphouse::prelude::*;
use pumphouse::schema::{self, Content, Schema};
use pumphouse::xml::{Child, View, Writer};
use serde_json::Value;

use super::super::feed_contents::words::{DeclareFeeds, RefreshFeeds};
use super::super::words::agent::{explains_mistakes, is_offered, says_no_type};
use super::graph::{self, ActionDefinition, Parameters};
use super::open_payload::open_payload;
use super::settings::Settings;
use super::value::known;
use super::variables::{KnownValue, Lookup, Unresolved, resolve, resolve_json};
use super::words::{ActionError, ActionKind, Dialect, NAME};

/// How many names a model is told that called something unknown.
const NAMES_MAX: usize = 20;

/// A payload, and the listener that takes it.
pub struct Called<'a> {
    /// The listener.
    pub listener: &'a Described,
    /// The payload.
    pub schema: &'a Schema,
}

/// Whether a word means what a listener takes.
type Means<'a> = &'a dyn Fn(&Described, &Name) -> bool;

/// Whom an agent's action calls.
///
/// # Errors
/// One text for whatever isn't there or isn't allowed; the choices where there are several.
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
    // What the core does is for everyone.
    let is_open =
        |it: &Called<'_>| is_internal || is_peer(it.listener) || it.schema.name.namespace() == CORE;
    find(all, name, |it| may(&it.listener) && is_open(it))
}

/// The payload that a word means, of those that may be meant: a listener that takes one,
/// `listener.payload`, or a payload's name.
///
/// # Errors
/// One text for whatever isn't there or isn't allowed; the choices where there are several.
pub fn find<'a>(
    all: &'a Capabilities,
    name: &str,
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

/// The calls of a listener that are offered to models, by the names that an action says: the
/// listener's own where it takes one payload, else `listener.payload`. None is there that only the
/// pump's machinery makes, and no action can call what runs actions.
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

/// What an agent is told whose action names a listener that isn't there, or that it may not call:
/// its peers, the nearest name first. The message is the same in both cases. Turns of older rules
/// keep the message that they had.
pub(super) fn with_peers(
    error: ActionError,
    all: &Capabilities,
    agent: &str,
    definition: &ActionDefinition,
    rules: Option<u32>,
) -> ActionError {
    let action = &definition.action;
    let is_internal = matches!(action.kind, ActionKind::Internal | ActionKind::ContextFeed);
    let peers = all.listener(agent).and_then(|it| it.peers.as_ref());
    let Some(peers) = peers.filter(|_| explains_mistakes(rules) && !is_internal) else {
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

/// What an action's parameters are, its references put in.
pub(super) struct CallPayload {
    pub(super) payload: Result<Element, ActionError>,
    pub(super) unresolved: Vec<Unresolved>,
}

/// Makes the payload that an action sends.
pub(super) fn payload(
    definition: &ActionDefinition,
    schema: &Schema,
    values: &ResolvedValues,
) -> CallPayload {
    let mut unresolved = Vec::new();
    let made = match &definition.parameters {
        Parameters::Json(json) => {
            let json = resolve_json(json, &|name| values.get(name), &mut unresolved);
            from_json(schema, &json)
        }
        Parameters::Elements(elements) => {
            let mut writer = Writer::new(XmlLimits::INSIDE);
            let name = &schema.name;
            write(elements.view(), name.local(), name, values, &mut writer, &mut unresolved);
            let element = writer.finish().map_err(|error| error.to_string());
            element.and_then(|element| match schema.check(element.view()) {
                Ok(()) => Ok(element),
                Err(error) => Err(error.to_string()),
            })
        }
    };
    let wrong = |message| ActionError { code: "parameters".to_owned(), message };
    CallPayload { payload: made.map_err(wrong), unresolved }
}

/// A payload by its parameters, also one that may hold anything.
///
/// # Errors
/// Where they don't fit, and how.
pub fn from_json(schema: &Schema, json: &Value) -> Result<Element, String> {
    match (&schema.shape.content, json) {
        (Content::Any, Value::Object(object)) if !object.contains_key(schema::XML) => {
            open_payload(&schema.name, object)
        }
        _ => schema::from_json(schema, json).map_err(|error| error.to_string()),
    }
}

/// Writes parameters as a payload: what has no namespace gets the payload's.
fn write(
    view: View<'_>,
    local: &str,
    name: &Name,
    values: &ResolvedValues,
    writer: &mut Writer,
    unresolved: &mut Vec<Unresolved>,
) {
    let mut put = |text: &str| {
        let resolved = resolve(text, |name| values.get(name));
        unresolved.extend(resolved.unresolved);
        resolved.text
    };
    writer.start(name.namespace(), local);
    for attribute in view.attributes().filter(|it| it.namespace.is_empty()) {
        let value = put(attribute.value);
        writer.attribute(attribute.local, &value);
    }
    for child in view.children() {
        match child {
            Child::Text(text) if text.trim().is_empty() && !view.has_text_only() => {}
            Child::Text(text) => {
                let resolved = resolve(text, |name| values.get(name));
                unresolved.extend(resolved.unresolved);
                writer.text(&resolved.text);
            }
            Child::Element(element) if element.namespace().is_empty() => {
                write(element, element.local(), name, values, writer, unresolved);
            }
            Child::Element(it) => writer.element(it),
        }
    }
    writer.end();
}

/// What references stand for.
#[derive(Debug, Default)]
pub(super) struct ResolvedValues(BTreeMap<String, Lookup<'static>>);

impl ResolvedValues {
    /// The values as the organism's schemas say them, by the rules of a turn.
    pub(super) fn of(
        all: &Capabilities,
        values: &graph::Values,
        rules: Option<u32>,
    ) -> ResolvedValues {
        let each = values.iter();
        ResolvedValues(each.map(|(name, it)| (name.clone(), lookup(all, it, rules))).collect())
    }

    fn get(&self, name: &str) -> Lookup<'_> {
        self.0.get(name).map_or(Lookup::Unknown, Lookup::borrowed)
    }
}

/// What a name of an agent's stands for, by the rules of a turn.
#[must_use]
pub fn lookup(all: &Capabilities, value: &graph::Value, rules: Option<u32>) -> Lookup<'static> {
    let known: KnownValue = match value {
        graph::Value::Result(None) => Value::Null.into(),
        graph::Value::Result(Some(it)) => known(all, it, rules),
        graph::Value::Feed(it) => text(it).into(),
        graph::Value::Failed => return Lookup::Failed,
        graph::Value::Unavailable => return Lookup::Unavailable,
    };
    Lookup::Value(Cow::Owned(known))
}

/// What a feed holds, as JSON: itself where it is an object or an array, else a text.
#[must_use]
pub fn text(text: &str) -> Value {
    let json = text.trim_start().starts_with(['{', '[']);
    let json = json.then(|| schema::json::read(text).ok()).flatten();
    json.unwrap_or_else(|| Value::String(text.trim().to_owned()))
}

/// What is odd about an action that calls this, by the rules of its turn.
pub(super) fn oddity(
    definition: &ActionDefinition,
    called: &Called<'_>,
    rules: Option<u32>,
) -> Option<String> {
    // A model that calls by its provider's protocol can't say a type.
    if definition.action.dialect == Some(Dialect::Native) && says_no_type(rules) {
        return None;
    }
    let said = match definition.action.kind {
        ActionKind::Tool => "tool",
        ActionKind::Agent => "agent",
        ActionKind::Relic => "relic",
        ActionKind::Workflow => "workflow",
        ActionKind::Llm => "llm",
        ActionKind::Internal | ActionKind::ContextFeed => return None,
    };
    let Described { name, kind, .. } = called.listener;
    (said != kind).then(|| format!("type is {said}, but {name} is of the type {kind}"))
}
