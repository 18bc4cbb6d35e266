//! Runs of workflows, as the log shows them: how far a run is, how it ended, and what began it.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use serde_json::{Value, json};

use crate::id::{EntryId, ThreadId};
use crate::listener::Entry;
use crate::listeners::metadata::words::MetadataChanged;
use crate::listeners::trigger;
use crate::listeners::trigger::words::HeldLongEnough;
use crate::listeners::words::action::{Action, ActionResult, NAME as ACTION};
use crate::listeners::words::operator::RetryRun;
use crate::listeners::workflow::name_of;
use crate::listeners::workflow::words::{
    CallName, RetryRefused, WorkflowFailed, WorkflowResult, WorkflowStarted,
};
use crate::log::{Error, Log, Pages, State};
use crate::wire::core::{Huh, ThreadCancelled};

/// The state of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RunState {
    /// The run hasn't begun, its thread is paused or over its budget, or its workflow was missing
    /// when a result came.
    Waiting,
    /// The run is at work.
    Running,
    /// The run has answered with its outputs.
    Done,
    /// The run has failed.
    Failed,
    /// The run was cancelled, or its thread ended before the run did.
    Cancelled,
}

/// A run of a workflow.
#[derive(Clone, Debug)]
pub(crate) struct Run {
    /// The message that began the run.
    pub(crate) asked: Entry,
    /// The workflow.
    pub(crate) workflow: String,
    /// Whether the workflow has noted that the run began.
    has_begun: bool,
    /// Maps the number of a call's entry to the call, until the call has a result.
    calls: BTreeMap<u64, CallName>,
    /// The state of the run's thread.
    thread: State,
    /// Whether the manifest didn't have the workflow when the last result came. The run then waits.
    is_lost: bool,
    /// Whether the message was refused. There is no run then.
    is_refused: bool,
    /// How the run ended. None while it hasn't ended.
    end: Option<End>,
}

/// The end of a run.
#[derive(Clone, Debug)]
struct End {
    state: RunState,
    at_us: u64,
    /// The step that failed, if a step failed.
    step: Option<String>,
    reason: Option<String>,
}

/// What began a run.
#[derive(Clone, Debug)]
pub(crate) struct Cause {
    kind: CauseKind,
    /// The name of the identity, agent, workflow or listener that began the run, if it is known.
    name: Option<String>,
    /// The agent's turn, if an agent began the run in a turn.
    turn: Option<u64>,
    /// The entry that led to the run: the message because of which a trigger fired, an action, or
    /// else the message that began the run.
    pub(crate) entry: Entry,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum CauseKind {
    /// An identity outside pushed the message.
    Push,
    /// The trigger of this name fired.
    Trigger(String),
    /// An agent called the workflow in an action.
    Action,
    /// The step of this name called the workflow, in a run of another workflow.
    Step(String),
    /// A listener sent the message.
    Listener,
}

impl RunState {
    const ALL: [RunState; 5] = [
        RunState::Waiting,
        RunState::Running,
        RunState::Done,
        RunState::Failed,
        RunState::Cancelled,
    ];

    /// Returns the state as a word.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            RunState::Waiting => "waiting",
            RunState::Running => "running",
            RunState::Done => "done",
            RunState::Failed => "failed",
            RunState::Cancelled => "cancelled",
        }
    }
}

impl fmt::Display for RunState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for RunState {
    type Err = String;

    fn from_str(text: &str) -> Result<RunState, String> {
        let known = RunState::ALL.into_iter().find(|it| it.as_str() == text);
        let all = RunState::ALL.map(RunState::as_str).join(", ");
        known.ok_or_else(|| format!("a run is {all}"))
    }
}

/// Returns the workflow whose run a message begins or repeats. Returns None for any other message.
pub(crate) fn workflow_of(asked: &Entry) -> Option<&str> {
    let is_repeated = asked.is::<RetryRun>();
    name_of(asked.name()).or_else(|| asked.to().filter(|_| is_repeated))
}

