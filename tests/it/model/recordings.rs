//! Recorded streams of many providers, read by the whole client.

use pumphouse::model::{Call, Piece, Stop};
use serde_json::Value;

use super::fake::{Act, Server, say};
use super::heard;
use crate::suites::{Case, cases, suites};

/// Bytes of a recording that is also read byte by byte.
const SMALL: usize = 4 << 10;

#[tokio::test]
async fn every_recorded_stream_is_understood() {
    let Some(suites) = suites() else { return };
    let all = cases(&suites, "llm-sse/index.jsonl");
    let chats: Vec<Case> = all.into_iter().filter(|it| it.text("wire") == "openai-chat").collect();
    for case in &chats {
        let bytes = case.bytes();
        let expected = expected(&case.row["expected"]);
        let small = if bytes.len() <= SMALL { 1 } else { 64 };
        for (how, chunks) in [
            ("whole", vec![bytes.as_slice()]),
            ("in small chunks", bytes.chunks(small).collect()),
            ("in odd chunks", odd(&bytes)),
        ] {
            let server = Server::start(vec![vec![chunked(&chunks)]]).await;
            let model = server.model().build().unwrap();
            let (pieces, error) = heard(&model).await;
            assert_eq!(error, None, "{} {how}", case.file());
            assert_eq!(joined(pieces), expected, "{} {how}", case.file());
        }
    }
    assert!(chats.len() >= 219, "only {} recordings were there", chats.len());
}

/// Each chunk as one of HTTP's, so that it comes as it is.
fn chunked(chunks: &[&[u8]]) -> Act {
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\
                transfer-encoding: chunked\r\n\r\n";
    let mut bytes = head.as_bytes().to_vec();
    for chunk in chunks {
        bytes.extend(format!("{:x}\r\n", chunk.len()).bytes());
        bytes.extend_from_slice(chunk);
        bytes.extend(b"\r\n");
    }
    bytes.extend(b"0\r\n\r\n");
    say(bytes)
}

/// Chunks of 1 to 97 bytes, the same ones each time.
fn odd(bytes: &[u8]) -> Vec<&[u8]> {
    let (mut chunks, mut rest, mut length) = (Vec::new(), bytes, 1);
    while !rest.is_empty() {
        let (chunk, after) = rest.split_at(length.min(rest.len()));
        chunks.push(chunk);
        (rest, length) = (after, length * 31 % 97 + 1);
    }
    chunks
}

#[derive(Debug, Default, PartialEq)]
struct Joined {
    text: String,
    reasoning: String,
    refusal: String,
    calls: Vec<Call>,
    stop: Option<Stop>,
}

fn joined(pieces: Vec<Piece>) -> Joined {
    let mut all = Joined::default();
    for piece in pieces {
        assert_eq!(all.stop, None, "nothing comes after a stop");
        match piece {
            Piece::Text(text) => all.text += &text,
            Piece::Reasoning(text) => all.reasoning += &text,
            Piece::Refusal(text) => all.refusal += &text,
            Piece::Call(call) => all.calls.push(call),
            Piece::Stop(stop) => all.stop = Some(stop),
            Piece::Usage(_) => {}
            other => panic!("unexpected: {other:?}"),
        }
    }
    all
}

fn expected(row: &Value) -> Joined {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    // A call that was cut before its first argument isn't one without arguments.
    let arguments = |it: &Value| match (text(&it["args"]), row["stop"] == "length") {
        (arguments, true) if arguments.is_empty() => "{".to_owned(),
        (arguments, _) => arguments,
    };
    let call = |it: &Value| Call::new(text(&it["id"]), text(&it["name"]), arguments(it));
    Joined {
        text: text(&row["text"]),
        reasoning: text(&row["thinking"]),
        refusal: text(&row["refusal"]),
        calls: row["tools"].as_array().unwrap().iter().map(call).collect(),
        stop: Some(match row["stop"].as_str().unwrap() {
            "stop" => Stop::End,
            "length" => Stop::MaxTokens,
            "tool_calls" => Stop::Calls,
            other => panic!("unexpected: {other}"),
        }),
    }
}
