//! OpenAI's chat completions, which most other providers speak as well.
//!
//! The events are described at <https://platform.openai.com/docs/api-reference/chat-streaming>.
//! Other providers differ: reasoning is in `reasoning_content` or `reasoning`, all calls may have
//! one index, and the usage may be in `x_groq`.

use std::iter;

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::growing_object::is_object;
use super::tool_schema::without_wide_bounds;
use super::{
    Choices, Gathered, Reader, RequestContent, Served, answer_schema, arguments_text, count,
    garbled, late_behind_attached,
};
use crate::model::attachments::Attached;
use crate::model::error::Error;
use crate::model::error_answer;
use crate::model::piece::{Call, Piece, Stop};
use crate::model::prompt::{Format, PromptMessage, Tool};
use crate::model::usage::Usage;
use crate::model::wire_name::Wire;
use crate::schema::json;

/// An event, or a whole reply that isn't streamed. Other fields are ignored.
#[derive(Deserialize)]
struct Chunk {
    #[serde(default)]
    error: Value,
    #[serde(default)]
    choices: Option<Vec<Choice>>,
    #[serde(default)]
    usage: Value,
    #[serde(default)]
    x_groq: Value,
}

#[derive(Deserialize)]
struct Choice {
    #[serde(default)]
    index: Option<u64>,
    #[serde(default)]
    delta: Option<Delta>,
    /// The message of a reply that isn't streamed.
    #[serde(default)]
    message: Option<Delta>,
    #[serde(default)]
    finish_reason: Option<String>,
    #[serde(default)]
    error: Value,
}

#[derive(Default, Deserialize)]
struct Delta {
    #[serde(default)]
    content: Value,
    #[serde(default)]
    reasoning_content: Value,
    #[serde(default)]
    reasoning: Value,
    #[serde(default)]
    refusal: Value,
    #[serde(default)]
    tool_calls: Option<Vec<ToolCall>>,
    /// The older form of a call.
    #[serde(default)]
    function_call: Option<Function>,
}

#[derive(Deserialize)]
struct ToolCall {
    #[serde(default)]
    index: Option<u64>,
    /// A text. Some servers write a number.
    #[serde(default)]
    id: Value,
    #[serde(default)]
    function: Option<Function>,
}

#[derive(Deserialize)]
struct Function {
    #[serde(default)]
    name: Option<String>,
    /// The text of the arguments as JSON writes it, or the object itself.
    #[serde(default)]
    arguments: Option<Box<RawValue>>,
}

impl Delta {
    /// Fills the empty parts from the whole message, which some providers send beside the delta.
    /// The message repeats earlier deltas, so it adds only parts of which nothing came yet.
    fn or_whole(mut self, message: Option<Delta>, gathered: &Gathered) -> Delta {
        let Some(message) = message else { return self };
        let (has_reasoning, has_refusal) = gathered.has_other_text();
        for (part, whole, has_come) in [
            (&mut self.content, message.content, gathered.has_text()),
            (&mut self.reasoning_content, message.reasoning_content, has_reasoning),
            (&mut self.reasoning, message.reasoning, has_reasoning),
            (&mut self.refusal, message.refusal, has_refusal),
        ] {
            if is_empty(part) && !has_come {
                *part = whole;
            }
        }
        if gathered.calls() == 0 {
            self.tool_calls = self.tool_calls.filter(|it| !it.is_empty()).or(message.tool_calls);
            self.function_call = self.function_call.or(message.function_call);
        }
        self
    }
}

/// Whether a part of a delta says nothing.
fn is_empty(part: &Value) -> bool {
    match part {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(parts) => parts.is_empty(),
        _ => false,
    }
}

impl ToolCall {
    /// The id. Empty if there is none.
    fn id(&self) -> String {
        match &self.id {
            Value::String(id) => id.clone(),
            Value::Number(id) => id.to_string(),
            _ => String::new(),
        }
    }

    /// Whether this part begins a call at a place: there is none yet, or the part is of another.
    fn begins_call(&self, at: u64, gathered: &Gathered) -> bool {
        let Some(begun) = gathered.at(at) else { return true };
        let name = self.function.as_ref().and_then(|it| it.name.as_deref()).unwrap_or_default();
        let id = self.id();
        let has_other_id = !id.is_empty() && !begun.id.is_empty() && id != begun.id;
        // Two calls may have one id, or none. Nothing can follow arguments that are whole.
        let more = self.function.as_ref().and_then(|it| it.arguments.as_deref());
        let is_second = gathered.has_whole_arguments(at)
            && more.is_some_and(|it| is_object(&arguments_text(it)));
        !name.is_empty() && (has_other_id || is_second)
    }
}

/// A reply as chat completions write it.
#[derive(Default)]
pub(super) struct OpenAiChat {
    gathered: Gathered,
}

