//! Workflows: listeners that call other listeners, step by step, as a file says.
//!
//! ```
//! # extern crate pumphouse_listeners as pumphouse;
//! use pumphouse::listeners::workflow::{Workflow, words::WorkflowResult};
//! use pumphouse::listeners::{core, agent_support, echo};
//! use pumphouse::prelude::*;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let workflow = Workflow::from_json(serde_json::json!({
//!     "name": "greet",
//!     "steps": [
//!         {"name": "name", "target": "echo", "parameters": {"text": "Ada"}},
//!         {"name": "greeting", "target": "echo", "condition": "previous_steps_success",
//!          "parameters": {"text": "Hello, ${steps.name}!"}},
//!     ],
//!     "outputs": {"greeting": "${steps.greeting}"},
//! }))?;
//! let run = workflow.run(&serde_json::Map::new())?;
//! let all = (core(), agent_support(), echo::echo(), workflow.listener());
//! let pump = pumphouse::builder().with(all).build()?.start();
//! let result: WorkflowResult = pump.ask_element(run).await?.decode()?;
//! assert_eq!(result.outputs.0, serde_json::json!({"greeting": "Hello, Ada!"}));
//! # pump.shutdown().await?;
//! # Ok(()) }
//! ```
//!
//! A run that a listener begins has a thread of its own, below the thread of the listener's
//! message. A run that a client begins is in the thread of the client's message. The calls of a run
//! are [actions](mod@super::action), so they are retried, timed out and cancelled like those of an
//! agent.
//!
//! `definition` has the types of the file, and `plan` computes which steps each step waits for.
//! `run` decides what a run does next, as a pure function of the run's entries in the log.
//! `docs/workflows.md` is the manual.

pub mod words;
mod mistake;
mod seconds;
mod statuses;
mod trigger_definition;
pub mod definition;
mod plan;
mod wrong_references;
mod fill_references;
mod run;
mod runs;
mod values;
mod rerun;
mod fed_back;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use pumphouse::listener::{Answer, FromContext, IntoEmit, NoteAbove, Outcome, Record, TreeHistory};
use pumphouse::prelude::*;
use pumphouse::schema::{Schema, json};
use pumphouse::wire::{Json, Timestamp};
use pumphouse::xml::{View, writable};
use serde::Deserialize;
use serde_json::{Map, Value};

pub use self::definition::{Definition, WrongDefinition};
use self::plan::{Plan, action_id};
use self::rerun::{PastRun, Started};
use self::run::{Failing, Next};
use self::runs::OpenRun;
pub use self::runs::Runs;
use self::values::Values;
use self::words::{
    ConditionDecided, RetryRefused, StepRefused, WorkflowDue, WorkflowFailed, WorkflowResult,
    WorkflowStarted,
};
use super::action::Actions;
use super::action::call::json_payload;
use super::agent_context::{self, AgentContext};
use super::condition::Reference;
use super::metadata::Fields;
use super::metadata::words::Metadata;
use super::words::action::{Action, CancelAction, NAME, WORKFLOWS};
use super::words::operator::RetryRun;

/// The end of the namespaces of workflows.
const VERSION: &str = "/v1";

/// A workflow, before it is a listener.
#[derive(Clone, Debug)]
pub struct Workflow {
    plan: Arc<Plan>,
    json: Json,
    digest: String,
    /// The variables of the environment that `${agent.environment}` has.
    environment: BTreeMap<String, String>,
}

impl Workflow {
    /// Makes a workflow from a definition in JSON. A definition in YAML must be converted to JSON
    /// first.
    ///
    /// # Errors
    /// Fails with all mistakes of the definition, each with its path.
    pub fn from_json(definition: Value) -> Result<Workflow, WrongWorkflow> {
        match Workflow::with_mistakes(definition) {
            (Some(workflow), wrong) if wrong.is_empty() => Ok(workflow),
            (_, wrong) => Err(WrongWorkflow(wrong)),
        }
    }

