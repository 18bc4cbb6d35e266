//! Tests of lines, connections and descriptions of tools, also with servers that misbehave.

use std::future::ready;

use futures_util::FutureExt as _;
use pumphouse::secret::Secrets;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream};
use tokio::sync::mpsc;

use super::super::text::shown;
use super::exchange::{Failure, Shared, Waiter, heard, message};
use super::limits::{LINE_BYTES_MAX, PROGRESS_BYTES_MAX};
use super::line::{self, Line};
use super::queue::Queue;
use super::tools::{matches, pinned, tools};
use super::wire::Wire;

#[tokio::test]
async fn a_line_is_whole_or_too_long() {
    let mut from = BufReader::new(&b"ab\n\ncdefg\n"[..]);
    assert_eq!(line::next(&mut from, 4).await.unwrap(), Line::Whole(b"ab".to_vec()));
    assert_eq!(line::next(&mut from, 4).await.unwrap(), Line::Whole(Vec::new()));
    assert_eq!(line::next(&mut from, 4).await.unwrap(), Line::TooLong(Vec::new()));
    assert!(line::skip(&mut from, 9).await.unwrap());
    assert_eq!(line::next(&mut from, 4).await.unwrap(), Line::End);
    assert_eq!(
        line::next(&mut BufReader::new(&b"x"[..]), 4).await.unwrap(),
        Line::Whole(b"x".into())
    );
    assert_eq!(line::next(&mut BufReader::new(&b""[..]), 4).await.unwrap(), Line::End);
}

/// Lists a server's tools and calls a tool. The server answers each line with the lines that `says`
/// returns.
async fn with(
    says: impl Fn(&Value) -> Vec<String>,
) -> (Result<usize, Failure>, Result<Value, Failure>) {
    let (ours, theirs) = tokio::io::duplex(1 << 16);
    let (from, to) = tokio::io::split(ours);
    let (wire, driver) = Wire::new(from, to, ready(String::new()), Secrets::default());
    let calls = async {
        let listed = match wire.begin().await {
            Ok(()) => wire.list().await.map(|it| it.len()),
            Err(failure) => Err(failure),
        };
        let (progress, _said) = mpsc::channel(1);
        (listed, wire.call("t", json!({}), progress).await)
    };
    tokio::select! {
        found = calls => found,
        () = async { tokio::join!(driver, serves(theirs, says)); std::future::pending().await } => {
            panic!("it is over")
        }
    }
}

async fn serves(theirs: DuplexStream, says: impl Fn(&Value) -> Vec<String>) {
    let (from, mut to) = tokio::io::split(theirs);
    let mut lines = BufReader::new(from).lines();
    while let Some(line) = lines.next_line().await.unwrap() {
        let asked: Value = serde_json::from_str(&line).unwrap();
        for line in says(&asked) {
            if to.write_all((line + "\n").as_bytes()).await.is_err() {
                return;
            }
        }
    }
}

fn result(asked: &Value, result: &Value) -> String {
    json!({ "jsonrpc": "2.0", "id": asked["id"], "result": result }).to_string()
}

/// The answers of an ordinary server.
fn usual(asked: &Value) -> Vec<String> {
    match asked["method"].as_str().unwrap() {
        "initialize" => vec![result(asked, &json!({ "protocolVersion": "2025-06-18" }))],
        "tools/list" => vec![result(asked, &json!({ "tools": [{ "name": "t" }] }))],
        "tools/call" => vec![result(asked, &json!({ "content": [] }))],
        _ => Vec::new(),
    }
}

#[tokio::test]
async fn an_ordinary_server_is_asked_and_called() {
    let (listed, called) = with(usual).await;
    assert_eq!((listed, called), (Ok(1), Ok(json!({ "content": [] }))));
}

