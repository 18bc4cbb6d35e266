//! Ollama's own chat: a line of JSON for each piece, and a call is in a single line.
//!
//! The lines are described at <https://github.com/ollama/ollama/blob/main/docs/api.md>.

use serde_json::{Map, Value, json};

use super::{
    Choices, Gathered, Reader, RequestContent, arguments, count, object, openai_chat, text,
};
use crate::model::remote::error_answer;
use crate::model::{Call, Error, Piece, PromptMessage, Role, Stop, Usage};

/// A reply as Ollama writes it.
#[derive(Default)]
pub(super) struct Ollama {
    gathered: Gathered,
    /// The place of the next call.
    next: u64,
}

impl Ollama {
    fn call(&mut self, call: &Value) {
        let function = &call["function"];
        let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let arguments = match &function["arguments"] {
            Value::Null => String::new(),
            Value::String(text) => text.clone(),
            value => value.to_string(),
        };
        let call = Call::new(word(&call["id"]), word(&function["name"]), arguments);
        self.gathered.begin(self.next, call, false);
        self.gathered.end_call(self.next);
        self.next += 1;
    }
}

impl Reader for Ollama {
    fn read(&mut self, data: &str) -> Result<(), Error> {
        let event = object(data)?;
        if !event["error"].is_null() {
            return Err(error_answer::within(&event["error"]));
        }
        let message = &event["message"];
        let said = |key: &str| text(&message[key]).unwrap_or_default();
        self.gathered.say(said("thinking"), Piece::Reasoning);
        self.gathered.say(said("content"), Piece::Text);
        for call in message["tool_calls"].as_array().into_iter().flatten() {
            self.call(call);
        }
        if event["done"] == true {
            let (input, output) = (&event["prompt_eval_count"], &event["eval_count"]);
            if input.is_u64() || output.is_u64() {
                self.gathered.usage = Some(Usage::new(count(input), count(output)));
            }
            let word = text(&event["done_reason"]).unwrap_or("stop");
            let stop = match word {
                "stop" if self.gathered.calls() > 0 => Stop::Calls,
                "stop" => Stop::End,
                "length" => Stop::MaxTokens,
                word => Stop::Other(word.to_owned()),
            };
            self.gathered.stop(word, stop);
            self.gathered.end();
        }
        Ok(())
    }

    fn gathered(&self) -> &Gathered {
        &self.gathered
    }

    fn gathered_mut(&mut self) -> &mut Gathered {
        &mut self.gathered
    }
}

/// The wire's keys for some parts of a request.
const CHOICES: Choices = Choices {
    max_tokens: "num_predict",
    temperature: "temperature",
    top_p: "top_p",
    seed: "seed",
    stop: "stop",
};

/// Writes a prompt as a request.
pub(super) fn body(content: &RequestContent<'_>) -> Map<String, Value> {
    let prompt = content.prompt;
    let mut options = Map::new();
    content.choose(&CHOICES, &mut options);
    let mut messages = Vec::new();
    if !prompt.system.is_empty() {
        messages.push(json!({ "role": "system", "content": prompt.system }));
    }
    let calls: Vec<&Call> = prompt.messages.iter().flat_map(|it| &it.calls).collect();
    messages.extend(prompt.messages.iter().map(|it| said(it, &calls)));
    let mut body = Map::new();
    let mut put = |key: &str, value: Value| drop(body.insert(key.to_owned(), value));
    put("model", content.model.into());
    put("stream", content.is_streamed.into());
    put("messages", messages.into());
    if !options.is_empty() {
        put("options", options.into());
    }
    if let Some(effort) = content.effort {
        put("think", effort.as_str().into());
    }
    // The wire can't offer tools and forbid calling them.
    if !prompt.tools.is_empty() && !prompt.without_calls {
        put("tools", prompt.tools.iter().map(openai_chat::function).collect());
    } else if let Some(it) = content.format() {
        // The server holds the whole reply to the format, so a model with a format calls no tool.
        put("format", it.schema.clone());
    }
    body
}

/// Writes a message. A result's function is looked up in its call.
fn said(
    PromptMessage { role, text, calls, of, attached, .. }: &PromptMessage,
    all: &[&Call],
) -> Value {
    let mut said = json!({ "role": role.as_str(), "content": text });
    if *role == Role::Tool {
        let call = all.iter().rfind(|it| Some(&*it.id) == of.as_deref());
        said["tool_name"] = call.map_or("", |it| &it.name).into();
    }
    // The wire takes images, but no documents.
    let images: Vec<&str> =
        attached.iter().filter(|it| it.is_image()).map(|it| &*it.base64).collect();
    if !images.is_empty() {
        said["images"] = images.into();
    }
    if !calls.is_empty() {
        let call = |Call { name, arguments: text, .. }: &Call| {
            let arguments = arguments(text);
            json!({ "function": { "name": name, "arguments": arguments } })
        };
        said["tool_calls"] = calls.iter().map(call).collect();
    }
    said
}
