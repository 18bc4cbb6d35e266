//! The listener `shell`: runs a program with arguments that the caller chooses. No shell interprets
//! the arguments. The setting `programs` lists the programs that may run, or says `any`.
//!
//! ```yaml
//! listeners:
//!   - {use: shell, settings: {root: work, programs: [cargo, ls]}}
//! ```
//!
//! The files, the network, the time and the memory of a program are limited in the same way as for
//! [`command`](super::command).

mod live;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use pumphouse::listener::{ManifestPath, ManifestPaths};
use pumphouse::prelude::*;
use pumphouse::wire::core::ProgramOutput;
use serde::Deserialize;

use super::command::limits::CommandLimits;
use super::command::{Bounds, Given, Root};
use super::command::{Network, confine, programs, run};
use super::text::cut;
use live::LiveOutput;
use pumphouse::listeners::words::action::CommandLine;
use run::{ExitCause, Outcome};

/// The listener's default name. The payloads' namespace contains the name in use.
const NAME: &str = "shell";
/// The value of `programs` that allows every program.
const ANY: &str = "any";

/// Runs a program and waits for its end.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/shell/v1")]
pub struct Shell {
    /// The program, then each of its arguments as it is: nothing is expanded, split or quoted.
    #[payload(example = "ls")]
    pub command: Vec<String>,
    /// Its standard input; by default empty.
    #[payload(no_example)]
    pub input: Option<String>,
}

/// A program ended with the exit code 0.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/shell/v1")]
pub struct Ran {
    /// Its standard output; of a long one, the beginning and the end.
    #[payload(value, example = "main.rs\n")]
    pub out: String,
    /// Its standard error; of a long one, the beginning and the end.
    #[payload(note, no_example)]
    pub err: Option<String>,
}

/// A program failed, or didn't start.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/shell/v1")]
pub struct Failed {
    /// How it ended, in a word.
    #[payload(attribute)]
    pub reason: Reason,
    /// Its exit code, if any.
    #[payload(attribute)]
    pub code: Option<i32>,
    /// How it ended, in a sentence.
    #[payload(value, example = "cargo ended with the exit code 101")]
    pub text: String,
    /// Its standard output; of a long one, the beginning and the end.
    #[payload(note, example = "test adds ... FAILED\n")]
    pub out: Option<String>,
    /// Its standard error; of a long one, the beginning and the end.
    #[payload(note, example = "error: test failed\n")]
    pub err: Option<String>,
}

/// How a program failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Payload)]
pub enum Reason {
    /// It ended with an exit code other than 0.
    ExitCode,
    /// It was ended, for example because it ran too long, crashed or reached a memory limit: what
    /// it had done by then is unknown.
    Unknown,
    /// Its arguments and input are too large.
    TooLarge,
    /// It isn't allowed, or doesn't exist.
    NoProgram,
    /// It could not be started.
    Failed,
}

/// The `settings` of `use: shell` in a manifest.
#[derive(Clone, Debug, Deserialize)]
#[non_exhaustive]
pub struct Settings {
    /// The programs that may run. `any` means every program.
    pub programs: ManifestPaths,
    /// The folder in which the programs run, and which they may write. The default is the folder
    /// `work` beside the manifest, which is made if it doesn't exist.
    pub root: Option<ManifestPath>,
    /// Variables of the programs' environment, besides `PATH`, `LANG` and `TMPDIR`.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// Additional files and folders that the programs may read and execute.
    #[serde(default)]
    pub read: Vec<ManifestPath>,
    /// Additional files and folders that the programs may write.
    #[serde(default)]
    pub write: Vec<ManifestPath>,
    /// Whether the programs may use the network.
    #[serde(default)]
    pub network: Network,
    /// Whether the programs may use the network although a door of this machine lets everybody in
    /// without a token.
    #[serde(default)]
    pub beside_open_door: bool,
    /// The limits of one run of a program.
    #[serde(default)]
    pub limits: CommandLimits,
}

/// The programs that may run, and their bounds. `listed` maps the names of these programs to their
/// paths, or is `None` if every program may run.
struct Programs {
    listed: Option<BTreeMap<String, String>>,
    bounds: Bounds,
}

