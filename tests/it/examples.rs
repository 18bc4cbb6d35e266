//! Runs the examples. Each prints what the comment at its head promises.

use std::path::PathBuf;
use std::process::Command;
use std::sync::Once;

#[test]
fn hello_greets() {
    check(
        "hello",
        "Hello, world!\n\
         refused: P0011: Message could not be delivered. \
         Please verify your target and try again.\n",
    );
}

#[test]
fn calculator_answers_errors_too_and_each_of_two_askers() {
    check(
        "calculator",
        "7 / 2 is 3.5\n\
         7 / 0 is Some(ByZero)\n\
         the average of 2, 3 and 7 is 4\n\
         before 20 it is 4, after it 8\n\
         the average of nothing is Some(NoNumbers)\n",
    );
}

#[test]
fn embedded_asks_tells_and_follows() {
    check(
        "embedded",
        "echo: is anybody there?\n\
         told: entry 1 of its thread\n\
         followed: measured from console\n\
         followed: too-warm from watcher\n\
         too warm: attic\n\
         kept: 2 threads\n",
    );
}

#[test]
fn push_asks_repeats_and_reads_on() {
    check(
        "push",
        "6*7 is 42\n\
         twice is once: true\n\
         2^10 is 1024\n\
         nobody subtracts: P0011\n\
         1/0 is DivisionByZero { column: 2 }\n",
    );
}

/// Runs an example and compares what it prints.
fn check(name: &str, expected: &str) {
    let out = Command::new(example(name)).output().unwrap();
    let said = String::from_utf8(out.stdout).unwrap();
    let complaint = String::from_utf8_lossy(&out.stderr);
    assert!(out.status.success(), "{name}: {}\n{complaint}", out.status);
    assert_eq!(said, expected, "{name} also said:\n{complaint}");
}

/// Where the examples are, once they are built.
pub(crate) fn folder() -> PathBuf {
    example("hello").parent().unwrap().to_owned()
}

/// `target/debug/examples/hello`, beside `target/debug/deps/it-…`. A plain `cargo test` builds
/// the examples before it runs the tests; where only some tests were built they may be missing.
pub(crate) fn example(name: &str) -> PathBuf {
    static BUILT: Once = Once::new();
    let test = std::env::current_exe().unwrap();
    let profile = test.parent().and_then(|it| it.parent()).unwrap();
    BUILT.call_once(|| {
        let mut cargo = Command::new(env!("CARGO"));
        cargo.current_dir(env!("CARGO_MANIFEST_DIR")).args(["build", "--quiet", "--examples"]);
        // What cargo tells a test of its package has build scripts run again, and all that stands
        // on them be built again.
        for (name, _) in std::env::vars_os() {
            let told = name.to_string_lossy();
            if told.starts_with("CARGO_PKG_") || told.starts_with("CARGO_MANIFEST_") {
                cargo.env_remove(&name);
            }
        }
        if profile.ends_with("release") {
            cargo.arg("--release");
        }
        assert!(cargo.status().unwrap().success(), "the examples can't be built");
    });
    profile.join("examples").join(format!("{name}{}", std::env::consts::EXE_SUFFIX))
}
