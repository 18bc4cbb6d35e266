//! Test suites from other projects, and how we score in them. `docs/conformance.md` has the scores.

mod attacks;
mod canonical;
mod http_cache;
mod json;
mod naughty;
mod reading;
mod scores;
mod shapes;
mod stream;
mod xmlconf;

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

/// The folder of the suites: `PUMPHOUSE_SUITES`, or `suites` in a folder `shared` beside this
/// project. None, and a line that says so, where there is no such folder.
#[expect(clippy::disallowed_methods, reason = "this is the one setting that tests have")]
pub(crate) fn suites() -> Option<PathBuf> {
    let given = std::env::var_os("PUMPHOUSE_SUITES").map(PathBuf::from);
    let beside = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/suites");
    let folder = given.unwrap_or_else(beside);
    if folder.is_dir() {
        return Some(folder);
    }
    crate::skipped("no suites");
    None
}

/// How many cases came out as expected, and which did not.
#[derive(Default)]
struct Score {
    right: usize,
    /// Where both outcomes are fine.
    either: usize,
    wrong: Vec<String>,
}

impl Score {
    fn count(&mut self, outcome: Result<(), String>) {
        match outcome {
            Ok(()) => self.right += 1,
            Err(why) => self.wrong.push(why),
        }
    }

    #[track_caller]
    fn assert_none_wrong(&self, least: usize) {
        assert!(self.wrong.is_empty(), "\n{}\n", self.wrong.join("\n"));
        assert!(self.right >= least, "only {} cases were there", self.right);
    }
}

/// A document of a suite, with its line in the index.
pub(crate) struct Case {
    folder: PathBuf,
    pub(crate) row: Value,
}

impl Case {
    pub(crate) fn file(&self) -> &str {
        self.text("file")
    }

    pub(crate) fn text(&self, key: &str) -> &str {
        self.row[key].as_str().unwrap_or_else(|| panic!("no {key} in {}", self.row))
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        let path = self.folder.join(self.file());
        fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    }
}

/// The lines of an index such as `xmlconf/index.jsonl`.
pub(crate) fn cases(suites: &Path, index: &str) -> Vec<Case> {
    let path = suites.join(index);
    let folder = path.parent().unwrap();
    let lines = fs::read_to_string(&path).unwrap();
    let case = |line| Case { folder: folder.into(), row: serde_json::from_str(line).unwrap() };
    lines.lines().map(case).collect()
}