/// Makes the listener `shell`.
///
/// # Errors
/// If a program or a folder doesn't exist, or if `programs` is empty.
pub fn shell(settings: Settings) -> Result<Listener, String> {
    let Some(home) = settings.programs.0.first() else {
        let text = "no program may be run: list some, as in `programs: [cargo, ls]`, or say `any`";
        return Err(text.to_owned());
    };
    let mut bounds = Bounds::new(Given {
        root: Root::named_or_work(settings.root.as_ref(), home),
        env: settings.env,
        read: settings.read,
        write: settings.write,
        network: settings.network,
        limits: settings.limits,
    })?;
    let listed = match &settings.programs.0[..] {
        [one] if one.text() == ANY => None,
        all => {
            let mut listed = BTreeMap::new();
            for skill in all {
                let path = programs::find(skill, bounds.search_path())?;
                bounds = bounds.with_program(&path)?;
                listed.insert(skill.text().to_owned(), path);
            }
            Some(listed)
        }
    };
    let which = listed.as_ref().map_or("a program".to_owned(), one_of);
    let text = format!("Runs {which}; no shell reads its arguments.{}", confine::note());
    confine::warn(NAME);
    let (timeout, effects) = (bounds.limits.listener_time(), bounds.effects());
    let secrets = bounds.secrets();
    let mark = bounds.clone();
    let listener = Listener::with_state(NAME, Arc::new(Programs { listed, bounds }))
        .own_namespace()
        .may_emit::<ProgramOutput>()
        .on(run_it)
        .timeout(timeout)
        .describe(text)
        .effects(effects)
        .secrets(secrets)
        .extension(CommandLine { field: "command" })
        .stateless();
    Ok(mark.mark(listener, settings.beside_open_door))
}

fn one_of(listed: &BTreeMap<String, String>) -> String {
    let names: Vec<&str> = listed.keys().map(String::as_str).collect();
    match names[..] {
        [one] => one.to_owned(),
        _ => format!("one of {}", names.join(", ")),
    }
}

impl Programs {
    /// Returns the path of a program. An error if the program doesn't exist or may not run.
    fn find(&self, name: &str) -> Result<String, String> {
        match &self.listed {
            Some(listed) => listed.get(name).cloned().ok_or_else(|| {
                format!("`{}` may not be run; there is {}", cut(name), one_of(listed))
            }),
            // The caller learns no path of this machine.
            None if name.contains('/') => programs::at(Path::new(&self.bounds.folder), name)
                .map_err(|_| format!("`{}` is no program", cut(name))),
            None => programs::searched(name, self.bounds.search_path())
                .map_err(|_| format!("there is no program `{}`", cut(name))),
        }
    }
}

async fn run_it(
    State(it): State<Arc<Programs>>,
    message: Message,
    followers: Outbox<ProgramOutput>,
    asked: Shell,
) -> Result<Ran, Failed> {
    let limits = &it.bounds.limits;
    let refused = |reason, text| Failed { reason, code: None, text, out: None, err: None };
    let mut words = asked.command.into_iter();
    let Some(name) = words.next() else {
        let text = "`command` is empty: it has a program and its arguments".to_owned();
        return Err(refused(Reason::NoProgram, text));
    };
    let path = it.find(&name).map_err(|text| refused(Reason::NoProgram, text))?;
    let (arguments, input): (Vec<String>, _) = (words.collect(), asked.input.unwrap_or_default());
    let bytes = input.len() + arguments.iter().map(String::len).sum::<usize>();
    if bytes > limits.input_bytes_max {
        let most = limits.input_bytes_max;
        let text = format!("it is given {bytes} bytes; the limit input_bytes_max is {most}");
        return Err(refused(Reason::TooLarge, text));
    }
    let live = LiveOutput::new(|it| followers.live(&it));
    let observe = |stream, piece: &[u8]| live.hear(stream, piece);
    let key = message.key();
    let outcome = run::run(&it.bounds, &path, arguments, input, key.as_deref(), &observe).await;
    live.end();
    let Outcome { ended, out, err } = outcome.map_err(|run::NotRun { has_begun, text }| {
        refused(if has_begun { Reason::Unknown } else { Reason::Failed }, text)
    })?;
    let out = out.text(limits.output_bytes_max);
    let err = Some(err.text(limits.error_bytes_max)).filter(|it| !it.is_empty());
    let (reason, code) = match ended {
        ExitCause::Code(0) => return Ok(Ran { out, err }),
        ExitCause::Code(code) => (Reason::ExitCode, Some(code)),
        _ => (Reason::Unknown, None),
    };
    let out = Some(out).filter(|it| !it.is_empty());
    Err(Failed { reason, code, text: ended.sentence(&name, limits), out, err })
}
