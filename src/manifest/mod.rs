//! A pump as a file: builder calls, written in YAML.
//!
//! ```yaml
//! name: sums
//! data: data
//! tokens: {file: tokens.txt}
//! doors:
//!   - tcp: ${HOST:-127.0.0.1}:8765
//! listeners:
//!   - use: calculate
//!   - use: echo
//!     name: parrot
//!     peers: []
//! limits:
//!   handlers_max: 40
//! ```
//!
//! A manifest can't do anything that a caller in Rust couldn't. `docs/manifest.md` has every key.

mod amount;
mod check;
mod document;
mod expand;
mod mistake;
mod single_settings;
pub(crate) mod provider;
mod read;
mod schema;
mod settings;
mod shape;
mod yaml;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Serialize;

use crate::door::{Tls, Tokens};
use crate::engine::{Builder, Complaints, Plugin};
use crate::limits::Limits;
use crate::listener::Listener;
use crate::listeners::describe::{Allow, describe};
use crate::log::Durability;
use crate::model::{Models, ProviderEvents, Secret};
use crate::schema::Schema;
use crate::sink::{Return, Sink};

pub(crate) use document::Document;
pub use mistake::{Mistake, Mistakes, Place};
pub use schema::json_schema;

/// The name of the manifest that commands look for where none is given.
pub const FILE: &str = "organism.yaml";
/// Where the log is if nothing says otherwise.
pub(crate) const DATA: &str = "data";

/// A manifest that was read and has no mistakes.
#[non_exhaustive]
pub struct Manifest {
    /// The file.
    pub file: PathBuf,
    /// What the pump is called.
    pub name: Option<String>,
    /// The folder of the log; none without the key `data`.
    pub data: Option<PathBuf>,
    /// What an acknowledged message survives; none without the key `durability`.
    pub durability: Option<Durability>,
    /// The identities that may connect, with their tokens.
    pub tokens: Option<Tokens>,
    /// Where to listen; none without the key `doors`.
    pub doors: Option<Vec<Door>>,
    /// Its listeners; none without the key `listeners`.
    pub listeners: Option<Vec<Listener>>,
    /// The payloads that its JSON Schemas describe.
    pub schemas: Vec<Schema>,
    /// Its models, by the names that its listeners know them by.
    pub models: Models,
    /// Where spans for OpenTelemetry go; none without the key `otel`.
    pub otel: Option<Otel>,
    /// Where entries and live payloads are copied to.
    pub sinks: Vec<Sink>,
    /// Sinks of the type `return`, which the program that embeds the pump reads.
    pub returns: Vec<Return>,
    /// Who may ask `describe` for what; none where the pump has no listener `describe`.
    pub meta: Option<Allow>,
    /// The provider files of its models, in the order of the models.
    pub providers: Vec<UsedProvider>,
    /// What is probably wrong in its provider files, although the pump can run with them.
    pub warnings: Vec<Mistakes>,
    /// The bounds.
    pub limits: Limits,
    /// The number of workers; none without the key `workers`.
    pub workers: Option<usize>,
    /// The time between two heartbeats, which only a pump with a name writes; none without the key
    /// `heartbeat`.
    pub heartbeat: Option<Duration>,
    /// Where its listeners stand in the file.
    pub places: Places,
    /// The files of its agents.
    pub(crate) context: Context,
}

/// What a manifest is read with in place of what it says.
#[derive(Clone, Copy, Default)]
pub(crate) struct Overrides<'a> {
    /// The names of an agent and of the model that it has in place of its own.
    pub(crate) model: Option<(&'a str, &'a str)>,
    /// The folder of the log.
    pub(crate) data: Option<&'a Path>,
}

/// The files of agents, in the layout of ADR-013.
#[derive(Clone, Debug, Default)]
pub(crate) struct Context {
    /// The folder with a folder for each agent.
    pub(crate) folder: PathBuf,
    /// The feeds that the agents have of services, by the agents.
    pub(crate) feeds: BTreeMap<String, Vec<AgentFeed>>,
}

/// A feed of a service in the `feeds.json` of an agent.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct AgentFeed {
    pub(crate) name: String,
    pub(crate) source: String,
    pub(crate) path: String,
    /// In seconds.
    pub(crate) ttl: serde_json::Number,
}

impl Manifest {
    /// The sinks of the manifest and of its provider files.
    #[must_use]
    pub fn all_sinks(&self) -> Vec<Sink> {
        let of_providers = self.providers.iter().flat_map(|used| &used.sinks);
        self.sinks.iter().chain(of_providers).cloned().collect()
    }

