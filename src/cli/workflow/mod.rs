//! `workflow run` and `workflow retry`: begin a run of a workflow in a running pump, and wait for
//! its result.

pub(crate) mod runs;
pub(crate) mod list;
pub(crate) mod trigger;

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use crate::cli::base::connect::{Caller, broken};

use crate::cli::base::data;
use crate::cli::base::screen::{Ending, Failure, Screen};
use crate::client::{Incoming, Message, Push};
use crate::id::{EntryId, ThreadId};
use crate::listener::Entry;
use crate::listeners::words::operator::RetryRun;
use crate::listeners::workflow::Workflow;
use crate::listeners::workflow::words::{
    RetryRefused, WorkflowFailed, WorkflowResult, WorkflowStarted,
};
use crate::log::{Log, Pages};
use crate::manifest;
use crate::schema::json as schema_json;
use crate::wire::core::Huh;

/// Works with workflows.
#[derive(Debug, clap::Args)]
pub(crate) struct WorkflowVerb {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, clap::Subcommand)]
enum Verb {
    Run(Run),
    Retry(Retry),
}

/// Begins a run of a workflow in a running pump, waits for its end, and prints its outputs.
///
/// The pump runs the workflow as its manifest included it, even if the file has changed since. The
/// run has a session of its own, which `show`, `why` and `replay` read like any other session.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  pumphouse workflow run workflows/report.yml
  pumphouse workflow run workflows/report.yml --input '{\"city\": \"Paris\"}'
  pumphouse workflow run workflows/report.yml --json | jq .outputs

Exits with 1 where the run fails, or the pump doesn't have the workflow; 2 where the file is wrong
or no pump can be reached.")]
struct Run {
    /// The file of the workflow.
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// The input, a JSON object, which ${trigger.…} refers to.
    #[arg(long, value_name = "JSON", default_value = "{}", value_parser = object)]
    input: Object,
    #[command(flatten)]
    caller: Caller,
}

/// Begins a failed run anew, waits for the end of the new run, and prints its outputs.
///
/// The new run belongs to the session of the old run. It has the old run's input and definition,
/// even if the file has changed since. It takes over the results of the steps that ended well and
/// weren't undone, so these steps don't run again.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  pumphouse workflows --state failed                 which runs there are
  pumphouse workflow retry sess-k3v9x2ma.report/1

Exits with 1 where there is no such run, it hasn't failed, or it fails again; 2 where no pump can be
reached. The log must be on this machine.")]
struct Retry {
    /// The run, as THREAD/SEQ, or THREAD for the newest run in a thread.
    #[arg(value_name = "RUN")]
    run: String,
    #[command(flatten)]
    caller: Caller,
}

/// A JSON object on the command line.
#[derive(Clone, Debug)]
pub(crate) struct Object(pub(crate) Map<String, Value>);

