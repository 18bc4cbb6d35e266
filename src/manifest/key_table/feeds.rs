//! The keys of an agent's feeds and metadata in a manifest.

use std::time::Duration;

use crate::manifest::key_table::{Key, Kind, Map, key};

const METHOD: &[(&str, &str)] = &[
    ("auto", "What the fields are stands before all else, what they hold at the end."),
    ("none", "Nothing of them is said."),
];

const FIELD: &[(&str, &str)] = &[
    ("enum", "One of some texts."),
    ("string", "A text."),
    ("number", "A number."),
    ("boolean", "true or false."),
    ("object", "A JSON object."),
    ("array", "A JSON array."),
];

const FEED: &[(&str, &str)] = &[
    ("on_demand", "It is had before each turn."),
    ("periodic", "It is had by itself, every so many seconds, while its agent is at work."),
    ("internal", "As on_demand, from a source of this type."),
    ("relic", "As on_demand, from a source of this type."),
    ("tool", "As on_demand, from a source of this type."),
    ("workflow", "As on_demand, from a source of this type."),
    ("llm", "As on_demand, from a source of this type."),
];

const SOURCE: &[(&str, &str)] = &[
    ("tool", "A listener that does one thing."),
    ("agent", "One whose mind is a model."),
    ("relic", "One that keeps something."),
    ("workflow", "One that does several things in an order."),
    ("llm", "A model."),
    ("internal", "The pump itself."),
    ("set", "Operators, and the senders in set_by, set the content."),
    ("metadata", "The metadata of another agent in the same session."),
];

const ACTION: &[(&str, &str)] = &[
    ("system_clock", "The time: format and timezone."),
    ("random_number", "A whole number from min to max."),
    ("thread_statistics", "What there is to count of the thread."),
    ("debug_context", "Where the agent stands, and what is under way for it."),
];

const INJECT: &[(&str, &str)] =
    &[("always", "Each prompt shows it."), ("referenced", "No prompt shows it; $id refers to it.")];

const FORM: &[(&str, &str)] = &[
    ("xml", "<context_feed id=\"…\">, as in the Streaming Execution Protocol."),
    ("markers", "--- BEGIN FEED: … ---, as in ADR-013."),
];

const POSITION: &[(&str, &str)] = &[
    ("late", "At the end, behind the history."),
    ("system_prepend", "Before all that the model is told."),
    ("system_append", "Behind what the model is told before all else."),
];

const CHILDREN: &[(&str, &str)] = &[
    ("none", "Nothing."),
    ("inherit", "A copy of the values."),
    ("share", "A copy of the values; what they set later is set for the agent as well."),
];

pub(super) fn metadata() -> Map {
    let fields = "The fields, by their names.";
    let injection = "How a prompt says what they are.";
    let atomic = "Whether nothing of an update is kept where any of it doesn't fit; false unless \
                  said.";
    let children = "What agents get of the values that it calls; none unless said.";
    let sources = "Those of its workflows whose outputs set the fields of the same names.";
    let names = Kind::List(Box::new(Kind::Name));
    let example = "fields: {status: {values: [IDLE, BUSY]}}";
    Map {
        what: "metadata",
        keys: vec![
            key("fields", Kind::Named(Box::new(Kind::Map(field()))), fields, example),
            key("injection", Kind::Map(shown()), injection, "injection: {method: auto}"),
            key("atomic", Kind::Flag, atomic, "atomic: true"),
            key("children", Kind::Word(CHILDREN), children, "children: inherit"),
            key("from_workflows", names, sources, "from_workflows: [report]"),
        ],
        one_of: &[],
    }
}

fn field() -> Map {
    let kind = "What it may hold; enum where there are values.";
    let values = "The texts that it may hold, where its type is enum.";
    let default = "What it holds before it is set.";
    let description = "What it is for.";
    let texts = || Kind::List(Box::new(Kind::Text));
    Map {
        what: "a field",
        keys: vec![
            key("type", Kind::Word(FIELD), kind, "type: enum"),
            key("values", texts(), values, "values: [LOW, HIGH]"),
            key("default", Kind::Any, default, "default: LOW"),
            key("description", Kind::Text, description, "description: How urgent it is."),
        ],
        one_of: &[],
    }
}

