//! The plan of a workflow: its steps as a list, each with the steps that must end before it starts.

use std::collections::{BTreeMap, BTreeSet};

use pumphouse::limits::ActionLimits;
use pumphouse::schema::nearest;
use serde_json::{Map, Value};

use super::super::action::variables::{self, Piece, Reference, pieces};
use super::super::agent_context;
use super::super::condition::Type;
use super::super::metadata::METADATA;
use super::definition::{Definition, OnFailure, Step, StepKind, WrongDefinition};

/// The names that references begin with.
pub(super) const TRIGGER: &str = "trigger";
pub(super) const STEPS: &str = "steps";
pub(super) const WORKFLOW: &str = "workflow";
pub(super) const AGENT: &str = "agent";
pub(super) const SUCCESS: &str = "previous_steps_success";

/// The names that references in parameters and outputs may begin with.
pub(super) const NAMES: [&str; 5] = [TRIGGER, STEPS, WORKFLOW, AGENT, METADATA];
/// The fields of `workflow`.
pub(super) const WORKFLOW_FIELDS: [&str; 3] = ["name", "run", "started_at"];

/// The end of the names of calls that undo steps.
const UNDO: &str = "-undo";

/// A workflow whose definition is valid.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    pub(super) definition: Definition,
    pub(super) steps: Vec<Planned>,
}

/// A step and its place in the plan.
#[derive(Clone, Debug)]
pub(super) struct Planned {
    pub(super) step: Step,
    /// The path of the step in the file.
    pub(super) path: String,
    /// The numbers of the steps that must have ended before this one starts.
    pub(super) after: Vec<usize>,
    /// The decision whose branch the step is in, and whether it is the branch `then`.
    pub(super) branch: Option<(usize, bool)>,
    pub(super) on_failure: OnFailure,
}

impl Plan {
    /// Makes the plan of a definition.
    ///
    /// # Errors
    /// Fails with all mistakes of the definition, each with its path.
    pub(super) fn new(definition: Definition) -> Result<Plan, Vec<WrongDefinition>> {
        let (plan, wrong) = Plan::with_mistakes(definition);
        if wrong.is_empty() { Ok(plan) } else { Err(wrong) }
    }

    /// Makes the plan of a definition. Also returns all mistakes of the definition, each with its
    /// path. A plan with mistakes can be compared with other parts of an organism, but can't run.
    pub(super) fn with_mistakes(definition: Definition) -> (Plan, Vec<WrongDefinition>) {
        let mut planner = Planner { on_failure: definition.on_failure, ..Planner::default() };
        planner.sequence(&definition.steps, "steps", &[], None);
        planner.connect();
        planner.check_circles();
        let steps: Vec<Planned> = planner.planned.into_iter().map(|(_, it)| it).collect();
        let mut wrong = planner.wrong;
        if definition.timeout.is_some_and(|it| it.duration().is_zero()) {
            wrong.push(WrongDefinition::new("timeout", "it is more than 0 s"));
        }
        if definition.steps.is_empty() {
            wrong.push(WrongDefinition::new("steps", "a workflow needs a step"));
        }
        if let Some(trigger) = &definition.trigger {
            wrong.extend(trigger.mistakes());
        }
        if let Some(value) = &definition.value
            && !definition.outputs.contains_key(value)
        {
            let names: Vec<&str> = definition.outputs.keys().map(String::as_str).collect();
            let there = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
            let message = format!("there is no output {value}; there is {there}");
            wrong.push(WrongDefinition::new("value", message));
        }
        let plan = Plan { definition, steps };
        wrong.extend(plan.wrong_conditions(&plan.known(Type::Any)));
        wrong.extend(plan.wrong_references());
        (plan, wrong)
    }

    /// The types of the values that conditions may refer to. `metadata` is the type of the agent's
    /// metadata.
    pub(super) fn known(&self, metadata: Type) -> Type {
        let steps = self.steps.iter().map(|it| (it.step.name.clone(), Type::Any));
        Type::record([
            (TRIGGER, Type::Any),
            (STEPS, Type::record(steps)),
            (WORKFLOW, Type::record(WORKFLOW_FIELDS.map(|it| (it, Type::Text)))),
            (AGENT, Type::record(agent_context::FIELDS.map(|it| (it, Type::Any)))),
            (METADATA, metadata),
            (SUCCESS, Type::Boolean),
        ])
    }

    /// The fields of the agent's context that the workflow refers to.
    pub(super) fn agent_fields(&self) -> BTreeSet<String> {
        let mut found = BTreeSet::new();
        let mut add = |name: &str, field: Option<&str>| match (name, field) {
            (METADATA, _) => drop(found.insert(METADATA.to_owned())),
            (AGENT, Some(field)) => drop(found.insert(field.to_owned())),
            (AGENT, None) => found.extend(agent_context::FIELDS.map(str::to_owned)),
            _ => {}
        };
        for (_, parameters) in self.texts() {
            each_reference(parameters, &mut |it| {
                let path = variables::steps(it.path).unwrap_or_default();
                add(it.name, path.first().copied());
            });
        }
        let conditions = self.steps.iter().filter_map(|it| it.step.condition.as_ref());
        for reference in conditions.flat_map(|it| it.condition.references()) {
            add(reference.name(), reference.path().next().as_deref());
        }
        found
    }

