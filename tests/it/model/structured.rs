//! Answers of a given form: how each wire requests the form, and agents whose answers have one.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use pumphouse::listeners::agent::settings::{Dialect, Settings};
use pumphouse::listeners::{agent::Agent, staff};
use pumphouse::log::MemoryLog;
use pumphouse::model::remote::Settings as Remoted;
use pumphouse::model::{Effort, Format, Model, Prompt, Remote, Tool, Wire};
use pumphouse::prelude::*;
use serde_json::{Value, json};

use super::early::{act, head_of, saying};
use super::fake::Server;

/// What was found.
#[derive(Debug, PartialEq, Payload)]
#[payload(ns = "urn:test:structured")]
struct Report {
    /// In a sentence.
    summary: String,
    /// How many there are.
    count: u32,
}

/// The JSON Schema of a report.
fn schema() -> Value {
    json!({
        "type": "object",
        "description": "What was found.",
        "properties": {
            "summary": { "type": "string", "description": "In a sentence." },
            "count": {
                "type": "integer",
                "minimum": 0,
                "maximum": 4_294_967_295_u32,
                "description": "How many there are.",
            },
        },
        "required": ["summary", "count"],
        "additionalProperties": false,
    })
}

fn prompt() -> Prompt {
    let mut prompt = Prompt::new("").user("Go.");
    prompt.format = Some(Format::new("report", "What was found.", schema()));
    prompt
}

/// What a model at a wire is asked.
async fn asked(wire: Wire, prompt: Prompt, change: impl Fn(Remoted) -> Remoted) -> Value {
    let server = Server::start(vec![saying(wire, "{}")]).await;
    let model = change(Remote::at(wire, server.url(), "m")).build().unwrap();
    drop(model.turn(prompt).await.unwrap());
    server.asked().remove(0).body
}

/// The places of a request that say the form of the answer.
fn form(body: &Value) -> Value {
    let keys = ["output_config", "response_format", "text", "generationConfig", "format"];
    let said = keys.iter().filter(|it| !body[**it].is_null());
    said.map(|it| ((*it).to_owned(), body[*it].clone())).collect()
}

/// The schema as the wires have it: without bounds beyond 32 bits, which some servers misread.
fn sent() -> Value {
    let mut schema = schema();
    schema["properties"]["count"].as_object_mut().unwrap().remove("maximum");
    schema
}

/// What a wire makes of the form.
fn expected(wire: Wire) -> Value {
    let named = || {
        json!({
            "name": "report",
            "description": "What was found.",
            "schema": sent(),
            "strict": true,
        })
    };
    match wire {
        Wire::AnthropicMessages => {
            // It knows no bounds of numbers.
            let mut schema = sent();
            schema["properties"]["count"].as_object_mut().unwrap().remove("minimum");
            json!({ "output_config": { "format": { "type": "json_schema", "schema": schema } } })
        }
        Wire::OpenAiChat => {
            json!({ "response_format": { "type": "json_schema", "json_schema": named() } })
        }
        Wire::OpenAiResponses => {
            let mut format = named();
            format["type"] = "json_schema".into();
            json!({ "text": { "format": format } })
        }
        Wire::Gemini => {
            let kind = "application/json";
            let settings = json!({ "responseMimeType": kind, "responseJsonSchema": sent() });
            json!({ "generationConfig": settings })
        }
        _ => json!({ "format": sent() }),
    }
}

#[tokio::test]
async fn the_form_of_an_answer_goes_over_each_wire_in_its_own_words() {
    for wire in Wire::ALL {
        let body = asked(wire, prompt(), |it| it).await;
        assert_eq!(form(&body), expected(wire), "{wire}");
        let body = asked(wire, prompt(), Remoted::unstructured).await;
        assert_eq!(form(&body), json!({}), "{wire}: it is switched off");
        let body = asked(wire, Prompt::new("").user("Go."), |it| it).await;
        assert_eq!(form(&body), json!({}), "{wire}: nobody asks for one");
    }
}

