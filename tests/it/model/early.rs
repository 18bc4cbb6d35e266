//! Native calls run as soon as they are complete, while the model is still writing. This holds on
//! each wire.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use pumphouse::limits::ModelLimits;
use pumphouse::listeners::agent::settings::{Dialect, Settings};
use pumphouse::listeners::agent::words::Response;
use pumphouse::listeners::{agent::Agent, staff};
use pumphouse::log::{Log, MemoryLog};
use pumphouse::model::{Remote, Wire};
use pumphouse::prelude::*;
use serde_json::{Value, json};
use tokio::sync::Notify;

use super::fake::{Act, Asked, Server, events, head, say};

/// Counts something.
#[derive(Debug, Payload)]
#[payload(ns = "urn:test:early")]
struct Count {
    what: String,
}

/// It is counted.
#[derive(Debug, Payload)]
#[payload(ns = "urn:test:early")]
struct Counted {}

/// How often each thing was counted, and who is told of each.
type Counter = Arc<(Mutex<BTreeMap<String, u32>>, Arc<Notify>)>;

async fn count(State(counter): State<Counter>, Count { what }: Count) -> Counted {
    *counter.0.lock().unwrap().entry(what).or_default() += 1;
    counter.1.notify_one();
    Counted {}
}

pub(super) fn act(wire: Wire, events: &[Value]) -> Act {
    let frame = |it: &Value| match wire {
        Wire::Ollama => format!("{it}\n"),
        _ => format!("data: {it}\n\n"),
    };
    say(events.iter().map(frame).collect::<String>())
}

pub(super) fn head_of(wire: Wire) -> Act {
    match wire {
        Wire::Ollama => head("200 OK", "content-type: application/x-ndjson\r\n"),
        _ => events(),
    }
}

/// What a call counts.
fn arguments(what: &str) -> Value {
    json!({ "what": what })
}

/// A call as Anthropic writes it.
fn block(index: u64, id: &str, what: &str) -> [Value; 3] {
    let kind = "content_block_start";
    let call = json!({ "type": "tool_use", "id": id, "name": "count", "input": {} });
    let json = arguments(what).to_string();
    let delta = json!({ "type": "input_json_delta", "partial_json": json });
    [
        json!({ "type": kind, "index": index, "content_block": call }),
        json!({ "type": "content_block_delta", "index": index, "delta": delta }),
        json!({ "type": "content_block_stop", "index": index }),
    ]
}

/// A part of a call as chat completions write it.
fn part(index: u64, id: &str, arguments: &str) -> Value {
    let function = json!({ "name": "count", "arguments": arguments });
    let call = json!({ "index": index, "id": id, "function": function });
    json!({ "choices": [{ "delta": { "tool_calls": [call] } }] })
}

/// A call as OpenAI's responses write it.
fn item(place: u64, id: &str, what: &str) -> [Value; 2] {
    let event = |kind: &str, arguments: &str| {
        let item = json!({
            "type": "function_call", "call_id": id, "name": "count", "arguments": arguments,
        });
        json!({ "type": kind, "output_index": place, "item": item })
    };
    [
        event("response.output_item.added", ""),
        event("response.output_item.done", &arguments(what).to_string()),
    ]
}

/// The events up to which the first of two calls is whole, and those behind them.
fn two_calls(wire: Wire) -> (Vec<Value>, Vec<Value>) {
    let text = |what: &str| arguments(what).to_string();
    match wire {
        Wire::AnthropicMessages => {
            let stop = json!({ "stop_reason": "tool_use" });
            let stop = json!({ "type": "message_delta", "delta": stop });
            let end = [stop, json!({ "type": "message_stop" })];
            (block(0, "c1", "one").into(), [&block(1, "c2", "two")[..], &end].concat())
        }
        Wire::OpenAiChat => {
            let stop = json!({ "choices": [{ "delta": {}, "finish_reason": "tool_calls" }] });
            let first = vec![part(0, "c1", &text("one")), part(1, "c2", "")];
            (first, vec![part(1, "", &text("two")), stop])
        }
        Wire::OpenAiResponses => {
            let response = json!({ "status": "completed" });
            let end = json!({ "type": "response.completed", "response": response });
            (item(0, "c1", "one").into(), [&item(1, "c2", "two")[..], &[end]].concat())
        }
        Wire::Gemini => {
            let part = |id: &str, what: &str| {
                let call = json!({ "id": id, "name": "count", "args": arguments(what) });
                json!({ "content": { "parts": [{ "functionCall": call }] } })
            };
            let mut last = part("c2", "two");
            last["finishReason"] = "STOP".into();
            let event = |it: Value| json!({ "candidates": [it] });
            (vec![event(part("c1", "one"))], vec![event(last)])
        }
        _ => {
            let call = |id: &str, what: &str| {
                let function = json!({ "name": "count", "arguments": arguments(what) });
                let message = json!({ "tool_calls": [{ "id": id, "function": function }] });
                json!({ "message": message, "done": false })
            };
            let end = json!({ "message": {}, "done": true, "done_reason": "stop" });
            (vec![call("c1", "one")], vec![call("c2", "two"), end])
        }
    }
}

