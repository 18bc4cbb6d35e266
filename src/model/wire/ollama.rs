//! Ollama's own chat: a line of JSON for each piece, and a call is in a single line.
//!
//! The lines are described at <https://github.com/ollama/ollama/blob/main/docs/api.md>.

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::call_ids::called;
use super::parameters::Reasoning;
use super::tool_schema::without_wide_bounds;
use super::{
    Choices, Gathered, Reader, RequestContent, arguments, arguments_text, count, object,
    openai_chat, text,
};
use crate::model::error::Error;
use crate::model::error_answer;
use crate::model::piece::{Call, Piece, Stop};
use crate::model::prompt::{PromptMessage, Role};
use crate::model::usage::Usage;
use crate::model::wire_name::Wire;
use crate::schema::json;

/// A reply as Ollama writes it.
#[derive(Default)]
pub(super) struct Ollama {
    gathered: Gathered,
    /// The place of the next call.
    next: u64,
}

impl Ollama {
    fn call(&mut self, call: &Value, arguments: Option<&RawValue>) {
        let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let (function, arguments) = (&call["function"], arguments.map(arguments_text));
        let arguments = arguments.unwrap_or_default();
        let call = Call::new(word(&call["id"]), word(&function["name"]), arguments);
        self.gathered.begin(self.next, &call, false);
        self.gathered.end_single_call(self.next);
        self.next += 1;
    }
}

/// The arguments of calls as their text is in an event.
#[derive(Default, Deserialize)]
#[serde(default)]
struct RawEvent<'a> {
    #[serde(borrow)]
    message: RawMessage<'a>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct RawMessage<'a> {
    #[serde(borrow)]
    tool_calls: Vec<RawCall<'a>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct RawCall<'a> {
    #[serde(borrow)]
    function: RawFunction<'a>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct RawFunction<'a> {
    #[serde(borrow)]
    arguments: Option<&'a RawValue>,
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
        let raw = json::deserialize::<RawEvent<'_>>(data).unwrap_or_default();
        let raw = raw.message.tool_calls.into_iter().map(|it| it.function.arguments);
        let calls = message["tool_calls"].as_array().into_iter().flatten();
        for (call, arguments) in calls.zip(raw.chain(std::iter::repeat(None))) {
            self.call(call, arguments);
        }
        if event["done"] == true {
            let (input, output) = (&event["prompt_eval_count"], &event["eval_count"]);
            if input.is_u64() || output.is_u64() {
                self.gathered.used(Usage::new(count(input), count(output)));
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

const WIRE: Wire = Wire::Ollama;

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
    content.choose(WIRE, &CHOICES, &mut options);
    // Without it, the server takes a window of its own, and cuts the front of a longer prompt.
    options.extend(content.window.map(|it| ("num_ctx".to_owned(), it.into())));
    let mut messages = Vec::new();
    if !prompt.system.is_empty() {
        messages.push(json!({ "role": "system", "content": prompt.system }));
    }
    let said = prompt.messages.iter().zip(called(prompt.messages.iter()));
    messages.extend(said.map(|(it, of)| message(it, of)));
    let mut body = Map::new();
    let mut put = |key: &str, value: Value| drop(body.insert(key.to_owned(), value));
    put("model", content.model.into());
    put("stream", content.is_streamed.into());
    put("messages", messages.into());
    if !options.is_empty() {
        put("options", options.into());
    }
    if let Some(effort) = content.effort(WIRE) {
        let has_level = content.served(WIRE).reasoning() == Reasoning::Level;
        put("think", if has_level { effort.as_str().into() } else { true.into() });
    }
    // The wire can't offer tools and forbid calling them.
    if !content.tools.is_empty() && !prompt.without_calls {
        put("tools", content.tools.iter().map(openai_chat::function).collect());
    } else if let Some(it) = content.format() {
        // The server holds the whole reply to the format, so a model with a format calls no tool.
        put("format", without_wide_bounds(&it.schema));
    }
    body
}

/// Writes a message. A result has the name and the id of its call.
fn message(
    PromptMessage { role, text, calls, attached, .. }: &PromptMessage,
    of: Option<&Call>,
) -> Value {
    let mut said = json!({ "role": role.as_str(), "content": text });
    if *role == Role::Tool {
        said["tool_name"] = of.map_or("", |it| &it.name).into();
        if let Some(call) = of.filter(|it| !it.id.is_empty()) {
            said["tool_call_id"] = call.id.as_str().into();
        }
    }
    // The wire takes images, but no documents.
    let images: Vec<&str> =
        attached.iter().filter(|it| it.is_image()).map(|it| &*it.base64).collect();
    if !images.is_empty() {
        said["images"] = images.into();
    }
    if !calls.is_empty() {
        let call = |Call { id, name, arguments: text }: &Call| {
            let arguments = arguments(text);
            let mut call = json!({ "function": { "name": name, "arguments": arguments } });
            if !id.is_empty() {
                call["id"] = id.as_str().into();
            }
            call
        };
        said["tool_calls"] = calls.iter().map(call).collect();
    }
    said
}
