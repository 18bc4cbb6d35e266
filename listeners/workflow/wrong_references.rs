//! Finds the wrong references and conditions of a workflow's plan when the manifest is read.

use std::collections::BTreeSet;

use pumphouse::schema::nearest;
use serde_json::Value;

use super::super::action::variables::{self, Reference};
use super::super::agent_context;
use super::super::condition::Type;
use super::super::metadata::Fields;
use super::definition::WrongDefinition;
use super::plan::{
    AGENT, NAMES, Plan, Planned, STEPS, WORKFLOW, WORKFLOW_FIELDS, each_reference,
    each_reference_in,
};

impl Plan {
    /// The mistakes in references: references that can't have a value or are written with round
    /// brackets.
    pub(super) fn wrong_references(&self) -> Vec<WrongDefinition> {
        let mut wrong = Vec::new();
        for (path, map) in self.texts() {
            for (key, value) in map {
                each_reference_in(value, &mut |it| {
                    let path = format!("{path}.{key}");
                    let message = self.wrong_reference(it);
                    wrong.extend(message.map(|it| WrongDefinition::new(path, it)));
                });
            }
        }
        for (path, map) in self.texts() {
            for (key, value) in map {
                if let Some(found) = in_round_brackets(value) {
                    let text = format!("a reference is written with braces, as in ${{{found}}}");
                    wrong.push(WrongDefinition::new(format!("{path}.{key}"), text));
                }
            }
        }
        for number in 0..self.steps.len() {
            self.wrong_order(number, &mut wrong);
        }
        wrong
    }

    /// Adds a mistake for each reference of this step to a step that doesn't end before this step
    /// starts.
    fn wrong_order(&self, number: usize, wrong: &mut Vec<WrongDefinition>) {
        let (mut before, mut open) = (BTreeSet::new(), self.steps[number].after.clone());
        while let Some(next) = open.pop() {
            if before.insert(next) {
                open.extend(&self.steps[next].after);
            }
        }
        let Planned { step, path, .. } = &self.steps[number];
        let mut check = |key: &str, name: &str| {
            let known = self.steps.iter().position(|it| it.step.name == name);
            if known.is_some_and(|it| !before.contains(&it)) {
                let text =
                    format!("`{name}` doesn't come before `{}`, so it has no result", step.name);
                wrong.push(WrongDefinition::new(format!("{path}.{key}"), text));
            }
        };
        let reason = step.fail.iter().map(|it| ("fail", it.fields()));
        for (key, texts) in reason.chain([("parameters", &step.parameters)]) {
            each_reference(texts, &mut |it| {
                if let (STEPS, Some([step, ..])) = (it.name, variables::steps(it.path).as_deref()) {
                    check(key, step);
                }
            });
        }
        let conditions = step.condition.iter().flat_map(|it| it.condition.references());
        for reference in conditions.filter(|it| it.name() == STEPS) {
            if let Some(step) = reference.path().next() {
                check("condition", &step);
            }
        }
    }

    /// The mistake in a reference. None if the reference may have a value.
    fn wrong_reference(&self, reference: &Reference<'_>) -> Option<String> {
        let Reference { name, path, whole, .. } = *reference;
        let path = variables::steps(path).unwrap_or_default();
        let steps: Vec<&str> = self.steps.iter().map(|it| &*it.step.name).collect();
        let (what, said, right): (&str, &str, &[&str]) = match (name, &path[..]) {
            (STEPS, [step, ..]) => ("there is no step", step, &steps),
            (WORKFLOW, [field, ..]) => ("`workflow` has no", field, &WORKFLOW_FIELDS),
            (AGENT, [field, ..]) => ("`agent` has no", field, &agent_context::FIELDS),
            // A name after a dollar sign, without braces, may be plain text.
            _ if NAMES.contains(&name) || !whole.starts_with("${") => return None,
            _ => ("references don't begin with", name, &NAMES),
        };
        if right.contains(&said) {
            return None;
        }
        let near = nearest(said, right.iter().copied());
        let advice = match near {
            Some(it) => format!("did you mean `{it}`?"),
            None => format!("there is {}", right.join(", ")),
        };
        Some(format!("{whole}: {what} `{said}`; {advice}"))
    }

    pub(super) fn wrong_conditions(&self, known: &Type) -> Vec<WrongDefinition> {
        let check = |planned: &Planned| {
            let condition = planned.step.condition.as_ref()?;
            let wrong = condition.condition.check(known).err()?;
            let path = format!("{}.condition", planned.path);
            Some(WrongDefinition::new(path, wrong.to_string()))
        };
        self.steps.iter().filter_map(check).collect()
    }

    /// The mistakes of the plan if its agent has these metadata fields: references to fields that
    /// don't exist, and comparisons that can't hold.
    pub(super) fn wrong_metadata(&self, fields: &Fields) -> Vec<WrongDefinition> {
        let mut wrong = self.wrong_conditions(&self.known(Type::of_metadata(fields)));
        for (path, map) in self.texts() {
            for (key, value) in map {
                each_reference_in(value, &mut |it| {
                    let lacks = it.metadata_field().and_then(|it| fields.lacks(it));
                    let text = lacks.map(|lacks| format!("{}: metadata has {lacks}", it.whole));
                    wrong.extend(text.map(|it| WrongDefinition::new(format!("{path}.{key}"), it)));
                });
            }
        }
        wrong
    }
}

/// Finds the first reference that is written as `$(trigger.a)`. Returns it without `$(` and `)`.
fn in_round_brackets(value: &Value) -> Option<&str> {
    match value {
        Value::String(text) => text.match_indices("$(").find_map(|(at, _)| {
            let (inside, _) = text[at + 2..].split_once(')')?;
            let name = inside.split(['.', '[']).next()?;
            NAMES.contains(&name).then_some(inside)
        }),
        Value::Array(items) => items.iter().find_map(in_round_brackets),
        Value::Object(map) => map.values().find_map(in_round_brackets),
        _ => None,
    }
}
