//! `run`: serves what the builder holds, until it is told to stop.

use std::fs;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use clap::builder::{PossibleValuesParser, TypedValueParser as _};
use serde_json::json;

use crate::cli::data;
use crate::cli::reload::Reload;
use crate::cli::screen::{Ending, Failure, Screen};
use crate::cli::signals::Signals;
use crate::client::Address;
use crate::clock;
use crate::door::{self, Options, Tcp, Tls, Tokens};
use crate::engine::{Builder, Plan, Pump};
use crate::listener::Described;
use crate::log::{Durability, Error, MemoryLog, SqliteLog};

/// Signals that come within so long are one.
const SAME_SIGNAL_US: u64 = 1_000_000;

/// Serves: takes XML at a socket, hands it to the listeners, logs every message, sends answers.
///
/// One `run` a data folder. Ctrl-C or SIGTERM stops it: it takes nothing more, lets what is under
/// way come to its end for up to 30 s, and takes up the rest at its next start. A second one, a
/// second later or more, ends it at once; nothing that was acknowledged is lost then either.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  pumphouse run
  pumphouse run --data /srv/pump --durability normal
  pumphouse run --unix /run/pump.sock                       # beside 127.0.0.1:8765
  pumphouse run --listen 0.0.0.0:8765 --tokens tokens.txt \\
    --tls-cert fullchain.pem --tls-key privkey.pem          # lines NAME:TOKEN

Then push, from any language, with netcat if need be:
  printf '<echo xmlns=\"https://xml-pipeline.org/ns/echo/v1\"><text>hi</text></echo>' \\
    | nc -N 127.0.0.1 8765")]
pub(crate) struct Run {
    /// Where to listen; may be given more than once. Port 0 takes a free one.
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:8765")]
    listen: Vec<String>,
    /// A certificate in PEM, with those between it and its issuer behind it: then every --listen
    /// speaks TLS, and nothing else. SIGHUP reads it again.
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    tls_cert: Option<PathBuf>,
    /// The certificate's private key in PEM, for this user's eyes only.
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
    /// A Unix socket to listen at as well, for this user's programs: whoever may open it is an
    /// operator. May be given more than once.
    #[arg(long, value_name = "PATH")]
    unix: Vec<PathBuf>,
    /// What an acknowledged message survives: full a power cut, normal a killed process, memory
    /// nothing.
    #[arg(
        long,
        value_name = "HOW",
        default_value = "full",
        value_parser = PossibleValuesParser::new(["full", "normal", "memory"])
            .try_map(|it| it.parse::<Durability>()),
    )]
    durability: Durability,
    /// Who may come in: a file of lines NAME:TOKEN, or NAME:TOKEN:operator. Needed to listen
    /// where other machines can reach it.
    #[arg(long, value_name = "FILE")]
    tokens: Option<PathBuf>,
}

impl Run {
    pub(crate) async fn run(
        self,
        builder: Builder,
        data: &Path,
        to: &mut Screen<'_>,
    ) -> Result<Ending, Failure> {
        let mut signals = Signals::listen()?;
        let tokens = match &self.tokens {
            None => Tokens::default(),
            Some(path) => Tokens::read(path).map_err(|it| Failure::Untried(it.to_string()))?,
        };
        let tls = self.tls()?;
        let mut reload = Reload::of(tls.clone())?;
        let (mut builder, mut addresses) = (builder, Vec::new());
        for address in &self.listen {
            let options = Options::default().tokens(tokens.clone());
            let options = Options { tls: tls.clone(), ..options };
            let bound = Tcp::bind(address.as_str(), options).await;
            let door = bound.map_err(|error| unbound(address, &error, data))?;
            let address = door.local_addr().to_string();
            addresses.push(match tls {
                Some(_) => Address::Tls { address, authority: None },
                None => Address::Tcp(address),
            });
            builder = builder.with(door);
        }
        for path in &self.unix {
            builder = builder.with(unix(path, &tokens).await?);
            addresses.push(Address::Unix(path.clone()));
        }
        let (builder, place) = log(builder, data, self.durability)?;
        let plan = builder.build().map_err(|it| Failure::Untried(it.to_string()))?;
        let greeting = Greeting {
            listeners: plan.listeners().to_vec(),
            addresses,
            place,
            durability: self.durability,
        };
        serve(plan, &greeting, &mut reload, &mut signals, to).await
    }

    fn tls(&self) -> Result<Option<Tls>, Failure> {
        let (Some(certificate), Some(key)) = (&self.tls_cert, &self.tls_key) else {
            return Ok(None);
        };
        let tls = Tls::read(certificate, key);
        tls.map(Some).map_err(|error| Failure::Untried(error.to_string()))
    }
}

