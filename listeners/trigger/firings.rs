//! The fold of the decisions of triggers in a thread.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use pumphouse::prelude::*;
use pumphouse::wire::Json;
use pumphouse::wire::core::{ThreadNote, ThreadResult, ThreadSpawned};
use serde_json::{Map, Value};

use super::super::metadata::words::{Metadata, MetadataChanged};
use super::super::schedule::CurrentThread;
use super::super::workflow::name_of;
use super::NAME;
use super::words::{TriggerDue, TriggersDecided, is_run_of};

/// The decisions of triggers in a thread, and the runs that they began.
#[derive(Clone, Debug, Default)]
pub struct Firings {
    agents: BTreeMap<String, Watch>,
    /// The open runs, which haven't ended, by their threads.
    runs: BTreeMap<String, Firing>,
    /// The triggers that fired and whose runs have no thread yet, in the order in which they fired.
    fired: VecDeque<Firing>,
    /// For each change that a run has made: the length of the chain of triggers that led to the
    /// change, by the number of the change's message. Changes that are decided on are removed.
    depths: BTreeMap<u64, usize>,
    /// Maps the number of a message to the chain of triggers that led to the message. The message
    /// of a chain's first trigger identifies the chain. Messages that are decided on are removed.
    chains: BTreeMap<u64, String>,
    /// The chains of triggers, each with the number of runs that it began. Only the newest chains
    /// are kept.
    chain_runs: VecDeque<(String, usize)>,
    thread: CurrentThread,
}

/// The maximum number of chains whose runs a thread counts.
const CHAINS_MAX: usize = 1_000;
/// The maximum number of an agent's changes that wait for a decision. Only an agent that no trigger
/// watches reaches this maximum. Then the oldest change takes effect without a decision.
const UNDECIDED_MAX: usize = 1_000;

/// A trigger that fired.
#[derive(Clone, Debug)]
struct Firing {
    rule: String,
    /// The agent whose metadata changed, if the trigger watches agents.
    agent: Option<String>,
    /// The length of the chain of triggers on metadata that ends with this one. A trigger of the
    /// whole organism begins a new chain here.
    depth: usize,
}

/// The state of one agent.
#[derive(Clone, Debug, Default)]
pub(super) struct Watch {
    /// The fields that the agent has set, as of the last decision.
    pub(super) values: Map<String, Value>,
    /// Whether the condition of each trigger held when it was last decided on.
    pub(super) held: BTreeMap<String, bool>,
    /// The turn in which each trigger last fired.
    pub(super) fired: BTreeMap<String, u64>,
    /// For each trigger whose condition holds: how it began to hold.
    pub(super) since: BTreeMap<String, HeldSince>,
    /// The newest change that the agent has recorded, but hasn't reported to `trigger`. An agent
    /// that no trigger watches reports no change.
    untold: Map<String, Value>,
    /// The changes from child threads that wait for a decision, with the numbers of their messages.
    undecided: VecDeque<(u64, Map<String, Value>)>,
}

/// The change with which a trigger's condition began to hold.
#[derive(Clone, Debug)]
pub(super) struct HeldSince {
    /// The number of the change's message.
    pub(super) message: u64,
    /// The length of the chain of triggers that led to the change.
    pub(super) depth: usize,
}

impl Watch {
    /// Adds the changes before a message to the values. Such changes were never decided on.
    fn settle(&mut self, before: u64) {
        while self.undecided.front().is_some_and(|(seq, _)| *seq < before) {
            self.values.extend(self.undecided.pop_front().into_iter().flat_map(|it| it.1));
        }
    }
}

impl Firings {
    /// The state of an agent before a message.
    pub(super) fn of(&self, agent: &str, message: u64) -> Watch {
        let mut watch = self.agents.get(agent).cloned().unwrap_or_default();
        watch.settle(message);
        watch
    }

