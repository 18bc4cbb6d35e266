//! What the wires ask for, by families of models, and how they read replies that differ a little
//! from what their providers document.

use serde_json::{Map, Value, json};

use super::*;
use crate::model::piece::{Call, Piece, Stop};
use crate::model::prompt::Tool;
use crate::model::usage::Usage;

/// Settings of a request.
#[derive(Default)]
struct Asks {
    host: &'static str,
    max_tokens: Option<u32>,
    temperature: Option<f64>,
    top_p: Option<f64>,
    effort: Option<Effort>,
    window: Option<u32>,
}

/// The body of a request, without its messages.
fn asked(wire: Wire, model: &str, it: &Asks) -> Value {
    let mut prompt = Prompt::new("").user("Hi");
    (prompt.top_p, prompt.seed) = (it.top_p, Some(7));
    prompt.stop = vec!["END".to_owned()];
    prompt.tools = vec![Tool::new("add", "Adds.", json!({ "type": "object" }))];
    let content = RequestContent {
        model,
        max_tokens: it.max_tokens,
        temperature: it.temperature,
        effort: it.effort,
        is_structured: true,
        is_streamed: true,
        window: it.window,
        host: it.host,
        tools: &prompt.tools,
        extra: &Map::new(),
        prompt: &prompt,
    };
    let mut body = wire.body(&content);
    for key in ["messages", "contents", "input", "tools", "model", "stream", "store"] {
        body.remove(key);
    }
    body.into()
}

/// Everything that an author may set.
fn all() -> Asks {
    let (temperature, top_p) = (Some(0.5), Some(0.25));
    Asks {
        max_tokens: Some(64),
        temperature,
        top_p,
        effort: Some(Effort::Medium),
        ..Asks::default()
    }
}

#[test]
fn chat_completions_ask_for_what_a_model_takes() {
    let check = |model: &str, it: &Asks, expected: Value| {
        assert_eq!(asked(Wire::OpenAiChat, model, it), expected, "{model}");
    };
    let usage = json!({ "include_usage": true });
    check(
        "gemma",
        &all(),
        json!({
            "max_tokens": 64, "temperature": 0.5, "top_p": 0.25, "seed": 7, "stop": ["END"],
            "reasoning_effort": "medium", "stream_options": usage,
        }),
    );
    check(
        "o3-mini",
        &all(),
        json!({
            "max_completion_tokens": 64, "seed": 7, "reasoning_effort": "medium",
            "stream_options": usage,
        }),
    );
    check(
        "gpt-4o",
        &Asks { host: "api.openai.com", ..all() },
        json!({
            "max_completion_tokens": 64, "temperature": 0.5, "top_p": 0.25, "seed": 7,
            "stop": ["END"], "stream_options": usage,
        }),
    );
    check(
        "mistral-large",
        &Asks { host: "api.mistral.ai", effort: None, ..all() },
        json!({
            "max_tokens": 64, "temperature": 0.5, "top_p": 0.25, "random_seed": 7,
            "stop": ["END"],
        }),
    );
}

#[test]
fn responses_ask_for_what_a_model_takes() {
    let check = |model: &str, expected: Value| {
        assert_eq!(asked(Wire::OpenAiResponses, model, &all()), expected, "{model}");
    };
    check(
        "gpt-5-mini",
        json!({
            "max_output_tokens": 64, "reasoning": { "effort": "medium", "summary": "auto" },
            "include": ["reasoning.encrypted_content"],
        }),
    );
    check("gpt-4.1", json!({ "max_output_tokens": 64, "temperature": 0.5, "top_p": 0.25 }));
}

