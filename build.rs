//! Finds the commit that the program is built from, for `--version`.

#![expect(clippy::disallowed_methods, reason = "Cargo tells a build script by its environment")]

use std::env;
use std::process::Command;

fn main() {
    println!("cargo:rerun-if-env-changed=PUMPHOUSE_COMMIT");
    println!("cargo:rerun-if-changed=build.rs");
    let is_release = env::var("PROFILE").is_ok_and(|it| it == "release");
    if is_release {
        // Other builds don't look at each commit, since each would build the whole crate anew.
        for file in ["HEAD", "logs/HEAD"] {
            if let Some(path) = git(&["rev-parse", "--git-path", file]) {
                println!("cargo:rerun-if-changed={path}");
            }
        }
    }
    let said = env::var("PUMPHOUSE_COMMIT").ok().filter(|it| !it.is_empty());
    let found = || git(&["rev-parse", "--short=12", "HEAD"]);
    let commit = match (said, is_release) {
        (Some(said), _) => format!("commit {said}"),
        (None, true) => found().map_or_else(unknown, |it| format!("commit {it}{}", changes())),
        (None, false) => found().map_or_else(unknown, |it| format!("commit {it} or later")),
    };
    println!("cargo:rustc-env=PUMPHOUSE_BUILT_FROM={commit}");
}

fn unknown() -> String {
    "commit unknown: built without git".to_owned()
}

/// What follows the commit if tracked files have changed since.
fn changes() -> &'static str {
    match git(&["status", "--porcelain", "--untracked-files=no"]) {
        Some(all) if !all.is_empty() => ", changed since",
        _ => "",
    }
}

/// Runs git in the package's folder, and returns what it printed. None if that fails, or if the
/// folder belongs to no repository of its own.
fn git(arguments: &[&str]) -> Option<String> {
    let folder = env::var("CARGO_MANIFEST_DIR").ok()?;
    if !std::path::Path::new(&folder).join(".git").exists() {
        return None;
    }
    let output = Command::new("git").arg("-C").arg(folder).args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned())
}