    /// Makes a workflow from a definition in JSON that may have mistakes. Also returns all mistakes
    /// of the definition. The workflow can be compared with other parts of an organism; it can run
    /// only if there are no mistakes.
    pub fn with_mistakes(definition: Value) -> (Option<Workflow>, Vec<WrongDefinition>) {
        let text = json::sorted(&definition);
        let digest = blake3::hash(text.as_bytes()).to_hex().to_string();
        let read = match Definition::deserialize(&definition) {
            Ok(read) => read,
            Err(error) => return (None, vec![WrongDefinition::new("", error.to_string())]),
        };
        let (plan, wrong) = Plan::with_mistakes(read);
        let environment = BTreeMap::new();
        let (plan, json) = (Arc::new(plan), Json(definition));
        (Some(Workflow { plan, json, digest, environment }), wrong)
    }

    /// Adds a variable to `${agent.environment}`. The log records the variable and its value.
    #[must_use]
    pub fn variable(mut self, name: impl Into<String>, value: impl Into<String>) -> Workflow {
        self.environment.insert(name.into(), value.into());
        self
    }

    /// The definition of the workflow.
    #[must_use]
    pub fn definition(&self) -> &Definition {
        &self.plan.definition
    }

    /// The mistakes of steps and outputs if the workflow works for an agent with these metadata
    /// fields: references to fields that don't exist, and comparisons that can't hold.
    #[must_use]
    pub fn wrong_metadata(&self, fields: &Fields) -> Vec<WrongDefinition> {
        self.plan.wrong_metadata(fields)
    }

    /// The name of the workflow and of its listener.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.plan.definition.name
    }

    /// The payload that begins a run.
    #[must_use]
    pub fn root(&self) -> Name {
        let name = self.name();
        Name::new(format!("{WORKFLOWS}{name}{VERSION}"), name)
    }

    /// The message that begins a run with this input.
    ///
    /// # Errors
    /// Fails if the payload is too large.
    pub fn run(&self, input: &Map<String, Value>) -> Result<Element, Fault> {
        start(&self.root(), input)
    }

    fn schema(&self) -> Schema {
        Schema::any(self.root(), "The input of a workflow: a JSON object, or any elements.")
    }

    /// Builds the listener that the pump runs.
    #[must_use]
    pub fn listener(self) -> Listener {
        let (name, schema) = (self.name().to_owned(), self.schema());
        let definition = &self.plan.definition;
        let targets: Vec<String> = definition.targets().into_iter().map(str::to_owned).collect();
        let text =
            definition.description.clone().unwrap_or_else(|| format!("The workflow {name}."));
        Listener::with_state(name, Arc::new(self))
            .on_named(schema, handle)
            .on_each::<(WorkflowDue, StepRefused, RetryRun), _>(handle)
            .on_any_reply(handle)
            .fold::<Runs>()
            .fold::<Actions>()
            .kind("workflow")
            .describe(text)
            .peers(targets)
            .relies_on([NAME])
            .worker()
            .settles()
            .own_thread()
            .grant::<Timers>()
            .may_emit::<WorkflowStarted>()
            .may_emit::<ConditionDecided>()
            .may_emit::<StepRefused>()
            .may_emit::<WorkflowResult>()
            .may_emit::<WorkflowFailed>()
            .may_emit::<RetryRefused>()
            .may_emit::<WorkflowDue>()
            .stateless()
    }
}

/// The mistakes of a definition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrongWorkflow(Vec<WrongDefinition>);

impl WrongWorkflow {
    /// All mistakes of the definition.
    #[must_use]
    pub fn all(&self) -> &[WrongDefinition] {
        &self.0
    }
}

impl std::fmt::Display for WrongWorkflow {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (number, wrong) in self.0.iter().enumerate() {
            let line = if number > 0 { "\n" } else { "" };
            write!(f, "{line}{wrong}")?;
        }
        Ok(())
    }
}

impl std::error::Error for WrongWorkflow {}

