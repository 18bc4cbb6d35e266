//! Tests that start no program. The integration tests run programs, with the built executable.

use super::confine::{Kernel, note_of};
use super::*;

#[track_caller]
fn check(settings: &str, expected: &str) {
    let settings: Settings = serde_json::from_str(settings).unwrap();
    let why = command(settings).err().unwrap();
    assert!(why.contains(expected), "{why}");
}

#[test]
fn what_cant_run_is_told_at_once() {
    check(r#"{"run": []}"#, "`run` is empty");
    check(r#"{"run": ["no-such-program"]}"#, "there is no program `no-such-program` in ");
    check(r#"{"run": ["./no-such"]}"#, "/no-such is no program");
    check(
        r#"{"run": ["cat", "{file}"]}"#,
        "`{file}` is no field of what comes in; there is {text}",
    );
    check(r#"{"run": ["cat"], "root": "/no/such"}"#, "there is no /no/such; make it first");
    check(r#"{"run": ["cat"], "read": ["/no/such"]}"#, "there is no /no/such; make it first");
    check(r#"{"run": ["cat"], "root": "/etc/passwd"}"#, "/etc/passwd is no folder");
    check(r#"{"run": ["cat"], "env": {"PATH": "bin:."}}"#, "there is no program `cat` in bin:.");
}

#[test]
fn who_reads_of_a_listener_hears_that_nothing_confines_its_programs() {
    assert_eq!(note_of(Kernel::All), "");
    let says = |kernel, text: &str| assert!(note_of(kernel).contains(text), "{kernel:?}");
    says(Kernel::Files, "doesn't know signals: the program may end");
    says(Kernel::Sockets, "no Landlock: the program may read and write");
    says(Kernel::Nothing, "and use the network");
    assert!(!note_of(Kernel::Sockets).contains("network"));
}