    /// The maps whose values may have references, each with its path in the file.
    pub(super) fn texts(&self) -> Vec<(String, &Map<String, Value>)> {
        let mut all = vec![("outputs".to_owned(), &self.definition.outputs)];
        for Planned { step, path, .. } in &self.steps {
            all.extend(step.fail.iter().map(|it| (path.clone(), it.fields())));
            all.push((format!("{path}.parameters"), &step.parameters));
            if let Some(undo) = &step.compensate {
                all.push((format!("{path}.compensate.parameters"), &undo.parameters));
            }
        }
        all
    }
}

/// Flattens nested steps into a list.
#[derive(Default)]
struct Planner {
    on_failure: OnFailure,
    /// The steps, each with the names in its `depends_on`.
    planned: Vec<(Option<Vec<String>>, Planned)>,
    wrong: Vec<WrongDefinition>,
}

impl Planner {
    /// Adds the steps of a list. The first of them waits for the steps in `after`. Returns the
    /// steps that the next step waits for.
    fn sequence(
        &mut self,
        steps: &[Step],
        path: &str,
        after: &[usize],
        branch: Option<(usize, bool)>,
    ) -> Vec<usize> {
        let begin = self.planned.len();
        let mut before = after.to_vec();
        let mut group: Option<(&str, Vec<usize>, Vec<usize>)> = None;
        for (number, step) in steps.iter().enumerate() {
            let path = format!("{path}[{number}]");
            let own = step.parallel_group.as_deref();
            // A step that isn't in the group ends the group.
            if let Some((name, _, ends)) = &group
                && own != Some(*name)
            {
                before = ends.clone();
                group = None;
            }
            let starts = match (&group, step.kind) {
                (Some((_, starts, _)), _) => starts.clone(),
                (None, StepKind::Barrier) => {
                    (begin..self.planned.len()).chain(before.iter().copied()).collect()
                }
                (None, _) => before.clone(),
            };
            let ends = self.step(step, &path, &starts, branch);
            match (&mut group, own) {
                (Some((_, _, all)), _) => all.extend(ends),
                (None, Some(name)) => group = Some((name, starts, ends)),
                (None, None) => before = ends,
            }
        }
        group.map_or(before, |(_, _, ends)| ends)
    }

    /// Adds one step with the steps of its branches. Returns the steps that the next step waits
    /// for.
    fn step(
        &mut self,
        step: &Step,
        path: &str,
        after: &[usize],
        branch: Option<(usize, bool)>,
    ) -> Vec<usize> {
        self.check(step, path);
        let number = self.planned.len();
        let on_failure = step.on_failure.unwrap_or(self.on_failure);
        let (step_path, after) = (path.to_owned(), after.to_vec());
        let planned = Planned { step: step.clone(), path: step_path, after, branch, on_failure };
        self.planned.push((step.depends_on.clone(), planned));
        if step.kind != StepKind::Decision {
            return vec![number];
        }
        let mut ends = vec![number];
        for (steps, key, is_then) in [(&step.then, "then", true), (&step.otherwise, "else", false)]
        {
            let path = format!("{path}.{key}");
            ends.extend(self.sequence(steps, &path, &[number], Some((number, is_then))));
        }
        ends.sort_unstable();
        ends.dedup();
        ends
    }

    /// Checks the keys of a step, and that no earlier step has its name.
    fn check(&mut self, step: &Step, path: &str) {
        let mut wrong = |key: &str, message: &str| {
            let path = if key.is_empty() { path.to_owned() } else { format!("{path}.{key}") };
            self.wrong.push(WrongDefinition::new(path, message));
        };
        let name = &step.name;
        let is_word = |it: char| it.is_ascii_alphanumeric() || matches!(it, '_' | '-');
        if !name.starts_with(|it: char| it.is_ascii_alphabetic() || it == '_')
            || !name.chars().all(is_word)
        {
            let text = format!(
                "{name:?} is no name of a step: it has letters, digits, _ and -, and begins with a \
                 letter or _"
            );
            wrong("name", &text);
        } else if name.ends_with(UNDO) {
            wrong("name", &format!("names that end in {UNDO} are those of calls that undo a step"));
        }
        if let Some(text) = step.condition.as_ref().and_then(|it| it.wrong.as_ref()) {
            wrong("condition", text);
        }
        let calls = !matches!(step.kind, StepKind::Decision | StepKind::Barrier);
        let nobody = match step.fail {
            Some(_) => "a step with `fail` ends the run, and calls nobody",
            None => "a decision and a barrier can't fail, and call nobody",
        };
        if step.fail.is_some() && step.kind != StepKind::Tool {
            wrong("fail", "a step with `fail` has no `type`");
        }
        let calls = calls && step.fail.is_none();
        if calls && step.target.is_none() {
            wrong("", "the step needs the key `target`, the listener that it calls, or `fail`");
        }
        if !calls && step.target.is_some() {
            wrong("target", nobody);
        }
        if step.kind == StepKind::Decision {
            if step.condition.is_none() {
                wrong("", "a decision needs the key `condition`");
            }
            if step.then.is_empty() && step.otherwise.is_empty() {
                wrong("", "a decision needs steps under `then` or `else`");
            }
        } else if !step.then.is_empty() || !step.otherwise.is_empty() {
            wrong("", "only a step of the type `decision` has `then` and `else`");
        }
        let limits = ActionLimits::default();
        if let Some(policy) = step.retry_policy {
            let max = u32::try_from(limits.retry_max).unwrap_or(u32::MAX).saturating_add(1);
            if policy.max_attempts == 0 || policy.max_attempts > max {
                wrong("retry_policy.max_attempts", &format!("it is from 1 to {max}"));
            }
        }
        let most = limits.timeout_max;
        if step.timeout.is_some_and(|it| it.duration().is_zero() || it.duration() > most) {
            wrong("timeout", &format!("it is more than 0 s and at most {} s", most.as_secs()));
        }
        if !calls {
            keys_of_calls(step).into_iter().for_each(|key| wrong(key, nobody));
        }
        if self.planned.iter().any(|(_, it)| it.step.name == *name) {
            wrong("name", &format!("there is another step `{name}`"));
        }
    }

