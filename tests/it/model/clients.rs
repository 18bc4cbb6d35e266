//! The servers of these tests, called by the providers' own packages. The packages read the same
//! replies as our client, and our client sends the same requests as the packages.
//!
//! `wires/NAME.asked.json` has the requests of the packages, so that the tests compare our requests
//! with them without Python. `just llm-clients` runs the packages and compares anew.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use pumphouse::limits::ModelLimits;
use pumphouse::model::{
    Attached, Call, Error, Kind, Model, Piece, Prompt, Remote, Role, Tool, Wire,
};
use pumphouse::secret::Secret;
use serde_json::{Value, json};

use super::fake::{Act, Asked, Server, head, say};
use super::text_of;
use super::wires::{begun, failure, head_of, stream, whole};
use crate::golden::Goldens;

/// What is asked, in the order in which it is asked.
const QUESTIONS: [&str; 7] = ["stream", "result", "image", "whole", RATE_LIMIT, BAD, WITHIN];
const RATE_LIMIT: &str = "Answer with 429.";
const BAD: &str = "Answer with 400.";
const WITHIN: &str = "Fail within.";

/// Where we send something else than the package of a wire, and why: how the path of a difference
/// ends.
const DIFFERENCES: &[(Wire, &str, &str)] = &[
    (Wire::AnthropicMessages, ".cache_control", "we mark what the provider is to keep"),
    (Wire::AnthropicMessages, ".stream", WHOLE),
    (Wire::AnthropicMessages, ".anthropic-version", "we speak version 2023-06-01"),
    (Wire::AnthropicMessages, ".x-api-key", "the header for a key in that version"),
    (Wire::AnthropicMessages, ".authorization", "the header for a key in the package's version"),
    (Wire::OpenAiChat, ".stream", WHOLE),
    (Wire::OpenAiChat, ".reasoning_content", "the package sends back what it doesn't know"),
    (Wire::OpenAiChat, ".tool_calls.*.index", "the package sends back its place in the stream"),
    (Wire::OpenAiResponses, ".stream", WHOLE),
    (Wire::OpenAiResponses, ".input.*.id", STORED),
    (Wire::OpenAiResponses, ".input.*.status", STORED),
    (Wire::OpenAiResponses, ".input.*.type", SHORT),
    (Wire::OpenAiResponses, ".input.*.content", SHORT),
    (Wire::Gemini, ".line", "we ask version `v1beta`, the package `v1`"),
    (Wire::Gemini, ".systemInstruction.role", "the package gives the system text a role"),
    (Wire::Ollama, ".tool_calls.*.id", OWN_ID),
    (Wire::Ollama, ".tool_call_id", OWN_ID),
];
const WHOLE: &str = "we say that a whole reply is wanted, which is the default";
const STORED: &str = "a name that the provider stores an item by, and nothing is stored";
const OWN_ID: &str = "we hand the provider's own id back, the package drops it";
const SHORT: &str = "we send the short form of a message";

/// An error as a provider of this wire says it.
fn refusal(wire: Wire, status: u16) -> String {
    let (kind, name) = match status {
        429 => ("rate_limit_error", "RESOURCE_EXHAUSTED"),
        _ => ("invalid_request_error", "INVALID_ARGUMENT"),
    };
    let message = format!("No: {status}.");
    let error = match wire {
        Wire::AnthropicMessages => {
            json!({ "type": "error", "error": { "type": kind, "message": message } })
        }
        Wire::Gemini => json!({ "error": { "code": status, "message": message, "status": name } }),
        Wire::Ollama => json!({ "error": message }),
        _ => json!({
            "error": { "message": message, "type": kind, "param": null, "code": null },
        }),
    };
    error.to_string()
}

/// What the server of a wire does with a request.
fn respond(wire: Wire, asked: &Asked) -> Vec<Act> {
    let body = asked.body.to_string();
    let json = "content-type: application/json\r\n";
    if body.contains(RATE_LIMIT) {
        let headers = format!("{json}retry-after: 7\r\n");
        return vec![head("429 Too Many Requests", &headers), say(refusal(wire, 429))];
    }
    if body.contains(BAD) {
        return vec![head("400 Bad Request", json), say(refusal(wire, 400))];
    }
    if body.contains(WITHIN) {
        return vec![head_of(wire), say(begun(wire)), say(failure(wire))];
    }
    let is_streamed = match wire {
        Wire::Gemini => asked.head.contains(":streamGenerateContent?alt=sse"),
        _ => asked.body["stream"] == true,
    };
    match is_streamed {
        true => vec![head_of(wire), say(stream(wire))],
        false => vec![head("200 OK", json), say(whole(wire))],
    }
}

