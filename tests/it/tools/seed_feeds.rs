//! The feeds of the *Streaming Execution Protocol*, word for word. Each is declared in a manifest,
//! gets its content from a listener of `examples/seeds.yaml`, and is shown in a prompt.

use serde_json::Value;

use super::in_order;
use super::seeds::{Pump, serve_with};
use crate::program::Scene;

/// An example, two levels deeper than in the document.
pub(super) fn indented(example: &str) -> String {
    example.lines().map(|line| format!("      {line}\n")).collect()
}

/// An agent of the manifest whose feeds are these, a list, and which replies so.
fn agent(name: &str, feeds: &str) -> String {
    let feeds = indented(feeds);
    format!("  - use: agent\n    name: {name}\n    model: echo\n    context_feeds:\n{feeds}")
}

/// The feeds below the key `context_feeds` of an example.
fn list(example: &str) -> String {
    let feeds = example.strip_prefix("context_feeds:\n").unwrap();
    feeds.lines().map(|it| format!("{}\n", it.strip_prefix("  ").unwrap_or(it))).collect()
}

/// Asks an agent, and gives the contents of its feeds by their ids, as the next prompt has them.
#[track_caller]
fn ask(pump: &Pump, agent: &str) -> Vec<(String, String)> {
    let ns = format!("https://xml-pipeline.org/ns/{agent}/v1");
    let ask = format!("<{agent} xmlns=\"{ns}\">Go.</{agent}>\n");
    pump.scene.pipe(&["send", "--connect", &pump.server.address], &ask).code(0);
    let told = pump.scene.run(&["feeds", agent, "--json"]).code(0).objects();
    let text = |it: &Value, name: &str| it[name].as_str().unwrap_or_default().to_owned();
    told.iter().map(|it| (text(it, "feed"), text(it, "text"))).collect()
}

/// Checks the contents of an agent's feeds: each has these words, in this order.
#[track_caller]
fn shows(pump: &Pump, agent: &str, expected: &[(&str, &[&str])]) {
    let feeds = ask(pump, agent);
    let ids: Vec<&str> = feeds.iter().map(|it| &*it.0).collect();
    assert_eq!(ids, expected.iter().map(|it| it.0).collect::<Vec<_>>());
    for ((id, text), (_, words)) in feeds.iter().zip(expected) {
        assert!(!text.is_empty(), "{id} is empty");
        in_order(text, words);
    }
}

const DRAFT: &str = include_str!("seed_000/draft.yaml");
const MANIFEST: &str = include_str!("seed_000/manifest.yaml");
const CACHING: &str = include_str!("seed_000/caching.yaml");
const SIZE_LIMITS: &str = include_str!("seed_000/size_limits.yaml");
const CONDITIONAL: &str = include_str!("seed_000/conditional.yaml");
const REPOSITORY: &str = include_str!("seed_000/repository.yaml");
const MONITORING: &str = include_str!("seed_000/monitoring.yaml");
const DOCUMENTS: &str = include_str!("seed_000/documents.yaml");
const SUMMARY: &str = include_str!("seed_000/summary.yaml");

#[test]
fn every_feed_of_the_document_has_its_content() {
    let agents = [
        agent("drafter", &list(DRAFT)),
        agent("journalist", &list(MANIFEST)),
        agent("buyer", CACHING),
        agent("keeper", SIZE_LIMITS),
        agent("debugger", CONDITIONAL),
        agent("coder", &format!("{REPOSITORY}{SUMMARY}")),
        agent("operator", MONITORING),
        agent("reader", DOCUMENTS),
    ];
    let Some(pump) = serve_with(&agents.concat(), &[("DEBUG_MODE", "true")]) else { return };
    pump.scene.write("docs/guide.md", "Warm the pot.\n");
    pump.scene.write("README.md", "# Tea\n");
    let journal: [(&str, &[&str]); 3] = [
        ("current_datetime", &["20", "T", "Z"]),
        ("system_metrics", &["load", "memory"]),
        ("journal_tree", &["2026/\n  today.md\n"]),
    ];
    shows(&pump, "drafter", &journal);
    shows(&pump, "journalist", &journal);
    shows(&pump, "buyer", &[("expensive_data", &["expensive_api_call"])]);
    shows(&pump, "keeper", &[("large_dataset", &["data_warehouse"])]);
    shows(&pump, "debugger", &[("debug_info", &["\"agent\": \"debugger\""])]);
    shows(
        &pump,
        "coder",
        &[
            ("repo_structure", &["src/\n  main.rs\n"]),
            ("recent_commits", &[" Sums are right\n"]),
            ("code_summary", &["src/ main.rs"]),
        ],
    );
    shows(
        &pump,
        "operator",
        &[("docker_status", &["CONTAINER ID"]), ("service_health", &["health_check_service"])],
    );
    shows(&pump, "reader", &[("project_docs", &["## docs/guide.md", "Warm", "## README.md"])]);
}

