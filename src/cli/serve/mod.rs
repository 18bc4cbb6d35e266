//! `run`: serves the listeners of the builder and of the manifest, until a signal stops it.

mod core_dumps;
mod feeds_file;
mod rules_in_force;
mod reload;

use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::builder::{PossibleValuesParser, TypedValueParser as _};
use serde_json::json;

use crate::cli::base::data;
use crate::cli::base::organism::{Organism, check_open_doors, check_triggers, complained};
use crate::cli::base::program_paths::{self, KeptPaths};
use crate::cli::base::screen::{Ending, Failure, Screen};
use crate::cli::base::signals::Signals;
use crate::cli::otel::{FollowerSettings, Following};
use crate::client::Address;
use crate::clock;
use crate::door::{self, Options, Tcp, Tls, Tokens};
use crate::engine::{Builder, Plan, Pump};
use crate::listener::Described;
use crate::listeners;
use crate::listeners::models::WithModels;
use crate::log::{Durability, Error, MemoryLog, SqliteLog};
use crate::manifest::{Door, Places};
use crate::schema;
use crate::sink::Sink;
use reload::Reload;
use rules_in_force::RuleSources;

/// The time within which two signals count as one, in microseconds.
const SAME_SIGNAL_US: u64 = 1_000_000;

/// Serves: takes XML at a socket, hands it to the listeners, logs every message, sends answers.
///
/// A data folder has one `run` at a time. Ctrl-C or SIGTERM stops it: `run` takes nothing more, and
/// lets work under way end for up to 30 s. The next start goes on with the rest. Another signal, at
/// least a second after the first one, ends `run` at once. Even then nothing that was acknowledged
/// is lost, unless the log is in memory.
#[derive(Debug, Default, clap::Args)]
#[command(after_help = "\
Examples:
  pumphouse run                           # organism.yaml, if there is one here
  pumphouse run conf/organism.yaml
  pumphouse run --data /srv/pump --durability normal
  pumphouse run --unix /run/pump.sock                       # beside 127.0.0.1:8765
  pumphouse run --listen 0.0.0.0:8765 --tokens tokens.txt \\
    --tls-cert fullchain.pem --tls-key privkey.pem          # lines NAME:TOKEN

Then push, from any language, with netcat if need be:
  printf '<echo xmlns=\"https://xml-pipeline.org/ns/echo/v1\"><text>hi</text></echo>' \\
    | nc -N 127.0.0.1 8765")]
pub(crate) struct Run {
    /// The manifest; without it, organism.yaml in the current folder, if there is one. The options
    /// override it.
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
    /// A TCP address to listen at, instead of the TCP addresses of the manifest. The manifest's
    /// Unix sockets and metrics stay. The option may be given more than once. Port 0 takes a free
    /// port. [default: 127.0.0.1:8765]
    #[arg(long, value_name = "ADDR")]
    listen: Vec<String>,
    /// A certificate in PEM, followed by its intermediate certificates. With it, every TCP door
    /// speaks TLS only. The file is read again when it changes, and at SIGHUP.
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    tls_cert: Option<PathBuf>,
    /// The certificate's private key in PEM, in a file that only its owner and its group may read.
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
    /// A Unix socket to listen at, beside those of the manifest, for this user's programs: everyone
    /// who may open it is an operator. The option may be given more than once.
    #[arg(long, value_name = "PATH")]
    unix: Vec<PathBuf>,
    /// An address on this machine where Prometheus reads metrics at /metrics, such as
    /// 127.0.0.1:9464, beside those of the manifest. The option may be given more than once.
    #[arg(long, value_name = "ADDR")]
    metrics: Vec<String>,
    /// As --metrics, but other machines can reach the address, such as 0.0.0.0:9464. No token is
    /// asked for there, so keep strangers away from it.
    #[arg(long, value_name = "ADDR")]
    metrics_to_anyone: Vec<String>,
    /// What an acknowledged message survives: a power cut with full, a killed process with normal,
    /// nothing with memory. [default: full]
    #[arg(
        long,
        value_name = "HOW",
        value_parser = PossibleValuesParser::new(["full", "normal", "memory"])
            .try_map(|it| it.parse::<Durability>()),
    )]
    durability: Option<Durability>,
    /// Who may connect: a file of lines NAME:TOKEN or NAME:TOKEN:operator. An address that other
    /// machines can reach needs such a file. The file is read again at SIGHUP, which ends the
    /// connections of tokens that the file no longer has.
    #[arg(long, value_name = "FILE")]
    tokens: Option<PathBuf>,
}