impl Run {
    /// Returns the run that a message begins, or None if the message begins no run.
    pub(crate) fn of(asked: &Entry) -> Option<Run> {
        let workflow = workflow_of(asked)?.to_owned();
        if asked.receivers() == 0 || asked.is_refused() {
            return None;
        }
        let (calls, thread) = (BTreeMap::new(), State::Open);
        let (has_begun, is_lost, is_refused, end) = (false, false, false, None);
        let asked = asked.clone();
        Some(Run { asked, workflow, has_begun, calls, thread, is_lost, is_refused, end })
    }

    /// Reads the run that a message begins, up to its end. Returns None if the message begins no
    /// run.
    pub(crate) async fn read(log: &dyn Log, asked: &Entry) -> Result<Option<Run>, Error> {
        let Some(mut run) = Run::of(asked) else { return Ok(None) };
        let mut pages = Pages::of(log, asked.thread()).after(asked.seq());
        while let Some(page) = pages.next().await? {
            page.iter().for_each(|it| run.apply(&Entry::kept(it)));
            if run.end.is_some() {
                break;
            }
        }
        if let Some(record) = log.thread(asked.thread()).await? {
            run.thread = record.state;
        }
        Ok(Some(run).filter(|it| !it.is_refused))
    }

    /// Applies a later entry of the run's thread.
    pub(crate) fn apply(&mut self, entry: &Entry) {
        if self.end.is_some() || entry.is_refused() {
            return;
        }
        if let Some(of) = entry.reply_to() {
            self.apply_reply(of, entry);
        }
        if self.is_own(entry) {
            let started = entry.decode_if::<WorkflowStarted>();
            self.has_begun |= started.is_some_and(|it| it.run == self.asked.seq());
            if entry.is::<Action>() && entry.to() == Some(ACTION) {
                let call = entry.key().as_deref().and_then(CallName::parse);
                let call = call.filter(|it| it.run == self.asked.seq());
                self.calls.extend(call.map(|it| (entry.seq(), it)));
            }
        }
        if let Some(state) = entry.flags().state() {
            self.thread = state;
            if !state.is_live() {
                self.end_with_thread(state, entry);
            }
        }
    }

    fn apply_reply(&mut self, of: &EntryId, entry: &Entry) {
        if of == self.asked.id() {
            if self.is_own(entry) && entry.is::<WorkflowResult>() {
                self.end(RunState::Done, entry, None, None);
            } else if let Some(failed) = entry.decode_if::<WorkflowFailed>() {
                self.end(RunState::Failed, entry, failed.step, Some(failed.reason));
            } else if entry.is::<RetryRefused>() {
                self.is_refused = true;
            } else if let Some(Huh { code, message, .. }) = entry.decode_if() {
                self.end(RunState::Failed, entry, None, Some(format!("{code}: {message}")));
            }
        } else if of.thread == *self.asked.thread()
            && (entry.from() == ACTION || entry.is_from_core())
            && (entry.is::<ActionResult>() || entry.is::<Huh>())
            && self.calls.remove(&of.seq).is_some()
        {
            self.is_lost = entry.receivers() == 0;
        }
    }

    fn end_with_thread(&mut self, state: State, entry: &Entry) {
        let (state, reason) = match state {
            State::Cancelled => (RunState::Cancelled, cancelled(entry)),
            State::Failed => (RunState::Failed, Some("its thread failed".to_owned())),
            _ => (RunState::Cancelled, Some("its thread ended before the run did".to_owned())),
        };
        if self.end.is_none() {
            self.end(state, entry, None, reason);
        }
    }

    fn end(
        &mut self,
        state: RunState,
        entry: &Entry,
        step: Option<String>,
        reason: Option<String>,
    ) {
        let reason = reason.map(|it| told(&it, step.as_deref()));
        self.end = Some(End { state, at_us: entry.at_us(), step, reason });
        if state != RunState::Cancelled {
            self.calls.clear();
        }
    }

    /// Whether an entry is from the workflow.
    fn is_own(&self, entry: &Entry) -> bool {
        entry.from() == self.asked.to().unwrap_or(&self.workflow) && !entry.is_from_identity()
    }

    /// Returns the state of the run.
    pub(crate) fn state(&self) -> RunState {
        match (&self.end, self.thread) {
            (Some(end), _) => end.state,
            (None, State::Open) if self.has_begun && !self.is_lost => RunState::Running,
            (None, _) => RunState::Waiting,
        }
    }

