//! The feeds that *Streaming Execution Protocol* declares. They are declared here in the document's
//! own words, fetched, and shown in a prompt.

use std::collections::BTreeMap;

use pumphouse::listeners::feed::Feeds;
use pumphouse::schema::Schema;

use super::world::{Told, World, block};
use super::*;

/// Its examples, one after another; what stands for a variable is filled in.
const DECLARED: &str = r#"
context_feeds:
  - id: "current_datetime"
    type: "on_demand"
    source:
      type: "internal"
      action: "system_clock"
      params: { format: "ISO8601", timezone: "UTC" }

  - id: "system_metrics"
    type: "periodic"
    interval: 30 # seconds
    source:
      type: "tool"
      name: "system_monitor_tool"
      params: { metrics: ["cpu", "memory"] }

  - id: "journal_tree"
    type: "on_demand"
    source:
      type: "tool"
      name: "filesystem"
      params: { path: "/journal", format: "tree" }

  - id: "expensive_data"
    type: "on_demand"
    cache_ttl: 300  # Cache for 5 minutes
    source:
      type: "tool"
      name: "expensive_api_call"

  - id: "large_dataset"
    type: "on_demand"
    max_tokens: 1000  # Truncate if too large
    source:
      type: "relic"
      name: "data_warehouse"

  - id: "repo_structure"
    type: "on_demand"
    source:
      type: "tool"
      name: "git_tree"
      params:
        path: "/repo"
        max_depth: 3

  - id: "recent_commits"
    type: "on_demand"
    source:
      type: "tool"
      name: "git_log"
      params:
        count: 10
        format: "oneline"

  - id: "docker_status"
    type: "periodic"
    interval: 60
    source:
      type: "tool"
      name: "docker_ps"

  - id: "service_health"
    type: "periodic"
    interval: 30
    source:
      type: "relic"
      name: "health_check_service"

  - id: "project_docs"
    type: "on_demand"
    cache_ttl: 3600  # Cache for 1 hour
    max_tokens: 5000
    source:
      type: "workflow"
      name: "doc_aggregator"
      params:
        paths: ["docs/", "README.md"]
        format: "markdown"

  - id: "code_summary"
    type: "on_demand"
    cache_ttl: 1800
    source:
      type: "llm"
      name: "summarize"
      params:
        prompt: "Summarize the main purpose of this codebase"
        context: "$repo_structure"
        model: "gemini-1.5-flash"
"#;

/// Whom they come from, in the order in which they are asked, of what sort each is, and what it is
/// asked.
const SOURCES: [(&str, &str, &str); 10] = [
    ("system_monitor_tool", "tool", "<metrics>cpu</metrics><metrics>memory</metrics>"),
    ("filesystem", "tool", "<path>/journal</path><format>tree</format>"),
    ("expensive_api_call", "tool", ""),
    ("data_warehouse", "relic", ""),
    ("git_tree", "tool", "<path>/repo</path><max_depth>3</max_depth>"),
    ("git_log", "tool", "<count>10</count><format>oneline</format>"),
    ("docker_ps", "tool", ""),
    ("health_check_service", "relic", ""),
    (
        "doc_aggregator",
        "workflow",
        "<paths>docs/</paths><paths>README.md</paths><format>markdown</format>",
    ),
    (
        "summarize",
        "llm",
        "<prompt>Summarize the main purpose of this codebase</prompt>\
         <context>what git_tree says</context><model>gemini-1.5-flash</model>",
    ),
];

fn source((name, kind, _): (&'static str, &'static str, &str)) -> Listener {
    let says = move |_: Element| async move { Told(format!("what {name} says")) };
    let root = Name::new(format!("https://xml-pipeline.org/ns/{name}/v1"), name);
    let schema = Schema::any(root, "What it is asked.");
    Listener::new(name).on_named(schema, says).kind(kind).idempotent()
}

#[test]
fn every_feed_of_the_document_is_had_and_shown() {
    let mut declared: BTreeMap<String, Feeds> = serde_yaml::from_str(DECLARED).unwrap();
    let feeds = declared.remove("context_feeds").unwrap();
    let world = World::new(&[(0, "<response>Done.</response>")]);
    let agent = world.agent(&[]).feeds(feeds);
    let staff = agent_support().into_iter().chain(SOURCES.map(source)).collect();
    let came = world.play(agent, staff, &["Go."]);
    let asked = came.entries.iter().filter(|it| &*it.from == "feed");
    let asked = asked.filter_map(|it| {
        let (to, _, _) = SOURCES.iter().find(|(name, ..)| it.to.as_deref() == Some(name))?;
        let body = String::from_utf8(it.body.to_vec()).unwrap();
        let within = body.split_once('>').unwrap().1.rsplit_once("</").unwrap().0.to_owned();
        Some((*to, within))
    });
    let expected = SOURCES.map(|(name, _, asked)| (name, asked.to_owned()));
    assert_eq!(asked.collect::<Vec<_>>(), expected);
    let says = |id: &str, name: &str| block(id, &format!("what {name} says"));
    let ids = [
        "system_metrics",
        "journal_tree",
        "expensive_data",
        "large_dataset",
        "repo_structure",
        "recent_commits",
        "docker_status",
        "service_health",
        "project_docs",
        "code_summary",
    ];
    let mut shown = vec![block("current_datetime", "2026-01-01T00:00:00Z")];
    shown.extend(ids.iter().zip(SOURCES).map(|(id, (name, ..))| says(id, name)));
    assert_eq!(came.late, [shown.join("\n")]);
}
