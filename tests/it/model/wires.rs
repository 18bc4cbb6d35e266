//! The wires of providers: the same reply, requested and read over each of them.

use pumphouse::model::{Attached, Call, Kind, Model, Piece, Prompt, Remote, Role, Stop};
use pumphouse::model::{Tool, Usage, Wire};
use pumphouse::secret::Secret;
use serde_json::{Value, json};

use super::fake::{Act, Server, events, head, say};
use super::{heard, text_of};
use crate::program::Scene;

/// A reply that thinks, says "Hello.", and calls `add`, as a provider writes it: what a wire has
/// of pings and of what nobody knows is in it.
pub(super) fn stream(wire: Wire) -> &'static str {
    match wire {
        Wire::AnthropicMessages => {
            include_str!("../../../src/model/provider_file/built_in/anthropic-messages.sse")
        }
        Wire::OpenAiChat => {
            include_str!("../../../src/model/provider_file/built_in/openai-chat.sse")
        }
        Wire::OpenAiResponses => {
            include_str!("../../../src/model/provider_file/built_in/openai-responses.sse")
        }
        Wire::Gemini => include_str!("../../../src/model/provider_file/built_in/gemini.sse"),
        _ => include_str!("../../../src/model/provider_file/built_in/ollama.ndjson"),
    }
}

pub(super) fn head_of(wire: Wire) -> Act {
    match wire {
        Wire::Ollama => head("200 OK", "content-type: application/x-ndjson\r\n"),
        _ => events(),
    }
}

/// The model of a wire at a server.
fn model(server: &Server, wire: Wire) -> Remote {
    let settings = Remote::at(wire, server.url(), "m").key(Secret::new("sk-1"));
    settings.max_tokens(64).build().unwrap()
}

/// Texts in a row as one, without what only some wires sign.
fn joined(pieces: Vec<Piece>) -> Vec<Piece> {
    let mut all: Vec<Piece> = Vec::new();
    for piece in pieces {
        match (all.last_mut(), piece) {
            (_, Piece::Signed(_)) => {}
            (Some(Piece::Text(text)), Piece::Text(more)) => *text += &more,
            (_, piece) => all.push(piece),
        }
    }
    all
}

