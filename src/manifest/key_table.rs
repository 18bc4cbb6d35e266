//! The table of the keys that a manifest may have. Manifests are checked with this table, and the
//! schema for editors is made from it.

mod feeds;
mod agent;
pub(super) mod include;
mod model;
pub(super) mod pod;
mod sink;

use std::sync::LazyLock;
use std::time::Duration;

use crate::limits::{Allowance, Amount, Bound, Limits};

/// The kinds of values.
pub(super) enum Kind {
    /// A text that isn't empty.
    Text,
    /// A name of letters, digits, `-`, `_` and `.`.
    Name,
    /// The path of a file or folder, which starts at the manifest's folder.
    Path,
    /// One of these words, each with its meaning.
    Word(&'static [(&'static str, &'static str)]),
    /// An amount to spend: a whole number, or `unlimited`.
    Allowance,
    /// How much stays in view: a number of messages, or of tokens.
    Keep,
    /// A whole number within bounds.
    Count { min: usize, max: usize },
    /// `true` or `false`.
    Flag,
    /// `true` or `false`, or a list of names in its place.
    FlagOrNames,
    /// A finite number, with a fraction or without.
    Number,
    /// A number of bytes, with a unit or without.
    Bytes { min: usize },
    /// A time with a unit.
    Time { min: Duration },
    /// HOST:PORT.
    Address,
    /// A text that isn't empty, or a map in its place, such as `{file: prompt.md}`.
    Words(Map),
    /// A list of values of one kind.
    List(Box<Kind>),
    /// A map with these keys.
    Map(Map),
    /// A map with names that the author chooses, and values of one kind.
    Named(Box<Kind>),
    /// A map whose keys depend on the word under its key `by`, such as `use`. `maps` has the map of
    /// each word; the word `*.yaml` stands for all words that end in `.yaml`. The map `other` is
    /// for any other word.
    Use { by: &'static str, maps: Vec<(&'static str, Map)>, other: Option<Map> },
    /// A map with any keys. The code that reads the value checks the keys.
    Settings,
    /// Any value.
    Any,
}

/// A value that has keys.
pub(super) struct Map {
    /// The name of the value that has these keys, for errors.
    pub(super) what: &'static str,
    pub(super) keys: Vec<Key>,
    /// Keys of which exactly one must be there. Empty if there is no such rule.
    pub(super) one_of: &'static [&'static str],
}

pub(super) struct Key {
    pub(super) name: &'static str,
    pub(super) kind: Kind,
    /// A description in a sentence or two, for editors.
    pub(super) text: &'static str,
    pub(super) needed: bool,
    /// The key with a value, as it may stand in a manifest.
    pub(super) example: String,
}

/// The keys of the whole manifest.
pub(super) static ORGANISM: LazyLock<Kind> = LazyLock::new(|| {
    let keys = vec![
        key("name", Kind::Name, NAME, "name: adder"),
        key("data", Kind::Path, DATA, "data: data"),
        key("durability", Kind::Word(DURABILITY), DURABLE, "durability: full"),
        key("tokens", Kind::Map(tokens()), TOKENS, "tokens: {file: tokens.txt}"),
        key("doors", list(door()), DOORS, "doors: [{tcp: 127.0.0.1:8765}]"),
        key(
            "listeners",
            Kind::List(Box::new(listener())),
            LISTENERS,
            "listeners: [{use: calculate}]",
        ),
        key("schemas", Kind::List(Box::new(Kind::Path)), SCHEMAS, "schemas: [weather.schema.json]"),
        key("services", Kind::Named(Box::new(Kind::Map(feeds::service()))), SERVICES, SERVICE),
        key(
            "feeds-defaults",
            feeds::service_feeds(),
            FEEDS_DEFAULTS,
            "feeds-defaults: [{source: claw-api, path: /fleet/alerts, ttl: 30}]",
        ),
        key("include", Kind::List(Box::new(Kind::Path)), INCLUDE, "include: [workflows/*.yml]"),
        key("pods", Kind::List(Box::new(Kind::Path)), PODS, "pods: [trading-desk.yaml]"),
        key("context-folder", Kind::Path, CONTEXT, "context-folder: .claw-runtime/context"),
        key("models", Kind::Named(Box::new(model::model())), model::MODELS, model::EXAMPLE),
        key("default_model", Kind::Name, DEFAULT_MODEL, "default_model: local"),
        key("prices", Kind::Path, model::PRICES, "prices: prices.yaml"),
        key("otel", Kind::Map(otel()), OTEL, "otel: {endpoint: \"http://127.0.0.1:4318\"}"),
        key("sinks", Kind::List(Box::new(sink::sink())), sink::SINKS, sink::EXAMPLE),
        key("meta", Kind::Map(meta()), META, "meta: {schema: authenticated}"),
        key("heartbeat", Kind::Time { min: MILLISECOND }, HEARTBEAT, "heartbeat: 30s"),
        key("workers", Kind::Count { min: 1, max: 64 }, WORKERS, "workers: 2"),
        key("limits", Kind::Map(limits()), LIMITS, "limits: {handlers_max: 40}"),
    ];
    Kind::Map(Map { what: "the manifest", keys, one_of: &[] })
});

