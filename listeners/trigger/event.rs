//! Rules that begin runs of workflows for something other than an agent's metadata: entries of the
//! log, pushed events and times.

use std::collections::BTreeMap;

use pumphouse::prelude::*;
use pumphouse::schema::{self, Schema, nearest};
use pumphouse::wire::Json;
use pumphouse::wire::core::{Huh, SystemThreadError, ThreadCancelled, ThreadResult, ThreadStatus};
use serde_json::{Value, json};

use super::super::condition::{Condition, Reference, Type, Verdict, WrongCondition};
use super::super::workflow::Workflow;
use super::super::workflow::definition::{Missed, Overlap, Times, TriggerDefinition, TriggerKind};
use super::WrongTrigger;
use super::words::{TRIGGER_NS, TriggerDecision};

/// A rule that begins runs for entries of the log, pushed events or times.
#[derive(Clone, Debug)]
pub struct EventRule {
    name: String,
    pub(super) root: Name,
    pub(super) kind: TriggerKind,
    condition: Option<Condition>,
    pub(super) priority: i64,
    payload: Option<String>,
    from: Option<String>,
    pub(super) event: Option<String>,
    times: Option<Times>,
    missed: Missed,
    overlap: Overlap,
    thread: Option<ThreadId>,
}

/// The rules that begin runs for entries, events and times, by their names.
pub(super) type EventRules = BTreeMap<String, EventRule>;

impl EventRule {
    /// The rule of a workflow. None if the workflow has no trigger, or a trigger on metadata.
    pub(super) fn of(workflow: &Workflow) -> Option<Result<EventRule, WrongCondition>> {
        let trigger = workflow.definition().trigger.as_ref()?;
        let kind = trigger.kind();
        (kind != TriggerKind::MetadataMatch).then(|| EventRule::new(workflow, trigger, kind))
    }

    fn new(
        workflow: &Workflow,
        trigger: &TriggerDefinition,
        kind: TriggerKind,
    ) -> Result<EventRule, WrongCondition> {
        Ok(EventRule {
            name: workflow.name().to_owned(),
            root: workflow.root(),
            kind,
            condition: trigger.condition()?,
            priority: trigger.priority,
            payload: trigger.payload.clone(),
            from: trigger.from.clone(),
            event: trigger.event.clone(),
            times: trigger.times().ok().flatten(),
            missed: trigger.missed(),
            overlap: trigger.overlap(),
            thread: trigger.thread.as_deref().map(ThreadId::new),
        })
    }

    /// The name of the rule and of its workflow.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The times at which the rule fires. None if the rule isn't a schedule.
    #[must_use]
    pub fn times(&self) -> Option<&Times> {
        self.times.as_ref()
    }

    /// The treatment of times that pass while the pump is down.
    #[must_use]
    pub fn missed(&self) -> Missed {
        self.missed
    }

    /// The treatment of a schedule's times that come while its last run is at work.
    #[must_use]
    pub fn overlap(&self) -> Overlap {
        self.overlap
    }

    /// The thread below which a schedule begins the runs. None if each run has a session of its
    /// own.
    #[must_use]
    pub fn thread(&self) -> Option<&ThreadId> {
        self.thread.as_ref()
    }

    /// Whether the rule watches the entries of the log.
    #[must_use]
    pub fn watches_entries(&self) -> bool {
        use TriggerKind::{Fault, PayloadMatch, ThreadState};

        matches!(self.kind, PayloadMatch | ThreadState | Fault)
    }

    /// Checks the rule against the payloads of an organism.
    ///
    /// # Errors
    /// Fails if the rule's payload doesn't exist, or is a payload of the listener `trigger`. Fails
    /// if the condition refers to a field that doesn't exist, or can't hold. The error names the
    /// workflow.
    pub fn check(&self, all: &Capabilities) -> Result<(), WrongTrigger> {
        let wrong = |key| move |wrong| WrongTrigger { workflow: self.name.clone(), key, wrong };
        let known = match self.kind {
            TriggerKind::PayloadMatch => {
                let payload = self.payload_type(all).map_err(wrong("payload"))?;
                Type::record([(self.kind.subject(), payload)])
            }
            kind => kind.known(),
        };
        let Some(condition) = &self.condition else { return Ok(()) };
        condition.check(&known).map_err(wrong("conditions"))
    }

