//! Compares the calls in a manifest and its files with the payloads that they call: the steps of
//! workflows, the sources of feeds, and the templates of actions.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value as Json};
use serde_json_path::JsonPath;

use crate::listener::{Capabilities, Listener};
use crate::listeners::action;
use crate::listeners::action::call::{Called, command_field, find};
use crate::listeners::action::command_arguments::check_places;
use crate::listeners::action::variables::Reference;
use crate::listeners::action::words::CommandLine;
use crate::listeners::agent::action_templates::argument_of_template;
use crate::listeners::trigger::WrongTrigger;
use crate::manifest::check::joined;
use crate::manifest::mistake::{Mistake, Place, cut};
use crate::manifest::read::Reader;
use crate::manifest::read::known::Known;
use crate::manifest::read::workflows::{along, trigger_places, whole};
use crate::manifest::yaml::Node;
use crate::schema::json::{Error, Rule};
use crate::schema::{self, Content, Schema};
use crate::trigger_source::TriggerSource;

/// The names of references in workflows and feeds that have values whatever an agent does.
const REFERENCES: [&str; 5] = ["agent", "metadata", "steps", "trigger", "workflow"];
/// The beginning of a placeholder in a template.
const PLACEHOLDER: &str = "{{";

/// A call in a file.
struct Call<'a> {
    /// The node with the listener's name, or `listener.payload`, and its path in the file.
    target: &'a Node,
    path: String,
    /// The node with the parameters, and its path. The call itself, if it has no parameters.
    parameters: &'a Node,
    parameters_path: String,
    has_parameters: bool,
    /// Whether the call is a template, with placeholders such as `{{url}}`.
    is_template: bool,
}