    /// Gives each step that has `depends_on` the dependencies that are named there, instead of
    /// those from its place in the file.
    fn connect(&mut self) {
        let names: BTreeMap<String, usize> = self
            .planned
            .iter()
            .enumerate()
            .map(|(number, (_, it))| (it.step.name.clone(), number))
            .collect();
        for (needed, planned) in &mut self.planned {
            let Some(needed) = needed else { continue };
            let path = &planned.path;
            // A step of a branch still waits for its decision.
            let mut after: Vec<usize> =
                planned.branch.map(|(decision, _)| decision).into_iter().collect();
            for (place, name) in needed.iter().enumerate() {
                match names.get(name) {
                    Some(number) => after.push(*number),
                    None => {
                        let near = nearest(name, names.keys().map(String::as_str));
                        let near = near.map(|it| format!("; did you mean `{it}`?"));
                        let text = format!("there is no step `{name}`{}", near.unwrap_or_default());
                        self.wrong.push(WrongDefinition::new(
                            format!("{path}.depends_on[{place}]"),
                            &text,
                        ));
                    }
                }
            }
            planned.after = after;
        }
    }

    /// Adds a mistake if steps wait for each other in a cycle.
    fn check_circles(&mut self) {
        let mut settled = vec![false; self.planned.len()];
        loop {
            let ready = |number: &usize| {
                !settled[*number] && self.planned[*number].1.after.iter().all(|it| settled[*it])
            };
            let Some(next) = (0..settled.len()).find(ready) else { break };
            settled[next] = true;
        }
        let names: Vec<&str> = settled
            .iter()
            .zip(&self.planned)
            .filter(|(is_settled, _)| !**is_settled)
            .map(|(_, (_, it))| &*it.step.name)
            .collect();
        if !names.is_empty() {
            let text = format!("these steps wait for each other: {}", names.join(", "));
            self.wrong.push(WrongDefinition::new("steps", &text));
        }
    }
}

/// The keys of a step that say something of its call, beside `target`.
fn keys_of_calls(step: &Step) -> Vec<&'static str> {
    let all = [
        ("parameters", !step.parameters.is_empty()),
        ("timeout", step.timeout.is_some()),
        ("retry_policy", step.retry_policy.is_some()),
        ("on_failure", step.on_failure.is_some()),
        ("failed_statuses", step.failed_statuses.is_some()),
        ("compensate", step.compensate.is_some()),
    ];
    all.into_iter().filter(|(_, is_there)| *is_there).map(|(key, _)| key).collect()
}

/// Calls a function for each reference in the values of a map.
pub(super) fn each_reference(map: &Map<String, Value>, found: &mut dyn FnMut(&Reference<'_>)) {
    map.values().for_each(|it| each_reference_in(it, found));
}

/// Calls a function for each reference in a value.
pub(super) fn each_reference_in(value: &Value, found: &mut dyn FnMut(&Reference<'_>)) {
    match value {
        Value::String(text) => {
            for piece in pieces(text) {
                if let Piece::Reference(reference) = piece {
                    found(&reference);
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|it| each_reference_in(it, found)),
        Value::Object(map) => each_reference(map, found),
        _ => {}
    }
}

/// The name of the call that undoes a step. [`action_id`] makes the action's id from this name.
pub(super) fn undo_of(step: &str) -> String {
    format!("{step}{UNDO}")
}

/// The id of the action that runs or undoes a step. A thread may have several runs, which pushes
/// began. The ids of their actions differ.
pub(super) fn action_id(run: u64, step: &str) -> String {
    match run {
        1 => step.to_owned(),
        run => format!("{step}.{run}"),
    }
}
