//! The requests of two turns of an agent begin with the same bytes, as far as the shorter history
//! goes, so that a provider can cache them. This holds on each wire, even if a feed, metadata and a
//! checklist changed between the turns.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use pumphouse::listeners::agent::Agent;
use pumphouse::listeners::agent::settings::{Dialect, Settings};
use pumphouse::listeners::agent::words::Response;
use pumphouse::listeners::feed::{Definition, Feeds, Source};
use pumphouse::listeners::metadata::{Field, Fields};
use pumphouse::listeners::{agent_support, core, tool};
use pumphouse::model::{Attached, Call, Model as _, Prompt, Remote, Wire};
use pumphouse::prelude::*;
use serde_json::{Value, json};

use super::fake::Server;
use super::speaking::speaks;

/// What stands before the part of a prompt that is for its turn alone.
const LATE: &str = "[Runtime context for this invocation.";

/// Wants the news.
#[derive(Debug, Payload)]
#[payload(ns = "urn:test:prefixes")]
struct Tell {}

/// The news.
#[derive(Debug, Payload)]
#[payload(ns = "urn:test:prefixes")]
struct Told(String);

async fn tell(State(count): State<Arc<AtomicUsize>>, _: Tell) -> Told {
    Told(format!("news {}", count.fetch_add(1, Ordering::Relaxed)))
}

/// A turn that changes the metadata and the checklist.
fn turn(status: &str, done: bool, more: &str) -> String {
    format!(
        "<todo-until condition=\"all\"><step done=\"true\">one</step><step done=\"{done}\">two\
         </step></todo-until>\n<metadata>{{\"status\": \"{status}\"}}</metadata>\n{more}"
    )
}

const CALCULATE: &str = r#"<action id="a">{"name": "calculate", "parameters":
    {"expression": "6*7"}}</action>"#;