#[test]
fn anthropic_is_asked_to_think_or_to_sample_and_not_for_both() {
    let check = |model: &str, it: &Asks, expected: Value| {
        let mut expected = expected;
        expected["stop_sequences"] = json!(["END"]);
        assert_eq!(asked(Wire::AnthropicMessages, model, it), expected, "{model}");
    };
    let adaptive = json!({ "type": "adaptive", "display": "summarized" });
    let effort = json!({ "effort": "medium" });
    let (all, asks) = (all(), Asks::default);
    check(
        "claude-opus-4-6",
        &all,
        json!({ "max_tokens": 64, "thinking": adaptive, "output_config": effort }),
    );
    let sampled = Asks { effort: None, temperature: Some(0.5), top_p: Some(0.25), ..asks() };
    check("claude-opus-4-6", &sampled, json!({ "max_tokens": 4_096, "temperature": 0.5 }));
    let both = json!({ "max_tokens": 4_096, "temperature": 0.5, "top_p": 0.25 });
    check("claude-3-5-haiku-20241022", &sampled, both);
    check("claude-opus-4-7", &sampled, json!({ "max_tokens": 4_096 }));
    // An older model is told a number of tokens, which count against the reply's.
    let enabled = |tokens: u32| json!({ "type": "enabled", "budget_tokens": tokens });
    let thinks = |most| Asks { effort: Some(Effort::Medium), max_tokens: most, ..asks() };
    let model = "claude-sonnet-4-5-20250929";
    let check = |most: Option<u32>, expected| check(model, &thinks(most), expected);
    check(None, json!({ "max_tokens": 8_192, "thinking": enabled(4_096) }));
    check(Some(4_000), json!({ "max_tokens": 4_000, "thinking": enabled(2_000) }));
    check(Some(1_500), json!({ "max_tokens": 1_500 }));
}

#[test]
fn gemini_is_told_a_level_or_a_number_of_tokens() {
    let check = |model: &str, expected: Value| {
        let asks = Asks { effort: Some(Effort::Medium), ..Asks::default() };
        let body = asked(Wire::Gemini, model, &asks);
        assert_eq!(body["generationConfig"]["thinkingConfig"], expected, "{model}");
    };
    check("gemini-3-flash", json!({ "thinkingLevel": "MEDIUM", "includeThoughts": true }));
    check("gemini-3-pro-preview", json!({ "thinkingLevel": "HIGH", "includeThoughts": true }));
    check("gemini-2.5-flash", json!({ "thinkingBudget": 8_192, "includeThoughts": true }));
    check("gemini-2.0-flash", Value::Null);
}

#[test]
fn ollama_is_asked_for_the_window_and_to_think() {
    let check = |model: &str, think: Value| {
        let body = asked(Wire::Ollama, model, &Asks { window: Some(32_768), ..all() });
        let options = json!({
            "num_ctx": 32_768, "num_predict": 64, "temperature": 0.5, "top_p": 0.25, "seed": 7,
            "stop": ["END"],
        });
        assert_eq!((&body["options"], &body["think"]), (&options, &think), "{model}");
    };
    check("gpt-oss:20b", json!("medium"));
    check("qwen3:8b", json!(true));
}

/// The pieces that events make.
fn read(wire: Wire, events: &[Value]) -> Vec<Piece> {
    let mut reader = wire.reader();
    for event in events {
        reader.take(&event.to_string()).unwrap();
    }
    reader.gathered_mut().finish();
    reader.gathered_mut().pieces.drain(..).collect()
}

fn text(it: &str) -> Piece {
    Piece::Text(it.to_owned())
}

#[test]
fn a_whole_message_beside_an_empty_delta_is_the_reply() {
    let message = json!({ "role": "assistant", "content": "Rust." });
    let delta = |text: &str| json!({ "role": "assistant", "content": text });
    let choice = |delta: &Value, message: &Value, stop: Value| {
        let choice = json!({ "delta": delta, "message": message, "finish_reason": stop });
        json!({ "choices": [choice] })
    };
    let expected = [text("Rust."), Piece::Stop(Stop::End)];
    let whole = choice(&delta(""), &message, json!("stop"));
    assert_eq!(read(Wire::OpenAiChat, &[whole]), expected);
    // In a stream, the message repeats the deltas before it.
    let (empty, stop) = (delta(""), json!("stop"));
    let stream = [choice(&delta("Rust."), &message, Value::Null), choice(&empty, &message, stop)];
    assert_eq!(read(Wire::OpenAiChat, &stream), expected);
    let call = json!({ "id": "c1", "function": { "name": "add", "arguments": "{\"a\":1}" } });
    let message = json!({ "content": null, "tool_calls": [call] });
    let whole = choice(&json!({ "tool_calls": [] }), &message, json!("tool_calls"));
    let call = Piece::Call(Call::new("c1", "add", "{\"a\":1}"));
    assert_eq!(read(Wire::OpenAiChat, &[whole]), [call, Piece::Stop(Stop::Calls)]);
}

