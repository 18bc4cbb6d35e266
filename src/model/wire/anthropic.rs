//! Anthropic's messages: blocks that begin, grow and end, each at its index.
//!
//! The events are described at <https://docs.anthropic.com/en/api/messages-streaming>.

use std::iter;
use std::mem::take;

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::parameters::Reasoning;
use super::{
    Choices, Gathered, Reader, RequestContent, answer_schema, arguments, arguments_text, count,
    divided, object, recount, text,
};
use crate::model::attachments::Attached;
use crate::model::error::Error;
use crate::model::error_answer;
use crate::model::piece::{Call, Piece, Signed, Stop};
use crate::model::prompt::{Prompt, PromptMessage, Role, Tool};
use crate::model::usage::Usage;
use crate::model::wire::Effort;
use crate::model::wire_name::Wire;
use crate::schema::json;

/// The number that is added to the indexes of blocks with each message, so that no two blocks of a
/// recorded stream have the same number.
const NEXT: u64 = 1 << 32;

/// What has been read so far of a reply of Anthropic's Messages API.
#[derive(Default)]
pub(super) struct AnthropicMessages {
    gathered: Gathered,
    usage: Usage,
    /// Tokens of the prompt that neither came from the provider's cache nor went into it.
    fresh: u64,
    /// The number of the block with index 0. Each `message_start` adds `NEXT`, since a recorded
    /// stream may hold several messages.
    base: u64,
    /// The reasoning of the current block, and in `signature` the block's signature.
    thinking: String,
    signature: String,
    /// The half of a surrogate pair at the end of `thinking`.
    half: Option<u16>,
}

const WIRE: Wire = Wire::AnthropicMessages;

impl AnthropicMessages {
    /// Begins a block. In a message that isn't streamed, the block is whole.
    fn block(&mut self, index: u64, block: &Value, raw: &RawBlock<'_>) {
        let kind = block["type"].as_str().unwrap_or_default();
        match kind {
            "text" => self.gathered.say(text(&block["text"]).unwrap_or_default(), Piece::Text),
            "thinking" => {
                let word = |key: &str| text(&block[key]).unwrap_or_default().to_owned();
                self.gathered.say(&word("thinking"), Piece::Reasoning);
                self.thinking = self.gathered.joined(&mut self.half, &word("thinking"));
                self.signature = word("signature");
                self.gathered.count_bytes(self.signature.len());
            }
            "redacted_thinking" => self.gathered.sign(WIRE, block),
            _ if kind.ends_with("tool_use") => {
                let word = |key: &str| block[key].as_str().unwrap_or_default();
                // In a stream, `input` is an empty object here, and the arguments follow.
                let input = block["input"].as_object().filter(|it| !it.is_empty());
                let arguments = raw.input.filter(|_| input.is_some()).map(arguments_text);
                let arguments = arguments.unwrap_or_default();
                let call = Call::new(word("id"), word("name"), arguments);
                self.gathered.begin(index, &call, kind != "tool_use");
            }
            _ => {}
        }
    }

    fn delta(&mut self, index: u64, delta: &Value) {
        let word = |key: &str| delta[key].as_str().unwrap_or_default();
        match word("type") {
            "text_delta" => self.gathered.say(word("text"), Piece::Text),
            "thinking_delta" => {
                self.thinking += &self.gathered.joined(&mut self.half, word("thinking"));
                self.gathered.say(word("thinking"), Piece::Reasoning);
            }
            "signature_delta" => {
                self.signature += word("signature");
                self.gathered.count_bytes(word("signature").len());
            }
            "input_json_delta" => {
                self.gathered.change(index, |it| it.arguments += word("partial_json"));
            }
            _ => {}
        }
    }

    /// Ends a block. A call is complete then. Signed reasoning is kept, to be sent back.
    fn block_ends(&mut self, index: u64) {
        self.gathered.end_call(index);
        self.thinking.extend(json::rest(&mut self.half));
        let (thinking, signature) = (take(&mut self.thinking), take(&mut self.signature));
        if !signature.is_empty() {
            let kind = "thinking";
            let block = json!({ "type": kind, "thinking": thinking, "signature": signature });
            self.gathered.sign_counted(WIRE, &block, signature.len());
        }
    }

    /// Takes the counts of tokens. Each count covers the whole reply so far. Counts that the event
    /// doesn't have, or that are 0, stay as they are.
    fn used(&mut self, usage: &Value) {
        if !usage.is_object() {
            return;
        }
        recount(&mut self.fresh, &usage["input_tokens"]);
        recount(&mut self.usage.cached, &usage["cache_read_input_tokens"]);
        recount(&mut self.usage.cache_written, &usage["cache_creation_input_tokens"]);
        recount(&mut self.usage.output, &usage["output_tokens"]);
        let kept = self.usage.cached.saturating_add(self.usage.cache_written);
        self.usage.input = self.fresh.saturating_add(kept);
        self.gathered.used(self.usage);
    }