/// A message to a workflow, and the contexts of its handler.
#[derive(FromContext)]
struct Handling {
    message: Message,
    queue: Queue,
    runs: Fold<Runs>,
    actions: Fold<Actions>,
    record: Record,
    capabilities: Capabilities,
    tree: TreeHistory,
    workflow: State<Arc<Workflow>>,
}

/// The emissions of a workflow. They are sent in the order of these fields.
#[derive(Default, IntoEmit)]
struct Emissions {
    started: Vec<Note<WorkflowStarted>>,
    timeouts: Vec<Later<WorkflowDue>>,
    decided: Vec<Note<ConditionDecided>>,
    refused: Vec<Again<StepRefused>>,
    calls: Vec<Request<To<Action>>>,
    cancelled: Vec<To<CancelAction>>,
    fed_back: Vec<NoteAbove<Metadata>>,
    results: Vec<Answer<WorkflowResult>>,
    failed: Vec<Answer<Result<WorkflowResult, WorkflowFailed>>>,
    not_repeated: Vec<Answer<Result<WorkflowResult, RetryRefused>>>,
}

/// The message that begins a run of the workflow with this payload.
///
/// # Errors
/// Fails if the payload is too large.
pub fn start(root: &Name, input: &Map<String, Value>) -> Result<Element, Fault> {
    json_payload(root, input).map_err(Fault::from)
}

/// The name of the workflow whose runs a payload begins. None for any other payload.
#[must_use]
pub fn name_of(payload: &Name) -> Option<&str> {
    let version = payload.namespace().strip_prefix(WORKFLOWS)?.strip_prefix(payload.local())?;
    (version == VERSION).then_some(payload.local())
}

/// Reads the input of a run: a JSON object, or elements, whose texts become strings. An empty input
/// is an empty object.
///
/// # Errors
/// Fails if the input is neither.
fn read_input(view: View<'_>) -> Result<Value, String> {
    let text = view.text();
    if view.elements().next().is_some() || text.trim().is_empty() {
        return Ok(Value::Object(contents(view)));
    }
    // Characters that the log can't have are replaced.
    match json::read(&writable(&text)) {
        Ok(object @ Value::Object(_)) => Ok(object),
        Ok(_) => Err("the input is JSON, but no object: write {\"name\": value}".to_owned()),
        Err(error) => Err(format!("the input is no JSON object: {error}")),
    }
}

/// Maps the names of an element's child elements to their contents. Several elements of one name
/// become a list.
fn contents(view: View<'_>) -> Map<String, Value> {
    let mut all: Map<String, Value> = Map::new();
    for element in view.elements() {
        let value = match element.elements().next() {
            Some(_) => Value::Object(contents(element)),
            None => Value::String(element.text().into_owned()),
        };
        match all.get_mut(element.local()) {
            Some(Value::Array(items)) => items.push(value),
            Some(one) => *one = Value::Array(vec![one.take(), value]),
            None => drop(all.insert(element.local().to_owned(), value)),
        }
    }
    all
}

/// Begins a run, repeats one, or advances one after its timeout, an answer to a call, or a step
/// that couldn't be called.
async fn handle(handling: Handling, _: Element) -> Result<Emissions, Fault> {
    handling.handle().await
}

impl Handling {
    /// Handles the message and all messages in its queue. The folds include all of them, so each
    /// run is advanced once.
    async fn handle(&self) -> Result<Emissions, Fault> {
        let mut emissions = Emissions::default();
        let mut runs = BTreeSet::new();
        for message in std::iter::once(&self.message.0).chain(&self.queue.0) {
            if name_of(message.name()).is_some() {
                self.begin(message, &mut emissions).await?;
            } else if let Some(asked) = message.decode_if::<RetryRun>() {
                self.repeat(message, &asked, &mut emissions).await?;
            } else {
                runs.extend(self.runs.of(message).map(|(run, _)| run));
            }
        }
        for run in runs {
            if let Some(open) = self.runs.get(run) {
                self.advance(run, open, &mut emissions);
            }
        }
        Ok(emissions)
    }

