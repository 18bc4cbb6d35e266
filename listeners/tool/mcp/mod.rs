//! The listener `mcp`: calls the tools of a server of the Model Context Protocol (MCP). Each of the
//! server's tools is a payload of the listener.
//!
//! ```yaml
//! listeners:
//!   - {use: mcp, name: clock, settings: {command: [mcp-server-time]}}
//! ```
//!
//! Before a command such as `pumphouse run` builds the pump, it asks the server for its tools. The
//! first answer is recorded in `mcp.lock.json` beside the manifest. Commands that only read the
//! manifest use this record and don't start the server. Later answers are compared with the record,
//! and so is the answer of each process and session that is called: calls of a tool whose
//! description has changed are refused. With `trust: all`, the new answer replaces the record
//! instead. A pump also announces the digests of the recorded tools in its thread `organism`.

pub mod limits;
mod line;
mod queue;
mod exchange;
mod remote;
mod wire;
mod tools;
mod server;
pub mod record;
mod answer;
mod attach;
mod asking;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use pumphouse::listener::{CommandPart, Effects, ManifestPath};
use pumphouse::prelude::*;
use pumphouse::schema::{self, Schema};
use pumphouse::secret::{Secrets, of_arguments};
use pumphouse::wire::Json;
use pumphouse::wire::core::{Attachment, Progress};
use serde::Deserialize;
use serde_json::{Map, Value};
use tokio::sync::mpsc;

pub use self::asking::asking;
use self::attach::{Attached, Attachments, Outlets};
use self::exchange::{Failure, within};
use self::limits::{McpLimits, PROGRESS_MAX};
use self::record::{Record, ToolsAccepted};
use self::remote::Remote;
use self::server::{Launch, Server, Transport};
use self::tools::{Tool, pinned};
use super::command::limits::CommandLimits;
use super::command::{Bounds, Given, Network, Root, confine, programs};
pub(super) use super::text::shown;

/// The listener's default name.
const NAME: &str = "mcp";
/// The part of the payloads' namespace before the listener's name.
const GROUP: &str = "mcp/";
/// The payloads' namespace if the listener has its default name.
const NAMESPACE: &str = "https://xml-pipeline.org/ns/mcp/mcp/v1";
/// What is said of a tool whose description isn't the accepted one.
const CHANGED: &str = "the server describes it otherwise than when it was accepted";
/// The margin of the handler's timeout over twice the sum of `start_seconds_max` and `seconds_max`.
const GRACE: Duration = Duration::from_secs(5);

/// What a tool of the server answered.
#[derive(Clone, Debug, PartialEq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/mcp/mcp/v1")]
pub struct ToolResult {
    /// The tool's name at its server.
    #[payload(attribute)]
    pub tool: String,
    /// The answer's text; other content is named in brackets.
    #[payload(value, example = "It is noon.")]
    pub text: Option<String>,
    /// Structured content, as JSON.
    #[payload(value, no_example)]
    pub data: Option<Json>,
    /// Content that isn't text, in the order in which the text names it.
    #[payload(no_example)]
    pub attachment: Vec<Attached>,
}

/// A call of a tool failed.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/mcp/mcp/v1")]
pub struct ToolFailed {
    /// The tool's name at its server.
    #[payload(attribute)]
    pub tool: String,
    /// Why, in a word.
    #[payload(attribute)]
    pub reason: Reason,
    /// Why, in the words of the tool, the server or the pump.
    #[payload(value, example = "there is no time zone Atlantis")]
    pub text: String,
}

/// Why a call failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Payload)]
pub enum Reason {
    /// The tool reports an error.
    Tool,
    /// The server refuses the call.
    Refused,
    /// The server isn't there: nothing was called.
    Unreachable,
    /// The call was sent, and no answer came that can be read: whether anything was done is
    /// unknown.
    Unknown,
    /// The call is invalid: nothing was called.
    Nonsense,
    /// The tool's description isn't the accepted one: nothing was called.
    Changed,
}