    fn stopped(&mut self, word: &Value) {
        let Some(word) = text(word) else { return };
        let stop = match word {
            "end_turn" => Stop::End,
            "stop_sequence" => Stop::StopText,
            // A paused turn goes on when the reply is sent back.
            "max_tokens" | "model_context_window_exceeded" | "pause_turn" => Stop::MaxTokens,
            "tool_use" => Stop::Calls,
            "refusal" => Stop::Filtered,
            word => Stop::Other(word.to_owned()),
        };
        self.gathered.stop(word, stop);
    }
}

/// The arguments of calls as their text is in an event.
#[derive(Default, Deserialize)]
#[serde(default)]
struct RawEvent<'a> {
    #[serde(borrow)]
    content_block: RawBlock<'a>,
    #[serde(borrow)]
    content: Vec<RawBlock<'a>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct RawBlock<'a> {
    #[serde(borrow)]
    input: Option<&'a RawValue>,
}

impl Reader for AnthropicMessages {
    fn read(&mut self, data: &str) -> Result<(), Error> {
        let event = object(data)?;
        let index = self.base.saturating_add(count(&event["index"]));
        match event["type"].as_str().unwrap_or_default() {
            "message_start" => {
                self.base += NEXT;
                (self.usage, self.fresh) = (Usage::default(), 0);
                self.used(&event["message"]["usage"]);
            }
            "content_block_start" => {
                let raw: RawEvent<'_> = json::deserialize(data).unwrap_or_default();
                self.block(index, &event["content_block"], &raw.content_block);
            }
            "content_block_delta" => self.delta(index, &event["delta"]),
            "content_block_stop" => self.block_ends(index),
            "message_delta" => {
                self.used(&event["usage"]);
                self.stopped(&event["delta"]["stop_reason"]);
            }
            "message_stop" => self.gathered.end(),
            "message" => {
                let raw: RawEvent<'_> = json::deserialize(data).unwrap_or_default();
                let blocks = event["content"].as_array().into_iter().flatten();
                let raw = raw.content.into_iter().chain(iter::repeat_with(RawBlock::default));
                for (index, (block, raw)) in (0..).zip(blocks.zip(raw)) {
                    self.block(index, block, &raw);
                    self.block_ends(index);
                }
                self.used(&event["usage"]);
                self.stopped(&event["stop_reason"]);
                self.gathered.end();
            }
            "error" => return Err(error_answer::within(&event["error"])),
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

/// The most tokens of a reply if neither the prompt nor the settings set a maximum. The wire
/// requires a number.
const MAX_TOKENS: u32 = 4_096;
/// The fewest tokens of reasoning that the wire takes.
const THINKING_TOKENS_MIN: u32 = 1_024;

/// The wire's keys for some parts of a request.
const CHOICES: Choices = Choices {
    max_tokens: "max_tokens",
    temperature: "temperature",
    top_p: "top_p",
    seed: "",
    stop: "stop_sequences",
};

/// Writes a prompt as a request.
pub(super) fn body(content: &RequestContent<'_>) -> Map<String, Value> {
    let prompt = content.prompt;
    let mut body = Map::new();
    let mut put = |key: &str, value: Value| drop(body.insert(key.to_owned(), value));
    put("model", content.model.into());
    let thinking = thinking(content);
    let own = content.extra.get("thinking").map_or(0, |it| count(&it["budget_tokens"]));
    let budget = thinking.as_ref().map_or(own, |it| count(&it["budget_tokens"]).max(own));
    let reply = content.max_tokens.map_or(u64::from(MAX_TOKENS).saturating_add(budget), u64::from);
    put("max_tokens", reply.into());
    put("stream", content.is_streamed.into());
    if !prompt.system.is_empty() {
        let mut text = json!({ "type": "text", "text": prompt.system });
        keep(&mut text);
        put("system", json!([text]));
    }
    put("messages", messages(prompt).into());
    if !content.tools.is_empty() {
        put("tools", content.tools.iter().map(tool).collect());
        if prompt.without_calls {
            put("tool_choice", json!({ "type": "none" }));
        }
    }
    let has_level = thinking.as_ref().is_some_and(|it| it["type"] == "adaptive");
    if let Some(thinking) = thinking {
        put("thinking", thinking);
    }
    let format = content.format().and_then(|it| answer_schema::anthropic(&it.schema));
    let format = format.map(|it| json!({ "type": "json_schema", "schema": it }));
    let effort = content.effort.filter(|_| has_level).map(|it| Value::from(it.as_str()));
    let settings = [("effort", effort), ("format", format)].into_iter();
    let settings = settings.filter_map(|(key, it)| Some((key.to_owned(), it?)));
    let settings: Map<String, Value> = settings.collect();
    if !settings.is_empty() {
        put("output_config", settings.into());
    }
    content.choose(WIRE, &CHOICES, &mut body);
    body
}

/// How the model is asked to reason. None if it isn't asked to, or if the reply has no room for
/// that. The reply's tokens include those of the reasoning.
fn thinking(content: &RequestContent<'_>) -> Option<Value> {
    let effort = content.effort(WIRE)?;
    if content.served(WIRE).reasoning() == Reasoning::Level {
        return Some(json!({ "type": "adaptive", "display": "summarized" }));
    }
    let budget = match effort {
        Effort::Low => THINKING_TOKENS_MIN,
        Effort::Medium => 4 * THINKING_TOKENS_MIN,
        Effort::High => 16 * THINKING_TOKENS_MIN,
    };
    let room = content.max_tokens.map_or(budget, |it| it / 2);
    let budget = budget.min(room);
    let enabled = || json!({ "type": "enabled", "budget_tokens": budget });
    (budget >= THINKING_TOKENS_MIN).then(enabled)
}

/// Marks the end of the part of the prompt that the provider caches.
fn keep(block: &mut Value) {
    block["cache_control"] = json!({ "type": "ephemeral" });
}

/// The messages, with the roles `user` and `assistant` in turn. Neighbours of one role are joined.
/// Results have the role `user`.
///
/// The provider is told to cache everything but the text that only this prompt has
/// ([`Prompt::late_bytes`]).
fn messages(prompt: &Prompt) -> Vec<Value> {
    let mut all: Vec<(&str, Vec<Value>)> = Vec::new();
    let (before, last) = divided(prompt);
    for it in before.iter().chain(&last) {
        let role = if it.role == Role::Assistant { "assistant" } else { "user" };
        let blocks = blocks(it);
        match all.last_mut() {
            Some((last, more)) if *last == role => more.extend(blocks),
            _ if blocks.is_empty() => {}
            _ => all.push((role, blocks)),
        }
    }
    let late = usize::from(prompt.late().is_some());
    let blocks = all.iter_mut().rev().flat_map(|(_, blocks)| blocks.iter_mut().rev());
    if let Some(last) = blocks.into_iter().nth(late) {
        keep(last);
    }
    let message = |(role, content)| json!({ "role": role, "content": content });
    all.into_iter().map(message).collect()
}

fn blocks(
    PromptMessage { role, text, calls, of, signed, attached, .. }: &PromptMessage,
) -> Vec<Value> {
    if *role == Role::Tool {
        let id = of.as_deref().unwrap_or_default();
        return vec![json!({ "type": "tool_result", "tool_use_id": id, "content": text })];
    }
    // The API refuses texts that are empty or have only white space.
    let text = (!text.trim().is_empty()).then(|| json!({ "type": "text", "text": text }));
    let signed_at = |place: u64| Signed::at(signed, WIRE, move |it| it == place);
    let mut blocks: Vec<Value> = signed_at(0).chain(text).chain(signed_at(1)).collect();
    for (place, Call { id, name, arguments: text }) in (2..).zip(calls) {
        let input = arguments(text);
        blocks.push(json!({ "type": "tool_use", "id": id, "name": name, "input": input }));
        blocks.extend(signed_at(place));
    }
    blocks.extend(attached.iter().map(source));
    blocks
}

/// An image or a document.
fn source(it: &Attached) -> Value {
    // In base64, the wire takes images and PDFs only.
    if it.media_type.starts_with("text/")
        && let Some(bytes) = crate::schema::base64(&it.base64)
    {
        let text = String::from_utf8_lossy(&bytes);
        let source = json!({ "type": "text", "media_type": "text/plain", "data": text });
        return json!({ "type": "document", "source": source });
    }
    let kind = if it.is_image() { "image" } else { "document" };
    let source = json!({ "type": "base64", "media_type": it.media_type, "data": &*it.base64 });
    json!({ "type": kind, "source": source })
}

fn tool(Tool { name, description, parameters }: &Tool) -> Value {
    json!({ "name": name, "description": description, "input_schema": parameters })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signature_counts_once_and_as_it_comes() {
        let mut reader = AnthropicMessages::default();
        let mut read = |kind: &str, key: &str, value: Value| {
            let event = json!({ "type": kind, "index": 0, key: value });
            reader.read(&event.to_string()).unwrap();
            reader.gathered().bytes()
        };
        let begun = json!({ "type": "thinking", "thinking": "", "signature": "ab" });
        assert_eq!(read("content_block_start", "content_block", begun), 2);
        let delta = json!({ "type": "signature_delta", "signature": "cdef" });
        assert_eq!(read("content_block_delta", "delta", delta.clone()), 6);
        assert_eq!(read("content_block_delta", "delta", delta), 10);
        let kind = "thinking";
        let signed = json!({ "type": kind, "thinking": "", "signature": "abcdefcdef" });
        let expected = signed.to_string().len();
        assert_eq!(read("content_block_stop", "none", Value::Null), expected);
    }
}