async fn server(wire: Wire) -> Server {
    Server::answering(move |asked| respond(wire, asked)).await
}

/// The server's address, without a path.
fn address(server: &Server) -> String {
    server.url().trim_end_matches("/v1").to_owned()
}

/// The server where it seems to be the provider.
fn model(server: &Server, wire: Wire, is_streamed: bool) -> Remote {
    let home = wire.home().split('/').next_back().unwrap();
    let url = format!("{}/{home}", address(server));
    let limits = ModelLimits { retries_max: 0, ..ModelLimits::default() };
    let settings = Remote::at(wire, url, "m").key(Secret::new("sk-1")).max_tokens(64);
    let settings = if is_streamed { settings } else { settings.whole() };
    settings.limits(limits).build().unwrap()
}

/// What was read of a reply.
async fn read(model: &Remote, prompt: Prompt) -> (Vec<Piece>, Option<Error>) {
    let mut pieces = Vec::new();
    let mut reply = match model.turn(prompt).await {
        Ok(reply) => reply,
        Err(error) => return (pieces, Some(error)),
    };
    loop {
        match reply.next().await {
            Ok(Some(piece)) => pieces.push(piece),
            Ok(None) => return (pieces, None),
            Err(error) => return (pieces, Some(error)),
        }
    }
}

fn prompt(text: &str) -> Prompt {
    let mut prompt = Prompt::new("Be brief.").user(text);
    let a = json!({ "a": { "type": "integer" } });
    let schema = json!({ "type": "object", "properties": a, "required": ["a"] });
    prompt.tools = vec![Tool::new("add", "Adds.", schema)];
    prompt
}

/// A question, behind the reply to the first one where it shows that.
fn question(name: &str, reply: &[Piece]) -> Prompt {
    match name {
        "stream" | "whole" => prompt("1+1?"),
        "image" => {
            let mut prompt = prompt("Look.");
            prompt.messages[0].attached = vec![
                Attached::new("image/png", b"\x89PNG"),
                Attached::new("application/pdf", b"%PDF"),
            ];
            prompt
        }
        "result" => {
            let mut prompt = prompt("1+1?").assistant(text_of(reply)).said(Role::Tool, "2");
            for piece in reply {
                match piece {
                    Piece::Call(call) => prompt.messages[1].calls.push(call.clone()),
                    Piece::Signed(it) => prompt.messages[1].signed.push(it.clone()),
                    _ => {}
                }
            }
            prompt.messages[2].of = Some("c1".to_owned());
            prompt
        }
        text => prompt(text),
    }
}

/// What was read of a question, as the script prints it.
fn told(wire: Wire, name: &str, (pieces, error): &(Vec<Piece>, Option<Error>)) -> Value {
    if let Some(error) = error {
        let after = error.retry_after.map(|it| it.as_secs().to_string());
        return json!({
            "asked": name, "error": error.kind.as_str(), "status": error.status,
            "retry_after": after, "said": error.said.as_deref(),
        });
    }
    let (mut thinking, mut usage) = (String::new(), Value::Null);
    let (mut tools, mut signed): (Vec<Value>, Vec<Value>) = (Vec::new(), Vec::new());
    for piece in pieces {
        match piece {
            Piece::Reasoning(text) => thinking += text,
            Piece::Usage(it) => usage = json!([it.input, it.output, it.cached]),
            Piece::Call(Call { id, name, arguments, .. }) => {
                let arguments: Value = serde_json::from_str(arguments).unwrap();
                tools.push(json!([id, name, arguments]));
            }
            Piece::Signed(it) => {
                let json: Value = serde_json::from_str(&it.json).unwrap();
                let key = match wire {
                    Wire::AnthropicMessages => "signature",
                    Wire::OpenAiResponses => "encrypted_content",
                    _ => "thoughtSignature",
                };
                signed.push(json[key].clone());
            }
            _ => {}
        }
    }
    json!({
        "asked": name, "text": text_of(pieces), "thinking": thinking, "tools": tools,
        "signed": signed, "usage": usage,
    })
}

