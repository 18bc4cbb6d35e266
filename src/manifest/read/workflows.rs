//! Reads the workflows of a manifest, and the triggers that watch its agents.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde::de::DeserializeOwned;

use crate::listener::Listener;
use crate::listeners::metadata::Fields;
use crate::listeners::trigger::{self, Triggers};
use crate::listeners::workflow::definition::{Definition, TriggerKind};
use crate::listeners::workflow::{Workflow, WrongDefinition};
use crate::manifest::check;
use crate::manifest::check::joined;
use crate::manifest::mistake::{Mistake, Mistakes, Place, cut};
use crate::manifest::read::Reader;
use crate::manifest::read::includes::WORKFLOWS;
use crate::manifest::read::known::Known;
use crate::manifest::settings::{At, Findings, Wrong};
use crate::manifest::yaml;
use crate::manifest::yaml::{Node, Value};
use crate::xml;

/// The workflows of a manifest, each with the content of its file.
#[derive(Default)]
pub(super) struct Workflows<'a> {
    /// The workflows. One whose file has mistakes lacks the parts with these mistakes.
    all: Vec<(&'a Node, Workflow)>,
    /// The names of the workflows whose files have mistakes.
    wrong: BTreeSet<String>,
}

impl<'a> Workflows<'a> {
    fn get(&self, name: &str) -> Option<&(&'a Node, Workflow)> {
        self.all.iter().find(|(_, it)| it.name() == name)
    }

    /// Whether each of the included files could be read as a workflow, if only in part.
    pub(super) fn are_all(&self, included: &[Node]) -> bool {
        self.all.len() == included.len()
    }

    /// The listeners of the workflows whose files have mistakes.
    pub(super) fn wrong_listeners(&self) -> Vec<Listener> {
        let wrong = self.all.iter().filter(|(_, it)| self.wrong.contains(it.name()));
        wrong.map(|(_, it)| it.clone().listener()).collect()
    }

    /// Whether an agent names a workflow with a trigger on the metadata of agents.
    pub(super) fn watch(&self, item: &Node) -> bool {
        let named = item.key(WORKFLOWS).map(Node::items).unwrap_or_default();
        let mut named = named.iter().filter_map(|it| self.get(it.text()?));
        named.any(|(_, it)| watches_metadata(it))
    }
}