impl OpenAiChat {
    fn choice(&mut self, choice: Choice) -> Result<(), Error> {
        let Choice { delta, message, finish_reason, error, .. } = choice;
        if !error.is_null() {
            return Err(error_answer::within(&error));
        }
        let said = delta.unwrap_or_default().or_whole(message, &self.gathered);
        let Delta { content, reasoning_content, reasoning, refusal, tool_calls, function_call } =
            said;
        let reasoning = if is_text(&reasoning_content) { reasoning_content } else { reasoning };
        if let Value::String(text) = reasoning {
            self.gathered.say(&text, Piece::Reasoning);
        }
        self.content(&content);
        if let Value::String(text) = refusal {
            self.gathered.say(&text, Piece::Refusal);
        }
        let old =
            function_call.map(|it| ToolCall { index: None, id: Value::Null, function: Some(it) });
        for (at, call) in (0..).zip(tool_calls.into_iter().flatten().chain(old)) {
            self.call(at, call);
        }
        match finish_reason.as_deref().unwrap_or_default() {
            "" => {}
            "error" => return Err(error_answer::within(&Value::Null)),
            word => {
                self.gathered.end_whole_calls();
                self.gathered.stop(word, stop(word));
            }
        }
        Ok(())
    }

    /// Reads content: a text, or a list of parts that are texts or reasoning.
    fn content(&mut self, content: &Value) {
        match content {
            Value::String(text) => self.gathered.say(text, Piece::Text),
            Value::Array(parts) => parts.iter().for_each(|part| {
                if let Value::String(text) = &part["text"] {
                    self.gathered.say(text, Piece::Text);
                }
                match &part["thinking"] {
                    Value::String(text) => self.gathered.say(text, Piece::Reasoning),
                    Value::Array(parts) => {
                        let texts = parts.iter().filter_map(|it| it["text"].as_str());
                        self.gathered.say(&texts.collect::<String>(), Piece::Reasoning);
                    }
                    _ => {}
                }
            }),
            _ => {}
        }
    }

    fn call(&mut self, at: u64, more: ToolCall) {
        let at = more.index.unwrap_or(at);
        // Some providers give every call the same index. So a part with a name and a new id begins
        // another call.
        if more.begins_call(at, &self.gathered) {
            self.gathered.end_whole_calls();
            self.gathered.begin(at, &Call::default(), false);
        }
        self.gathered.change(at, |call| {
            let id = more.id();
            if !id.is_empty() {
                call.id = id;
            }
            let function = more.function.unwrap_or(Function { name: None, arguments: None });
            if let Some(name) = function.name.filter(|it| !it.is_empty()) {
                call.name = name;
            }
            // Some servers send the object itself, and not its text.
            if let Some(arguments) = function.arguments {
                call.arguments += &arguments_text(&arguments);
            }
        });
    }
}

impl Reader for OpenAiChat {
    fn read(&mut self, data: &str) -> Result<(), Error> {
        if data == "[DONE]" {
            self.gathered.end();
            return Ok(());
        }
        // Serde would read a list as an object, too.
        if !data.starts_with('{') {
            return Err(garbled(data, &"it is no JSON object"));
        }
        let chunk: Chunk = json::deserialize(data).map_err(|it| garbled(data, &it))?;
        if !chunk.error.is_null() {
            return Err(error_answer::within(&chunk.error));
        }
        for usage in [&chunk.x_groq["usage"], &chunk.usage] {
            if let Some(usage) = usage_of(usage) {
                self.gathered.used(usage);
            }
        }
        // A request asks for one choice. If a setting makes it ask for more, the first counts.
        let first = chunk.choices.into_iter().flatten().filter(|it| it.index.unwrap_or(0) == 0);
        first.take(1).try_for_each(|it| self.choice(it))
    }

    fn gathered(&self) -> &Gathered {
        &self.gathered
    }

    fn gathered_mut(&mut self) -> &mut Gathered {
        &mut self.gathered
    }
}

const WIRE: Wire = Wire::OpenAiChat;

/// The wire's keys for some parts of a request.
fn choices(served: &Served<'_>) -> Choices {
    Choices {
        max_tokens: served.max_tokens_key(),
        temperature: "temperature",
        top_p: "top_p",
        seed: served.seed_key(),
        stop: "stop",
    }
}

