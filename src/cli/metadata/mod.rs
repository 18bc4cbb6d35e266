//! `metadata`: shows the metadata of a thread's agents, their changes, or metrics by the values of
//! a field.

mod history;
mod metrics;

use std::path::Path;

use serde_json::{Value, json};

use crate::audit::{self, Paint, Style};
use crate::cli::base::data;
use crate::cli::base::screen::{Ending, Failure, Screen};
use crate::cli::base::time::{second, seconds, took};
use crate::cli::spending::money::{UNKNOWN, money};
use crate::clock;
use crate::id::ThreadId;
use crate::listener::{Apply as _, Entry};
use crate::log::{Log, Pages};
use crate::wire::iso_time;
use history::{MetadataHistory, TriggeredRun, Update};
use metrics::{Metrics, ValueMetrics};

/// The text for a field that isn't set.
const NOT_SET: &str = "not set";
/// The maximum width of a value in a table, in cells.
const VALUE_CELLS: usize = 40;

/// Shows the metadata of a thread's agents: each field that an agent has set, its value, and when
/// it was set.
///
/// With `--history`, it shows each change, and the runs of workflows that triggers began because of
/// the change. With `--by-state FIELD`, it shows each value of the field: how often and how long
/// the field had the value, and the turns, tokens and cost in that time.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  pumphouse metadata sess-k3v9x2ma
  pumphouse metadata sess-k3v9x2ma --history
  pumphouse metadata sess-k3v9x2ma --by-state status
  pumphouse metadata sess-k3v9x2ma --agent coder --json | jq -r 'select(.field == \"status\").value'

A field that the agent hasn't set isn't in the log; it has its default. A turn counts for the value
that the field had when the turn began.
Exits with 1 where there is no such thread, or no agent has set the field.")]
pub(crate) struct MetadataVerb {
    /// The thread.
    #[arg(value_name = "THREAD")]
    thread: String,
    /// Shows all changes in their order, and the values that were refused.
    #[arg(long, conflicts_with = "by_state")]
    history: bool,
    /// Shows each value of this field: how long the field had it, and the usage in that time.
    #[arg(long, value_name = "FIELD")]
    by_state: Option<String>,
    /// Only this agent.
    #[arg(long, value_name = "NAME")]
    agent: Option<String>,
}

impl MetadataVerb {
    pub(crate) async fn run(self, data: &Path, to: &mut Screen<'_>) -> Result<Ending, Failure> {
        let log = data::open(data)?;
        let thread = ThreadId::new(&self.thread);
        if log.thread(&thread).await?.is_none() {
            return Err(data::unknown(&log, &thread).await);
        }
        let mut history = MetadataHistory::default();
        let field = self.by_state.as_deref();
        let mut metrics = field.map(|it| Metrics::new(thread.clone(), it));
        let mut pages = Pages::of(&log, &thread);
        while let Some(page) = pages.next().await? {
            for entry in page.iter().map(|it| Entry::kept(it)) {
                history.apply(&entry);
                if let Some(metrics) = &mut metrics {
                    metrics.apply(&entry);
                }
            }
        }
        if let (Some(field), Some(metrics)) = (field, metrics) {
            let mut all = metrics.all(clock::wall_us());
            all.retain(|it| self.wants(&it.agent));
            if all.is_empty() {
                return Err(self.unset(field, &history));
            }
            self.show_metrics(field, &all, to)?;
            return Ok(Ending::Well);
        }
        match self.history {
            true => self.show_history(&history, to)?,
            false => self.show_values(&history, to)?,
        }
        Ok(Ending::Well)
    }

    fn wants(&self, agent: &str) -> bool {
        self.agent.as_deref().is_none_or(|it| it == agent)
    }

    /// Returns the subject of a message about missing metadata: the agent of the option, or `no
    /// agent`.
    fn who(&self) -> String {
        self.agent.as_deref().map_or_else(|| "no agent".to_owned(), |it| audit::line(it).into())
    }

    /// Says that no metadata is set.
    fn tell_none(&self, to: &mut Screen<'_>) -> Result<(), Failure> {
        if to.json {
            return Ok(());
        }
        let has = if self.agent.is_some() { "has set no metadata" } else { "has set metadata" };
        let thread = audit::line(&self.thread);
        Ok(to.line(&format!("{} {has} in {thread}", self.who()))?)
    }

