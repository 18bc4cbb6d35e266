//! The listener `command`: runs one program. The program's input and output are plain texts, or
//! payloads that the manifest declares by JSON Schemas.
//!
//! ```yaml
//! listeners:
//!   - {use: command, name: shout, settings: {run: [tr, a-z, A-Z], input: text}}
//!   - use: command
//!     name: weather
//!     settings: {run: [./weather.sh, "{city}"], takes: place, answers: forecast}
//! ```
//!
//! No shell interprets the arguments. The program gets the arguments that the manifest lists. An
//! argument such as `{city}` is replaced by a field of the message, and `--city={city}` ends with
//! one. If there are no such arguments,
//! or if the settings have `input`, the message goes to standard input.
//!
//! A program runs under a *supervisor*: a second process of this executable ([`supervise`]). The
//! supervisor ends the program when the call ends and when the pump ends, even if the pump is
//! killed. The supervisor starts a *launcher*. The launcher gives up the rights that the program
//! must not have, and is then replaced by the program ([`confine`]).

pub mod limits;
pub(super) mod programs;
mod sockets;
mod supervisor_messages;
mod processes;
pub(super) mod orphans;
#[cfg(target_os = "linux")]
mod system_files;
pub(super) mod scratch;
mod arguments;
mod attempts;
mod bounds;
pub mod confine;
pub mod supervise;
pub(super) mod run;
mod typed;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;

use pumphouse::listener::{CommandPart, DeclaredPayload, ManifestPath};
use pumphouse::prelude::*;
use pumphouse::secret::of_arguments;
use serde::Deserialize;
use serde_json::json;

use super::given_context::ContextFields;
use arguments::Argument;
pub(super) use bounds::{Bounds, Given, Root};
pub use bounds::{Network, NetworkPrograms, ProgramPaths, system_paths};
use limits::CommandLimits;
use pumphouse::listeners::agent_context::CallingAgent;
use run::{ExitCause, Outcome};

/// The listener's default name. The payloads' namespace contains the name in use.
const NAME: &str = "command";
/// The variable of a program's environment that has the calling agent's context.
const CONTEXT: &str = "AGENT_CONTEXT";
/// The maximum number of bytes of the context. Linux allows 128 KiB for one variable.
const CONTEXT_BYTES_MAX: usize = 64 * 1024;
/// The field of a message that is a text.
const FIELD: &str = "text";

/// Runs the listener's program on a text.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/command/v1")]
pub struct Run {
    /// The text.
    #[payload(example = "hello")]
    pub text: String,
}

/// The output of the program.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/command/v1")]
pub struct Output {
    /// Its standard output, without the final line end.
    #[payload(example = "HELLO")]
    pub text: String,
}

/// The program failed, or wasn't run.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/command/v1")]
pub struct Failed {
    /// Why, in a word.
    #[payload(attribute)]
    pub reason: Reason,
    /// Why, in a sentence.
    #[payload(value, example = "tr ended with the exit code 1")]
    pub text: String,
    /// Its standard error; of a long one, the beginning and the end.
    #[payload(note, example = "tr: missing operand")]
    pub err: Option<String>,
}

/// Why a program failed, or wasn't run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Payload)]
pub enum Reason {
    /// It ended with an exit code other than 0.
    ExitCode,
    /// It began, and was ended or answered what it may not: what it had done by then is unknown.
    Unknown,
    /// Its input is too large.
    TooLarge,
    /// It could not be run.
    Failed,
}

/// The `settings` of `use: command` in a manifest.
#[derive(Clone, Debug, Deserialize)]
#[non_exhaustive]
pub struct Settings {
    /// The program and its arguments. An argument such as `{text}` is replaced by the message's
    /// field of this name.
    pub run: Vec<CommandPart>,
    /// The payload that the listener takes. If there is none, the listener takes a text.
    pub takes: Option<DeclaredPayload>,
    /// The payload that the listener answers. If there is none, the listener answers a text.
    pub answers: Option<DeclaredPayload>,
    /// The form in which the program gets the message on standard input. Without this setting, the
    /// program gets the message there only if no argument names a field.
    pub input: Option<Input>,
    /// The folder in which the program runs, and which it may write. The default is the folder
    /// `work` beside the manifest, which is made if it doesn't exist.
    pub root: Option<ManifestPath>,
    /// Variables of the program's environment, besides `PATH`, `LANG` and `TMPDIR`.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// The fields of the calling agent's context that the program gets, as a JSON object in the
    /// variable `AGENT_CONTEXT`. By default, it gets none.
    #[serde(default)]
    pub agent_context: ContextFields,
    /// Additional files and folders that the program may read and execute.
    #[serde(default)]
    pub read: Vec<ManifestPath>,
    /// Additional files and folders that the program may write.
    #[serde(default)]
    pub write: Vec<ManifestPath>,
    /// Whether the program may use the network.
    #[serde(default)]
    pub network: Network,
    /// Whether the program may use the network although a door of this machine lets everybody in
    /// without a token.
    #[serde(default)]
    pub beside_open_door: bool,
    /// The limits of one call of the program.
    #[serde(default)]
    pub limits: CommandLimits,
}

/// The form in which a program gets the message on its standard input.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Input {
    /// The text of the message, for a listener that takes a text.
    Text,
    /// The message as JSON.
    Json,
    /// The message as XML.
    Xml,
}

/// The program that the manifest names: its path, its arguments and its bounds.
struct Program {
    name: String,
    path: String,
    arguments: Vec<Argument>,
    /// Whether the text goes to standard input. True if no argument has the field `text`, or if the
    /// settings have `input`.
    gets_input: bool,
    bounds: Bounds,
    agent_context: ContextFields,
}