/// The rule by which descriptions of tools are accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Trust {
    /// The descriptions in the record are accepted, and no other.
    Recorded,
    /// The descriptions that the server gives are accepted, whatever the record says.
    All,
}

/// The `settings` of `use: mcp` in a manifest.
#[derive(Clone, Debug, Deserialize)]
#[non_exhaustive]
pub struct Settings {
    /// The server's program and its arguments. Empty if the settings have a `url`.
    #[serde(default)]
    pub command: Vec<CommandPart>,
    /// The server's URL. `None` if the pump starts the server.
    pub url: Option<ManifestPath>,
    /// The bearer token that is sent to a server at a URL. The default is to send none.
    pub bearer: Option<String>,
    /// Variables of the program's environment, besides `PATH`, `LANG` and `TMPDIR`.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// The names of the tools to offer. `*` stands for any text. An empty list means all tools.
    #[serde(default)]
    pub tools: Vec<String>,
    /// The folder in which the program runs. The default is the manifest's folder.
    pub root: Option<ManifestPath>,
    /// The rule by which descriptions of tools are accepted. The default is [`Trust::Recorded`].
    pub trust: Option<Trust>,
    /// Whether the server is believed which of its tools may be called twice with the effect of
    /// once. Such calls may be tried again even if nobody knows what the last one did.
    #[serde(default)]
    pub trust_hints: bool,
    /// The limits of a call, and of the server's start and memory.
    #[serde(default)]
    pub limits: McpLimits,
}

/// Makes the listener `mcp` from the record of the server's tools, without starting the server. If
/// nothing is recorded, the listener takes only the payload `unknown-tool`, and refuses it.
///
/// # Errors
/// If the program isn't found, if the settings don't fit together, if the record can't be read, or
/// if no recorded tool can be offered.
pub fn recorded(settings: Settings) -> Result<Listener, String> {
    let (launch, record, settings) = prepared(settings)?;
    match record.read()? {
        Some(tools) => listener(launch, &tools, &Map::new(), &settings),
        None => Ok(unknown(&launch.name)),
    }
}

/// Makes the listener after asking the server for its tools. The tools that the server has now
/// replace the record.
///
/// # Errors
/// If [`recorded`] fails, if the server can't be asked, or if the record can't be written.
pub fn accepted(settings: Settings) -> Result<Listener, String> {
    let (launch, record, settings) = prepared(settings)?;
    let tools = pinned(&launch.tools().map_err(|why| unanswered(&launch, &why))?);
    record.write(&tools)?;
    listener(launch, &tools, &Map::new(), &settings)
}

fn unanswered(launch: &Launch, why: &str) -> String {
    format!("{} can't be asked for its tools: {}", launch.name, shown(why))
}

/// Checks the settings. Returns how to launch the server, the record of its tools, and the
/// settings.
fn prepared(settings: Settings) -> Result<(Launch, Record, Settings), String> {
    let wrong = |text: &str| Err(text.to_owned());
    let (name, transport, record) = match (settings.command.split_first(), &settings.url) {
        (Some(_), Some(_)) => return wrong("there is a `command` and a `url`: give one"),
        (Some(_), None) if settings.bearer.is_some() => return wrong("`bearer` goes with `url`"),
        (Some((program, arguments)), None) => program_of(&settings, program, arguments)?,
        (None, Some(_)) if settings.root.is_some() || !settings.env.is_empty() => {
            return wrong("`root` and `env` go with `command`");
        }
        (None, Some(url)) => {
            let remote = Remote::new(url.text(), settings.bearer.as_deref())?;
            let record = Record::new(url.folder(), url.text().to_owned());
            (url.text().to_owned(), Transport::Remote(Arc::new(remote)), record)
        }
        (None, None) => {
            return wrong(
                "`command` is empty: write a program, as in `command: [mcp-server-time]`",
            );
        }
    };
    let start_time = Duration::from_secs(settings.limits.start_seconds_max);
    let secrets = match &transport {
        Transport::Program { bounds, .. } => bounds.secrets(),
        Transport::Remote(remote) => remote.secrets().to_vec(),
    };
    let hidden = Secrets::new(secrets.iter().cloned());
    let (name, record) = (hidden.hide_in(name), record.hiding(&hidden));
    Ok((Launch { name, start_time, transport, secrets }, record, settings))
}