    /// Returns when the run ended, in microseconds since the epoch. Returns None while it hasn't
    /// ended.
    pub(crate) fn ended_us(&self) -> Option<u64> {
        self.end.as_ref().map(|it| it.at_us)
    }

    /// Returns the step that failed, or None if no step failed.
    pub(crate) fn failed_step(&self) -> Option<&str> {
        self.end.as_ref()?.step.as_deref()
    }

    /// Says why the run waits, failed or was cancelled.
    pub(crate) fn reason(&self) -> Option<String> {
        match (&self.end, self.thread) {
            (Some(end), _) => end.reason.clone(),
            (None, State::Open) if self.is_lost => Some(format!(
                "the pump had no workflow {} when a result came; `pumphouse workflow retry {}` \
                 begins anew with the steps that didn't end well",
                self.workflow,
                self.asked.id()
            )),
            (None, State::Open) if self.has_begun => None,
            (None, State::Open) => Some("the workflow hasn't taken the message yet".to_owned()),
            (None, State::OverBudget) => Some("its thread is over its budget".to_owned()),
            (None, state) => Some(format!("its thread is {state}")),
        }
    }

    /// Returns the steps at work, in the order in which they were called. For a cancelled run,
    /// these are the steps that were at work when it was cancelled.
    pub(crate) fn steps(&self) -> Vec<String> {
        let name = |it: &CallName| match it.is_undo {
            true => format!("undo of {}", it.step),
            false => it.step.clone(),
        };
        self.calls.values().map(name).collect()
    }
}

/// Removes the name of the step from the reason of a failure. The name is shown before the reason
/// anyway.
fn told(reason: &str, step: Option<&str>) -> String {
    let rest = step.and_then(|it| reason.strip_prefix(it)?.strip_prefix(" failed: "));
    rest.unwrap_or(reason).to_owned()
}

/// Says who cancelled a thread, and why.
fn cancelled(entry: &Entry) -> Option<String> {
    let ThreadCancelled { by, reason, .. } = entry.decode_if()?;
    Some(match reason {
        Some(reason) => format!("by {by}: {reason}"),
        None => format!("by {by}"),
    })
}

impl Cause {
    /// Finds out what began a run. Returns None if the entry that led to the run can't be found.
    pub(crate) async fn of(log: &dyn Log, asked: &Entry) -> Result<Option<Cause>, Error> {
        if asked.is_from_identity() {
            return Ok(Some(Cause::named(CauseKind::Push, asked.clone())));
        }
        if asked.from() == ACTION {
            let key = asked.key().and_then(|it| it.parse::<EntryId>().ok());
            let Some(action) = entry(log, key.as_ref().or(asked.cause())).await? else {
                return Ok(None);
            };
            let call = action.key().as_deref().and_then(CallName::parse);
            let kind = call.map_or(CauseKind::Action, |it| CauseKind::Step(it.step));
            let turn = action.decode_if::<Action>().and_then(|it| it.turn);
            return Ok(Some(Cause { turn, ..Cause::named(kind, action) }));
        }
        if asked.from() != trigger::NAME {
            return Ok(Some(Cause::named(CauseKind::Listener, asked.clone())));
        }
        let input = asked.element().ok().map(|it| it.text().into_owned());
        let input = input.and_then(|it| serde_json::from_str::<Value>(&it).ok());
        let input = input.unwrap_or_default();
        let rule = input["rule"].as_str().unwrap_or_default().to_owned();
        let Some(change) = entry(log, asked.cause()).await? else { return Ok(None) };
        // A trigger with `for` begins a run only some time after the change. The cause is the
        // change itself.
        let change = match change.decode_if::<HeldLongEnough>() {
            Some(held) => entry(log, Some(&EntryId::new(change.thread(), held.since))).await?,
            None => Some(change),
        };
        let Some(change) = change else { return Ok(None) };
        let changed = change.decode_if::<MetadataChanged>();
        let name = input["agent"].as_str().map(str::to_owned);
        let turn = changed.map(|it| it.turn);
        Ok(Some(Cause { kind: CauseKind::Trigger(rule), name, turn, entry: change }))
    }

