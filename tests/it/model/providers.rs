//! Provider files: data that describes how a model is asked and how its replies are read.

use std::path::Path;
use std::sync::Arc;

use pumphouse::listeners::action::words::ActionResult;
use pumphouse::listeners::agent::Agent;
use pumphouse::listeners::agent::settings::{Dialect, Settings};
use pumphouse::listeners::agent::words::Response;
use pumphouse::listeners::{agent_support, core, tool};
use pumphouse::log::{Log, MemoryLog};
use pumphouse::manifest::{Manifest, Mistakes};
use pumphouse::model::{Call, Kind, Model, Piece, Provider, Remote, Stop, Usage, Wire};
use pumphouse::prelude::*;
use pumphouse::secret::Secret;
use serde_json::{Value, json};

use super::fake::{Act, Asked, Server, events, head, say};
use super::{heard, text_of};
use crate::program::Scene;
use crate::suites::{Case, cases, suites};

/// The provider file of the document *Streaming Inline Tool Execution*, as it stands there.
const SEED: &str = include_str!("providers/seed.yaml");

/// A made-up provider of each mode.
const MADE_UP: [(&str, &str); 3] = [
    ("typed", include_str!("providers/typed.yaml")),
    ("merged", include_str!("providers/merged.yaml")),
    ("whole", include_str!("providers/whole.yaml")),
];

const MANIFEST: &str =
    "models: {claude: {use: anthropic.yaml, model: m, key: \"${KEY:-sk-12345}\"}}\nlisteners: []\n";

fn read_in(folder: &Path, manifest: &str) -> Result<Manifest, Mistakes> {
    let builder = pumphouse::builder().with(pumphouse::listeners::factories);
    Manifest::read(&folder.join("organism.yaml"), manifest.as_bytes(), &|_| None, &builder)
}

/// What is wrong with a provider file, as a manifest that names it is told.
fn wrong(file: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("anthropic.yaml"), file).unwrap();
    let mistakes = read_in(folder.path(), MANIFEST).err().unwrap();
    assert_eq!(mistakes.all().len(), 1, "{mistakes}");
    mistakes.all()[0].message.replace(&*folder.path().to_string_lossy(), "DIR")
}

#[test]
fn the_file_of_the_seed_is_sound_and_three_of_its_paths_are_warned_of() {
    let scene = Scene::new();
    scene.write("anthropic.yaml", SEED);
    scene.write("organism.yaml", MANIFEST);
    let report = scene.run(&["check", "--json"]).code(0).objects().remove(0);
    let told = |it: &Value| {
        let word = |key: &str| it[key].as_str().unwrap().to_owned();
        (word("file"), it["line"].as_u64().unwrap(), word("path"), word("message"))
    };
    let told: Vec<_> = report["warnings"].as_array().unwrap().iter().map(told).collect();
    let warning = |line: u64, key: &str, path: &str| {
        let key = format!("stream.extract.{key}");
        let text = format!("{key}: the path {path} finds nothing in what anthropic-messages sends");
        ("anthropic.yaml".to_owned(), line, key, text)
    };
    let expected = [
        warning(24, "tool_calls", "$.content_blocks[?@.type=='tool_use']"),
        warning(25, "reasoning", "$.content_blocks[?@.type=='thinking']"),
        warning(26, "stop_reason", "$.stop_reason"),
    ];
    assert_eq!(told, expected);
    let shown = ["3 warnings in anthropic.yaml", "anthropic.yaml:24:17: stream.extract.tool_calls"];
    scene.run(&["check"]).code(0).says(&shown);
}

#[test]
fn a_provider_file_of_several_models_is_warned_of_once_and_has_its_sinks_once() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("anthropic.yaml"), SEED).unwrap();
    std::fs::create_dir(folder.path().join("more")).unwrap();
    let models = ["anthropic.yaml", "anthropic.yaml", "more/../anthropic.yaml"];
    let models = (1..).zip(models).map(|(number, file)| {
        format!("  m{number}: {{use: {file}, model: m, key: \"${{KEY:-sk-12345}}\"}}\n")
    });
    let models: String = models.collect();
    let manifest = read_in(folder.path(), &format!("models:\n{models}listeners: []\n"));
    let manifest = manifest.unwrap();
    assert_eq!(manifest.warnings.len(), 1, "{:?}", manifest.warnings);
    let sinks: Vec<usize> = manifest.providers.iter().map(|it| it.sinks.len()).collect();
    assert_eq!(sinks, [2, 0, 0]);
}

