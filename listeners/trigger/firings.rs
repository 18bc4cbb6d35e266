//! The fold of what triggers have decided in a thread.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use pumphouse::prelude::*;
use pumphouse::wire::Json;
use pumphouse::wire::core::{ThreadResult, ThreadSpawned};
use serde_json::{Map, Value};

use super::super::metadata::words::{Metadata, MetadataChanged};
use super::super::schedule::CurrentThread;
use super::NAME;
use super::words::TriggersDecided;

/// What triggers have decided in a thread, by the names of the agents that they watch.
#[derive(Clone, Debug, Default)]
pub struct Firings {
    agents: BTreeMap<String, Watch>,
    /// The runs that aren't over: the triggers that began them, by the runs' threads.
    runs: BTreeMap<String, String>,
    /// The triggers that fired and whose runs have no thread yet, in their order.
    fired: VecDeque<String>,
    thread: CurrentThread,
}

/// What is known of one agent.
#[derive(Clone, Debug, Default)]
pub(super) struct Watch {
    /// The fields that the agent has set, as of the last decision.
    pub(super) values: Map<String, Value>,
    /// Whether the condition of each trigger held when it was last decided on.
    pub(super) held: BTreeMap<String, bool>,
    /// The turn in which each trigger last fired.
    pub(super) fired: BTreeMap<String, u64>,
    /// The number of the message with which the condition of each trigger that holds began to hold.
    pub(super) since: BTreeMap<String, u64>,
    /// The newest change that the agent has recorded and not told of. While no trigger watches an
    /// agent, it tells of none.
    untold: Map<String, Value>,
}

impl Firings {
    pub(super) fn of(&self, agent: &str) -> Watch {
        self.agents.get(agent).cloned().unwrap_or_default()
    }

    /// The triggers of which a run is at work.
    pub(super) fn at_work(&self) -> BTreeSet<&str> {
        self.runs.values().map(String::as_str).collect()
    }

    /// The threads of a trigger's runs that are at work.
    pub(super) fn threads_of(&self, rule: &str) -> impl Iterator<Item = ThreadId> {
        let own = self.runs.iter().filter(move |(_, of)| *of == rule);
        own.map(|(thread, _)| ThreadId::new(thread))
    }

    /// Records a change of an agent. What the agent tells of it comes next, if a trigger watches
    /// the agent.
    fn set(&mut self, entry: &Entry) {
        let watch = self.agents.entry(entry.from().to_owned()).or_default();
        watch.values.extend(std::mem::take(&mut watch.untold));
        let changed = entry.decode_if::<Metadata>().and_then(|it| it.changed());
        watch.untold.extend(changed.iter().flat_map(changed_fields));
    }

    pub(super) fn decided(&mut self, decided: TriggersDecided) {
        let TriggersDecided { agent, turn, of, fields, decision } = decided;
        let fired = decision.iter().filter(|it| it.fires).map(|it| it.rule.clone());
        self.fired.extend(fired);
        let Some(agent) = agent else { return };
        let watch = self.agents.entry(agent).or_default();
        if let Some(Json(Value::Object(fields))) = fields {
            watch.values.extend(fields);
        }
        for decision in decision {
            if decision.fires {
                watch.fired.insert(decision.rule.clone(), turn.unwrap_or_default());
            }
            let held = watch.held.insert(decision.rule.clone(), decision.holds);
            if !decision.holds {
                watch.since.remove(&decision.rule);
            } else if held != Some(true) {
                watch.since.insert(decision.rule, of);
            }
        }
    }
}

impl Apply for Firings {
    fn apply(&mut self, entry: &Entry) {
        if self.thread.enter(entry) {
            // Runs go on in the thread in which they began, and not in its forks.
            self.runs.clear();
            self.fired.clear();
        }
        if entry.is_refused() || entry.is_from_identity() {
            return;
        }
        if entry.is::<Metadata>() && entry.to() == Some(entry.from()) {
            self.set(entry);
        } else if entry.is::<MetadataChanged>() && entry.to() == Some(NAME) {
            self.agents.entry(entry.from().to_owned()).or_default().untold.clear();
        } else if entry.from() == NAME {
            if let Some(decided) = entry.decode_if::<TriggersDecided>() {
                self.decided(decided);
            }
        } else if entry.to() != Some(NAME) {
            // The entry isn't about runs of triggers.
        } else if let Some(spawned) = entry.decode_if::<ThreadSpawned>() {
            // The runs of an earlier decision that have no thread were refused.
            let is_meant = |it: &String| spawned.assigned_id.contains(&format!(".{it}"));
            while self.fired.front().is_some_and(|it| !is_meant(it)) {
                self.fired.pop_front();
            }
            let rule = self.fired.pop_front();
            self.runs.extend(rule.map(|rule| (spawned.assigned_id, rule)));
        } else if let Some(ended) = entry.decode_if::<ThreadResult>() {
            self.runs.remove(&ended.thread);
        }
    }
}

/// The fields in a message about a change.
pub(super) fn changed_fields(changed: &MetadataChanged) -> Map<String, Value> {
    match &changed.fields.0 {
        Value::Object(fields) => fields.clone(),
        _ => Map::new(),
    }
}