#[tokio::test]
async fn the_same_reply_is_heard_over_each_wire() {
    for wire in Wire::ALL {
        let server = Server::start(vec![vec![head_of(wire), say(stream(wire))]]).await;
        let (pieces, error) = heard(&model(&server, wire)).await;
        let mut usage = Usage::new(7, 9);
        usage.cached = if wire == Wire::Ollama { 0 } else { 2 };
        let expected = [
            Piece::Reasoning("So.".into()),
            Piece::Text("Hello.".into()),
            Piece::Call(Call::new("c1", "add", r#"{"a":1}"#)),
            Piece::Usage(usage),
            Piece::Stop(Stop::Calls),
        ];
        assert_eq!((joined(pieces), error), (expected.to_vec(), None), "{wire}");
    }
}

#[tokio::test]
async fn a_reply_that_is_cut_anywhere_has_its_text_and_no_call_but_whole_ones() {
    let whole = [Piece::Call(Call::new("c1", "add", r#"{"a":1}"#))];
    for wire in Wire::ALL {
        let stream = stream(wire);
        let end = match wire {
            // Its end is the end of the connection behind the last event.
            Wire::Gemini => stream.rfind("data: ").unwrap(),
            // Why it is over came; its usage may be missing.
            Wire::OpenAiChat => stream.rfind("\"tool_calls\"").unwrap(),
            Wire::AnthropicMessages => stream.rfind("\"tool_use\"").unwrap(),
            _ => stream[..stream.len() - 2].rfind('\n').unwrap(),
        };
        for at in (0..end).step_by(7) {
            let server =
                Server::start(vec![vec![head_of(wire), say(&stream.as_bytes()[..at])]]).await;
            let limits = pumphouse::limits::ModelLimits {
                retries_max: 0,
                ..pumphouse::limits::ModelLimits::default()
            };
            let settings = Remote::at(wire, server.url(), "m").limits(limits);
            let (pieces, error) = heard(&settings.build().unwrap()).await;
            assert_eq!(error.map(|it| it.kind), Some(Kind::Cut), "{wire} at {at}");
            // A part of a call shows where the reply was cut, and is no JSON.
            let is_json = |it: &str| serde_json::from_str::<Value>(it).is_ok();
            let is_call = |it: &&Piece| matches!(it, Piece::Call(it) if is_json(&it.arguments));
            let calls: Vec<Piece> = pieces.iter().filter(is_call).cloned().collect();
            assert!(calls.is_empty() || calls == whole, "{wire} at {at}: {calls:?}");
            assert!("Hello.".starts_with(&text_of(&pieces)), "{wire} at {at}");
        }
    }
}

/// What comes before the first event that says a text.
pub(super) fn begun(wire: Wire) -> &'static str {
    let stream = stream(wire);
    let begun = &stream[..stream.find("Hel").unwrap()];
    let end = if wire == Wire::Ollama { "\n" } else { "\n\n" };
    &begun[..begun.rfind(end).unwrap() + end.len()]
}

/// An event that says that the provider failed.
pub(super) fn failure(wire: Wire) -> &'static str {
    match wire {
        Wire::AnthropicMessages => include_str!("wires/anthropic-messages.failure.sse"),
        Wire::OpenAiChat => include_str!("wires/openai-chat.failure.sse"),
        Wire::OpenAiResponses => include_str!("wires/openai-responses.failure.sse"),
        Wire::Gemini => include_str!("wires/gemini.failure.sse"),
        _ => include_str!("wires/ollama.failure.ndjson"),
    }
}

#[tokio::test]
async fn an_error_within_a_stream_ends_the_reply_and_says_what_the_provider_said() {
    for wire in Wire::ALL {
        let acts = vec![head_of(wire), say(begun(wire)), say(failure(wire))];
        let server = Server::start(vec![acts]).await;
        let (mut pieces, error) = heard(&model(&server, wire)).await;
        // Some wires count the prompt at the beginning.
        pieces.retain(|it| !matches!(it, Piece::Usage(_)));
        assert_eq!(joined(pieces), [Piece::Reasoning("So.".into())], "{wire}");
        let error = error.unwrap();
        assert_eq!(
            (error.kind, error.said.as_deref()),
            (Kind::Failed, Some("Overloaded")),
            "{wire}"
        );
    }
}

/// A turn that called a tool, and is to call no other.
fn conversation() -> Prompt {
    let mut prompt = Prompt::new("Be brief.").user("1+1?").assistant("Let me see.");
    prompt.messages[1].calls = vec![Call::new("c1", "add", r#"{"a":1}"#)];
    prompt = prompt.said(Role::Tool, "2");
    prompt.messages[2].of = Some("c1".to_owned());
    prompt.tools = vec![Tool::new("add", "Adds.", json!({ "type": "object" }))];
    prompt.without_calls = true;
    prompt.user("And?")
}

/// What a wire makes of that conversation.
fn request(wire: Wire) -> Value {
    let text = match wire {
        Wire::AnthropicMessages => include_str!("wires/anthropic-messages.json"),
        Wire::OpenAiChat => include_str!("wires/openai-chat.json"),
        Wire::OpenAiResponses => include_str!("wires/openai-responses.json"),
        Wire::Gemini => include_str!("wires/gemini.json"),
        // It has no word for calling nothing: it is offered no tools then.
        _ => include_str!("wires/ollama.json"),
    };
    serde_json::from_str(text).unwrap()
}

#[tokio::test]
async fn each_wire_is_asked_at_its_path_with_its_key_and_in_its_form() {
    for wire in Wire::ALL {
        let server = Server::start(vec![vec![head_of(wire), say(stream(wire))]]).await;
        let model = model(&server, wire);
        drop(model.turn(conversation()).await.unwrap());
        let asked = server.asked().remove(0);
        let (path, key) = match wire {
            Wire::AnthropicMessages => ("/v1/messages", "x-api-key: sk-1"),
            Wire::OpenAiChat => ("/v1/chat/completions", "authorization: Bearer sk-1"),
            Wire::OpenAiResponses => ("/v1/responses", "authorization: Bearer sk-1"),
            Wire::Gemini => ("/v1/models/m:streamGenerateContent?alt=sse", "x-goog-api-key: sk-1"),
            _ => ("/v1/chat", "authorization: Bearer sk-1"),
        };
        assert!(asked.head.starts_with(&format!("POST {path} HTTP/1.1\r\n")), "{}", asked.head);
        assert!(asked.head.lines().any(|it| it == key), "no {key} in {}", asked.head);
        let has_version = asked.head.contains("\r\nanthropic-version: 2023-06-01\r\n");
        assert_eq!(has_version, wire == Wire::AnthropicMessages);
        assert_eq!(asked.body, request(wire), "{wire}");
        assert_eq!(model.describe(), format!("m at {}", server.url()));
    }
}

/// A user's message with an image and a document, as a wire has it.
fn attached(wire: Wire) -> Value {
    let image = "data:image/png;base64,iVBORw==";
    let pdf = "data:application/pdf;base64,JVBERg==";
    match wire {
        Wire::AnthropicMessages => {
            let source = |media_type: &str, data: &str| {
                let kind = "base64";
                json!({ "type": kind, "media_type": media_type, "data": data })
            };
            json!([
                { "type": "text", "text": "Look." },
                { "type": "image", "source": source("image/png", "iVBORw==") },
                {
                    "type": "document",
                    "source": source("application/pdf", "JVBERg=="),
                    "cache_control": { "type": "ephemeral" },
                },
            ])
        }
        Wire::OpenAiChat => json!([
            { "type": "text", "text": "Look." },
            { "type": "image_url", "image_url": { "url": image } },
            { "type": "file", "file": { "filename": "attached.pdf", "file_data": pdf } },
        ]),
        Wire::OpenAiResponses => json!([
            { "type": "input_text", "text": "Look." },
            { "type": "input_image", "image_url": image, "detail": "auto" },
            { "type": "input_file", "filename": "attached.pdf", "file_data": pdf },
        ]),
        Wire::Gemini => json!([
            { "text": "Look." },
            { "inlineData": { "mimeType": "image/png", "data": "iVBORw==" } },
            { "inlineData": { "mimeType": "application/pdf", "data": "JVBERg==" } },
        ]),
        _ => json!("Look."),
    }
}

#[tokio::test]
async fn images_and_documents_stand_behind_the_text_in_the_form_of_each_wire() {
    for wire in Wire::ALL {
        let server = Server::start(vec![vec![head_of(wire), say(stream(wire))]]).await;
        let mut prompt = Prompt::new("").user("Look.");
        prompt.messages[0].attached =
            vec![Attached::new("image/png", b"\x89PNG"), Attached::new("application/pdf", b"%PDF")];
        drop(model(&server, wire).turn(prompt).await.unwrap());
        let body = server.asked().remove(0).body;
        let (messages, content) = match wire {
            Wire::OpenAiResponses => ("input", "content"),
            Wire::Gemini => ("contents", "parts"),
            _ => ("messages", "content"),
        };
        let said = &body[messages][0];
        assert_eq!(said["role"], "user", "{wire}");
        assert_eq!(said[content], attached(wire), "{wire}");
        // Ollama's wire has images, and no documents.
        let images = (wire == Wire::Ollama).then(|| json!(["iVBORw=="]));
        assert_eq!(said.get("images"), images.as_ref(), "{wire}");
    }
}

#[tokio::test]
async fn a_text_is_a_document_of_plain_text_for_anthropic() {
    let wire = Wire::AnthropicMessages;
    let server = Server::start(vec![vec![head_of(wire), say(stream(wire))]]).await;
    let mut prompt = Prompt::new("").user("Read.");
    prompt.messages[0].attached = vec![Attached::new("text/markdown", "Hé".as_bytes())];
    drop(model(&server, wire).turn(prompt).await.unwrap());
    let source = &server.asked().remove(0).body["messages"][0]["content"][1]["source"];
    assert_eq!(*source, json!({ "type": "text", "media_type": "text/plain", "data": "Hé" }));
}

#[test]
fn a_recorded_stream_is_told_in_a_line_however_it_comes() {
    let scene = Scene::new();
    for wire in Wire::ALL {
        scene.write("reply", stream(wire));
        let inspect = |chunks: &str| {
            let args =
                ["inspect", "stream", "--wire", wire.name(), "--chunks", chunks, "reply", "none"];
            scene.run(&args).code(0).objects()
        };
        let told = inspect("whole");
        let (stop, cached) = match wire {
            Wire::AnthropicMessages => ("tool_use", 2),
            Wire::OpenAiChat => ("tool_calls", 2),
            Wire::OpenAiResponses => ("completed", 2),
            Wire::Gemini => ("STOP", 2),
            _ => ("stop", 0),
        };
        let expected = json!({
            "text": "Hello.",
            "thinking": "So.",
            "refusal": "",
            "tools": [{ "id": "c1", "name": "add", "arguments": "{\"a\":1}" }],
            "usage": { "input": 7, "output": 9, "cached": cached, "reasoning": 0 },
            "stop": stop,
            "error": false,
            "terminal": true,
        });
        assert_eq!(told[0], expected, "{wire}");
        assert_eq!(told[1]["error"]["code"], "unreadable");
        for chunks in ["1", "7", "random:3"] {
            assert_eq!(inspect(chunks), told, "{wire} in {chunks}");
        }
    }
    let said = scene.run(&["inspect", "stream", "--wire", "telex", "reply"]).code(2).err;
    assert!(said.contains("anthropic-messages"), "{said}");
}

#[test]
fn what_a_provider_signed_is_told_where_that_is_asked_for() {
    let scene = Scene::new();
    for wire in Wire::ALL {
        scene.write("reply", stream(wire));
        let args = ["inspect", "stream", "--wire", wire.name(), "--signed", "reply"];
        let told = scene.run(&args).code(0).objects();
        let key = match wire {
            Wire::AnthropicMessages => "signature",
            Wire::OpenAiResponses => "encrypted_content",
            _ => "thoughtSignature",
        };
        let signed: Vec<&Value> =
            told[0]["signed"].as_array().unwrap().iter().map(|it| &it[key]).collect();
        let signs = !matches!(wire, Wire::OpenAiChat | Wire::Ollama);
        assert_eq!(signed, vec!["c2ln"; usize::from(signs)], "{wire}");
    }
}

/// The same reply whole.
pub(super) fn whole(wire: Wire) -> &'static str {
    match wire {
        Wire::AnthropicMessages => include_str!("wires/anthropic-messages.whole.json"),
        Wire::OpenAiChat => include_str!("wires/openai-chat.whole.json"),
        Wire::OpenAiResponses => include_str!("wires/openai-responses.whole.json"),
        Wire::Gemini => include_str!("wires/gemini.whole.json"),
        _ => include_str!("wires/ollama.whole.json"),
    }
}

#[tokio::test]
async fn a_reply_may_be_asked_for_whole_over_each_wire() {
    for wire in Wire::ALL {
        let acts = vec![head("200 OK", "content-type: application/json\r\n"), say(whole(wire))];
        let server = Server::start(vec![acts]).await;
        let model = Remote::at(wire, server.url(), "m").whole().build().unwrap();
        let (pieces, error) = heard(&model).await;
        let expected = [
            Piece::Reasoning("So.".into()),
            Piece::Text("Hello.".into()),
            Piece::Call(Call::new("c1", "add", r#"{"a":1}"#)),
            Piece::Usage(Usage::new(7, 9)),
            Piece::Stop(Stop::Calls),
        ];
        assert_eq!((joined(pieces), error), (expected.to_vec(), None), "{wire}");
        let asked = server.asked().remove(0);
        if wire == Wire::Gemini {
            let line = "POST /v1/models/m:generateContent HTTP/1.1\r\n";
            assert!(asked.head.starts_with(line), "{}", asked.head);
        } else {
            assert_eq!(asked.body["stream"], false, "{wire}");
        }
        assert_eq!(asked.body.get("stream_options"), None);
    }
}