#[test]
fn the_sinks_of_a_provider_file_are_kept_for_its_events() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("anthropic.yaml"), SEED).unwrap();
    let manifest = read_in(folder.path(), MANIFEST).unwrap();
    let used = &manifest.providers[0];
    assert_eq!((&*used.model, &*used.file), ("claude", &*folder.path().join("anthropic.yaml")));
    let names: Vec<&str> = used.sinks.iter().map(|it| it.name()).collect();
    assert_eq!(names, ["anthropic-websocket", "anthropic-file"]);
    let bad = SEED.replace("reconnect_attempts: 3", "reconect_attempts: 3");
    let expected = "DIR/anthropic.yaml:14:7: a sink of the type websocket has no key \
                    `reconect_attempts`; did you mean `reconnect_attempts`?";
    assert_eq!(wrong(&bad), expected);
}

#[test]
fn a_setting_that_the_model_refuses_is_warned_of() {
    let folder = tempfile::tempdir().unwrap();
    let check = |model: &str, agent: &str, expected: &[&str]| {
        let manifest = format!(
            "models: {{m: {{{model}}}}}\nlisteners:\n  - {{use: agent, name: a, model: m{agent}}}\n"
        );
        let manifest = read_in(folder.path(), &manifest).unwrap();
        let all = manifest.warnings.iter().flat_map(|it| it.all());
        let paths: Vec<&str> = all.map(|it| &*it.path).collect();
        assert_eq!(paths, expected, "{model}");
    };
    let claude = "use: anthropic-messages, model: claude-sonnet-4-6";
    check(&format!("{claude}, temperature: 0.2"), ", temperature: 0.3", &[]);
    let both = format!("{claude}, temperature: 0.2, effort: low");
    check(&both, "", &["models.m.temperature"]);
    let thinks = format!("{claude}, effort: low");
    check(&thinks, ", temperature: 0.3", &["listeners[0].temperature"]);
    let limited = format!("{thinks}, at_once: 2");
    check(&limited, ", temperature: 0.3", &["listeners[0].temperature"]);
    let old = "use: anthropic-messages, model: claude-3-5-haiku-latest, effort: low";
    check(old, "", &["models.m.effort"]);
    let o3 = "use: openai-chat, model: o3, temperature: 0.2, max_tokens: 9";
    check(o3, "", &["models.m.temperature"]);
}

/// The model of a provider file at a server.
fn model(server: &Server, file: &str) -> Remote {
    let file = file.replace("${URL}", server.url().trim_end_matches("/v1"));
    let settings = Remote::of_provider(file.parse().unwrap(), "m").key(Secret::new("sk-1"));
    settings.max_tokens(64).build().unwrap()
}

