//! One program as a listener: a text in and a text out, or payloads by their JSON Schemas.
//!
//! ```yaml
//! listeners:
//!   - {use: command, name: shout, settings: {run: [tr, a-z, A-Z], input: text}}
//!   - use: command
//!     name: weather
//!     settings: {run: [./weather.sh, "{city}"], takes: place, answers: forecast}
//! ```
//!
//! No shell reads what is given: a program has the arguments that its manifest lists, and what
//! comes in stands in some of them, or in its standard input. A program runs under a *supervisor*,
//! which is this very executable once more ([`supervise`]): it ends the program with its call and
//! with the pump, also where that is killed. Between the two a *launcher* binds itself to the
//! limits and to the folders that the program may see, and becomes the program ([`confine`]).

pub mod limits;
pub(super) mod programs;
mod order;
pub(super) mod scratch;
mod bounds;
pub mod confine;
pub mod supervise;
pub(super) mod run;
mod typed;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;

use pumphouse::listener::{Beside, DeclaredPayload};
use pumphouse::prelude::*;
use serde::Deserialize;

pub use bounds::Network;
pub(super) use bounds::{Bounds, Given};
use limits::CommandLimits;
use run::{Ended, Outcome};

/// The listener's name unless another is given, by which its namespace goes.
const NAME: &str = "command";
/// Where the text stands among the arguments.
const FIELD: &str = "{text}";

/// Runs the listener's program on a text.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/command/v1")]
pub struct Run {
    /// The text.
    #[payload(example = "hello")]
    pub text: String,
}

/// What the program wrote.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/command/v1")]
pub struct Output {
    /// Its standard output, without the line end at its end.
    #[payload(example = "HELLO")]
    pub text: String,
}

/// The program didn't come to a good end.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/command/v1")]
pub struct Failed {
    /// How it ended, in a word.
    #[payload(attribute)]
    pub reason: Reason,
    /// How it ended, in a sentence.
    #[payload(example = "tr ended with the exit code 1")]
    pub text: String,
    /// What it wrote to its standard error, or the ends of that.
    #[payload(example = "tr: missing operand")]
    pub err: Option<String>,
}

/// How a program may end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Payload)]
pub enum Reason {
    /// With an exit code other than 0.
    ExitCode,
    /// By a signal: it crashed, or ran into a limit of memory.
    Signal,
    /// Its time was over.
    Timeout,
    /// It wrote more than a program may.
    TooMuchOutput,
    /// What it was given is too large.
    TooLarge,
    /// What it wrote isn't what it is to answer.
    BadOutput,
    /// It wasn't begun.
    Failed,
}

/// What stands under `settings` of `use: command`.
#[derive(Clone, Debug, Deserialize)]
#[non_exhaustive]
pub struct Settings {
    /// The program and its arguments; one may be `{text}`, or any field of what it takes.
    pub run: Vec<Beside>,
    /// What it takes; a text unless said.
    pub takes: Option<DeclaredPayload>,
    /// What it answers; a text unless said.
    pub answers: Option<DeclaredPayload>,
    /// What stands in its standard input; unless said, what no argument has.
    pub input: Option<Input>,
    /// Where it runs, and what it may write; the manifest's folder unless said.
    pub root: Option<Beside>,
    /// Variables of its environment, beside `PATH`, `LANG` and `TMPDIR`.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// More that it may read and execute.
    #[serde(default)]
    pub read: Vec<Beside>,
    /// More that it may write.
    #[serde(default)]
    pub write: Vec<Beside>,
    /// Whether it may connect to anything.
    #[serde(default)]
    pub network: Network,
    /// How much it may take.
    #[serde(default)]
    pub limits: CommandLimits,
}

/// What stands in the standard input of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Input {
    /// A text, which is all that it takes.
    Text,
    /// What it takes, as JSON.
    Json,
    /// What it takes, as XML.
    Xml,
}

/// A program that was found, and its arguments.
struct Program {
    name: String,
    path: String,
    arguments: Vec<String>,
    bounds: Bounds,
}