/// The word under `use` that makes a listener an agent.
pub(super) const AGENT: &str = "agent";

/// The minimum of the keys `heartbeat` and `timeout`.
const MILLISECOND: Duration = Duration::from_millis(1);

const NAME: &str = "What this pump is called; with a name it keeps its life in a thread, organism.";
const HEARTBEAT: &str = "How often a pump with a name says in that thread that it lives.";
const DATA: &str = "The folder of the log, pumphouse.db; `data` unless said.";
const DURABLE: &str = "What an acknowledged message survives; `full` unless said.";
const TOKENS: &str = "Who may come in at the TCP doors: lines NAME:TOKEN or NAME:TOKEN:operator.";
const DOORS: &str = "Where to listen; 127.0.0.1:8765 unless said.";
const LISTENERS: &str = "The listeners. Those that the program itself holds are there anyway.";
const SCHEMAS: &str = "JSON Schemas, each a payload by the name of its file.";
const SERVICES: &str = "HTTP services, by name. Each is a listener, and a source of feeds.";
const SERVICE: &str = "services: {claw-api: {url: \"http://127.0.0.1:8090\"}}";
const FEEDS_DEFAULTS: &str = "The feeds of services that each agent has which says no `feeds`.";
const INCLUDE: &str = "Files with an agent or a workflow each; the file name may have * and ?.";
const PODS: &str = "Pod files of ADR-013: their agents and services join those of the manifest.";
const CONTEXT: &str = "The folder with a folder for each agent, where run writes the agent's \
                       feeds.json, and where its own credentials are; context in the data folder \
                       unless said.";
const DEFAULT_MODEL: &str = "The model of agents that name none, such as those of pods.";
const META: &str = "Has the listener describe, and says who may ask it for what.";
const WORKERS: &str = "How many threads of the system route messages; one a processor unless said.";
const LIMITS: &str = "Bounds. A refusal names the one that it goes by.";

const OTEL: &str = "Sends spans of agents' work to a collector of OpenTelemetry.";

const DURABILITY: &[(&str, &str)] = &[
    ("full", "A power cut: it is on the disk before anybody hears of it."),
    ("normal", "A killed process, but not a power cut."),
    ("memory", "Nothing: it is in memory only."),
];

const WHO: &[(&str, &str)] = &[
    ("anyone", "Whoever comes in, without a token too."),
    ("authenticated", "Listeners, and identities that were proved."),
    ("admin", "Operators."),
    ("none", "Nobody."),
];

/// The keys of `meta`: for each kind of request to `describe`, who may send it.
fn meta() -> Map {
    let who = |name: &'static str, text, example| key(name, Kind::Word(WHO), text, example);
    Map {
        what: "meta",
        keys: vec![
            who("list", "For list-capabilities.", "list: anyone"),
            who("schema", "For request-schema.", "schema: authenticated"),
            who("example", "For request-example.", "example: authenticated"),
            who("prompt", "For request-prompt.", "prompt: admin"),
        ],
        one_of: &[],
    }
}

fn otel() -> Map {
    let endpoint = "Where the collector takes OTLP over HTTP; /v1/traces is appended.";
    let headers = "Further headers of each request, such as a key for the collector.";
    let content = "Whether spans have the texts of messages, arguments, results and errors.";
    let metrics = "Whether metrics are sent beside spans; they are unless said.";
    let texts = Kind::Named(Box::new(Kind::Text));
    let url = "endpoint: http://127.0.0.1:4318";
    Map {
        what: "otel",
        keys: vec![
            Key { needed: true, ..key("endpoint", Kind::Text, endpoint, url) },
            key("headers", texts, headers, "headers: {authorization: \"${OTEL_KEY}\"}"),
            key("content", Kind::Flag, content, "content: false"),
            key("metrics", Kind::Flag, metrics, "metrics: false"),
        ],
        one_of: &[],
    }
}

fn tokens() -> Map {
    let file = "A file of such lines, which only its owner may read.";
    let variable = "The variable of the environment that holds such lines.";
    Map {
        what: "tokens",
        keys: vec![
            key("file", Kind::Path, file, "file: tokens.txt"),
            key("env", Kind::Text, variable, "env: PUMPHOUSE_TOKENS"),
        ],
        one_of: &["file", "env"],
    }
}

const TLS: &str =
    "Has a TCP door speak TLS, and nothing else; both files are read again when they change.";

fn tls() -> Map {
    let certificate = "A certificate in PEM, with those between it and its issuer behind it.";
    let private = "Its private key in PEM, which only its owner may read.";
    let needed = |key: Key| Key { needed: true, ..key };
    Map {
        what: "tls",
        keys: vec![
            needed(key("certificate", Kind::Path, certificate, "certificate: chain.pem")),
            needed(key("key", Kind::Path, private, "key: key.pem")),
        ],
        one_of: &[],
    }
}

