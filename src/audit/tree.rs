//! Draws a tree of threads. Each thread stands below its parent, and children stand in the order in
//! which they were opened.

use std::collections::HashMap;

use serde_json::{Value, json};

use crate::audit::entry::{count, said, time_of, to};
use crate::audit::text::{Paint, Style, cells, cut, line};
use crate::id::ThreadId;
use crate::log::{Entry, State, ThreadRecord};
use crate::wire::iso_time;

/// The fewest cells that are shown after the state, even if the terminal is narrower.
const LEFT_MIN: usize = 16;

/// A thread and its place in the drawing.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Placed {
    /// The thread.
    pub thread: ThreadRecord,
    /// For each level below the root, down to the thread: whether the thread on this level is the
    /// last child of its parent. Empty for the root.
    pub lasts: Vec<bool>,
}

/// The unfinished work of a thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Remaining {
    /// How many messages aren't consumed yet by all their receivers. Open checklists aren't
    /// counted.
    pub under_way: usize,
    /// How many steps of the thread's checklists aren't done.
    pub steps_open: u64,
    /// How many steps the thread's open checklists have in all.
    pub steps: u64,
}

/// The characters that branches are drawn with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
// Exhaustive: there is no third way of drawing.
pub enum Branches {
    /// Lines and corners of Unicode.
    Boxes,
    /// ASCII characters, which every terminal has.
    Ascii,
}

/// The threads of a tree in the order in which they are drawn: each thread, then each of its
/// children with all threads below that child.
///
/// The first of `threads` must be the root, as in the answer of
/// [`Log::tree`](crate::log::Log::tree).
#[must_use]
pub fn placed(threads: Vec<ThreadRecord>) -> Vec<Placed> {
    let mut below: HashMap<ThreadId, Vec<ThreadRecord>> = HashMap::new();
    let mut waiting: Vec<Placed> = Vec::new();
    for (at, thread) in threads.into_iter().enumerate() {
        match thread.parent.clone() {
            Some(parent) if at > 0 => below.entry(parent).or_default().push(thread),
            _ => waiting.push(Placed { thread, lasts: Vec::new() }),
        }
    }
    let mut drawn = Vec::new();
    while let Some(it) = waiting.pop() {
        let children = below.remove(&it.thread.id).unwrap_or_default();
        for (from_last, thread) in children.into_iter().rev().enumerate() {
            let mut lasts = it.lasts.clone();
            lasts.push(from_last == 0);
            waiting.push(Placed { thread, lasts });
        }
        drawn.push(it);
    }
    drawn
}

/// A thread of the drawing in one line, which is cut at the style's width. The text has no line
/// end.
#[must_use]
pub fn branch(
    it: &Placed,
    first: Option<&Entry>,
    left: Remaining,
    branches: Branches,
    style: Style,
) -> String {
    let stem = stem(&it.lasts, branches);
    let id = line(it.thread.id.as_str());
    let state = it.thread.state;
    let mut rest = format!("  {}", entries(&it.thread));
    if let Some(first) = first {
        rest.push_str(&format!("  {}", time_of(first)));
    }
    if left.under_way > 0 {
        rest.push_str(&format!("  {} under way", left.under_way));
    }
    if left.steps > 0 {
        rest.push_str(&format!("  todo {}/{}", left.steps_open, left.steps));
    }
    if let Some(fork) = &it.thread.fork {
        rest.push_str(&format!("  forked after {}", line(&fork.to_string())));
    }
    if let Some(first) = first {
        rest.push_str(&format!("  {} → {}  {}", line(&first.from), to(first), said(first)));
    }
    let head = cells(&stem) + cells(&id) + 2 + state.as_str().len();
    let rest = cut(&rest, style.width.saturating_sub(head).max(LEFT_MIN)).into_owned();
    format!(
        "{}{}  {}{rest}",
        style.paint(Paint::Faint, &stem),
        style.paint(Paint::Strong, &id),
        style.paint(paint(state), state.as_str()),
    )
}

/// A thread of the drawing as an object for programs.
#[must_use]
pub fn branch_json(it: &Placed, first: Option<&Entry>, left: Remaining) -> Value {
    json!({
        "thread": it.thread.id.as_str(),
        "parent": it.thread.parent.as_ref().map(ThreadId::as_str),
        "fork": it.thread.fork.as_ref().map(ToString::to_string),
        "depth": it.lasts.len(),
        "state": it.thread.state.as_str(),
        "entries": own_entries(&it.thread),
        "under_way": left.under_way,
        "steps_open": left.steps_open,
        "steps": left.steps,
        "first": first.map(|it| iso_time(it.at_us)),
        "from": first.map(|it| &*it.from),
        "to": first.and_then(|it| it.to.as_deref()),
        "namespace": first.map(|it| it.name.namespace()),
        "name": first.map(|it| it.name.local()),
    })
}