    /// Begins the run that a message asks for.
    async fn begin(&self, message: &Entry, emissions: &mut Emissions) -> Result<(), Fault> {
        let recorded = self.recorded(message.seq());
        let workflow = recorded.unwrap_or_else(|| Workflow::clone(&self.workflow.0));
        let input = match read_input(message.element()?.view()) {
            Ok(it) => it,
            Err(reason) => {
                let failed = WorkflowFailed::before_steps(workflow.name(), reason);
                let answer = Answer::new(vec![message.clone()], Err(failed));
                emissions.failed.push(answer.outcome(Outcome::Failed));
                return Ok(());
            }
        };
        let agent = self.agent(message, &workflow).await?;
        let known = (&self.tree, &self.capabilities);
        let sets = fed_back::agent_to_set(message, &input, known, workflow.name()).await?;
        let Workflow { plan, json: definition, digest, .. } = workflow;
        let open = OpenRun::new(message.clone(), plan, input, agent, at(message)).setting(sets);
        let started = Started { open, digest, definition, repeats: None, taken: None };
        self.start(started, emissions);
        Ok(())
    }

    /// The workflow as it was when the run began. None outside a replay.
    fn recorded(&self, run: u64) -> Option<Workflow> {
        let started = self.record.0.iter().flatten().filter_map(Entry::decode_if);
        let started = { started }.find(|it: &WorkflowStarted| it.run == run)?;
        let definition = Definition::deserialize(&started.definition.0).ok()?;
        let agent = started.agent.as_ref();
        let environment = agent.and_then(|it| BTreeMap::deserialize(it.0.get("environment")?).ok());
        Some(Workflow {
            plan: Arc::new(Plan::new(definition).ok()?),
            json: started.definition,
            digest: started.digest,
            environment: environment.unwrap_or_default(),
        })
    }

    /// The context of the agent that caused a message, reduced to the fields that the workflow
    /// refers to. None if the workflow refers to no field, or if no agent caused the message.
    async fn agent(&self, message: &Entry, workflow: &Workflow) -> Result<Option<Value>, Fault> {
        let wanted = workflow.plan.agent_fields();
        if wanted.is_empty() {
            return Ok(None);
        }
        let context = agent_context::calling(message, &self.tree, &self.capabilities).await?;
        let environment = workflow.environment.clone();
        let context = context.map(|it| AgentContext { environment, ..it });
        let field = |it: &AgentContext, name: String| Some((name.clone(), it.field(&name)?));
        Ok(context.map(|it| wanted.into_iter().filter_map(|name| field(&it, name)).collect()))
    }

    /// Begins a run that repeats a failed one.
    async fn repeat(
        &self,
        message: &Entry,
        asked: &RetryRun,
        emissions: &mut Emissions,
    ) -> Result<(), Fault> {
        let id = format!("{}/{}", asked.thread, asked.run);
        let now = emissions.started.iter().map(|it| &it.0);
        let mut now = now.filter(|it| it.repeats.as_ref() == Some(&id));
        let now = now.next().map(|it| EntryId::new(message.thread(), it.run));
        let started = match self.runs.repeated(&id).or(now) {
            Some(again) => Err(format!("{id} has begun anew already, as {again}")),
            None => {
                let name = self.workflow.0.name();
                let past = PastRun::read(name, asked, &self.tree, &self.capabilities).await?;
                past.map(|it| it.started(message.clone(), at(message)))
            }
        };
        match started {
            Ok(started) => self.start(started, emissions),
            Err(message_text) => {
                let refused = RetryRefused { message: message_text };
                let answer = Answer::new(vec![message.clone()], Err(refused));
                emissions.not_repeated.push(answer.outcome(Outcome::Failed));
            }
        }
        Ok(())
    }

