//! The fold of a thread's runs of workflows.

use std::collections::BTreeMap;
use std::sync::Arc;

use pumphouse::prelude::*;
use pumphouse::wire::core::Huh;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::super::action::variables::KnownValue;
use super::super::schedule::CurrentThread;
use super::super::words::action::{Action, ActionResult, CancelAction, NAME, Status};
use super::super::words::operator::RetryRun;
use super::definition::Definition;
use super::name_of;
use super::plan::{Plan, action_id};
use super::run::Facts;
use super::words::{
    CallName, ConditionDecided, StepRefused, WorkflowDue, WorkflowFailed, WorkflowResult,
    WorkflowStarted,
};

/// The runs of a thread.
#[derive(Clone, Debug, Default)]
pub struct Runs {
    /// The messages to workflows for which no run has begun yet, by their numbers.
    asked: BTreeMap<u64, Entry>,
    /// The open runs, which haven't ended, by the numbers of the messages that began them.
    open: BTreeMap<u64, OpenRun>,
    /// Maps the entry number of each action of an open run to the name of its call.
    calls: BTreeMap<u64, CallName>,
    /// For each run that was repeated: its last repetition, and whether that repetition failed.
    repeated: BTreeMap<String, (EntryId, bool)>,
    thread: CurrentThread,
}

/// A run that hasn't ended.
#[derive(Clone, Debug)]
pub(super) struct OpenRun {
    pub(super) asked: Entry,
    pub(super) plan: Arc<Plan>,
    pub(super) input: Value,
    /// The context of the agent that the run works for. It has the fields that the workflow refers
    /// to.
    pub(super) agent: Option<Value>,
    pub(super) started_at: String,
    /// The agent whose metadata the outputs set. None if they set no metadata.
    pub(super) sets: Option<String>,
    pub(super) facts: Facts,
    /// Maps steps to the results that this run has taken over from the run that it repeats.
    pub(super) taken: BTreeMap<String, KnownValue>,
    /// Whether the log has the `workflow-due` message that waits for the run's timeout.
    waits_for_timeout: bool,
}

/// The result of a step that a run takes over from the run that it repeats.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct TakenResult {
    pub(super) step: String,
    pub(super) value: Value,
    /// The whole payload, if the value is only a part of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) fields: Option<Value>,
    /// The data for which the value stands, if the value is a text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) body: Option<Value>,
}

impl OpenRun {
    /// A run that has done nothing yet.
    pub(super) fn new(
        asked: Entry,
        plan: Arc<Plan>,
        input: Value,
        agent: Option<Value>,
        started_at: String,
    ) -> OpenRun {
        OpenRun {
            asked,
            plan,
            input,
            agent,
            started_at,
            sets: None,
            facts: Facts::default(),
            taken: BTreeMap::new(),
            waits_for_timeout: false,
        }
    }

    /// Lets the outputs set the metadata of an agent.
    pub(super) fn setting(mut self, agent: Option<String>) -> OpenRun {
        self.sets = agent;
        self
    }

    /// Takes over results of the run that this one repeats.
    pub(super) fn taking(mut self, results: Vec<TakenResult>) -> OpenRun {
        for TakenResult { step, value, fields, body } in results {
            self.facts.end(&step, false, Status::Ok, None);
            let known = KnownValue { value, fields, body, ..KnownValue::default() };
            self.taken.insert(step, known);
        }
        self
    }
}

impl Runs {
    /// The open run that a message is about, and the run's number. None if there is no such run.
    pub(super) fn of(&self, message: &Entry) -> Option<(u64, &OpenRun)> {
        let run = if let Some(due) = message.decode_if::<WorkflowDue>() {
            due.run
        } else if let Some(refused) = message.decode_if::<StepRefused>() {
            refused.run
        } else {
            self.calls.get(&message.reply_to()?.seq)?.run
        };
        self.open.get(&run).map(|it| (run, it))
    }

    /// The open run with this number.
    pub(super) fn get(&self, run: u64) -> Option<&OpenRun> {
        self.open.get(&run)
    }

    /// Whether an entry is a reply to a call of this run.
    pub(super) fn is_result(&self, entry: &Entry, run: u64) -> bool {
        let call = entry.reply_to().and_then(|it| self.calls.get(&it.seq));
        call.is_some_and(|it| it.run == run)
    }

    /// The run that repeats a run, directly or by way of repetitions that failed. None if the run
    /// wasn't repeated, or if its last repetition failed.
    pub(super) fn repeated(&self, run: &str) -> Option<EntryId> {
        let (again, has_failed) = self.repeated.get(run)?;
        if *has_failed { self.repeated(&again.to_string()) } else { Some(again.clone()) }
    }

