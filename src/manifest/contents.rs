//! The contents of a manifest, once it was read.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Serialize;

use crate::door::{Tls, Tokens};
use crate::engine::Complaints;
use crate::limits::Limits;
use crate::listener::Listener;
use crate::listeners::describe::Allow;
use crate::listeners::trigger::WrongTrigger;
use crate::log::Durability;
use crate::manifest::hide_variables::KnownVariables;
use crate::manifest::mistake::{Mistake, Mistakes, Place};
use crate::model::{Models, ProviderEvents};
use crate::schema::Schema;
use crate::secret::Secret;
use crate::sink::{Return, Sink};
use crate::trigger_source::TriggerSource;

/// The default folder of the log.
pub const DATA: &str = "data";

/// A manifest that was read and has no mistakes.
#[non_exhaustive]
pub struct Manifest {
    /// The path of the manifest.
    pub file: PathBuf,
    /// The name of the pump. None without the key `name`.
    pub name: Option<String>,
    /// The folder of the log. None without the key `data`.
    pub data: Option<PathBuf>,
    /// The failures that an acknowledged message survives. None without the key `durability`.
    pub durability: Option<Durability>,
    /// The identities that may connect, with their tokens.
    pub tokens: Option<Tokens>,
    /// The doors of the pump. None without the key `doors`.
    pub doors: Option<Vec<Door>>,
    /// The listeners that the manifest declares. None if the keys `listeners`, `services`, `pods`
    /// and `include` are all absent.
    pub listeners: Option<Vec<Listener>>,
    /// The payloads that the manifest's JSON Schemas describe.
    pub schemas: Vec<Schema>,
    /// The manifest's models, with the names by which its listeners choose them.
    pub models: Models,
    /// The settings for OpenTelemetry. None without the key `otel`.
    pub otel: Option<Otel>,
    /// The sinks, which get copies of entries and live payloads.
    pub sinks: Vec<Sink>,
    /// The source that reports entries and times to the listener `trigger`.
    pub trigger_source: TriggerSource,
    /// Sinks of the type `return`, which the program that embeds the pump reads.
    pub returns: Vec<Return>,
    /// The permissions to ask the listener `describe`. None without the key `meta`, which adds this
    /// listener.
    pub meta: Option<Allow>,
    /// The provider files of the manifest's models, in the order of the models.
    pub providers: Vec<UsedProvider>,
    /// Warnings about provider files and models. The pump can run in spite of them.
    pub warnings: Vec<Mistakes>,
    /// The limits of the pump.
    pub limits: Limits,
    /// The number of workers. None without the key `workers`.
    pub workers: Option<usize>,
    /// The time between two heartbeats. Only a pump with a name writes them. None without the key
    /// `heartbeat`.
    pub heartbeat: Option<Duration>,
    /// The places of the listeners in the manifest, its pod files and its included files.
    pub places: Places,
    /// The secrets beside those of listeners and models, each with its place: values of variables
    /// such as `API_KEY`, and headers for the collector.
    pub(crate) secrets: Vec<(String, Secret)>,
    /// The files of the manifest's agents.
    pub context: Context,
}

/// Values that replace a manifest's own values when the manifest is read.
#[derive(Clone, Copy, Default)]
pub struct Overrides<'a> {
    /// The name of an agent, and the name of the model that replaces the agent's own.
    pub model: Option<(&'a str, &'a str)>,
    /// The folder of the log.
    pub data: Option<&'a Path>,
}

/// The files of agents, in the layout of ADR-013.
#[derive(Clone, Debug, Default)]
pub struct Context {
    /// The folder with a folder for each agent.
    pub folder: PathBuf,
    /// Maps the name of an agent to its feeds from services.
    pub feeds: BTreeMap<String, Vec<AgentFeed>>,
}

/// A feed of a service in the `feeds.json` of an agent.
#[derive(Clone, Debug, Serialize)]
pub struct AgentFeed {
    pub(crate) name: String,
    pub(crate) source: String,
    pub(crate) path: String,
    /// How old the feed's content may be, in seconds.
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
    /// The model's name in the manifest.
    pub model: String,
    /// The file.
    pub file: PathBuf,
    /// The sinks that get the events of the provider's streams: `stream.sinks` of the file. If
    /// several models use one file, only the first model has the sinks here, and the sinks get the
    /// events of all these models.
    pub sinks: Vec<Sink>,
    /// The file's sinks of the type `return`, which the program that embeds the pump reads.
    pub returns: Vec<Return>,
    /// The events of the providers of its models.
    pub events: ProviderEvents,
}

