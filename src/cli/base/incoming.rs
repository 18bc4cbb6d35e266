//! Formats what a pump sends to a client: as lines for people, or as a JSON object for programs.

use serde_json::{Value, json};

use crate::audit::{self, Paint, Style};
use crate::client::{Incoming, Message, Shown};
use crate::listeners::action::words::ActionRefused;
use crate::listeners::describe::Untold;
use crate::listeners::feed::words::ContextFeedRefused;
use crate::listeners::thread::fork::ForkRefused;
use crate::listeners::timer::TimerRefused;
use crate::listeners::todo::words::TodoRefused;
use crate::listeners::trigger::words::TriggerRefused;
use crate::wire::core::{Huh, SystemThreadError, ThreadResult, ThreadStatus};

/// Formats an incoming item as lines for people, with its whole payload. The text ends with a
/// newline.
pub(crate) fn lines(incoming: &Incoming, style: Style) -> String {
    match incoming {
        Incoming::Accepted { accepted, .. } => {
            let entry = audit::line(&accepted.thread).into_owned() + "/";
            let entry = style.paint(Paint::Strong, &format!("{entry}{}", accepted.seq));
            format!("{} as {entry}\n", style.paint(Paint::Well, "accepted"))
        }
        Incoming::Refused { huh, .. } => refusal(huh, style),
        Incoming::UnknownThread { error, .. } => {
            let id = audit::line(&error.unknown_id).into_owned();
            let refused = style.paint(Paint::Wrong, "refused");
            format!("{refused}: thread {id}\n{}", audit::quoted(&error.message))
        }
        Incoming::Message(message) => {
            let to = message.to.as_deref().unwrap_or("nobody");
            let ends = format!("{} → {}", audit::line(&message.from), audit::line(to));
            let mut out = style.paint(Paint::Who, &ends);
            if let Some(entry) = &message.entry {
                let entry = entry.to_string();
                out = format!("{}  {out}", style.paint(Paint::Strong, &audit::line(&entry)));
            }
            if message.failed {
                out = format!("{out}  {}", style.paint(Paint::Wrong, "failed"));
            }
            let payload = audit::pretty(&message.payload.canonical(), style);
            format!("{out}\n{payload}")
        }
        Incoming::Authenticated(it) => {
            format!("authenticated as {}\n", audit::line(&it.identity))
        }
        Incoming::Following { following: it, .. } => {
            format!("follows {} after {}\n", audit::line(&it.thread), it.after)
        }
        Incoming::Unfollowed { unfollowed: it, .. } => {
            let thread = it.thread.as_deref().unwrap_or("any thread");
            format!("follows {} no more\n", audit::line(thread))
        }
    }
}

fn refusal(huh: &Huh, style: Style) -> String {
    let mut what = String::new();
    if let (Some(line), Some(column)) = (huh.line, huh.column) {
        what = format!("line {line}, column {column}: ");
    }
    what.push_str(&audit::line(&huh.message));
    if let Some(path) = &huh.path {
        what = format!("{what} (at {})", audit::line(path));
    }
    let refused = format!("refused {}", audit::line(&huh.code));
    let refused = style.paint(Paint::Wrong, &refused);
    let advice = audit::quoted(&huh.advice);
    format!("{refused}: {what}\n{}", style.paint(Paint::Faint, advice.trim_end()) + "\n")
}

/// Formats a refusal of what a verb asked for, as lines for people: the refusal's text, or a
/// fault's code, text and advice. Any other item is formatted by `lines`.
pub(crate) fn refused_lines(incoming: &Incoming, style: Style) -> String {
    let Incoming::Message(message) = incoming else { return lines(incoming, style) };
    if let Ok(huh) = message.decode::<Huh>() {
        return refusal(&huh, style);
    }
    let texts = [
        message.decode::<TriggerRefused>().map(|it| it.message),
        message.decode::<ForkRefused>().map(|it| it.message),
        message.decode::<ContextFeedRefused>().map(|it| it.message),
    ];
    match texts.into_iter().find_map(Result::ok) {
        Some(text) => {
            let refused = style.paint(Paint::Wrong, "refused");
            format!("{refused}: {}\n", audit::line(&text))
        }
        None => lines(incoming, style),
    }
}

