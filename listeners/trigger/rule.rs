//! Triggers on metadata, and their decisions. A decision depends on the rules, on earlier
//! decisions, and on the change. It depends on neither clock nor log.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use pumphouse::prelude::*;
use pumphouse::wire::Json;
use serde_json::{Map, Value, json};

use super::super::condition::{Condition, Reference, Type, Verdict, WrongCondition};
use super::super::metadata::{Field, Fields, METADATA};
use super::super::workflow::Workflow;
use super::super::workflow::definition::{Fire, Seconds, TriggerKind};
use super::firings::Watch;
use super::words::TriggerDecision;

/// A rule that begins runs of a workflow when an agent's metadata change.
#[derive(Clone, Debug)]
pub(super) struct Rule {
    /// The name of the trigger and of its workflow.
    pub(super) name: String,
    /// The payload that begins a run.
    pub(super) root: Name,
    condition: Condition,
    /// The fields that the condition refers to.
    fields: BTreeSet<String>,
    fire: Fire,
    priority: i64,
    /// Whether the rule's runs are cancelled when the condition ceases to hold.
    pub(super) cancels_on_change: bool,
    /// How long the condition must hold before the rule fires.
    pub(super) lasts: Option<Seconds>,
}

/// An agent with the rules that watch it.
#[derive(Clone, Debug, Default)]
pub(super) struct Watched {
    fields: Fields,
    /// The rules, those with a higher priority first.
    rules: Vec<Rule>,
    /// The names of the rules whose conditions hold for the fields' defaults.
    at_first: BTreeSet<String>,
}

/// A change of metadata.
pub(super) struct Change<'a> {
    /// The agent's turn. None if the agent itself didn't make the change.
    pub(super) turn: Option<u64>,
    pub(super) fields: &'a Map<String, Value>,
    /// The names of the rules with a run that hasn't ended.
    pub(super) at_work: BTreeSet<&'a str>,
}

/// The decision of a rule.
pub(super) struct Decided<'a> {
    pub(super) rule: &'a Rule,
    pub(super) decision: TriggerDecision,
}

impl Rule {
    /// The rule of a workflow. None if the workflow has no trigger on metadata.
    pub(super) fn of(workflow: &Workflow) -> Option<Result<Rule, WrongCondition>> {
        let trigger = workflow.definition().trigger.as_ref()?;
        if trigger.kind() != TriggerKind::MetadataMatch {
            return None;
        }
        let made = |condition| Rule {
            name: workflow.name().to_owned(),
            root: workflow.root(),
            fields: fields_in(&condition),
            condition,
            fire: trigger.fire(),
            priority: trigger.priority,
            cancels_on_change: trigger.cancels_on_change(),
            lasts: trigger.lasts,
        };
        Some(trigger.condition().transpose()?.map(made))
    }

    /// Decides at the end of the time for which the condition must hold. `has_held` says whether
    /// the condition held all the time.
    pub(super) fn decide_held(&self, values: &Values<'_>, has_held: bool) -> TriggerDecision {
        let Verdict { holds, saw, .. } = values.verdict(&self.condition);
        let saw = Json(Value::Object(saw.into_iter().collect()));
        let time = self.lasts.map(|it| it.seconds()).unwrap_or_default();
        let why = (!has_held).then(|| format!("it has not held for {time} s without a break"));
        TriggerDecision {
            rule: self.name.clone(),
            holds: holds || has_held,
            fires: has_held,
            why,
            saw,
        }
    }

    /// Decides on a change. `was` says whether the condition held before, and `fired` is the turn
    /// in which the rule last fired. None if the rule doesn't fire, and its condition neither
    /// begins nor ceases to hold. A rule with [`Fire::Level`] has a decision at each change while
    /// its condition holds.
    fn decide(
        &self,
        was: bool,
        fired: Option<u64>,
        (before, after): (&Values<'_>, &Values<'_>),
        change: &Change<'_>,
    ) -> Option<TriggerDecision> {
        let is_touched = self.fields.iter().any(|it| change.fields.contains_key(it));
        if !is_touched && self.fire != Fire::Level {
            return None;
        }
        let verdict = after.verdict(&self.condition);
        let why = match self.fire {
            _ if !verdict.holds => None,
            Fire::Edge if was => Some("it held before".to_owned()),
            Fire::Edge => self.lasts.map(|it| format!("it must hold for {} s", it.seconds())),
            Fire::OnChange => {
                let is_same = |it: &String| before.get(it) == after.get(it);
                let is_same = self.fields.iter().all(is_same);
                is_same.then(|| "no field in it has changed".to_owned())
            }
            Fire::Level if self.is_at_work(change) => Some("its last run is at work".to_owned()),
            Fire::Level => {
                let has_fired = change.turn.is_some() && fired == change.turn;
                has_fired.then(|| "it has fired in this turn".to_owned())
            }
        };
        let Verdict { holds, saw, .. } = verdict;
        let fires = holds && why.is_none();
        let is_told = fires || holds != was || (holds && self.fire == Fire::Level);
        is_told.then(|| TriggerDecision {
            rule: self.name.clone(),
            holds,
            fires,
            why,
            saw: Json(Value::Object(saw.into_iter().collect())),
        })
    }