/// The colour of a state.
#[must_use]
pub fn paint(state: State) -> Paint {
    match state {
        State::Open => Paint::Faint,
        State::Closed => Paint::Well,
        State::Paused => Paint::Who,
        State::Cancelled | State::OverBudget | State::Failed => Paint::Wrong,
    }
}

fn entries(thread: &ThreadRecord) -> String {
    count(own_entries(thread), "entry", "entries")
}

/// How many entries the thread has, without those that a fork shares with its source.
fn own_entries(thread: &ThreadRecord) -> u64 {
    thread.last_seq - thread.fork.as_ref().map_or(0, |it| it.seq)
}

fn stem(lasts: &[bool], branches: Branches) -> String {
    let (through, corner, tee) = match branches {
        Branches::Boxes => ("│  ", "└─ ", "├─ "),
        Branches::Ascii => ("|  ", "`- ", "|- "),
    };
    let Some((own, above)) = lasts.split_last() else { return String::new() };
    let mut stem: String = above.iter().map(|last| if *last { "   " } else { through }).collect();
    stem.push_str(if *own { corner } else { tee });
    stem
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::id::EntryId;
    use crate::log::{Batch, Draft, Flags, Log as _, MemoryLog, NewThread};
    use crate::name::Name;

    async fn log() -> MemoryLog {
        let log = MemoryLog::new();
        let below = |id: &str, parent: Option<&str>| NewThread {
            id: ThreadId::new(id),
            parent: parent.map(ThreadId::new),
            fork: None,
        };
        let draft = |id: &str, flags| {
            let id = EntryId::new(&ThreadId::new(id), 1);
            let name = Name::of("urn:x", "a");
            let body = Bytes::from_static(b"<a xmlns=\"urn:x\">go\x1b[2J</a>");
            Draft { flags, ..Draft::new(id, 1_795_300_536_123_456, "plan".into(), name, body) }
        };
        let threads = vec![
            below("a", None),
            below("a.x", Some("a")),
            below("b", None),
            below("a.y", Some("a")),
            below("a.x.p", Some("a.x")),
            below("a.x.q", Some("a.x")),
            below("a.y.r", Some("a.y")),
        ];
        let entries = vec![
            draft("a", Flags::NONE),
            draft("a.x", Flags::CLOSES),
            draft("a.x.q", Flags::OVER_BUDGET),
        ];
        log.append(Batch { threads, entries, marks: Vec::new() }).await.unwrap();
        log
    }

    async fn drawn(root: &str, branches: Branches) -> Vec<String> {
        let threads = log().await.tree(&ThreadId::new(root)).await.unwrap();
        let style = Style { width: 60, ..Style::PLAIN };
        let left = Remaining::default();
        let all = placed(threads).into_iter();
        all.map(|it| branch(&it, it.thread.first.as_deref(), left, branches, style)).collect()
    }

    #[tokio::test]
    async fn each_thread_hangs_below_its_parent() {
        assert_eq!(
            drawn("a", Branches::Boxes).await,
            [
                "a  open  1 entry  2026-11-21T22:35:36Z  plan → nobody  <a>g…",
                "├─ a.x  closed  1 entry",
                "│  ├─ a.x.p  open  0 entries",
                "│  └─ a.x.q  over-budget  1 entry  2026-11-21T22:35:36Z  pl…",
                "└─ a.y  open  0 entries",
                "   └─ a.y.r  open  0 entries",
            ]
        );
        let ascii = drawn("a.y", Branches::Ascii).await;
        assert_eq!(ascii, ["a.y  open  0 entries", "`- a.y.r  open  0 entries"]);
        assert_eq!(drawn("b", Branches::Boxes).await, ["b  open  0 entries"]);
    }

    #[tokio::test]
    async fn an_object_has_its_depth() {
        let threads = log().await.tree(&ThreadId::new("a")).await.unwrap();
        let left = Remaining { under_way: 2, steps_open: 1, steps: 3 };
        let all: Vec<Value> =
            placed(threads).iter().map(|it| branch_json(it, None, left)).collect();
        let depths: Vec<&Value> = all.iter().map(|it| &it["depth"]).collect();
        assert_eq!(depths, [0, 1, 2, 2, 1, 2]);
        assert_eq!((&all[1]["state"], &all[1]["parent"]), (&json!("closed"), &json!("a")));
        assert_eq!((&all[1]["under_way"], &all[1]["steps_open"]), (&json!(2), &json!(1)));
        assert_eq!(all[1]["steps"], 3);
    }

    #[test]
    fn a_deep_tree_costs_no_stack() {
        let id = |depth: u64| ThreadId::new(&depth.to_string());
        let thread = |depth: u64| ThreadRecord::new(id(depth), depth.checked_sub(1).map(id), None);
        let all = placed((0..2_000).map(thread).collect());
        assert_eq!((all.len(), all[1_999].lasts.len()), (2_000, 1_999));
    }
}
