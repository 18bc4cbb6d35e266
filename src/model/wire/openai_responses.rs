//! OpenAI's responses: items that are added, grow and are done, each at its output index.
//!
//! The events are described at
//! <https://platform.openai.com/docs/api-reference/responses-streaming>.

use std::collections::BTreeSet;
use std::iter;

use serde_json::{Map, Value, json};

use super::openai_chat::named;
use super::{Choices, Gathered, Reader, RequestContent, count, late_behind_attached, object, text};
use crate::model::attachments::Attached;
use crate::model::error::Error;
use crate::model::error_answer;
use crate::model::piece::{Call, Piece, Signed, Stop};
use crate::model::prompt::{PromptMessage, Role, Tool};
use crate::model::usage::Usage;
use crate::model::wire_name::Wire;

/// The distance between the places of one response's items and those of the next response's.
const NEXT: u64 = 1 << 32;

const WIRE: Wire = Wire::OpenAiResponses;
/// Bytes that the note of an item counts, for the memory that it takes.
const NOTE_BYTES: usize = 32;

/// A reply as OpenAI's responses write it.
#[derive(Default)]
pub(super) struct OpenAiResponses {
    gathered: Gathered,
    /// The place of the item with index 0. The place grows by `NEXT` with each response, since a
    /// recording may hold several responses.
    base: u64,
    /// Whether items of the current response had events of their own.
    has_items: bool,
    /// The places of the items whose text or refusal had events of its own.
    said: BTreeSet<u64>,
}

impl OpenAiResponses {
    /// Begins an item.
    fn item(&mut self, place: u64, item: &Value) {
        let word = |key: &str| item[key].as_str().unwrap_or_default();
        match word("type") {
            "function_call" => {
                let call = Call::new(word("call_id"), word("name"), word("arguments"));
                self.gathered.begin(place, &call, false);
            }
            "custom_tool_call" => {
                let call = Call::new(word("call_id"), word("name"), word("input"));
                self.gathered.begin(place, &call, false);
            }
            // The parts of messages and reasoning have events of their own. Tools that the provider
            // runs itself are ignored.
            _ => {}
        }
    }

    /// Adds a part of an item's text, reasoning or refusal.
    fn say(&mut self, delta: &str, make: fn(String) -> Piece) {
        self.has_items = true;
        self.gathered.say(delta, make);
    }

    /// Adds a part of an item's text or refusal, and notes that it had events of its own.
    fn say_of(&mut self, place: u64, delta: &str, make: fn(String) -> Piece) {
        if !delta.is_empty() && self.said.insert(place) {
            self.gathered.count_bytes(NOTE_BYTES);
        }
        self.say(delta, make);
    }

    /// Ends a call. The call's arguments are taken from `arguments` only if none came before.
    fn arguments(&mut self, place: u64, arguments: &Value) {
        if let Some(arguments) = text(arguments) {
            self.gathered.change(place, |it| {
                if it.arguments.is_empty() {
                    it.arguments.push_str(arguments);
                }
            });
        }
        self.gathered.end_call(place);
    }

    /// Ends an item. If it is a call, the call can be given out. If it is encrypted reasoning, it
    /// is kept to be sent back.
    fn item_ends(&mut self, place: u64, item: &Value) {
        self.gathered.end_call(place);
        if item["type"] == "reasoning" && text(&item["encrypted_content"]).is_some() {
            let keys = ["type", "id", "summary", "encrypted_content"];
            let kept = keys.into_iter().filter(|key| !item[*key].is_null());
            let kept: Map<String, Value> =
                kept.map(|it| (it.to_owned(), item[it].clone())).collect();
            self.gathered.sign(WIRE, &kept.into());
        }
    }

    /// Reads an item of a response that isn't streamed.
    fn whole(&mut self, place: u64, item: &Value) {
        self.item(place, item);
        self.item_ends(place, item);
        for part in item["summary"].as_array().into_iter().flatten() {
            self.gathered.say(text(&part["text"]).unwrap_or_default(), Piece::Reasoning);
        }
        self.content(item);
    }

    /// Reads the content of a whole message.
    fn content(&mut self, item: &Value) {
        for part in item["content"].as_array().into_iter().flatten() {
            let word = |key: &str| part[key].as_str().unwrap_or_default();
            match word("type") {
                "output_text" => self.gathered.say(word("text"), Piece::Text),
                "refusal" => self.gathered.say(word("refusal"), Piece::Refusal),
                "reasoning_text" => self.gathered.say(word("text"), Piece::Reasoning),
                _ => {}
            }
        }
    }

    /// Reads the items of a whole response.
    fn output(&mut self, response: &Value) {
        let output = response["output"].as_array().into_iter().flatten();
        (self.base..).zip(output).for_each(|(place, item)| self.whole(place, item));
    }