    /// Records that a run has begun, and begins its first steps.
    fn start(&self, started: Started, emissions: &mut Emissions) {
        let Started { open, digest, definition, repeats, taken } = started;
        let message = &open.asked;
        let run = message.seq();
        emissions.started.push(Note(WorkflowStarted {
            run,
            workflow: open.plan.definition.name.clone(),
            digest,
            at: open.started_at.parse().unwrap_or_default(),
            repeats,
            sets: open.sets.clone(),
            input: Some(Json(open.input.clone())),
            agent: open.agent.clone().map(Json),
            taken,
            definition,
        }));
        if let Some(limit) = open.plan.definition.timeout {
            let micros = u64::try_from(limit.duration().as_micros()).unwrap_or(u64::MAX);
            let until = message.at_us().saturating_add(micros);
            emissions.timeouts.push(Later::at(until, WorkflowDue { run }).unawaited());
        }
        self.advance(run, &open, emissions);
    }

    /// Adds the emissions of a run's next steps.
    fn advance(&self, run: u64, open: &OpenRun, emissions: &mut Emissions) {
        let (actions, capabilities) = (&*self.actions, &self.capabilities);
        let values = Values { open, actions, capabilities };
        let of_condition = |reference: &Reference| {
            let path: Vec<Cow<'_, str>> = reference.path().collect();
            let path: Vec<&str> = path.iter().map(|it| &**it).collect();
            values.find(reference.name(), &path)
        };
        for next in values.facts().next(&open.plan, &of_condition) {
            match next {
                Next::Decide { step, verdict } => {
                    let step = &open.plan.steps[step].step;
                    let condition = step.condition.as_ref().map(|it| it.text.clone());
                    emissions.decided.push(Note(ConditionDecided {
                        run,
                        step: step.name.clone(),
                        holds: verdict.holds,
                        condition: condition.unwrap_or_default(),
                        saw: Json(Value::Object(verdict.saw.into_iter().collect())),
                    }));
                }
                Next::Call { step, is_undo } => {
                    match values.call(run, &open.plan.steps[step], is_undo) {
                        Ok(call) => emissions.calls.push(call),
                        Err(refused) => emissions.refused.push(Again(refused)),
                    }
                }
                Next::Cancel { step } => {
                    let id = Some(action_id(run, &open.plan.steps[step].step.name));
                    let reason = Some("the run of its workflow has failed".to_owned());
                    let cancel = CancelAction { id, turn: None, agent: None, reason };
                    emissions.cancelled.push(To(NAME, cancel));
                }
                Next::End => {
                    let asked = vec![open.asked.clone()];
                    let result = match values.outputs() {
                        Ok(it) => it,
                        Err(why) => {
                            let reason = format!("the outputs can't be sent: {why}");
                            let (undone, not_undone) = (Vec::new(), Vec::new());
                            let failing = Failing { step: None, reason, undone, not_undone };
                            emissions.failed.push(open.fail(failing));
                            continue;
                        }
                    };
                    let set = fed_back::metadata(open, &result, &self.capabilities);
                    emissions.fed_back.extend(set);
                    emissions.results.push(Answer::new(asked, result));
                }
                Next::Fail(failing) => emissions.failed.push(open.fail(failing)),
            }
        }
    }
}

/// The most bytes of the reason of a failed run: what a step says may be filled in with values of
/// any size.
const REASON_BYTES_MAX: usize = 64 << 10;

/// The time at which a message begins a run, as a text.
fn at(message: &Entry) -> String {
    let at = i64::try_from(message.at_us()).ok();
    let at = at.and_then(|it| Timestamp::from_microsecond(it).ok()).unwrap_or_default();
    at.to_string()
}

impl OpenRun {
    /// The answer for a run that has failed.
    fn fail(&self, failing: Failing) -> Answer<Result<WorkflowResult, WorkflowFailed>> {
        let Failing { step, mut reason, undone, not_undone } = failing;
        reason.truncate(reason.floor_char_boundary(REASON_BYTES_MAX));
        let step = step.map(|it| self.plan.steps[it].step.name.clone());
        let workflow = self.plan.definition.name.clone();
        let failed = WorkflowFailed { workflow, step, reason, undone, not_undone };
        Answer::new(vec![self.asked.clone()], Err(failed)).outcome(Outcome::Failed)
    }
}