impl Reader<'_> {
    /// Adds the mistakes of all calls in workflows, feeds and templates. A call isn't compared if
    /// its listener is unknown, or has mistakes of its own.
    pub(super) fn calls(
        &self,
        items: &[(String, &Node)],
        names: &BTreeMap<&str, Option<Place>>,
        all: &Capabilities,
    ) {
        let mut calls = Vec::new();
        for workflow in &self.includes.workflows {
            steps(workflow.key("steps"), "steps", &mut calls);
        }
        for (path, item) in items {
            let feeds = item.key("context_feeds").map(Node::items).unwrap_or_default();
            for (number, feed) in feeds.iter().enumerate() {
                let path = joined(path, &format!("context_feeds[{number}].source"));
                let source = feed.key("source");
                calls.extend(source.and_then(|it| Call::of(it, ("name", "params"), &path)));
            }
            templates(item, path, &mut calls);
        }
        for call in calls {
            self.call(&call, names, all);
            if call.is_template {
                self.command(&call, all);
            }
        }
    }

    /// Adds a mistake for each template that calls neither a listener nor a payload. `known` has
    /// the names that advice may suggest.
    pub(super) fn templates(
        &self,
        items: &[(String, &Node)],
        names: &BTreeMap<&str, Option<Place>>,
        known: &Known<'_>,
        all: &Capabilities,
    ) {
        let mut calls = Vec::new();
        items.iter().for_each(|(path, item)| templates(item, path, &mut calls));
        for Call { target, path, .. } in calls {
            let Some(said) = target.text().filter(|it| !it.contains(PLACEHOLDER)) else { continue };
            let mut points = said.match_indices('.').map(|(at, _)| &said[..at]).chain([said]);
            let is_payload = |it: &&Schema| it.name.local() == said || it.name.to_string() == said;
            if points.any(|it| names.contains_key(it)) || all.schemas().iter().any(is_payload) {
                continue;
            }
            let text = format!("there is no listener `{}`", cut(said));
            self.wrong(self.to_add(Mistake::new(target.place, text).at(&path), said, known));
        }
    }

    /// Adds a mistake for a template that fills a value into a longer argument of a program, since
    /// each of its calls is refused.
    fn command(&self, call: &Call<'_>, all: &Capabilities) {
        let Some(field) = call.target.text().and_then(|it| command_field(all, it)) else { return };
        let Some(arguments) = call.parameters.key(field).filter(|_| call.has_parameters) else {
            return;
        };
        for (number, at) in arguments.items().iter().enumerate() {
            let text = at.text().unwrap_or_default();
            if let Err(why) = argument_of_template(text) {
                let path = format!("{}[{number}]", joined(&call.parameters_path, field));
                let example = "write [grep, --file={{file}}, --, \"{{word}}\"]";
                self.wrong(Mistake::new(at.place, why).at(&path).advice(example));
            }
        }
    }

    fn call(&self, call: &Call<'_>, names: &BTreeMap<&str, Option<Place>>, all: &Capabilities) {
        let Some(said) = call.target.text() else { return };
        // Each beginning of the target that ends before a dot may be the listener's name.
        let points = said.match_indices('.').map(|(at, _)| &said[..at]);
        let named = points.chain([said]).filter_map(|it| all.listener(it));
        let Some(listener) = named.max_by_key(|it| it.name.len()) else { return };
        if !names.contains_key(&*listener.name) || call.is_template && said.contains(PLACEHOLDER) {
            return;
        }
        let (json, mistakes) = match call.has_parameters {
            true => whole::<Json>(self.file, call.parameters),
            false => (Ok(Json::Object(Map::new())), Vec::new()),
        };
        let Some(json) = json.ok().filter(|_| mistakes.is_empty()) else { return };
        let may = |it: &Called<'_>| it.listener.name != action::NAME;
        let given: Vec<&str> =
            json.as_object().into_iter().flat_map(Map::keys).map(|it| &**it).collect();
        match find(all, said, &given, may) {
            Ok(called) => self.parameters(call, &called, &json),
            Err(_) => self.target(call, said, &listener.name, all),
        }
    }

    /// Adds the mistake of a target that names no payload, although its listener takes several, or
    /// a payload that its listener doesn't take.
    fn target(&self, call: &Call<'_>, said: &str, listener: &str, all: &Capabilities) {
        let Some(described) = all.listener(listener) else { return };
        let offered = action::call::offered(all, described);
        let names: Vec<&str> = offered.iter().map(|it| &*it.0).collect();
        let payload = said.strip_prefix(listener).and_then(|it| it.strip_prefix('.'));
        let text = match payload {
            Some(payload) => format!("`{listener}` takes no payload `{}`", cut(payload)),
            None if names.is_empty() => format!("`{listener}` takes no calls"),
            None => format!("`{listener}` takes several payloads, and more than one fits"),
        };
        let mistake = Mistake::new(call.target.place, text).at(&call.path);
        let mistake = match payload {
            Some(_) => mistake.or_nearest(said, names.iter().copied()),
            None => mistake,
        };
        self.wrong(match names[..] {
            [] => mistake,
            _ => mistake.advice(format!("name one of {}", names.join(", "))),
        });
    }

    /// Adds the mistake of a program's arguments in which a value may be more than one argument.
    fn arguments(&self, call: &Call<'_>, called: &Called<'_>, json: &Json) {
        let Some(it) = called.listener.extension::<CommandLine>() else { return };
        let is_reference = |it: &Reference<'_>| REFERENCES.contains(&it.name);
        if let Err(why) = check_places(&json[it.field], is_reference) {
            let place = along(call.parameters, it.field).place;
            let mistake = Mistake::new(place, format!("`{}`: {why}", called.listener.name));
            let mistake = mistake.at(&joined(&call.parameters_path, it.field));
            self.wrong(mistake.advice("list each value as an argument of its own".to_owned()));
        }
    }

    /// Adds the mistakes of a call's parameters. Those at one place are one mistake.
    fn parameters(&self, call: &Call<'_>, called: &Called<'_>, json: &Json) {
        self.arguments(call, called, json);
        let name = match called.listener.takes.len() {
            1 => called.listener.name.clone(),
            _ => format!("{}.{}", called.listener.name, called.schema.name.local()),
        };
        let mut wrong: BTreeMap<(Place, String), Vec<Error>> = BTreeMap::new();
        for error in misfits(called.schema, json, call.is_template) {
            let mut path = error.path.trim_start_matches(['$', '.']).to_owned();
            if let (Rule::Property, Some(stranger)) = (error.rule, &error.property) {
                path = joined(&path, stranger);
            }
            let place = along(call.parameters, &path).place;
            let path = match call.has_parameters && !path.is_empty() {
                true => joined(&call.parameters_path, &path),
                false => call.parameters_path.clone(),
            };
            wrong.entry((place, path)).or_default().push(error);
        }
        for ((place, path), errors) in wrong {
            let said = |it: &Error| match &*it.path {
                "$" => format!("`{name}` {}", it.message),
                path => format!("`{name}`: {path} {}", it.message),
            };
            let texts: BTreeSet<String> = errors.iter().map(said).collect();
            let text = texts.into_iter().collect::<Vec<String>>().join("; ");
            let mut mistake = Mistake::new(place, text).at(&path);
            let nearest = errors.first().and_then(|it| it.nearest.as_deref());
            mistake.nearest = nearest.map(|it| it.trim_matches('"').into());
            let advice: BTreeSet<String> = errors.iter().map(Error::advice).collect();
            let advice: Vec<String> = advice.into_iter().collect();
            let told = format!("`pumphouse describe {}` shows it", called.schema.name.local());
            self.wrong(mistake.advice(format!("{} {told}", advice.join(" "))));
        }
    }
}

