//! The examples of *Streaming Execution Protocol* (`execution-…`), of the metadata document
//! (`metadata-…`) and of *Reasoning & Iteration* (`iteration-…`), as replies of an agent. They are
//! the files of the parser's tests. The file `.came` beside an example has the lines that its
//! thread comes to. A file `.yaml` has the fields that the document declares for the example.
//!
//! Examples that take more than one turn are tested elsewhere: notices of the pump in
//! `iteration.rs`, errors in metadata in `tests/it/feeds/metadata.rs`, feeds and `internal_actions`
//! in `tests/it/feeds`. The tests that *Streaming Inline Tool Execution* lists are, under the names
//! it gives them, in `tests/it/reply/tools.rs`, `tests/listeners/action/execution.rs` and
//! `transcript.rs`.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use pumphouse::listeners::action::words::{Action, ActionResult, Mode};
use pumphouse::listeners::agent::words::{Notice, Thought};
use pumphouse::listeners::feed::words::ContextFeed;
use pumphouse::listeners::feed::{Definition, Feeds, Source};
use pumphouse::listeners::metadata::Fields;
use pumphouse::listeners::metadata::words::Metadata;
use pumphouse::schema::Schema;
use pumphouse::sim::{Disk, Sim};

use super::*;
use crate::golden::Goldens;
use crate::reply::protocol::examples;

/// Whom the examples call, and of what sort they are.
pub(super) const CALLED: [(&str, &str); 21] = [
    ("analyze-image", "tool"),
    ("arxiv_search", "tool"),
    ("authenticate", "tool"),
    ("cache_store", "relic"),
    ("calculator", "tool"),
    ("comprehensive_analyzer", "agent"),
    ("data_analyzer", "agent"),
    ("data_pipeline", "workflow"),
    ("database_query", "tool"),
    ("deep_analyzer", "agent"),
    ("fetch_data", "tool"),
    ("file_editor", "tool"),
    ("log_service", "relic"),
    ("logger", "relic"),
    ("news_api", "tool"),
    ("redis_cache", "relic"),
    ("results_cache", "relic"),
    ("summarize", "llm"),
    ("system_monitor", "tool"),
    ("text_analyzer", "agent"),
    ("web_scraper", "tool"),
];

/// What one of them says.
#[derive(Clone, Debug, PartialEq, Payload)]
#[payload(ns = "urn:test")]
struct Says(String);

/// Takes anything, and says who it is; as an agent where that is what it is, and they are.
fn called((name, kind): (&'static str, &'static str), are_agents: bool) -> Listener {
    if are_agents && kind == "agent" {
        let says = Scripted::new(move |_: &Prompt, _| {
            format!("<thought>Hm.</thought><response>what {name} says</response>")
        });
        return Agent::new(name, Arc::new(says)).listener();
    }
    let root = Name::new(format!("https://xml-pipeline.org/ns/{name}/v1"), name);
    let says = move |_: Element| async move { Says(format!("what {name} says")) };
    let schema = Schema::any(root, "Something for it to do.");
    Listener::new(name).on_named(schema, says).kind(kind).idempotent()
}

/// The fields that a document declares for an example; none unless it does.
fn declared(example: &Path) -> Fields {
    let name = example.file_stem().unwrap().to_str().unwrap().replace("-annotated", "");
    let Ok(text) = fs::read_to_string(example.with_file_name(name + ".yaml")) else {
        return Fields::default();
    };
    let mut manifest: BTreeMap<String, Fields> = serde_yaml::from_str(&text).unwrap();
    manifest.remove("metadata").unwrap()
}

