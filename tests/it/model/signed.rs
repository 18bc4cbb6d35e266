//! Content that a provider signs or encrypts goes back unchanged, at its place, and over its own
//! wire only.

use pumphouse::model::{Call, Effort, Model, Piece, Prompt, Remote, Role, Signed, Wire};
use serde_json::{Value, json};

use super::fake::{Server, events, say};
use super::heard;

/// A reply that thinks, speaks and calls, as a wire writes it, and what it signs.
fn signed(wire: Wire) -> (String, Vec<Signed>) {
    let block = json!({ "signature": "s1", "thinking": "So.", "type": "thinking" });
    let hidden = json!({ "type": "redacted_thinking", "data": "d" });
    let item = json!({
        "type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAA"
    });
    let call =
        json!({ "type": "function_call", "call_id": "c1", "name": "add", "arguments": "{}" });
    let (stream, all) = match wire {
        Wire::AnthropicMessages => {
            let start = |index, it: Value| {
                let kind = "content_block_start";
                json!({ "type": kind, "index": index, "content_block": it })
            };
            let delta = |index, it: Value| {
                let kind = "content_block_delta";
                json!({ "type": kind, "index": index, "delta": it })
            };
            let stop = |index| json!({ "type": "content_block_stop", "index": index });
            let call = json!({ "type": "tool_use", "id": "c1", "name": "add", "input": {} });
            let stream = vec![
                start(0, json!({ "type": "thinking", "thinking": "" })),
                delta(0, json!({ "type": "thinking_delta", "thinking": "So." })),
                delta(0, json!({ "type": "signature_delta", "signature": "s1" })),
                stop(0),
                start(1, json!({ "type": "text", "text": "Hello." })),
                stop(1),
                start(2, call),
                stop(2),
                start(3, hidden.clone()),
                stop(3),
                json!({ "type": "message_delta", "delta": { "stop_reason": "tool_use" } }),
                json!({ "type": "message_stop" }),
            ];
            (stream, vec![(0, block), (2, hidden)])
        }
        Wire::OpenAiResponses => {
            let done = |place, item: &Value| {
                json!({
                    "type": "response.output_item.done", "output_index": place, "item": item
                })
            };
            let text = json!({ "type": "response.output_text.delta", "delta": "Hello." });
            let response = json!({ "status": "completed" });
            let over = json!({ "type": "response.completed", "response": response });
            (vec![done(0, &item), text, done(2, &call), over], vec![(0, item)])
        }
        _ => {
            let call = json!({ "functionCall": { "id": "c1", "name": "add", "args": {} } });
            let mut signed = call.clone();
            signed["thoughtSignature"] = "s1".into();
            let parts = json!([{ "text": "Hello." }, signed]);
            let candidate = json!({ "content": { "parts": parts }, "finishReason": "STOP" });
            (
                vec![json!({ "candidates": [candidate] })],
                vec![(2, json!({ "thoughtSignature": "s1" }))],
            )
        }
    };
    let stream = stream.iter().map(|it| format!("data: {it}\n\n")).collect();
    let all = all.into_iter().map(|(place, it)| Signed::new(wire, place, it.to_string()));
    (stream, all.collect())
}

/// The reply's message as a prompt has it later, and the result of its call.
fn conversation(signed: &[Signed]) -> Prompt {
    let mut prompt = Prompt::new("").user("1+1?").assistant("Hello.").said(Role::Tool, "2");
    prompt.messages[1].calls = vec![Call::new("c1", "add", "{}")];
    prompt.messages[1].signed = signed.to_vec();
    prompt.messages[2].of = Some("c1".to_owned());
    prompt
}

async fn asked(wire: Wire, prompt: Prompt) -> Value {
    let server = Server::start(vec![vec![events(), say(signed(wire).0)]]).await;
    drop(Remote::at(wire, server.url(), "m").build().unwrap().turn(prompt).await);
    server.asked().remove(0).body
}

const SIGNING: [Wire; 3] = [Wire::AnthropicMessages, Wire::OpenAiResponses, Wire::Gemini];

#[tokio::test]
async fn what_a_provider_signs_is_heard_with_its_place() {
    for wire in SIGNING {
        let (stream, expected) = signed(wire);
        let server = Server::start(vec![vec![events(), say(stream)]]).await;
        let (pieces, error) = heard(&Remote::at(wire, server.url(), "m").build().unwrap()).await;
        assert_eq!(error, None, "{wire}");
        let all = pieces.into_iter().filter_map(|it| match it {
            Piece::Signed(it) => Some(it),
            _ => None,
        });
        let read = |it: &Signed| (it.place, serde_json::from_str::<Value>(&it.json).unwrap());
        let all: Vec<_> = all.map(|it| read(&it)).collect();
        assert_eq!(all, expected.iter().map(read).collect::<Vec<_>>(), "{wire}");
    }
}

#[tokio::test]
async fn it_goes_back_between_the_text_and_the_calls_that_it_stood_between() {
    let kinds = |all: &Value| -> Vec<String> {
        let all = all.as_array().unwrap().iter();
        all.map(|it| it["type"].as_str().or(it["role"].as_str()).unwrap().to_owned()).collect()
    };
    for wire in SIGNING {
        let body = asked(wire, conversation(&signed(wire).1)).await;
        match wire {
            Wire::AnthropicMessages => assert_eq!(
                kinds(&body["messages"][1]["content"]),
                ["thinking", "text", "tool_use", "redacted_thinking"]
            ),
            Wire::OpenAiResponses => assert_eq!(
                kinds(&body["input"]),
                ["user", "reasoning", "assistant", "function_call", "function_call_output"]
            ),
            _ => {
                let parts = &body["contents"][1]["parts"];
                assert_eq!(parts[0].get("thoughtSignature"), None);
                assert_eq!(parts[1]["thoughtSignature"], "s1");
            }
        }
    }
}

#[tokio::test]
async fn another_wire_is_not_told_it() {
    for wire in Wire::ALL {
        let others: Vec<Signed> =
            SIGNING.into_iter().filter(|it| *it != wire).flat_map(|it| signed(it).1).collect();
        let (with, without) = (conversation(&others), conversation(&[]));
        assert_ne!(with.digest().to_string(), without.digest().to_string());
        assert_eq!(asked(wire, with).await, asked(wire, without).await, "{wire}");
    }
}

#[tokio::test]
async fn an_effort_is_said_in_the_words_of_each_wire() {
    for wire in Wire::ALL {
        let server = Server::start(vec![vec![events(), say(signed(wire).0)]]).await;
        let model = Remote::at(wire, server.url(), "m").effort(Effort::High).build().unwrap();
        drop(model.turn(Prompt::new("").user("Hi")).await);
        let body = server.asked().remove(0).body;
        let (said, expected) = match wire {
            Wire::AnthropicMessages => (&body["output_config"]["effort"], json!("high")),
            Wire::OpenAiChat => (&body["reasoning_effort"], json!("high")),
            Wire::OpenAiResponses => (&body["reasoning"]["effort"], json!("high")),
            Wire::Gemini => {
                (&body["generationConfig"]["thinkingConfig"]["thinkingLevel"], json!("HIGH"))
            }
            // Most models of Ollama's server take a switch, and only `gpt-oss` a word.
            _ => (&body["think"], json!(true)),
        };
        assert_eq!(*said, expected, "{wire}");
    }
}
