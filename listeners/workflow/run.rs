//! The facts that the log has about a run of a workflow, and the decision on what the run does
//! next.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::super::condition::{Reference, Verdict};
use super::super::words::action::Status;
use super::definition::{OnFailure, StepKind};
use super::plan::{Plan, Planned, SUCCESS};

/// The facts that the log has about a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Facts {
    /// The calls of the steps, by the steps' names.
    pub(super) calls: BTreeMap<String, CallFact>,
    /// The calls that undo steps, by the names of these steps.
    pub(super) undone: BTreeMap<String, CallFact>,
    /// The decided conditions, by the names of their steps.
    pub(super) decided: BTreeMap<String, bool>,
    /// The steps whose calls the run has cancelled.
    pub(super) cancelled: BTreeSet<String>,
    /// Whether the run has reached its timeout.
    pub(super) is_due: bool,
    /// The number of calls that have ended. It gives each result its place in the order of results.
    ended: u64,
}

/// A call of a run.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct CallFact {
    /// The number of the action's entry. None if the call couldn't be made.
    pub(super) action: Option<u64>,
    pub(super) result: Option<ResultFact>,
}

/// How a call ended.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ResultFact {
    pub(super) status: Status,
    /// What went wrong.
    pub(super) why: Option<String>,
    /// The place of the result in the order of the run's results.
    pub(super) order: u64,
}

/// Something that a run does next.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Next {
    /// Records the verdict on the condition of a step.
    Decide { step: usize, verdict: Verdict },
    /// Calls the listener of a step, or the listener that undoes the step.
    Call { step: usize, is_undo: bool },
    /// Cancels the call of a step, since the run fails.
    Cancel { step: usize },
    /// Answers with the outputs of the run, since all steps have ended.
    End,
    /// Answers that the run has failed.
    Fail(Failing),
}

/// How a run fails.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Failing {
    /// The step whose failure ends the run. None if no step failed.
    pub(super) step: Option<usize>,
    pub(super) reason: String,
    pub(super) undone: Vec<String>,
    pub(super) not_undone: Vec<String>,
}

/// The state of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StepState {
    Waiting,
    Running,
    /// The step has succeeded, or it is a decision or a barrier that has ended.
    Done,
    Skipped,
    Failed,
}

impl Facts {
    /// Records a call. `action` is the number of its entry.
    pub(super) fn call(&mut self, step: &str, is_undo: bool, action: u64) {
        let call = CallFact { action: Some(action), result: None };
        self.calls_of(is_undo).insert(step.to_owned(), call);
    }

    /// Records how a call ended, or that it couldn't be made.
    pub(super) fn end(&mut self, step: &str, is_undo: bool, status: Status, why: Option<String>) {
        self.ended += 1;
        let result = Some(ResultFact { status, why, order: self.ended });
        let calls = self.calls_of(is_undo);
        calls.entry(step.to_owned()).or_insert(CallFact { action: None, result: None }).result =
            result;
    }

    /// Makes the result of a step a failure, at its place in the order of results.
    pub(super) fn fail(&mut self, step: &str, why: String) {
        if let Some(result) = self.calls.get_mut(step).and_then(|it| it.result.as_mut()) {
            (result.status, result.why) = (Status::Failed, Some(why));
        }
    }

    fn calls_of(&mut self, is_undo: bool) -> &mut BTreeMap<String, CallFact> {
        if is_undo { &mut self.undone } else { &mut self.calls }
    }

    /// Returns what the run does next. `value` returns the value of a reference. `value` isn't
    /// called for `previous_steps_success`.
    pub(super) fn next(
        &self,
        plan: &Plan,
        value: &dyn Fn(&Reference) -> Option<Value>,
    ) -> Vec<Next> {
        let mut run = Run { plan, facts: self, states: self.states(plan), next: Vec::new() };
        match run.failure() {
            Some((step, reason)) => run.fail(step, reason),
            None => run.advance(value),
        }
        run.next
    }