fn door() -> Map {
    let tcp = "Listens on a host and a port; port 0 takes a free one.";
    let unix = "Listens at a Unix socket: whoever may open it is an operator.";
    let metrics = "Shows numbers to Prometheus, at /metrics; on this machine only.";
    Map {
        what: "a door",
        keys: vec![
            key("tcp", Kind::Address, tcp, "tcp: 127.0.0.1:8765"),
            key("unix", Kind::Path, unix, "unix: pump.sock"),
            key("metrics", Kind::Address, metrics, "metrics: 127.0.0.1:9464"),
            key(
                "metrics_to_anyone",
                Kind::Address,
                "The same where other machines can reach it: it asks nobody who they are.",
                "metrics_to_anyone: 0.0.0.0:9464",
            ),
            key("tls", Kind::Map(tls()), TLS, "tls: {certificate: chain.pem, key: key.pem}"),
        ],
        one_of: &["tcp", "unix", "metrics", "metrics_to_anyone"],
    }
}

/// The sinks of a provider file.
pub(super) fn sinks() -> Kind {
    Kind::List(Box::new(sink::sink()))
}

/// An example of the sinks of a provider file.
pub(super) const SINKS_EXAMPLE: &str = sink::EXAMPLE;

/// A listener: an agent, or a listener of another kind. The keys under `settings` of the other
/// kinds aren't in this table.
fn listener() -> Kind {
    let settings = "What this kind of listener wants to know.";
    let mut keys = common("use: calculate");
    keys.push(key("settings", Kind::Settings, settings, "settings: {}"));
    let other = Map { what: "a listener", keys, one_of: &[] };
    Kind::Use { by: "use", maps: vec![(AGENT, agent::agent())], other: Some(other) }
}

/// The keys of every listener.
fn common(example: &str) -> Vec<Key> {
    let peers = "The listeners that it may address by name; without this, every one.";
    let door = "Who may send it messages at a door: true for everybody, false for nobody, or the \
                names of identities, of which `operators` stands for all operators; unless said, \
                everybody if it declares no effects, and else operators.";
    let grants = "What it may do beyond what every listener may, such as emit:core.";
    let limit = "How long one of its handlers may run; handler_time_max unless said.";
    let idempotent = "Whether a call made twice has the effect of once, so that one whose outcome \
                      is unknown may be tried again.";
    let names = || Kind::List(Box::new(Kind::Name));
    vec![
        Key { needed: true, ..key("use", Kind::Name, "Which kind of listener it is.", example) },
        key("name", Kind::Name, "What it is called; as its kind unless said.", "name: sums"),
        key("describe", Kind::Text, "What it is for, in a sentence.", "describe: Adds."),
        key("peers", names(), peers, "peers: [echo, calculate]"),
        key("door", Kind::FlagOrNames, door, "door: [ada, operators]"),
        key("grants", Kind::List(Box::new(Kind::Text)), grants, "grants: [emit:core]"),
        key("timeout", Kind::Time { min: MILLISECOND }, limit, "timeout: 30s"),
        key("idempotent", Kind::Flag, idempotent, "idempotent: true"),
    ]
}

/// A key for each limit.
fn limits() -> Map {
    let mut all = Limits::default();
    Map { what: "limits", keys: all.bounds().into_iter().map(limit).collect(), one_of: &[] }
}

pub(super) fn limit(bound: Bound<'_>) -> Key {
    let Bound { name, text, least, amount, .. } = bound;
    let min = usize::try_from(least).unwrap_or(usize::MAX);
    let (kind, example) = match amount {
        Amount::Allowance(it) => (Kind::Allowance, Allowance(*it).to_string()),
        Amount::Count(it) if name.contains("bytes") => (Kind::Bytes { min }, bytes(*it)),
        Amount::Count(it) => (Kind::Count { min, max: u32::MAX as usize }, it.to_string()),
        Amount::Time(it) => (Kind::Time { min: Duration::from_millis(least) }, time(*it)),
        Amount::Xml(it) => {
            let keys: Vec<Key> = it.bounds().into_iter().map(limit).collect();
            let example = format!("{{{}}}", keys[0].example);
            (Kind::Map(Map { what: name, keys, one_of: &[] }), example)
        }
    };
    key(name, kind, text, &format!("{name}: {example}"))
}

/// Writes bytes in the largest unit that gives a whole number.
fn bytes(count: usize) -> String {
    let units = [("GiB", 30), ("MiB", 20), ("KiB", 10)];
    let fits = |(_, shift): &&(&str, u32)| count > 0 && count.trailing_zeros() >= *shift;
    match units.iter().find(fits) {
        Some((unit, shift)) => format!("{} {unit}", count >> shift),
        None => count.to_string(),
    }
}

/// Writes a time in whole seconds, or else in milliseconds.
fn time(it: Duration) -> String {
    match it.subsec_millis() {
        0 => format!("{}s", it.as_secs()),
        _ => format!("{}ms", it.as_millis()),
    }
}

fn list(map: Map) -> Kind {
    Kind::List(Box::new(Kind::Map(map)))
}

fn key(name: &'static str, kind: Kind, text: &'static str, example: &str) -> Key {
    Key { name, kind, text, needed: false, example: example.to_owned() }
}
