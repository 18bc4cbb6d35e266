//! Reads the file of cases, and reports each mistake with its place in the file.

use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::cli::base::organism::{bytes_of, told};
use crate::cli::base::screen::Failure;
use crate::cli::eval::limits::RUNS_MAX;
use crate::listener::Capabilities;
use crate::manifest::{self, Document, Mistake, Mistakes};
use crate::model::UnknownModel;
use crate::schema::nearest;

/// The content of the file.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Sheet {
    /// The path of the manifest, relative to the file's folder.
    #[serde(default = "usual_organism")]
    pub(super) organism: PathBuf,
    /// The agent that is asked.
    pub(super) agent: String,
    /// How often each case runs.
    #[serde(default = "once")]
    pub(super) runs: u32,
    /// The agent's model, if it isn't the manifest's.
    pub(super) model: Option<String>,
    /// The model that judges.
    pub(super) judge: Option<String>,
    pub(super) cases: Vec<Case>,
}

/// One message for the agent, and what is expected of the answer.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Case {
    pub(super) name: String,
    pub(super) message: String,
    /// The expectations, all of which the answer has to meet.
    pub(super) expect: Vec<Expected>,
}

/// An expectation of an answer.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Expected {
    /// The answer contains this text.
    Contains(String),
    /// The agent called a tool on the way.
    Called(Called),
    /// The answer is a valid payload of this name: `{namespace}name`, or a shorter form that names
    /// one payload only.
    Payload(String),
    /// The judge finds that the answer meets this criterion.
    Judged(String),
}

/// A call of a tool.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Called {
    pub(super) tool: String,
    /// Parameters and values that the call has to have. The call may have further parameters.
    pub(super) with: Option<Map<String, Value>>,
}

fn usual_organism() -> PathBuf {
    manifest::FILE.into()
}

fn once() -> u32 {
    1
}

/// A file of cases that was read.
pub(super) struct Suite {
    pub(super) file: PathBuf,
    pub(super) sheet: Sheet,
    document: Document,
}