    fn states(&self, plan: &Plan) -> Vec<StepState> {
        let mut states: Vec<StepState> = Vec::with_capacity(plan.steps.len());
        for planned in &plan.steps {
            let step = &planned.step;
            let state = match self.calls.get(&step.name) {
                Some(CallFact { result: Some(result), .. }) => match result.status {
                    Status::Ok => StepState::Done,
                    _ => StepState::Failed,
                },
                Some(_) => StepState::Running,
                None => match (self.decided.get(&step.name), step.kind) {
                    (Some(_), StepKind::Decision) => StepState::Done,
                    (Some(false), _) => StepState::Skipped,
                    _ => StepState::Waiting,
                },
            };
            states.push(state);
        }
        states
    }
}

/// A run while its next steps are computed.
struct Run<'a> {
    plan: &'a Plan,
    facts: &'a Facts,
    states: Vec<StepState>,
    next: Vec<Next>,
}

impl Run<'_> {
    /// The step whose failure ends the run, and the reason. The step is None if the run has reached
    /// its timeout.
    fn failure(&self) -> Option<(Option<usize>, String)> {
        let ended = |(number, planned): (usize, &Planned)| {
            let ends = matches!(planned.on_failure, OnFailure::Abort | OnFailure::Retry);
            let ends = ends || planned.step.fail.is_some();
            let call = self.facts.calls.get(&planned.step.name)?;
            let result = call.result.as_ref()?;
            // A step that the run itself cancelled isn't the cause of the failure.
            let ends = ends && !self.facts.cancelled.contains(&planned.step.name);
            (ends && result.status != Status::Ok).then_some((result.order, number, result))
        };
        let first = self.plan.steps.iter().enumerate().filter_map(ended);
        if let Some((_, number, result)) = first.min_by_key(|(order, ..)| *order) {
            let step = &self.plan.steps[number].step;
            if let Some(reason) = result.why.as_ref().filter(|_| step.fail.is_some()) {
                return Some((Some(number), reason.clone()));
            }
            let name = &step.name;
            let status = match result.status {
                Status::TimedOut => "timed out",
                other => other.as_str(),
            };
            let why = result.why.as_ref().map(|it| format!(": {it}")).unwrap_or_default();
            return Some((Some(number), format!("{name} {status}{why}")));
        }
        let limit = self.plan.definition.timeout.filter(|_| self.facts.is_due)?;
        Some((None, format!("the run took longer than its timeout, {} s", limit.seconds())))
    }

    /// Ends a failing run: first cancels running steps, then undoes finished steps one by one, then
    /// answers.
    fn fail(&mut self, step: Option<usize>, reason: String) {
        let running = |it: &usize| self.states[*it] == StepState::Running;
        let running: Vec<usize> = (0..self.states.len()).filter(running).collect();
        if !running.is_empty() {
            let asked = |it: &usize| !self.facts.cancelled.contains(self.name(*it));
            self.next =
                running.into_iter().filter(asked).map(|step| Next::Cancel { step }).collect();
            return;
        }
        // A cancelled step may have had effects, so it counts as not undone.
        let cancelled = self.facts.cancelled.iter().filter(|it| {
            let result = self.facts.calls.get(*it).and_then(|it| it.result.as_ref());
            result.is_none_or(|it| it.status != Status::Ok)
        });
        let mut not_undone: Vec<String> = cancelled.cloned().collect();
        not_undone.extend(self.uncertain());
        let mut undone = Vec::new();
        for number in self.to_undo() {
            let name = self.name(number);
            match self.facts.undone.get(name).map(|it| &it.result) {
                None => {
                    self.next = vec![Next::Call { step: number, is_undo: true }];
                    return;
                }
                Some(None) => return,
                Some(Some(result)) if result.status == Status::Ok => undone.push(name.to_owned()),
                Some(Some(_)) => not_undone.push(name.to_owned()),
            }
        }
        self.next = vec![Next::Fail(Failing { step, reason, undone, not_undone })];
    }

    /// The steps whose effect is unknown, except the steps that the run has cancelled.
    fn uncertain(&self) -> impl Iterator<Item = String> {
        let is_it = |name: &String| {
            let result = self.facts.calls.get(name).and_then(|it| it.result.as_ref());
            let is_open = |it: &ResultFact| matches!(it.status, Status::TimedOut | Status::Unknown);
            result.is_some_and(is_open) && !self.facts.cancelled.contains(name)
        };
        self.plan.steps.iter().map(|it| it.step.name.clone()).filter(is_it)
    }

    /// The steps that succeeded and have `compensate`, the newest first.
    fn to_undo(&self) -> Vec<usize> {
        let done = |(number, planned): (usize, &Planned)| {
            planned.step.compensate.as_ref()?;
            let result = self.facts.calls.get(&planned.step.name)?.result.as_ref()?;
            (result.status == Status::Ok).then_some((result.order, number))
        };
        let mut done: Vec<(u64, usize)> =
            self.plan.steps.iter().enumerate().filter_map(done).collect();
        done.sort_unstable();
        done.into_iter().rev().map(|(_, number)| number).collect()
    }

    /// Begins each step that is ready. Ends the run if all steps have ended.
    fn advance(&mut self, value: &dyn Fn(&Reference) -> Option<Value>) {
        loop {
            let is_ready = |number: &usize| {
                self.states[*number] == StepState::Waiting
                    && self.plan.steps[*number].after.iter().all(|it| self.has_ended(*it))
            };
            let Some(number) = (0..self.states.len()).find(is_ready) else { break };
            self.states[number] = self.begin(number, value);
        }
        if (0..self.states.len()).all(|it| self.has_ended(it)) {
            self.next.push(Next::End);
        }
    }

    /// Begins a step, or skips it. Returns its new state.
    fn begin(&mut self, number: usize, value: &dyn Fn(&Reference) -> Option<Value>) -> StepState {
        let planned = &self.plan.steps[number];
        if let Some((decision, is_then)) = planned.branch
            && self.holds(decision) != Some(is_then)
        {
            return StepState::Skipped;
        }
        let mut holds = self.facts.decided.get(&planned.step.name).copied();
        if let Some(condition) = planned.step.condition.as_ref().filter(|_| holds.is_none()) {
            let success = self.has_success(number);
            let verdict = condition.condition.evaluate(&|reference| match reference.name() {
                SUCCESS => Some(json!(success)),
                _ => value(reference),
            });
            holds = Some(verdict.holds);
            self.next.push(Next::Decide { step: number, verdict });
        }
        match (planned.step.kind, holds) {
            (StepKind::Decision | StepKind::Barrier, _) => StepState::Done,
            (_, Some(false)) => StepState::Skipped,
            _ => {
                self.next.push(Next::Call { step: number, is_undo: false });
                StepState::Running
            }
        }
    }

    /// Whether the condition of a decision holds. None if it was never evaluated, since the
    /// decision itself was skipped.
    fn holds(&self, decision: usize) -> Option<bool> {
        let now = self.next.iter().find_map(|it| match it {
            Next::Decide { step, verdict } if *step == decision => Some(verdict.holds),
            _ => None,
        });
        now.or_else(|| self.facts.decided.get(self.name(decision)).copied())
    }

    /// Whether no step before this one in the file has failed. Failed steps with `log_only` don't
    /// count.
    fn has_success(&self, number: usize) -> bool {
        self.states[..number].iter().zip(&self.plan.steps).all(|(state, planned)| {
            *state != StepState::Failed || planned.on_failure == OnFailure::LogOnly
        })
    }

    fn has_ended(&self, number: usize) -> bool {
        matches!(self.states[number], StepState::Done | StepState::Skipped | StepState::Failed)
    }

    fn name(&self, number: usize) -> &str {
        &self.plan.steps[number].step.name
    }
}
