//! Definitions of workflows: files of the kind `Workflow`.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

use super::super::condition::Condition;
pub use super::mistake::WrongDefinition;
pub use super::seconds::Seconds;
pub use super::statuses::Statuses;
pub use super::trigger_definition::{Fire, Missed, Overlap, Times, TriggerDefinition, TriggerKind};

/// The definition of a workflow.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Definition {
    /// Always `Workflow`.
    #[serde(default)]
    pub kind: Kind,
    /// The name of the workflow and of its listener.
    pub name: String,
    /// The author's version of the file. It has no effect.
    #[serde(default)]
    pub version: Option<String>,
    /// What the workflow is for. Prompts and people read it.
    #[serde(default)]
    pub description: Option<String>,
    /// The trigger that begins runs by itself.
    #[serde(default)]
    pub trigger: Option<TriggerDefinition>,
    /// The steps, in their order.
    pub steps: Vec<Step>,
    /// The values that the workflow answers with, by their names. The values may have references.
    #[serde(default)]
    pub outputs: Map<String, Value>,
    /// The name of the output that is the value of the result. By default, this is the only output.
    /// If there are several, the value is all of them.
    #[serde(default)]
    pub value: Option<String>,
    /// How long a run may take.
    #[serde(default)]
    pub timeout: Option<Seconds>,
    /// The `on_failure` of steps that don't set one.
    #[serde(default)]
    pub on_failure: OnFailure,
    /// The `failed_statuses` of steps that don't set them.
    #[serde(default)]
    pub failed_statuses: Option<Statuses>,
    /// The variables of the pump's environment that `${agent.environment}` has.
    #[serde(default)]
    pub environment: Vec<String>,
}

/// The `kind` of the file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[non_exhaustive]
pub enum Kind {
    /// A workflow.
    #[default]
    Workflow,
}

/// A step of a workflow.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Step {
    /// The name, by which other steps refer to its result: `${steps.NAME}`.
    pub name: String,
    /// What the step does.
    #[serde(rename = "type", default)]
    pub kind: StepKind,
    /// The listener to call, or `listener.payload`.
    #[serde(default)]
    pub target: Option<String>,
    /// The parameters of the call. They may have references.
    #[serde(default)]
    pub parameters: Map<String, Value>,
    /// Makes the step end the run as failed, for this reason. The step calls nobody.
    #[serde(default)]
    pub fail: Option<Reason>,
    /// The statuses with which an answer counts as a failure of the step.
    #[serde(default)]
    pub failed_statuses: Option<Statuses>,
    /// The condition under which the step runs. Without a condition, the step always runs.
    #[serde(default)]
    pub condition: Option<ConditionText>,
    /// The names of the steps that must have ended before this one starts. By default, this is the
    /// step or group before this one.
    #[serde(default)]
    pub depends_on: Option<Vec<String>>,
    /// Neighbouring steps with the same group run concurrently.
    #[serde(default)]
    pub parallel_group: Option<String>,
    /// How long an attempt may take.
    #[serde(default)]
    pub timeout: Option<Seconds>,
    /// How often the step is retried, and after which pauses.
    #[serde(default)]
    pub retry_policy: Option<RetryPolicy>,
    /// What the step's failure means for the run. The default is that of the workflow.
    #[serde(default)]
    pub on_failure: Option<OnFailure>,
    /// The call that undoes the step if the run fails later.
    #[serde(default)]
    pub compensate: Option<Call>,
    /// For a decision: the steps that run if its condition holds.
    #[serde(default)]
    pub then: Vec<Step>,
    /// For a decision: the steps that run if its condition doesn't hold.
    #[serde(default, rename = "else")]
    pub otherwise: Vec<Step>,
}

/// The reason for which a step ends its run as failed. It may have references.
#[derive(Clone, Debug)]
pub struct Reason(Map<String, Value>);

impl Reason {
    const KEY: &str = "fail";

    /// The text, under the step's key.
    pub(super) fn fields(&self) -> &Map<String, Value> {
        &self.0
    }

    /// The text.
    #[must_use]
    pub fn text(&self) -> &Value {
        &self.0[Reason::KEY]
    }
}

impl<'de> Deserialize<'de> for Reason {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Reason, D::Error> {
        let text = Value::deserialize(from)?;
        if text.as_str().is_none_or(|it| it.trim().is_empty()) {
            let wrong = "a reason is a text, as in `fail: the card was refused`";
            return Err(serde::de::Error::custom(wrong));
        }
        Ok(Reason(Map::from_iter([(Reason::KEY.to_owned(), text)])))
    }
}