impl Reader<'_> {
    /// Reads the included workflows.
    pub(super) fn workflows<'b>(&self, nodes: &'b [Node]) -> Workflows<'b> {
        let mut workflows = Workflows::default();
        for node in nodes {
            let (read, mistakes) = read(self.file, node);
            if let Some(it) = read {
                let is_wrong = !mistakes.is_empty();
                workflows.wrong.extend(is_wrong.then(|| it.name().to_owned()));
                workflows.all.push((node, self.with_environment(it, node)));
            }
            mistakes.into_iter().for_each(|it| self.wrong(it));
        }
        self.wrong_circles(&workflows);
        workflows
    }

    /// The workflow, with the variables that its file lists.
    fn with_environment(&self, mut workflow: Workflow, node: &Node) -> Workflow {
        for at in node.key("environment").map(Node::items).unwrap_or_default() {
            let Some(name) = at.text() else { continue };
            if let Some(value) = (self.environment)(name) {
                workflow = workflow.variable(name, value);
            }
        }
        workflow
    }

    /// The triggers of the workflows.
    pub(super) fn triggers(&self, all: &Workflows<'_>, root: &Node) -> Triggers {
        let (mut triggers, mut watching) = (Triggers::default(), BTreeSet::new());
        // Maps the name of a workflow to its agents. Each agent has the workflow's mistakes about
        // the agent's metadata fields.
        let mut agents: BTreeMap<&str, Vec<(&str, Vec<WrongDefinition>)>> = BTreeMap::new();
        for (node, workflow) in &all.all {
            if let Err(error) = triggers.add(workflow) {
                let path = "trigger.conditions";
                let mistake = Mistake::new(along(node, path).place, error.wrong.to_string());
                self.wrong(mistake.at(path));
            }
        }
        for (path, item) in self.items(root) {
            let named = item.key(WORKFLOWS).map(Node::items).unwrap_or_default();
            let named: Vec<_> = named.iter().filter_map(|it| all.get(it.text()?)).collect();
            if named.is_empty() {
                continue;
            }
            watching.extend(named.iter().map(|(_, it)| it.name().to_owned()));
            let Some(agent) = item.key("name").and_then(Node::text) else { continue };
            let Some(fields) = self.surroundings::<Fields>(item, "metadata", &path) else {
                continue;
            };
            for (node, workflow) in &named {
                let alone = Triggers::default().watch(agent, fields.clone(), [workflow]);
                if let Err(error) = alone {
                    let text = format!("for the agent `{agent}`: {}", error.wrong);
                    let path = "trigger.conditions";
                    self.wrong(Mistake::new(along(node, path).place, text).at(path));
                }
            }
            for (_, workflow) in &named {
                let wrong = workflow.wrong_metadata(&fields);
                agents.entry(workflow.name()).or_default().push((agent, wrong));
            }
            let workflows = named.iter().map(|(_, it)| it);
            let _ = triggers.watch(agent, fields, workflows);
        }
        for (node, workflow) in &all.all {
            self.wrong_fields(node, agents.remove(workflow.name()).unwrap_or_default());
        }
        let idle = all.all.iter().filter(|(_, it)| watches_metadata(it));
        for (node, workflow) in idle.filter(|(_, it)| !watching.contains(it.name())) {
            let text = format!("the trigger of `{}` watches no agent", workflow.name());
            let mistake = Mistake::new(along(node, "trigger").place, text).at("trigger");
            let advice =
                format!("name the workflow at an agent: `workflows: [{}]`", workflow.name());
            self.wrong(mistake.advice(advice));
        }
        triggers
    }

    /// Adds a workflow's mistakes about the metadata fields of its first agent. Adds none if the
    /// workflow fits the fields of at least one of its agents.
    fn wrong_fields(&self, node: &Node, agents: Vec<(&str, Vec<WrongDefinition>)>) {
        if agents.iter().any(|(_, it)| it.is_empty()) {
            return;
        }
        let Some((agent, wrong)) = agents.into_iter().next() else { return };
        for it in wrong {
            let text = format!("for the agent `{agent}`: {}", it.message);
            self.wrong(Mistake::new(along(node, &it.path).place, text).at(&it.path));
        }
    }

    /// Adds a mistake for each workflow that may set the metadata of an agent and isn't one of the
    /// agent's workflows.
    pub(super) fn wrong_sources(&self, root: &Node) {
        for (path, item) in self.items(root) {
            let sources = item.key("metadata").and_then(|it| it.key("from_workflows"));
            let own = item.key(WORKFLOWS).map(Node::items).unwrap_or_default();
            let own: Vec<&str> = own.iter().filter_map(Node::text).collect();
            for node in sources.map(Node::items).unwrap_or_default() {
                let Some(said) = node.text().filter(|it| !own.contains(it)) else { continue };
                let text = format!("`{}` is no workflow of this agent", cut(said));
                let mistake = Mistake::new(node.place, text);
                let mistake = mistake.at(&joined(&path, "metadata.from_workflows"));
                let mistake = mistake.or_nearest(said, own.iter().copied());
                self.wrong(mistake.advice("the key `workflows` of the agent names its workflows"));
            }
        }
    }

    /// Adds a mistake for each step whose target names no listener.
    pub(super) fn targets(
        &self,
        nodes: &[Node],
        names: &BTreeMap<&str, Option<Place>>,
        known: &Known<'_>,
    ) {
        for node in nodes {
            let mut found = Vec::new();
            targets(node.key("steps"), "steps", &mut found);
            for (at, path) in found {
                let Some(said) = at.text() else { continue };
                let points = said.match_indices('.').map(|(at, _)| &said[..at]);
                if points.chain([said]).any(|it| names.contains_key(it)) {
                    continue;
                }
                let text = format!("there is no listener `{}`", cut(said));
                let mistake = Mistake::new(at.place, text).at(&path);
                self.wrong(self.to_add(mistake, said, known));
            }
        }
    }

    /// Adds a mistake for each workflow that runs itself, directly or through other workflows.
    fn wrong_circles(&self, all: &Workflows<'_>) {
        let calls: BTreeMap<&str, Vec<&str>> =
            all.all.iter().map(|(_, it)| (it.name(), it.definition().targets())).collect();
        for (node, workflow) in &all.all {
            let name = workflow.name();
            let (mut reached, mut open) = (BTreeSet::new(), calls[name].clone());
            while let Some(next) = open.pop() {
                if reached.insert(next) {
                    open.extend(calls.get(next).into_iter().flatten());
                }
            }
            if reached.contains(name) {
                let text = format!("a run of `{name}` would begin another run of `{name}`");
                let through: Vec<&str> = reached
                    .into_iter()
                    .filter(|it| *it != name && calls.contains_key(it))
                    .collect();
                let mistake = Mistake::new(along(node, "steps").place, text).at("steps");
                self.wrong(match through.is_empty() {
                    true => mistake.advice("a step can't call its own workflow"),
                    false => mistake.advice(format!("it runs {}", through.join(", "))),
                });
            }
        }
    }
}

