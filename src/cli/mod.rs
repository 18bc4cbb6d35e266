//! The command line. [`main`] runs the verb that the arguments name.
//!
//! A room is a subject. The rooms stand from the ground up, and each uses only what stands above
//! it. The file of a verb opens with the verb's name. Where a room is one verb, that file is the
//! room's `mod.rs`, and the files beside it are the verb's parts.

mod base;
mod spending;
mod log;
mod feed;
mod metadata;
mod workflow;
mod steering;
mod watch;
mod otel;
mod project;
mod inspect;
mod serve;
mod send;
mod chat;
mod eval;
mod demo;
mod completions;

use std::ffi::OsString;
use std::io::{self, BufWriter, IsTerminal as _, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{CommandFactory as _, FromArgMatches as _, Parser, Subcommand};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::LevelFilter;

use crate::audit::{Paint, Style};
use crate::engine::Builder;
use crate::listeners::tool;
use base::screen::{Ending, Failure, Screen, may_colour, style};
use base::{VERSION, organism, traces};

/// Runs the verb that the program's arguments name, and returns the exit code. `run` serves the
/// listeners of the builder and of the manifest. Most other verbs read the log, or ask a running
/// pump.
///
/// ```no_run
/// use pumphouse::prelude::*;
///
/// fn main() -> std::process::ExitCode {
///     pumphouse::cli(pumphouse::builder())
/// }
/// ```
///
/// A manifest may name the builder's factories and the built-in ones. If neither the builder nor
/// a manifest has listeners, the standard listeners of the house staff are served.
#[must_use]
pub fn main(builder: Builder) -> ExitCode {
    // Some listeners start this executable as a child process. Such a child ends here.
    if let Some(ended) = tool::child_process(std::env::args_os()) {
        return ended;
    }
    let _orphans = tool::adopt_orphans();
    let (out, mut err) = (io::stdout(), io::stderr());
    let colour = err.is_terminal() && may_colour();
    let (style, err_style) = (style(&out), Style { colour, ..Style::PLAIN });
    let mut out = BufWriter::new(out.lock());
    let mut to = Streams { out: &mut out, style, err: &mut err, err_style };
    let code = match parsed(Command::command(), std::env::args_os(), &mut to) {
        Ok((command, verb)) => {
            command.trace(&verb);
            command.end(verb, builder, &mut to)
        }
        Err(code) => code,
    };
    ExitCode::from(code)
}

/// Runs a verb in this process, and returns the exit code that [`main`] would return. The first
/// argument is the program's name. What the verb prints goes to `out`, and what is wrong goes to
/// `err`, both without colour. No traces are written.
///
/// The verb has the current folder, the environment and the standard input of this process. A verb
/// that a signal stops, such as `run`, catches this process's signals from then on. Listeners that
/// start this executable as a child process need a program that calls [`main`].
///
/// ```
/// let (mut out, mut err) = (Vec::new(), Vec::new());
/// let arguments = ["pumphouse", "describe", "nobody"];
/// let code = pumphouse::cli::main_with(pumphouse::builder(), arguments, &mut out, &mut err);
/// assert_eq!(code, 1);
/// assert!(String::from_utf8_lossy(&err).starts_with("error: "));
/// ```
#[must_use]
pub fn main_with(
    builder: Builder,
    arguments: impl IntoIterator<Item = impl Into<OsString> + Clone>,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> u8 {
    let mut to = Streams { out, style: Style::PLAIN, err, err_style: Style::PLAIN };
    match parsed(Command::command().term_width(HELP_WIDTH), arguments, &mut to) {
        Ok((command, verb)) => command.end(verb, builder, &mut to),
        Err(code) => code,
    }
}

/// The width of a help text that isn't written to a terminal.
const HELP_WIDTH: usize = 100;

/// Returns the command that the arguments name, and its verb. If they name none, writes the help or
/// what is wrong, and returns the exit code.
fn parsed(
    mut known: clap::Command,
    arguments: impl IntoIterator<Item = impl Into<OsString> + Clone>,
    to: &mut Streams<'_>,
) -> Result<(Command, Verb), u8> {
    let matches = known.try_get_matches_from_mut(arguments);
    let command = matches.and_then(|it| Command::from_arg_matches(&it));
    let mut command = match command.map_err(|error| error.format(&mut known)) {
        Ok(command) => command,
        Err(error) => {
            let is_wrong = error.use_stderr();
            let (stream, style) = match is_wrong {
                true => (&mut *to.err, to.err_style),
                false => (&mut *to.out, to.style),
            };
            let text = error.render();
            // A closed pipe is no failure: its reader has read enough.
            let _ = match style.colour {
                true => write!(stream, "{}", text.ansi()),
                false => write!(stream, "{text}"),
            };
            let _ = stream.flush();
            return Err(if is_wrong { UNTRIED } else { 0 });
        }
    };
    match command.verb.take() {
        Some(verb) => Ok((command, verb)),
        None if organism::here().is_some() => Ok((command, Verb::Run(serve::Run::default()))),
        None => {
            let _ = write!(to.err, "{}", known.render_help());
            Err(UNTRIED)
        }
    }
}

/// Where a verb and its failure are written.
struct Streams<'a> {
    out: &'a mut dyn Write,
    style: Style,
    err: &'a mut dyn Write,
    err_style: Style,
}

const WRONG: u8 = 1;
const UNTRIED: u8 = 2;

/// The pump for agents: XML in, through listeners, into a durable log, and out.
#[derive(Debug, Parser)]
#[command(
    name = "pumphouse",
    version = VERSION,
    propagate_version = true,
    after_help = EXAMPLES
)]
struct Command {
    /// The folder of the log pumphouse.db. Verbs that only read the log also take the file itself.
    /// [default: what organism.yaml here says, else data]
    #[arg(long, global = true, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Prints one JSON object a line.
    #[arg(long, global = true)]
    json: bool,
    /// Writes traces in JSON. RUST_LOG sets what is traced, such as RUST_LOG=debug.
    #[arg(long, global = true)]
    log_json: bool,
    /// Without a verb, `run` starts if there is an organism.yaml in the current folder.
    #[command(subcommand)]
    verb: Option<Verb>,
}