/// Asks everything by our own client: what we read, and what we sent.
async fn ours(wire: Wire) -> (Vec<Value>, Vec<Asked>) {
    let server = server(wire).await;
    let (mut all, mut reply) = (Vec::new(), Vec::new());
    for name in QUESTIONS {
        let model = model(&server, wire, name != "whole");
        let heard = read(&model, question(name, &reply)).await;
        all.push(told(wire, name, &heard));
        if name == "stream" {
            reply = heard.0;
        }
    }
    (all, server.asked())
}

/// What of a request is compared: where it goes, by which key, and its body.
fn request(asked: &Asked) -> Value {
    const HEADERS: [&str; 4] =
        ["x-api-key", "authorization", "x-goog-api-key", "anthropic-version"];
    let headers = asked.head.lines().filter_map(|it| {
        let (name, value) = it.split_once(": ")?;
        let name = name.to_ascii_lowercase();
        HEADERS.contains(&&*name).then(|| (name, value.into()))
    });
    json!({
        "line": asked.head.lines().next(),
        "headers": headers.collect::<serde_json::Map<_, _>>(),
        "body": asked.body,
    })
}

/// A request in the form in which it is compared: what a wire lets one write in two ways is written
/// in one, and the thoughts that Gemini's package sends back, of which the provider wants the
/// signatures alone, are left out.
fn normal(wire: Wire, value: &Value) -> Value {
    match value {
        Value::Object(all) => {
            let field = |(key, value): (&String, &Value)| {
                let is_text = wire == Wire::AnthropicMessages
                    && ["system", "content"].contains(&&**key)
                    && value.is_string();
                match is_text {
                    true => (key.clone(), json!([{ "type": "text", "text": value }])),
                    false if wire == Wire::Gemini => (camel(key), normal(wire, value)),
                    false => (key.clone(), normal(wire, value)),
                }
            };
            all.iter().map(field).collect()
        }
        Value::Array(all) => {
            let is_thought = |it: &Value| wire == Wire::Gemini && it["thought"] == true;
            all.iter().filter(|it| !is_thought(it)).map(|it| normal(wire, it)).collect()
        }
        value => value.clone(),
    }
}

/// `mime_type` as `mimeType`.
fn camel(key: &str) -> String {
    let mut parts = key.split('_');
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |all, it| all + &it[..1].to_uppercase() + &it[1..])
}

/// Where two values differ; what is null is as good as missing.
fn compare(path: &str, ours: &Value, theirs: &Value, differ: &mut Vec<(String, String)>) {
    match (ours, theirs) {
        (Value::Object(a), Value::Object(b)) => {
            for key in a.keys().chain(b.keys().filter(|it| !a.contains_key(*it))) {
                compare(&format!("{path}.{key}"), &ours[key], &theirs[key], differ);
            }
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            for (a, b) in a.iter().zip(b) {
                compare(&format!("{path}.*"), a, b, differ);
            }
        }
        _ if ours == theirs => {}
        _ => differ.push((path.to_owned(), format!("{path}: {ours}, the package: {theirs}"))),
    }
}

/// Holds our requests against those of a wire's package: only what the table says differs, and all
/// of that.
fn hold(wire: Wire, ours: &[Value], theirs: &[Value]) {
    assert_eq!(ours.len(), theirs.len(), "{wire}");
    let mut differ = Vec::new();
    for (name, (ours, theirs)) in QUESTIONS.iter().zip(ours.iter().zip(theirs)) {
        compare(name, &normal(wire, ours), &normal(wire, theirs), &mut differ);
    }
    let known: Vec<&str> =
        DIFFERENCES.iter().filter(|it| it.0 == wire).map(|(_, path, _)| *path).collect();
    let is_of = |path: &str, known: &str| path.ends_with(known);
    let news: Vec<&str> = differ
        .iter()
        .filter(|(path, _)| !known.iter().any(|it| is_of(path, it)))
        .map(|(_, text)| &**text)
        .collect();
    assert!(news.is_empty(), "{wire} differs from its package:\n{}", news.join("\n"));
    for it in known {
        assert!(differ.iter().any(|(path, _)| is_of(path, it)), "{wire}: {it} doesn't differ");
    }
}

fn golden(wire: Wire) -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/model/wires");
    folder.join(format!("{wire}.asked.json"))
}

#[tokio::test]
async fn what_we_send_is_what_the_package_of_each_wire_sent() {
    for wire in Wire::ALL {
        let ours: Vec<Value> = ours(wire).await.1.iter().map(request).collect();
        let text = std::fs::read_to_string(golden(wire)).unwrap();
        hold(wire, &ours, &serde_json::from_str::<Vec<Value>>(&text).unwrap());
    }
}