fn program_of(
    settings: &Settings,
    program: &CommandPart,
    arguments: &[CommandPart],
) -> Result<(String, Transport, Record), String> {
    let program = program.manifest_path();
    let text = |it: &CommandPart| it.manifest_path().text().to_owned();
    let arguments: Vec<String> = arguments.iter().map(text).collect();
    let path = programs::find(program, &programs::search_path(&settings.env))?;
    let words = [&[program.text().to_owned()][..], &arguments].concat();
    let bounds = Bounds::new(Given {
        root: settings.root.as_ref().map_or(Root::Manifests(program), Root::Named),
        env: settings.env.clone(),
        read: Vec::new(),
        write: Vec::new(),
        network: Network::Any,
        limits: CommandLimits {
            memory_bytes_max: settings.limits.memory_bytes_max,
            ..CommandLimits::default()
        },
    })?;
    let bounds = Box::new(bounds.with_secrets(of_arguments(&words)));
    let record = Record::new(program.folder(), words.join(" "));
    let name = program.text().to_owned();
    Ok((name, Transport::Program { path, arguments, bounds }, record))
}

/// Makes a listener for a server whose tools aren't known yet. The listener takes only the payload
/// `unknown-tool`, with any content, and refuses it.
fn unknown(server: &str) -> Listener {
    let name = Name::new(NAMESPACE, "unknown-tool");
    let text = "A tool of the server; which there are is known once the pump has run.";
    let refuse = |_: Element| async move {
        let text = "the tools of this server aren't known yet".to_owned();
        Err::<ToolResult, _>(ToolFailed { tool: String::new(), reason: Reason::Unreachable, text })
    };
    Listener::new(NAME)
        .own_namespace_in(GROUP)
        .on_named(Schema::any(name, text), refuse)
        .describe(format!("Tools of {server}: known once the pump has run, or `check --live` did."))
}

fn listener(
    launch: Launch,
    definitions: &Map<String, Value>,
    changed: &Map<String, Value>,
    settings: &Settings,
) -> Result<Listener, String> {
    let taken = [ToolResult::NAME.local(), ToolFailed::NAME.local()].map(str::to_owned);
    let taken: Vec<&str> = taken.iter().map(String::as_str).collect();
    let patterns = &settings.tools;
    let (mut all, left_out) = tools::tools(definitions, patterns, NAMESPACE, &taken);
    for tool in &mut all {
        tool.is_changed = changed.contains_key(&tool.name);
    }
    if all.is_empty() {
        let text = format!("{} has no tool that `tools` chooses and that can be said", launch.name);
        return Err(text);
    }
    let name = launch.name.clone();
    let mut text = format!("Tools of {name}, an MCP server.");
    if let Transport::Program { .. } = launch.transport {
        text.push_str(confine::signals_note());
    }
    let named = |it: &&Tool| it.is_changed;
    let renamed: Vec<String> = all.iter().filter(named).map(|it| shown(&it.name)).collect();
    for (what, list) in [("Refused, since they changed", renamed), ("Left out", left_out)] {
        if !list.is_empty() {
            tracing::warn!(server = name, "{what}: {}", list.join(", "));
            text = format!("{text} {what}: {}.", list.join(", "));
        }
    }
    let secrets = launch.secrets.clone();
    let limits = settings.limits;
    let seconds = limits.seconds_max.saturating_add(limits.start_seconds_max);
    let is_all = settings.trust == Some(Trust::All);
    let server = Server::new(launch, (!is_all).then(|| definitions.clone()));
    let ending = server.clone();
    let mut listener = Listener::with_state(NAME, server)
        .own_namespace_in(GROUP)
        .announce(&ToolsAccepted::of(name, definitions))
        .at_stop(move || {
            let server = ending.clone();
            async move { server.close().await }
        })
        .fold::<Attachments>()
        .may_emit::<Attachment>()
        .may_emit::<Progress>();
    if settings.trust_hints {
        let hinted = all.iter().filter(|it| tools::is_idempotent(definitions.get(&it.name)));
        let hinted: BTreeSet<String> = hinted.map(|it| it.schema.name.local().to_owned()).collect();
        listener = listener.idempotent_for(move |it| hinted.contains(it.local()));
    }
    for tool in all {
        let schema = tool.schema.clone();
        let tool = Arc::new(tool);
        listener = listener.on_named(
            schema,
            move |State(server): State<Arc<Server>>, out: Outlets, request: Element| {
                call(server, tool.clone(), out, request, limits)
            },
        );
    }
    // A call may be sent twice, each time after a start of the server.
    let all = Duration::from_secs(seconds.saturating_mul(2)).saturating_add(GRACE);
    let listener = listener.timeout(all).describe(text).effects(Effects::Outside);
    Ok(listener.secrets(secrets).stateless())
}

