//! The listener `trigger` begins runs of workflows: when agents change their metadata, for entries
//! and events, and at set times.
//!
//! ```
//! # extern crate pumphouse_listeners as pumphouse;
//! use pumphouse::listeners::metadata::{Field, Fields};
//! use pumphouse::listeners::trigger::Triggers;
//! use pumphouse::listeners::workflow::Workflow;
//! use serde_json::json;
//!
//! let workflow = Workflow::from_json(json!({
//!     "name": "code_finalization",
//!     "trigger": {"type": "metadata_match", "conditions": {"status": "CODING"}},
//!     "steps": [{"name": "note", "target": "echo", "parameters": {"text": "coding"}}],
//! }))?;
//! let fields = Fields::new([Field::choice("status", ["IDLE", "CODING"]).default("IDLE")])?;
//! let mut triggers = Triggers::default();
//! triggers.watch("coder", fields, [&workflow])?;
//!
//! let set = json!({"status": "CODING"});
//! let decided = triggers.test("coder", &set);
//! assert!(decided[0].fires);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! An agent with the setting `has_triggers` reports each change of its metadata to `trigger`.
//! Triggers of the whole organism are [`EventRule`]s. A
//! `pumphouse::trigger_source::TriggerSource` reports entries and times to them,
//! and clients report events with the payload `trigger`. The listener records its decisions, and
//! begins the runs in the same batch. A run has a thread of its own below the thread of the
//! message. An agent whose change fired the trigger doesn't wait for the run. `docs/workflows.md`
//! is the manual.

pub mod words;
mod event;
mod firings;
mod rule;
mod switches;
mod emissions;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::sync::Arc;

use pumphouse::listener::{
    EmitCore, FromContext, Organism, OrganismThread, Record, Threads, Timers,
};
use pumphouse::prelude::*;
use pumphouse::schema::{json, nearest};
use pumphouse::wire::Json;
use pumphouse::wire::core::ThreadNote;
use serde_json::{Map, Value};

use self::emissions::Emissions;
pub use self::event::EventRule;
use self::event::EventRules;
pub use self::firings::Firings;
use self::firings::Watch;
use self::rule::{Agents, Change, Rule, Watched};
use self::switches::{SwitchedOff, switch};
use self::words::{
    HeldLongEnough, Trigger, TriggerDecision, TriggerDue, TriggerRefused, Triggered,
    TriggersDecided,
};
use super::condition::WrongCondition;
use super::metadata::Fields;
use super::metadata::words::{Metadata, MetadataChanged};
use super::workflow::Workflow;

/// The listener's name.
pub const NAME: &str = "trigger";
/// Why a trigger that is switched off doesn't fire.
const OFF: &str = "it is switched off";

/// The triggers of an organism: what they watch, and which workflows they begin.
#[derive(Clone, Debug, Default)]
pub struct Triggers {
    agents: Agents,
    events: EventRules,
    off: Arc<SwitchedOff>,
}

