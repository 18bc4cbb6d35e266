//! The faults that a reader gets if the log can't be read. These faults contain no details of the
//! machine, such as paths. The paths are in the traces.

use std::sync::Arc;

use crate::id::ThreadId;
use crate::listener::CONSOLE;
use crate::log;
use crate::log::Log;
use crate::wire::{Code, Fault};

/// Traces an error of the log, and returns the fault for the reader.
pub(crate) fn unread(error: &log::Error) -> Fault {
    use log::Error::{Closed, Damaged, NotALog, OtherFormat, UnknownThread};
    tracing::error!(%error, "the log can't be read");
    match error {
        Damaged { why, .. } => Fault::new(Code::Unreadable, format!("the log is damaged: {why}")),
        OtherFormat { .. } | NotALog { .. } | UnknownThread(_) => {
            Fault::new(Code::Unreadable, "the log isn't what it was any more")
        }
        Closed => Fault::new(Code::Stopping, "the pump is stopping"),
        _ => Fault::new(Code::LogFailed, "the log can't be read"),
    }
}

/// Returns the fault for a reader that named a thread which the log has but can't read.
///
/// Only the owner and operators get a fault with `Code::Unreadable`. Other identities are told that
/// the thread is unknown. If the owner can't be read either, `console` counts as the owner. A fault
/// with another code is the same for every identity.
pub(crate) fn unread_of(
    error: &log::Error,
    (thread, owner): (&ThreadId, Option<&str>),
    who: &str,
    operator: bool,
) -> Fault {
    let fault = unread(error);
    let may_know = operator || who == owner.unwrap_or(CONSOLE);
    let tells = fault.code == Code::Unreadable;
    if tells && !may_know { Fault::unknown_thread(thread.as_str()) } else { fault }
}

/// Returns the owner of a tree, if the log can still tell it.
pub(crate) async fn owner(log: &dyn Log, tree: &ThreadId) -> Option<Arc<str>> {
    let session = log.thread(tree).await.ok()??;
    let opening = log.opening(&session).await.ok()??;
    Some(opening.from.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_may_not_know_of_a_thread_learns_nothing_from_its_damage() {
        let thread = ThreadId::new("sess-a.b");
        let damaged = log::Error::Damaged { path: "/a.db".into(), why: "it was cut".into() };
        let own = "P0027: the log is damaged: it was cut";
        let hidden = Fault::unknown_thread("sess-a.b").to_string();
        let hidden = &*hidden;
        for (owner, who, operator, expected) in [
            (Some("ada"), "ada", false, own),
            (Some("ada"), "bob", false, hidden),
            (Some("ada"), "console", false, hidden),
            (Some("ada"), "bob", true, own),
            (None, "ada", false, hidden),
            (None, "console", false, own),
            (None, "bob", true, own),
        ] {
            let fault = unread_of(&damaged, (&thread, owner), who, operator).to_string();
            assert_eq!(fault, expected, "{who}, of a thread of {owner:?}");
        }
        let failed = log::Error::Io("no".into());
        let fault = unread_of(&failed, (&thread, Some("ada")), "bob", false);
        assert_eq!(fault.to_string(), "P0019: the log can't be read");
    }

    #[test]
    fn a_fault_tells_no_path_and_nothing_that_the_system_said() {
        let path = || "/srv/pump/pumphouse.db".into();
        let said = "/srv/pump/pumphouse.db: Input/output error (os error 5)";
        for (error, expected) in [
            (
                log::Error::Damaged { path: path(), why: "sess-a/1 doesn't fit its digest".into() },
                "P0027: the log is damaged: sess-a/1 doesn't fit its digest",
            ),
            (log::Error::NotALog { path: path() }, "P0027: the log isn't what it was any more"),
            (log::Error::Io(said.into()), "P0019: the log can't be read"),
            (log::Error::Poisoned(said.into()), "P0019: the log can't be read"),
            (log::Error::Locked { path: path(), process: None }, "P0019: the log can't be read"),
            (log::Error::Closed, "P0020: the pump is stopping"),
        ] {
            assert_eq!(unread(&error).to_string(), expected);
        }
    }
}
