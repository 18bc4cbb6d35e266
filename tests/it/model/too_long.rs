//! A prompt that is too long, in the words of each wire's provider.

use pumphouse::model::{Error, Kind, Model, Prompt, Remote, Wire};
use serde_json::{Value, json};

use super::fake::{Act, Server, head, say};

async fn refused(wire: Wire, acts: Vec<Act>) -> Error {
    let server = Server::start(vec![acts]).await;
    let model = Remote::at(wire, server.url(), "m").build().unwrap();
    let error = match model.turn(Prompt::new("").user("Hi")).await {
        Ok(mut reply) => loop {
            match reply.next().await {
                Err(error) => break error,
                Ok(piece) => assert!(piece.is_some(), "{wire} gave a reply"),
            }
        },
        Err(error) => error,
    };
    // It is asked once: the same prompt stays too long.
    assert_eq!(server.asked().len(), 1);
    error
}

async fn check(wire: Wire, status: &str, body: Value, tokens: Option<u64>, window: Option<u64>) {
    let headers = "content-type: application/json\r\n";
    let error = refused(wire, vec![head(status, headers), say(body.to_string())]).await;
    assert_eq!(error.kind, Kind::PromptTooLong, "{wire}: {error}");
    let told = (error.prompt_tokens, error.window.map(u64::from), error.retry);
    assert_eq!(told, (tokens, window, false), "{wire}");
}

#[tokio::test]
async fn every_wire_tells_that_a_prompt_is_too_long() {
    let bad = "400 Bad Request";
    let message = "This model's maximum context length is 4000 tokens. However, your messages \
                   resulted in 4066 tokens. Please reduce the length of the messages.";
    let error = json!({ "message": message, "code": "context_length_exceeded" });
    check(Wire::OpenAiChat, bad, json!({ "error": error }), Some(4_066), Some(4_000)).await;
    let message = "Your input exceeds the context window of this model. Please adjust your input \
                   and try again.";
    let error = json!({ "message": message, "code": "context_length_exceeded" });
    check(Wire::OpenAiResponses, bad, json!({ "error": error }), None, None).await;
    let message = "prompt is too long: 4066 tokens > 4000 maximum";
    let error = json!({ "type": "invalid_request_error", "message": message });
    let body = json!({ "type": "error", "error": error });
    check(Wire::AnthropicMessages, bad, body, Some(4_066), Some(4_000)).await;
    let message = "The input token count (4066) exceeds the maximum number of tokens allowed \
                   (4000).";
    let error = json!({ "code": 400, "message": message, "status": "INVALID_ARGUMENT" });
    check(Wire::Gemini, bad, json!({ "error": error }), Some(4_066), Some(4_000)).await;
    let message = "request (4066 tokens) exceeds the available context size (4000 tokens), try \
                   increasing it";
    check(Wire::Ollama, bad, json!({ "error": message }), Some(4_066), Some(4_000)).await;
    // llama.cpp's server speaks chat completions, and has the numbers in fields.
    let message = "the request exceeds the available context size, try increasing it";
    let kind = "exceed_context_size_error";
    let error = json!({
        "code": 400, "message": message, "type": kind, "n_prompt_tokens": 4_066, "n_ctx": 4_000,
    });
    check(Wire::OpenAiChat, bad, json!({ "error": error }), Some(4_066), Some(4_000)).await;
    // A gateway has a limit of its own.
    check(Wire::OpenAiChat, "413 Payload Too Large", json!({}), None, None).await;
}

#[tokio::test]
async fn a_stream_may_begin_with_the_refusal() {
    let message = "prompt is too long: 4066 tokens > 4000 maximum";
    let error = json!({ "type": "invalid_request_error", "message": message });
    let event = json!({ "type": "error", "error": error });
    let acts = vec![super::fake::events(), say(format!("data: {event}\n\n"))];
    let error = refused(Wire::AnthropicMessages, acts).await;
    let told = (error.kind, error.prompt_tokens, error.window);
    assert_eq!(told, (Kind::PromptTooLong, Some(4_066), Some(4_000)));
}