    fn is_at_work(&self, change: &Change<'_>) -> bool {
        change.at_work.contains(&*self.name)
    }
}

/// The names of the fields of metadata that a condition refers to.
fn fields_in(condition: &Condition) -> BTreeSet<String> {
    let of_metadata = condition.references().into_iter().filter(|it| it.name() == METADATA);
    of_metadata.filter_map(|it| it.path().next().map(Cow::into_owned)).collect()
}

impl Watched {
    pub(super) fn new(fields: Fields) -> Watched {
        Watched { fields, ..Watched::default() }
    }

    /// Adds a rule.
    ///
    /// # Errors
    /// Fails if the rule's condition doesn't fit the fields.
    pub(super) fn add(&mut self, rule: Rule) -> Result<(), WrongCondition> {
        let known = Type::record([(METADATA, Type::of_metadata(&self.fields))]);
        rule.condition.check(&known)?;
        let at_first = Values { fields: &self.fields, set: &Map::new() };
        if at_first.verdict(&rule.condition).holds {
            self.at_first.insert(rule.name.clone());
        }
        let place = self.rules.partition_point(|it| it.priority >= rule.priority);
        self.rules.insert(place, rule);
        Ok(())
    }

    /// Keeps the values that the agent's fields allow.
    pub(super) fn allowed(&self, mut values: Map<String, Value>) -> Map<String, Value> {
        values.retain(|name, value| {
            self.fields.get(name).is_some_and(|field| field.accepts(value).is_ok())
        });
        values
    }

    /// The names of the workflows whose runs the rules begin.
    pub(super) fn workflows(&self) -> impl Iterator<Item = &str> {
        self.rules.iter().map(|it| &*it.name)
    }

    /// The rule with this name.
    pub(super) fn rule(&self, name: &str) -> Option<&Rule> {
        self.rules.iter().find(|it| it.name == name)
    }

    /// The current values of the fields: the values in `watch`, and the defaults of all other
    /// fields.
    pub(super) fn known<'a>(&'a self, watch: &'a Watch) -> Values<'a> {
        Values { fields: &self.fields, set: &watch.values }
    }

    /// Returns the decisions of the rules on a change, in the order of the rules.
    pub(super) fn decide(&self, watch: &Watch, change: &Change<'_>) -> Vec<Decided<'_>> {
        let after: Map<String, Value> = {
            let mut after = watch.values.clone();
            after.extend(change.fields.clone());
            after
        };
        let before = Values { fields: &self.fields, set: &watch.values };
        let after = Values { fields: &self.fields, set: &after };
        let mut decided = Vec::new();
        for rule in &self.rules {
            let held = watch.held.get(&rule.name).copied();
            let was = held.unwrap_or_else(|| self.at_first.contains(&rule.name));
            let fired = watch.fired.get(&rule.name).copied();
            let decision = rule.decide(was, fired, (&before, &after), change);
            decided.extend(decision.map(|decision| Decided { rule, decision }));
        }
        decided
    }

    /// All fields with their values after a change, as the input of a run has them.
    pub(super) fn values(&self, watch: &Watch, change: &Change<'_>) -> Value {
        let value = |it: &Field| {
            let set = change.fields.get(it.name()).or_else(|| watch.values.get(it.name()));
            set.or(it.initial()).cloned().unwrap_or_default()
        };
        let each = self.fields.all().map(|it| (it.name().to_owned(), value(it)));
        Value::Object(each.collect())
    }
}

/// The values of metadata: those that are set, and the defaults of all others.
pub(super) struct Values<'a> {
    fields: &'a Fields,
    set: &'a Map<String, Value>,
}

impl Values<'_> {
    fn get(&self, field: &str) -> Option<&Value> {
        self.set.get(field).or_else(|| self.fields.get(field)?.initial())
    }

    fn verdict(&self, condition: &Condition) -> Verdict {
        condition.evaluate(&|reference: &Reference| {
            let mut path = reference.path();
            let first = self.get(&path.next()?)?;
            let step = |value: &'_ Value, step: Cow<'_, str>| match value {
                Value::Array(items) => items.get(step.parse::<usize>().ok()?).cloned(),
                it => it.get(&*step).cloned(),
            };
            path.try_fold(first.clone(), |value, it| step(&value, it))
        })
    }
}

/// The input of a run that a rule begins.
pub(super) fn input(
    rule: &Rule,
    agent: &str,
    turn: Option<u64>,
    metadata: &Value,
) -> Map<String, Value> {
    let input = json!({
        "type": "metadata_match",
        "rule": rule.name,
        "agent": agent,
        "turn": turn,
        "metadata": metadata,
    });
    match input {
        Value::Object(input) => input,
        _ => Map::new(),
    }
}

/// The agents that triggers watch.
pub(super) type Agents = BTreeMap<String, Watched>;
