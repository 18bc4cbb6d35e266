//! The keys of an agent in a manifest.

use std::time::Duration;

use crate::limits::{ActionLimits, ReplyLimits};
use crate::manifest::key_table::feeds::{feed, feed_injection, metadata, service_feeds};
use crate::manifest::key_table::{Key, Kind, Map, common, key, limit};

const DIALECT: &[(&str, &str)] = &[
    ("tags", "As elements: <action> and <tool_use>."),
    ("tool_use", "As JSON in the text too: {\"type\": \"tool_use\", …}."),
    ("native", "In its provider's own protocol, where its peers are offered as tools."),
];

const DISPATCH: &[(&str, &str)] = &[
    ("immediate", "Each when its tag closes."),
    ("batched", "A few together: when there are enough, or after a while."),
    ("after_response", "All when the turn is over."),
];

const WAKE: &[(&str, &str)] = &[
    ("each", "Each result begins a turn."),
    ("all", "The results of all that is under way begin one turn."),
];
const FINAL_WITH_ACTIONS: &[(&str, &str)] = &[
    ("hold", "It waits; it is delivered if all succeed, else there is another turn."),
    ("strict", "There is another turn."),
    ("trust", "It is delivered at once."),
];

const CALLS: &[(&str, &str)] = &[
    ("own-thread", "In a thread of its own, below the caller's."),
    ("same-thread", "In the caller's."),
];

const ON_ERROR: &[(&str, &str)] = &[
    ("fail", "What depends on it is skipped."),
    ("skip", "What depends on it runs, and its result is null."),
    ("retry", "It is tried again."),
];

const ON_FULL: &[(&str, &str)] = &[
    ("clear", "Old messages are hidden."),
    ("summarise", "A model writes a summary of them, and they are hidden."),
    ("stop", "The agent stops."),
];

const ABILITIES: &[(&str, &str)] = &[
    ("spawn", "Open threads below its own."),
    ("timers", "Set timers."),
    ("todo", "Keep a checklist."),
    ("clear", "Hide older messages."),
    ("feeds", "Have feeds added to its prompt."),
];

pub(super) fn agent() -> Map {
    let mut keys = common("use: agent");
    if let Some(name) = keys.iter_mut().find(|it| it.name == "name") {
        name.needed = true;
        name.text = "What it is called, and the payload that it owns.";
        "name: researcher".clone_into(&mut name.example);
    }
    if let Some(peers) = keys.iter_mut().find(|it| it.name == "peers") {
        peers.text = "The listeners that it may call; without this, none.";
    }
    keys.extend(mind());
    keys.extend(turns());
    keys.extend(surroundings());
    Map { what: "an agent", keys, one_of: &[] }
}

/// The keys for the agent's model, prompt and replies.
fn mind() -> Vec<Key> {
    let model = "Which of the models it thinks with; default_model unless said.";
    let prompt = "What its model is told before all else.";
    let dialect = "How its model writes calls; tags unless said.";
    let max_tokens = "The tokens of a reply; as the model has it unless said.";
    let temperature = "How freely the model chooses; as the model has it unless said.";
    let count = || Kind::Count { min: 1, max: u32::MAX as usize };
    vec![
        key("model", Kind::Name, model, "model: local"),
        key("prompt", Kind::Words(prompt_file()), prompt, "prompt: You find things out."),
        key("dialect", Kind::Word(DIALECT), dialect, "dialect: tags"),
        key(
            "reply_limits",
            Kind::Map(reply_limits()),
            REPLY,
            "reply_limits: {text_bytes_max: 1 MiB}",
        ),
        key("max_tokens", count(), max_tokens, "max_tokens: 2048"),
        key("temperature", Kind::Number, temperature, "temperature: 0.2"),
        key("on_context_full", Kind::Word(ON_FULL), FULL, "on_context_full: clear"),
        key("summary_model", Kind::Name, SUMMARY, "summary_model: local"),
        key("context_keep", Kind::Keep, KEEP, "context_keep: 10"),
        key("result_bytes_max", Kind::Bytes { min: 512 }, RESULT, "result_bytes_max: 32 KiB"),
        key("rate_limit_wait_max", Kind::Time { min: Duration::ZERO }, WAIT, WAIT_EXAMPLE),
    ]
}

const FULL: &str = "What becomes of a prompt that doesn't fit the model's window; clear unless \
                    said.";
