//! One event of a stream, as providers write it, and what it adds to the reply.

use std::collections::VecDeque;
use std::fmt;

use serde::Deserialize;
use serde_json::Value;

use crate::model::openai::refusal;
use crate::model::{Call, Error, Kind, Piece, Stop, Usage};

/// An event, or a whole reply that isn't streamed. What is not named here is nobody's business.
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
    /// A reply that isn't streamed.
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
    /// How calls were written once.
    #[serde(default)]
    function_call: Option<Function>,
}

#[derive(Deserialize)]
struct ToolCall {
    #[serde(default)]
    index: Option<u64>,
    #[serde(default)]
    id: Option<String>,
    #[serde(default)]
    function: Option<Function>,
}

#[derive(Deserialize)]
struct Function {
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    arguments: Value,
}

impl ToolCall {
    /// Whether this begins another call than one at the same place.
    fn is_other_than(&self, begun: &Call) -> bool {
        let name = self.function.as_ref().and_then(|it| it.name.as_deref()).unwrap_or_default();
        let id = self.id.as_deref().unwrap_or_default();
        !name.is_empty() && !id.is_empty() && !begun.id.is_empty() && id != begun.id
    }
}

/// A reply as far as it is known.
#[derive(Debug, Default)]
pub(super) struct Gathered {
    /// What there is to give out.
    pub(super) pieces: VecDeque<Piece>,
    /// Calls that may not be whole yet, each with the place that the provider gives it.
    calls: Vec<(u64, Call)>,
    usage: Option<Usage>,
    stop: Option<Stop>,
    /// Bytes of the reply so far.
    bytes: usize,
}

impl Gathered {
    /// Whether it was said why the reply is over. Its usage may still come.
    pub(super) fn is_stopped(&self) -> bool {
        self.stop.is_some()
    }

    /// How long the reply is by now.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Adds what an event says.
    pub(super) fn add(&mut self, data: &str, bytes_max: usize) -> Result<(), Error> {
        let garbled = |why: &dyn fmt::Display| {
            let text = format!("the server sent an event that is none of a reply: {why}");
            Error { said: refusal::said(data), ..Error::new(Kind::Garbled, text) }
        };
        // Serde takes a list for an object, too.
        if !data.starts_with('{') {
            return Err(garbled(&"it is no JSON object"));
        }
        let chunk: Chunk = serde_json::from_str(data).map_err(|it| garbled(&it))?;
        if !chunk.error.is_null() {
            return Err(refusal::within(&chunk.error));
        }
        for usage in [&chunk.x_groq["usage"], &chunk.usage] {
            self.usage = usage_of(usage).or(self.usage);
        }
        // A request asks for one reply. Where a setting has it ask for more, the first counts.
        let first = chunk.choices.into_iter().flatten().filter(|it| it.index.unwrap_or(0) == 0);
        first.take(1).try_for_each(|it| self.choice(it))?;
        match self.bytes > bytes_max {
            true => {
                let text = format!("the reply is over a limit: reply_bytes_max is {bytes_max}");
                Err(Error::new(Kind::TooLarge, text))
            }
            false => Ok(()),
        }
    }

    fn choice(&mut self, choice: Choice) -> Result<(), Error> {
        let Choice { delta, message, finish_reason, error, .. } = choice;
        if !error.is_null() {
            return Err(refusal::within(&error));
        }
        // A provider that sends both repeats itself.
        let Delta { content, reasoning_content, reasoning, refusal, tool_calls, function_call } =
            delta.or(message).unwrap_or_default();
        let reasoning = if is_text(&reasoning_content) { reasoning_content } else { reasoning };
        if let Value::String(text) = reasoning {
            self.text(text, Piece::Reasoning);
        }
        self.content(content);
        if let Value::String(text) = refusal {
            self.text(text, Piece::Refusal);
        }
        let old = function_call.map(|it| ToolCall { index: None, id: None, function: Some(it) });
        for (at, call) in (0..).zip(tool_calls.into_iter().flatten().chain(old)) {
            self.call(at, call);
        }
        match finish_reason.as_deref().unwrap_or_default() {
            "" => {}
            "error" => return Err(refusal::within(&Value::Null)),
            word => self.stop = Some(stop(word)),
        }
        Ok(())
    }

    /// A text, or parts of which some are texts and some are reasoning.
    fn content(&mut self, content: Value) {
        match content {
            Value::String(text) => self.text(text, Piece::Text),
            Value::Array(parts) => parts.iter().for_each(|part| {
                if let Value::String(text) = &part["text"] {
                    self.text(text.clone(), Piece::Text);
                }
                match &part["thinking"] {
                    Value::String(text) => self.text(text.clone(), Piece::Reasoning),
                    Value::Array(parts) => {
                        let texts = parts.iter().filter_map(|it| it["text"].as_str());
                        self.text(texts.collect(), Piece::Reasoning);
                    }
                    _ => {}
                }
            }),
            _ => {}
        }
    }

    fn text(&mut self, text: String, make: fn(String) -> Piece) {
        self.bytes += text.len();
        if !text.is_empty() {
            self.pieces.push_back(make(text));
        }
    }

    fn call(&mut self, at: u64, more: ToolCall) {
        let at = more.index.unwrap_or(at);
        let begun = self.calls.iter().rposition(|(place, _)| *place == at);
        // Some providers give every call the same place: another id with a name is another call.
        let begun = begun.filter(|it| !more.is_other_than(&self.calls[*it].1));
        let begun = begun.unwrap_or_else(|| {
            self.calls.push((at, Call::default()));
            self.calls.len() - 1
        });
        let call = &mut self.calls[begun].1;
        let size = |it: &Call| it.id.len() + it.name.len() + it.arguments.len();
        let before = size(call);
        if let Some(id) = more.id.filter(|it| !it.is_empty()) {
            call.id = id;
        }
        let function = more.function.unwrap_or(Function { name: None, arguments: Value::Null });
        if let Some(name) = function.name.filter(|it| !it.is_empty()) {
            call.name = name;
        }
        match function.arguments {
            Value::Null => {}
            Value::String(text) => call.arguments += &text,
            // Some servers give the object itself.
            value => call.arguments += &value.to_string(),
        }
        self.bytes += size(call).saturating_sub(before);
    }

    /// Nothing more comes: calls are whole, and the last pieces are there.
    pub(super) fn finish(&mut self) {
        let mut calls = std::mem::take(&mut self.calls);
        calls.sort_by_key(|(place, _)| *place);
        self.pieces.extend(calls.into_iter().map(|(_, it)| Piece::Call(it)));
        self.pieces.extend(self.usage.take().map(Piece::Usage));
        self.pieces.push_back(Piece::Stop(self.stop.clone().unwrap_or(Stop::End)));
    }
}

fn is_text(value: &Value) -> bool {
    value.as_str().is_some_and(|it| !it.is_empty())
}

fn stop(word: &str) -> Stop {
    match word {
        "stop" | "eos" | "end_turn" => Stop::End,
        "stop_sequence" => Stop::StopText,
        "length" | "max_tokens" => Stop::MaxTokens,
        "tool_calls" | "function_call" => Stop::Calls,
        "content_filter" => Stop::Filtered,
        word => Stop::Other(word.to_owned()),
    }
}

fn usage_of(usage: &Value) -> Option<Usage> {
    let count = |it: &Value| it.as_u64().unwrap_or(0);
    usage.is_object().then(|| Usage {
        input: count(&usage["prompt_tokens"]),
        output: count(&usage["completion_tokens"]),
        cached: count(&usage["prompt_tokens_details"]["cached_tokens"]),
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