/// The requests of an agent's three turns over a wire.
async fn requests(wire: Wire, dialect: Dialect) -> Vec<Value> {
    let next = AtomicUsize::new(0);
    let server = Server::answering(move |_| {
        let is_native = dialect == Dialect::Native;
        let call = |id: &str| Call::new(id, "calculate", r#"{"expression":"6*7"}"#);
        let nth = next.fetch_add(1, Ordering::Relaxed);
        match nth {
            0 | 1 if is_native => {
                let status = if nth == 0 { "CODING" } else { "TESTING" };
                speaks(wire, &turn(status, nth == 1, ""), &[call(["c1", "c2"][nth])])
            }
            0 => speaks(wire, &turn("CODING", false, CALCULATE), &[]),
            1 => speaks(wire, &turn("TESTING", true, &CALCULATE.replace("\"a\"", "\"b\"")), &[]),
            _ => speaks(wire, "<response>It is 42.</response>", &[]),
        }
    })
    .await;
    let model = Remote::at(wire, server.url(), "m").build().unwrap();
    let settings = Settings { dialect, ..Settings::default() };
    let feed = Definition::on_demand("news", Source::listener("teller"));
    let statuses = Field::choice("status", ["IDLE", "CODING", "TESTING"]).default("IDLE");
    let agent = Agent::new("ada", Arc::new(model)).settings(settings);
    let agent = agent.peers(["calculate", "teller"]).feeds(Feeds::new(vec![feed]).unwrap());
    let agent = agent.metadata(Fields::new([statuses]).unwrap());
    let question = agent.ask("What is six times seven?").unwrap();
    let teller = Listener::with_state("teller", Arc::<AtomicUsize>::default()).on(tell).stateless();
    let staff = (core(), agent_support(), tool::calculate::calculate());
    let builder = pumphouse::builder().with((staff, teller, agent.listener()));
    let pump = builder.build().unwrap().start();
    let answer = pump.ask_element(question).await.unwrap();
    assert_eq!(answer.decode::<Response>().unwrap().text, "It is 42.", "{wire}");
    pump.shutdown().await.unwrap();
    server.asked().into_iter().map(|it| it.body).collect()
}

/// A request without its history, and that as text, without marks.
fn parts(wire: Wire, mut body: Value) -> (Value, String) {
    let key = match wire {
        Wire::OpenAiResponses => "input",
        Wire::Gemini => "contents",
        _ => "messages",
    };
    let mut said = body[key].take();
    unmark(&mut said);
    (body, said.to_string())
}

/// Marks say where a provider keeps a prompt, and are no part of it.
fn unmark(value: &mut Value) {
    match value {
        Value::Object(all) => {
            all.remove("cache_control");
            all.values_mut().for_each(unmark);
        }
        Value::Array(all) => all.iter_mut().for_each(unmark),
        _ => {}
    }
}

/// How far two texts are the same.
fn shared(one: &str, other: &str) -> usize {
    one.bytes().zip(other.bytes()).take_while(|(a, b)| a == b).count()
}

/// Holds that a request begins with the one before it, up to what is for that one's turn alone.
#[track_caller]
fn grows(wire: Wire, first: Value, second: Value) {
    let ((rest, first), (same, second)) = (parts(wire, first), parts(wire, second));
    assert_eq!(rest.to_string(), same.to_string(), "{wire}");
    let history = first.find(LATE).unwrap();
    let shared = shared(&first, &second);
    // Behind the last word of the history there is at most what begins a text.
    let between = first.get(shared..history).unwrap_or_default();
    let syntax = between.replace("\\n", "").replace("\"text\"", "").replace("\"type\"", "");
    let is_syntax = !syntax.contains(|it: char| it.is_alphanumeric());
    assert!(is_syntax, "{wire}: {between} isn't shared\n{first}\n{second}");
    let next = second.rfind(LATE).unwrap();
    assert!(next > shared, "{wire}: it ends with what is for its turn alone");
    for part in [r#"id=\"news\""#, r#"id=\"metadata\""#] {
        assert_eq!(second.rfind(part).unwrap().max(next), second.rfind(part).unwrap(), "{wire}");
    }
    assert_ne!(first[history..], second[next..], "{wire}: what is late has changed");
}

#[tokio::test]
async fn a_request_begins_with_the_one_before_it_whatever_changed_at_its_end() {
    for wire in Wire::ALL {
        for dialect in [Dialect::default(), Dialect::Native] {
            let requests = requests(wire, dialect).await;
            assert_eq!(requests.len(), 3, "{wire}");
            for pair in requests.windows(2) {
                grows(wire, pair[0].clone(), pair[1].clone());
            }
        }
    }
}

/// The blocks of a request up to the last one that is marked, without the marks.
fn kept(body: &Value) -> Vec<Value> {
    let messages = body["messages"].as_array().unwrap();
    let said = messages.iter().flat_map(|it| it["content"].as_array().unwrap());
    let tools = body["tools"].as_array().into_iter().flatten();
    let system = body["system"].as_array().into_iter().flatten();
    let mut blocks: Vec<Value> = tools.chain(system).chain(said).cloned().collect();
    let last = blocks.iter().rposition(|it| it.get("cache_control").is_some()).unwrap();
    blocks.truncate(last + 1);
    blocks.iter_mut().for_each(unmark);
    blocks
}

#[tokio::test]
async fn a_mark_stands_before_what_is_for_one_turn_alone() {
    for dialect in [Dialect::default(), Dialect::Native] {
        let requests = requests(Wire::AnthropicMessages, dialect).await;
        for pair in requests.windows(2) {
            let (first, second) = (kept(&pair[0]), kept(&pair[1]));
            let text = json!(first).to_string();
            assert!(!text.contains(LATE) && text.contains("What is six times seven?"), "{text}");
            assert!(second.len() > first.len());
            assert_eq!(first[..], second[..first.len()]);
        }
    }
}

#[tokio::test]
async fn attachments_stand_before_what_is_for_one_turn_alone() {
    for wire in Wire::ALL {
        let server = Server::start(vec![speaks(wire, ".", &[])]).await;
        let model = Remote::at(wire, server.url(), "m").build().unwrap();
        let late = format!("\n\n{LATE}]");
        for late in [&*late, ""] {
            let mut prompt = Prompt::new("").user(format!("Look.{late}"));
            prompt.messages[0].attached = vec![Attached::new("image/png", b"\x89PNG")];
            prompt.late_bytes = late.len();
            drop(model.turn(prompt).await.unwrap());
        }
        let asked = server.asked();
        let texts = asked.iter().map(|it| parts(wire, it.body.clone()).1);
        let texts: Vec<String> = texts.collect();
        if wire == Wire::Ollama {
            // An image has a place of its own there.
            continue;
        }
        let image = texts[0].find("iVBORw==").unwrap();
        assert!(shared(&texts[0], &texts[1]) > image, "{wire}: {texts:?}");
        assert!(texts[0].find(LATE).unwrap() > image, "{wire}: {texts:?}");
        assert!(!texts[1].contains(LATE), "{wire}");
    }
}
