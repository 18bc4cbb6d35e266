//! Google's `generateContent`: each event is a piece of the whole answer. A call is in a single
//! event, or its arguments come in parts, each with a path.
//!
//! The events are described at <https://ai.google.dev/api/generate-content>.

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::call_ids::called;
use super::parameters::Reasoning;
use super::partial_arguments::PartialArguments;
use super::tool_schema::without_wide_bounds;
use super::{
    Choices, Gathered, Reader, RequestContent, Served, answer_schema, arguments, arguments_text,
    divided, object, recount, text,
};
use crate::model::error::Error;
use crate::model::error_answer;
use crate::model::piece::{Call, Piece, Signed, Stop};
use crate::model::prompt::{Prompt, PromptMessage, Role, Tool};
use crate::model::usage::Usage;
use crate::model::wire::Effort;
use crate::model::wire_name::Wire;
use crate::schema::json;

const WIRE: Wire = Wire::Gemini;
/// The beginning of the arguments of a call whose arguments come in parts. Until the call is whole,
/// the texts of its parts follow, so that they count against the reply's limit. They are no JSON.
const OPEN: &str = "{,";

/// A reply as Gemini writes it.
#[derive(Default)]
pub(super) struct Gemini {
    gathered: Gathered,
    /// The place of the next call.
    next: u64,
    /// A call whose arguments come in parts, and these arguments so far.
    open: Option<PartialArguments>,
    counts: Counts,
}

/// Counts of tokens, under the wire's names.
#[derive(Default)]
struct Counts {
    prompt: u64,
    tool_prompt: u64,
    cached: u64,
    candidates: u64,
    thoughts: u64,
}

impl Gemini {
    fn part(&mut self, part: &Value, args: Option<&RawValue>) {
        if let Some(text) = text(&part["text"]) {
            let is_thought = part["thought"] == true;
            self.gathered.say(text, if is_thought { Piece::Reasoning } else { Piece::Text });
        }
        // A signature belongs to its part: to the text, or to the call that begins below.
        if let Some(signature) = text(&part["thoughtSignature"]) {
            let calls = self.gathered.calls() as u64;
            let place = if part["functionCall"].is_object() { calls + 2 } else { 1 };
            self.gathered.sign_at(WIRE, place, &json!({ "thoughtSignature": signature }));
        }
        let run = &part["executableCode"];
        if run.is_object() {
            let code = run["code"].as_str().unwrap_or_default();
            self.call(&Call::new("", "code_execution", code), true);
        }
        let call = &part["functionCall"];
        if call.is_object() {
            self.function_call(call, args);
        }
    }

    /// Reads a call, or a part of one. Parts of a call that has begun have no name.
    fn function_call(&mut self, call: &Value, args: Option<&RawValue>) {
        let word = |key: &str| call[key].as_str().unwrap_or_default();
        let goes_on = call["willContinue"] == true;
        if self.open.is_some() && !word("name").is_empty() {
            self.close();
        }
        if self.open.is_none() && (goes_on || call["partialArgs"].is_array()) {
            let call = Call::new(word("id"), word("name"), OPEN);
            self.gathered.begin(self.next, &call, false);
            self.open = Some(PartialArguments::default());
        }
        let Some(open) = &mut self.open else {
            let arguments = args.map(arguments_text).unwrap_or_default();
            return self.call(&Call::new(word("id"), word("name"), arguments), false);
        };
        open.add(call, &mut self.gathered);
        let parts = call["partialArgs"].as_array().into_iter().flatten();
        let texts: String = parts.filter_map(|it| it["stringValue"].as_str()).collect();
        self.gathered.change(self.next, |it| it.arguments += &texts);
        if !goes_on {
            self.close();
        }
    }

    /// Ends the call whose arguments came in parts.
    fn close(&mut self) {
        if let Some(open) = self.open.take() {
            self.gathered.replace_arguments(self.next, open.whole());
            self.gathered.end_call(self.next);
            self.next += 1;
        }
    }