impl Run {
    pub(crate) async fn run(
        self,
        builder: Builder,
        data: Option<&Path>,
        to: &mut Screen<'_>,
    ) -> Result<Ending, Failure> {
        let mut signals = Signals::listen()?;
        if let Err(error) = core_dumps::off() {
            tracing::warn!(%error, "core dumps are on: one would show keys and messages");
        }
        let organism = self.over(Organism::read_live(self.file.as_deref(), builder, data)?)?;
        let (kept, spans) = (KeptPaths::of(&organism), collect_span_settings(&organism));
        let sinks = sinks(&organism)?;
        let Organism { mut builder, data, durability, tokens, doors, name, trigger_source, .. } =
            organism;
        let (places, context) = (organism.places, organism.context);
        let models = builder.models().clone();
        let tls = doors.iter().filter_map(Door::tls).cloned().collect();
        let manifest = organism.file;
        let files = places.as_ref().map(Places::files).unwrap_or_default();
        let (models_in_force, tokens_in_force) = (models.clone(), tokens.clone());
        let rules =
            RuleSources { manifest, files, models: models_in_force, tokens: tokens_in_force };
        let copies = (durability != Durability::Memory).then(|| data.join(data::LOG));
        let mut reload = Reload::of(tls, tokens.clone(), rules, copies)?;
        let (mut addresses, mut metrics) = (Vec::new(), Vec::new());
        for door in &doors {
            match door {
                Door::Tcp { address, tls } => {
                    let mut options = Options::default().tokens(tokens.clone());
                    options.tls.clone_from(tls);
                    let bound = Tcp::bind(address.as_str(), options).await;
                    let door = bound.map_err(|error| unbound(address, &error, &data))?;
                    let address = door.local_addr().to_string();
                    addresses.push(match tls {
                        Some(_) => Address::Tls { address, authority: None },
                        None => Address::Tcp(address),
                    });
                    builder = builder.with(door);
                }
                Door::Metrics(address) | Door::MetricsToAnyone(address) => {
                    let bound = match door {
                        Door::Metrics(_) => door::Metrics::bind(address.as_str()).await,
                        _ => door::Metrics::bind_to_anyone(address.as_str()).await,
                    };
                    let door = bound.map_err(|error| unshown(address, &error))?;
                    let door = door.source(listeners::model_metrics(models.clone()));
                    metrics.push(format!("http://{}/metrics", door.local_addr()));
                    builder = builder.with(sinks.iter().fold(spans.show(door), lag));
                }
                Door::Unix(path) => {
                    builder = builder.with(unix(path, &tokens).await?);
                    addresses.push(Address::Unix(path.clone()));
                }
            }
        }
        let source = match durability {
            Durability::Memory => trigger_source,
            _ => trigger_source.keep_position_beside(&data.join(data::LOG)).map_err(untried)?,
        };
        let (builder, place) = log(builder.with((sinks, source.clone())), &data, durability)?;
        feeds_file::write(&context)?;
        let plan = builder.build().map_err(|it| complained(&it, places.as_ref()))?;
        check_triggers(&source, plan.capabilities(), places.as_ref())?;
        prepare_programs(&plan, (&doors, &tokens), kept, places.as_ref())?;
        source.begin_at_end_of(plan.log()).await.map_err(untried)?;
        let (listeners, push) = (plan.listeners().to_vec(), push(&plan));
        let greeting = Greeting { name, listeners, push, addresses, metrics, place, durability };
        serve(plan, spans, &greeting, &mut reload, &mut signals, to).await
    }

    fn tls(&self) -> Result<Option<Tls>, Failure> {
        let (Some(certificate), Some(key)) = (&self.tls_cert, &self.tls_key) else {
            return Ok(None);
        };
        let tls = Tls::read(certificate, key);
        tls.map(Some).map_err(|error| Failure::Untried(error.to_string()))
    }

