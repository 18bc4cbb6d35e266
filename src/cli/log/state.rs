//! `state`: shows the folds, the waiting messages and the budget of a thread and all below it, now
//! or as of an entry.

use std::path::Path;

use serde_json::{Value, json};

use crate::audit::{self, Paint, Style};
use crate::cli::base::data;
use crate::cli::base::screen::{Ending, Failure, Screen};
use crate::cli::spending;
use crate::engine::{Builder, FoldState, ThreadState, Waiting};
use crate::id::{EntryId, ThreadId};
use crate::log::Log as _;
use crate::wire::iso_time;

/// Shows the state of a thread and all below it, now or as of an entry: every fold of every
/// listener with its digest, the waiting messages, and what is spent.
///
/// The state is computed from the log, by the listeners of this program and of the manifest in the
/// current folder. All threads are shown as of the same position of the log.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  pumphouse state sess-k3v9x2ma
  pumphouse state sess-k3v9x2ma/7                          as it was once /7 was there
  pumphouse state sess-k3v9x2ma --json | jq -r '.folds[]?.digest'

With --json there is a line for each thread, and one for each budget.
Exits with 1 where there is no such thread or entry.")]
pub(crate) struct State {
    /// The thread; or an entry of it, as THREAD/SEQ, to show the state as of this entry.
    #[arg(value_name = "THREAD")]
    what: String,
}

impl State {
    pub(crate) async fn run(
        self,
        builder: Builder,
        data: &Path,
        to: &mut Screen<'_>,
    ) -> Result<Ending, Failure> {
        let plan = builder.build().map_err(|it| Failure::Untried(it.to_string()))?;
        let log = data::open(data)?;
        let entry = self.what.parse::<EntryId>().ok();
        let thread =
            entry.as_ref().map_or_else(|| ThreadId::new(&self.what), |it| it.thread.clone());
        if log.thread(&thread).await?.is_none() {
            return Err(data::unknown(&log, &thread).await);
        }
        if let Some(entry) = &entry {
            data::entry(&log, entry).await?;
        }
        let state = plan.state(&log, &thread, entry.map(|it| it.seq)).await?;
        let Some(state) = state else { return Ok(Ending::Well) };
        for (at, it) in state.threads.iter().enumerate() {
            match to.json {
                true => to.object(&object(it))?,
                false if at == 0 => to.text(&told(it, to.style))?,
                false => to.text(&format!("\n{}", told(it, to.style)))?,
            }
        }
        if !to.json {
            to.line("\nbudget of the whole tree")?;
        }
        for it in &state.budget {
            match to.json {
                true => to.object(&spending::object(it))?,
                false => to.line(&format!("  {}", spending::told(it)))?,
            }
        }
        Ok(Ending::Well)
    }
}

/// Formats a thread's state for people.
fn told(it: &ThreadState, style: Style) -> String {
    let id = audit::line(it.thread.as_str()).into_owned();
    let (seq, at) = (it.seq, iso_time(it.at_us));
    let state = style.paint(audit::paint(it.state), it.state.as_str());
    let mut out = format!("{} at /{seq}  {state}  {at}\n", style.paint(Paint::Strong, &id));
    for fold in &it.folds {
        let FoldState { listener, fold: name, digest, .. } = fold;
        let digest = style.paint(Paint::Faint, &audit::hex(&digest[..4]));
        let head = format!("{}  {}", style.paint(Paint::Who, listener), audit::line(name));
        out.push_str(&format!("  {head}  {digest}\n"));
        let shown = match &fold.shown {
            Ok(text) => text.clone(),
            Err(why) => format!("can't be shown: {why}"),
        };
        out.extend(shown.lines().map(|it| format!("    {}\n", audit::line(it))));
    }
    out.extend(it.waiting.iter().map(|it| format!("  {}\n", waits(it))));
    out
}

/// From this time on, a message is parked or waits for another entry.
const PARKED: u64 = u64::MAX - 2;

/// Formats a waiting message as a line.
fn waits(it: &Waiting) -> String {
    let until = match (it.until_us, it.attempts) {
        _ if it.is_stopped => "stopped: a fold of its listener panicked".to_owned(),
        (Some(until_us), _) if until_us >= PARKED => "until something else comes".to_owned(),
        (Some(until_us), _) => format!("until {}", iso_time(until_us)),
        (None, 0) => "not begun, or nobody noted it".to_owned(),
        (None, attempts) => {
            let sees = it.as_of.map(|it| format!(", sees up to /{it}")).unwrap_or_default();
            format!("under way, attempt {attempts}{sees}")
        }
    };
    let (name, listener) = (audit::line(it.name.local()), &it.listener);
    format!("waits  {}  {name} → {listener}  {until}", audit::line(&it.entry.to_string()))
}

/// Returns a thread's state as an object.
fn object(it: &ThreadState) -> Value {
    let fold = |it: &FoldState| {
        json!({
            "listener": &*it.listener,
            "fold": it.fold,
            "digest": audit::hex(&it.digest),
            "shown": it.shown.as_ref().ok(),
            "wrong": it.shown.as_ref().err(),
        })
    };
    let waiting = |it: &Waiting| {
        json!({
            "entry": it.entry.to_string(),
            "name": it.name.to_string(),
            "listener": &*it.listener,
            "until": it.until_us.filter(|it| *it < PARKED).map(iso_time),
            "until_woken": it.until_us.is_some_and(|it| it >= PARKED),
            "attempts": it.attempts,
            "as_of": it.as_of,
            "stopped": it.is_stopped,
        })
    };
    json!({
        "thread": it.thread.as_str(),
        "parent": it.parent.as_ref().map(ThreadId::as_str),
        "fork": it.fork.as_ref().map(ToString::to_string),
        "seq": it.seq,
        "time": iso_time(it.at_us),
        "state": it.state.as_str(),
        "folds": it.folds.iter().map(fold).collect::<Vec<_>>(),
        "waiting": it.waiting.iter().map(waiting).collect::<Vec<_>>(),
    })
}
