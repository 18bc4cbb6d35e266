//! An overview of a thread: which messages are hidden from prompts, and the checklists.

use crate::audit::{Paint, Style, line};
use crate::id::ThreadId;
use crate::listener::{Apply as _, Clears, Entry};
use crate::listeners::todo::list::Todos;
use crate::log::{Error, Log, Pages, State};
use crate::name::CORE;

/// The overview of a thread.
#[derive(Default)]
pub(crate) struct Overview {
    pub(crate) clears: Clears,
    pub(crate) todos: Todos,
}

/// Reads the overview of a thread as of an entry.
pub(crate) async fn read(log: &dyn Log, thread: &ThreadId, upto: u64) -> Result<Overview, Error> {
    let (mut overview, mut pages) = (Overview::default(), Pages::of(log, thread).upto(upto));
    while let Some(page) = pages.next().await? {
        // Only payloads in the core's namespace matter here.
        for entry in page.iter().filter(|it| it.name.namespace() == CORE) {
            let entry = Entry::kept(entry);
            overview.clears.apply(&entry);
            overview.todos.apply(&entry);
        }
    }
    Ok(overview)
}

/// Formats the checklists, with a line for each step and an empty line before each checklist. The
/// text is empty if there are no checklists.
pub(crate) fn checklists(todos: &Todos, state: State, style: Style) -> String {
    let mut out = String::new();
    for (id, todo) in todos.all() {
        let what = format!("todo /{id}");
        let (open, total) = (todo.open(), todo.total());
        let end = if state.is_live() { "" } else { ", left when the thread ended" };
        out.push_str(&format!(
            "\n{}  {}  {}\n",
            style.paint(Paint::Strong, &what),
            line(todo.condition()),
            style.paint(Paint::Faint, &format!("{open} of {total} open{end}")),
        ));
        for step in todo.steps() {
            let (mark, paint) =
                if step.is_done() { ('x', Paint::Well) } else { (' ', Paint::Wrong) };
            let mark = style.paint(paint, &format!("[{mark}]"));
            out.push_str(&format!("  {mark} {}\n", line(&step.text)));
        }
    }
    out
}
