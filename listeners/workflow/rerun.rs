//! Retries a failed run: begins a new run that takes over the results of the failed one.

use std::sync::Arc;

use pumphouse::listener::TreeHistory;
use pumphouse::prelude::*;
use pumphouse::wire::Json;
use pumphouse::wire::core::ThreadCancelled;
use serde_json::json;

use super::super::action::Actions;
use super::super::action::variables::KnownValue;
use super::super::words::action::Status;
use super::super::words::operator::RetryRun;
use super::runs::{OpenRun, Runs, TakenResult};
use super::values::Values;
use super::words::{WorkflowFailed, WorkflowResult, WorkflowStarted};

/// The maximum number of entries that are read from the log at once.
const PAGE: usize = 256;
/// The maximum number of entries of a thread that are read.
const ENTRIES_MAX: usize = 100_000;

/// A run that is about to begin, and the values that its `workflow-started` records.
pub(super) struct Started {
    pub(super) open: OpenRun,
    pub(super) digest: String,
    pub(super) definition: Json,
    pub(super) repeats: Option<String>,
    pub(super) taken: Option<Json>,
}

/// A run that ended without a result, or that can't continue.
pub(super) struct PastRun {
    id: String,
    started: WorkflowStarted,
    open: OpenRun,
    taken: Vec<TakenResult>,
}

impl PastRun {
    /// Reads a run of a workflow in the tree of a message. The inner error says why the run can't
    /// be repeated.
    ///
    /// # Errors
    /// Fails if the log can't be read.
    pub(super) async fn read(
        workflow: &str,
        asked: &RetryRun,
        tree: &TreeHistory,
        capabilities: &Capabilities,
    ) -> Result<Result<PastRun, String>, Fault> {
        let thread = ThreadId::new(&asked.thread);
        let id = format!("{thread}/{}", asked.run);
        let (mut runs, mut actions) = (Runs::default(), Actions::default());
        let (mut started, mut ended, mut is_over) = (None, None, false);
        // Whether the newest result of the run's calls came while the manifest didn't have the
        // workflow. The run continues if a later result is delivered.
        let mut is_lost = false;
        let (mut last, mut count) = (0, 0);
        while count < ENTRIES_MAX {
            let page = tree.read(&thread, last, PAGE).await?;
            let Some(newest) = page.last() else { break };
            (last, count) = (newest.seq(), count + page.len());
            for entry in &page {
                is_over |= entry.is::<ThreadCancelled>();
                let answers = entry.reply_to().is_some_and(|it| it.seq == asked.run);
                let is_end = entry.is::<WorkflowResult>() || entry.is::<WorkflowFailed>();
                if answers && is_end && entry.from() == workflow {
                    ended = Some(entry.is::<WorkflowResult>());
                }
                if runs.is_result(entry, asked.run) {
                    is_lost = entry.receivers() == 0;
                }
                if ended.is_none() {
                    runs.apply(entry);
                    actions.apply(entry);
                }
                let is_it = |it: &WorkflowStarted| it.run == asked.run && it.workflow == workflow;
                started = started.or_else(|| entry.decode_if::<WorkflowStarted>().filter(is_it));
            }
        }
        let Some((started, open)) = started.zip(runs.get(asked.run).cloned()) else {
            return Ok(Err(format!("{id} is no run of {workflow} in this session")));
        };
        if ended == Some(true) {
            return Ok(Err(format!("{id} has come to its end; nothing of it has failed")));
        }
        if ended.is_none() && !is_over && !is_lost {
            return Ok(Err(format!("{id} is at work; cancel it first, or wait for its end")));
        }
        let taken = results(&open, &actions, capabilities);
        Ok(Ok(PastRun { id, started, open, taken }))
    }

    /// Makes the run that repeats this one.
    pub(super) fn started(self, message: Entry, at: String) -> Started {
        let PastRun { id, started, open, taken } = self;
        let OpenRun { plan, input, agent, .. } = open;
        let json = json!(taken);
        let open = OpenRun::new(message, Arc::clone(&plan), input, agent, at).taking(taken);
        Started {
            open,
            digest: started.digest,
            definition: started.definition,
            repeats: Some(id),
            taken: Some(Json(json)),
        }
    }
}

/// The results of the steps that succeeded and weren't undone, in the order in which they came.
fn results(open: &OpenRun, actions: &Actions, capabilities: &Capabilities) -> Vec<TakenResult> {
    let values = Values { open, actions, capabilities };
    let facts = values.facts();
    let is_undone = |step: &str| {
        let undone = facts.undone.get(step).and_then(|it| it.result.as_ref());
        undone.is_some_and(|it| it.status == Status::Ok)
    };
    let mut ended: Vec<_> = facts
        .calls
        .iter()
        .filter_map(|(step, call)| Some((step, call.result.as_ref()?)))
        .filter(|(step, result)| result.status == Status::Ok && !is_undone(step))
        .collect();
    ended.sort_by_key(|(_, result)| result.order);
    let taken = ended.into_iter().filter_map(|(step, _)| {
        let KnownValue { value, fields, body, .. } = values.result(step)?;
        Some(TakenResult { step: step.clone(), value, fields, body })
    });
    taken.collect()
}