/// A whole reply of this text.
pub(super) fn saying(wire: Wire, text: &str) -> Vec<Act> {
    let events = match wire {
        Wire::AnthropicMessages => {
            let block = json!({ "type": "text", "text": text });
            vec![
                json!({ "type": "content_block_start", "content_block": block }),
                json!({ "type": "message_delta", "delta": { "stop_reason": "end_turn" } }),
                json!({ "type": "message_stop" }),
            ]
        }
        Wire::OpenAiChat => {
            vec![json!({ "choices": [{ "delta": { "content": text }, "finish_reason": "stop" }] })]
        }
        Wire::OpenAiResponses => vec![
            json!({ "type": "response.output_text.delta", "delta": text }),
            json!({ "type": "response.completed", "response": { "status": "completed" } }),
        ],
        Wire::Gemini => {
            let content = json!({ "parts": [{ "text": text }] });
            vec![json!({ "candidates": [{ "content": content, "finishReason": "STOP" }] })]
        }
        _ => vec![json!({ "message": { "content": text }, "done": true })],
    };
    vec![head_of(wire), act(wire, &events)]
}

/// What came of a question over a wire.
struct Outcome {
    counts: BTreeMap<String, u32>,
    /// Who sent what, in the order of the log.
    story: Vec<String>,
    asked: Vec<Asked>,
}

/// Asks an agent whose model does this first, and then says that it is done.
async fn ask(wire: Wire, first: impl Fn(Arc<Notify>) -> Vec<Act>) -> Outcome {
    let counter = Counter::default();
    let (first, next) = (first(counter.1.clone()), AtomicUsize::new(0));
    let server = Server::answering(move |_| match next.fetch_add(1, Ordering::Relaxed) {
        0 => first.clone(),
        _ => saying(wire, "<response>Done.</response>"),
    })
    .await;
    let limits = ModelLimits { retries_max: 0, ..ModelLimits::default() };
    let model = Remote::at(wire, server.url(), "m").limits(limits).build().unwrap();
    let settings = Settings { dialect: Dialect::Native, ..Settings::default() };
    let agent = Agent::new("oracle", Arc::new(model)).settings(settings).peers(["count"]);
    let question = agent.ask("Count one and two.").unwrap();
    let counting = Listener::with_state("count", counter.clone()).on(count);
    let log = Arc::new(MemoryLog::default());
    let kept = log.clone();
    let log = move |it: &mut Builder| it.log(log);
    let builder = pumphouse::builder().with((staff(), counting, agent.listener(), log));
    let pump = builder.build().unwrap().start();
    let answer = pump.ask_element(question).await.unwrap();
    assert_eq!(answer.decode::<Response>().unwrap().text, "Done.", "{wire}");
    let entries = kept.read(answer.thread(), 0, u64::MAX, 1_000).await.unwrap();
    let story = entries.iter().map(|it| format!("{}: {}", it.from, it.name.local())).collect();
    pump.shutdown().await.unwrap();
    let counts = counter.0.lock().unwrap().clone();
    Outcome { counts, story, asked: server.asked() }
}

fn counted(all: &[&str]) -> BTreeMap<String, u32> {
    all.iter().map(|it| ((*it).to_owned(), 1)).collect()
}

#[tokio::test]
async fn a_call_runs_while_the_model_still_writes_the_next() {
    for wire in Wire::ALL {
        let (first, rest) = two_calls(wire);
        // The rest comes when the first call has run, and not before.
        let acts =
            |told| vec![head_of(wire), act(wire, &first), Act::Until(told), act(wire, &rest)];
        let Outcome { counts, story, asked } = ask(wire, acts).await;
        assert_eq!((counts, asked.len()), (counted(&["one", "two"]), 2), "{wire}");
        let at = |what: &str| story.iter().position(|it| it == what).unwrap();
        let second = story.iter().rposition(|it| it == "oracle: action").unwrap();
        assert!(at("oracle: action") < at("count: counted"), "{wire}: {story:#?}");
        assert!(at("count: counted") < second, "{wire}: {story:#?}");
        assert!(second < at("oracle: cognition_out"), "{wire}: {story:#?}");
    }
}

#[tokio::test]
async fn a_reply_that_is_cut_behind_a_call_has_run_it_and_goes_on_from_it() {
    for wire in Wire::ALL {
        let (first, _) = two_calls(wire);
        let acts = |told| vec![head_of(wire), act(wire, &first), Act::Until(told)];
        let Outcome { counts, story, asked } = ask(wire, acts).await;
        assert_eq!(counts, counted(&["one"]), "{wire}: {story:#?}");
        let body = asked.last().unwrap().body.to_string();
        assert!(!body.contains("\"two\""), "{wire}: {body}");
        assert!(body.contains("one"), "{wire}: {body}");
        let has_id = wire == Wire::Ollama || body.matches("\"c1\"").count() == 2;
        assert!(has_id, "a call and its result: {wire}: {body}");
    }
}
