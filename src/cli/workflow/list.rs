//! `workflows`: lists the runs of workflows, the newest first.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::{Value, json};

use crate::audit::{self, Paint, Style};
use crate::cli::base::data;
use crate::cli::base::screen::{Ending, Failure, Screen};
use crate::cli::base::time::{second, seconds, took};
use crate::cli::workflow::runs::{Cause, Run, RunState, workflow_of};
use crate::clock;
use crate::id::ThreadId;
use crate::listener::Entry;
use crate::log::Log;
use crate::wire::iso_time;

/// How many entries are read at a time.
const PAGE: u64 = 1_024;
/// How many runs are shown by default.
const LINES: usize = 20;
/// The minimum widths, in cells, of a run's id and of a workflow's name.
const ID_CELLS: usize = 22;
const WORKFLOW_CELLS: usize = 12;
/// The minimum width, in cells, of the last column, however narrow the terminal is.
const LEFT_MIN: usize = 24;

/// Lists the runs of workflows, the newest first: the state of each run, when it began, how long it
/// took, and what began it.
///
/// A run's id is the id of the message that began it. A line ends with the steps at work, or with
/// the reason why the run waits, failed or was cancelled.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  pumphouse workflows
  pumphouse workflows sess-k3v9x2ma                  the runs of a session and all threads below it
  pumphouse workflows --state failed -n 5
  pumphouse workflows --workflow report --state running --state waiting
  pumphouse workflows --json | jq -r 'select(.by.kind == \"trigger\").run'

`pumphouse show THREAD` shows a run whole, and `pumphouse cancel THREAD` ends it.
Exits with 1 where there is no such thread.")]
pub(crate) struct Workflows {
    /// Only runs in this thread and all threads below it.
    #[arg(value_name = "THREAD")]
    thread: Option<String>,
    /// How many of the newest wanted runs to show.
    #[arg(short = 'n', long, value_name = "N", value_parser = number, default_value_t = LINES)]
    lines: usize,
    /// Only runs of this workflow. May be repeated.
    #[arg(long, value_name = "NAME")]
    workflow: Vec<String>,
    /// Only runs in this state: waiting, running, done, failed, cancelled. May be repeated.
    #[arg(long, value_name = "STATE")]
    state: Vec<RunState>,
}

fn number(text: &str) -> Result<usize, String> {
    text.parse().map_err(|_| "a whole number of runs, such as 100".to_owned())
}

impl Workflows {
    pub(crate) async fn run(self, data: &Path, to: &mut Screen<'_>) -> Result<Ending, Failure> {
        let log = data::open(data)?;
        let threads = match self.thread.as_deref().map(ThreadId::new) {
            Some(thread) => Some(below(&log, &thread).await?),
            None => None,
        };
        let (mut shown, mut has_more) = (0, false);
        let mut from_last = FromLast::new(&log).await?;
        while let Some(page) = from_last.next(&log).await? {
            for asked in page.iter().filter(|it| self.wants(it, threads.as_ref())) {
                let Some(run) = Run::read(&log, asked).await? else { continue };
                if !self.state.is_empty() && !self.state.contains(&run.state()) {
                    continue;
                }
                if shown == self.lines {
                    has_more = true;
                    break;
                }
                let cause = Cause::of(&log, asked).await?;
                if to.json {
                    to.object(&object(&run, cause.as_ref(), clock::wall_us()))?;
                } else {
                    if shown == 0 {
                        to.line(&to.style.paint(Paint::Faint, &head()))?;
                    }
                    to.line(&line(&run, cause.as_ref(), clock::wall_us(), to.style))?;
                }
                shown += 1;
            }
            if has_more {
                break;
            }
        }
        if !to.json {
            self.tell_rest(shown, has_more, to)?;
        }
        Ok(Ending::Well)
    }

    /// Says that there are older runs, or that there are no runs at all.
    fn tell_rest(&self, shown: usize, has_more: bool, to: &mut Screen<'_>) -> Result<(), Failure> {
        let has_filter =
            self.thread.is_some() || !self.workflow.is_empty() || !self.state.is_empty();
        if has_more {
            let more = (shown * 5).max(LINES);
            to.line(&format!("there are older ones; `-n {more}` shows more"))?;
        } else if shown == 0 {
            to.line(match has_filter {
                true => "no run is wanted by these filters",
                false => "the log holds no runs yet; `pumphouse workflow run FILE` begins one",
            })?;
        }
        Ok(())
    }

    /// Whether a message begins a run of a wanted workflow in a wanted thread.
    fn wants(&self, asked: &Entry, threads: Option<&BTreeSet<ThreadId>>) -> bool {
        let Some(workflow) = workflow_of(asked) else { return false };
        let is_named = |it: &String| it == workflow;
        let is_wanted = self.workflow.is_empty() || self.workflow.iter().any(is_named);
        is_wanted && threads.is_none_or(|it| it.contains(asked.thread()))
    }
}