#[tokio::test]
async fn a_file_with_a_built_in_name_speaks_that_wire_at_its_whole_address() {
    let sample = include_str!("../../../src/model/provider_file/built_in/anthropic-messages.sse");
    let server = Server::start(vec![vec![events(), say(sample)]]).await;
    let api_url = format!("{}/anything/at/all", server.url());
    let file = SEED.replace("https://api.anthropic.com/v1/messages", &api_url);
    let (pieces, error) = heard(&model(&server, &file)).await;
    assert_eq!((text_of(&pieces).as_str(), error), ("Hello.", None), "nothing comes twice");
    let call = Piece::Call(Call::new("c1", "add", r#"{"a":1}"#));
    assert!(pieces.contains(&call) && pieces.contains(&Piece::Stop(Stop::Calls)), "{pieces:?}");
    let asked = server.asked().remove(0);
    let line = "POST /v1/anything/at/all HTTP/1.1\r\n";
    assert!(asked.head.starts_with(line), "{}", asked.head);
    let lines: Vec<&str> = asked.head.lines().collect();
    assert!(lines.contains(&"x-api-key: sk-1") && lines.contains(&"anthropic-version: 2023-06-01"));
    assert!(!asked.head.to_lowercase().contains("authorization"), "{}", asked.head);
    assert_eq!(asked.body["max_tokens"], 64);
}

#[tokio::test]
async fn a_file_may_ask_for_whole_replies() {
    let body = json!({
        "type": "message", "content": [{ "type": "text", "text": "Hello." }],
        "stop_reason": "end_turn", "usage": { "input_tokens": 7, "output_tokens": 9 },
    });
    let acts = vec![head("200 OK", "content-type: application/json\r\n"), say(body.to_string())];
    let server = Server::start(vec![acts]).await;
    let file = SEED.replace("enabled: true", "enabled: false");
    let file = file.replace("https://api.anthropic.com", "${URL}");
    let (pieces, error) = heard(&model(&server, &file)).await;
    assert_eq!((text_of(&pieces).as_str(), error), ("Hello.", None));
    assert_eq!(server.asked().remove(0).body["stream"], false);
}

fn typed_call() -> Value {
    json!({ "ref": "c1", "ability": "calculate" })
}

/// A turn of a made-up provider: it thinks, and calls `calculate`, or says what that gave.
fn turn(name: &str, has_result: bool) -> Vec<Act> {
    let lines = match (name, has_result) {
        ("typed", false) => vec![
            json!({ "kind": "grew", "block": 0, "muse": "So." }),
            json!({ "kind": "opened", "block": 1, "call": typed_call() }),
            json!({ "kind": "grew", "block": 1, "with": "{\"expression\":" }),
            json!({ "kind": "unheard_of", "block": 1, "with": "?" }),
            json!({ "kind": "grew", "block": 1, "with": " \"6*7\"}" }),
            json!({ "kind": "over", "because": "needs_ability", "read": 7, "wrote": 9 }),
        ],
        ("typed", true) => vec![
            json!({ "kind": "grew", "block": 0, "say": "It is " }),
            json!({ "kind": "grew", "block": 0, "say": "42." }),
            json!({ "kind": "over", "because": "had_its_say", "read": 7, "wrote": 9 }),
        ],
        ("merged", false) => {
            let call = json!({ "number": 0, "ref": "c1", "ability": "calculate" });
            vec![
                json!({ "more": { "muse": "So." } }),
                json!({ "more": { "uses": [call] } }),
                json!({ "more": { "uses": [{ "number": 0, "with": "{\"expression\":" }] } }),
                json!({ "more": { "uses": [{ "number": 0, "with": " \"6*7\"}" }] } }),
                json!({ "because": "tool_calls", "spent": { "read": 7, "wrote": 9 } }),
            ]
        }
        ("merged", true) => vec![
            json!({ "more": { "say": "It is " } }),
            json!({ "more": { "say": "42." } }),
            json!({ "because": "stop", "spent": { "read": 7, "wrote": 9 } }),
        ],
        (_, false) => {
            let with = json!({ "expression": "6*7" });
            vec![
                json!({ "muse": "So." }),
                json!({ "uses": [{ "ref": "c1", "ability": "calculate", "with": with }] }),
                json!({ "over": true, "read": 7, "wrote": 9 }),
            ]
        }
        (_, true) => vec![
            json!({ "say": "It is " }),
            json!({ "say": "42.", "over": true, "read": 7, "wrote": 9 }),
        ],
    };
    let mut acts = match name {
        "whole" => vec![head("200 OK", "content-type: application/json\r\n")],
        _ => vec![events()],
    };
    acts.extend(lines.iter().map(|it| match name {
        "whole" => say(format!("{it}\n")),
        _ => say(format!("data: {it}\n\n")),
    }));
    if name == "merged" {
        acts.push(say("data: [OVER]\n\n"));
    }
    acts
}

/// Whether a request has the result of a call.
fn has_result(asked: &Asked) -> bool {
    asked.body["turns"].as_array().unwrap().iter().any(|it| it.to_string().contains("\"c1\""))
}

#[tokio::test]
async fn a_made_up_provider_is_heard_in_each_mode() {
    for (name, file) in MADE_UP {
        let server = Server::start(vec![turn(name, false)]).await;
        let it = model(&server, file);
        let (pieces, error) = heard(&it).await;
        let arguments = pieces.iter().find_map(|it| match it {
            Piece::Call(it) => Some(serde_json::from_str::<Value>(&it.arguments).unwrap()),
            _ => None,
        });
        assert_eq!(arguments, Some(json!({ "expression": "6*7" })), "{name}");
        let rest: Vec<Piece> =
            pieces.into_iter().filter(|it| !matches!(it, Piece::Call(_))).collect();
        let expected = [
            Piece::Reasoning("So.".into()),
            Piece::Usage(Usage::new(7, 9)),
            Piece::Stop(Stop::Calls),
        ];
        assert_eq!((rest, error), (expected.to_vec(), None), "{name}");
        let asked = server.asked().remove(0);
        assert!(asked.head.starts_with("POST /speak/m HTTP/1.1\r\n"), "{}", asked.head);
        assert!(asked.head.lines().any(|it| it == "x-typed-key: sk-1"), "{}", asked.head);
        assert_eq!(&*it.details().wire, name);
    }
}

#[tokio::test]
async fn a_reply_of_a_made_up_provider_that_is_cut_runs_no_call() {
    for (name, file) in MADE_UP {
        let mut acts = turn(name, false);
        // Without what says that it is over.
        acts.truncate(acts.len() - if name == "merged" { 2 } else { 1 });
        let server = Server::start(vec![acts]).await;
        let (pieces, error) = heard(&model(&server, file)).await;
        assert_eq!(error.map(|it| it.kind), Some(Kind::Cut), "{name}");
        // What had begun of a call shows where the reply was cut.
        let is_whole = |it: &Piece| match it {
            Piece::Call(it) => serde_json::from_str::<Value>(&it.arguments).is_ok(),
            _ => false,
        };
        assert!(!pieces.iter().any(is_whole), "{name}: {pieces:?}");
    }
}

#[tokio::test]
async fn an_error_of_a_made_up_provider_ends_the_reply() {
    for (name, file) in MADE_UP {
        let mut acts = turn(name, true);
        acts.truncate(2);
        acts.push(match name {
            "typed" => say("data: {\"kind\":\"broke\",\"what\":\"Overloaded\"}\n\n"),
            "merged" => say("data: {\"broke\":{\"message\":\"Overloaded\"}}\n\n"),
            _ => say("{\"broke\":\"Overloaded\"}\n"),
        });
        let server = Server::start(vec![acts]).await;
        let (pieces, error) = heard(&model(&server, file)).await;
        assert_eq!(text_of(&pieces), "It is ", "{name}");
        let error = error.unwrap();
        assert_eq!((error.kind, error.said.as_deref()), (Kind::Failed, Some("Overloaded")));
    }
}

/// What an agent answers that thinks with this model, and whether its call gave 42.
async fn asked_six_times_seven(model: Remote) -> (String, bool) {
    let settings = Settings { dialect: Dialect::Native, ..Settings::default() };
    let agent = Agent::new("oracle", Arc::new(model)).settings(settings).peers(["calculate"]);
    let question = agent.ask("What is six times seven?").unwrap();
    let log: Arc<dyn Log> = Arc::new(MemoryLog::new());
    let kept = log.clone();
    let builder = pumphouse::builder().with((core(), agent_support()));
    let builder = builder.with(tool::calculate::calculate()).with(agent.listener());
    let pump = builder.with(move |it: &mut Builder| it.log(kept)).build().unwrap().start();
    let answer = pump.ask_element(question).await.unwrap();
    pump.shutdown().await.unwrap();
    let entries = log.read(answer.thread(), 0, u64::MAX, 1_000).await.unwrap();
    let has_result = entries.iter().any(|it| it.name == ActionResult::NAME);
    (answer.decode::<Response>().unwrap().text, has_result)
}

#[tokio::test]
async fn an_agent_calls_its_tools_over_a_made_up_provider_in_each_mode() {
    for (name, file) in MADE_UP {
        let server = Server::answering(move |asked| turn(name, has_result(asked))).await;
        let answered = asked_six_times_seven(model(&server, file)).await;
        assert_eq!(answered, ("It is 42.".to_owned(), true), "{name}");
        let asked = server.asked();
        assert_eq!(asked.len(), 2, "{name}");
        let tool = asked[0].body["abilities"][0].to_string();
        assert!(tool.contains("\"calculate\"") && tool.contains("\"expression\""), "{tool}");
        if name == "typed" {
            assert_eq!(asked[0].body["limits"], json!({ "most": 64 }));
            let uses =
                json!([{ "ref": "c1", "ability": "calculate", "with": { "expression": "6*7" } }]);
            let turns = asked[1].body["turns"].as_array().unwrap();
            let called = turns.iter().find(|it| it["from"] == "bot").unwrap();
            assert_eq!(called["uses"], uses);
            let result = turns.iter().find(|it| it["from"] == "ability").unwrap();
            assert_eq!((&result["of"], &result["ability"]), (&json!("c1"), &json!("calculate")));
            assert!(result["gave"].as_str().unwrap().contains("42"), "{result}");
        }
    }
}

#[test]
fn what_is_wrong_in_a_provider_file_is_told_with_its_file_and_place() {
    let check = |from: &str, to: &str, expected: &str| {
        assert!(SEED.contains(from), "{from}");
        let wrong = wrong(&SEED.replace(from, to));
        let expected = format!("DIR/anthropic.yaml:{expected}");
        assert!(wrong.starts_with(&expected), "{wrong}\n{expected}");
    };
    check("\"$.delta.text\"", "\"$.delta[\"", "23:11: `$.delta[` is no JSONPath: ");
    check(
        "  format: \"sse\"",
        "  fromat: \"sse\"",
        "8:3: here is no key `fromat`; did you mean `format`?",
    );
    check(
        "    reasoning:",
        "    resoning:",
        "25:5: here is no key `resoning`; did you mean `reasoning`?",
    );
    check(
        "  enabled: true",
        "  mode: delta_marge",
        "7:9: this is `delta_marge`, and `event_typed`",
    );
    check("  api_url:", "  #", "3:3: here the key `api_url` is missing");
    check(
        "name: \"anthropic\"",
        "name: \"antropic\"",
        "7:3: a provider that isn't built in needs `mode`",
    );
    check(
        "    text:",
        "    stop_reason: $.why\n    text:",
        "27:5: `stop_reason` stands here again",
    );
    let missing = "models: {claude: {use: none.yaml, model: m}}";
    let folder = tempfile::tempdir().unwrap();
    let told = read_in(folder.path(), missing).err().unwrap().to_string();
    assert!(told.contains("none.yaml:1:1: the provider file can't be read: "), "{told}");
}

#[test]
fn a_key_that_a_provider_file_has_no_header_for_is_a_mistake() {
    let folder = tempfile::tempdir().unwrap();
    let file = MADE_UP[0].1.replace("X-Typed-Key: \"{key}\", ", "").replace("${URL}", "http://x");
    std::fs::write(folder.path().join("anthropic.yaml"), file).unwrap();
    let told = read_in(folder.path(), MANIFEST).err().unwrap().to_string();
    assert!(told.contains("the provider file has no header for a key"), "{told}");
}

#[test]
fn a_description_that_is_printed_is_a_provider_file() {
    let scene = Scene::new();
    for name in Provider::built_in_names() {
        let text = scene.run(&["describe", "--provider", name]).code(0).out;
        let provider: Provider = text.parse().unwrap();
        assert!(provider.wire().is_some() && provider.unmatched().is_empty(), "{name}");
        scene.write("anthropic.yaml", &text);
        let manifest = "models: {m: {use: anthropic.yaml, model: m}}\nlisteners: []\n";
        scene.write("organism.yaml", manifest);
        let report = scene.run(&["check", "--json"]).code(0).objects().remove(0);
        assert_eq!(report["warnings"], json!([]), "{name}");
        let object = scene.run(&["describe", "--provider", name, "--json"]).code(0).objects();
        assert_eq!(object[0]["provider"]["name"], provider.name());
    }
    let told = scene.run(&["describe", "--provider", "telex"]).code(1).err;
    assert!(told.contains("there is anthropic, openai, google, "), "{told}");
}

/// The description of a wire, without the wire that its name brings.
fn made_up(scene: &Scene, wire: Wire) {
    let text = scene.run(&["describe", "--provider", wire.name()]).code(0).out;
    let named = format!("name: {wire}\n");
    assert!(text.contains(&named));
    scene.write("made-up.yaml", text.replace(&named, "name: made-up\n"));
}

#[test]
fn every_recorded_stream_reads_the_same_by_the_paths_of_its_description() {
    let Some(suites) = suites() else { return };
    let all = cases(&suites, "llm-sse/index.jsonl");
    for (wire, least) in [
        (Wire::AnthropicMessages, 83),
        (Wire::OpenAiChat, 219),
        (Wire::OpenAiResponses, 66),
        (Wire::Gemini, 53),
    ] {
        let scene = Scene::new();
        made_up(&scene, wire);
        let mine = all.iter().filter(|it| it.text("wire") == wire.name());
        let files: Vec<String> = mine.map(|it| path_of(&suites, it)).collect();
        let list = files.join("\n");
        let read = |wire: &str| {
            scene.pipe(&["inspect", "stream", "--wire", wire, "-"], &list).code(0).objects()
        };
        let (by_reader, by_paths) = (read(wire.name()), read("made-up.yaml"));
        assert_eq!((by_reader.len(), by_paths.len()), (files.len(), files.len()));
        let mut same = 0;
        for (file, (expected, found)) in files.iter().zip(by_reader.into_iter().zip(by_paths)) {
            if !is_claimed(wire, file, &expected) {
                continue;
            }
            for key in ["text", "thinking", "refusal", "tools", "usage", "error", "terminal"] {
                assert_eq!(found[key], expected[key], "{wire}: {key} of {file}");
            }
            assert_eq!(found["stop"], stop_of(&expected), "{wire}: {file}");
            same += 1;
        }
        assert!(same >= least, "{wire}: only {same} recordings were compared");
    }
}

fn path_of(suites: &Path, case: &Case) -> String {
    suites.join("llm-sse").join(case.file()).to_string_lossy().into_owned()
}

/// Whether the description has paths for all of it.
fn is_claimed(wire: Wire, file: &str, expected: &Value) -> bool {
    // Gemini's code that it runs itself has no name there, and paths can't put together arguments
    // that come in parts.
    let tools = expected["tools"].as_array().unwrap();
    let is_in_parts = || std::fs::read_to_string(file).unwrap().contains("\"willContinue\"");
    wire != Wire::Gemini || tools.iter().all(|it| it["name"] != "code_execution") && !is_in_parts()
}

/// The word for the end that paths find.
fn stop_of(expected: &Value) -> Value {
    match expected["stop"].as_str().and_then(|it| it.strip_prefix("incomplete:")) {
        // The reader puts the status before the reason.
        Some(reason) => reason.into(),
        None => expected["stop"].clone(),
    }
}

#[test]
fn a_recorded_stream_is_read_by_a_provider_file() {
    let scene = Scene::new();
    for (name, file) in MADE_UP {
        scene.write("made-up.yaml", file.replace("${URL}", "http://127.0.0.1"));
        let bytes: Vec<u8> = turn(name, true).into_iter().skip(1).flat_map(said).collect();
        scene.write("reply", bytes);
        for chunks in ["whole", "1", "random:3"] {
            let args = ["inspect", "stream", "--wire", "made-up.yaml", "--chunks", chunks, "reply"];
            let told = scene.run(&args).code(0).objects().remove(0);
            let stop = match name {
                "typed" => json!("had_its_say"),
                "merged" => json!("stop"),
                _ => Value::Null,
            };
            assert_eq!((&told["text"], &told["stop"]), (&json!("It is 42."), &stop), "{name}");
            assert_eq!((&told["terminal"], &told["error"]), (&json!(true), &json!(false)));
        }
    }
    scene.write("made-up.yaml", "provider: {name: a}");
    let told = scene.run(&["inspect", "stream", "--wire", "made-up.yaml", "reply"]).code(2).err;
    assert!(told.contains("made-up.yaml:1:11: here the key `api_url` is missing"), "{told}");
}

fn said(act: Act) -> Vec<u8> {
    match act {
        Act::Say(bytes) => bytes,
        _ => Vec::new(),
    }
}

#[tokio::test]
async fn the_example_of_the_manual_is_a_provider_as_it_stands() {
    let page = include_str!("../../../docs/models.md");
    let section = page.split("## A provider of your own").nth(1).unwrap();
    let file = section.split("```text\n").nth(1).unwrap().split("```").next().unwrap();
    assert!(file.lines().count() < 25, "the example is short");
    let stream = section.split("```text\n").nth(2).unwrap().split("```").next().unwrap();
    let server = Server::start(vec![vec![events(), say(stream)]]).await;
    let file = file.replace("https://llm.acme.example", server.url().trim_end_matches("/v1"));
    let (pieces, error) = heard(&model(&server, &file)).await;
    let expected = [
        Piece::Text("Let me see.".into()),
        Piece::Call(Call::new("c1", "add", r#"{"a":1}"#)),
        Piece::Usage(Usage::new(7, 9)),
        Piece::Stop(Stop::Calls),
    ];
    assert_eq!((pieces, error), (expected.to_vec(), None));
    let asked = server.asked().remove(0);
    assert!(asked.head.lines().any(|it| it == "x-acme-key: sk-1"), "{}", asked.head);
    let expected = json!({
        "engine": "m", "turns": [{ "role": "user", "content": "Hi" }], "limits": { "most": 64 },
    });
    assert_eq!(asked.body, expected);
}