    /// Reads the usage and the stop reason at the end of a response. A response whose parts had no
    /// events of their own is read as a whole.
    fn over(&mut self, response: &Value) -> Result<(), Error> {
        if !self.has_items {
            self.output(response);
        }
        let usage = &response["usage"];
        if usage.is_object() {
            self.gathered.used(Usage {
                input: count(&usage["input_tokens"]),
                output: count(&usage["output_tokens"]),
                cached: count(&usage["input_tokens_details"]["cached_tokens"]),
                cache_written: count(&usage["input_tokens_details"]["cache_write_tokens"]),
                reasoning: count(&usage["output_tokens_details"]["reasoning_tokens"]),
                cost_micros: None,
            });
        }
        self.gathered.end();
        let status = response["status"].as_str().unwrap_or_default();
        let reason = response["incomplete_details"]["reason"].as_str().unwrap_or_default();
        let (word, stop) = match (status, reason) {
            ("failed", _) => {
                self.gathered.stop(status, Stop::Other(status.to_owned()));
                return Err(error_answer::within(&response["error"]));
            }
            ("incomplete", "max_output_tokens" | "max_tokens") => {
                (format!("{status}:{reason}"), Stop::MaxTokens)
            }
            ("incomplete", "content_filter") => (format!("{status}:{reason}"), Stop::Filtered),
            ("incomplete", _) => {
                let word = format!("{status}:{reason}");
                (word.clone(), Stop::Other(word))
            }
            _ if self.gathered.calls() > 0 => (status.to_owned(), Stop::Calls),
            _ => (status.to_owned(), Stop::End),
        };
        self.gathered.stop(&word, stop);
        Ok(())
    }
}