/// Whether a workflow has a trigger on the metadata of agents.
fn watches_metadata(workflow: &Workflow) -> bool {
    let trigger = workflow.definition().trigger.as_ref();
    trigger.is_some_and(|it| it.kind() == TriggerKind::MetadataMatch)
}

/// The listeners of the workflows without mistakes, and the listener `trigger` if there is a
/// trigger.
pub(super) fn workflow_listeners<'b>(
    all: &Workflows<'b>,
    triggers: Triggers,
    root: &'b Node,
) -> Vec<(&'b Node, String, Listener)> {
    let right = all.all.iter().filter(|(_, it)| !all.wrong.contains(it.name()));
    let listeners = right.map(|(node, it)| (*node, String::new(), it.clone().listener()));
    let triggers = (!triggers.is_empty()).then(|| (root, String::new(), triggers.listener()));
    listeners.chain(triggers).collect()
}

/// The places of the keys `payload` and `conditions` of triggers. These keys are compared with the
/// organism's payloads.
pub(super) fn trigger_places(workflows: &[Node]) -> BTreeMap<(String, &'static str), Place> {
    let mut found = BTreeMap::new();
    for node in workflows {
        let Some(name) = node.key("name").and_then(Node::text) else { continue };
        for key in ["payload", "conditions"] {
            let place = along(node, &format!("trigger.{key}")).place;
            found.insert((name.to_owned(), key), place);
        }
    }
    found
}

/// Reads a workflow from its file, without a manifest.
///
/// # Errors
/// All mistakes of the file.
pub fn workflow(file: &Path, bytes: &[u8]) -> Result<Workflow, Mistakes> {
    let wrong = |all| Mistakes::new(&file.display().to_string(), all);
    let node = yaml::read(bytes).map_err(|it| wrong(vec![it]))?;
    match read(file, &node) {
        (Some(workflow), mistakes) if mistakes.is_empty() => Ok(workflow),
        (_, mistakes) => Err(wrong(mistakes)),
    }
}

/// Reads a workflow. Paths in it start at the folder of `file`. Also returns all mistakes of the
/// file. A workflow with mistakes lacks the parts that have them. None if the rest is no workflow.
fn read(file: &Path, node: &Node) -> (Option<Workflow>, Vec<Mistake>) {
    let (mut mended, mut mistakes) = without_mistakes(file, node);
    let name = mended.key("name").and_then(Node::text).unwrap_or_default();
    if mended.key("name").is_some() && !xml::is_name(name) {
        let at = node.key("name").unwrap_or(node);
        let text =
            format!("a workflow's payload has its name, and no element can be <{}>", cut(name));
        let mistake = Mistake::new(at.place, text).at("name");
        mistakes.push(mistake.advice("begin it with a letter, as in `name: finalization`"));
    }
    if name == trigger::NAME {
        let at = node.key("name").unwrap_or(node);
        let text = format!("`{name}` is a word of the pump's own");
        let mistake = Mistake::new(at.place, text).at("name");
        mistakes.push(mistake.advice("give it another `name:`"));
    }
    let (workflow, more) = made(file, node, &mended, &mistakes);
    mistakes.extend(more);
    check::twice_below(node, "", &mut mistakes);
    if mistakes.iter().any(|it| it.path.starts_with(TRIGGER)) && mended.key(TRIGGER).is_some() {
        // A trigger with mistakes isn't compared with the agents that it watches.
        leave_out(&mut mended, TRIGGER);
        return (made(file, node, &mended, &mistakes).0, mistakes);
    }
    (workflow, mistakes)
}

/// Makes the workflow of a file without the parts that have mistakes. Also returns the mistakes of
/// the workflow that don't follow from those that are known.
fn made(
    file: &Path,
    node: &Node,
    mended: &Node,
    mistakes: &[Mistake],
) -> (Option<Workflow>, Vec<Mistake>) {
    let (json, _) = whole::<serde_json::Value>(file, mended);
    let (workflow, wrong) = match json {
        Ok(json) => Workflow::with_mistakes(json),
        Err(error) => (None, vec![WrongDefinition::new("", error.to_string())]),
    };
    let is_new = |it: &&WrongDefinition| {
        // What is left out because of its own mistake is no further one.
        let is_part = |of: &Mistake| it.path.is_empty() || of.path.starts_with(&*it.path);
        !mistakes.iter().any(is_part)
    };
    let placed =
        |it: &WrongDefinition| Mistake::new(along(node, &it.path).place, &*it.message).at(&it.path);
    (workflow, wrong.iter().filter(is_new).map(placed).collect())
}