    /// The type of the rule's payload.
    fn payload_type(&self, all: &Capabilities) -> Result<Type, WrongCondition> {
        let wanted = self.payload.as_deref().unwrap_or_default();
        let is_it = |it: &&&Schema| it.name.local() == wanted || it.name.to_string() == wanted;
        let schemas = all.schemas();
        let found: Vec<&Schema> = schemas.iter().filter(is_it).copied().collect();
        match found[..] {
            [] => {
                let near = nearest(wanted, schemas.iter().map(|it| it.name.local()));
                let near = near.map(|it| format!("; did you mean `{it}`?")).unwrap_or_default();
                let message = format!("no listener takes or sends a payload `{wanted}`{near}");
                Err(WrongCondition { at: 0, message })
            }
            _ if found.iter().any(|it| it.name.namespace() == TRIGGER_NS) => {
                let message = format!("`{wanted}` is a payload of the triggers' own");
                Err(WrongCondition { at: 0, message })
            }
            [schema] => Ok(Type::of_json_schema(&schema::json_schema(schema))),
            _ => Ok(Type::Any),
        }
    }

    /// The value with which an entry fires the rule. None if the entry doesn't fire the rule.
    #[must_use]
    pub fn fired_by(&self, entry: &Entry, all: &Capabilities) -> Option<Value> {
        let value = match self.kind {
            TriggerKind::PayloadMatch => self.payload(entry, all),
            TriggerKind::ThreadState => thread_state(entry),
            TriggerKind::Fault => fault(entry, all),
            TriggerKind::MetadataMatch | TriggerKind::Event | TriggerKind::Schedule => None,
        };
        value.filter(|it| self.verdict(it).holds)
    }

    /// The content of an entry with the rule's payload and sender. None for any other entry.
    fn payload(&self, entry: &Entry, all: &Capabilities) -> Option<Value> {
        let (name, wanted) = (entry.name(), self.payload.as_deref()?);
        let is_named = wanted == name.local() || wanted == name.to_string();
        let is_sent = self.from.as_deref().is_none_or(|it| it == entry.from());
        let is_own = name.namespace() == TRIGGER_NS;
        if !is_named || !is_sent || is_own || entry.is_refused() {
            return None;
        }
        content(entry, all)
    }

    /// Whether the rule's condition holds for a value. Without a condition it always does.
    pub(super) fn verdict(&self, value: &Value) -> Verdict {
        let subject = self.kind.subject();
        let Some(condition) = &self.condition else {
            return Verdict::without_condition(subject, value);
        };
        let root = json!({ subject: value });
        condition.evaluate(&|reference: &Reference| reference.within(&root).cloned())
    }

    /// Decides whether a value fires the rule. `why_not` is the reason why the rule may not fire,
    /// if there is one.
    pub(super) fn decide(&self, value: &Value, why_not: Option<String>) -> TriggerDecision {
        let Verdict { holds, saw, .. } = self.verdict(value);
        TriggerDecision {
            rule: self.name.clone(),
            holds,
            fires: holds && why_not.is_none(),
            why: why_not.filter(|_| holds),
            saw: Json(Value::Object(saw.into_iter().collect())),
        }
    }
}

/// The content of an entry's payload as JSON. If the payload doesn't fit a known schema, an object
/// with its text.
fn content(entry: &Entry, all: &Capabilities) -> Option<Value> {
    let element = entry.element().ok()?;
    let known = all.schema(entry.name()).and_then(|it| schema::to_json(it, element.view()).ok());
    known.or_else(|| Some(json!({"text": element.text()})))
}

/// The end of a thread, as an entry reports it. No `thread-result` reports a cancelled session,
/// since a session has no parent. For a session, `thread-cancelled` counts instead.
fn thread_state(entry: &Entry) -> Option<Value> {
    if entry.is_refused() || entry.is_from_identity() {
        return None;
    }
    if let Some(ended) = entry.decode_if::<ThreadResult>() {
        let status = match ended.status {
            ThreadStatus::Completed => "completed",
            ThreadStatus::Empty => "empty",
            ThreadStatus::Failed => "failed",
            ThreadStatus::Cancelled => "cancelled",
        };
        let payload = ended.payload.map(|it| it.local().to_owned());
        return Some(json!({"id": ended.thread, "status": status, "payload": payload}));
    }
    let ThreadCancelled { thread, by, reason } = entry.decode_if()?;
    let is_session = thread == entry.thread().as_str() && entry.thread().tree().as_str() == thread;
    let value = || json!({"id": thread, "status": "cancelled", "by": by, "reason": reason});
    is_session.then(value)
}

/// The fault that an entry reports.
fn fault(entry: &Entry, all: &Capabilities) -> Option<Value> {
    (entry.is::<Huh>() || entry.is::<SystemThreadError>()).then(|| content(entry, all))?
}