/// Reads a JSON object.
pub(crate) fn object(text: &str) -> Result<Object, String> {
    match schema_json::read(text) {
        Ok(Value::Object(it)) => Ok(Object(it)),
        Ok(_) => Err("a JSON object is expected, as in {\"status\": \"CODING\"}".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

/// Reads the file of a workflow.
pub(crate) fn read(file: &PathBuf) -> Result<Workflow, Failure> {
    let untried = |error: String| Failure::Untried(error);
    let bytes = fs::read(file).map_err(|it| untried(format!("{}: {it}", file.display())))?;
    manifest::workflow(file, &bytes).map_err(|it| untried(it.to_string()))
}

impl WorkflowVerb {
    pub(crate) async fn run(self, data: &Path, to: &mut Screen<'_>) -> Result<Ending, Failure> {
        match self.verb {
            Verb::Run(run) => run.run(to).await,
            Verb::Retry(retry) => retry.run(data, to).await,
        }
    }
}

impl Run {
    async fn run(self, to: &mut Screen<'_>) -> Result<Ending, Failure> {
        let workflow = read(&self.file)?;
        let input = workflow.run(&self.input.0);
        let input = input.map_err(|fault| Failure::Untried(format!("--input: {fault}")))?;
        let push = Push::element(input).to(workflow.name());
        outcome(&self.caller, &push, workflow.name(), to).await
    }
}

impl Retry {
    async fn run(self, data: &Path, to: &mut Screen<'_>) -> Result<Ending, Failure> {
        let log = data::open(data)?;
        let (run, workflow) = self.find(&log).await?;
        let message = RetryRun { thread: run.thread.to_string(), run: run.seq };
        let push = Push::of(&message).map_err(|it| Failure::Untried(it.to_string()))?;
        let push = push.in_thread(&run.thread.tree()).to(&workflow);
        outcome(&self.caller, &push, &workflow, to).await
    }

    /// Finds the run, and the name of its workflow.
    async fn find(&self, log: &dyn Log) -> Result<(EntryId, String), Failure> {
        let named = self.run.parse::<EntryId>().ok();
        let thread =
            named.as_ref().map_or_else(|| ThreadId::new(&self.run), |it| it.thread.clone());
        if log.thread(&thread).await?.is_none() {
            return Err(data::unknown(log, &thread).await);
        }
        let (mut pages, mut found) = (Pages::of(log, &thread), None);
        while let Some(page) = pages.next().await? {
            let started =
                page.iter().filter_map(|it| Entry::kept(it).decode_if::<WorkflowStarted>());
            let is_it = |it: &WorkflowStarted| named.as_ref().is_none_or(|id| id.seq == it.run);
            found = started.rev().find(is_it).or(found);
        }
        let Some(WorkflowStarted { run, workflow, .. }) = found else {
            let text =
                format!("{} is no run of a workflow; `pumphouse workflows` lists them", self.run);
            return Err(Failure::Wrong(text));
        };
        Ok((EntryId { thread, seq: run }, workflow))
    }
}

/// Pushes the message that begins a run, waits for the end of the run, and tells how it ended.
async fn outcome(
    caller: &Caller,
    push: &Push,
    workflow: &str,
    to: &mut Screen<'_>,
) -> Result<Ending, Failure> {
    let mut client = caller.connect().await?;
    let accepted = client.tell(push).await.map_err(|it| broken(&it))?;
    let thread = accepted.thread;
    client.finish().await.map_err(|it| broken(&it))?;
    let answer = loop {
        match client.recv().await.map_err(|it| broken(&it))? {
            Some(Incoming::Message(it))
                if it.thread.as_ref().is_some_and(|it| it.as_str() == thread) =>
            {
                break it;
            }
            Some(_) => {}
            None => {
                let text = format!("the connection ended before the run {thread} did");
                let advice = format!("`pumphouse show {thread}` shows its entries");
                return Err(Failure::Wrong(format!("{text}; {advice}")));
            }
        }
    };
    if let Ok(result) = answer.decode::<WorkflowResult>() {
        let outputs = result.outputs.0;
        if to.json {
            let name = result.workflow;
            to.object(&json!({"workflow": name, "thread": thread, "outputs": outputs}))?;
        } else {
            to.line(&format!("{} ended in {thread}", result.workflow))?;
            to.line(&serde_json::to_string_pretty(&outputs).unwrap_or_default())?;
        }
        return Ok(Ending::Well);
    }
    if let Ok(failed) = answer.decode::<WorkflowFailed>() {
        told(&failed, &thread, to)?;
        return Ok(Ending::Wrong);
    }
    if let Ok(RetryRefused { message }) = answer.decode() {
        return Err(Failure::Wrong(message));
    }
    Err(Failure::Wrong(refused(&answer, workflow)))
}

/// Tells how a run failed.
fn told(failed: &WorkflowFailed, thread: &str, to: &mut Screen<'_>) -> Result<(), Failure> {
    let WorkflowFailed { workflow, step, reason, undone, not_undone } = failed;
    if to.json {
        return Ok(to.object(&json!({
            "workflow": workflow,
            "thread": thread,
            "step": step,
            "reason": reason,
            "undone": undone,
            "not_undone": not_undone,
        }))?);
    }
    to.line(&format!("{workflow} failed in {thread}: {reason}"))?;
    for (what, steps) in [("undone", undone), ("not undone", not_undone)] {
        if !steps.is_empty() {
            to.line(&format!("{what}: {}", steps.join(", ")))?;
        }
    }
    Ok(())
}

/// Formats an answer that is neither a result nor a failure of the run.
fn refused(answer: &Message, workflow: &str) -> String {
    match answer.decode::<Huh>() {
        Ok(Huh { code, message, advice, .. }) => format!("{workflow}: {code}: {message}; {advice}"),
        Err(_) => format!("{workflow} didn't end: {}", answer.payload.name().local()),
    }
}