const EXAMPLES: &str = "\
Examples:
  pumphouse demo                     the whole trip, in a folder that is gone afterwards
  pumphouse run                      serve on 127.0.0.1:8765, log to data/pumphouse.db
  pumphouse init trial               a project with a listener of your own
  pumphouse check                    whether organism.yaml is sound, and what it serves
  pumphouse models --check           which models there are, and whether their servers answer
  pumphouse send message.xml         push what a file holds, print what comes back
  pumphouse chat oracle              talk with an agent
  pumphouse threads                  what there is in the log
  pumphouse show sess-k3v9x2ma       a thread, every message whole
  pumphouse tree                     which thread belongs to which, and their states
  pumphouse why sess-k3v9x2ma/7      what led to a message
  pumphouse prompt sess-k3v9x2ma/7   what an agent's model was shown
  pumphouse state sess-k3v9x2ma/7    a thread's folds as of this message, and what waited
  pumphouse feeds octopus            an agent's feeds, and what its last prompt had of them
  pumphouse watch                    what each agent does, live
  pumphouse metadata sess-k3v9x2ma   what its agents say of their own state
  pumphouse workflow run report.yml  begin a run of a workflow, and wait for its outputs
  pumphouse workflows                the runs of workflows, and how far each one is
  pumphouse trigger test report.yml --metadata '{}'  whether its trigger would fire, and why
  pumphouse replay sess-k3v9x2ma     whether listeners emit the same again
  pumphouse budget sess-k3v9x2ma     what a session has spent, and may spend
  pumphouse budget --by model        what was used of each model, and what it cost
  pumphouse fork sess-k3v9x2ma/7     go on from there in a thread of its own
  pumphouse cancel sess-k3v9x2ma     end a thread and all below it; pause, resume hold it
  pumphouse retry sess-k3v9x2ma      try listeners again whose fold panicked there
  pumphouse otel export --from 2d    spans of agents' work, to OpenTelemetry
  pumphouse verify                   whether the log is what was written
  pumphouse backup copy.db           the log in a file of its own, while it is written to
  pumphouse eval sums.yaml           how often an agent's answers are as expected
  pumphouse describe calculate       what a payload is, who takes it, an example
  pumphouse describe --provider gemini  a provider file of what is built in
  pumphouse inspect xml message.xml  whether it is well-formed, and where it isn't
  pumphouse inspect reply reply.txt  what an agent makes of what a model wrote
  pumphouse inspect stream --wire gemini reply.sse  what a model makes of a provider's stream

Exit codes: 0 done; 1 refused, failed or found wrong; 2 bad usage, or couldn't be tried.";

#[derive(Debug, Subcommand)]
enum Verb {
    Run(serve::Run),
    Check(project::check::Check),
    Models(project::models::Models),
    Test(project::test::Test),
    Eval(eval::Eval),
    Init(project::init::Init),
    Demo(demo::Demo),
    Send(send::Send),
    Chat(chat::Chat),
    Threads(log::threads::Threads),
    Show(log::show::Show),
    Tail(log::tail::Tail),
    Tree(log::tree::Tree),
    Why(log::why::Why),
    Prompt(log::prompt::Prompt),
    State(log::state::State),
    Feeds(feed::list::Feeds),
    Feed(feed::FeedVerb),
    Metadata(metadata::MetadataVerb),
    Watch(watch::Watch),
    Workflow(workflow::WorkflowVerb),
    Workflows(workflow::list::Workflows),
    Trigger(workflow::trigger::TriggerVerb),
    Replay(log::replay::Replay),
    Budget(spending::Budget),
    Fork(steering::fork::Fork),
    Cancel(steering::cancel::Cancel),
    Pause(steering::pause::Pause),
    Resume(steering::resume::Resume),
    Retry(steering::retry::Retry),
    Export(log::export::Export),
    Otel(otel::Otel),
    Verify(log::verify::Verify),
    Backup(log::backup::Backup),
    Describe(project::describe::Describe),
    Inspect(inspect::Inspect),
    Mcp(project::mcp::Mcp),
    Completions(completions::Completions),
}