const SUMMARY: &str = "Which of the models writes summaries; its own unless said.";
const ACTIONS: &str = "What its actions may come to.";
const REPLY: &str = "How large the parts of a reply may be.";
const RESULT: &str = "How many bytes of a result a prompt shows; 32 KiB unless said, and a quarter \
                      of the model's window at the most.";
const WAIT: &str = "How long it waits for a provider that takes no more requests for a while; 15 \
                    minutes unless said.";
const WAIT_EXAMPLE: &str = "rate_limit_wait_max: 15m";
const KEEP: &str = "How many messages stay in view when old ones are hidden, or how many tokens of \
                    them, as in 4000 tokens; 10 unless said.";

fn reply_limits() -> Map {
    let keys = ReplyLimits::default().bounds().into_iter().map(limit).collect();
    Map { what: "reply_limits", keys, one_of: &[] }
}

fn action_limits() -> Map {
    let keys = ActionLimits::default().bounds().into_iter().map(limit).collect();
    Map { what: "action_limits", keys, one_of: &[] }
}

fn prompt_file() -> Map {
    let file = key("file", Kind::Path, "The file that it stands in.", "file: researcher.md");
    let keys = vec![Key { needed: true, ..file }];
    Map { what: "a text's `file:`", keys, one_of: &[] }
}

/// The keys for the agent's turns and actions.
fn turns() -> Vec<Key> {
    let dispatch = "When the actions of a turn begin; immediate unless said.";
    let streams = "How calls are spelled, batched and bounded; with it, dispatch is batched \
                   unless said.";
    let is_final = "Whether a response is final that doesn't say; true unless said.";
    let is_text = "Whether the text of a reply that ends without calls is its response; true where \
                   the dialect is native, unless said.";
    let with_actions = "What becomes of a final response while actions of its turn are \
                        unfinished; hold unless said.";
    let payloads = "Payloads beside response that end its work, by their local names.";
    let wake = "Whether each result begins its next turn, or all that is under way together; each \
                unless said.";
    let turns = "How many turns its work has, from what began it to its end; 50 unless said.";
    let calls = "Where calls of it run; own-thread unless said.";
    let internal = "Which actions it may take that change its own surroundings.";
    let abilities = "What its prompt offers besides calling its peers; all unless said. What it \
                     may do, its grants and peers say.";
    let names = || Kind::List(Box::new(Kind::Name));
    vec![
        key(
            "abilities",
            Kind::List(Box::new(Kind::Word(ABILITIES))),
            abilities,
            "abilities: [timers, todo]",
        ),
        key("references", Kind::Flag, REFERENCES, "references: true"),
        key("dispatch", Kind::Word(DISPATCH), dispatch, "dispatch: immediate"),
        key("action_limits", Kind::Map(action_limits()), ACTIONS, "action_limits: {at_once: 5}"),
        key(
            "streaming_config",
            Kind::Map(streaming()),
            streams,
            "streaming_config: {tool_batch_size: 5}",
        ),
        key("control_flow", Kind::Flag, CONTROL, "control_flow: true"),
        key(
            "action_templates",
            Kind::Named(Box::new(Kind::Map(template()))),
            TEMPLATES,
            "action_templates: {page: {name: fetch, parameters: {url: \"{{url}}\"}}}",
        ),
        key("final_default", Kind::Flag, is_final, "final_default: true"),
        key("text_is_response", Kind::Flag, is_text, "text_is_response: true"),
        key(
            "final_with_actions",
            Kind::Word(FINAL_WITH_ACTIONS),
            with_actions,
            "final_with_actions: hold",
        ),
        key("final_payloads", names(), payloads, "final_payloads: [report]"),
        key("wake", Kind::Word(WAKE), wake, "wake: each"),
        key("max_turns", Kind::Allowance, turns, "max_turns: 50"),
        key("agent_calls", Kind::Word(CALLS), calls, "agent_calls: own-thread"),
        key(
            "internal_actions",
            Kind::Map(internal_actions()),
            internal,
            "internal_actions: {enabled: false}",
        ),
    ]
}

const CONTROL: &str = "Whether its replies may have blocks around actions: <if>, <foreach>, \
                       <parallel>, and <rollback>; false unless said.";
const REFERENCES: &str = "Whether ${id} stands for a result, as a whole parameter and in its \
                          responses; true where the dialect is tags, unless said.";
const TEMPLATES: &str = "Actions with placeholders, which it calls by their names.";