#[tokio::test]
async fn what_nobody_asked_for_is_nobodys_answer() {
    let noisy = |asked: &Value| {
        let others =
            ["hello", "{\"id\":77,\"result\":1}", "{\"id\":\"x\",\"result\":2}", "[]", "{}"];
        let mut all: Vec<String> = others.map(str::to_owned).to_vec();
        all.push("{\"method\":\"notifications/progress\",\"params\":{}}".to_owned());
        all.extend(usual(asked));
        all
    };
    let (listed, called) = with(noisy).await;
    assert_eq!((listed, called), (Ok(1), Ok(json!({ "content": [] }))));
}

/// If a call is dropped, the server gets a cancellation with the id of the request.
#[tokio::test]
async fn a_call_that_is_dropped_is_cancelled() {
    let (ours, theirs) = tokio::io::duplex(1 << 16);
    let (from, to) = tokio::io::split(ours);
    let (wire, driver) = Wire::new(from, to, ready(String::new()), Secrets::default());
    let mut lines = BufReader::new(theirs).lines();
    let test = async {
        let (progress, _said) = mpsc::channel(1);
        tokio::select! {
            _ = wire.call("t", json!({}), progress) => panic!("an answer"),
            line = lines.next_line() => assert!(line.unwrap().unwrap().contains("tools/call")),
        }
        let told: Value = serde_json::from_str(&lines.next_line().await.unwrap().unwrap()).unwrap();
        assert_eq!(told["method"], "notifications/cancelled");
        assert_eq!(told["params"]["requestId"], 0);
    };
    tokio::select! {
        () = driver => panic!("it is over"),
        () = test => {}
    }
}

/// The driver waits until the server reads the rest of a message, and the server never does.
#[tokio::test]
async fn a_connection_ends_with_its_handles_even_if_its_server_reads_nothing() {
    let (ours, theirs) = tokio::io::duplex(16);
    let (from, to) = tokio::io::split(ours);
    let (wire, driver) = Wire::new(from, to, ready(String::new()), Secrets::default());
    let mut driver = std::pin::pin!(driver);
    let (progress, _said) = mpsc::channel(1);
    let called = wire.call("t", json!({ "x": "x".repeat(1_000) }), progress).now_or_never();
    assert_eq!(called, None);
    assert_eq!(driver.as_mut().now_or_never(), None, "it waits");
    drop(wire);
    driver.await;
    drop(theirs);
}

/// What is kept of progress until it is shown is short, whatever a server says.
#[test]
fn long_messages_about_progress_are_cut() {
    let shared = Shared::default();
    let (to, _answer) = tokio::sync::oneshot::channel();
    let (progress, mut said) = mpsc::channel(1);
    shared.waiting().answers.insert(7, Waiter { to, progress: Some(progress) });
    let long = "é".repeat(PROGRESS_BYTES_MAX);
    let params = json!({ "progressToken": 7, "progress": 1, "message": long, "more": long });
    let message = json!({ "method": "notifications/progress", "params": params });
    heard(message, &shared, &Queue::new().0.weak());
    let kept = said.try_recv().unwrap();
    assert_eq!(kept["message"].as_str().unwrap().len(), PROGRESS_BYTES_MAX);
    assert_eq!((&kept["progress"], kept.get("more")), (&json!(1), None));
}

#[tokio::test]
async fn progress_is_heard_by_the_call_that_it_is_of() {
    let (ours, theirs) = tokio::io::duplex(1 << 16);
    let (from, to) = tokio::io::split(ours);
    let (wire, driver) = Wire::new(from, to, ready(String::new()), Secrets::default());
    let says = |asked: &Value| {
        let of = |token: &Value| {
            let params = json!({ "progressToken": token, "progress": 1, "message": "half" });
            json!({ "method": "notifications/progress", "params": params }).to_string()
        };
        let token = &asked["params"]["_meta"]["progressToken"];
        let mut all = vec![of(&json!("of nobody")), of(&json!(99)), of(token), of(token)];
        all.extend(usual(asked));
        all
    };
    let (progress, mut said) = mpsc::channel(1);
    let called = tokio::select! {
        it = wire.call("t", json!({}), progress) => it,
        () = async { tokio::join!(driver, serves(theirs, says)); } => panic!("it is over"),
    };
    assert!(called.is_ok());
    // The channel has room for only one of the two messages.
    assert_eq!(said.recv().await.unwrap()["message"], "half");
    assert_eq!(said.recv().await, None);
}