async fn serve(
    plan: Plan,
    greeting: &Greeting,
    reload: &mut Reload,
    signals: &mut Signals,
    to: &mut Screen<'_>,
) -> Result<Ending, Failure> {
    let pump = plan.start();
    pump.ready().await?;
    // Whoever no longer reads what is said here may still want to be served.
    let _ = greeting.say(to);
    let signal = tokio::select! {
        signal = signals.next() => signal,
        never = reload.forever() => match never {},
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
    stop(&pump, signals, to).await
}

async fn stop(pump: &Pump, signals: &mut Signals, to: &mut Screen<'_>) -> Result<Ending, Failure> {
    tokio::select! {
        stopped = pump.shutdown() => {
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

/// The next signal that means more than the last: one that comes at once is the same, said to the
/// whole group of processes and passed on by one of them.
async fn again(signals: &mut Signals) -> &'static str {
    let until = clock::now_us() + SAME_SIGNAL_US;
    loop {
        let signal = signals.next().await;
        if clock::now_us() >= until {
            return signal;
        }
    }
}

/// Gives the builder its log; where it is, for people.
fn log(
    builder: Builder,
    data: &Path,
    durability: Durability,
) -> Result<(Builder, String), Failure> {
    if durability == Durability::Memory {
        return Ok((builder.with(MemoryLog::new()), "memory".to_owned()));
    }
    let made = fs::create_dir_all(data);
    made.map_err(|error| {
        let text = "can't be made; name another with --data DIR";
        Failure::Untried(format!("the folder {} {text}: {error}", data.display()))
    })?;
    let path = data.join(data::LOG);
    let log = SqliteLog::open(&path, durability).map_err(|error| unopened(data, error))?;
    Ok((builder.with(log), path.display().to_string()))
}

#[cfg(unix)]
async fn unix(path: &Path, tokens: &Tokens) -> Result<door::Unix, Failure> {
    let bound = door::Unix::at(path, Options::default().tokens(tokens.clone())).await;
    bound.map_err(|error| Failure::Untried(format!("{error}; give another with --unix PATH")))
}

#[cfg(not(unix))]
async fn unix(path: &Path, _: &Tokens) -> Result<Option<Tcp>, Failure> {
    let path = path.display();
    Err(Failure::Untried(format!("{path}: this system has no Unix sockets; leave --unix out")))
}

fn unopened(data: &Path, error: Error) -> Failure {
    let Error::Locked { process, .. } = error else { return error.into() };
    let data = data.display();
    let who = process.map_or_else(|| "another process".to_owned(), |it| format!("process {it}"));
    let way = "stop it first, or serve another folder with --data DIR";
    let text = format!("{who} serves the folder {data} already, and a folder has one `run`; {way}");
    Failure::Untried(text)
}

fn unbound(address: &str, error: &door::Error, data: &Path) -> Failure {
    let text = match error {
        door::Error::Address(it) if it.kind() == io::ErrorKind::AddrInUse => {
            // Most often it is this very folder's own `run` that listens there.
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

/// What is said when the doors are open.
struct Greeting {
    listeners: Vec<Described>,
    addresses: Vec<Address>,
    place: String,
    durability: Durability,
}

impl Greeting {
    fn say(&self, to: &mut Screen<'_>) -> io::Result<()> {
        let names: Vec<&str> = self.listeners.iter().map(|it| it.name.as_str()).collect();
        let addresses: Vec<String> = self.addresses.iter().map(ToString::to_string).collect();
        let object = json!({
            "event": "accepting",
            "listen": addresses,
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
            "pumphouse {} accepts XML on {}, {place}, for {}",
            env!("CARGO_PKG_VERSION"),
            addresses.join(" and "),
            if names.is_empty() { "no listener yet".to_owned() } else { names.join(", ") },
        );
        said(to, &object, &format!("{line}\ntry: {}", self.example()))
    }

    /// A push that this very pump answers.
    fn example(&self) -> String {
        let Some(first) = self.addresses.first() else { return "pumphouse demo".to_owned() };
        let at = first.to_string().parse::<SocketAddr>();
        let Some(at) = at.ok().filter(|it| it.ip().is_loopback()) else {
            return format!("PUMPHOUSE_TOKEN=… pumphouse send --connect {first} message.xml");
        };
        let (host, port) = (at.ip(), at.port());
        let namespace = "https://xml-pipeline.org/ns/calculate/v1";
        let takes = |it: &Described| it.takes.iter().any(|it| it.is(namespace, "calculate"));
        if !self.listeners.iter().any(takes) {
            return format!("nc -N {host} {port} < message.xml");
        }
        format!(
            "printf '<calculate xmlns=\"{namespace}\"><expression>6*7</expression></calculate>' \
             | nc -N {host} {port}"
        )
    }
}

/// Says something now.
fn said(to: &mut Screen<'_>, object: &serde_json::Value, line: &str) -> io::Result<()> {
    if to.json {
        to.object(object)?;
    } else {
        to.line(line)?;
    }
    to.flush()
}