impl Triggers {
    /// Lets the triggers of some workflows watch an agent with these metadata fields. Workflows
    /// without a trigger on metadata are ignored.
    ///
    /// # Errors
    /// Fails if a condition refers to a field that the agent doesn't have, or if the condition
    /// can't hold. The error names the workflow.
    pub fn watch<'a>(
        &mut self,
        agent: impl Into<String>,
        fields: Fields,
        workflows: impl IntoIterator<Item = &'a Workflow>,
    ) -> Result<(), WrongTrigger> {
        let mut watched = Watched::new(fields);
        for workflow in workflows {
            let Some(rule) = Rule::of(workflow) else { continue };
            let added = rule.and_then(|it| watched.add(it));
            added.map_err(|wrong| WrongTrigger::of(workflow, wrong))?;
        }
        if watched.workflows().next().is_some() {
            self.agents.insert(agent.into(), watched);
        }
        Ok(())
    }

    /// Adds the trigger of a workflow if the trigger watches the whole organism: entries, pushed
    /// events or the time. A workflow without such a trigger is ignored.
    ///
    /// # Errors
    /// Fails if the condition is invalid. The error names the workflow.
    pub fn add(&mut self, workflow: &Workflow) -> Result<(), WrongTrigger> {
        if let Some(rule) = EventRule::of(workflow) {
            let rule = rule.map_err(|wrong| WrongTrigger::of(workflow, wrong))?;
            self.events.insert(rule.name().to_owned(), rule);
        }
        Ok(())
    }

    /// Whether there is no trigger.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.agents.is_empty() && self.events.is_empty()
    }

    /// Whether any trigger watches this agent.
    #[must_use]
    pub fn has(&self, agent: &str) -> bool {
        self.agents.contains_key(agent)
    }

    /// The triggers that watch the whole organism.
    pub fn events(&self) -> impl Iterator<Item = &EventRule> {
        self.events.values()
    }

    /// Reads which triggers are switched off, from entries of the thread `organism`. Without this
    /// call, the listener reads that thread at its first message.
    pub fn read_switches(&self, entries: &[Entry]) {
        self.off.read(entries);
    }

    /// Returns the decisions for an agent that has set nothing yet and now sets these fields. A
    /// field that isn't set has its default.
    #[must_use]
    pub fn test(&self, agent: &str, set: &Value) -> Vec<TriggerDecision> {
        let (Some(watched), Value::Object(fields)) = (self.agents.get(agent), set) else {
            return Vec::new();
        };
        let change = Change { turn: Some(1), fields, at_work: BTreeSet::new() };
        let decided = watched.decide(&Watch::default(), &change);
        decided.into_iter().map(|it| it.decision).collect()
    }

    /// The names of all triggers. Each trigger has the name of its workflow.
    fn names(&self) -> BTreeSet<String> {
        let watching = self.agents.values().flat_map(Watched::workflows);
        watching.map(str::to_owned).chain(self.events.keys().cloned()).collect()
    }

    /// Builds the listener that the pump runs.
    #[must_use]
    pub fn listener(self) -> Listener {
        let workflows = self.names();
        Listener::with_state(NAME, Arc::new(TriggerState::new(self)))
            .on_each::<(MetadataChanged, ThreadNote, HeldLongEnough, TriggerDue, Trigger), _>(
                handle,
            )
            .on(switch)
            .on_any_reply(handle)
            .fold::<Firings>()
            .peers(workflows)
            .bookkeeper()
            .recorded()
            .settles()
            .grant::<Threads>()
            .grant::<Timers>()
            .grant::<Organism>()
            .grant::<EmitCore>()
            .may_emit::<TriggersDecided>()
            .may_emit::<HeldLongEnough>()
            .describe("Begins runs of workflows for what agents, clients and clocks report.")
            .stateless()
    }
}

/// The state of the listener.
#[derive(Debug)]
struct TriggerState {
    triggers: Triggers,
    names: BTreeSet<String>,
    off: Arc<SwitchedOff>,
}

impl TriggerState {
    fn new(triggers: Triggers) -> TriggerState {
        TriggerState { names: triggers.names(), off: triggers.off.clone(), triggers }
    }
}

/// The reason why a workflow's trigger can't be used.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct WrongTrigger {
    /// The workflow.
    pub workflow: String,
    /// The key of its trigger that is wrong: `payload` or `conditions`.
    pub key: &'static str,
    /// What is wrong with the key.
    pub wrong: WrongCondition,
}

impl std::fmt::Display for WrongTrigger {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "the trigger of `{}`: {}", self.workflow, self.wrong)
    }
}

impl std::error::Error for WrongTrigger {}

impl WrongTrigger {
    fn of(workflow: &Workflow, wrong: WrongCondition) -> WrongTrigger {
        WrongTrigger { workflow: workflow.name().to_owned(), key: "conditions", wrong }
    }
}

/// A message to the listener, and the contexts of its handler.
#[derive(FromContext)]
struct Handling {
    message: Message,
    queue: Queue,
    firings: Fold<Firings>,
    organism: OrganismThread,
    limits: Limits,
    record: Record,
    state: State<Arc<TriggerState>>,
}

/// Decides on changes of metadata, also those that a child thread reports in a note, on conditions
/// that have held long enough, on entries and times, and on events. Other notes and replies about
/// runs cause no emission: the fold has recorded the replies.
async fn handle(handling: Handling, _: Element) -> Result<Emissions, Fault> {
    handling.handle().await
}

impl Handling {
    /// Decides on the message and on all messages in its queue. The fold includes all earlier
    /// decisions.
    async fn handle(&self) -> Result<Emissions, Fault> {
        let state = &self.state.0;
        let off = match &self.record.0 {
            Some(entries) => switched_off_in(entries),
            None => state.off.names(&self.organism).await?,
        };
        let (triggers, limits) = (&state.triggers, &self.limits);
        let firings = (*self.firings).clone();
        let mut deciding =
            Deciding { triggers, off, limits, firings, emissions: Emissions::default() };
        for message in std::iter::once(&self.message.0).chain(&self.queue.0) {
            deciding.decide(message)?;
        }
        Ok(deciding.emissions)
    }
}

/// The decisions on some messages.
struct Deciding<'a> {
    triggers: &'a Triggers,
    /// The triggers that are switched off.
    off: BTreeSet<String>,
    limits: &'a Limits,
    firings: Firings,
    emissions: Emissions,
}