async fn call(
    server: Arc<Server>,
    tool: Arc<Tool>,
    out: Outlets,
    message: Element,
    limits: McpLimits,
) -> Result<ToolResult, ToolFailed> {
    let name = shown(&tool.name);
    let failed =
        |reason, text: String| Err(ToolFailed { tool: name.clone(), reason, text: shown(&text) });
    if tool.is_changed {
        return failed(Reason::Changed, CHANGED.to_owned());
    }
    let arguments = match schema::to_json(&tool.schema, message.view()) {
        Ok(it) => it,
        Err(error) => return failed(Reason::Nonsense, error.to_string()),
    };
    let answer = sent(&server, &tool, &out, &arguments, limits.seconds_max).await;
    let (mut result, contents) = answer::answer(&name, answer, &limits)?;
    match out.keep(contents).await {
        Ok(kept) => result.attachment = kept,
        // The call was done, so it isn't a failure.
        Err(fault) => {
            let note = shown(&format!("[what it attaches can't be kept: {fault}]"));
            result.text = Some(result.text.map_or(note.clone(), |it| format!("{it}\n{note}")));
        }
    }
    Ok(result)
}

/// Sends a call to the server, and returns the server's answer. If the call can't have happened,
/// because the server has ended or no longer knows the session, a new connection is opened, and the
/// call is sent once more.
async fn sent(
    server: &Server,
    tool: &Tool,
    out: &Outlets,
    arguments: &Value,
    seconds: u64,
) -> Result<Value, Failure> {
    let mut is_again = false;
    loop {
        // A server's start has a time limit of its own.
        let connection = server.connection().await?;
        if connection.has_changed(&tool.name) {
            return Err(Failure::Changed(CHANGED.to_owned()));
        }
        let wire = connection.wire;
        let (progress, said) = mpsc::channel(PROGRESS_MAX);
        // A call that takes too long isn't a failure of the server. So the outer result is an error
        // only for a timeout, and the inner result is the server's answer or failure.
        let called = async {
            tokio::select! {
                it = server.call(&wire, &tool.name, arguments.clone(), progress) => Ok(it),
                never = out.show(said) => match never {},
            }
        };
        match within(Duration::from_secs(seconds), called).await {
            Err(_) => {
                server.check_life(&wire).await;
                let text = format!("no answer within {seconds} s");
                return Err(Failure::Lost(format!("{text}; the limit seconds_max is {seconds}")));
            }
            Ok(Err(failure)) if failure.is_unsent() && !is_again => {
                wire.leave(&failure.to_string());
                is_again = true;
            }
            Ok(answer) => return answer,
        }
    }
}