fn shown() -> Map {
    let method = "Whether it does; auto unless said.";
    let template = "A text for the end of each prompt instead of the usual one; {values} and \
                    {current_value} are those of the field that the line begins with.";
    Map {
        what: "injection",
        keys: vec![
            key("method", Kind::Word(METHOD), method, "method: auto"),
            key("template", Kind::Text, template, "template: 'status: {current_value}'"),
        ],
        one_of: &[],
    }
}

pub(super) fn feed() -> Map {
    let id = "What it is called; $id stands for what it holds. Parts of the prompt that the pump \
              makes are protocol, peers, metadata, todos and budget.";
    let kind = "How often it is had; on_demand unless said.";
    let interval = "The seconds between two times, where its type is periodic.";
    let enabled = "Whether it is had and shown; true unless said.";
    let ttl = "For how many seconds what was had will do; 0 unless said.";
    let tokens = "How many tokens of it are shown, at four characters each.";
    let timeout = "How many seconds a turn waits for it; 10 unless said.";
    let position = "Where it stands in a prompt; late unless said.";
    let inject = "Whether prompts show it; always unless said.";
    let shows = "What it shows of its source's answer; all of it unless said.";
    let part = "transform: {jsonpath: '$.quotes[0].last'}";
    let setters = "Who may set the content with set-feed; operators always may.";
    let from = "Where it comes from.";
    let clock = "source: {type: internal, action: system_clock}";
    let count = || Kind::Count { min: 1, max: u32::MAX as usize };
    Map {
        what: "a feed",
        keys: vec![
            Key { needed: true, ..key("id", Kind::Name, id, "id: current_datetime") },
            key("type", Kind::Word(FEED), kind, "type: on_demand"),
            key("interval", Kind::Number, interval, "interval: 30"),
            key("enabled", Kind::Any, enabled, "enabled: false"),
            key("cache_ttl", Kind::Number, ttl, "cache_ttl: 300"),
            key("max_tokens", count(), tokens, "max_tokens: 1000"),
            key("timeout", Kind::Number, timeout, "timeout: 3"),
            key("position", Kind::Word(POSITION), position, "position: late"),
            key("inject", Kind::Word(INJECT), inject, "inject: always"),
            key("transform", Kind::Map(transform()), shows, part),
            key("set_by", Kind::List(Box::new(Kind::Text)), setters, "set_by: [ops]"),
            key("source", Kind::Map(source()), from, clock),
        ],
        one_of: &[],
    }
}

/// The keys of `feed_injection`, which say how an agent's prompts show its feeds.
pub(super) fn feed_injection() -> Map {
    let form = "The form of a feed's block; xml unless said.";
    let refreshed = "Whether markers show when the feed was refreshed; true unless said.";
    let one = "How many bytes of one feed are shown; 32KiB unless said.";
    let all = "How many bytes all feeds of a prompt have together; 64KiB unless said.";
    let bytes = || Kind::Bytes { min: 1 };
    Map {
        what: "feed_injection",
        keys: vec![
            key("form", Kind::Word(FORM), form, "form: markers"),
            key("refreshed", Kind::Flag, refreshed, "refreshed: false"),
            key("feed_bytes_max", bytes(), one, "feed_bytes_max: 32KiB"),
            key("feeds_bytes_max", bytes(), all, "feeds_bytes_max: 64KiB"),
        ],
        one_of: &[],
    }
}

fn transform() -> Map {
    let jsonpath = "A part of the answer, as a JSONPath; several matches are a JSON array.";
    let template = "A text; {{ PATH }} in it stands for a part, and {{ $ }} for all.";
    let last = "template: 'Last price: {{ $ }}'";
    Map {
        what: "a transform",
        keys: vec![
            key("jsonpath", Kind::Text, jsonpath, "jsonpath: '$.quotes[0].last'"),
            key("template", Kind::Text, template, last),
        ],
        one_of: &[],
    }
}

