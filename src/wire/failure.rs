//! Decides which entries count as failures. Doors, and `--json` and `--failed` of the command line
//! use this rule.

use memchr::memmem;

use crate::log::Flags;
use crate::name::{AGENT, CORE, Name};

/// The attribute of an `agent-stopped` whose agent was interrupted.
const INTERRUPTED: &[u8] = b" reason=\"interrupted\"";
/// The attribute of a `thread-result` whose thread failed.
const FAILED: &[u8] = b" status=\"failed\"";
/// The attribute of an `action-result` whose action timed out.
const TIMED_OUT: &[u8] = b" status=\"timed-out\"";
/// The attribute of a `cognition_out` whose model failed.
const MODEL_FAILED: &[u8] = b" stop=\"error\"";

/// Whether an entry with this name, these flags and this payload is a failure: a fault, a report of
/// refusals at a door, an `Err` of a listener, failed work or a failed thread, an action that was
/// refused or timed out, a failure of a model, or an agent that stopped without being interrupted.
#[must_use]
pub fn is_failure(name: &Name, flags: Flags, body: &[u8]) -> bool {
    let says = |what: &[u8]| memmem::find(first_tag(body), what).is_some();
    let flagged = flags.contains(Flags::ERROR) || flags.contains(Flags::FAILS);
    let refused = flags.contains(Flags::REFUSED);
    match (name.namespace(), name.local()) {
        (CORE, "huh" | "system-thread-error" | "door-refusals") => true,
        (CORE, "thread-result") if !refused => says(FAILED),
        (AGENT, "agent-stopped") if !refused => !says(INTERRUPTED),
        (AGENT, "action-refused") if !refused => true,
        (AGENT, "action-result") if !refused => says(TIMED_OUT),
        (AGENT, "cognition_out") if !refused => says(MODEL_FAILED),
        _ => flagged,
    }
}

/// The first tag of a canonical payload, without its `>`. A `>` within quotes doesn't end the tag.
fn first_tag(body: &[u8]) -> &[u8] {
    let mut at = 0;
    while let Some(found) = memchr::memchr2(b'"', b'>', &body[at..]) {
        at += found;
        if body[at] == b'>' {
            return &body[..at];
        }
        let Some(end) = memchr::memchr(b'"', &body[at + 1..]) else { break };
        at += end + 2;
    }
    body
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
    }

    #[test]
    fn what_an_agent_or_a_thread_came_to_is_read_in_its_first_tag() {
        let of_agent = |local| Name::of(AGENT, local);
        for (name, body, expected) in [
            (ThreadResult::NAME, r#"<a status="failed" thread="t"/>"#, true),
            (ThreadResult::NAME, r#"<a status="completed"><b status="failed"/></a>"#, false),
            (of_agent("action-result"), r#"<a name="a>b" status="timed-out"/>"#, true),
            (of_agent("action-result"), r#"<a status="failed"/>"#, false),
            (of_agent("action-refused"), "<a/>", true),
            (of_agent("cognition_out"), r#"<a error="x > y" stop="error">"#, true),
            (of_agent("cognition_out"), r#"<a stop="end"> stop="error"</a>"#, false),
            (of_agent("cognition_out"), r#"<a stop="#, false),
        ] {
            check(&name, Flags::NONE, body.as_bytes(), expected);
            check(&name, Flags::REFUSED, body.as_bytes(), false);
        }
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
