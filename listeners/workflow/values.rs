//! The values of a run's references, and the calls that are made with them.

use std::borrow::Cow;

use pumphouse::prelude::*;
use pumphouse::schema::json;
use pumphouse::wire::{Json, SignedDuration};
use serde_json::{Value, json};

use super::super::action::Actions;
use super::super::action::call::{command_field, lookup, untimed};
use super::super::action::command_arguments::{check_options, check_places};
use super::super::action::variables::{KnownValue, Lookup, step_into};
use super::super::metadata::METADATA;
use super::super::words::action::{self, Action, ActionKind, Mode, NAME, References, Status};
use super::definition::{Backoff, OnFailure, RetryPolicy, Seconds, StepKind};
use super::fill_references::filled;
use super::plan::{AGENT, NAMES, Planned, STEPS, TRIGGER, WORKFLOW, action_id, undo_of};
use super::run::Facts;
use super::runs::{OpenRun, key};
use super::words::{StepRefused, WorkflowResult};

/// The values of a run's references.
pub(super) struct Values<'a> {
    pub(super) open: &'a OpenRun,
    pub(super) actions: &'a Actions,
    pub(super) capabilities: &'a Capabilities,
}

impl Values<'_> {
    /// The value that a name and a path lead to.
    pub(super) fn find(&self, name: &str, path: &[&str]) -> Option<Value> {
        match (name, path) {
            (TRIGGER, path) => along(&self.open.input, path).cloned(),
            (WORKFLOW, path) => {
                let workflow = json!({
                    "name": self.open.plan.definition.name,
                    "run": self.open.asked.thread().to_string(),
                    "started_at": self.open.started_at,
                });
                along(&workflow, path).cloned()
            }
            (AGENT, path) => along(self.open.agent.as_ref()?, path).cloned(),
            (METADATA, path) => along(self.open.agent.as_ref()?.get(METADATA)?, path).cloned(),
            (STEPS, [step, path @ ..]) => {
                let known = self.result(step)?;
                known.at(path).ok().cloned()
            }
            _ => None,
        }
    }

    /// The result of a step that succeeded. None for any other step.
    pub(super) fn result(&self, step: &str) -> Option<KnownValue> {
        if let Some(taken) = self.open.taken.get(step) {
            return Some(taken.clone());
        }
        let call = self.open.facts.calls.get(step)?;
        let value = self.actions.graph().resolved(call.action?)?;
        match lookup(self.capabilities, &value) {
            Lookup::Value(known) => Some(known.into_owned()),
            Lookup::Skipped => Some(Value::Null.into()),
            Lookup::Failed | Lookup::Unavailable | Lookup::Unknown => None,
        }
    }

    /// The facts of the run, in which an answer with one of the step's `failed_statuses` is a
    /// failure.
    pub(super) fn facts(&self) -> Cow<'_, Facts> {
        let (plan, facts) = (&self.open.plan, &self.open.facts);
        let mut judged = Cow::Borrowed(facts);
        for planned in &plan.steps {
            let step = &planned.step;
            let of_workflow = plan.definition.failed_statuses.as_ref();
            let Some(failed) = step.failed_statuses.as_ref().or(of_workflow) else { continue };
            let result = facts.calls.get(&step.name).and_then(|it| it.result.as_ref());
            if result.is_none_or(|it| it.status != Status::Ok) {
                continue;
            }
            let Some(known) = self.result(&step.name) else { continue };
            // A status within what a server said isn't that of the answer.
            let payload = known.fields.as_ref().unwrap_or(&known.value);
            let status = payload.get("status").and_then(number);
            if let Some(status) = status.filter(|it| failed.has(*it)) {
                judged.to_mut().fail(&step.name, format!("the answer has the status {status}"));
            }
        }
        judged
    }

    /// Makes the action that runs a step. With `is_undo`, makes the action that undoes the step.
    ///
    /// # Errors
    /// Fails if a reference in the parameters leads to nothing, and with the reason of a step that
    /// ends its run as failed.
    pub(super) fn call(
        &self,
        run: u64,
        planned: &Planned,
        is_undo: bool,
    ) -> Result<Request<To<Action>>, StepRefused> {
        let step = &planned.step;
        if let Some(reason) = &step.fail {
            let reason = match self.filled(reason.text()) {
                Ok(Value::String(text)) => text,
                Ok(value) => value.to_string(),
                Err(missing) => missing,
            };
            return Err(StepRefused { run, step: step.name.clone(), undo: false, reason });
        }
        let undo = step.compensate.as_ref().filter(|_| is_undo);
        let (kind, target, parameters) = match undo {
            Some(it) => (it.kind, Some(&*it.target), &it.parameters),
            None => (step.kind, step.target.as_deref(), &step.parameters),
        };
        let refused = |reason| StepRefused { run, step: step.name.clone(), undo: is_undo, reason };
        let listed = Value::Object(parameters.clone());
        let parameters = self.filled(&listed).map_err(refused)?;
        self.keeps_arguments(target.unwrap_or_default(), &listed, &parameters).map_err(refused)?;
        let retry = retry_policy(planned).filter(|_| !is_undo);
        let mut action = Action {
            id: action_id(run, &if is_undo { undo_of(&step.name) } else { step.name.clone() }),
            kind: action_kind(kind),
            mode: Mode::Async,
            timeout: step.timeout.filter(|_| !is_undo).map(signed),
            retry: retry.map(|it| it.max_attempts.saturating_sub(1)),
            retry_delay: retry.map(|it| signed(it.initial_delay)),
            retry_delay_max: retry.map(|it| signed(it.max_delay)),
            backoff: retry.map(|it| backoff(it.backoff)),
            name: target.unwrap_or_default().to_owned(),
            // The references of the workflow are filled in here, and there are no others.
            references: Some(References::None),
            parameters: Some(json::text(&parameters)),
            ..Action::default()
        };
        untimed(&mut action, self.capabilities);
        // The values that are filled in may make the call larger than a message may be.
        action.encode().map_err(|fault| refused(format!("it can't be called: {fault}")))?;
        Ok(Request::new(To(NAME, action)).key(key(run, &step.name, is_undo)))
    }

    /// Fails if the parameters of a call that runs a program let a value be more than one argument,
    /// or an option.
    fn keeps_arguments(&self, target: &str, listed: &Value, filled: &Value) -> Result<(), String> {
        let Some(field) = command_field(self.capabilities, target) else { return Ok(()) };
        let wrong = |why: String| format!("$.{field}: {why}");
        check_places(&listed[field], |it| NAMES.contains(&it.name)).map_err(wrong)?;
        check_options(&listed[field], &filled[field]).map_err(|it| format!("$.{field}{it}"))
    }

    /// The result of the run. An output that is nothing but a reference is null if the reference
    /// leads to nothing, for example to the result of a step that was skipped.
    ///
    /// # Errors
    /// If the outputs are too large for a message. The error says so.
    pub(super) fn outputs(&self) -> Result<WorkflowResult, String> {
        let definition = &self.open.plan.definition;
        let outputs = Value::Object(definition.outputs.clone());
        let filled = filled(&outputs, &NAMES, &|name, path| self.find(name, path));
        let (outputs, _) = filled.bounded()?;
        let only = definition.outputs.keys().next().filter(|_| definition.outputs.len() == 1);
        let named = definition.value.as_ref().or(only);
        let value = named.and_then(|it| outputs.get(it)).cloned().map(Json);
        let result =
            WorkflowResult { workflow: definition.name.clone(), value, outputs: Json(outputs) };
        result.encode().map_err(|fault| fault.to_string())?;
        Ok(result)
    }

    fn filled(&self, value: &Value) -> Result<Value, String> {
        let filled = filled(value, &NAMES, &|name, path| self.find(name, path));
        let (value, missing) = filled.bounded()?;
        match &missing[..] {
            [] => Ok(value),
            [one] => Err(format!("{one} has no value")),
            several => Err(format!("{} have no values", several.join(", "))),
        }
    }
}

