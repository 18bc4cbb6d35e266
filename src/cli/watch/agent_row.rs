//! The states of agents in threads, as `watch` shows them. This module is pure.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use crate::audit::{self, Paint, Style};
use crate::cli::workflow::runs::Run;
use crate::id::ThreadId;
use crate::listener::{Apply, Entry};
use crate::listeners::agent::words::{CognitionIn, Stopped, is_last_word};
use crate::listeners::metadata::Metadatas;
use crate::listeners::mind::{Mind, Minds};
use crate::log::State;

/// The minimum widths, in cells, of an agent's name, of a thread's id and of a state.
const AGENT_CELLS: usize = 10;
const THREAD_CELLS: usize = 14;
const STATE_CELLS: usize = 8;
/// How many cells of a metadata value are shown at most.
const VALUE_CELLS: usize = 24;
/// The fewest cells that are shown after the state, however narrow the terminal is.
const LEFT_MIN: usize = 16;

/// What an agent does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Doing {
    /// A turn is running, or about to begin.
    Thinking,
    /// The agent waits for actions, timers, threads or answers.
    Waiting,
    /// The agent has no work, and hasn't finished any.
    Idle,
    /// The agent has answered, and has no further work.
    Done,
    /// The agent stopped without an answer, or its thread was cancelled or failed.
    Stopped,
    /// The agent has work, but its thread is paused or over its budget.
    Paused,
}

/// What is shown of an agent in a thread.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct AgentRow {
    pub(crate) agent: String,
    pub(crate) thread: ThreadId,
    pub(crate) turn: u64,
    pub(crate) doing: Doing,
    /// How many things the agent waits for.
    pub(crate) waits_for: usize,
    /// Why the agent stopped, in a word.
    pub(crate) reason: Option<String>,
    /// The fields of metadata that the agent has set.
    pub(crate) metadata: Map<String, Value>,
    /// The runs of workflows that the agent began and that aren't over.
    pub(crate) runs: Vec<RunAtWork>,
}

/// A run of a workflow that isn't over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RunAtWork {
    pub(crate) workflow: String,
    /// The run, as THREAD/SEQ.
    pub(crate) run: String,
    /// The steps at work.
    pub(crate) steps: Vec<String>,
}

/// A fold: the agents of one thread.
#[derive(Clone, Debug, Default)]
pub(crate) struct ThreadAgents {
    minds: Minds,
    metadatas: Metadatas,
    /// The listeners that have had a turn, or that stopped without one.
    agents: BTreeSet<String>,
    /// Maps each agent to how its last work ended: None if it answered, otherwise why it stopped.
    ends: BTreeMap<String, Option<String>>,
    state: State,
}

impl Doing {
    /// Returns the state as a word.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Doing::Thinking => "thinking",
            Doing::Waiting => "waiting",
            Doing::Idle => "idle",
            Doing::Done => "done",
            Doing::Stopped => "stopped",
            Doing::Paused => "paused",
        }
    }

    /// Whether the agent is at work, or will be once its thread is resumed.
    pub(crate) const fn is_at_work(self) -> bool {
        matches!(self, Doing::Thinking | Doing::Waiting | Doing::Paused)
    }

    const fn paint(self) -> Paint {
        match self {
            Doing::Thinking => Paint::Strong,
            Doing::Waiting | Doing::Paused => Paint::Who,
            Doing::Idle => Paint::Faint,
            Doing::Done => Paint::Well,
            Doing::Stopped => Paint::Wrong,
        }
    }
}

impl From<&Run> for RunAtWork {
    fn from(run: &Run) -> RunAtWork {
        let (workflow, id) = (run.workflow.clone(), run.asked.id().to_string());
        RunAtWork { workflow, run: id, steps: run.steps() }
    }
}

impl Apply for ThreadAgents {
    fn apply(&mut self, entry: &Entry) {
        self.minds.apply(entry);
        self.metadatas.apply(entry);
        if let Some(state) = entry.flags().state() {
            self.state = state;
        }
        if entry.is_refused() || entry.is_from_identity() {
            return;
        }
        if entry.is::<CognitionIn>() || entry.is::<Stopped>() {
            self.agents.insert(entry.from().to_owned());
        }
        if self.agents.contains(entry.from()) && is_last_word(entry) {
            let stopped = entry.decode_if::<Stopped>();
            self.ends.insert(entry.from().to_owned(), stopped.map(|it| it.reason));
        }
    }
}

impl ThreadAgents {
    /// Sets the state of the thread. A fork needs this, since the entries that it shares with its
    /// source may have set the source's state.
    pub(crate) fn set_state(&mut self, state: State) {
        self.state = state;
    }

    /// Returns a row for each agent of the thread. The function `runs` returns the open runs that
    /// an agent began.
    pub(crate) fn rows(
        &self,
        thread: &ThreadId,
        runs: impl Fn(&str) -> Vec<RunAtWork>,
    ) -> Vec<AgentRow> {
        let agents = self.minds.all().filter(|(agent, _)| self.agents.contains(*agent));
        let row = |(agent, mind): (&str, &Mind)| {
            let (doing, waits_for) = self.doing(agent, mind);
            let known = self.metadatas.of(agent);
            let fields = known.values().map(|(name, value)| (name.to_owned(), value.clone()));
            AgentRow {
                agent: agent.to_owned(),
                thread: thread.clone(),
                turn: mind.turns,
                doing,
                waits_for,
                reason: self.reason(agent).filter(|_| doing == Doing::Stopped),
                metadata: fields.collect(),
                runs: runs(agent),
            }
        };
        agents.map(row).collect()
    }

