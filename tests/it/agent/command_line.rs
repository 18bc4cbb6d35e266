//! What the command line shows of agents.

use pumphouse::client::{Client, Push};
use pumphouse::door::{Options, Tcp};
use pumphouse::log::{Durability, SqliteLog};
use serde_json::Value;

use super::*;
use crate::program::{Scene, log_in};

const FIRST: &str = r#"<thought>A sum. <action id="sum" show="false">
{"name": "calculate", "parameters": {"expression": "6*7"}}</action></thought>"#;

/// A folder whose log has a thread of the oracle's.
async fn folder() -> (Scene, ThreadId) {
    let scene = Scene::new();
    let path = log_in(&scene.path("."));
    let log: Arc<dyn Log> = Arc::new(SqliteLog::open(path, Durability::Normal).unwrap());
    let agent = oracle(Scripted::replies([FIRST, "<response>It is ${sum}.</response>"]));
    let question = agent.ask("Six times \u{9b}seven?").unwrap();
    let pump = start(&log, agent);
    let answer = pump.ask_element(question).await.unwrap();
    pump.shutdown().await.unwrap();
    (scene, answer.thread().clone())
}

#[tokio::test]
async fn export_has_transcripts_and_conversations() {
    let (scene, thread) = folder().await;
    let export = |format: &str| {
        scene.run(&["--data", ".", "export", thread.as_str(), "--format", format]).code(0).objects()
    };
    let events = export("transcript");
    let types = events.iter().map(|it| it["type"].as_str().unwrap());
    // A result comes when it comes.
    let types: Vec<&str> = types.filter(|it| *it != "tool_call_result").collect();
    let told = [
        "cognition_in",
        "cognition_in",
        "step_start",
        "tool_call_start",
        "thought",
        "cognition_out",
        "step_start",
        "cognition_out",
        "response",
    ];
    assert_eq!(types, told);
    let first = |kind: &str| events.iter().find(|it| it["type"] == *kind).unwrap();
    assert_eq!(first("tool_call_start")["input"]["expression"], "6*7");
    assert_eq!(first("tool_call_result")["output"], "42");
    assert_eq!(first("cognition_out")["tool_count"], 1);
    let openai = export("messages-openai").pop().unwrap();
    assert_eq!(openai["messages"][3]["content"], "42");
    let anthropic = export("messages-anthropic").pop().unwrap();
    assert_eq!(anthropic["messages"][2]["content"][0]["tool_use_id"], "sum");
    let run =
        |more: &[&str]| scene.run(&[&["--data", ".", "export", thread.as_str()], more].concat());
    run(&["--follow"]).code(2).says(&["--format transcript"]);
    run(&["--agent", "oracle"]).code(2).says(&["messages-openai"]);
    let agent = ["--format", "messages-openai", "--agent", "orcle"];
    run(&agent).code(1).says(&["no orcle had a turn", "oracle"]);
}

#[tokio::test]
async fn prompt_prints_what_the_model_was_shown() {
    let (scene, thread) = folder().await;
    let prompt = |seq: u64, more: &[&str]| {
        let id = format!("{thread}/{seq}");
        scene.run(&[&["--data", ".", "prompt", &id], more].concat())
    };
    let export = ["--data", ".", "export", thread.as_str(), "--format", "transcript"];
    let events = scene.run(&export).code(0).objects();
    let begins = events.iter().rfind(|it| it["type"] == "step_start").unwrap();
    let second = begins["entry"].as_u64().unwrap();
    let last = prompt(second, &[]).code(0);
    last.says(&["oracle  turn 2", "You know it all.", "Six times &#x9B;seven?", "sum", "digest "]);
    let object = prompt(second, &["--json"]).code(0).objects().pop().unwrap();
    let first = unmarked(object["messages"][0]["content"].as_str().unwrap());
    assert_eq!(first, "[console]\nSix times \u{9b}seven?");
    assert_eq!(object["messages"][1]["content"], FIRST);
    let cost = prompt(second, &["--cost"]).code(0);
    cost.says(&["protocol", "abilities", "peers", "own replies", "messages", "about, at four"]);
    let parts = prompt(second, &["--cost", "--json"]).code(0).objects().pop().unwrap();
    let parts = parts["tokens"].as_object().unwrap().clone();
    let sum: u64 = parts.values().map(|it| it.as_u64().unwrap()).sum();
    let bytes = object["system"].as_str().unwrap().len() + FIRST.len();
    assert!(sum.abs_diff(bytes as u64 / 4) < 60, "{parts:?}: {bytes} bytes");
    assert!(parts["abilities"].as_u64().unwrap() <= 200, "{parts:?}");
    prompt(1, &[]).code(1).says(&["no turn of an agent had begun there", "cognition_in"]);
    prompt(99, &[]).code(1).says(&["the last message of its thread"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_door_shows_a_transcript_while_it_is_written() {
    let door = Tcp::bind("127.0.0.1:0", Options::default()).await.unwrap();
    let address = door.local_addr().to_string();
    let slow = Script::text("<thought>Slowly, word by word.</thought><response>42</response>");
    let slow = slow.chunks(4).every(Duration::from_millis(5));
    let agent = oracle(Scripted::replies([FIRST.into(), "<response>42</response>".into(), slow]));
    let question = |text: &str| Push::element(agent.ask(text).unwrap());
    let questions = [question("Six times seven?"), question("Sure?")];
    let builder =
        pumphouse::builder().with((core(), agent_support(), tool::calculate::calculate(), door));
    let pump = builder.with(agent.listener()).build().unwrap().start();
    let mut client = Client::connect(&*address).await.unwrap();
    let thread = client.tell(&questions[0]).await.unwrap().thread;
    let scene = Scene::new();
    let verb = ["export", &*thread, "--format", "transcript", "-f", "--connect", &address];
    let mut child = scene.command(&verb).stdout(std::process::Stdio::piped()).spawn().unwrap();
    let out = std::io::BufReader::new(child.stdout.take().unwrap());
    let mut events: Vec<Value> = Vec::new();
    for line in std::io::BufRead::lines(out) {
        events.push(serde_json::from_str(&line.unwrap()).unwrap());
        let answers = events.iter().filter(|it| it["type"] == "response").count();
        if answers == 2 {
            break;
        }
        if events.last().unwrap()["type"] == "response" {
            let again = questions[1].clone().in_thread(&ThreadId::new(&thread));
            client.tell(&again).await.unwrap();
        }
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let of = |kind: &str| events.iter().filter(|it| it["type"] == *kind).count();
    assert!(of("cognition_out_delta") > 3, "{events:?}");
    // Who looks on isn't shown what isn't for showing.
    assert_eq!((of("tool_call_start"), of("tool_call_result"), of("cognition_out")), (0, 0, 3));
    pump.shutdown().await.unwrap();
}
