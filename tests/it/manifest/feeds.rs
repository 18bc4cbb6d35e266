//! Agents' feeds and metadata in manifests: the examples of the documents that define them, and
//! every mistake in a declaration.

use std::path::Path;

use pumphouse::listeners::{agent_support, core};
use pumphouse::manifest::Manifest;

use super::mistakes::{Case, found};
use super::read_in;
use crate::program::Scene;

/// What is spoilt: the documents' examples.
const SOUND: &str = "\
models:
  local: {use: openai, url: \"http://127.0.0.1:9/v1\", model: small}
listeners:
  - use: system_monitor
    name: system_monitor_tool
  - use: echo
    name: filesystem
  - use: agent
    name: coding_agent
    model: local
    context_feeds:
      - id: \"current_datetime\"
        type: \"on_demand\"
        source:
          type: \"internal\"
          action: \"system_clock\"
          params: { format: \"ISO8601\", timezone: \"UTC\" }
      - id: \"system_metrics\"
        type: \"periodic\"
        interval: 30 # seconds
        source:
          type: \"tool\"
          name: \"system_monitor_tool\"
          params: { metrics: [\"cpu\", \"memory\"] }
      - id: \"journal_tree\"
        type: \"on_demand\"
        cache_ttl: 300  # Cache for 5 minutes
        max_tokens: 1000  # Truncate if too large
        enabled: \"${DEBUG_MODE:-false}\"  # Only load if debug enabled
        source:
          type: \"tool\"
          name: \"filesystem.echo\"
          params: { text: \"${JOURNAL_ROOT:-journal}\" }
      - id: \"debug_info\"
        type: \"on_demand\"
        source:
          type: \"internal\"
          action: \"debug_context\"
      - id: budget
        enabled: false
    metadata:
      fields:
        status:
          type: \"enum\"
          values: [\"IDLE\", \"CODING\", \"PLANNING\", \"DEBUGGING\", \"TESTING\", \"TALKING\"]
          default: \"IDLE\"
          description: \"Current operational mode\"
        context:
          type: \"object\"
          description: \"Free-form JSON context data\"
          # No schema - LLM can set any JSON structure
      injection:
        method: \"auto\"  # Auto-inject before each iteration
        template: |
          Available metadata fields (use <metadata> tag to update):
          - status: {values} (current: {current_value})
          - context: any JSON object (current: {current_value})
    internal_actions:
      enabled: true
      allowed_actions:
        - \"add_context_feed\"
        - \"remove_context_feed\"
";

const CLOCK: &str = "id: \"current_datetime\"
        type: \"on_demand\"
        source:
          type: \"internal\"
          action: \"system_clock\"
          params: { format: \"ISO8601\", timezone: \"UTC\" }
";

const STATUS: &str = "type: \"enum\"
          values: [\"IDLE\", \"CODING\", \"PLANNING\", \"DEBUGGING\", \"TESTING\", \"TALKING\"]
          default: \"IDLE\"
";

const CASES: &[Case] = &[
    (
        "name: \"system_monitor_tool\"\n",
        "name: \"system_monitr_tool\"\n",
        "\"system_monitr_tool\"",
        "there is no listener `system_monitr_tool`; did you mean `system_monitor_tool`?",
        "filesystem",
    ),
    (
        "action: \"system_clock\"",
        "action: \"systm_clock\"",
        "\"systm_clock\"",
        "did you mean `system_clock`?",
        "action: system_clock",
    ),
    (
        "type: \"periodic\"",
        "type: \"perodic\"",
        "\"perodic\"",
        "did you mean `periodic`?",
        "type: on_demand",
    ),
    ("interval: 30 ", "intervall: 30 ", "intervall", "did you mean `interval`?", "interval: 30"),
    (
        "- id: \"system_metrics\"\n        type: \"periodic\"\n        interval: 30 ",
        "- id: \"system_metrics\"\n        type: \"periodic\"\n        interval: 0.5 ",
        "id: \"system_metrics\"",
        "system_metrics: an interval has at least 1 s, not 0.5",
        "",
    ),
    (
        "- id: \"system_metrics\"\n        type: \"periodic\"\n        interval: 30 # seconds\n",
        "- id: \"system_metrics\"\n        type: \"periodic\"\n",
        "id: \"system_metrics\"",
        "system_metrics: a periodic feed needs an interval",
        "",
    ),
    (
        CLOCK,
        "id: \"current_datetime\"\n        source: {type: internal, action: system_clock, params: \
         {fromat: unix}}\n",
        "id: \"current_datetime\"",
        "system_clock has no parameter fromat; it has format, timezone; did you mean format?",
        "",
    ),
    (
        "- id: \"system_metrics\"",
        "- id: \"current_datetime\"",
        "id: \"current_datetime\"",
        "the feed current_datetime stands twice",
        "",
    ),
    (
        "- id: budget\n        enabled: false",
        "- id: budget\n        max_tokens: 7",
        "id: budget",
        "budget is made by the pump: only `enabled` can be said of it",
        "",
    ),
    (
        "\"${DEBUG_MODE:-false}\"",
        "perhaps",
        "perhaps",
        "this is `perhaps`, and `true` or `false` is expected",
        "",
    ),
    ("type: \"object\"", "type: \"objetc\"", "\"objetc\"", "did you mean `object`?", "type: enum"),
    (
        "          type: \"object\"\n          description",
        "          description",
        "description",
        "a field needs a type: enum",
        "",
    ),
    (
        STATUS,
        "type: \"enum\"\n          values: [\"IDLE\", \"CODING\"]\n          default: \"BUSY\"\n",
        "type: \"enum\"",
        "status: the default won't do: \"BUSY\" not in [IDLE, CODING]",
        "",
    ),
    (
        "        context:\n",
        "        con text:\n",
        "con text",
        "`con text` isn't a name of letters",
        "",
    ),
    ("method: \"auto\"", "method: \"late\"", "\"late\"", "`auto` or `none` is expected", "auto"),
    ("injection:", "injecton:", "injecton", "did you mean `injection`?", "method"),
];

#[test]
fn every_mistake_in_feeds_and_metadata_is_found_placed_and_named() {
    read_in("organism.yaml", SOUND).map(drop).expect("what is spoilt is sound");
    let wrong: Vec<String> = CASES.iter().filter_map(|it| found(SOUND, it).err()).collect();
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), CASES.len(), wrong.join("\n\n"));
}

#[test]
fn a_source_names_a_payload_that_its_listener_takes() {
    let scene = Scene::new();
    let check = |name: &str| {
        let manifest = format!(
            "models: {{m: {{use: scripted, file: replies.txt}}}}\nlisteners:\n  \
             - {{use: files, settings: {{root: .}}}}\n  - use: agent\n    name: ada\n    \
             model: m\n    context_feeds:\n      \
             - {{id: a, source: {{type: tool, name: {name}}}}}\n"
        );
        scene.write("organism.yaml", manifest);
        scene.write("replies.txt", "%% reply\n<response>.</response>\n");
        scene.run(&["check"])
    };
    check("files.tree").code(0);
    let told = ["`files` takes no payload `tre`; did you mean `tree`?", "files.read"];
    check("files.tre").code(1).says(&told);
    check("files").code(1).says(&["`files` takes several payloads", "name one of", "files.tree"]);
}

#[test]
fn an_agent_with_feeds_and_metadata_is_built() {
    let environment = |name: &str| (name == "DEBUG_MODE").then(|| "true".to_owned());
    let builder = pumphouse::builder().with(pumphouse::listeners::factories);
    let file = Path::new("organism.yaml");
    let manifest = Manifest::read(file, SOUND.as_bytes(), &environment, &builder).unwrap();
    assert!(pumphouse::builder().with((core(), agent_support(), manifest)).build().is_ok());
}

#[test]
fn a_manifest_has_working_feeds() {
    let scene = Scene::new();
    scene.write(
        "replies.txt",
        "%% reply\n<metadata>{\"status\": \"BUSY\"}</metadata>\n\
         <response>It is $current_datetime.</response>\n",
    );
    scene.write(
        "organism.yaml",
        "models: {fixed: {use: scripted, file: replies.txt}}\n\
         listeners:\n  - use: agent\n    name: oracle\n    model: fixed\n    context_feeds:\n      \
         - {id: current_datetime, source: {type: internal, action: system_clock, params: \
         {format: \"%Y\"}}}\n    metadata: {fields: {status: {values: [IDLE, BUSY], default: \
         IDLE}}}\n",
    );
    scene.run(&["check"]).code(0);
    let server = scene.serve(&[]);
    let ask = "<oracle xmlns=\"https://xml-pipeline.org/ns/oracle/v1\">When?</oracle>\n";
    scene.pipe(&["send", "--connect", &server.address], ask).code(0).says(&["It is 2"]);
    drop(server);
    let thread = scene.run(&["threads", "--json"]).code(0).objects()[0]["thread"].clone();
    let entries = scene.run(&["show", thread.as_str().unwrap(), "--json"]).code(0).objects();
    let has = |what: &str| entries.iter().any(|it| it.to_string().contains(what));
    // The log alone says what the model was shown, to the byte.
    let entry = format!("{}/{}", thread.as_str().unwrap(), entries.len());
    let shown = scene.run(&["prompt", &entry]).code(0);
    shown.says(&[
        "│ <context_feed id=\"current_datetime\">\n│ 2",
        "│ Current metadata:\n│   - status: IDLE",
    ]);
    assert!(has("declare-feeds") && has("context_feed") && has("Current metadata:"), "{entries:?}");
}

#[test]
fn a_listener_whose_name_begins_with_that_of_another_may_be_the_source_of_a_feed() {
    let manifest = "models:\n  m: {use: openai, url: \"http://127.0.0.1:9/v1\", model: small}\n\
        listeners:\n  - {use: calculate, name: sums}\n  - {use: echo, name: sums.second}\n  \
        - use: agent\n    name: ada\n    model: m\n    context_feeds:\n      \
        - {id: one, source: {type: tool, name: sums.second, params: {text: a}}}\n      \
        - {id: two, source: {type: tool, name: sums.second.echo, params: {text: a}}}\n      \
        - {id: three, source: {type: tool, name: sums.calculate,\n         \
        params: {expression: \"1\"}}}\n";
    read_in("organism.yaml", manifest).unwrap();
}
