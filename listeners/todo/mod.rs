//! The listener `todo` keeps checklists, and reminds an agent when the message that a checklist
//! waits for has come. An open checklist is a message that waits in the log until the checklist is
//! closed or its thread ends.

pub mod words;
pub mod list;

use pumphouse::prelude::*;
use pumphouse::schema;

use list::Todos;
use words::{
    TodoClosed, TodoComplete, TodoNudge, TodoOpen, TodoRefused, TodoRegistered, TodoUntil,
};

/// The listener `todo`.
#[must_use]
pub fn todo() -> Listener {
    Listener::new("todo")
        .on(until)
        .on(complete)
        .on(look)
        .fold::<Todos>()
        .wakes(wakes)
        .bookkeeper()
        .grant::<Timers>()
        .grant::<EmitCore>()
        .describe("Keeps checklists, and says when what they wait for has come.")
}

type Registration = Result<(TodoRegistered, Later<TodoOpen>), TodoRefused>;

/// Opens a list. If a list with the same condition is open, this request replaces its steps.
async fn until(
    message: Message,
    todos: Fold<Todos>,
    capabilities: Capabilities,
    limits: Limits,
    until: TodoUntil,
) -> Registration {
    if until.from.is_some() && until.wait_for.is_none() {
        let message = "from says who is to send what wait-for names: say wait-for, too".to_owned();
        return Err(TodoRefused { message });
    }
    if let Some(name) = &until.wait_for
        && capabilities.named(name).is_empty()
    {
        return Err(unheard(name, &capabilities));
    }
    let asked = message.seq();
    let id = todos.id(&until.condition).unwrap_or(asked);
    let (max, there) = (limits.thread_todos_max, todos.count_before(asked));
    if id == asked && there >= max {
        let text = format!("thread_todos_max is {max}, and {there} todos are open here");
        let message = format!("{text}; close one with <todo-complete>, or add your steps to one");
        return Err(TodoRefused { message });
    }
    let todo = todos.written(id, asked, until);
    let (open, total) = (todo.open(), todo.total());
    Ok((TodoRegistered { id, open, total }, Later::woken(todo.waiting(id)).unawaited()))
}

/// The refusal of a list that waits for a payload that the organism doesn't know.
fn unheard(name: &str, capabilities: &Capabilities) -> TodoRefused {
    let schemas = capabilities.schemas();
    let near = schema::nearest(name, schemas.iter().map(|it| it.name.local()));
    let near = near.map_or_else(String::new, |it| format!("; did you mean {it}?"));
    TodoRefused { message: format!("nobody here sends a payload called {name}{near}") }
}

async fn complete(todos: Fold<Todos>, complete: TodoComplete) -> Result<TodoClosed, TodoRefused> {
    if let Some(was_raised) = todos.was_raised(complete.id) {
        return Ok(TodoClosed { id: complete.id, was_raised });
    }
    let open: Vec<String> = todos.all().map(|(id, _)| id.to_string()).collect();
    let open = match &open[..] {
        [] => "none is".to_owned(),
        [one] => format!("{one} is"),
        [first @ .., last] => format!("{} and {last} are", first.join(", ")),
    };
    Err(TodoRefused { message: format!("no todo {} is open here; {open}", complete.id) })
}

/// Handles a `todo-open` message when it is delivered. If the message that the list waits for has
/// come, the sender of the list gets one `todo-nudge`. The `todo-open` message then waits again,
/// unless the list was closed or written again.
async fn look(
    history: History,
    todos: Fold<Todos>,
    out: Outbox<TodoNudge>,
    open: TodoOpen,
) -> Result<Option<Later<TodoOpen>>, Fault> {
    let Some(todo) = todos.get(open.id).filter(|todo| todo.asked() == open.asked) else {
        return Ok(None);
    };
    let came = history.cause().await?.filter(|came| is_awaited(&open, came));
    let (Some(name), Some(came)) = (&open.wait_for, came) else {
        return Ok(Some(Later::woken(open).unawaited()));
    };
    if !todo.was_raised()
        && let Some(asked) = history.read(open.asked - 1, 1).await?.first()
    {
        out.reply_to(asked, TodoNudge::of(open.id, name, &open.condition, came.from())).await?;
    }
    let raised = TodoOpen { wait_for: None, from: None, ..open };
    Ok(Some(Later::woken(raised).unawaited()))
}

/// Whether the entry `came` causes the early delivery of a waiting `todo-open` message. Such an
/// entry is the message that the list waits for, or reports that the list is closed or written
/// again.
fn wakes(waiting: &Entry, came: &Entry) -> bool {
    if !waiting.is::<TodoOpen>() {
        return false;
    }
    let is_here = came.from() == waiting.from() && came.thread() == waiting.thread();
    if is_here && came.is::<TodoClosed>() {
        let closed = came.decode().map(|it: TodoClosed| it.id);
        return closed.is_ok() && closed.ok() == waiting.decode().ok().map(|it: TodoOpen| it.id);
    }
    if is_here && came.is::<TodoRegistered>() {
        let open = waiting.decode::<TodoOpen>();
        let written = came.decode::<TodoRegistered>();
        let by = came.reply_to().map_or(0, |it| it.seq);
        return matches!((open, written), (Ok(open), Ok(to)) if open.id == to.id && open.asked < by);
    }
    // `wakes` is called for every message, so the waiting message is decoded only if the name fits.
    let Ok(element) = waiting.element() else { return false };
    element.attribute("wait-for") == Some(came.name().local())
        && waiting.decode().is_ok_and(|it: TodoOpen| is_awaited(&it, came))
}

/// Whether a list waits for this message.
fn is_awaited(open: &TodoOpen, came: &Entry) -> bool {
    open.wait_for.as_deref() == Some(came.name().local())
        && open.from.as_deref().is_none_or(|from| from == came.from())
}
