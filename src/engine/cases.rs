//! Tests of the rules of a tree of threads. Each case is a list of statements with the output of
//! each statement's step. The cases run without a runtime: without tasks, a clock or a disk.
//!
//! A case in `cases/*.txt` has a title and statements. The lines that begin with `=` after a
//! statement are its result: the entries, the marks and the effects of its step. `BLESS=1 cargo
//! test --lib engine::cases` writes the results anew.

mod stage;
mod shown;
mod script;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use stage::Stage;

/// Plays the cases in a text. Returns the text with the present results, and the number of cases.
fn played(text: &str) -> (String, usize) {
    let (mut now, mut count) = (String::new(), 0);
    let mut stage = Stage::new();
    for line in text.lines() {
        if line.starts_with('=') {
            continue;
        }
        now.push_str(line);
        now.push('\n');
        if line.starts_with("# ") {
            (stage, count) = (Stage::new(), count + 1);
        } else if !line.trim().is_empty() && !line.starts_with("//") {
            let played = AssertUnwindSafe(|| script::play(&mut stage, line));
            let played = catch_unwind(played)
                .unwrap_or_else(|_| panic!("in # {}", now.rsplit("# ").next().unwrap_or("")));
            for line in played {
                now.push_str(&format!("= {line}\n"));
            }
        }
    }
    (now, count)
}

/// Checks that the present results of every case equal the results in its file. Returns the number
/// of cases.
#[expect(clippy::disallowed_methods, reason = "whoever runs the tests says whether to bless")]
#[track_caller]
fn check(file: &str) -> usize {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../engine/cases").join(file);
    let then = std::fs::read_to_string(&path).unwrap();
    let (now, count) = played(&then);
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&path, now).unwrap();
        return count;
    }
    let different = then.lines().zip(now.lines()).enumerate().find(|(_, (then, now))| then != now);
    if let Some((at, (then, now))) = different {
        panic!("{file}:{}:\n  is   {then}\n  made {now}", at + 1);
    }
    assert_eq!(then.lines().count(), now.lines().count(), "{file}");
    count
}

#[test]
fn a_step_comes_to_what_its_case_says() {
    let files = [
        "pushes.txt",
        "answers.txt",
        "queues.txt",
        "kept.txt",
        "children.txt",
        "steering.txt",
        "withdrawn.txt",
        "timers.txt",
        "budgets.txt",
        "loops.txt",
        "failures.txt",
        "folds.txt",
        "restarts.txt",
    ];
    let count: usize = files.iter().map(|it| check(it)).sum();
    assert!(count >= 200, "{count} cases");
}