    fn named(kind: CauseKind, entry: Entry) -> Cause {
        Cause { kind, name: Some(entry.from().to_owned()), turn: None, entry }
    }

    /// Returns the agent whose action, message or metadata led to the run, with its thread. The
    /// sender may also be a listener that is no agent; this isn't checked here.
    pub(crate) fn sender(&self) -> Option<(&ThreadId, &str)> {
        let is_inside = !matches!(self.kind, CauseKind::Push | CauseKind::Step(_));
        is_inside.then(|| (self.entry.thread(), self.entry.from()))
    }

    /// Formats the cause for people.
    pub(crate) fn told(&self) -> String {
        let name = self.name.as_deref().unwrap_or("?");
        let turn = self.turn.map(|it| format!(", turn {it}")).unwrap_or_default();
        match &self.kind {
            CauseKind::Push => format!("push by {name}"),
            CauseKind::Trigger(rule) if self.name.is_none() => format!("trigger {rule}"),
            CauseKind::Trigger(_) => format!("trigger of {name}{turn}"),
            CauseKind::Action => format!("action of {name}{turn}"),
            CauseKind::Step(step) => format!("step {step} of {name}"),
            CauseKind::Listener => format!("message of {name}"),
        }
    }

    /// Returns the cause as an object, for programs.
    pub(crate) fn object(&self) -> Value {
        let (kind, step, rule) = match &self.kind {
            CauseKind::Push => ("push", None, None),
            CauseKind::Trigger(rule) => ("trigger", None, Some(rule)),
            CauseKind::Action => ("action", None, None),
            CauseKind::Step(step) => ("workflow", Some(step), None),
            CauseKind::Listener => ("listener", None, None),
        };
        json!({
            "kind": kind,
            "name": self.name,
            "rule": rule,
            "step": step,
            "turn": self.turn,
            "entry": self.entry.id().to_string(),
        })
    }
}