/// The number that a status is, or reads as.
fn number(status: &Value) -> Option<u64> {
    status.as_u64().or_else(|| status.as_str()?.parse().ok())
}

/// The part of a value that a path leads to.
fn along<'a>(value: &'a Value, path: &[&str]) -> Option<&'a Value> {
    path.iter().try_fold(value, |value, step| step_into(value, step))
}

fn retry_policy(planned: &Planned) -> Option<RetryPolicy> {
    let by_default = (planned.on_failure == OnFailure::Retry).then(RetryPolicy::default);
    planned.step.retry_policy.or(by_default)
}

fn action_kind(kind: StepKind) -> ActionKind {
    match kind {
        StepKind::Agent => ActionKind::Agent,
        StepKind::Relic => ActionKind::Relic,
        StepKind::Llm => ActionKind::Llm,
        StepKind::Workflow => ActionKind::Workflow,
        StepKind::Tool | StepKind::Decision | StepKind::Barrier => ActionKind::Tool,
    }
}

fn backoff(backoff: Backoff) -> action::Backoff {
    match backoff {
        Backoff::Exponential => action::Backoff::Exponential,
        Backoff::Linear => action::Backoff::Linear,
        Backoff::None => action::Backoff::None,
    }
}

fn signed(seconds: Seconds) -> SignedDuration {
    SignedDuration::try_from(seconds.duration()).unwrap_or(SignedDuration::MAX)
}