    /// Applies the options: they replace values of the manifest, or add doors.
    fn over(&self, organism: Organism) -> Result<Organism, Failure> {
        let mut organism = organism;
        if let Some(durability) = self.durability {
            organism.durability = durability;
        }
        if let Some(path) = &self.tokens {
            let read = Tokens::read(path);
            organism.tokens = read.map_err(|it| Failure::Untried(it.to_string()))?;
        }
        if !self.listen.is_empty() {
            let tcp = |address: &String| Door::Tcp { address: address.clone(), tls: None };
            // The other doors stay as the manifest has them.
            organism.doors.retain(|it| !matches!(it, Door::Tcp { .. }));
            organism.doors.splice(..0, self.listen.iter().map(tcp));
        }
        if let Some(given) = self.tls()? {
            for door in &mut organism.doors {
                if let Door::Tcp { tls, .. } = door {
                    *tls = Some(given.clone());
                }
            }
        }
        organism.doors.extend(self.unix.iter().cloned().map(Door::Unix));
        organism.doors.extend(self.metrics.iter().cloned().map(Door::Metrics));
        let shown = self.metrics_to_anyone.iter().cloned();
        organism.doors.extend(shown.map(Door::MetricsToAnyone));
        Ok(organism)
    }
}

/// Checks that programs can't reach what is the pump's, and makes their default folders.
fn prepare_programs(
    plan: &Plan,
    (doors, tokens): (&[Door], &Tokens),
    kept: KeptPaths,
    places: Option<&Places>,
) -> Result<(), Failure> {
    check_open_doors(plan, doors, tokens, places)?;
    kept.check(plan, places)?;
    program_paths::make_roots(plan)
}

async fn serve(
    plan: Plan,
    spans: FollowerSettings,
    greeting: &Greeting,
    reload: &mut Reload,
    signals: &mut Signals,
    to: &mut Screen<'_>,
) -> Result<Ending, Failure> {
    let pump = plan.start();
    // A start may handle messages one by one before the pump is ready.
    let is_stopped = tokio::select! {
        biased;
        ready = pump.ready() => {
            ready?;
            false
        }
        _ = signals.next() => true,
    };
    if is_stopped {
        pump.shutdown().await?;
        return Ok(Ending::Well);
    }
    let following = match spans.start(&pump).await {
        Ok(following) => following,
        Err(failure) => {
            pump.shutdown().await?;
            return Err(failure);
        }
    };
    reload.record_start(&pump).await;
    // The pump serves even if nobody reads the output.
    let _ = greeting.say(to);
    let signal = tokio::select! {
        signal = signals.next() => signal,
        never = reload.forever(&pump) => match never {},
    };
    let _ = said(
        to,
        &json!({ "event": "stopping", "signal": signal }),
        &format!(
            "{signal}: takes nothing more, and lets what is under way end for up to {} s; \
         Ctrl-C again ends it at once",
            pump.limits().drain_time_max.as_secs(),
        ),
    );
    stop(&pump, following, signals, to).await
}

async fn stop(
    pump: &Pump,
    following: Following,
    signals: &mut Signals,
    to: &mut Screen<'_>,
) -> Result<Ending, Failure> {
    let all_stopped = async {
        let stopped = pump.shutdown().await;
        following.stop().await;
        stopped
    };
    tokio::select! {
        stopped = all_stopped => {
            stopped?;
            let _ = said(to, &json!({ "event": "stopped" }), "stopped; the log is closed");
            Ok(Ending::Well)
        }
        signal = again(signals) => {
            let text = "what was under way is taken up at the next start";
            Err(Failure::Wrong(format!("{signal} again: ended at once; {text}")))
        }
    }
}

/// Waits for a signal that comes at least a second from now. An earlier signal counts as a
/// repetition of the first one: a signal may go to a whole group of processes, and one of them may
/// also pass it on to this process.
async fn again(signals: &mut Signals) -> &'static str {
    let until = clock::now_us() + SAME_SIGNAL_US;
    loop {
        let signal = signals.next().await;
        if clock::now_us() >= until {
            return signal;
        }
    }
}