/// Returns a thread and all threads below it. Fails if the thread doesn't exist.
async fn below(log: &dyn Log, thread: &ThreadId) -> Result<BTreeSet<ThreadId>, Failure> {
    let all: BTreeSet<ThreadId> = log.tree(thread).await?.into_iter().map(|it| it.id).collect();
    if all.is_empty() {
        return Err(data::unknown(log, thread).await);
    }
    Ok(all)
}

/// Reads a log backwards, page by page.
struct FromLast {
    /// The position of the last entry that isn't read yet.
    upto: u64,
}

impl FromLast {
    async fn new(log: &dyn Log) -> Result<FromLast, Failure> {
        Ok(FromLast { upto: audit::last_position(log).await? })
    }

    /// Returns the next page, with the newest entry first. Returns None once the log's first entry
    /// was read.
    async fn next(&mut self, log: &dyn Log) -> Result<Option<Vec<Entry>>, Failure> {
        if self.upto == 0 {
            return Ok(None);
        }
        let after = self.upto.saturating_sub(PAGE);
        let size = usize::try_from(self.upto - after).unwrap_or(usize::MAX);
        let page = log.tail(after, size).await?;
        self.upto = after;
        Ok(Some(page.iter().rev().map(|it| Entry::kept(it)).collect()))
    }
}

/// Returns the line above the runs.
fn head() -> String {
    let (run, workflow) = (pad("run", ID_CELLS), pad("workflow", WORKFLOW_CELLS));
    format!("{run}  {workflow}  {:<9}  {:<20}  {:>9}  {}", "state", "began", "took", "by")
}

/// Formats a run as a line, which is cut at the style's width.
fn line(run: &Run, cause: Option<&Cause>, now_us: u64, style: Style) -> String {
    let id = pad(&audit::line(&run.asked.id().to_string()), ID_CELLS);
    let workflow = pad(&audit::line(&run.workflow), WORKFLOW_CELLS);
    let state = format!("{:<9}", run.state().as_str());
    let time = format!("{}  {:>9}", second(run.asked.at_us()), took(length_us(run, now_us)));
    let mut rest = cause.map_or_else(|| "unknown".to_owned(), Cause::told);
    if let Some(detail) = detail(run) {
        rest.push_str(&format!("; {detail}"));
    }
    let used = audit::cells(&id) + audit::cells(&workflow) + state.len() + time.len() + 8;
    let rest = audit::line(&rest).into_owned();
    let rest = audit::cut(&rest, style.width.saturating_sub(used).max(LEFT_MIN));
    format!(
        "{}  {}  {}  {}  {rest}",
        style.paint(Paint::Strong, &id),
        style.paint(Paint::Who, &workflow),
        style.paint(paint(run.state()), &state),
        style.paint(Paint::Faint, &time),
    )
}

/// Returns the steps at work, or why the run waits, failed or was cancelled.
fn detail(run: &Run) -> Option<String> {
    let steps = run.steps().join(", ");
    match (run.state(), run.reason()) {
        (RunState::Running, _) if !steps.is_empty() => Some(format!("at {steps}")),
        (_, Some(reason)) => Some(match run.failed_step() {
            Some(step) => format!("{step} failed: {reason}"),
            None if steps.is_empty() => reason,
            None => format!("at {steps}: {reason}"),
        }),
        (_, None) => None,
    }
}

/// Returns how long a run took, or has taken up to now.
fn length_us(run: &Run, now_us: u64) -> u64 {
    run.ended_us().unwrap_or(now_us).saturating_sub(run.asked.at_us())
}

fn paint(state: RunState) -> Paint {
    match state {
        RunState::Waiting => Paint::Faint,
        RunState::Running => Paint::Who,
        RunState::Done => Paint::Well,
        RunState::Failed | RunState::Cancelled => Paint::Wrong,
    }
}

/// Pads a text with spaces to a number of cells.
fn pad(text: &str, cells: usize) -> String {
    format!("{text}{}", " ".repeat(cells.saturating_sub(audit::cells(text))))
}

/// Returns a run as an object.
fn object(run: &Run, cause: Option<&Cause>, now_us: u64) -> Value {
    json!({
        "run": run.asked.id().to_string(),
        "thread": run.asked.thread().as_str(),
        "workflow": run.workflow,
        "state": run.state().as_str(),
        "began": iso_time(run.asked.at_us()),
        "ended": run.ended_us().map(iso_time),
        "seconds": seconds(length_us(run, now_us)),
        "steps": run.steps(),
        "failed_step": run.failed_step(),
        "reason": run.reason(),
        "by": cause.map(Cause::object),
    })
}