    /// The triggers with an open run, or a run without a thread yet, that a change of this agent
    /// began.
    pub(super) fn at_work(&self, agent: &str) -> BTreeSet<&str> {
        let all = self.runs.values().chain(&self.fired);
        all.filter(|it| it.agent.as_deref() == Some(agent)).map(|it| &*it.rule).collect()
    }

    /// A run of a trigger that watches no agent, if one is at work or about to begin. The thread is
    /// None until the run has one.
    #[must_use]
    pub fn run_of_event(&self, rule: &str) -> Option<Option<ThreadId>> {
        let is_own = |it: &&Firing| it.rule == rule && it.agent.is_none();
        let open = self.runs.iter().find(|(_, it)| is_own(it));
        let open = open.map(|(thread, _)| Some(ThreadId::new(thread)));
        open.or_else(|| self.fired.iter().find(is_own).map(|_| None))
    }

    /// Withdraws the runs of a trigger that have no thread yet. Returns their number.
    pub(super) fn take_back(&mut self, agent: &str, rule: &str) -> usize {
        let before = self.fired.len();
        self.fired.retain(|it| it.rule != rule || it.agent.as_deref() != Some(agent));
        before - self.fired.len()
    }

    /// The number of runs that a chain of triggers has begun in this thread. `first` is the message
    /// of the chain's first trigger. The run of this trigger isn't counted.
    pub(super) fn runs_of_chain(&self, first: &str) -> usize {
        let found = self.chain_runs.iter().find(|it| it.0 == first);
        found.map(|it| it.1).unwrap_or_default()
    }

    /// Records the chain of triggers to which a message belongs.
    pub(super) fn add_chain(&mut self, of: u64, due: &TriggerDue) {
        self.chains.extend(due.first.clone().map(|it| (of, it)));
    }

    /// Adds to the number of runs of a chain.
    fn count(&mut self, first: String, runs: usize) {
        if let Some(known) = self.chain_runs.iter_mut().find(|it| it.0 == first) {
            known.1 += runs;
            return;
        }
        if self.chain_runs.len() == CHAINS_MAX {
            self.chain_runs.pop_front();
        }
        self.chain_runs.push_back((first, runs));
    }

    /// The length of the chain of triggers that led to a change. `of` is the number of the change's
    /// message.
    pub(super) fn depth(&self, of: u64) -> usize {
        self.depths.get(&of).copied().unwrap_or_default()
    }

    /// The length of the chain of triggers that led to the change with which a trigger's condition
    /// began to hold.
    pub(super) fn depth_since(&self, agent: &str, rule: &str) -> usize {
        let since = self.agents.get(agent).and_then(|it| it.since.get(rule));
        since.map(|it| it.depth).unwrap_or_default()
    }

    /// The threads of a trigger's open runs that changes of this agent began.
    pub(super) fn threads_of(&self, agent: &str, rule: &str) -> impl Iterator<Item = ThreadId> {
        let is_own = move |it: &Firing| it.rule == rule && it.agent.as_deref() == Some(agent);
        let own = self.runs.iter().filter(move |(_, it)| is_own(it));
        own.map(|(thread, _)| ThreadId::new(thread))
    }

    /// Records a change that a child thread reports. The report is itself the message to `trigger`.
    fn set_below(&mut self, agent: &str, set: &Metadata, entry: &Entry) {
        let watch = self.agents.entry(agent.to_owned()).or_default();
        let fields = set.changed().map(MetadataChanged::into_fields).unwrap_or_default();
        if !watch.untold.is_empty() {
            watch.settle(entry.seq());
            watch.values.extend(std::mem::take(&mut watch.untold));
        }
        watch.undecided.push_back((entry.seq(), fields));
        if entry.to() != Some(NAME) {
            watch.settle(entry.seq() + 1);
        } else if watch.undecided.len() > UNDECIDED_MAX {
            let oldest = watch.undecided.front().map_or(0, |it| it.0);
            watch.settle(oldest + 1);
        }
    }