/// What a step does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
// The enum is exhaustive, since a run must know what each kind does.
pub enum StepKind {
    /// Calls a listener that does one thing.
    #[default]
    Tool,
    /// Gives an agent work.
    Agent,
    /// Calls a listener that stores data.
    Relic,
    /// Asks a model once.
    Llm,
    /// Runs another workflow.
    Workflow,
    /// Takes one of two branches.
    Decision,
    /// Waits until all steps before it have ended.
    Barrier,
}

/// A call that undoes a step.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Call {
    /// The type of the called listener.
    #[serde(rename = "type", default)]
    pub kind: StepKind,
    /// The listener to call, or `listener.payload`.
    pub target: String,
    /// The parameters of the call. They may have references.
    #[serde(default)]
    pub parameters: Map<String, Value>,
}

/// What the failure of a step means for its run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
// The enum is exhaustive, since a run must know what each variant means.
pub enum OnFailure {
    /// The run fails: running steps are cancelled, and finished steps with `compensate` are undone.
    #[default]
    Abort,
    /// The run continues. Later steps see that `previous_steps_success` is false.
    Continue,
    /// The step is retried. It has three attempts in all unless its `retry_policy` says otherwise.
    /// If the last attempt fails, the run fails.
    Retry,
    /// The run continues as if the step had succeeded.
    LogOnly,
}

/// How often a step is retried, and after which pauses.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct RetryPolicy {
    /// The maximum number of attempts, including the first one.
    pub max_attempts: u32,
    /// How the pauses grow.
    pub backoff: Backoff,
    /// The pause after the first attempt.
    pub initial_delay: Seconds,
    /// The longest pause.
    pub max_delay: Seconds,
}

impl Default for RetryPolicy {
    fn default() -> RetryPolicy {
        RetryPolicy {
            max_attempts: 3,
            backoff: Backoff::Exponential,
            initial_delay: Seconds::new(1.0),
            max_delay: Seconds::new(60.0),
        }
    }
}

/// How the pauses between attempts grow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
// The enum is exhaustive, since a run must know how long each one waits.
pub enum Backoff {
    /// Each pause is twice the one before.
    #[default]
    Exponential,
    /// Each pause is longer than the one before by the length of the first pause.
    Linear,
    /// All pauses are equally long.
    None,
}

/// A condition in a file.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ConditionText {
    /// The text.
    pub text: String,
    /// The condition. If the text is wrong, a condition that always holds.
    pub condition: Condition,
    /// What is wrong with the text.
    pub(super) wrong: Option<String>,
}

impl<'de> Deserialize<'de> for ConditionText {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<ConditionText, D::Error> {
        let text = match Value::deserialize(from)? {
            Value::String(it) => it,
            scalar @ (Value::Bool(_) | Value::Number(_)) => scalar.to_string(),
            _ => return Err(serde::de::Error::custom("a condition is a text")),
        };
        // A wrong condition is a mistake of the plan, so that it doesn't hide the others.
        let (condition, wrong) = match Condition::parse(&text) {
            Ok(condition) => (condition, None),
            Err(wrong) => {
                let always = Condition::parse("true").map_err(serde::de::Error::custom)?;
                (always, Some(wrong.to_string()))
            }
        };
        Ok(ConditionText { text, condition, wrong })
    }
}

impl Definition {
    /// All steps, including those within decisions, each with its path in the file.
    pub(super) fn all_steps(&self) -> Vec<(String, &Step)> {
        let mut found = Vec::new();
        collect(&self.steps, "steps", &mut found);
        found
    }

    /// The names of the listeners that the steps call, also to undo steps. Each name is listed
    /// once, in alphabetical order.
    #[must_use]
    pub fn targets(&self) -> Vec<&str> {
        let mut found: BTreeMap<&str, ()> = BTreeMap::new();
        for (_, step) in self.all_steps() {
            let undo = step.compensate.as_ref().map(|it| &*it.target);
            for target in step.target.as_deref().into_iter().chain(undo) {
                found.insert(target.split_once('.').map_or(target, |(name, _)| name), ());
            }
        }
        found.into_keys().collect()
    }
}

fn collect<'a>(steps: &'a [Step], path: &str, found: &mut Vec<(String, &'a Step)>) {
    for (number, step) in steps.iter().enumerate() {
        let path = format!("{path}[{number}]");
        collect(&step.then, &format!("{path}.then"), found);
        collect(&step.otherwise, &format!("{path}.else"), found);
        found.push((path, step));
    }
}