impl Reader for OpenAiResponses {
    fn read(&mut self, data: &str) -> Result<(), Error> {
        // The end mark of another wire, which some servers send here as well.
        if data == "[DONE]" {
            return Ok(());
        }
        let event = object(data)?;
        let place = self.base.saturating_add(count(&event["output_index"]));
        let delta = event["delta"].as_str().unwrap_or_default();
        match event["type"].as_str().unwrap_or_default() {
            "response.created" => (self.base, self.has_items) = (self.base + NEXT, false),
            "response.output_item.added" => {
                self.has_items = true;
                self.item(place, &event["item"]);
            }
            "response.output_text.delta" => self.say_of(place, delta, Piece::Text),
            "response.refusal.delta" => self.say_of(place, delta, Piece::Refusal),
            "response.reasoning_summary_text.delta" | "response.reasoning_text.delta" => {
                self.say(delta, Piece::Reasoning);
            }
            "response.function_call_arguments.delta" | "response.custom_tool_call_input.delta" => {
                self.gathered.change(place, |it| it.arguments += delta);
            }
            "response.function_call_arguments.done" => self.arguments(place, &event["arguments"]),
            "response.output_item.done" => {
                let item = &event["item"];
                self.has_items = true;
                // A message's text or refusal may have no events of its own.
                if item["type"] == "message" && !self.said.remove(&place) {
                    self.content(item);
                }
                if self.gathered.at(place).is_none() {
                    self.item(place, item);
                }
                // A custom tool's call has `input` instead.
                self.arguments(place, item.get("arguments").unwrap_or(&item["input"]));
                self.item_ends(place, item);
            }
            "response.completed" | "response.incomplete" | "response.failed" => {
                return self.over(&event["response"]);
            }
            "error" => {
                let error = if event["error"].is_object() { &event["error"] } else { &event };
                return Err(error_answer::within(error));
            }
            _ if event["object"] == "response" => {
                return self.over(&event);
            }
            _ => {}
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
    max_tokens: "max_output_tokens",
    temperature: "temperature",
    top_p: "top_p",
    seed: "",
    stop: "",
};

/// Writes a prompt as a request. The request asks the provider to store nothing, since each request
/// has the whole prompt.
pub(super) fn body(content: &RequestContent<'_>) -> Map<String, Value> {
    let prompt = content.prompt;
    let mut body = Map::new();
    let mut put = |key: &str, value: Value| drop(body.insert(key.to_owned(), value));
    put("model", content.model.into());
    put("stream", content.is_streamed.into());
    put("store", false.into());
    if let Some(effort) = content.effort(WIRE) {
        put("reasoning", json!({ "effort": effort.as_str(), "summary": "auto" }));
        // The provider stores nothing, so its encrypted reasoning has to go back with the calls.
        put("include", json!(["reasoning.encrypted_content"]));
    }
    if let Some(it) = content.format() {
        let mut format = named(it);
        format["type"] = "json_schema".into();
        put("text", json!({ "format": format }));
    }
    if !prompt.system.is_empty() {
        put("instructions", prompt.system.as_str().into());
    }
    let said = late_behind_attached(prompt);
    put("input", said.flat_map(|(it, late)| items(it, late)).collect());
    if !content.tools.is_empty() {
        put("tools", content.tools.iter().map(tool).collect());
        if prompt.without_calls {
            put("tool_choice", "none".into());
        }
    }
    content.choose(WIRE, &CHOICES, &mut body);
    body
}

fn items(
    PromptMessage { role, text, calls, of, signed, attached, .. }: &PromptMessage,
    late: Option<(&str, &str)>,
) -> Vec<Value> {
    if *role == Role::Tool {
        let id = of.as_deref().unwrap_or_default();
        return vec![json!({ "type": "function_call_output", "call_id": id, "output": text })];
    }
    let has_text = !text.is_empty() || calls.is_empty();
    let text = has_text.then(|| match attached.is_empty() {
        true => json!({ "role": role.as_str(), "content": text }),
        false => {
            let block = |text: &str| json!({ "type": "input_text", "text": text });
            let first = block(late.map_or(text, |(kept, _)| kept));
            let last = late.map(|(_, late)| block(late));
            let parts: Vec<Value> =
                iter::once(first).chain(attached.iter().map(part)).chain(last).collect();
            json!({ "role": role.as_str(), "content": parts })
        }
    });
    let signed_at = |place: u64| Signed::at(signed, WIRE, move |it| it == place);
    let mut items: Vec<Value> = signed_at(0).chain(text).chain(signed_at(1)).collect();
    for (place, Call { id, name, arguments }) in (2..).zip(calls) {
        let kind = "function_call";
        items.push(json!({ "type": kind, "call_id": id, "name": name, "arguments": arguments }));
        items.extend(signed_at(place));
    }
    items
}

/// An image or a document.
fn part(it: &Attached) -> Value {
    match it.is_image() {
        true => json!({ "type": "input_image", "image_url": it.data_url(), "detail": "auto" }),
        false => json!({
            "type": "input_file", "filename": it.file_name(), "file_data": it.data_url(),
        }),
    }
}

fn tool(Tool { name, description, parameters }: &Tool) -> Value {
    // In strict mode, a schema could have no optional fields.
    json!({
        "type": "function",
        "name": name,
        "description": description,
        "parameters": parameters,
        "strict": false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_is_said_once_whether_it_has_events_of_its_own_or_not() {
        let part = json!({ "type": "refusal", "refusal": "No." });
        let item = json!({ "type": "message", "content": [part] });
        let delta = json!({ "type": "response.refusal.delta", "output_index": 1, "delta": "No." });
        let kind = "response.output_item.done";
        let done = json!({ "type": kind, "output_index": 1, "item": item });
        let response = json!({ "status": "completed", "output": [item] });
        let over = json!({ "type": "response.completed", "response": response });
        for events in
            [vec![&delta, &done, &over], vec![&delta, &over], vec![&done, &over], vec![&over]]
        {
            let mut reader = OpenAiResponses::default();
            events.into_iter().for_each(|it| reader.read(&it.to_string()).unwrap());
            reader.gathered_mut().finish();
            let refusal = Piece::Refusal("No.".to_owned());
            assert_eq!(reader.gathered().pieces, [refusal, Piece::Stop(Stop::End)]);
        }
    }

    #[test]
    fn only_an_item_with_text_is_noted_and_its_note_counts() {
        let mut reader = OpenAiResponses::default();
        let mut read = |place: u64, delta: &str| {
            let kind = "response.output_text.delta";
            let event = json!({ "type": kind, "output_index": place, "delta": delta });
            reader.read(&event.to_string()).unwrap();
            (reader.said.len(), reader.gathered().bytes())
        };
        assert_eq!(read(1, ""), (0, 0));
        assert_eq!(read(2, "a"), (1, NOTE_BYTES + 1));
        assert_eq!(read(2, "b"), (1, NOTE_BYTES + 2));
        assert_eq!(read(3, "c"), (2, 2 * NOTE_BYTES + 3));
    }

    #[test]
    fn a_custom_call_may_have_its_input_at_its_end_alone() {
        let mut reader = OpenAiResponses::default();
        for (kind, input) in [("added", ""), ("done", "ls")] {
            let item = json!({
                "type": "custom_tool_call", "call_id": "c1", "name": "run", "input": input,
            });
            let kind = format!("response.output_item.{kind}");
            let event = json!({ "type": kind, "output_index": 0, "item": item });
            reader.read(&event.to_string()).unwrap();
        }
        reader.gathered_mut().finish();
        let call = Piece::Call(Call::new("c1", "run", "ls"));
        assert_eq!(reader.gathered().pieces, [call, Piece::Stop(Stop::End)]);
    }
}