/// The keys of a template of an action.
fn template() -> Map {
    let name = "The listener that the action calls.";
    let parameters = "What the call takes; {{word}} in a text is a placeholder.";
    let texts = || Kind::List(Box::new(Kind::Text));
    let compensate = "The call that undoes it, where control_flow is true.";
    let stream = "Whether it takes another action's partial results, where control_flow is true.";
    let called = Key { needed: true, ..key("name", Kind::Text, name, "name: fetch") };
    let keys = vec![
        called,
        key("parameters", Kind::Settings, parameters, "parameters: {url: \"{{url}}\"}"),
        key("output_key", Kind::Text, "A further name of its result.", "output_key: page"),
        key("depends_on", texts(), "The actions that must be done before.", "depends_on: [a]"),
        key("timeout", Kind::Number, "The seconds of an attempt.", "timeout: 30"),
        key("retry", Kind::Count { min: 0, max: 5 }, "How often it is tried again.", "retry: 2"),
        key("on_error", Kind::Word(ON_ERROR), "What its failure means.", "on_error: skip"),
        key("compensate", Kind::Settings, compensate, "compensate: {name: remove}"),
        key("stream", Kind::Flag, stream, "stream: true"),
    ];
    Map { what: "a template of an action", keys, one_of: &[] }
}

/// The keys of `streaming_config`.
fn streaming() -> Map {
    let size = "How many calls that are ready begin at once; 5 unless said.";
    let delay = "For how many seconds fewer wait for more; 0.1 unless said.";
    let call = "Bytes of one call; 1 MiB unless said.";
    let text = "Bytes of one text; 10 MiB unless said.";
    let formats =
        "How calls are spelled: xml has tag_open, tag_close and attributes, json a schema.";
    let file = "The file with the document of this name, which may begin with schema_version.";
    let count = |min| Kind::Count { min, max: usize::MAX >> 1 };
    let keys = vec![
        key("file", Kind::Path, file, "file: streaming.yaml"),
        key("tool_batch_size", count(1), size, "tool_batch_size: 5"),
        key("tool_batch_delay", Kind::Number, delay, "tool_batch_delay: 0.1"),
        key("tool_parse_buffer_max", count(1_024), call, "tool_parse_buffer_max: 1048576"),
        key("text_buffer_max", count(1_024), text, "text_buffer_max: 10485760"),
        key(
            "formats",
            Kind::Settings,
            formats,
            "formats: {xml: {tag_open: <tool_use>, tag_close: </tool_use>}}",
        ),
    ];
    Map { what: "a streaming_config", keys, one_of: &[] }
}

/// The keys for the agent's feeds and metadata.
fn surroundings() -> Vec<Key> {
    let feeds = "What it is told beside its history, and which of the usual parts are left out.";
    let of_services = "The feeds that it has of services; those of feeds-defaults unless said. A \
                       name stands for a feed that a service advertises, and ... for the defaults.";
    let injection = "How its prompts show its feeds.";
    let fields = "The fields in which it says how it is.";
    let workflows = "The workflows that it may run, and whose triggers watch its metadata.";
    let workspace = "The folder that it works in, as its context says; the manifest's unless said.";
    let names = || Kind::List(Box::new(Kind::Name));
    let clock = "context_feeds: [{id: now, source: {type: internal, action: system_clock}}]";
    let status = "metadata: {fields: {status: {values: [IDLE, BUSY], default: IDLE}}}";
    vec![
        key("context_feeds", Kind::List(Box::new(Kind::Map(feed()))), feeds, clock),
        key(
            "feeds",
            service_feeds(),
            of_services,
            "feeds: [{source: claw-api, path: /fleet/alerts, ttl: 30}]",
        ),
        key(
            "feed_injection",
            Kind::Map(feed_injection()),
            injection,
            "feed_injection: {form: xml}",
        ),
        key("metadata", Kind::Map(metadata()), fields, status),
        key("workflows", names(), workflows, "workflows: [code_finalization]"),
        key("workspace", Kind::Path, workspace, "workspace: project"),
    ]
}

fn internal_actions() -> Map {
    let names = || Kind::List(Box::new(Kind::Name));
    let enabled = "Whether it may take any; true unless said.";
    let allowed = "Those it may take; all where none is named.";
    let blocked = "Those it may not take, whatever else is said.";
    Map {
        what: "internal_actions",
        keys: vec![
            key("enabled", Kind::Flag, enabled, "enabled: true"),
            key("allowed_actions", names(), allowed, "allowed_actions: [add_context_feed]"),
            key("blocked_actions", names(), blocked, "blocked_actions: [update_context_feed]"),
        ],
        one_of: &[],
    }
}
