//! Replies that the tests make up, as each wire writes them.

use pumphouse::model::{Call, Wire};
use serde_json::{Value, json};

use super::fake::{Act, say};
use super::wires::head_of;

/// The body of a reply that says these texts and then makes these calls.
pub(crate) fn speaking(wire: Wire, texts: &[&str], calls: &[Call]) -> String {
    let events = match wire {
        Wire::AnthropicMessages => anthropic(texts, calls),
        Wire::OpenAiChat => chat(texts, calls),
        Wire::OpenAiResponses => responses(texts, calls),
        Wire::Gemini => gemini(texts, calls),
        _ => ollama(texts, calls),
    };
    let events = events.iter().map(|it| match wire {
        Wire::Ollama => format!("{it}\n"),
        _ => format!("data: {it}\n\n"),
    });
    let end = if wire == Wire::OpenAiChat { "data: [DONE]\n\n" } else { "" };
    events.collect::<String>() + end
}

/// A whole answer that says a text and makes calls.
pub(crate) fn speaks(wire: Wire, text: &str, calls: &[Call]) -> Vec<Act> {
    vec![head_of(wire), say(speaking(wire, &[text], calls))]
}

fn object(call: &Call) -> Value {
    serde_json::from_str(&call.arguments).unwrap()
}

fn anthropic(texts: &[&str], calls: &[Call]) -> Vec<Value> {
    let usage = json!({ "input_tokens": 7, "output_tokens": 1 });
    let mut all = vec![json!({ "type": "message_start", "message": { "usage": usage } })];
    let mut block = |start: Value, deltas: Vec<Value>| {
        let kind = "content_block_delta";
        let index = all.iter().filter(|it| it["type"] == "content_block_start").count();
        all.push(json!({ "type": "content_block_start", "index": index, "content_block": start }));
        let delta = |it| json!({ "type": kind, "index": index, "delta": it });
        all.extend(deltas.into_iter().map(delta));
        all.push(json!({ "type": "content_block_stop", "index": index }));
    };
    let delta = |text: &&str| json!({ "type": "text_delta", "text": text });
    block(json!({ "type": "text", "text": "" }), texts.iter().map(delta).collect());
    for Call { id, name, arguments, .. } in calls {
        let start = json!({ "type": "tool_use", "id": id, "name": name, "input": {} });
        block(start, vec![json!({ "type": "input_json_delta", "partial_json": arguments })]);
    }
    let stop = if calls.is_empty() { "end_turn" } else { "tool_use" };
    let usage = json!({ "output_tokens": 9 });
    let delta = json!({ "stop_reason": stop });
    all.push(json!({ "type": "message_delta", "delta": delta, "usage": usage }));
    all.push(json!({ "type": "message_stop" }));
    all
}

fn chat(texts: &[&str], calls: &[Call]) -> Vec<Value> {
    let chunk = |delta: Value, stop: Option<&str>| {
        let choice = json!({ "index": 0, "delta": delta, "finish_reason": stop });
        json!({ "choices": [choice] })
    };
    let mut all: Vec<Value> =
        texts.iter().map(|text| chunk(json!({ "content": text }), None)).collect();
    for (index, Call { id, name, arguments, .. }) in calls.iter().enumerate() {
        let function = json!({ "name": name, "arguments": arguments });
        let call = json!({ "index": index, "id": id, "type": "function", "function": function });
        all.push(chunk(json!({ "tool_calls": [call] }), None));
    }
    all.push(chunk(json!({}), Some(if calls.is_empty() { "stop" } else { "tool_calls" })));
    let usage = json!({ "prompt_tokens": 7, "completion_tokens": 9 });
    all.push(json!({ "choices": [], "usage": usage }));
    all
}

fn responses(texts: &[&str], calls: &[Call]) -> Vec<Value> {
    let kind = "response.output_text.delta";
    let delta = |text: &&str| json!({ "type": kind, "output_index": 0, "delta": text });
    let mut all: Vec<Value> = texts.iter().map(delta).collect();
    for (at, Call { id, name, arguments, .. }) in (1..).zip(calls) {
        let kind = "function_call";
        let item = json!({ "type": kind, "call_id": id, "name": name, "arguments": arguments });
        let done = "response.output_item.done";
        all.push(json!({ "type": done, "output_index": at, "item": item }));
    }
    let usage = json!({ "input_tokens": 7, "output_tokens": 9 });
    let response = json!({ "status": "completed", "usage": usage });
    all.push(json!({ "type": "response.completed", "response": response }));
    all
}

fn gemini(texts: &[&str], calls: &[Call]) -> Vec<Value> {
    let event = |part: Value| json!({ "candidates": [{ "content": { "parts": [part] } }] });
    let mut all: Vec<Value> = texts.iter().map(|text| event(json!({ "text": text }))).collect();
    for call in calls {
        let it = json!({ "id": call.id, "name": call.name, "args": object(call) });
        all.push(event(json!({ "functionCall": it })));
    }
    let usage = json!({ "promptTokenCount": 7, "candidatesTokenCount": 9 });
    all.push(json!({ "candidates": [{ "finishReason": "STOP" }], "usageMetadata": usage }));
    all
}

fn ollama(texts: &[&str], calls: &[Call]) -> Vec<Value> {
    let event = |message: Value| json!({ "message": message, "done": false });
    let mut all: Vec<Value> = texts.iter().map(|text| event(json!({ "content": text }))).collect();
    for call in calls {
        let function = json!({ "name": call.name, "arguments": object(call) });
        let call = json!({ "id": call.id, "function": function });
        all.push(event(json!({ "content": "", "tool_calls": [call] })));
    }
    all.push(json!({
        "message": { "content": "" }, "done": true, "done_reason": "stop",
        "prompt_eval_count": 7, "eval_count": 9,
    }));
    all
}