/// Gives the builder its log. Also returns a description of the log's place, for people.
pub(crate) fn log(
    builder: Builder,
    data: &Path,
    durability: Durability,
) -> Result<(Builder, String), Failure> {
    if durability == Durability::Memory {
        return Ok((builder.with(MemoryLog::new()), "memory".to_owned()));
    }
    let made = data::make(data);
    made.map_err(|error| {
        let text = "can't be made; name another with --data DIR";
        Failure::Untried(format!("the folder {} {text}: {error}", data.display()))
    })?;
    let path = data.join(data::LOG);
    let log = SqliteLog::open(&path, durability).map_err(|error| unopened(data, error))?;
    Ok((builder.with(log), path.display().to_string()))
}

/// Collects what the exporter of spans needs to know of an organism.
fn collect_span_settings(organism: &Organism) -> FollowerSettings {
    FollowerSettings {
        says: organism.otel.clone(),
        name: organism.name.clone(),
        log: (organism.durability != Durability::Memory).then(|| organism.data.join(data::LOG)),
        lag: Arc::default(),
    }
}

/// Returns the sinks of the manifest. Each keeps its position beside the log, unless the log is in
/// memory.
fn sinks(organism: &Organism) -> Result<Vec<Sink>, Failure> {
    for sink in &organism.returns {
        let name = sink.name();
        tracing::warn!(
            sink = name,
            "only a program that embeds the pump has a sink of the type return"
        );
    }
    if organism.durability == Durability::Memory {
        return Ok(organism.sinks.clone());
    }
    let log = organism.data.join(data::LOG);
    let kept = organism.sinks.iter().map(|it| it.clone().keep_position_beside(&log));
    kept.collect::<Result<_, _>>().map_err(|it| Failure::Untried(it.to_string()))
}

/// Makes a failure that keeps the pump from starting.
fn untried(error: impl std::fmt::Display) -> Failure {
    Failure::Untried(error.to_string())
}

/// Adds a sink's lag to a door for metrics.
fn lag(door: door::Metrics, sink: &Sink) -> door::Metrics {
    let help = "Entries of the log that a sink doesn't have yet.";
    door.labelled_gauge("sink_lag_entries", help, ("sink", sink.name()), sink.lag())
}

#[cfg(unix)]
async fn unix(path: &Path, tokens: &Tokens) -> Result<door::Unix, Failure> {
    let bound = door::Unix::at(path, Options::default().tokens(tokens.clone())).await;
    bound.map_err(|error| {
        Failure::Untried(format!("{error}; give another with --unix PATH, or in the manifest"))
    })
}

#[cfg(not(unix))]
async fn unix(path: &Path, _: &Tokens) -> Result<Option<Tcp>, Failure> {
    let path = path.display();
    Err(Failure::Untried(format!("{path}: this system has no Unix sockets; leave --unix out")))
}

fn unopened(data: &Path, error: Error) -> Failure {
    let data = data.display();
    if error == Error::Full {
        let way = "make room, or serve another folder with --data DIR";
        return Failure::Untried(format!("the disk that holds {data} is full; {way}"));
    }
    let Error::Locked { process, .. } = error else { return error.into() };
    let who = process.map_or_else(|| "another process".to_owned(), |it| format!("process {it}"));
    let way = "stop it first, or serve another folder with --data DIR";
    let text = format!("{who} serves the folder {data} already, and a folder has one `run`; {way}");
    Failure::Untried(text)
}

fn unbound(address: &str, error: &door::Error, data: &Path) -> Failure {
    let text = match error {
        door::Error::Address(it) if it.kind() == io::ErrorKind::AddrInUse => {
            // Most often, another `run` on the same data folder listens there.
            let path = data.join(data::LOG);
            let opened = path.exists().then(|| SqliteLog::open(path, Durability::Full));
            if let Some(Err(error @ Error::Locked { .. })) = opened {
                return unopened(data, error);
            }
            let way = "stop who does, or choose another with --listen ADDR";
            format!("{address} is listened on already; {way}")
        }
        door::Error::Address(_) => format!("{address}: {error}; give HOST:PORT with --listen"),
        door::Error::Exposed(_) => format!("{error}, with --tokens FILE"),
        _ => format!("{address}: {error}"),
    };
    Failure::Untried(text)
}

