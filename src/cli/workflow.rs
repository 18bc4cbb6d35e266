//! `workflow run`: begins a run of a workflow in a running pump, and waits for its result.

use std::fs;
use std::path::PathBuf;

use serde_json::{Map, Value, json};

use crate::cli::connect::{Caller, broken};
use crate::cli::screen::{Ending, Failure, Screen};
use crate::client::{Incoming, Message, Push};
use crate::listeners::workflow::Workflow;
use crate::listeners::workflow::words::{WorkflowFailed, WorkflowResult};
use crate::manifest;
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
}

/// Begins a run of a workflow in a running pump, waits for its end, and prints its outputs.
///
/// The pump runs the workflow as its manifest included it, also where the file has changed since.
/// The run has a session of its own, which `show`, `why` and `replay` read like any other.
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

/// A JSON object on the command line.
#[derive(Clone, Debug)]
pub(crate) struct Object(pub(crate) Map<String, Value>);

/// Reads a JSON object.
pub(crate) fn object(text: &str) -> Result<Object, String> {
    match serde_json::from_str(text) {
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
    pub(crate) async fn run(self, to: &mut Screen<'_>) -> Result<Ending, Failure> {
        let Verb::Run(run) = self.verb;
        run.run(to).await
    }
}

impl Run {
    async fn run(self, to: &mut Screen<'_>) -> Result<Ending, Failure> {
        let workflow = read(&self.file)?;
        let input = workflow.run(&self.input.0);
        let input = input.map_err(|fault| Failure::Untried(format!("--input: {fault}")))?;
        let mut client = self.caller.connect().await?;
        let push = Push::element(input).to(workflow.name());
        let accepted = client.tell(&push).await.map_err(|it| broken(&it))?;
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
        Err(Failure::Wrong(refused(&answer, workflow.name())))
    }
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

/// What any other answer means.
fn refused(answer: &Message, workflow: &str) -> String {
    match answer.decode::<Huh>() {
        Ok(Huh { code, message, advice, .. }) => format!("{workflow}: {code}: {message}; {advice}"),
        Err(_) => format!("{workflow} didn't end: {}", answer.payload.name().local()),
    }
}