    /// The sinks of the type `return`, of the manifest and of its provider files.
    #[must_use]
    pub fn all_returns(&self) -> Vec<Return> {
        let of_providers = self.providers.iter().flat_map(|used| &used.returns);
        self.returns.iter().chain(of_providers).cloned().collect()
    }
}

/// The provider file of a model of a manifest.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct UsedProvider {
    /// The model, by its name in the manifest.
    pub model: String,
    /// The file.
    pub file: PathBuf,
    /// Where the provider's own events go: `stream.sinks` of the file. Where several models use one
    /// file, only the first model has the sinks, and they get the events of all.
    pub sinks: Vec<Sink>,
    /// The file's sinks of the type `return`, which the program that embeds the pump reads.
    pub returns: Vec<Return>,
    events: ProviderEvents,
}

/// Where spans for OpenTelemetry go, and what they hold.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Otel {
    /// The URL of the collector, without `/v1/traces`.
    pub endpoint: String,
    /// Further headers of each request.
    pub headers: Vec<(String, Secret)>,
    /// Whether spans have the texts of messages, arguments, results and errors.
    pub content: bool,
    /// Whether metrics are sent beside spans.
    pub metrics: bool,
}

impl Otel {
    /// A collector without further headers, which gets metrics and spans, and no content.
    #[must_use]
    pub fn at(endpoint: &str) -> Otel {
        let (endpoint, headers) = (endpoint.to_owned(), Vec::new());
        Otel { endpoint, headers, content: false, metrics: true }
    }

    /// The headers, for the one place that sends them.
    #[cfg(feature = "otel")]
    pub(crate) fn headers(&self) -> impl Iterator<Item = (&str, &str)> {
        self.headers.iter().map(|(name, value)| (name.as_str(), value.reveal()))
    }
}

/// Where the listeners of a manifest stand, by name.
#[derive(Clone, Debug, Default)]
pub struct Places {
    file: String,
    /// The pod files of the manifest.
    pods: Vec<String>,
    listeners: BTreeMap<String, Place>,
}

impl Places {
    /// Whether the manifest has a listener of this name.
    pub(crate) fn has(&self, listener: &str) -> bool {
        self.listeners.contains_key(listener)
    }

    /// Gives each complaint of a builder its place in the manifest: that of its listener, or else
    /// line 1, column 1.
    #[must_use]
    pub fn find(&self, complaints: &Complaints) -> Mistakes {
        let place = |it: Option<&str>| self.listeners.get(it?).copied();
        let all = complaints.by_listener().map(|(listener, text)| {
            let place = place(listener).unwrap_or(Place::new(1, 1));
            Mistake::new(place, text)
        });
        Mistakes::new(&self.file, all.collect()).with_pods(self.pods.clone())
    }
}

/// A door as a manifest describes it. Nothing listens yet.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Door {
    /// A host and a port.
    Tcp {
        /// HOST:PORT.
        address: String,
        /// The certificate, where it speaks TLS.
        tls: Option<Tls>,
    },
    /// The path of a Unix socket.
    Unix(PathBuf),
    /// HOST:PORT, for metrics only, and reachable only from this machine.
    Metrics(String),
    /// HOST:PORT, for metrics only, and reachable from other machines, too.
    MetricsToAnyone(String),
}

impl Door {
    /// Its certificate, if it has one.
    #[must_use]
    pub fn tls(&self) -> Option<&Tls> {
        match self {
            Door::Tcp { tls, .. } => tls.as_ref(),
            Door::Unix(_) | Door::Metrics(_) | Door::MetricsToAnyone(_) => None,
        }
    }
}

/// Installs the name, listeners, models, payloads, limits, workers and heartbeat, and `describe` if
/// the manifest has `meta`. The caller opens the doors, the log and the sinks, and sends the spans.
impl Plugin for Manifest {
    fn install(self, builder: &mut Builder) {
        let mut all = std::mem::take(builder).limits(self.limits);
        if let Some(workers) = self.workers {
            all = all.workers(workers);
        }
        if let Some(name) = self.name {
            all = all.name(name);
        }
        if let Some(every) = self.heartbeat {
            all = all.heartbeat(every);
        }
        self.schemas.into_iter().for_each(|it| all.declare(it));
        self.models.iter().for_each(|(name, it)| all.model(name, it.clone()));
        *builder = all.with((self.listeners.unwrap_or_default(), self.meta.map(describe)));
    }
}