async fn entry(log: &dyn Log, id: Option<&EntryId>) -> Result<Option<Entry>, Error> {
    let Some(id) = id else { return Ok(None) };
    match log.entry(id).await {
        Ok(found) => Ok(found.map(|it| Entry::kept(&it))),
        Err(Error::UnknownThread(_)) => Ok(None),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::cli::base::kept::{Kept, kept};
    use crate::limits::XmlLimits;
    use crate::listeners::words::action::Status;
    use crate::listeners::workflow::start;
    use crate::log::{Draft, Flags};
    use crate::name::{CORE_NAME, Name};
    use crate::wire::{Json, Payload, Timestamp};
    use crate::xml::{self, Profile};

    fn asked() -> Entry {
        let name = Name::new("https://xml-pipeline.org/ns/workflow/report/v1", "report");
        let element = start(&name, &serde_json::Map::new()).unwrap();
        let id = EntryId::new(&ThreadId::new("t"), 1);
        let draft = Draft::new(id, 1_000_000, "console".into(), name, element.canonical());
        let flags = Flags::FROM_IDENTITY;
        Entry::fresh(&Draft { receivers: 1, flags, to: Some("report".into()), ..draft }, element)
    }

    fn started(seq: u64) -> Entry {
        let started = WorkflowStarted {
            run: 1,
            workflow: "report".to_owned(),
            digest: "d".to_owned(),
            at: Timestamp::UNIX_EPOCH,
            sets: None,
            repeats: None,
            taken: None,
            input: None,
            agent: None,
            definition: Json(json!({})),
        };
        kept(seq, "report", "report", &started, Kept::default())
    }

    fn call(seq: u64, key: &'static str) -> Entry {
        let text = "<action xmlns=\"https://xml-pipeline.org/ns/agent/v1\" id=\"a\" \
                    mode=\"async\" type=\"tool\"><name>n</name></action>";
        let with = Kept { key: Some(key), receivers: 1, ..Kept::default() };
        kept(seq, "report", ACTION, &decode::<Action>(text), with)
    }

    fn decode<P: Payload>(text: &str) -> P {
        let element = xml::read(text, Profile::Wire, &XmlLimits::INSIDE).unwrap();
        P::read(element.view()).unwrap()
    }

    fn result(seq: u64, of: u64) -> Entry {
        result_for(seq, of, 1)
    }

    /// Makes an action's result that `receivers` listeners got.
    fn result_for(seq: u64, of: u64, receivers: u32) -> Entry {
        let text = format!(
            "<action-result xmlns=\"https://xml-pipeline.org/ns/agent/v1\" attempts=\"1\" \
             id=\"a\" name=\"n\" of=\"{of}\" status=\"{}\"/>",
            Status::Ok.as_str()
        );
        let reply_to = Some(of);
        let with = Kept { reply_to, receivers, ..Kept::default() };
        kept(seq, ACTION, "report", &decode::<ActionResult>(&text), with)
    }

    fn failed(seq: u64) -> Entry {
        let failed = WorkflowFailed {
            workflow: "report".to_owned(),
            step: Some("sum".to_owned()),
            reason: "sum failed: disk full".to_owned(),
            undone: Vec::new(),
            not_undone: Vec::new(),
        };
        kept(seq, "report", "console", &failed, Kept { reply_to: Some(1), ..Kept::default() })
    }

    fn thread(seq: u64, flags: Flags) -> Entry {
        let why = ThreadCancelled { thread: "t".into(), by: "ada".into(), reason: None };
        kept(seq, CORE_NAME, CORE_NAME, &why, Kept { flags, ..Kept::default() })
    }

    #[track_caller]
    fn check(entries: &[Entry], state: &str, steps: &[&str], reason: Option<&str>) {
        let mut run = Run::of(&asked()).unwrap();
        entries.iter().for_each(|it| run.apply(it));
        assert_eq!((run.state().as_str(), run.reason().as_deref()), (state, reason));
        assert_eq!(run.steps(), steps);
    }

    #[test]
    fn a_run_is_at_its_steps_until_they_end() {
        let none = "the workflow hasn't taken the message yet";
        check(&[], "waiting", &[], Some(none));
        check(&[started(2)], "running", &[], None);
        let called = [started(2), call(3, "1/do/sum"), call(4, "1/do/half"), call(5, "7/do/x")];
        check(&called, "running", &["sum", "half"], None);
        check(&[&called[..], &[result(6, 3)]].concat(), "running", &["half"], None);
        check(&[started(2), call(3, "1/undo/sum")], "running", &["undo of sum"], None);
    }

    #[test]
    fn a_run_waits_after_a_result_that_nobody_got_until_another_one_comes() {
        let called = [started(2), call(3, "1/do/sum"), call(4, "1/do/half"), result_for(5, 3, 0)];
        let why = "the pump had no workflow report when a result came; `pumphouse workflow retry \
                   t/1` begins anew with the steps that didn't end well";
        check(&called, "waiting", &["half"], Some(why));
        check(&[&called[..], &[result(6, 4)]].concat(), "running", &[], None);
    }

    #[test]
    fn a_run_ends_by_its_answer_or_with_its_thread() {
        let called = [started(2), call(3, "1/do/sum")];
        let then = |last: Entry| [&called[..], &[last]].concat();
        check(&then(failed(4)), "failed", &[], Some("disk full"));
        check(&then(thread(4, Flags::CANCELS)), "cancelled", &["sum"], Some("by ada"));
        let ended = "its thread ended before the run did";
        check(&then(thread(4, Flags::CLOSES)), "cancelled", &["sum"], Some(ended));
        check(&then(thread(4, Flags::PAUSES)), "waiting", &["sum"], Some("its thread is paused"));
        let resumed = [&then(thread(4, Flags::PAUSES))[..], &[thread(5, Flags::RESUMES)]].concat();
        check(&resumed, "running", &["sum"], None);
        let late = [&then(failed(4))[..], &[thread(5, Flags::CANCELS)]].concat();
        check(&late, "failed", &[], Some("disk full"));
    }

    #[test]
    fn a_state_is_read_as_it_is_written() {
        for state in RunState::ALL {
            assert_eq!(state.to_string().parse(), Ok(state));
        }
        assert!("over".parse::<RunState>().unwrap_err().contains("waiting, running"));
    }
}