impl Program {
    /// The bounds of a call: those of the manifest, with the context of the agent that calls.
    async fn bounds_for(&self, agent: &CallingAgent) -> Result<Result<Bounds, Failed>, Fault> {
        let context = self.agent_context.of(agent, CONTEXT_BYTES_MAX).await?;
        let bounds = self.bounds.clone();
        Ok(match context {
            Ok(None) => Ok(bounds),
            Ok(Some(json)) => Ok(bounds.with_variable(CONTEXT, json)),
            Err(text) => Err(Failed { reason: Reason::TooLarge, text, err: None }),
        })
    }
}

/// Makes the listener `command`.
///
/// # Errors
/// If the program or a folder doesn't exist, if an argument names a field that the payload doesn't
/// have, or if `takes`, `answers` and `input` are wrong or don't fit together.
pub fn command(settings: Settings) -> Result<Listener, String> {
    let Some((program, arguments)) = settings.run.split_first() else {
        return Err("`run` is empty: write a program, as in `run: [tr, a-z, A-Z]`".to_owned());
    };
    let program = program.manifest_path();
    let text = |it: &CommandPart| it.manifest_path().text().to_owned();
    let arguments: Vec<String> = arguments.iter().map(text).collect();
    let takes = settings.takes.as_ref().map(typed::takes).transpose()?;
    if settings.env.contains_key(CONTEXT) && settings.agent_context != ContextFields::default() {
        return Err(format!("`env` has {CONTEXT}, which `agent_context` sets"));
    }
    let fields = takes.as_ref().map_or_else(|| vec![FIELD.to_owned()], typed::fields);
    // An argument such as `{text}` is filled by each call.
    let fixed: Vec<String> = arguments.iter().filter(|it| !it.contains('{')).cloned().collect();
    let arguments = arguments::read(&arguments, &fields)?;
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
        root: Root::named_or_work(settings.root.as_ref(), program),
        env: settings.env,
        read: settings.read,
        write: settings.write,
        network: settings.network,
        limits: settings.limits,
    })?;
    let bounds = bounds.with_program(&path)?.with_secrets(of_arguments(&fixed));
    let (name, secrets) = (program.text().to_owned(), bounds.secrets());
    confine::warn(NAME);
    let what = takes.as_ref().map_or("a text".to_owned(), |it| format!("`{}`", it.name.local()));
    let text = format!("Runs {name} on {what}.{}", confine::note());
    let (timeout, effects) = (bounds.limits.listener_time(), bounds.effects());
    let has_fields = arguments.iter().any(|it| matches!(it, Argument::Field { .. }));
    let gets_input = settings.input.is_some() || !has_fields;
    let (agent_context, is_beside) = (settings.agent_context, settings.beside_open_door);
    let mark = bounds.clone();
    let program = Program { name, path, arguments, gets_input, bounds, agent_context };
    let listener = match takes {
        None if answers.is_none() => text_listener(program),
        takes => typed::listener(program, takes, answers, settings.input),
    };
    let listener = mark.mark(listener, is_beside);
    Ok(listener.timeout(timeout).describe(text).effects(effects).secrets(secrets))
}

fn text_listener(program: Program) -> Listener {
    Listener::with_state(NAME, Arc::new(program)).own_namespace().on(run_it).stateless()
}

async fn run_it(
    State(it): State<Arc<Program>>,
    message: Message,
    agent: CallingAgent,
    Run { text }: Run,
) -> Result<Result<Output, Failed>, Fault> {
    match it.bounds_for(&agent).await? {
        Ok(bounds) => Ok(it.run(&bounds, message.key().as_deref(), text).await),
        Err(failed) => Ok(Err(failed)),
    }
}

/// The failure of a program without an outcome.
fn not_run(why: run::NotRun) -> Failed {
    let reason = if why.has_begun { Reason::Unknown } else { Reason::Failed };
    Failed { reason, text: why.text, err: None }
}

impl Program {
    /// Runs the program on a text. `key` is that of the call.
    async fn run(
        &self,
        bounds: &Bounds,
        key: Option<&str>,
        text: String,
    ) -> Result<Output, Failed> {
        let limits = &bounds.limits;
        if text.len() > limits.input_bytes_max {
            let most = limits.input_bytes_max;
            let text =
                format!("the text has {} bytes; the limit input_bytes_max is {most}", text.len());
            return Err(Failed { reason: Reason::TooLarge, text, err: None });
        }
        let refused = |text| Failed { reason: Reason::Failed, text, err: None };
        let arguments = arguments::filled(&self.arguments, &json!({ FIELD: text }));
        let arguments = arguments.map_err(refused)?;
        let input = if self.gets_input { text.clone() } else { String::new() };
        let outcome = run::run(bounds, &self.path, arguments, input, key, &|_, _| {}).await;
        let outcome = outcome.map_err(not_run)?;
        Ok(Output { text: output(&self.name, limits, &outcome)? })
    }
}

/// Returns the standard output of a program, without its last line end, if the exit code is 0.
/// Otherwise returns the failure.
fn output(name: &str, limits: &CommandLimits, outcome: &Outcome) -> Result<String, Failed> {
    let reason = match outcome.ended {
        ExitCause::Code(0) => {
            let text = outcome.out.text(limits.output_bytes_max);
            let text = text.strip_suffix('\n').unwrap_or(&text);
            return Ok(text.strip_suffix('\r').unwrap_or(text).to_owned());
        }
        ExitCause::Code(_) => Reason::ExitCode,
        _ => Reason::Unknown,
    };
    let err = Some(outcome.err.text(limits.error_bytes_max)).filter(|it| !it.is_empty());
    Err(Failed { reason, text: outcome.ended.sentence(name, limits), err })
}