fn unshown(address: &str, error: &door::Error) -> Failure {
    let way = "give another with --metrics ADDR, or in the manifest";
    Failure::Untried(match error {
        door::Error::Shown(_) => error.to_string(),
        _ => format!("{address}: {error}; {way}"),
    })
}

/// The text that is printed once the doors are open.
struct Greeting {
    name: Option<String>,
    listeners: Vec<Described>,
    push: Option<String>,
    addresses: Vec<Address>,
    metrics: Vec<String>,
    place: String,
    durability: Durability,
}

impl Greeting {
    fn say(&self, to: &mut Screen<'_>) -> io::Result<()> {
        let names: Vec<&str> = self.listeners.iter().map(|it| it.name.as_str()).collect();
        // The listeners that every pump has are named last.
        let staff = listeners::staff();
        let is_staff = |it: &&str| staff.iter().any(|one| one.name() == *it);
        let (always, own): (Vec<&str>, Vec<&str>) = names.iter().copied().partition(is_staff);
        let addresses: Vec<String> = self.addresses.iter().map(ToString::to_string).collect();
        let object = json!({
            "event": "accepting",
            "name": self.name,
            "listen": addresses,
            "metrics": self.metrics,
            "log": self.place,
            "durability": self.durability.as_str(),
            "listeners": names,
            "process": std::process::id(),
        });
        let place = match self.durability {
            Durability::Memory => "keeps its log in memory only".to_owned(),
            how => format!("logs to {} ({how})", self.place),
        };
        let line = format!(
            "{} accepts XML on {}, {place}, for {}; beside them {}",
            match &self.name {
                Some(name) => format!("{name} (pumphouse {})", env!("CARGO_PKG_VERSION")),
                None => format!("pumphouse {}", env!("CARGO_PKG_VERSION")),
            },
            if addresses.is_empty() { "no door".to_owned() } else { addresses.join(" and ") },
            if own.is_empty() { "no listener yet".to_owned() } else { own.join(", ") },
            always.join(", "),
        );
        let metrics = self.metrics.iter().map(|it| format!("\nmetrics: {it}"));
        let metrics: String = metrics.collect();
        said(to, &object, &format!("{line}{metrics}\ntry: {}", self.example()))
    }

    /// Returns a shell command that pushes to this pump, or `pumphouse demo` if there is no door.
    fn example(&self) -> String {
        let Some(first) = self.addresses.first() else { return "pumphouse demo".to_owned() };
        let at = first.to_string().parse::<SocketAddr>();
        let Some(at) = at.ok().filter(|it| it.ip().is_loopback()) else {
            return format!("PUMPHOUSE_TOKEN=… pumphouse send --connect {first} message.xml");
        };
        let (host, port) = (at.ip(), at.port());
        match &self.push {
            Some(push) => format!("printf '{push}' | nc -N {host} {port}"),
            None => format!("nc -N {host} {port} < message.xml"),
        }
    }
}

/// Returns an example of a payload for the first listener that isn't one of `listeners::staff`.
/// Returns None if the example is longer than 200 bytes, or if a shell's `printf` in single quotes
/// would change it.
fn push(plan: &Plan) -> Option<String> {
    let staff = listeners::staff();
    let own = plan.listeners().iter().find(|it| staff.iter().all(|one| one.name() != it.name));
    let name = own?.takes.iter().min()?.clone();
    let schema = plan.schemas().into_iter().find(|it| it.name == name)?;
    let example = schema::example(schema);
    let is_plain = !example.contains(['\'', '\\', '%', '\n']) && example.len() <= 200;
    is_plain.then_some(example)
}

/// Prints a line, or the object if JSON is wanted, and flushes the output.
fn said(to: &mut Screen<'_>, object: &serde_json::Value, line: &str) -> io::Result<()> {
    if to.json {
        to.object(object)?;
    } else {
        to.line(line)?;
    }
    to.flush()
}