/// Formats an incoming item as a JSON object. In the object, pushes are counted from 1.
pub(crate) fn object(incoming: &Incoming) -> Value {
    match incoming {
        Incoming::Accepted { push, accepted } => json!({
            "event": "accepted",
            "push": push + 1,
            "entry": format!("{}/{}", accepted.thread, accepted.seq),
            "thread": accepted.thread,
            "seq": accepted.seq,
            "id": accepted.id,
        }),
        Incoming::Refused { push, huh } => json!({
            "event": "refused",
            "push": push.map(|it| it + 1),
            "id": huh.id,
            "code": huh.code,
            "line": huh.line,
            "column": huh.column,
            "path": huh.path,
            "retry": huh.retry,
            "message": huh.message,
            "advice": huh.advice,
        }),
        Incoming::UnknownThread { push, error } => json!({
            "event": "refused",
            "push": push + 1,
            "id": error.id,
            "code": error.code,
            "unknown_id": error.unknown_id,
            "message": error.message,
        }),
        Incoming::Message(it) => message(it),
        Incoming::Following { push, following: it } => json!({
            "event": "following",
            "push": push + 1,
            "thread": it.thread,
            "after": it.after,
            "last": it.last,
        }),
        Incoming::Unfollowed { push, unfollowed: it } => {
            json!({ "event": "unfollowed", "push": push + 1, "thread": it.thread })
        }
        Incoming::Authenticated(it) => {
            json!({ "event": "authenticated", "identity": it.identity })
        }
    }
}

fn message(it: &Message) -> Value {
    json!({
        "event": "message",
        "from": it.from,
        "to": it.to,
        "thread": it.thread.as_ref().map(crate::id::ThreadId::as_str),
        "entry": it.entry.as_ref().map(ToString::to_string),
        "cause": it.cause.as_ref().map(ToString::to_string),
        "time": it.time,
        "failed": it.failed,
        "followed": it.shown != Shown::Sent,
        "live": it.shown == Shown::Live,
        "namespace": it.payload.namespace(),
        "name": it.payload.local(),
        "payload": String::from_utf8_lossy(&it.payload.canonical()),
    })
}

/// Whether an incoming item reports a refusal or a failure.
pub(crate) fn is_wrong(incoming: &Incoming) -> bool {
    match incoming {
        Incoming::Refused { .. } | Incoming::UnknownThread { .. } => true,
        Incoming::Message(it) => it.failed || is_refusal(it) || has_failed(it),
        _ => false,
    }
}

/// Whether a message has the payload of a refusal by the pump or by the house staff.
fn is_refusal(it: &Message) -> bool {
    let said = it.is::<Huh>() || it.is::<SystemThreadError>() || it.decode::<Untold>().is_ok();
    let by_keeper = it.is::<ForkRefused>() || it.is::<TimerRefused>() || it.is::<TodoRefused>();
    said || by_keeper || it.is::<ActionRefused>() || it.is::<ContextFeedRefused>()
}

/// Whether a message is the result of a thread that failed.
fn has_failed(it: &Message) -> bool {
    it.is::<ThreadResult>()
        && it.decode::<ThreadResult>().is_ok_and(|it| it.status == ThreadStatus::Failed)
}

/// Returns the number of the push that an incoming item acknowledges or refuses, counted from 0.
pub(crate) fn push(incoming: &Incoming) -> Option<u64> {
    match incoming {
        Incoming::Accepted { push, .. }
        | Incoming::Following { push, .. }
        | Incoming::Unfollowed { push, .. }
        | Incoming::UnknownThread { push, .. } => Some(*push),
        Incoming::Refused { push, .. } => *push,
        _ => None,
    }
}