    /// Records a change that an agent made. If a trigger watches the agent, the agent's message to
    /// `trigger` about the change follows.
    fn set(&mut self, agent: &str, set: Option<Metadata>) {
        let watch = self.agents.entry(agent.to_owned()).or_default();
        watch.values.extend(std::mem::take(&mut watch.untold));
        let changed = set.and_then(|it| it.changed());
        watch.untold.extend(changed.map(MetadataChanged::into_fields).unwrap_or_default());
    }

    pub(super) fn decided(&mut self, decided: TriggersDecided) {
        let TriggersDecided { agent, turn, of, fields, decision } = decided;
        let depth = self.depths.remove(&of).unwrap_or_default();
        let firing = |rule: &String| {
            // A decision without a change is about a condition that has held for a time.
            let since = agent.as_ref().filter(|_| fields.is_none());
            let led = since.map_or(depth, |agent| self.depth_since(agent, rule));
            Firing { rule: rule.clone(), agent: agent.clone(), depth: led + 1 }
        };
        let fires = decision.iter().filter(|it| it.fires);
        let fired: Vec<Firing> = fires.map(|it| firing(&it.rule)).collect();
        if let Some(first) = self.chains.remove(&of) {
            self.count(first, fired.len());
        }
        self.fired.extend(fired);
        let Some(agent) = agent else { return };
        let watch = self.agents.entry(agent).or_default();
        watch.settle(of);
        watch.undecided.pop_front_if(|it| it.0 == of);
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
                watch.since.insert(decision.rule, HeldSince { message: of, depth });
            }
        }
    }
}

impl Apply for Firings {
    fn apply(&mut self, entry: &Entry) {
        if self.thread.enter(entry) {
            // Runs continue only in the thread in which they began, and not in its forks.
            self.runs.clear();
            self.fired.clear();
            self.depths.clear();
            self.chains.clear();
            self.chain_runs.clear();
        }
        if let Some(due) = entry.decode_if::<TriggerDue>().filter(|_| !entry.is_refused()) {
            // The pump pushes this message as a client would, so it counts as sent by an identity.
            self.add_chain(entry.seq(), &due);
        }
        if entry.is_refused() && entry.from() == NAME {
            let place = self.fired.iter().position(|it| Some(&*it.rule) == name_of(entry.name()));
            place.and_then(|it| self.fired.remove(it));
        }
        if entry.is_refused() || entry.is_from_identity() {
            return;
        }
        if entry.is::<Metadata>() && entry.to() == Some(entry.from()) {
            self.set(entry.from(), entry.decode_if::<Metadata>());
        } else if let Some((agent, set)) = Metadata::from_below(entry) {
            self.set_below(&agent, &set, entry);
            let run = entry.decode_if::<ThreadNote>().and_then(|it| self.runs.get(&it.thread));
            let depth = run.map(|it| it.depth);
            self.depths.extend(depth.map(|it| (entry.seq(), it)));
        } else if entry.is::<MetadataChanged>() && entry.to() == Some(NAME) {
            self.agents.entry(entry.from().to_owned()).or_default().untold.clear();
        } else if entry.from() == NAME {
            if let Some(decided) = entry.decode_if::<TriggersDecided>() {
                self.decided(decided);
            }
        } else if entry.to() != Some(NAME) {
            // The entry isn't about runs of triggers.
        } else if let Some(spawned) = entry.decode_if::<ThreadSpawned>() {
            // Runs of earlier decisions that still have no thread were refused.
            let is_meant = |it: &Firing| is_run_of(&spawned, &it.rule);
            while self.fired.front().is_some_and(|it| !is_meant(it)) {
                self.fired.pop_front();
            }
            let firing = self.fired.pop_front();
            self.runs.extend(firing.map(|it| (spawned.assigned_id, it)));
        } else if let Some(ended) = entry.decode_if::<ThreadResult>() {
            self.runs.remove(&ended.thread);
        }
    }
}