    /// Returns the failure for a field without values. Its text names the fields that have values.
    fn unset(&self, field: &str, history: &MetadataHistory) -> Failure {
        let known = history.values().filter(|it| self.wants(&it.agent));
        let mut known: Vec<&str> = known.map(|it| it.field.as_str()).collect();
        known.sort_unstable();
        known.dedup();
        let hint = match &known[..] {
            [] => "no other field either".to_owned(),
            [one] => format!("the only field with a value is {one}"),
            all => format!("the fields with values are {}", all.join(", ")),
        };
        let has = if self.agent.is_some() { "hasn't set" } else { "has set" };
        let who = self.who();
        Failure::Wrong(format!("{who} {has} the field {field} in {}; {hint}", self.thread))
    }

    fn show_values(&self, history: &MetadataHistory, to: &mut Screen<'_>) -> Result<(), Failure> {
        let all: Vec<&Update> = history.values().filter(|it| self.wants(&it.agent)).collect();
        if all.is_empty() {
            return self.tell_none(to);
        }
        let value = |it: &Update| cut(&shown(it.new.as_ref().ok()), VALUE_CELLS);
        let widest = |of: &dyn Fn(&Update) -> String| {
            all.iter().map(|it| audit::cells(&of(it))).max().unwrap_or(0)
        };
        let fields = widest(&|it| audit::line(&it.field).into_owned());
        let (values, mut agent) = (widest(&value), "");
        for update in &all {
            if to.json {
                to.object(&value_object(&self.thread, update))?;
                continue;
            }
            if update.agent != agent {
                agent = &update.agent;
                to.line(&to.style.paint(Paint::Who, &audit::line(agent)))?;
            }
            let place = format!("{}, /{}", maker(update), update.entry.seq);
            let place = format!("{}  {place}", second(update.at_us));
            to.line(&format!(
                "  {}  {}  {}",
                pad(&audit::line(&update.field), fields),
                to.style.paint(Paint::Strong, &pad(&value(update), values)),
                to.style.paint(Paint::Faint, &place),
            ))?;
        }
        Ok(())
    }

    fn show_history(&self, history: &MetadataHistory, to: &mut Screen<'_>) -> Result<(), Failure> {
        let mut is_empty = true;
        for update in history.updates.iter().filter(|it| self.wants(&it.agent)) {
            is_empty = false;
            match to.json {
                true => to.object(&update_object(&self.thread, update))?,
                false => to.line(&update_line(update, to.style))?,
            }
        }
        if is_empty { self.tell_none(to) } else { Ok(()) }
    }

    fn show_metrics(
        &self,
        field: &str,
        all: &[ValueMetrics],
        to: &mut Screen<'_>,
    ) -> Result<(), Failure> {
        if to.json {
            for it in all {
                to.object(&metrics_object(&self.thread, field, it))?;
            }
            return Ok(());
        }
        let value = |it: &ValueMetrics| cut(&shown(it.value.as_ref()), VALUE_CELLS);
        let widest = |texts: Vec<String>| texts.iter().map(|it| audit::cells(it)).max();
        let agents = widest(all.iter().map(|it| audit::line(&it.agent).into_owned()).collect());
        let agents = agents.unwrap_or(0).max("agent".len());
        let values = widest(all.iter().map(&value).collect()).unwrap_or(0);
        let values = values.max(audit::cells(field));
        let cells = |all: [String; 6]| all.map(|it| format!("{it:>11}")).concat();
        let head = ["entered", "held", "turns", "input", "output", "cost"].map(str::to_owned);
        let field = audit::line(field);
        let head = format!("{}  {}{}", pad("agent", agents), pad(&field, values), cells(head));
        to.line(&to.style.paint(Paint::Faint, &head))?;
        for it in all {
            let numbers = cells([
                it.entered.to_string(),
                took(it.held_us),
                it.used.turns.to_string(),
                it.used.input.to_string(),
                it.used.output.to_string(),
                it.used.cost().map_or(UNKNOWN.to_owned(), money),
            ]);
            let (agent, value) = (pad(&audit::line(&it.agent), agents), pad(&value(it), values));
            let paint = if it.is_current { Paint::Strong } else { Paint::Tag };
            let agent = to.style.paint(Paint::Who, &agent);
            to.line(&format!("{agent}  {}{numbers}", to.style.paint(paint, &value)))?;
        }
        Ok(())
    }
}