#[tokio::test]
async fn an_error_of_each_wire_has_its_kind_its_words_and_its_time() {
    for wire in Wire::ALL {
        let server = server(wire).await;
        for (text, kind, said) in [
            (RATE_LIMIT, Kind::RateLimited, "No: 429."),
            (BAD, Kind::Refused, "No: 400."),
            (WITHIN, Kind::Failed, "Overloaded"),
        ] {
            let error = read(&model(&server, wire, true), prompt(text)).await.1.unwrap();
            assert_eq!((error.kind, error.said.as_deref()), (kind, Some(said)), "{wire}");
            let after = (kind == Kind::RateLimited).then(|| Duration::from_secs(7));
            assert_eq!(error.retry_after, after, "{wire}");
        }
    }
}

/// What the package of a wire calls its errors: of a status of 429, of 400, and within a stream.
fn errors(wire: Wire) -> [&'static str; 3] {
    match wire {
        Wire::AnthropicMessages => ["RateLimitError", "BadRequestError", "APIStatusError"],
        Wire::OpenAiChat => ["RateLimitError", "BadRequestError", "APIError"],
        // The package has a response that failed, and no error.
        Wire::OpenAiResponses => ["RateLimitError", "BadRequestError", "RuntimeError"],
        Wire::Gemini => ["ClientError", "ClientError", "ServerError"],
        _ => ["ResponseError", "ResponseError", "ResponseError"],
    }
}

/// Runs the script with the package of a wire: what it printed.
async fn package(python: &str, wire: Wire, url: &str) -> Vec<Value> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/llm/clients.py");
    let output = tokio::process::Command::new(python)
        .arg(script)
        .args([wire.name(), url])
        .stdin(Stdio::null())
        .output()
        .await
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{wire}: {errors}");
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().map(|it| serde_json::from_str(it).unwrap()).collect()
}

/// `just llm-clients`: the packages read what we read, and send what we send.
#[tokio::test]
#[expect(clippy::disallowed_methods, reason = "the packages are asked where Python is there")]
async fn the_package_of_each_wire_reads_what_we_read() {
    let Ok(python) = std::env::var("PUMPHOUSE_LLM_PYTHON") else {
        return crate::skipped("no PUMPHOUSE_LLM_PYTHON");
    };
    let mut goldens = Goldens::default();
    println!("| wire | questions | read the same | sent the same but for |");
    println!("| --- | ---: | ---: | --- |");
    for wire in Wire::ALL {
        let server = server(wire).await;
        let theirs = package(&python, wire, &address(&server)).await;
        let (ours, asked) = ours(wire).await;
        assert_eq!(theirs.len(), QUESTIONS.len(), "{wire}");
        let mut classes = errors(wire).into_iter();
        for (ours, theirs) in ours.iter().zip(&theirs) {
            let mut differ = Vec::new();
            let mut theirs = theirs.clone();
            if let Some(it) = theirs.get("error").cloned() {
                assert_eq!(it, classes.next().unwrap(), "{wire}: {theirs}");
                // Ours has a kind, which a test of its own holds; the status of an error within a
                // stream is what it says of itself.
                theirs["error"] = ours["error"].clone();
                if ours["asked"] == WITHIN {
                    theirs["status"] = ours["status"].clone();
                }
                // Ollama's package doesn't keep an answer's headers.
                if wire == Wire::Ollama {
                    theirs["retry_after"] = ours["retry_after"].clone();
                }
            }
            theirs.as_object_mut().unwrap().remove("stop");
            compare("", ours, &theirs, &mut differ);
            assert!(differ.is_empty(), "{wire}: {differ:?}");
        }
        let sent: Vec<Value> = server.asked().iter().map(request).collect();
        goldens.check(&golden(wire), &(serde_json::to_string_pretty(&sent).unwrap() + "\n"));
        hold(wire, &asked.iter().map(request).collect::<Vec<_>>(), &sent);
        let known = DIFFERENCES.iter().filter(|it| it.0 == wire);
        let known: Vec<String> =
            known.map(|(_, path, why)| format!("`{}`: {why}", path.trim_matches('.'))).collect();
        let count = QUESTIONS.len();
        println!("| `{wire}` | {count} | {count} | {} |", known.join("; "));
    }
    goldens.finish();
}