impl Deciding<'_> {
    /// Decides on one message.
    fn decide(&mut self, message: &Entry) -> Result<(), Fault> {
        if let Some(pushed) = message.decode_if::<Trigger>() {
            return self.pushed(message, pushed);
        }
        // The pump pushes `trigger-due` as a client would. Of the clients' own messages, only
        // `trigger` counts here.
        if let Some(due) = message.decode_if::<TriggerDue>() {
            return self.due(message, due);
        }
        if message.is_from_identity() {
            return Ok(());
        }
        if let Some(changed) = message.decode_if::<MetadataChanged>() {
            let (turn, fields) = (Some(changed.turn), changed.into_fields());
            return self.changed(message, message.from(), turn, |_| fields);
        }
        if let Some((agent, set)) = Metadata::from_below(message) {
            let fields = set.changed().map(MetadataChanged::into_fields).unwrap_or_default();
            return self.changed(message, &agent, None, |watched| watched.allowed(fields));
        }
        match message.decode_if::<HeldLongEnough>() {
            Some(held) => self.held(message, &held),
            None => Ok(()),
        }
    }

    /// Records a decision. The decisions on later messages take it into account.
    fn record(&mut self, decided: TriggersDecided) {
        self.firings.decided(decided.clone());
        self.emissions.decided.push(Note(decided));
    }

    /// Changes a decision so that a trigger that is switched off doesn't fire.
    fn switch_off(&self, decision: &mut TriggerDecision) {
        if decision.fires && self.off.contains(&decision.rule) {
            decision.fires = false;
            decision.why = Some(OFF.to_owned());
        }
    }

    /// The reason why no trigger may fire after a chain of `depth` triggers, each of which began
    /// the next. None if a trigger may fire.
    fn too_deep(&self, depth: usize) -> Option<String> {
        let max = self.limits.thread_depth_max;
        let text = || format!("{depth} triggers have begun one another; thread_depth_max is {max}");
        (depth > max).then(text)
    }

    /// The reason why an entry may not fire a trigger, because earlier triggers caused the entry.
    /// None if the entry may fire the trigger.
    fn in_circle(&self, due: &TriggerDue) -> Option<String> {
        if let Some(within) = &due.within {
            let text = "the entry was sent within a run of this trigger, which";
            return Some(format!("{text} {within} began"));
        }
        let depth = usize::try_from(due.depth).unwrap_or(usize::MAX);
        let max = self.limits.trigger_runs_max;
        let too_many = due.first.as_deref().filter(|it| self.firings.runs_of_chain(it) >= max);
        let text = |first| {
            format!("triggers began {max} runs because of {first}; trigger_runs_max is {max}")
        };
        self.too_deep(depth).or_else(|| too_many.map(text))
    }

    /// Decides on a change of an agent's metadata. The turn is None if the agent itself didn't make
    /// the change.
    fn changed(
        &mut self,
        message: &Entry,
        agent: &str,
        turn: Option<u64>,
        fields: impl FnOnce(&Watched) -> Map<String, Value>,
    ) -> Result<(), Fault> {
        let Some(watched) = self.triggers.agents.get(agent) else { return Ok(()) };
        let (watch, fields) = (self.firings.of(agent, message.seq()), fields(watched));
        if fields.is_empty() {
            return Ok(());
        }
        let change = Change { turn, fields: &fields, at_work: self.firings.at_work(agent) };
        let mut decided = watched.decide(&watch, &change);
        let metadata = watched.values(&watch, &change);
        let depth = self.firings.depth(message.seq());
        for it in &mut decided {
            self.switch_off(&mut it.decision);
            if let Some(why) = self.too_deep(depth).filter(|_| it.decision.fires) {
                (it.decision.fires, it.decision.why) = (false, Some(why));
            }
            let (rule, decision) = (it.rule, &it.decision);
            if rule.cancels_on_change && !decision.holds {
                let threads = self.firings.threads_of(agent, &rule.name);
                self.emissions.cancel(&rule.name, threads);
                if self.firings.take_back(agent, &rule.name) > 0 {
                    self.emissions.take_back(agent, &rule.name);
                }
            }
            if decision.fires {
                self.emissions.begin(agent, rule, turn, &metadata)?;
            }
            let begins = decision.holds && watch.held.get(&rule.name) != Some(&true);
            if let Some(time) = rule.lasts.filter(|_| begins) {
                let since = message.seq();
                let (rule, agent) = (rule.name.clone(), agent.to_owned());
                let held = HeldLongEnough { rule, agent, turn: turn.unwrap_or_default(), since };
                self.emissions.wait(message, time, held);
            }
        }
        let decision: Vec<TriggerDecision> = decided.into_iter().map(|it| it.decision).collect();
        self.record(TriggersDecided {
            agent: Some(agent.to_owned()),
            turn,
            of: message.seq(),
            fields: Some(Json(Value::Object(fields))),
            decision,
        });
        Ok(())
    }

    /// Begins the run of a trigger if its condition has held for the whole time that its `for`
    /// says. Records the decision in any case.
    fn held(&mut self, message: &Entry, held: &HeldLongEnough) -> Result<(), Fault> {
        let HeldLongEnough { rule, agent, turn, since } = held;
        let Some(watched) = self.triggers.agents.get(agent) else { return Ok(()) };
        let Some(rule) = watched.rule(rule) else { return Ok(()) };
        let watch = self.firings.of(agent, message.seq());
        let has_held = watch.since.get(&rule.name).is_some_and(|it| it.message == *since);
        let mut decision = rule.decide_held(&watched.known(&watch), has_held);
        self.switch_off(&mut decision);
        let depth = self.firings.depth_since(agent, &rule.name);
        if let Some(why) = self.too_deep(depth).filter(|_| decision.fires) {
            (decision.fires, decision.why) = (false, Some(why));
        }
        if decision.fires {
            let no_change = Map::new();
            let turn = Some(*turn).filter(|it| *it > 0);
            let change = Change { turn, fields: &no_change, at_work: BTreeSet::new() };
            let metadata = watched.values(&watch, &change);
            self.emissions.begin(agent, rule, turn, &metadata)?;
        }
        self.record(TriggersDecided {
            agent: Some(agent.clone()),
            turn: Some(*turn).filter(|it| *it > 0),
            of: message.seq(),
            fields: None,
            decision: vec![decision],
        });
        Ok(())
    }

    /// Decides whether an entry or a time fires a trigger.
    fn due(&mut self, message: &Entry, due: TriggerDue) -> Result<(), Fault> {
        self.firings.add_chain(message.seq(), &due);
        let why_not = self.in_circle(&due);
        let TriggerDue { rule: name, of, from, value, .. } = due;
        let Some(rule) = self.triggers.events.get(&name) else { return Ok(()) };
        let mut decision = rule.decide(&value.0, why_not);
        self.switch_off(&mut decision);
        if decision.fires {
            self.emissions.begin_event(rule, of.as_deref(), from.as_deref(), &value.0)?;
        }
        self.record(about(message, vec![decision]));
        Ok(())
    }

    /// Decides which triggers a pushed event fires.
    fn pushed(&mut self, message: &Entry, pushed: Trigger) -> Result<(), Fault> {
        let Trigger { name, input } = pushed;
        let waits = |it: &&EventRule| it.event.as_deref() == Some(&name);
        let mut rules: Vec<&EventRule> = self.triggers.events.values().filter(waits).collect();
        if rules.is_empty() {
            let events = self.triggers.events.values().filter_map(|it| it.event.as_deref());
            let near = nearest(&name, events).map(|it| format!("; did you mean {it}?"));
            let text = format!("no trigger waits for {name}{}", near.unwrap_or_default());
            self.emissions.refuse(message, TriggerRefused { message: text });
            return Ok(());
        }
        let value = match input.trim() {
            "" => Ok(Value::Object(Map::new())),
            text => json::read(text),
        };
        let value = match value {
            Ok(value @ Value::Object(_)) => value,
            Ok(_) => {
                let message_text = "the input is JSON, but no object: write {\"name\": value}";
                let refused = TriggerRefused { message: message_text.to_owned() };
                self.emissions.refuse(message, refused);
                return Ok(());
            }
            Err(error) => {
                let text = format!("the input is no JSON object: {error}");
                self.emissions.refuse(message, TriggerRefused { message: text });
                return Ok(());
            }
        };
        rules.sort_by_key(|it| std::cmp::Reverse(it.priority));
        let mut decisions = Vec::new();
        for rule in rules {
            let mut decision = rule.decide(&value, None);
            self.switch_off(&mut decision);
            if decision.fires {
                let of = message.id().to_string();
                self.emissions.begin_event(rule, Some(&of), Some(message.from()), &value)?;
            }
            decisions.push(decision);
        }
        self.emissions.answer(message, Triggered { name, decision: decisions.clone() });
        self.record(about(message, decisions));
        Ok(())
    }
}

/// The triggers that were switched off, according to the recorded decisions among these entries.
fn switched_off_in(entries: &[Entry]) -> BTreeSet<String> {
    let decided = entries.iter().filter_map(|it| it.decode_if::<TriggersDecided>());
    let each = decided.flat_map(|it| it.decision);
    each.filter(|it| it.why.as_deref() == Some(OFF)).map(|it| it.rule).collect()
}

/// The record of decisions on something other than metadata.
fn about(message: &Entry, decision: Vec<TriggerDecision>) -> TriggersDecided {
    let of = message.seq();
    TriggersDecided { agent: None, turn: None, of, fields: None, decision }
}