#[test]
fn a_response_whose_items_have_no_events_is_read_as_a_whole() {
    let content = json!([{ "type": "output_text", "text": "Rust." }]);
    let item = json!({ "type": "message", "content": content });
    let response = json!({ "status": "completed", "output": [item] });
    let created = json!({ "type": "response.created" });
    let completed = json!({ "type": "response.completed", "response": response });
    let expected = [text("Rust."), Piece::Stop(Stop::End)];
    assert_eq!(read(Wire::OpenAiResponses, &[created.clone(), completed.clone()]), expected);
    let done = json!({ "type": "response.output_item.done", "item": item });
    assert_eq!(read(Wire::OpenAiResponses, &[created.clone(), done, completed.clone()]), expected);
    let delta = json!({ "type": "response.output_text.delta", "delta": "Rust." });
    assert_eq!(read(Wire::OpenAiResponses, &[created, delta, completed]), expected);
}

#[test]
fn arguments_of_gemini_may_come_in_parts() {
    let event = |call: Value| {
        let content = json!({ "parts": [{ "functionCall": call }] });
        json!({ "candidates": [{ "content": content }] })
    };
    let part = |text: &str, goes_on: bool| {
        let path = "$.text";
        json!({ "jsonPath": path, "stringValue": text, "willContinue": goes_on })
    };
    let more = |part: Value| event(json!({ "partialArgs": [part], "willContinue": true }));
    let begin = event(json!({ "name": "write", "id": "c1", "willContinue": true }));
    let number = json!({ "jsonPath": "$.at", "numberValue": 5.0 });
    let last = event(json!({}));
    let stop = json!({ "candidates": [{ "finishReason": "STOP" }] });
    let next = event(json!({ "name": "read", "args": {} }));
    let events =
        [begin, more(part("fn ", true)), more(part("main", false)), more(number), last, next, stop];
    let expected = [
        Piece::Call(Call::new("c1", "write", "{\"text\":\"fn main\",\"at\":5}")),
        Piece::Call(Call::new("", "read", "{}")),
        Piece::Stop(Stop::Calls),
    ];
    let found = read(Wire::Gemini, &events);
    let same = |one: &Piece, other: &Piece| match (one, other) {
        (Piece::Call(one), Piece::Call(other)) => {
            let json = |it: &str| serde_json::from_str::<Value>(it).unwrap();
            let is_same = json(&one.arguments) == json(&other.arguments);
            is_same && (&one.id, &one.name) == (&other.id, &other.name)
        }
        (one, other) => one == other,
    };
    assert!(
        found.len() == 3 && found.iter().zip(&expected).all(|it| same(it.0, it.1)),
        "{found:?}"
    );
    // A call that the reply's limit cuts is no whole JSON.
    let stop = json!({ "candidates": [{ "finishReason": "MAX_TOKENS" }] });
    let begin = event(json!({ "name": "write", "willContinue": true }));
    let cut = read(Wire::Gemini, &[begin, more(part("fn ", true)), stop]);
    let Piece::Call(call) = &cut[0] else { panic!("{cut:?}") };
    assert!(serde_json::from_str::<Value>(&call.arguments).is_err(), "{call:?}");
}