/// The key of a workflow's trigger.
const TRIGGER: &str = "trigger";
/// How many values with mistakes are left out, so that the rest of a file can be read.
const LEFT_OUT_MAX: usize = 32;

/// Returns the file without the values and keys that have mistakes, and these mistakes. So one
/// mistake doesn't hide the others.
fn without_mistakes(file: &Path, node: &Node) -> (Node, Vec<Mistake>) {
    let (mut mended, mut mistakes) = (node.clone(), Vec::new());
    for _ in 0..LEFT_OUT_MAX {
        let (read, found) = whole::<Definition>(file, &mended);
        let last = found.last();
        let follows = last.filter(|it| follows(it, &read, mistakes.iter().chain(&found)));
        let new = |it: &&Mistake| !mistakes.contains(it) && Some(*it) != follows;
        let new: Vec<Mistake> = found.iter().filter(new).cloned().collect();
        // A missing key can't be left out.
        let ends = new.is_empty() || read.is_ok() || matches!(read, Err(Wrong::Missing(_)));
        found.iter().for_each(|it| leave_out(&mut mended, &it.path));
        mistakes.extend(new);
        if ends {
            break;
        }
    }
    (mended, mistakes)
}

/// Returns whether a mistake is that of a missing key which was left out because of its own
/// mistake, or is written wrong.
fn follows<'a, T>(
    it: &Mistake,
    read: &Result<T, Wrong>,
    mut mistakes: impl Iterator<Item = &'a Mistake>,
) -> bool {
    let Err(Wrong::Missing(key)) = read else { return false };
    let missing = joined(&it.path, key);
    mistakes.any(|of| *of.path == *missing || of.nearest.as_deref() == Some(key))
}

/// Removes the value at a path. An item of a list isn't removed, since others would take its place.
fn leave_out(node: &mut Node, path: &str) {
    let (above, key) = path.rsplit_once('.').unwrap_or(("", path));
    let mut found = node;
    for part in above.split(['.', '[']).filter(|it| !it.is_empty()) {
        let below = match (&mut found.value, part.strip_suffix(']')) {
            (Value::List(items), Some(number)) => {
                number.parse().ok().and_then(|it: usize| items.get_mut(it))
            }
            (Value::Map(entries), _) => {
                entries.iter_mut().find(|it| it.key == part).map(|it| &mut it.value)
            }
            _ => None,
        };
        match below {
            Some(it) => found = it,
            None => return,
        }
    }
    if let Value::Map(entries) = &mut found.value {
        entries.retain(|it| it.key != key);
    }
}

/// Reads the content of a file into a type. Also returns the mistakes, with their places.
pub(super) fn whole<T: DeserializeOwned>(
    file: &Path,
    node: &Node,
) -> (Result<T, Wrong>, Vec<Mistake>) {
    let findings = Findings::of(file);
    let read = T::deserialize(At { node, path: String::new(), findings: &findings });
    (read, findings.all())
}

/// The targets of steps, each with its path.
fn targets<'a>(steps: Option<&'a Node>, path: &str, found: &mut Vec<(&'a Node, String)>) {
    for (number, step) in steps.map(Node::items).unwrap_or_default().iter().enumerate() {
        let path = format!("{path}[{number}]");
        found.extend(step.key("target").map(|it| (it, format!("{path}.target"))));
        let undo = step.key("compensate").and_then(|it| it.key("target"));
        found.extend(undo.map(|it| (it, format!("{path}.compensate.target"))));
        for branch in ["then", "else"] {
            targets(step.key(branch), &format!("{path}.{branch}"), found);
        }
    }
}

/// The value at a path such as `steps[2].condition`, or the nearest one around it.
pub(super) fn along<'a>(node: &'a Node, path: &str) -> &'a Node {
    let mut found = node;
    for part in path.split(['.', '[']).filter(|it| !it.is_empty()) {
        let below = match (&found.value, part.strip_suffix(']')) {
            (Value::List(items), Some(number)) => {
                number.parse().ok().and_then(|it: usize| items.get(it))
            }
            _ => found.key(part),
        };
        match below {
            Some(it) => found = it,
            None => break,
        }
    }
    found
}
