//! The listener `trigger` begins runs of workflows when agents change their metadata.
//!
//! ```
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
//! An agent with the setting `has_triggers` tells `trigger` of each change. `trigger` records what
//! it decides, and begins the runs in the same batch. A run has a thread of its own below the
//! agent's, and the agent doesn't wait for it. `docs/workflows.md` is the manual.

pub mod words;
mod firings;
mod rule;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::sync::Arc;

use pumphouse::listener::{EmitCore, FromContext, IntoEmit, ThreadControl, Threads};
use pumphouse::prelude::*;
use pumphouse::wire::Json;
use pumphouse::wire::core::ThreadCancelled;
use serde_json::{Map, Value};

pub use self::firings::Firings;
use self::firings::{Watch, changed_fields};
use self::rule::{Agents, Change, Decided, Rule, Watched};
use self::words::{TriggerDecision, TriggersDecided};
use super::condition::WrongCondition;
use super::metadata::Fields;
use super::metadata::words::MetadataChanged;
use super::workflow::{self, Workflow};

/// The listener's name.
pub const NAME: &str = "trigger";

/// The triggers of an organism: which agents they watch, and which workflows they begin.
#[derive(Clone, Debug, Default)]
pub struct Triggers(Agents);

impl Triggers {
    /// Lets the triggers of some workflows watch an agent with these metadata fields. A workflow
    /// without a trigger changes nothing.
    ///
    /// # Errors
    /// If a condition refers to a field that the agent doesn't have, or can't hold. The error names
    /// the workflow.
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
            added.map_err(|wrong| WrongTrigger { workflow: workflow.name().to_owned(), wrong })?;
        }
        if watched.workflows().next().is_some() {
            self.0.insert(agent.into(), watched);
        }
        Ok(())
    }

    /// Whether no trigger watches any agent.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether any trigger watches this agent.
    #[must_use]
    pub fn has(&self, agent: &str) -> bool {
        self.0.contains_key(agent)
    }

    /// What the triggers decide when an agent that has set nothing yet sets these fields. A field
    /// that isn't set has its default.
    #[must_use]
    pub fn test(&self, agent: &str, set: &Value) -> Vec<TriggerDecision> {
        let (Some(watched), Value::Object(fields)) = (self.0.get(agent), set) else {
            return Vec::new();
        };
        let change = Change { turn: 1, fields, at_work: BTreeSet::new() };
        let decided = watched.decide(&Watch::default(), &change);
        decided.into_iter().map(|it| it.decision).collect()
    }

    /// Builds the listener that the pump runs.
    #[must_use]
    pub fn listener(self) -> Listener {
        let workflows = self.0.values().flat_map(Watched::workflows);
        let workflows: BTreeSet<String> = workflows.map(str::to_owned).collect();
        Listener::with_state(NAME, Arc::new(self))
            .on(changed)
            .on_any_reply(ended)
            .fold::<Firings>()
            .peers(workflows)
            .serial()
            .inline()
            .idempotent()
            .settles()
            .grant::<Threads>()
            .grant::<EmitCore>()
            .may_emit::<TriggersDecided>()
            .describe("Begins runs of workflows when agents change their metadata.")
            .stateless()
    }
}

/// The reason why a workflow's trigger can't watch an agent.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct WrongTrigger {
    /// The workflow.
    pub workflow: String,
    /// What is wrong with its condition.
    pub wrong: WrongCondition,
}

impl std::fmt::Display for WrongTrigger {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "the trigger of `{}`: {}", self.workflow, self.wrong)
    }
}

impl std::error::Error for WrongTrigger {}

/// A message to the listener, and the contexts of its handler.
#[derive(FromContext)]
struct Handling {
    message: Message,
    queue: Queue,
    firings: Fold<Firings>,
    triggers: State<Arc<Triggers>>,
}

/// The emissions of the listener. They are sent in the order of these fields.
#[derive(Default, IntoEmit)]
struct Emissions {
    decided: Vec<Note<TriggersDecided>>,
    cancelled: Vec<ThreadControl<ThreadCancelled>>,
    runs: Vec<To<Element, String>>,
}

/// Decides what changes mean, and begins the runs.
async fn changed(handling: Handling, _: MetadataChanged) -> Result<Emissions, Fault> {
    handling.handle()
}

/// Takes the result of a run. The fold has what there is to know of it.
async fn ended(handling: Handling, _: Element) -> Result<Emissions, Fault> {
    handling.handle()
}

impl Handling {
    /// Decides what the message at hand and those that wait behind it mean. The fold includes all
    /// earlier decisions.
    fn handle(&self) -> Result<Emissions, Fault> {
        let (mut emissions, mut firings) = (Emissions::default(), (*self.firings).clone());
        for message in std::iter::once(&self.message.0).chain(&self.queue.0) {
            // A client can't report changes of an agent's metadata.
            let changed = message.decode_if().filter(|_| !message.is_from_identity());
            let watched = self.triggers.0.0.get(message.from());
            if let (Some(changed), Some(watched)) = (changed, watched) {
                let decided = decide(message, &changed, watched, &firings, &mut emissions)?;
                firings.decided(decided.clone());
                emissions.decided.push(Note(decided));
            }
        }
        Ok(emissions)
    }
}

/// Decides what one change means. Adds the runs to begin and those to cancel.
fn decide(
    message: &Entry,
    changed: &MetadataChanged,
    watched: &Watched,
    firings: &Firings,
    emissions: &mut Emissions,
) -> Result<TriggersDecided, Fault> {
    let agent = message.from();
    let (watch, fields) = (firings.of(agent), changed_fields(changed));
    let change = Change { turn: changed.turn, fields: &fields, at_work: firings.at_work() };
    let decided = watched.decide(&watch, &change);
    let metadata = watched.values(&watch, &change);
    for Decided { rule, decision } in &decided {
        if rule.cancels_on_change && !decision.holds {
            let threads = firings.threads_of(&rule.name);
            emissions.cancelled.extend(threads.map(|it| cancel(it, &rule.name)));
        }
        if decision.fires {
            let input: Map<String, Value> = rule::input(rule, agent, changed.turn, &metadata);
            let run = workflow::start(&rule.root, &input)?;
            emissions.runs.push(To(rule.name.clone(), run));
        }
    }
    let decision = decided.into_iter().map(|it| it.decision).collect();
    Ok(TriggersDecided {
        agent: agent.to_owned(),
        turn: changed.turn,
        of: message.seq(),
        fields: Json(Value::Object(fields)),
        decision,
    })
}

/// Ends a run whose trigger's condition has ceased to hold.
fn cancel(thread: ThreadId, rule: &str) -> ThreadControl<ThreadCancelled> {
    let reason = Some(format!("the condition of the trigger {rule} holds no longer"));
    let why = ThreadCancelled { thread: thread.to_string(), by: NAME.to_owned(), reason };
    ThreadControl::cancel(thread, why)
}