#[tokio::test]
async fn a_form_stands_beside_tools_where_the_provider_takes_both() {
    let mut prompt = prompt();
    prompt.tools = vec![Tool::new("add", "Adds.", json!({ "type": "object" }))];
    for wire in Wire::ALL {
        let body = asked(wire, prompt.clone(), |it| it).await;
        let expected = if wire == Wire::Ollama { json!({}) } else { expected(wire) };
        assert_eq!(form(&body), expected, "{wire}");
    }
    let server = Server::start(vec![saying(Wire::Gemini, "{}")]).await;
    let model = Remote::at(Wire::Gemini, server.url(), "gemini-2.5-flash").build().unwrap();
    drop(model.turn(prompt.clone()).await.unwrap());
    assert_eq!(form(&server.asked().remove(0).body), json!({}), "it refuses both at once");
    // In its last turn a model of Ollama's is offered no tools.
    prompt.without_calls = true;
    let body = asked(Wire::Ollama, prompt, |it| it).await;
    assert_eq!(form(&body), expected(Wire::Ollama));
}

#[tokio::test]
async fn an_effort_stands_beside_the_form_for_anthropic() {
    let body = asked(Wire::AnthropicMessages, prompt(), |it| it.effort(Effort::Low)).await;
    assert_eq!(body["output_config"]["effort"], "low");
    assert_eq!(body["output_config"]["format"]["type"], "json_schema");
}

#[tokio::test]
async fn an_agent_answers_with_its_final_payload_over_each_wire() {
    for wire in Wire::ALL {
        let next = AtomicUsize::new(0);
        let replies = ["{\"summary\": \"Two.\"}", "{\"summary\": \"<b>Two.\", \"count\": 2}"];
        let server = Server::answering(move |_| {
            saying(wire, replies[next.fetch_add(1, Ordering::Relaxed).min(1)])
        })
        .await;
        let model = Remote::at(wire, server.url(), "m").build().unwrap();
        let settings = Settings {
            dialect: Dialect::Native,
            final_payloads: vec!["report".to_owned()],
            ..Settings::default()
        };
        let agent = Agent::new("oracle", Arc::new(model)).settings(settings);
        let question = agent.ask("How many?").unwrap();
        let clerk = Listener::new("clerk").on(async |_: Report| {});
        let agent = agent.peers(["clerk"]);
        let log = |it: &mut Builder| it.log(Arc::new(MemoryLog::default()));
        let builder = pumphouse::builder().with((staff(), clerk, agent.listener(), log));
        let pump = builder.build().unwrap().start();
        let report: Report = pump.ask_element(question).await.unwrap().decode().unwrap();
        assert_eq!((&*report.summary, report.count), ("<b>Two.", 2), "{wire}");
        pump.shutdown().await.unwrap();
        // The first one lacked a field, and the model was told.
        let asked = server.asked();
        assert_eq!(asked.len(), 2, "{wire}");
        let told = asked[1].body.to_string();
        assert!(told.contains("<report> was not sent") && told.contains("count"), "{wire}: {told}");
        let is_told = form(&asked[0].body) != json!({});
        // A peer is offered as a tool, and Ollama takes no form beside those.
        assert_eq!(is_told, wire != Wire::Ollama, "{wire}");
        assert!(asked[0].body.to_string().contains("one JSON object"), "{wire}");
    }
}

#[tokio::test]
async fn a_reply_that_is_cut_within_its_answer_sends_nothing() {
    let wire = Wire::OpenAiChat;
    let half = json!({ "choices": [{ "delta": { "content": "{\"summary\": \"Tw" } }] });
    let first = vec![head_of(wire), act(wire, &[half])];
    let second = saying(wire, "{\"summary\": \"Two.\", \"count\": 2}");
    let server = Server::start(vec![first, second]).await;
    let settings = Settings {
        dialect: Dialect::Native,
        final_payloads: vec!["report".to_owned()],
        ..Settings::default()
    };
    let model = server.model().build().unwrap();
    let agent = Agent::new("oracle", Arc::new(model)).settings(settings).peers(["clerk"]);
    let question = agent.ask("How many?").unwrap();
    let clerk = Listener::new("clerk").on(async |_: Report| {});
    let log = |it: &mut Builder| it.log(Arc::new(MemoryLog::default()));
    let builder = pumphouse::builder().with((staff(), clerk, agent.listener(), log));
    let pump = builder.build().unwrap().start();
    let report: Report = pump.ask_element(question).await.unwrap().decode().unwrap();
    assert_eq!(report.count, 2);
    pump.shutdown().await.unwrap();
    assert_eq!(server.asked().len(), 2);
}