/// Names the author of an update: the agent's own turn, or another agent or a workflow.
fn maker(it: &Update) -> String {
    match (&it.by, it.turn) {
        (None, turn) => format!("turn {turn}"),
        (Some(by), 0) => format!("by {}", audit::line(by)),
        (Some(by), turn) => format!("by {} turn {turn}", audit::line(by)),
    }
}

/// Formats a change as a line, which is cut at the style's width.
fn update_line(it: &Update, style: Style) -> String {
    let time = second(it.at_us);
    let place = format!("/{}", it.entry.seq);
    let who = format!("{} {}", audit::line(&it.agent), maker(it));
    let field = audit::line(&it.field).into_owned();
    let mut change = match &it.new {
        Ok(new) if it.old.as_ref() == Some(new) => format!("{}, as before", shown(Some(new))),
        Ok(new) => format!("{} → {}", shown(it.old.as_ref()), shown(Some(new))),
        Err(why) => {
            // Most errors begin with the field's name, which the line has already.
            let rest = why.strip_prefix(&it.field).and_then(|it| it.strip_prefix(": "));
            format!("refused: {}", audit::line(rest.unwrap_or(why)))
        }
    };
    for run in &it.runs {
        change.push_str(&format!("; began {}", audit::line(&run_text(run))));
    }
    let used = audit::cells(&who) + audit::cells(&field) + time.len() + place.len() + 8;
    let paint = if it.new.is_ok() { Paint::Tag } else { Paint::Wrong };
    let change = cut(&change, style.width.saturating_sub(used).max(VALUE_CELLS));
    format!(
        "{}  {}  {}  {field}: {}",
        style.paint(Paint::Faint, &time),
        style.paint(Paint::Strong, &place),
        style.paint(Paint::Who, &who),
        style.paint(paint, &change),
    )
}

fn run_text(run: &TriggeredRun) -> String {
    match &run.thread {
        Some(thread) => format!("{} in {thread}", run.rule),
        None => format!("no run of {}: it was refused", run.rule),
    }
}

/// Formats a value in one line. A text has no quotes.
fn shown(value: Option<&Value>) -> String {
    match value {
        None => NOT_SET.to_owned(),
        Some(Value::String(text)) => audit::line(text).into_owned(),
        Some(value) => audit::ascii(&value.to_string()),
    }
}

fn cut(text: &str, cells: usize) -> String {
    audit::cut(text, cells).into_owned()
}

fn pad(text: &str, cells: usize) -> String {
    format!("{text}{}", " ".repeat(cells.saturating_sub(audit::cells(text))))
}

/// Returns a field with its value, as an object.
fn value_object(thread: &str, it: &Update) -> Value {
    json!({
        "thread": thread,
        "agent": it.agent,
        "field": it.field,
        "value": it.new.as_ref().ok(),
        "entry": it.entry.to_string(),
        "time": iso_time(it.at_us),
        "turn": it.turn,
        "by": it.by,
    })
}

/// Returns a change as an object.
fn update_object(thread: &str, it: &Update) -> Value {
    let run = |run: &TriggeredRun| json!({"rule": run.rule, "thread": run.thread});
    json!({
        "thread": thread,
        "entry": it.entry.to_string(),
        "time": iso_time(it.at_us),
        "agent": it.agent,
        "turn": it.turn,
        "by": it.by,
        "field": it.field,
        "old": it.old,
        "new": it.new.as_ref().ok(),
        "refused": it.new.as_ref().err(),
        "runs": it.runs.iter().map(run).collect::<Vec<_>>(),
    })
}

/// Returns the metrics of one value of a field, as an object.
fn metrics_object(thread: &str, field: &str, it: &ValueMetrics) -> Value {
    json!({
        "thread": thread,
        "agent": it.agent,
        "field": field,
        "value": it.value,
        "is_current": it.is_current,
        "entered": it.entered,
        "seconds": seconds(it.held_us),
        "turns": it.used.turns,
        "tokens_in": it.used.input,
        "tokens_out": it.used.output,
        "tokens": it.used.tokens(),
        "cost_micros": it.used.cost(),
    })
}
