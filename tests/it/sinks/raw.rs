//! Sinks that get the raw events of providers' streams.

use std::sync::Arc;

use pumphouse::listeners;
use pumphouse::listeners::agent::Agent;
use pumphouse::listeners::agent::words::Response;
use pumphouse::log::MemoryLog;
use pumphouse::model::ProviderEvents;
use pumphouse::prelude::*;
use pumphouse::secret::Secret;
use pumphouse::sink::{Item, Sink};
use serde_json::{Value, json};

use super::files::lines;
use crate::model::fake::{DONE, STOP, Server, answer, delta, events, say};
use crate::program::Scene;

const KEY: &str = "sk-9be07f31";

/// A pump with an agent at this server, whose events this sink gets.
async fn answered(server: &Server, sink: Sink, events: &ProviderEvents) -> Pump {
    let settings = server.model().key(Secret::new(KEY)).events(events, "small");
    let agent = Agent::new("oracle", Arc::new(settings.build().unwrap()));
    let question = agent.ask("Hi").unwrap();
    let log = |builder: &mut Builder| builder.log(Arc::new(MemoryLog::default()));
    let builder = pumphouse::builder().with((listeners::standard(), agent.listener(), log));
    let pump = builder.with(sink).build().unwrap().start();
    let entry = pump.ask_element(question).await.unwrap();
    assert!(entry.decode_if::<Response>().is_some(), "{entry:?}");
    pump
}

#[tokio::test]
async fn a_sink_gets_each_event_as_the_provider_sent_it() {
    let server = Server::start(vec![answer("<response>Hello.</response>")]).await;
    let provider = ProviderEvents::default();
    let (sink, mut items) = Sink::channel("program", 1_000);
    let pump = answered(&server, sink.drop_deltas().raw(&provider), &provider).await;
    pump.shutdown().await.unwrap();
    let (mut entries, mut raw) = (0, Vec::new());
    while let Some(item) = items.next().await {
        match item {
            Item::Entry(_) => entries += 1,
            Item::Raw(event) => {
                assert_eq!(&*event.model, "small");
                assert!(event.conversation.is_some_and(|id| id.starts_with("sess-")));
                raw.push(event.data.to_string());
            }
            other => panic!("{other:?}"),
        }
    }
    assert!(entries > 2);
    let sent = [delta("<response>Hello.</response>"), say(STOP), say(DONE)];
    let sent: Vec<String> = sent.iter().map(|act| act.text()).collect();
    let sent: Vec<&str> = sent.iter().map(|text| &text["data: ".len()..text.len() - 2]).collect();
    assert_eq!(raw, sent);
}

#[tokio::test]
async fn a_sink_of_events_alone_gets_no_entry() {
    let server = Server::start(vec![answer("<response>Hello.</response>")]).await;
    let provider = ProviderEvents::default();
    let (sink, mut items) = Sink::channel("program", 1_000);
    let pump = answered(&server, sink.only_raw(&provider), &provider).await;
    pump.shutdown().await.unwrap();
    let mut count = 0;
    while let Some(item) = items.next().await {
        assert!(matches!(item, Item::Raw(_)), "{item:?}");
        count += 1;
    }
    assert_eq!(count, 3);
}

#[tokio::test]
async fn a_key_that_a_provider_repeats_is_hidden_from_sinks() {
    let repeated = format!("<response>{KEY}</response>");
    let server = Server::start(vec![vec![events(), delta(&repeated), say(STOP), say(DONE)]]).await;
    let provider = ProviderEvents::default();
    let (sink, mut items) = Sink::channel("program", 1_000);
    let pump = answered(&server, sink.raw(&provider), &provider).await;
    pump.shutdown().await.unwrap();
    while let Some(item) = items.next().await {
        assert!(!item.to_json().to_string().contains(KEY), "{item:?}");
    }
}

fn manifest(url: &str, sinks: &str) -> Scene {
    let scene = Scene::new();
    let models = format!("{{local: {{use: openai, url: \"{url}\", model: m}}}}");
    let agent = "{use: agent, name: oracle, model: local, prompt: Answer.}";
    let yaml = format!("models: {models}\nlisteners: [{agent}]\nsinks: [{sinks}]\n");
    scene.write("organism.yaml", yaml);
    scene
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_gets_a_providers_events_beside_entries_and_drop_leaves_them_out() {
    let model = Server::start(vec![answer("<response>Hello.</response>")]).await;
    let sinks = "{type: file, name: all, path: all.jsonl, raw: true, drop: [delta]}, \
                 {type: file, name: less, path: less.jsonl, raw: true, drop: [delta, raw]}";
    let scene = manifest(&model.url(), sinks);
    let mut server = scene.serve(&[]);
    let asked = ["chat", "--connect", &server.address, "oracle"];
    scene.pipe(&asked, "Hi\n").code(0);
    server.stop("-INT");
    let (all, less) = (lines(&scene.path("all.jsonl")), lines(&scene.path("less.jsonl")));
    let is_raw = |object: &&Value| object["raw"] == true;
    let raw: Vec<&Value> = all.iter().filter(is_raw).collect();
    assert_eq!((raw.len(), less.iter().filter(is_raw).count()), (3, 0));
    let thread = less[0]["thread"].clone();
    let last = json!({ "raw": true, "thread": thread, "model": "local", "data": "[DONE]" });
    assert_eq!(raw[2], &last);
    let entries: Vec<&Value> = all.iter().filter(|object| !is_raw(object)).collect();
    assert_eq!(entries, less.iter().collect::<Vec<_>>());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_sinks_of_a_provider_file_get_the_events_of_its_models_and_no_entries() {
    let model = Server::start(vec![answer("<response>Hello.</response>")]).await;
    let scene = manifest(&model.url(), "{type: file, name: all, path: all.jsonl, drop: [delta]}");
    let text = std::fs::read_to_string(scene.path("organism.yaml")).unwrap();
    let url = format!(", url: \"{}\"", model.url());
    let text = text.replace("use: openai", "use: ours.yaml").replace(&url, "");
    scene.write("organism.yaml", text);
    let provider = format!(
        "provider: {{name: openai, api_url: \"{}/chat/completions\"}}\n\
         stream:\n  enabled: true\n  format: sse\n  sinks:\n    - type: file\n      \
         path: \".ai/threads/{{thread_id}}/sse-stream.jsonl\"\n      format: jsonl\n",
        model.url()
    );
    scene.write("ours.yaml", provider);
    let mut server = scene.serve(&[]);
    scene.pipe(&["chat", "--connect", &server.address, "oracle"], "Hi\n").code(0);
    server.stop("-INT");
    let entries = lines(&scene.path("all.jsonl"));
    assert!(entries.iter().all(|object| object["raw"].is_null()), "{entries:?}");
    let thread = entries[0]["thread"].as_str().unwrap();
    let raw = lines(&scene.path(&format!(".ai/threads/{thread}/sse-stream.jsonl")));
    assert_eq!(raw.len(), 3, "{raw:?}");
    for event in raw {
        assert_eq!((&event["raw"], &event["model"]), (&json!(true), &json!("local")));
        assert_eq!(event["thread"], json!(thread));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_says_that_only_a_program_has_a_sink_of_the_type_return() {
    let scene = manifest("http://127.0.0.1:9/v1", "{type: return, name: ui, buffer_size: 16}");
    let traces = std::fs::File::create(scene.path("traces.txt")).unwrap();
    scene.serve_traced(&[], traces.into()).stop("-INT");
    let traces = std::fs::read_to_string(scene.path("traces.txt")).unwrap();
    assert!(traces.contains("only a program that embeds the pump"), "{traces}");
}