impl Suite {
    /// Reads a file of cases.
    pub(super) fn read(
        file: &Path,
        environment: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Suite, Failure> {
        let name = file.display();
        let unread = |error| Failure::Untried(format!("{name} can't be read: {error}"));
        let bytes = bytes_of(file).map_err(unread)?;
        let wrong = |all: Mistakes| Failure::Untried(told(&all));
        let (sheet, document) = Document::read(file, &bytes, environment).map_err(wrong)?;
        let suite = Suite { file: file.to_owned(), sheet, document };
        suite.checked(suite.oddities()).map_err(wrong)?;
        Ok(suite)
    }

    /// Returns the path of the organism's manifest.
    pub(super) fn organism(&self) -> PathBuf {
        self.file.with_file_name("").join(&self.sheet.organism)
    }

    /// Returns the number of runs of all cases.
    pub(super) fn runs(&self) -> usize {
        self.sheet.cases.len().saturating_mul(self.sheet.runs as usize)
    }

    /// Returns every run, as the index of its case and the number of the run, from 1. All cases
    /// have their first run before any case has its second run.
    pub(super) fn each_run(&self) -> impl Iterator<Item = (usize, u32)> + use<> {
        let cases = self.sheet.cases.len();
        (1..=self.sheet.runs).flat_map(move |run| (0..cases).map(move |case| (case, run)))
    }

    /// Whether any case needs a judge.
    pub(super) fn is_judged(&self) -> bool {
        let mut all = self.sheet.cases.iter().flat_map(|it| &it.expect);
        all.any(|it| matches!(it, Expected::Judged(_)))
    }

    /// Checks that the models that the file names are among `models`.
    pub(super) fn knows(&self, models: &[String]) -> Result<(), Mistakes> {
        let said = [("model", &self.sheet.model), ("judge", &self.sheet.judge)];
        let all = said.into_iter().filter_map(|(path, name)| {
            let unknown = unknown(name.as_ref()?, models)?;
            Some(self.document.mistake(path, &unknown.to_string()))
        });
        self.checked(all.collect())
    }

    /// Checks that an organism has the agent and the payloads that the file names. Tools of
    /// `called` aren't checked.
    pub(super) fn fits(&self, organism: &Capabilities) -> Result<(), Mistakes> {
        let mut all = Vec::new();
        let agents = organism.listeners().iter().filter(|it| it.kind == "agent");
        let agents: Vec<&str> = agents.map(|it| it.name.as_str()).collect();
        let name = self.sheet.agent.as_str();
        if !agents.contains(&name) {
            let text = match nearest(name, agents.iter().copied()) {
                Some(near) => format!("there is no agent `{name}`; did you mean `{near}`?"),
                None if agents.is_empty() => "the organism has no agent".to_owned(),
                None => format!("there is no agent `{name}`; there is {}", agents.join(", ")),
            };
            all.push(self.document.mistake("agent", &text));
        }
        for (path, expected) in self.expected() {
            if let Expected::Payload(word) = expected
                && let Err(unfound) = organism.find(word)
            {
                all.push(self.document.mistake(&path, &unfound.to_string()));
            }
        }
        self.checked(all)
    }

    /// Returns every expectation with its path in the file.
    fn expected(&self) -> impl Iterator<Item = (String, &Expected)> {
        self.sheet.cases.iter().enumerate().flat_map(|(number, case)| {
            case.expect.iter().enumerate().map(move |(place, it)| {
                let key = match it {
                    Expected::Contains(_) => "contains",
                    Expected::Called(_) => "called",
                    Expected::Payload(_) => "payload",
                    Expected::Judged(_) => "judged",
                };
                (format!("cases[{number}].expect[{place}].{key}"), it)
            })
        })
    }

    /// Returns the mistake for a file that gives the agent another model although the manifest has
    /// no such agent.
    pub(super) fn no_such_agent(&self) -> Mistakes {
        let name = &self.sheet.agent;
        let text = format!("the manifest has no agent `{name}` that could have another model");
        self.document.mistakes(vec![self.document.mistake("agent", &text)])
    }

    /// Returns the mistakes in the file that don't depend on the organism.
    fn oddities(&self) -> Vec<Mistake> {
        let (sheet, mistake) =
            (&self.sheet, |path: &str, text: &str| self.document.mistake(path, text));
        let mut all = Vec::new();
        if !(1..=RUNS_MAX).contains(&sheet.runs) {
            let text = format!("a whole number from 1 to {RUNS_MAX} is expected");
            all.push(mistake("runs", &text));
        }
        if sheet.cases.is_empty() {
            all.push(mistake("cases", "there is no case"));
        }
        for (number, case) in sheet.cases.iter().enumerate() {
            let path = |key: &str| format!("cases[{number}].{key}");
            if sheet.cases[..number].iter().any(|it| it.name == case.name) {
                let text = format!("there is a case `{}` already; give each its name", case.name);
                all.push(mistake(&path("name"), &text));
            }
            if case.name.trim().is_empty() {
                all.push(mistake(&path("name"), "a case needs a name"));
            }
            if case.message.trim().is_empty() {
                all.push(mistake(&path("message"), "a message has words"));
            }
            if case.expect.is_empty() {
                let text = "say what is expected: contains, called, payload or judged";
                all.push(mistake(&path("expect"), text));
            }
        }
        for (path, expected) in self.expected() {
            match expected {
                Expected::Judged(_) if sheet.judge.is_none() => {
                    let text = "nobody judges: name a model at the top, as in `judge: large`";
                    all.push(mistake(&path, text));
                }
                Expected::Contains(text) | Expected::Judged(text) if text.trim().is_empty() => {
                    all.push(mistake(&path, "this says nothing"));
                }
                _ => {}
            }
        }
        all
    }

    fn checked(&self, all: Vec<Mistake>) -> Result<(), Mistakes> {
        match all.is_empty() {
            true => Ok(()),
            false => Err(self.document.mistakes(all)),
        }
    }
}

/// Returns the mistake that no model has this name, or None if a model has it.
pub(super) fn unknown(name: &str, models: &[String]) -> Option<UnknownModel> {
    let is_there = models.iter().any(|it| it == name);
    (!is_there).then(|| UnknownModel::new(name, models.to_vec()))
}
