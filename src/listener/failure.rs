//! What counts as a failure. There is one answer for the wire, for `--json` and for `--failed`.

use memchr::memmem;

use crate::listener::Entry;
use crate::log::{self, Flags};
use crate::name::{AGENT, CORE, Name};

/// How the first tag of an `agent-stopped` says that it was interrupted.
const INTERRUPTED: &[u8] = b" reason=\"interrupted\"";

impl Entry {
    /// Whether it is a fault, an `Err` of a listener, work that failed, or an agent that stopped
    /// though nothing interrupted it.
    #[must_use]
    pub fn is_failure(&self) -> bool {
        is_failure(self.name(), self.flags(), self.body())
    }
}

impl log::Entry {
    /// Whether it is a fault, an `Err` of a listener, work that failed, or an agent that stopped
    /// though nothing interrupted it.
    #[must_use]
    pub fn is_failure(&self) -> bool {
        is_failure(&self.name, self.flags, &self.body)
    }
}

fn is_failure(name: &Name, flags: Flags, body: &[u8]) -> bool {
    match (name.namespace(), name.local()) {
        (CORE, "huh" | "system-thread-error" | "door-refusals") => true,
        // It hands up what the thread below has as an entry of its own.
        (CORE, "thread-result") => false,
        (AGENT, "agent-stopped") if !flags.contains(Flags::REFUSED) => !is_interrupted(body),
        _ => flags.contains(Flags::ERROR) || flags.contains(Flags::FAILS),
    }
}

fn is_interrupted(body: &[u8]) -> bool {
    let tag = memchr::memchr(b'>', body).map_or(body, |end| &body[..end]);
    memmem::find(tag, INTERRUPTED).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::Payload;
    use crate::wire::core::{DoorRefusals, Huh, SystemThreadError, ThreadResult};

    fn check(name: &Name, flags: Flags, body: &[u8], expected: bool) {
        assert_eq!(is_failure(name, flags, body), expected, "{name} {flags}");
    }

    #[test]
    fn faults_errors_failed_work_and_door_refusals_are_failures() {
        let other = Name::of("urn:x", "huh");
        for name in [Huh::NAME, SystemThreadError::NAME, DoorRefusals::NAME] {
            check(&name, Flags::NONE, b"", true);
        }
        check(&other, Flags::NONE, b"", false);
        check(&other, Flags::REFUSED, b"", false);
        check(&other, Flags::CANCELS, b"", false);
        check(&other, Flags::ERROR, b"", true);
        check(&other, Flags::FAILS.with(Flags::TO_IDENTITY), b"", true);
        check(&ThreadResult::NAME, Flags::FAILS, b"", false);
    }

    #[test]
    fn an_agent_that_stopped_failed_unless_it_was_interrupted() {
        let stopped = Name::of(AGENT, "agent-stopped");
        for (reason, expected) in [("interrupted", false), ("idle", true), ("model", true)] {
            let text = "reason=\"interrupted\"";
            let body = format!("<agent-stopped reason=\"{reason}\">{text}</agent-stopped>");
            check(&stopped, Flags::ERROR, body.as_bytes(), expected);
            check(&stopped, Flags::NONE, body.as_bytes(), expected);
            check(&stopped, Flags::REFUSED, body.as_bytes(), false);
        }
    }
}