/// A manifest without the stand-ins: an agent with a scripted model, and these listeners.
fn scene(listeners: &str, feeds: &str, replies: &str) -> Scene {
    let scene = Scene::new();
    scene.write(
        "organism.yaml",
        format!(
            "models: {{echo: {{use: scripted, file: replies.txt}}}}\nlisteners:\n{listeners}{}",
            agent("coder", feeds)
        ),
    );
    scene.write("replies.txt", replies);
    scene
}

const ON: &str = "%% reply\n<response final=\"false\">On.</response>\n";
const DONE: &str = "%% reply\n<response>Done.</response>\n";

#[test]
fn a_feed_for_which_debugging_is_off_is_not_had() {
    let scene = scene("", CONDITIONAL, DONE);
    let with = |value: &str| {
        let mut check = scene.command(&["check"]);
        crate::program::Ran::of(check.env("DEBUG_MODE", value))
    };
    with("true").code(0);
    with("false").code(0);
    with("1").code(1).says(&["`true` or `false` is expected"]);
    scene.run(&["check"]).code(1).says(&["the variable DEBUG_MODE isn't set"]);
    let mut serve = scene.command(&["run", "--json", "--listen", "127.0.0.1:0"]);
    let server = crate::program::Server::begin(serve.env("DEBUG_MODE", "false"));
    let ask = "<coder xmlns=\"https://xml-pipeline.org/ns/coder/v1\">Go.</coder>\n";
    scene.pipe(&["send", "--connect", &server.address], ask).code(0);
    drop(server);
    let told = scene.run(&["feeds", "coder"]).code(0).out;
    in_order(&told, &["debug_info", "not in the last prompt: it is not enabled"]);
}

#[test]
fn expensive_data_is_asked_for_once_in_five_minutes() {
    let costly = "  - {use: command, name: expensive_api_call, settings: {run: [echo, costly], \
                  takes: {type: object}}}\n";
    let scene = scene(costly, CACHING, &format!("{ON}{DONE}"));
    let told = super::asked(&scene, "Go.");
    assert_eq!(told.matches("costly").count(), 2, "its answer, and the feed's entry: {told}");
}

#[test]
fn a_large_dataset_is_cut_at_a_thousand_tokens() {
    let large = "  - use: command
    name: data_warehouse
    settings: {run: [printf, '%05000d', '7'], takes: {type: object}}
";
    let scene = scene(large, SIZE_LIMITS, DONE);
    let told = super::asked(&scene, "Go.");
    in_order(&told, &["status=\\\"truncated\\\"", "of 5000 bytes, the first 4000 are kept"]);
}

#[test]
fn the_blocks_of_the_document_stand_in_a_prompt() {
    let injected = include_str!("seed_000/injection.xml");
    let (time, metrics) = injected.split_once("\n\n").unwrap();
    let content = |block: &str| {
        let (_, rest) = block.split_once(">\n").unwrap();
        rest.split_once("\n</context_feed>").unwrap().0.to_owned()
    };
    let listener = |name: &str, file: &str| {
        format!(
            "  - {{use: command, name: {name}, settings: {{run: [cat, \"{file}\"], \
             takes: {{type: object}}}}}}\n"
        )
    };
    let listeners = [listener("clock", "time.txt"), listener("monitor", "metrics.txt")].concat();
    let feeds = "- {id: current_datetime, source: {type: tool, name: clock}}
- {id: system_metrics, source: {type: tool, name: monitor}}
";
    let scene = scene(&listeners, feeds, DONE);
    scene.write("work/time.txt", content(time));
    scene.write("work/metrics.txt", content(metrics));
    super::asked(&scene, "Go.");
    let threads = scene.run(&["threads", "--json"]).code(0).objects();
    let named = threads.iter().filter_map(|it| it["thread"].as_str());
    let thread = named.into_iter().find(|it| it.starts_with("sess-")).unwrap();
    let last = scene.run(&["show", thread, "--json"]).code(0).objects().len();
    let prompt = scene.run(&["prompt", &format!("{thread}/{last}")]).code(0).out;
    let lined = |block: &str| block.trim().replace('\n', "\n│ ");
    in_order(&prompt, &[&lined(time), &lined(metrics)]);
}