/// The listener `command`.
///
/// # Errors
/// The program isn't there, a folder isn't, or an argument names a field that the payload hasn't.
pub fn command(settings: Settings) -> Result<Listener, String> {
    let Some((program, arguments)) = settings.run.split_first() else {
        return Err("`run` is empty: write a program, as in `run: [tr, a-z, A-Z]`".to_owned());
    };
    let arguments: Vec<String> = arguments.iter().map(|it| it.text().to_owned()).collect();
    let takes = settings.takes.as_ref().map(typed::takes).transpose()?;
    let fields = takes.as_ref().map_or_else(|| vec!["text".to_owned()], typed::fields);
    let is_unknown = |it: &&String| field(it).is_some_and(|it| fields.iter().all(|of| of != it));
    if let Some(argument) = arguments.iter().find(is_unknown) {
        let there: Vec<String> = fields.iter().map(|it| format!("{{{it}}}")).collect();
        let there = if there.is_empty() { "none".to_owned() } else { there.join(", ") };
        return Err(format!("`{argument}` is no field of what comes in; there is {there}"));
    }
    match (&takes, settings.input) {
        (Some(_), Some(Input::Text)) => {
            return Err("`takes` says what comes in: write `input: json` or `input: xml`".into());
        }
        (None, Some(Input::Json | Input::Xml)) => {
            return Err("`input` wants a `takes`, which says what comes in".to_owned());
        }
        _ => {}
    }
    let answers = settings.answers.as_ref().map(typed::answers).transpose()?;
    let path = programs::find(program, &programs::search_path(&settings.env))?;
    let bounds = Bounds::new(Given {
        home: program,
        root: settings.root.as_ref(),
        env: settings.env,
        read: settings.read,
        write: settings.write,
        network: settings.network,
        limits: settings.limits,
    })?;
    let bounds = bounds.with_program(&path)?;
    let name = program.text().to_owned();
    confine::warn(NAME);
    let what = takes.as_ref().map_or("a text".to_owned(), |it| format!("`{}`", it.name.local()));
    let text = format!("Runs {name} on {what}.{}", confine::note());
    let (timeout, effects) = (bounds.limits.listener_time(), bounds.effects());
    let program = Program { name, path, arguments, bounds };
    let listener = match takes {
        None if answers.is_none() => text_listener(program),
        takes => typed::listener(program, takes, answers, settings.input),
    };
    Ok(listener.timeout(timeout).describe(text).effects(effects))
}

fn text_listener(program: Program) -> Listener {
    Listener::with_state(NAME, Arc::new(program)).own_namespace().on(run_it).stateless()
}

/// The field that an argument is, where it is one.
fn field(argument: &str) -> Option<&str> {
    argument.strip_prefix('{')?.strip_suffix('}')
}

async fn run_it(State(it): State<Arc<Program>>, Run { text }: Run) -> Result<Output, Failed> {
    let limits = &it.bounds.limits;
    if text.len() > limits.input_bytes_max {
        let most = limits.input_bytes_max;
        let text =
            format!("the text has {} bytes; the limit input_bytes_max is {most}", text.len());
        return Err(Failed { reason: Reason::TooLarge, text, err: None });
    }
    let takes_argument = it.arguments.iter().any(|it| it == FIELD);
    let filled = |argument: &String| match argument == FIELD {
        true => text.clone(),
        false => argument.clone(),
    };
    let arguments = it.arguments.iter().map(filled).collect();
    let input = if takes_argument { String::new() } else { text.clone() };
    match run::run(&it.bounds, &it.path, arguments, input, &|_, _| {}).await {
        Ok(outcome) => Ok(Output { text: output(&it.name, limits, &outcome)? }),
        Err(text) => Err(Failed { reason: Reason::Failed, text, err: None }),
    }
}

/// What a program wrote that came to a good end.
fn output(name: &str, limits: &CommandLimits, outcome: &Outcome) -> Result<String, Failed> {
    let reason = match outcome.ended {
        Ended::Code(0) => {
            let text = outcome.out.text(limits.output_bytes_max);
            let text = text.strip_suffix('\n').unwrap_or(&text);
            return Ok(text.strip_suffix('\r').unwrap_or(text).to_owned());
        }
        Ended::Code(_) => Reason::ExitCode,
        Ended::Signal(_) => Reason::Signal,
        Ended::OutOfTime => Reason::Timeout,
        Ended::TooMuchOutput => Reason::TooMuchOutput,
    };
    let err = Some(outcome.err.text(limits.error_bytes_max)).filter(|it| !it.is_empty());
    Err(Failed { reason, text: outcome.ended.sentence(name, limits), err })
}