/// The usage that events come to.
fn usage(wire: Wire, events: &[Value]) -> Usage {
    let pieces = read(wire, events);
    let usage = pieces.iter().find_map(|it| match it {
        Piece::Usage(it) => Some(*it),
        _ => None,
    });
    usage.unwrap_or_default()
}

#[test]
fn a_count_that_is_missing_or_zero_takes_nothing_back() {
    let start = json!({ "input_tokens": 27, "cache_read_input_tokens": 1_000, "output_tokens": 1 });
    let start = json!({ "type": "message_start", "message": { "usage": start } });
    let zero = json!({ "input_tokens": 0, "cache_read_input_tokens": 0, "output_tokens": 47 });
    for usage_of_end in
        [zero, json!({ "output_tokens": 47 }), json!({ "input_tokens": 27, "output_tokens": 47 })]
    {
        let end = json!({ "type": "message_delta", "usage": usage_of_end });
        let found = usage(Wire::AnthropicMessages, &[start.clone(), end]);
        assert_eq!((found.input, found.cached, found.output), (1_027, 1_000, 47));
    }
    let chat = |usage: Value| json!({ "choices": [], "usage": usage });
    let first = json!({
        "prompt_tokens": 30, "completion_tokens": 1,
        "prompt_tokens_details": { "cached_tokens": 7 },
    });
    for last in [
        json!({ "prompt_tokens": 0, "completion_tokens": 9 }),
        json!({ "completion_tokens": 9, "prompt_tokens": null }),
        json!({ "output_tokens": 9.0 }),
    ] {
        let found = usage(Wire::OpenAiChat, &[chat(first.clone()), chat(last), chat(json!({}))]);
        assert_eq!((found.input, found.cached, found.output), (30, 7, 9));
    }
    let gemini = |usage: Value| json!({ "candidates": [{}], "usageMetadata": usage });
    let events = [
        gemini(json!({ "promptTokenCount": 30, "thoughtsTokenCount": 5 })),
        gemini(json!({ "promptTokenCount": 0, "candidatesTokenCount": 9 })),
        gemini(json!({})),
    ];
    let found = usage(Wire::Gemini, &events);
    assert_eq!((found.input, found.output, found.reasoning), (30, 14, 5));
}

#[test]
fn counts_that_are_too_large_to_add_up_stay_at_the_most() {
    let counts = json!({
        "promptTokenCount": u64::MAX, "toolUsePromptTokenCount": 1,
        "candidatesTokenCount": 1, "thoughtsTokenCount": u64::MAX,
    });
    let found = usage(Wire::Gemini, &[json!({ "candidates": [{}], "usageMetadata": counts })]);
    assert_eq!((found.input, found.output), (u64::MAX, u64::MAX));
}

#[test]
fn every_wire_has_a_word_for_a_reply_that_reached_its_limit() {
    let check = |wire: Wire, event: Value| {
        let pieces = read(wire, std::slice::from_ref(&event));
        assert_eq!(pieces.last(), Some(&Piece::Stop(Stop::MaxTokens)), "{event}");
    };
    for word in ["length", "max_tokens", "MAX_TOKENS", "model_length", "max_output_tokens"] {
        check(Wire::OpenAiChat, json!({ "choices": [{ "delta": {}, "finish_reason": word }] }));
    }
    for word in ["max_tokens", "model_context_window_exceeded", "pause_turn"] {
        let delta = json!({ "stop_reason": word });
        check(Wire::AnthropicMessages, json!({ "type": "message_delta", "delta": delta }));
    }
    for reason in ["max_output_tokens", "max_tokens"] {
        let why = json!({ "reason": reason });
        let response = json!({ "status": "incomplete", "incomplete_details": why });
        let event = json!({ "type": "response.incomplete", "response": response });
        check(Wire::OpenAiResponses, event);
    }
    check(Wire::Gemini, json!({ "candidates": [{ "finishReason": "MAX_TOKENS" }] }));
    check(Wire::Ollama, json!({ "done": true, "done_reason": "length" }));
}
