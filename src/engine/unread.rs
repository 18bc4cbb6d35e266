//! What is told of a log that can't be read: what whoever asked can use, and nothing of the
//! machine that it is on. The operator's traces have the rest.

use crate::log;
use crate::wire::{Code, Fault};

/// The fault for whoever wanted to read.
pub(crate) fn unread(error: &log::Error) -> Fault {
    use log::Error::{Closed, Damaged, Newer, NotALog, UnknownThread};
    tracing::error!(%error, "the log can't be read");
    match error {
        Damaged { why, .. } => Fault::new(Code::Unreadable, format!("the log is damaged: {why}")),
        Newer { .. } | NotALog { .. } | UnknownThread(_) => {
            Fault::new(Code::Unreadable, "the log isn't what it was any more")
        }
        Closed => Fault::new(Code::Stopping, "the pump is stopping"),
        _ => Fault::new(Code::LogFailed, "the log can't be read"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
