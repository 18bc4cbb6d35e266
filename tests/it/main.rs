//! All tests from outside the crate, in one binary.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout,
    reason = "a test may fail where it stands, and say what it skipped"
)]

#[path = "../support/eventually.rs"]
mod eventually;
mod agent;
mod auditor;
mod backup;
mod cli;
mod crash;
mod describe;
mod door;
mod eval;
mod examples;
mod failure;
mod feeds;
mod golden;
#[cfg(unix)]
mod hangup;
mod security_findings;
mod idle;
mod in_process;
mod init;
mod json;
mod loopback;
mod models_command;
mod manifest;
mod manual;
mod metrics;
mod model;
mod operators;
mod otel;
mod project_pages;
mod state_and_replay;
mod program;
mod reply;
mod scenes;
mod schemas;
mod security;
mod shapes;
mod show_command;
mod sinks;
mod spending;
mod steering;
mod suites;
mod tidy;
mod tools;
mod traces;
mod formats;
mod workflows;

use eventually::eventually;
use program::until;

/// Reports a test that this machine can't run. Writes to the process's error output, because the
/// test runner would hide a printed line.
fn skipped(why: &str) {
    use std::io::Write as _;
    let test = std::thread::current().name().unwrap_or_default().to_owned();
    let mut past = std::io::stderr();
    writeln!(past, "skipped: {test}: {why}").unwrap();
}
