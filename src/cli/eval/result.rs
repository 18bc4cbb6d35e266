//! The result of an evaluation, and the file that keeps it for later comparison. This module is
//! pure, except for the file.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::atomic_file::AtomicFile;
use crate::cli::base::screen::Failure;

use super::file::Suite;
use super::model_spending::ModelSpending;
use super::play::Run;

/// The version of the format of kept results.
const FORM: u32 = 1;

/// The figures of the runs of a case, or of all runs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Row {
    pub(super) name: String,
    pub(super) runs: u64,
    pub(super) passed: u64,
    /// The model usage of all these runs together.
    #[serde(flatten)]
    pub(super) used: ModelSpending,
    /// How long all these runs took together.
    pub(super) milliseconds: u64,
}

impl Row {
    fn of<'a>(name: &str, runs: impl Iterator<Item = &'a Run>) -> Row {
        let none = Row { name: name.to_owned(), ..Row::default() };
        runs.fold(none, |row, run| Row {
            runs: row.runs + 1,
            passed: row.passed + u64::from(run.has_passed()),
            used: row.used.plus(run.used),
            milliseconds: row.milliseconds.saturating_add(run.milliseconds),
            name: row.name,
        })
    }
}

/// The result of an evaluation. `--json` prints it last, and `--save` keeps it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct EvalResult {
    /// The version of this format.
    eval: u32,
    pub(super) file: String,
    pub(super) agent: String,
    /// The agent's model: the name from the option or the file of cases, or else the model as the
    /// agent's turns name it.
    pub(super) model: Option<String>,
    pub(super) judge: Option<String>,
    /// When the runs began.
    pub(super) time: String,
    pub(super) cases: Vec<Row>,
    pub(super) all: Row,
    /// The judge's model usage.
    pub(super) judged: ModelSpending,
}

impl EvalResult {
    /// Sums up the runs of a suite.
    pub(super) fn of(suite: &Suite, runs: &[Run], time: String) -> EvalResult {
        let sheet = &suite.sheet;
        let cases = sheet.cases.iter().enumerate();
        let row = |(case, it): (usize, &super::file::Case)| {
            Row::of(&it.name, runs.iter().filter(|run| run.case == case))
        };
        let described = || runs.iter().find_map(|it| it.model.clone());
        EvalResult {
            eval: FORM,
            file: suite.file.display().to_string(),
            agent: sheet.agent.clone(),
            model: sheet.model.clone().or_else(described),
            judge: sheet.judge.clone().filter(|_| suite.is_judged()),
            time,
            cases: cases.map(row).collect(),
            all: Row::of("all", runs.iter()),
            judged: runs.iter().fold(ModelSpending::default(), |sum, it| sum.plus(it.judged)),
        }
    }

    /// Whether all runs passed.
    pub(super) fn has_passed(&self) -> bool {
        self.all.passed == self.all.runs
    }

    /// Returns the figures of a case.
    pub(super) fn case(&self, name: &str) -> Option<&Row> {
        self.cases.iter().find(|it| it.name == name)
    }

    /// Reads a result that `--save` kept. Fails if the file holds no result of this format.
    pub(super) fn read(path: &Path) -> Result<EvalResult, Failure> {
        let name = path.display();
        let unread = |it| Failure::Untried(format!("{name} can't be read: {it}"));
        let text = fs::read_to_string(path).map_err(unread)?;
        let wrong = |why: String| {
            let way = "give --against a file that --save wrote";
            Failure::Untried(format!("{name} is no kept result: {why}; {way}"))
        };
        let read: EvalResult = serde_json::from_str(&text).map_err(|it| wrong(it.to_string()))?;
        match read.eval {
            FORM => Ok(read),
            other => Err(wrong(format!("its form is {other}, and {FORM} is known"))),
        }
    }
}

/// A file for a result. An existing file stays until the result is written completely.
pub(super) struct ResultFile {
    file: AtomicFile,
    path: PathBuf,
}

impl ResultFile {
    /// Opens the file. Fails if it can't be written.
    pub(super) fn open(path: &Path) -> Result<ResultFile, Failure> {
        let file = AtomicFile::replacing(path).map_err(|it| unwritten(path, &it))?;
        Ok(ResultFile { file, path: path.to_owned() })
    }

    /// Writes a result into the file.
    pub(super) fn write(mut self, it: &EvalResult) -> Result<(), Failure> {
        let written = serde_json::to_string_pretty(it).map_err(io::Error::from);
        let written = written.and_then(|text| writeln!(self.file, "{text}"));
        written.and_then(|()| self.file.commit()).map_err(|it| unwritten(&self.path, &it))
    }
}

fn unwritten(path: &Path, error: &io::Error) -> Failure {
    Failure::Untried(format!("{} can't be written: {error}", path.display()))
}