/// Writes a prompt as a request.
pub(super) fn body(content: &RequestContent<'_>) -> Map<String, Value> {
    let (prompt, served) = (content.prompt, content.served(WIRE));
    let mut messages = Vec::new();
    if !prompt.system.is_empty() {
        messages.push(json!({ "role": "system", "content": prompt.system }));
    }
    messages.extend(late_behind_attached(prompt).map(|(it, late)| said(it, late)));
    let mut body = Map::new();
    let mut put = |key: &str, value: Value| drop(body.insert(key.to_owned(), value));
    put("model", content.model.into());
    put("messages", messages.into());
    put("stream", content.is_streamed.into());
    if content.is_streamed && served.takes_stream_options() {
        put("stream_options", json!({ "include_usage": true }));
    }
    if !content.tools.is_empty() {
        put("tools", content.tools.iter().map(function).collect());
        if prompt.without_calls {
            put("tool_choice", "none".into());
        }
    }
    if let Some(effort) = content.effort(WIRE) {
        put("reasoning_effort", effort.as_str().into());
    }
    if let Some(it) = content.format() {
        put("response_format", json!({ "type": "json_schema", "json_schema": named(it) }));
    }
    content.choose(WIRE, &choices(&served), &mut body);
    body
}

fn said(
    PromptMessage { role, text, calls, of, attached, .. }: &PromptMessage,
    late: Option<(&str, &str)>,
) -> Value {
    let mut said = json!({ "role": role.as_str(), "content": text });
    if !attached.is_empty() {
        let block = |text: &str| json!({ "type": "text", "text": text });
        let first = block(late.map_or(text, |(kept, _)| kept));
        let last = late.map(|(_, late)| block(late));
        said["content"] = iter::once(first).chain(attached.iter().map(part)).chain(last).collect();
    }
    if let Some(of) = of {
        said["tool_call_id"] = of.as_str().into();
    }
    if !calls.is_empty() {
        said["tool_calls"] = calls.iter().map(call).collect();
        if text.is_empty() {
            said["content"] = Value::Null;
        }
    }
    said
}

/// An image or a document.
fn part(it: &Attached) -> Value {
    match it.is_image() {
        true => json!({ "type": "image_url", "image_url": { "url": it.data_url() } }),
        false => {
            let file = json!({ "filename": it.file_name(), "file_data": it.data_url() });
            json!({ "type": "file", "file": file })
        }
    }
}

fn call(Call { id, name, arguments }: &Call) -> Value {
    let function = json!({ "name": name, "arguments": arguments });
    json!({ "id": id, "type": "function", "function": function })
}

/// The format of the answer as both of OpenAI's wires take it.
pub(super) fn named(Format { name, description, schema }: &Format) -> Value {
    let schema = without_wide_bounds(schema);
    let mut named =
        json!({ "name": name, "schema": schema, "strict": answer_schema::is_strict(&schema) });
    if !description.is_empty() {
        named["description"] = description.as_str().into();
    }
    named
}

/// A tool as this wire and Ollama's take it.
pub(super) fn function(Tool { name, description, parameters }: &Tool) -> Value {
    let function = json!({ "name": name, "description": description, "parameters": parameters });
    json!({ "type": "function", "function": function })
}

fn is_text(value: &Value) -> bool {
    value.as_str().is_some_and(|it| !it.is_empty())
}

fn stop(word: &str) -> Stop {
    // Gateways pass on the words of other wires, some of them in capitals.
    match &*word.to_ascii_lowercase() {
        "stop" | "eos" | "eos_token" | "end_turn" | "complete" | "completed" => Stop::End,
        "stop_sequence" => Stop::StopText,
        "length"
        | "max_tokens"
        | "max_output_tokens"
        | "max_length"
        | "model_length"
        | "model_context_window_exceeded" => Stop::MaxTokens,
        "tool_calls" | "tool_call" | "tool_use" | "function_call" => Stop::Calls,
        "content_filter" | "refusal" | "safety" => Stop::Filtered,
        _ => Stop::Other(word.to_owned()),
    }
}

fn usage_of(usage: &Value) -> Option<Usage> {
    let first = |counts: [&Value; 2]| counts.into_iter().map(count).find(|it| *it > 0);
    usage.is_object().then(|| Usage {
        // Some gateways pass on the words of other wires.
        input: first([&usage["prompt_tokens"], &usage["input_tokens"]]).unwrap_or(0),
        output: first([&usage["completion_tokens"], &usage["output_tokens"]]).unwrap_or(0),
        cached: first([
            &usage["prompt_tokens_details"]["cached_tokens"],
            &usage["prompt_cache_hit_tokens"],
        ])
        .unwrap_or(0),
        cache_written: count(&usage["prompt_tokens_details"]["cache_write_tokens"]),
        reasoning: count(&usage["completion_tokens_details"]["reasoning_tokens"]),
        cost_micros: [&usage["cost"], &usage["cost"]["total_cost"]]
            .into_iter()
            .find_map(Value::as_f64)
            .filter(|it| *it >= 0.0)
            .map(|it| (it * 1e6).round() as u64),
    })
}

#[cfg(test)]
mod tests;
