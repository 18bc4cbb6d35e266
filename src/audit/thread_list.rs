//! Shows threads: as lines for people, and as objects for programs. Widths are in cells, the
//! columns of a terminal.

use serde_json::{Value, json};

use crate::audit::entry::{LEFT_MIN, add, count, said, seconds, time_of, to};
use crate::audit::text::{Paint, Style, cells, cut, line};
use crate::id::ThreadId;
use crate::log::{State, ThreadRecord, ThreadSummary};
use crate::wire::iso_time;

/// How many cells a session's id takes.
const ID_CELLS: usize = 13;

/// The facts about a thread, in a line that stands above the thread's entries.
#[must_use]
pub fn thread(record: &ThreadRecord, style: Style) -> String {
    let mut out = format!("thread {}", style.paint(Paint::Strong, &line(record.id.as_str())));
    add(&mut out, &count(record.last_seq, "entry", "entries"));
    if let Some(first) = &record.first {
        add(&mut out, &format!("opened {}", time_of(first)));
    }
    if let Some(parent) = &record.parent {
        add(&mut out, &format!("child of {}", line(parent.as_str())));
    }
    if let Some(fork) = &record.fork {
        add(&mut out, &format!("forked after {}", line(&fork.to_string())));
    }
    out
}

/// A thread in a list, in a line that also shows the thread's first entry.
#[must_use]
pub fn summary(it: &ThreadSummary, record: &ThreadRecord, style: Style) -> String {
    let id = line(it.id.as_str()).into_owned();
    let pad = " ".repeat(ID_CELLS.saturating_sub(cells(&id)));
    let last = it.last_us.map_or_else(String::new, seconds);
    let size = format!("{pad}  {:>7}  {last:<20}  ", it.entries);
    let mut rest = String::new();
    if record.state != State::Open {
        add(&mut rest, record.state.as_str());
    }
    if let Some(fork) = &it.fork {
        add(&mut rest, &format!("forked after {}", line(&fork.to_string())));
    } else if let Some(parent) = &it.parent {
        add(&mut rest, &format!("child of {}", line(parent.as_str())));
    }
    if let Some(first) = &record.first {
        let ends = format!("{} → {}", line(&first.from), to(first));
        add(&mut rest, &format!("{ends}  {}", said(first)));
    }
    let left = style.width.saturating_sub(cells(&id) + cells(&size));
    let rest = cut(rest.trim_start(), left.max(LEFT_MIN)).into_owned();
    format!("{}{}{rest}", style.paint(Paint::Strong, &id), style.paint(Paint::Faint, &size))
}

/// The line above a list of threads.
#[must_use]
pub fn summaries(style: Style) -> String {
    let head = format!("{:<ID_CELLS$}  {:>7}  {:<20}  {}", "thread", "entries", "last", "begins");
    style.paint(Paint::Faint, &head)
}

/// A thread in a list, as an object.
#[must_use]
pub fn summary_json(it: &ThreadSummary, record: &ThreadRecord) -> Value {
    json!({
        "thread": it.id.as_str(),
        "parent": it.parent.as_ref().map(ThreadId::as_str),
        "fork": it.fork.as_ref().map(ToString::to_string),
        "state": record.state.as_str(),
        "entries": it.entries,
        "first": it.first_us.map(iso_time),
        "last": it.last_us.map(iso_time),
    })
}