/// The lines that come of a reply, and of the agent's last word after it.
fn came(example: &Path, are_agents: bool) -> String {
    let reply = fs::read_to_string(example).unwrap();
    let sim = Sim::new(1);
    let disk = Disk::new(&sim);
    let (clock, monitor) = (Source::internal("system_clock"), Source::listener("system_monitor"));
    let feeds = Feeds::new([
        Definition::on_demand("current_datetime", clock),
        Definition::periodic("system_metrics", Duration::from_secs(30), monitor),
    ]);
    let model = Scripted::new(move |_: &Prompt, turn| match turn {
        1 => reply.clone(),
        _ => "<response>That is all.</response>".to_owned(),
    });
    let agent = Agent::new(AGENT, Arc::new(model)).feeds(feeds.unwrap());
    let agent = agent.metadata(declared(example)).peers(CALLED.map(|(name, _)| name));
    let question = agent.ask("Write.").unwrap();
    let called: Vec<Listener> = CALLED.map(|it| called(it, are_agents)).into();
    let all = ((core(), agent_support()), called, agent.listener(), disk.log());
    let pump = pumphouse::builder().with(all).workers(1).build().unwrap().start_on(&sim);
    let asked = sim.run(pump.tell_element(question)).unwrap().unwrap();
    sim.rest().unwrap();
    let read = disk.kept().read(&asked.thread, 0, u64::MAX, 10_000);
    let entries: Vec<Entry> =
        sim.run(read).unwrap().unwrap().iter().map(|it| (&**it).into()).collect();
    let lines: String = entries.iter().filter_map(line).map(|it| it + "\n").collect();
    lines.replace(asked.thread.as_str(), "sess-abcd1234")
}

/// Who the examples are written by.
const AGENT: &str = "researcher";

/// What an entry says, where that is something an agent's user would want to know.
fn line(entry: &Entry) -> Option<String> {
    let short = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    if let Ok(it) = entry.decode::<Thought>() {
        return Some(format!("thought: {}", short(&it.text)));
    }
    if let Ok(it) = entry.decode::<Notice>() {
        return Some(format!("notice: {}", short(&it.text)));
    }
    if let Ok(it) = entry.decode::<Response>() {
        let last = if it.is_final { "last" } else { "partial" };
        return Some(format!("{last} response: {}", short(&it.text)));
    }
    if let Ok(it) = entry.decode::<Stopped>() {
        return Some(format!("stopped: {}", it.reason));
    }
    if let Ok(it) = entry.decode::<Action>() {
        let mode = match it.mode {
            Mode::Sync => "sync",
            Mode::Async => "async",
            Mode::FireAndForget => "fire and forget",
        };
        return Some(format!("{} is defined: {mode}", it.id));
    }
    if let Ok(it) = entry.decode::<ActionResult>() {
        let status = format!("{:?}", it.status).to_lowercase();
        let error = it.error.map(|it| it.message);
        let text = error.or(it.value.map(|it| it.text)).unwrap_or_default();
        let warnings: String = it.warning.iter().map(|it| format!(" ({it})")).collect();
        return Some(format!("{} is {status}: {}{warnings}", it.id, short(&text)));
    }
    if let Ok(it) = entry.decode::<Metadata>() {
        let errors: String = it.error.iter().map(|it| format!(" ({})", it.message)).collect();
        return Some(format!("metadata: {}{errors}", it.fields.unwrap_or_default()));
    }
    if let Ok(it) = entry.decode::<ContextFeed>() {
        return (it.id == "metadata").then(|| format!("[{}]", it.text));
    }
    let is_call = entry.from() == "action" && entry.key().is_some();
    let staff = ["core", "thread", "todo", "view"];
    let is_told = entry.to() == Some(AGENT) && staff.contains(&entry.from());
    let element = entry.element().ok().filter(|_| is_call || is_told)?;
    let text = String::from_utf8(element.canonical().to_vec()).unwrap();
    let namespace = format!(" xmlns=\"{}\"", element.namespace());
    let from = if is_told { format!("{} says", entry.from()) } else { " ".to_owned() };
    Some(format!("{from} {}", short(&text.replace(&namespace, ""))))
}

#[test]
fn every_example_comes_to_what_it_says() {
    let mut goldens = Goldens::default();
    for path in examples() {
        goldens.check(&path.with_extension("came"), &came(&path, false));
    }
    goldens.finish();
}

#[test]
fn with_agents_as_its_listeners_an_example_ends_in_the_same_words() {
    let words = |path: &Path, are_agents| -> Vec<String> {
        let came = came(path, are_agents);
        came.lines().filter(|it| it.contains(" response: ")).map(str::to_owned).collect()
    };
    let mut with_values = 0;
    for path in examples() {
        let said = words(&path, true);
        assert_eq!(said, words(&path, false), "{path:?}");
        with_values += said.iter().filter(|it| it.contains("_analyzer says")).count();
    }
    assert!(with_values > 0, "none refers to what an agent said");
}