impl Command {
    /// Runs the verb, and writes why it failed if it did. Returns the exit code.
    fn end(self, verb: Verb, builder: Builder, to: &mut Streams<'_>) -> u8 {
        let mut screen = Screen { out: to.out, style: to.style, json: self.json };
        let ended = self.run(verb, builder, &mut screen);
        let ended = ended.and_then(|ending| {
            screen.out.flush()?;
            Ok(ending)
        });
        let (code, text) = match ended {
            Ok(Ending::Well) | Err(Failure::Pipe) => return 0,
            Ok(Ending::Wrong) => return WRONG,
            Err(Failure::Wrong(text)) => (WRONG, text),
            Err(Failure::Untried(text)) => (UNTRIED, text),
        };
        let error = to.err_style.paint(Paint::Wrong, "error:");
        // If this write fails, too, there is no other place to report the failure.
        let _ = writeln!(to.err, "{error} {}", crate::audit::text(&text));
        code
    }

    fn run(self, verb: Verb, builder: Builder, screen: &mut Screen<'_>) -> Result<Ending, Failure> {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
        let runtime = runtime.map_err(|it| Failure::Untried(format!("no runtime: {it}")))?;
        let given = self.data.as_deref();
        let data = &given.map_or_else(organism::data, Path::to_owned);
        let ended = runtime.block_on(async {
            match verb {
                Verb::Run(it) => it.run(builder, given, screen).await,
                Verb::Check(it) => it.run(builder, given, screen),
                Verb::Models(it) => it.run(builder, screen).await,
                Verb::Test(it) => it.run(builder, screen).await,
                Verb::Eval(it) => Box::pin(it.run(builder, given, screen)).await,
                Verb::Init(it) => it.run(screen),
                Verb::Demo(it) => it.run(given, screen).await,
                Verb::Send(it) => it.run(screen).await,
                Verb::Chat(it) => it.run(builder, given, screen).await,
                Verb::Threads(it) => it.run(data, screen).await,
                Verb::Show(it) => it.run(data, screen).await,
                Verb::Tail(it) => it.run(data, screen).await,
                Verb::Tree(it) => it.run(data, screen).await,
                Verb::Why(it) => it.run(data, screen).await,
                Verb::Prompt(it) => it.run(data, screen).await,
                Verb::Feeds(it) => it.run(data, screen).await,
                Verb::Feed(it) => it.run(data, screen).await,
                Verb::Metadata(it) => it.run(data, screen).await,
                Verb::State(it) => it.run(organism::served(builder)?, data, screen).await,
                Verb::Replay(it) => it.run(organism::served(builder)?, data, screen).await,
                Verb::Budget(it) => it.run(organism::served(builder)?, data, screen).await,
                Verb::Watch(it) => Box::pin(it.run(data, screen)).await,
                Verb::Workflow(it) => it.run(data, screen).await,
                Verb::Workflows(it) => it.run(data, screen).await,
                Verb::Trigger(it) => it.run(screen).await,
                Verb::Fork(it) => it.run(screen).await,
                Verb::Cancel(it) => it.run(screen).await,
                Verb::Pause(it) => it.run(screen).await,
                Verb::Resume(it) => it.run(screen).await,
                Verb::Retry(it) => it.run(screen).await,
                Verb::Export(it) => it.run(data, screen).await,
                Verb::Otel(it) => it.run(data, screen).await,
                Verb::Verify(it) => it.run(data, screen).await,
                Verb::Backup(it) => it.run(data, screen).await,
                Verb::Describe(it) => it.run(builder, screen),
                Verb::Inspect(it) => it.run(builder, screen),
                Verb::Mcp(it) => it.run(builder, screen),
                Verb::Completions(it) => it.run(Command::command(), screen),
            }
        });
        runtime.shutdown_background();
        ended
    }

    /// Writes the program's traces to the standard error output.
    fn trace(&self, verb: &Verb) {
        let filter = EnvFilter::builder().with_default_directive(LevelFilter::WARN.into());
        let mut filter = filter.from_env_lossy();
        // In these verbs, refused pushes are expected.
        let is_meant = matches!(verb, Verb::Demo(_) | Verb::Test(_));
        if let Some(it) = NO_REFUSALS.parse().ok().filter(|_| is_meant) {
            filter = filter.add_directive(it);
        }
        let colour = io::stderr().is_terminal() && may_colour();
        let traces = tracing_subscriber::fmt().with_env_filter(filter).with_ansi(colour);
        // An error means that the embedding program has set up its own tracing, which then stays in
        // use.
        let _ = match self.log_json {
            true => traces.with_writer(traces::Json).json().try_init(),
            false => traces.with_writer(io::stderr).fmt_fields(traces::fields()).try_init(),
        };
    }
}

/// A filter directive that leaves out the traces of refusals at doors.
const NO_REFUSALS: &str = "pumphouse::engine::refusals=error";