/// The reply of a model that writes these elements.
fn reply(elements: &str) -> String {
    format!("%% reply\n{elements}\n")
}

#[test]
fn an_agent_adds_a_feed_and_takes_it_away() {
    let add = include_str!("seed_000/add.txt");
    let remove = include_str!("seed_000/remove.txt");
    let update = include_str!("seed_000/update.txt");
    let service =
        "  - {use: command, name: log_service, settings: {run: [echo, '{filter}', '{since}'], \
                   takes: {type: object, properties: {filter: {type: string}, \
                   since: {type: string}}}}}
  - {use: command, name: system_monitor_tool, settings: {run: [echo, busy], takes: {type: object}}}
";
    let feeds = "- id: system_metrics
  type: periodic
  interval: 30
  source: {type: tool, name: system_monitor_tool}
";
    // JSON has no comments, so the agent is told and writes it without.
    let sound = update.replace("  # Change from 30s to 60s", "");
    assert_ne!(update, sound);
    let replies = [
        reply(add),
        reply("<response final=\"false\">Errors: $recent_errors</response>"),
        reply(update),
        reply(&sound),
        reply(remove),
        reply("<response>Errors: $recent_errors</response>"),
    ];
    let scene = scene(service, feeds, &replies.concat());
    let manifest = std::fs::read_to_string(scene.path("organism.yaml")).unwrap();
    let peers = "    model: echo\n    peers: [log_service]\n";
    scene.write("organism.yaml", manifest.replace("    model: echo\n", peers));
    let told = super::asked(&scene, "Go.");
    in_order(
        &told,
        &[
            "context_feed_added",
            "Errors: ERROR 1h",
            "notice",
            "context_feed_updated",
            "context_feed_removed",
            "Errors: $recent_errors",
        ],
    );
}

#[test]
fn internal_actions_are_those_that_the_manifest_allows() {
    let allowed = include_str!("seed_000/internal_actions.yaml");
    let update = include_str!("seed_000/update.txt").replace("  # Change from 30s to 60s", "");
    let add = include_str!("seed_000/add.txt");
    let service = "  - {use: command, name: log_service, settings: {run: [echo, none], \
                   takes: {type: object}}}\n";
    let feeds = "- id: system_metrics
  type: periodic
  interval: 30
  source: {type: internal, action: thread_statistics}
";
    let replies = [reply(add), reply(&update), reply("<response>Done.</response>")].concat();
    let run = |settings: &str| {
        let scene = scene(service, feeds, &replies);
        let manifest = std::fs::read_to_string(scene.path("organism.yaml")).unwrap();
        let settings: String = settings.lines().map(|it| format!("    {it}\n")).collect();
        let peers = format!("    model: echo\n    peers: [log_service]\n{settings}");
        scene.write("organism.yaml", manifest.replace("    model: echo\n", &peers));
        super::asked(&scene, "Go.")
    };
    let told = run(allowed);
    assert!(told.contains("context_feed_added"), "{told}");
    assert!(!told.contains("context_feed_updated"), "{told}");
    // With the lines that the document has as a comment.
    let blocked = allowed.replace("  # blocked", "  blocked").replace("  #   - ", "    - ");
    let told = run(&blocked);
    assert!(told.contains("context_feed_added"), "{told}");
    assert!(!told.contains("context_feed_updated"), "{told}");
    let off = allowed.replace("enabled: true", "enabled: false");
    let told = run(&off);
    assert!(!told.contains("context_feed_added"), "{told}");
}