impl Reader<'_> {
    /// Adds what `build()` would complain of, if there are mistakes already: without them, it is
    /// told when the organism is built.
    pub(super) fn complaints(&self, made: &[(&Node, String, Listener)]) {
        if self.mistakes.borrow().is_empty() {
            return;
        }
        let listeners = made.iter().map(|(.., it)| it);
        for (listener, text) in self.builder.complaints_with(listeners) {
            let of = |it: &&(&Node, String, Listener)| Some(it.2.name()) == listener.as_deref();
            let all: Vec<_> = made.iter().filter(of).collect();
            let Some((node, path, _)) = all.first() else { continue };
            // What is wrong with a listener that has mistakes may follow from them.
            let is_told = |path: &str| {
                let mistakes = self.mistakes.borrow();
                mistakes.iter().any(|it| !path.is_empty() && it.path.starts_with(path))
            };
            if all.iter().all(|(_, path, _)| !is_told(path)) {
                self.wrong(Mistake::new(node.place, text).at(path));
            }
        }
    }

    /// Adds a mistake for each trigger that doesn't fit the payloads of the organism.
    /// If not all payloads are known, a trigger may watch one that isn't.
    pub(super) fn wrong_triggers(
        &self,
        source: &TriggerSource,
        all: &Capabilities,
        are_known: bool,
    ) {
        let places = trigger_places(&self.includes.workflows);
        let is_sure = |it: &WrongTrigger| are_known || it.key != "payload";
        for wrong in source.wrong_triggers(all).into_iter().filter(is_sure) {
            let place = places.get(&(wrong.workflow.clone(), wrong.key)).copied();
            let mistake = Mistake::new(place.unwrap_or(Place::new(1, 1)), wrong.wrong.to_string());
            self.wrong(mistake.at(&format!("trigger.{}", wrong.key)));
        }
    }
}

impl<'a> Call<'a> {
    fn of(node: &'a Node, (target, parameters): (&str, &str), path: &str) -> Option<Call<'a>> {
        let given = node.key(parameters);
        Some(Call {
            target: node.key(target)?,
            path: joined(path, target),
            parameters: given.unwrap_or(node),
            parameters_path: match given {
                Some(_) => joined(path, parameters),
                None => path.to_owned(),
            },
            has_parameters: given.is_some(),
            is_template: false,
        })
    }
}

/// Collects the calls of an agent's templates of actions.
fn templates<'a>(item: &'a Node, path: &str, found: &mut Vec<Call<'a>>) {
    let Some(all) = item.key("action_templates") else { return };
    for name in all.keys() {
        let path = joined(&joined(path, "action_templates"), name);
        let keys = ("name", "parameters");
        let Some(template) = all.key(name) else { continue };
        let undo = template.key("compensate");
        let undo = undo.and_then(|it| Call::of(it, keys, &joined(&path, "compensate")));
        let calls = Call::of(template, keys, &path).into_iter().chain(undo);
        found.extend(calls.map(|it| Call { is_template: true, ..it }));
    }
}

/// Collects the calls of steps, also those that undo a step.
fn steps<'a>(all: Option<&'a Node>, path: &str, found: &mut Vec<Call<'a>>) {
    for (number, step) in all.map(Node::items).unwrap_or_default().iter().enumerate() {
        let path = format!("{path}[{number}]");
        let keys = ("target", "parameters");
        found.extend(Call::of(step, keys, &path));
        let undo = step.key("compensate");
        found.extend(undo.and_then(|it| Call::of(it, keys, &joined(&path, "compensate"))));
        for branch in ["then", "else"] {
            steps(step.key(branch), &format!("{path}.{branch}"), found);
        }
    }
}

/// Returns what is wrong with parameters, whatever their references stand for, and whatever the
/// placeholders of a template do.
fn misfits(schema: &Schema, json: &Json, is_template: bool) -> Vec<Error> {
    // Workflows and payloads of open content take any parameters.
    if matches!(schema.shape.content, Content::Any) && schema.original().is_none() {
        return Vec::new();
    }
    let errors = schema::from_json(schema, json).err().map(|it| it.all).unwrap_or_default();
    let is_known = |it: &Error| match it.rule {
        Rule::Property | Rule::Missing | Rule::Choice | Rule::Null => true,
        _ => !at(json, &it.path).is_none_or(|it| is_open(it, is_template)),
    };
    errors.into_iter().filter(is_known).collect()
}

/// Returns the value at a path.
fn at<'a>(json: &'a Json, path: &str) -> Option<&'a Json> {
    JsonPath::parse(path).ok()?.query(json).exactly_one().ok()
}

/// Returns whether a value has a reference, or a text that may be one. In a template, also whether
/// it has a placeholder.
fn is_open(value: &Json, is_template: bool) -> bool {
    match value {
        Json::String(text) => text.contains('$') || is_template && text.contains(PLACEHOLDER),
        Json::Array(items) => items.iter().any(|it| is_open(it, is_template)),
        Json::Object(map) => map.values().any(|it| is_open(it, is_template)),
        _ => false,
    }
}