#[tokio::test]
async fn roots_sampling_and_elicitation_are_declined() {
    let declined = std::sync::Mutex::new(Vec::new());
    let asks = |asked: &Value| {
        if asked.get("method").is_none() {
            declined.lock().unwrap().push(asked.clone());
            return Vec::new();
        }
        let more = ["roots/list", "sampling/createMessage", "elicitation/create", "ping"];
        let ask = |it: &str| json!({ "jsonrpc": "2.0", "id": it, "method": it }).to_string();
        let mut all: Vec<String> = match asked["method"] == "tools/list" {
            true => more.map(ask).to_vec(),
            false => Vec::new(),
        };
        all.extend(usual(asked));
        all
    };
    let (listed, called) = with(asks).await;
    assert!(listed.is_ok() && called.is_ok());
    let declined = declined.into_inner().unwrap();
    let codes: Vec<_> = declined.iter().map(|it| it["error"]["code"].as_i64()).collect();
    assert_eq!(codes, [Some(-32601), Some(-32601), Some(-32601), None]);
}

#[tokio::test]
async fn a_bad_line_fails_its_own_call() {
    let check = async |line: &dyn Fn(&Value) -> String, expected: Result<Value, &str>| {
        let answer = |asked: &Value| match asked["method"] == "tools/call" {
            true => vec![line(asked)],
            false => usual(asked),
        };
        let called = with(answer).await.1.map(|it| it["text"].clone());
        let called = called.map_err(|it| it.to_string());
        let is_right = match (&called, expected) {
            (Ok(called), Ok(expected)) => *called == expected,
            (Err(told), Err(expected)) => told.contains(expected),
            _ => false,
        };
        assert!(is_right, "{called:?}");
    };
    let says = |text: &'static str| {
        move |asked: &Value| format!(r#"{{"jsonrpc":"2.0","id":{},"result":{text}}}"#, asked["id"])
    };
    check(&says(r#"{"text":"page \ud83d end"}"#), Ok(json!("page \u{FFFD} end"))).await;
    check(&says(r#"{"text":18446744073709551615}"#), Ok(json!(u64::MAX))).await;
    let told = "the whole number 18446744073709551616 has more than 64 bits";
    check(&says(r#"{"text":18446744073709551616}"#), Err(told)).await;
    check(&says(r#"{"text":"a" "b"}"#), Err("the server's JSON can't be read")).await;
    check(&says(r#"{"a":1,"a":2}"#), Err("stands twice")).await;
}

#[test]
fn a_schema_that_does_not_say_that_it_is_of_an_object_is_one() {
    let own = |name: &str, schema: Value| json!({ "name": name, "inputSchema": schema });
    let property = json!({ "a": { "type": "integer" } });
    let all = json!([
        own("unsaid", json!({ "properties": property })),
        own("listed", json!({ "type": ["object"], "properties": property })),
        own("choice", json!({ "anyOf": [{ "properties": property, "required": ["a"] }] })),
        own("text", json!({ "type": "string" })),
        own("none", json!({})),
    ]);
    let all: Vec<Value> = all.as_array().unwrap().clone();
    let (tools, left_out) = tools(&pinned(&all), &[], "urn:x", &[]);
    let names: Vec<&str> = tools.iter().map(|it| &*it.name).collect();
    assert_eq!(names, ["choice", "listed", "unsaid"]);
    assert_eq!(left_out.len(), 2, "{left_out:?}");
}

#[test]
fn the_request_of_an_unreadable_message_is_found_by_its_id() {
    let shared = Shared::default();
    let mut answers = Vec::new();
    for id in [3, 4] {
        let (to, answer) = tokio::sync::oneshot::channel();
        shared.waiting().answers.insert(id, Waiter { to, progress: None });
        answers.push(answer);
    }
    assert_eq!(message(r#"{"result": {"id": 3}, "id" : "4", "#, &shared, None), None);
    assert!(shared.waits(3) && !shared.waits(4));
    // It doesn't say which one it answers, and only one waits.
    assert_eq!(message(r#"{"result": "#, &shared, None), None);
    assert!(!shared.waits(3));
    assert!(answers.iter_mut().all(|it| matches!(it.try_recv(), Ok(Err(Failure::Nonsense(_))))));
}

#[tokio::test]
async fn a_server_that_says_too_much_is_left() {
    let endless = |asked: &Value| match asked["method"] == "tools/list" {
        true => vec![result(asked, &json!({ "tools": [], "nextCursor": "more" }))],
        false => usual(asked),
    };
    let told = with(endless).await.0.expect_err("too many pages");
    assert_eq!(told.to_string(), "its list of tools has more than 32 pages");
    let many = |asked: &Value| match asked["method"] == "tools/list" {
        true => vec![result(asked, &json!({ "tools": vec![json!({ "name": "t" }); 300] }))],
        false => usual(asked),
    };
    let told = with(many).await.0.expect_err("too many tools");
    assert_eq!(told.to_string(), "it has more than 256 tools");
    let long = |asked: &Value| match asked["method"] == "tools/call" {
        true => vec!["x".repeat(LINE_BYTES_MAX + 1)],
        false => usual(asked),
    };
    let told = with(long).await.1.expect_err("a long line");
    assert_eq!(told.to_string(), "the server wrote a line of more than 4194304 bytes");
    let old = |asked: &Value| vec![result(asked, &json!({ "protocolVersion": "1999-01-01" }))];
    let told = with(old).await.0.expect_err("an unknown revision").to_string();
    assert!(told.starts_with("it speaks MCP \"1999-01-01\"; known are "), "{told}");
}

#[test]
fn a_pattern_is_a_name_with_anything_in_it() {
    for (pattern, name, expected) in [
        ("read_file", "read_file", true),
        ("read_*", "read_file", true),
        ("read_*", "write_file", false),
        ("*_file", "read_file", true),
        ("*", "", true),
        ("r*d*e", "read_file", true),
        ("r*x*e", "read_file", false),
        ("*ab", "aab", true),
        ("a*a", "a", false),
        ("*a*a*", "aa", true),
        ("*a*a*", "ba", false),
    ] {
        assert_eq!(matches(pattern, name), expected, "{pattern} {name}");
    }
}

#[test]
fn a_tool_is_a_payload_and_one_that_cannot_be_is_left_out() {
    let tool = |name: &str, schema: Value| {
        json!({ "name": name, "description": "Says\u{1b}[2J\u{202E} it.", "inputSchema": schema,
            "annotations": { "readOnlyHint": true }, "icons": [1] })
    };
    let all = [
        tool("say", json!({ "type": "object" })),
        tool("a/b", json!({ "type": "object" })),
        tool("a b", json!({ "type": "object" })),
        tool("tool-result", json!({ "type": "object" })),
        tool("odd", json!({ "type": "string" })),
        tool("away", json!({ "type": "object", "$ref": "http://x" })),
        json!({ "description": "without a name" }),
    ];
    let (tools, left_out) = tools(&pinned(&all), &[], "urn:x", &["tool-result"]);
    let names: Vec<_> = tools.iter().map(|it| (&*it.name, it.schema.name.local())).collect();
    let expected =
        [("a b", "a_b"), ("a/b", "a_b-2"), ("say", "say"), ("tool-result", "tool-result-2")];
    assert_eq!(names, expected);
    let doc = "Says\u{FFFD}[2J\u{FFFD} it. Its server says of it: readOnlyHint true.";
    assert_eq!(tools[0].schema.doc(), doc);
    assert_eq!(left_out.len(), 2, "{left_out:?}");
    assert_eq!(pinned(&all)["say"].get("icons"), None);
    assert_eq!(shown("a\u{7}b"), "a\u{FFFD}b");
}