    /// Returns the state of an agent, and how many things the agent waits for.
    fn doing(&self, agent: &str, mind: &Mind) -> (Doing, usize) {
        let at_rest = || match self.ends.get(agent) {
            Some(None) => Doing::Done,
            Some(Some(_)) => Doing::Stopped,
            None => Doing::Idle,
        };
        let doing = match self.state {
            State::Cancelled | State::Failed => Doing::Stopped,
            State::Closed => at_rest(),
            State::Open | State::Paused | State::OverBudget => {
                if mind.work.is_none() {
                    at_rest()
                } else if self.state != State::Open {
                    Doing::Paused
                } else if mind.is_turning() || mind.under_way().next().is_none() {
                    Doing::Thinking
                } else {
                    Doing::Waiting
                }
            }
        };
        let waits_for = if doing == Doing::Waiting { mind.under_way().count() } else { 0 };
        (doing, waits_for)
    }

    fn reason(&self, agent: &str) -> Option<String> {
        match self.state {
            State::Cancelled | State::Failed => Some(self.state.to_string()),
            _ => self.ends.get(agent).cloned().flatten(),
        }
    }
}

/// Returns the line above the rows.
pub(crate) fn head(style: Style) -> String {
    let (agent, thread) = (pad("agent", AGENT_CELLS), pad("thread", THREAD_CELLS));
    let state = pad("state", STATE_CELLS);
    let head = format!("{agent}  {thread}  turn  {state}  metadata, runs of workflows");
    style.paint(Paint::Faint, &audit::cut(&head, style.width))
}

impl AgentRow {
    /// Returns the row as a line, cut at the style's width. The line begins with `before`.
    pub(crate) fn line(&self, before: &str, style: Style) -> String {
        let agent = pad(&audit::line(&self.agent), AGENT_CELLS);
        let thread = pad(&audit::line(self.thread.as_str()), THREAD_CELLS);
        let (turn, state) = (self.turn, pad(self.doing.as_str(), STATE_CELLS));
        let head = format!("{before}{agent}  {thread}  {turn:>4}  {state}  ");
        let rest = audit::line(&self.rest()).into_owned();
        let left = style.width.saturating_sub(audit::cells(&head)).max(LEFT_MIN);
        format!(
            "{}{}  {}  {turn:>4}  {}  {}",
            style.paint(Paint::Faint, before),
            style.paint(Paint::Who, &agent),
            style.paint(Paint::Strong, &thread),
            style.paint(self.doing.paint(), &state),
            audit::cut(&rest, left),
        )
        .trim_end()
        .to_owned()
    }

    /// Returns the last column: why the agent stopped or how many things it waits for, its
    /// metadata, and its runs.
    fn rest(&self) -> String {
        let mut parts: Vec<String> = self.reason.iter().cloned().collect();
        if self.waits_for > 0 {
            parts.push(format!("for {}", self.waits_for));
        }
        parts.extend(self.metadata.iter().map(|(name, value)| {
            let value = match value {
                Value::String(text) => text.clone(),
                value => value.to_string(),
            };
            format!("{name}={}", audit::cut(&value, VALUE_CELLS))
        }));
        parts.extend(self.runs.iter().map(|it| match &it.steps[..] {
            [] => format!("runs {}", it.workflow),
            steps => format!("runs {} at {}", it.workflow, steps.join("+")),
        }));
        parts.join("  ")
    }

    /// Returns the row as a JSON object. `time` is the time of the change.
    pub(crate) fn object(&self, time: &str) -> Value {
        let run =
            |it: &RunAtWork| json!({"workflow": it.workflow, "run": it.run, "steps": it.steps});
        json!({
            "time": time,
            "agent": self.agent,
            "thread": self.thread.as_str(),
            "turn": self.turn,
            "state": self.doing.as_str(),
            "waits_for": self.waits_for,
            "reason": self.reason,
            "metadata": self.metadata,
            "runs": self.runs.iter().map(run).collect::<Vec<_>>(),
        })
    }
}

/// Pads a text with spaces to a number of cells.
fn pad(text: &str, cells: usize) -> String {
    format!("{text}{}", " ".repeat(cells.saturating_sub(audit::cells(text))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_says_what_the_agent_waits_for_and_runs() {
        let run = |steps: &[&str]| RunAtWork {
            workflow: "report".to_owned(),
            run: "t.report/1".to_owned(),
            steps: steps.iter().map(|it| (*it).to_owned()).collect(),
        };
        let metadata = json!({"status": "CODING", "tags": ["a", "\u{1b}"]});
        let Value::Object(metadata) = metadata else { unreachable!("it is an object") };
        let row = AgentRow {
            agent: "coder".to_owned(),
            thread: ThreadId::new("t"),
            turn: 3,
            doing: Doing::Waiting,
            waits_for: 2,
            reason: None,
            metadata,
            runs: vec![run(&["sum", "half"]), run(&[])],
        };
        let line = row.line("", Style::PLAIN);
        let expected = "coder       t                  3  waiting   for 2  status=CODING  \
                        tags=[\"a\",\"\\u001b\"]  runs report at sum+half  runs report";
        assert_eq!(line, expected);
        let narrow = row.line("", Style { width: 60, ..Style::PLAIN });
        assert_eq!(audit::cells(&narrow), 60);
        let object = row.object("now");
        assert_eq!(object["runs"][0]["steps"], json!(["sum", "half"]));
        assert_eq!((&object["state"], &object["waits_for"]), (&json!("waiting"), &json!(2)));
    }
}