fn source() -> Map {
    let kind = "What sort of source it is.";
    let name = "The listener that is asked, or listener.payload where it takes several.";
    let action = "What the pump itself is asked, where the type is internal.";
    let params = "What it is asked with.";
    let agent = "The agent whose metadata it shows, where the type is metadata.";
    let fields = "The fields that it shows of them; all unless said.";
    Map {
        what: "a source",
        keys: vec![
            Key { needed: true, ..key("type", Kind::Word(SOURCE), kind, "type: tool") },
            key("name", Kind::Text, name, "name: filesystem"),
            key("action", Kind::Word(ACTION), action, "action: system_clock"),
            key("agent", Kind::Name, agent, "agent: coder"),
            key("fields", Kind::List(Box::new(Kind::Text)), fields, "fields: [status]"),
            key("params", Kind::Settings, params, "params: {timezone: UTC}"),
        ],
        one_of: &[],
    }
}

/// The keys of a service under `services`.
pub(super) fn service() -> Map {
    let url = "The URL below which its paths are. Its host counts as listed.";
    let auth = "A file with its token, which only the owner can read.";
    let hosts = "Further hosts that its redirects may lead to, besides public ones.";
    let timeout = "How long a request may take; 3s unless said.";
    let feeds = "The feeds that it advertises: an agent has one by its name.";
    let example = "feeds: [{name: market-context, path: /api/v1/context}]";
    Map {
        what: "a service",
        keys: vec![
            Key { needed: true, ..key("url", Kind::Text, url, "url: \"http://127.0.0.1:8090\"") },
            key("auth", Kind::Path, auth, "auth: service-auth/trading-api.json"),
            key("hosts", Kind::List(Box::new(Kind::Text)), hosts, "hosts: [\"10.0.0.7:8080\"]"),
            key("timeout", Kind::Time { min: SECOND }, timeout, "timeout: 3s"),
            key("feeds", Kind::List(Box::new(Kind::Map(service_feed(false)))), feeds, example),
        ],
        one_of: &[],
    }
}

/// The least `timeout` of a service. A fraction of a second counts as a whole second.
const SECOND: Duration = Duration::from_secs(1);

/// A list of feeds of services, in the form of ADR-013.
pub(super) fn service_feeds() -> Kind {
    Kind::List(Box::new(Kind::Words(service_feed(true))))
}

fn service_feed(has_source: bool) -> Map {
    let name = "What it is called; the last part of its path unless said.";
    let source = "The service.";
    let path = "What is read of the service; it begins with /.";
    let ttl = "For how many seconds what was read will do, where the service says nothing shorter; \
               60 unless said.";
    let tokens = "How many tokens of it are shown, at four characters each.";
    let timeout = "How many seconds a turn waits for it; 10 unless said.";
    let enabled = "Whether it is read and shown; true unless said.";
    let inject = "Whether prompts show it; always unless said.";
    let shows = "What it shows of the answer; all of it unless said.";
    let count = Kind::Count { min: 1, max: u32::MAX as usize };
    let mut keys = vec![
        key("name", Kind::Name, name, "name: fleet-alerts"),
        Key { needed: true, ..key("path", Kind::Text, path, "path: /fleet/alerts") },
        key("ttl", Kind::Text, ttl, "ttl: 30"),
        key("max_tokens", count, tokens, "max_tokens: 1000"),
        key("timeout", Kind::Number, timeout, "timeout: 3"),
        key("enabled", Kind::Flag, enabled, "enabled: false"),
        key("inject", Kind::Word(INJECT), inject, "inject: always"),
        key("transform", Kind::Map(transform()), shows, "transform: {jsonpath: '$.alerts'}"),
    ];
    if has_source {
        let source = key("source", Kind::Name, source, "source: claw-api");
        keys.insert(1, Key { needed: true, ..source });
    }
    Map { what: "a feed of a service", keys, one_of: &[] }
}