/// The settings for OpenTelemetry: the collector that gets spans and metrics, and the spans'
/// content.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Otel {
    /// The URL of the collector. `/v1/traces` is appended unless the URL ends with it.
    pub endpoint: String,
    /// Further headers of each request.
    pub headers: Vec<(String, Secret)>,
    /// Whether spans have the texts of messages, arguments, results and errors.
    pub content: bool,
    /// Whether metrics are sent beside spans.
    pub metrics: bool,
}

impl Otel {
    /// Settings that send metrics and spans to a collector, without further headers and without
    /// content.
    #[must_use]
    pub fn at(endpoint: &str) -> Otel {
        let (endpoint, headers) = (endpoint.to_owned(), Vec::new());
        Otel { endpoint, headers, content: false, metrics: true }
    }

    /// The headers with their values in plain text, for sending them.
    #[cfg(feature = "otel")]
    pub fn headers(&self) -> impl Iterator<Item = (&str, &str)> {
        self.headers.iter().map(|(name, value)| (name.as_str(), value.reveal()))
    }
}

/// The places of a manifest's listeners, and of its workflows' triggers.
#[derive(Clone, Debug, Default)]
pub struct Places {
    /// The variables whose values the manifest has.
    pub(super) variables: KnownVariables,
    pub(super) file: String,
    /// The further files of the manifest: its pod files and its included files.
    pub(super) files: Vec<String>,
    pub(super) listeners: BTreeMap<String, Place>,
    /// Maps the name of a workflow and a key of its trigger to the place of this key.
    pub(super) triggers: BTreeMap<(String, &'static str), Place>,
}

impl Places {
    /// The further files of the manifest: its pod files and its included files.
    pub fn files(&self) -> Vec<PathBuf> {
        self.files.iter().map(PathBuf::from).collect()
    }

    /// Whether the manifest has a listener of this name.
    pub fn has(&self, listener: &str) -> bool {
        self.listeners.contains_key(listener)
    }

    /// Returns a builder's complaints as mistakes. Each has the place of its listener, or else line
    /// 1, column 1.
    #[must_use]
    pub fn find(&self, complaints: &Complaints) -> Mistakes {
        let place = |it: Option<&str>| self.listeners.get(it?).copied();
        let all = complaints.by_listener().map(|(listener, text)| {
            let place = place(listener).unwrap_or(Place::new(1, 1));
            Mistake::new(place, text)
        });
        let mistakes = Mistakes::new(&self.file, all.collect());
        self.variables.hide(mistakes.with_files(self.files.clone()))
    }

    /// Returns a mistake at each of these listeners, with its text.
    pub fn find_listeners(&self, wrong: &[(String, String)], advice: &str) -> Mistakes {
        let all = wrong.iter().map(|(listener, text)| {
            let place = self.listeners.get(listener).copied().unwrap_or(Place::new(1, 1));
            Mistake::new(place, text.as_str()).advice(advice)
        });
        let mistakes = Mistakes::new(&self.file, all.collect());
        self.variables.hide(mistakes.with_files(self.files.clone()))
    }

    /// Returns the triggers that don't fit the organism as mistakes. Each has its place in the file
    /// of its workflow, or else line 1, column 1.
    #[must_use]
    pub fn find_triggers(&self, wrong: &[WrongTrigger]) -> Mistakes {
        let all = wrong.iter().map(|it| {
            let place = self.triggers.get(&(it.workflow.clone(), it.key)).copied();
            let mistake = Mistake::new(place.unwrap_or(Place::new(1, 1)), it.wrong.to_string());
            mistake.at(&format!("trigger.{}", it.key))
        });
        let mistakes = Mistakes::new(&self.file, all.collect());
        self.variables.hide(mistakes.with_files(self.files.clone()))
    }
}

/// A door as a manifest describes it. Nothing listens yet.
#[derive(Clone, Debug)]
// Exhaustive, since a server must open each.
pub enum Door {
    /// A host and a port.
    Tcp {
        /// HOST:PORT.
        address: String,
        /// The certificate and its key, if the door speaks TLS.
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
    /// The door's certificate and key, if it speaks TLS.
    #[must_use]
    pub fn tls(&self) -> Option<&Tls> {
        match self {
            Door::Tcp { tls, .. } => tls.as_ref(),
            Door::Unix(_) | Door::Metrics(_) | Door::MetricsToAnyone(_) => None,
        }
    }
}