    /// Takes the counts of tokens. Counts that the event doesn't have, or that are 0, stay as they
    /// are.
    fn used(&mut self, usage: &Value) {
        let all = &mut self.counts;
        recount(&mut all.prompt, &usage["promptTokenCount"]);
        recount(&mut all.tool_prompt, &usage["toolUsePromptTokenCount"]);
        recount(&mut all.cached, &usage["cachedContentTokenCount"]);
        recount(&mut all.candidates, &usage["candidatesTokenCount"]);
        recount(&mut all.thoughts, &usage["thoughtsTokenCount"]);
        self.gathered.usage = Some(Usage {
            input: all.prompt.saturating_add(all.tool_prompt),
            output: all.candidates.saturating_add(all.thoughts),
            cached: all.cached,
            cache_written: 0,
            reasoning: all.thoughts,
            cost_micros: None,
        });
    }

    fn call(&mut self, call: &Call, is_servers: bool) {
        self.gathered.begin(self.next, call, is_servers);
        self.gathered.end_single_call(self.next);
        self.next += 1;
    }

    fn stopped(&mut self, word: &str) {
        if word == "STOP" {
            self.close();
        }
        let stop = match word {
            "STOP" if self.gathered.calls() > 0 => Stop::Calls,
            "STOP" => Stop::End,
            "MAX_TOKENS" => Stop::MaxTokens,
            "SAFETY" | "RECITATION" | "BLOCKLIST" | "PROHIBITED_CONTENT" | "SPII"
            | "IMAGE_SAFETY" => Stop::Filtered,
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
    candidates: Vec<RawCandidate<'a>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct RawCandidate<'a> {
    #[serde(borrow)]
    content: RawContent<'a>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct RawContent<'a> {
    #[serde(borrow)]
    parts: Vec<RawPart<'a>>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct RawPart<'a> {
    #[serde(borrow)]
    function_call: Option<RawCall<'a>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct RawCall<'a> {
    #[serde(borrow)]
    args: Option<&'a RawValue>,
}

impl<'a> RawEvent<'a> {
    /// The arguments of each part of the first candidate.
    fn into_args(self) -> Vec<Option<&'a RawValue>> {
        let first = self.candidates.into_iter().next().unwrap_or_default();
        first.content.parts.into_iter().map(|it| it.function_call?.args).collect()
    }
}

impl Reader for Gemini {
    fn read(&mut self, data: &str) -> Result<(), Error> {
        // The end mark of another wire, which some proxies add.
        if data == "[DONE]" {
            return Ok(());
        }
        let event = object(data)?;
        if !event["error"].is_null() {
            return Err(error_answer::within(&event["error"]));
        }
        // A request asks for one candidate. If a setting makes it ask for more, the first counts.
        let candidate = &event["candidates"][0];
        let raw = json::deserialize::<RawEvent<'_>>(data).unwrap_or_default().into_args();
        let parts = candidate["content"]["parts"].as_array().into_iter().flatten();
        for (part, args) in parts.zip(raw.into_iter().chain(std::iter::repeat(None))) {
            self.part(part, args);
        }
        let usage = &event["usageMetadata"];
        if usage.is_object() {
            self.used(usage);
        }
        if let Some(word) = text(&candidate["finishReason"]) {
            self.stopped(word);
        } else if let Some(word) = text(&event["promptFeedback"]["blockReason"]) {
            self.gathered.stop(word, Stop::Filtered);
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
    max_tokens: "maxOutputTokens",
    temperature: "temperature",
    top_p: "topP",
    seed: "seed",
    stop: "stopSequences",
};

/// Writes a prompt as a request. The model's name is in the URL.
pub(super) fn body(content: &RequestContent<'_>) -> Map<String, Value> {
    let prompt = content.prompt;
    let mut settings = Map::new();
    content.choose(WIRE, &CHOICES, &mut settings);
    if let Some(effort) = content.effort(WIRE) {
        settings.insert("thinkingConfig".to_owned(), thinking(&content.served(WIRE), effort));
    }
    let format = content.format().filter(|_| content.tools.is_empty() || takes_both(content.model));
    if let Some(schema) =
        format.and_then(|it| answer_schema::gemini(&without_wide_bounds(&it.schema)))
    {
        settings.insert("responseMimeType".to_owned(), "application/json".into());
        settings.insert("responseJsonSchema".to_owned(), schema);
    }
    let mut body = Map::new();
    let mut put = |key: &str, value: Value| drop(body.insert(key.to_owned(), value));
    if !prompt.system.is_empty() {
        put("systemInstruction", json!({ "parts": [{ "text": prompt.system }] }));
    }
    put("contents", contents(prompt).into());
    if !settings.is_empty() {
        put("generationConfig", settings.into());
    }
    if !content.tools.is_empty() {
        let all: Vec<Value> = content.tools.iter().map(tool).collect();
        put("tools", json!([{ "functionDeclarations": all }]));
        if prompt.without_calls {
            put("toolConfig", json!({ "functionCallingConfig": { "mode": "NONE" } }));
        }
    }
    body
}

/// How the model is asked to reason. Models before Gemini 3 are told a number of tokens. These are
/// the numbers by which Google's own server understands `reasoning_effort`.
fn thinking(served: &Served<'_>, effort: Effort) -> Value {
    if served.reasoning() == Reasoning::Budget {
        let tokens = match effort {
            Effort::Low => 1_024,
            Effort::Medium => 8_192,
            Effort::High => 24_576,
        };
        return json!({ "thinkingBudget": tokens, "includeThoughts": true });
    }
    let level = match effort {
        Effort::Medium if served.has_no_medium() => Effort::High,
        effort => effort,
    };
    json!({ "thinkingLevel": level.as_str().to_uppercase(), "includeThoughts": true })
}

/// Whether a model takes tools and the format of its answer in one request. Models before Gemini 3
/// refuse that.
fn takes_both(model: &str) -> bool {
    let model = model.strip_prefix("models/").unwrap_or(model);
    !["gemini-1", "gemini-2"].iter().any(|it| model.starts_with(it))
}

/// The messages, alternating between both sides. A result's function is looked up in its call.
fn contents(prompt: &Prompt) -> Vec<Value> {
    let (before, last) = divided(prompt);
    let said = || before.iter().chain(&last);
    let mut all: Vec<(&str, Vec<Value>)> = Vec::new();
    for (it, of) in said().zip(called(said())) {
        let PromptMessage { role, text, calls, signed, attached, .. } = it;
        let parts = match role {
            Role::Tool => {
                let name = of.map_or("", |it| &it.name);
                let part = json!({ "name": name, "response": { "result": text } });
                vec![json!({ "functionResponse": identified(part, of.map_or("", |it| &it.id)) })]
            }
            _ => {
                let sign = |mut part: Value, place: u64| {
                    // Of several signatures, the last one signs the whole part.
                    for mut it in Signed::at(signed, WIRE, move |it| it == place) {
                        part["thoughtSignature"] = it["thoughtSignature"].take();
                    }
                    part
                };
                let text = (!text.is_empty()).then(|| sign(json!({ "text": text }), 1));
                let call = |(place, Call { id, name, arguments: text }): (u64, &Call)| {
                    let call = json!({ "name": name, "args": arguments(text) });
                    sign(json!({ "functionCall": identified(call, id) }), place)
                };
                let attached = attached.iter().map(|it| {
                    json!({ "inlineData": { "mimeType": it.media_type, "data": &*it.base64 } })
                });
                text.into_iter().chain((2..).zip(calls).map(call)).chain(attached).collect()
            }
        };
        let role = if *role == Role::Assistant { "model" } else { "user" };
        match all.last_mut() {
            Some((last, more)) if *last == role => more.extend(parts),
            _ if parts.is_empty() => {}
            _ => all.push((role, parts)),
        }
    }
    all.into_iter().map(|(role, parts)| json!({ "role": role, "parts": parts })).collect()
}

/// Adds the id of a call, if the provider gave it one. Some of its servers refuse ids.
fn identified(mut part: Value, id: &str) -> Value {
    if !id.is_empty() {
        part["id"] = id.into();
    }
    part
}

fn tool(Tool { name, description, parameters }: &Tool) -> Value {
    json!({ "name": name, "description": description, "parametersJsonSchema": parameters })
}