    fn start(&mut self, entry: &Entry, started: &WorkflowStarted) {
        let Some(asked) = self.asked.remove(&started.run) else { return };
        let again = EntryId::new(entry.thread(), started.run);
        self.repeated.extend(started.repeats.clone().map(|it| (it, (again, false))));
        let definition = Definition::deserialize(&started.definition.0).ok();
        let Some(plan) = definition.and_then(|it| Plan::new(it).ok()) else { return };
        debug_assert_eq!(entry.to(), Some(entry.from()), "a workflow notes this for itself");
        let input = started.input.as_ref().map(|it| it.0.clone()).unwrap_or_default();
        let agent = started.agent.as_ref().map(|it| it.0.clone());
        let taken = started.taken.as_ref().map(|it| Vec::deserialize(&it.0));
        let taken: Vec<TakenResult> = taken.and_then(Result::ok).unwrap_or_default();
        let open = OpenRun::new(asked, Arc::new(plan), input, agent, started.at.to_string());
        let open = open.taking(taken).setting(started.sets.clone());
        self.open.insert(started.run, open);
    }

    /// The open run with this number, if the entry is from the run's workflow.
    fn own(&mut self, run: u64, entry: &Entry) -> Option<&mut OpenRun> {
        self.open.get_mut(&run).filter(|it| it.asked.to() == Some(entry.from()))
    }

    /// Records an entry of a workflow.
    fn observe(&mut self, entry: &Entry) {
        if let Some(started) = entry.decode_if::<WorkflowStarted>() {
            self.start(entry, &started);
        } else if let Some(decided) = entry.decode_if::<ConditionDecided>() {
            if let Some(open) = self.own(decided.run, entry) {
                open.facts.decided.insert(decided.step, decided.holds);
            }
        } else if let Some(refused) = entry.decode_if::<StepRefused>() {
            if let Some(open) = self.own(refused.run, entry) {
                let why = Some(refused.reason);
                open.facts.end(&refused.step, refused.undo, Status::Failed, why);
            }
        } else if entry.to() == Some(NAME) && entry.is::<Action>() {
            self.observe_call(entry);
        } else if entry.to() == Some(NAME) && entry.is::<CancelAction>() {
            self.observe_cancel(entry);
        } else if entry.is::<WorkflowResult>() || entry.is::<WorkflowFailed>() {
            self.observe_end(entry);
        }
    }

    fn observe_call(&mut self, entry: &Entry) {
        let Some(call) = entry.key().as_deref().and_then(CallName::parse) else { return };
        let Some(open) = self.own(call.run, entry) else { return };
        open.facts.call(&call.step, call.is_undo, entry.seq());
        self.calls.insert(entry.seq(), call);
    }

    fn observe_cancel(&mut self, entry: &Entry) {
        let Some(CancelAction { id: Some(id), .. }) = entry.decode_if() else { return };
        for (run, open) in &mut self.open {
            let is_own = open.asked.to() == Some(entry.from());
            let mut steps = open.facts.calls.keys();
            let step = steps.find(|it| is_own && action_id(*run, it) == id).cloned();
            open.facts.cancelled.extend(step);
        }
    }

    fn observe_end(&mut self, entry: &Entry) {
        let Some(asked) = entry.reply_to() else { return };
        if self.open.get(&asked.seq).is_some_and(|it| it.asked.to() == Some(entry.from())) {
            self.open.remove(&asked.seq);
            self.calls.retain(|_, call| call.run != asked.seq);
            if entry.is::<WorkflowFailed>() {
                let all = self.repeated.values_mut();
                all.filter(|(run, _)| run == asked).for_each(|(_, has_failed)| *has_failed = true);
            }
        }
    }

    /// Records how a call ended.
    fn observe_result(&mut self, entry: &Entry) {
        let Some(call) = entry.reply_to().and_then(|it| self.calls.get(&it.seq)) else { return };
        let Some(open) = self.open.get_mut(&call.run) else { return };
        let (status, why) = if let Some(result) = entry.decode_if::<ActionResult>() {
            (result.status, result.why())
        } else if let Some(huh) = entry.decode_if::<Huh>() {
            (Status::Failed, Some(format!("{}: {}: {}", huh.code, huh.message, huh.advice)))
        } else {
            return;
        };
        open.facts.end(&call.step, call.is_undo, status, why);
    }
}

impl Apply for Runs {
    fn apply(&mut self, entry: &Entry) {
        if self.thread.enter(entry) {
            // Runs continue only in the thread in which they began, and not in its forks.
            *self = Runs { thread: std::mem::take(&mut self.thread), ..Runs::default() };
        }
        if entry.is_refused() {
            return;
        }
        let is_asked = name_of(entry.name()).is_some() || entry.is::<RetryRun>();
        if is_asked && entry.receivers() > 0 {
            self.asked.insert(entry.seq(), entry.clone());
            return;
        }
        if let Some(due) = entry.decode_if::<WorkflowDue>() {
            // The message is in the log twice: when it begins to wait, and when it is due.
            if let Some(open) = self.own(due.run, entry) {
                open.facts.is_due = std::mem::replace(&mut open.waits_for_timeout, true);
            }
            return;
        }
        if entry.reply_to().is_some() && (entry.from() == NAME || entry.is_from_core()) {
            self.observe_result(entry);
        } else if !entry.is_from_identity() {
            self.observe(entry);
        }
    }
}

/// The key of a step's call.
pub(super) fn key(run: u64, step: &str, is_undo: bool) -> String {
    format!("{run}/{}/{step}", if is_undo { "undo" } else { "do" })
}
