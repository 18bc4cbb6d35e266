//! An agent whose provider closes the connection after any byte of a recorded reply. An action
//! starts only if its call was complete by then, and no action runs twice. The text so far is kept.
//! The next prompt has that text once, with the results, and says that the reply was cut.
//! `just cuts` cuts 50 recordings at every byte.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::{StreamExt as _, stream};
use pumphouse::engine::Followed;
use pumphouse::limits::ModelLimits;
use pumphouse::listeners::action::words::{Action, Dialect as Written};
use pumphouse::listeners::agent::Agent;
use pumphouse::listeners::agent::settings::{Dialect, Settings};
use pumphouse::listeners::agent::words::{CognitionIn, CognitionOut, Response, Stopped};
use pumphouse::listeners::{agent_support, core};
use pumphouse::model::{Remote, Wire};
use pumphouse::prelude::*;
use pumphouse::schema::Schema;
use serde_json::{Value, json};

use super::fake::{Act, Asked, Server, say};
use super::speaking::speaks;
use super::wires::head_of;
use crate::suites::{Case, cases, suites};

/// How many recordings of each wire are cut: with calls as far as there are some, the small first.
const RECORDINGS: [(Wire, usize); 5] = [
    (Wire::AnthropicMessages, 12),
    (Wire::OpenAiChat, 15),
    (Wire::OpenAiResponses, 8),
    (Wire::Gemini, 12),
    (Wire::Ollama, 3),
];

/// How long an agent may go on behind its first answer.
const WAIT: Duration = Duration::from_secs(60);

/// Bytes of a recording that is cut.
const BYTES_MAX: usize = 58_000;

/// A tool was called.
#[derive(Debug, Payload)]
#[payload(ns = "urn:test:cuts")]
struct Called {}

/// A call that a recording makes.
#[derive(Clone, Debug, Default)]
struct Recorded {
    id: String,
    name: String,
    arguments: String,
    /// How many bytes there are where it is whole.
    whole_at: usize,
}

/// A recording.
struct Recording {
    wire: Wire,
    file: String,
    bytes: Vec<u8>,
    calls: Vec<Recorded>,
    /// Its text, and behind how many bytes there is how much of it.
    text: String,
    lengths: Vec<(usize, usize)>,
}

impl Recording {
    /// Reads a recording without our own reader: JSON by lines.
    fn of(wire: Wire, case: &Case) -> Recording {
        let bytes = case.bytes();
        let (mut at, mut text, mut lengths) = (0, String::new(), Vec::new());
        let mut calls: Vec<(u64, Recorded)> = Vec::new();
        for line in bytes.split_inclusive(|byte| *byte == b'\n') {
            // An event can be read as soon as its JSON is whole, without the line's end.
            let whole_at = at + line.trim_ascii_end().len();
            at += line.len();
            let line = String::from_utf8_lossy(line);
            let data = line.trim().strip_prefix("data:").unwrap_or(&line);
            if let Ok(event) = serde_json::from_str::<Value>(data.trim()) {
                take(wire, &event, whole_at, &mut text, &mut calls);
            }
            // An event of SSE is sure to be read behind its blank line only, one of Ollama behind
            // its own line.
            if wire == Wire::Ollama || line.trim().is_empty() {
                lengths.push((whole_at, text.len()));
            }
        }
        let calls = calls.into_iter().map(|(_, it)| it).collect();
        Recording { wire, file: case.file().to_owned(), bytes, calls, text, lengths }
    }

    /// How much of the text there surely is behind so many bytes.
    fn length_at(&self, bytes: usize) -> usize {
        self.lengths.iter().rfind(|(at, _)| *at < bytes).map_or(0, |it| it.1)
    }
}

fn word(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// Adds what an event says to a recording's text and calls.
fn take(wire: Wire, event: &Value, at: usize, text: &mut String, calls: &mut Vec<(u64, Recorded)>) {
    let index = |value: &Value| value.as_u64().unwrap_or(u64::MAX);
    let mut add = |place: u64, id: &Value, name: &Value, arguments: String| {
        if name.is_string() && !calls.iter().any(|it| it.0 == place) {
            let call = Recorded { id: word(id), name: word(name), ..Recorded::default() };
            calls.push((place, call));
        }
        if let Some((_, call)) = calls.iter_mut().find(|it| it.0 == place) {
            call.arguments += &arguments;
            call.whole_at = at;
        }
    };
    match wire {
        Wire::AnthropicMessages => {
            let (place, block) = (index(&event["index"]), &event["content_block"]);
            if block["type"] == "tool_use" {
                add(place, &block["id"], &block["name"], String::new());
            }
            *text += &word(&block["text"]);
            let delta = &event["delta"];
            *text += &word(&delta["text"]);
            if delta["type"] == "input_json_delta" {
                add(place, &Value::Null, &Value::Null, word(&delta["partial_json"]));
            }
        }
        Wire::OpenAiChat => {
            let delta = &event["choices"][0]["delta"];
            *text += &word(&delta["content"]);
            for call in delta["tool_calls"].as_array().into_iter().flatten() {
                let it = &call["function"];
                add(index(&call["index"]), &call["id"], &it["name"], word(&it["arguments"]));
            }
        }
        Wire::OpenAiResponses => {
            let (place, item) = (index(&event["output_index"]), &event["item"]);
            match word(&event["type"]).as_str() {
                "response.output_text.delta" => *text += &word(&event["delta"]),
                "response.output_item.added" if item["type"] == "function_call" => {
                    add(place, &item["call_id"], &item["name"], String::new());
                }
                "response.function_call_arguments.delta" => {
                    add(place, &Value::Null, &Value::Null, word(&event["delta"]));
                }
                _ => {}
            }
        }
        Wire::Gemini => {
            let parts = event["candidates"][0]["content"]["parts"].as_array();
            for (nth, part) in (0..).zip(parts.into_iter().flatten()) {
                if part["thought"] != true {
                    *text += &word(&part["text"]);
                }
                let call = &part["functionCall"];
                if call.is_object() {
                    let arguments = call["args"].to_string();
                    add((at as u64) << 8 | nth, &call["id"], &call["name"], arguments);
                }
            }
        }
        _ => {
            *text += &word(&event["message"]["content"]);
            let all = event["message"]["tool_calls"].as_array();
            for (nth, call) in (0..).zip(all.into_iter().flatten()) {
                let function = &call["function"];
                let arguments = function["arguments"].to_string();
                add((at as u64) << 8 | nth, &call["id"], &function["name"], arguments);
            }
        }
    }
}

/// The recordings that are cut.
fn recordings(is_long: bool) -> Option<Vec<Recording>> {
    let all = cases(&suites()?, "llm-sse/index.jsonl");
    let mut chosen = Vec::new();
    for (wire, count) in RECORDINGS {
        let is_of = |it: &&Case| match wire {
            Wire::Ollama => it.file().contains("/ollama/"),
            _ => it.text("wire") == wire.name(),
        };
        let is_sound = |it: &&Case| it.row["status"] == 200 && it.row["expected"]["error"] == false;
        let mine = all.iter().filter(is_of).filter(is_sound);
        let mut mine: Vec<Recording> = mine.map(|it| Recording::of(wire, it)).collect();
        mine.retain(|it| it.bytes.len() < BYTES_MAX);
        // Two of three have calls.
        mine.sort_by_key(|it| (it.calls.is_empty(), it.bytes.len()));
        let (with, without): (Vec<_>, Vec<_>) =
            mine.into_iter().partition(|it| !it.calls.is_empty());
        let count = if is_long { count } else { 1 };
        let have = with.len().min(count.div_ceil(3) * 2).min(count);
        chosen.extend(with.into_iter().take(have));
        chosen.extend(without.into_iter().take(count - have));
    }
    Some(chosen)
}

/// The number in `Cut at 12.` of a request.
fn cut_of(asked: &Asked) -> usize {
    let body = asked.body.to_string();
    let at = body.find("Cut at ").unwrap() + "Cut at ".len();
    body[at..].split('.').next().unwrap().parse().unwrap()
}

/// What the prompts behind a cut say: by the cut, the second request.
type Nexts = Arc<Mutex<HashMap<usize, (usize, Value)>>>;

/// A provider that hangs up once for each question, and then answers.
async fn provider(recording: &Recording, nexts: Nexts) -> Server {
    let (wire, bytes) = (recording.wire, recording.bytes.clone());
    Server::answering(move |asked| {
        let cut = cut_of(asked);
        let mut nexts = nexts.lock().unwrap();
        let (count, next) = nexts.entry(cut).or_default();
        *count += 1;
        match *count {
            1 => vec![head_of(wire), say(&bytes[..cut])],
            count => {
                if count == 2 {
                    *next = asked.body.clone();
                }
                speaks(wire, "<response>Done.</response>", &[]) as Vec<Act>
            }
        }
    })
    .await
}

/// A listener that takes anything by the name of a tool.
fn tool(name: &str) -> Listener {
    let name = name.to_owned();
    let open = json!({ "type": "object" });
    let payload = Name::new("urn:test:cuts", name.clone());
    let mut schema = Schema::from_json_schema(payload, &open).unwrap();
    schema.shape.doc = "Whatever a recording calls it with.".into();
    Listener::new(name).on_named(schema, async |_: Element| Called {})
}

/// The texts of the model's own messages in a request, and how many results there are.
fn history(wire: Wire, body: &Value) -> (String, usize, String) {
    let key = match wire {
        Wire::OpenAiResponses => "input",
        Wire::Gemini => "contents",
        _ => "messages",
    };
    let (mut own, mut results, mut told) = (String::new(), 0, String::new());
    for said in body[key].as_array().unwrap() {
        let is_own = said["role"] == "assistant" || said["role"] == "model";
        let is_result = said["role"] == "tool" || said["type"] == "function_call_output";
        results += usize::from(is_result);
        let parts = said["content"].as_array().or(said["parts"].as_array());
        for part in parts.into_iter().flatten() {
            let is_result = part["type"] == "tool_result" || part["functionResponse"].is_object();
            results += usize::from(is_result);
            *(if is_own { &mut own } else { &mut told }) += &word(&part["text"]);
        }
        *(if is_own { &mut own } else { &mut told }) += &word(&said["content"]);
    }
    (own, results, told)
}

/// The words of a reply without its calls.
fn without_calls(text: &str) -> String {
    let mut rest = text;
    let mut all = String::new();
    while let Some((before, behind)) = rest.split_once("<tool_use ") {
        all += before;
        rest = behind.split_once("</tool_use>").map_or("", |(_, it)| it);
    }
    (all + rest).trim().to_owned()
}

/// The number of actions that had begun before a cut, or the rule that the thread breaks.
fn check(
    recording: &Recording,
    cut: usize,
    entries: &[Entry],
    (asked, next): (usize, &Value),
) -> Result<usize, String> {
    let out = entries.iter().find_map(Entry::decode_if::<CognitionOut>).ok_or("no turn")?;
    let actions = entries.iter().filter_map(Entry::decode_if::<Action>);
    let begun: Vec<Action> = actions.filter(|it| it.dialect == Some(Written::Native)).collect();
    let mut whole: Vec<&Recorded> =
        recording.calls.iter().filter(|it| it.whole_at <= cut).collect();
    for action in &begun {
        let is_of =
            |it: &&Recorded| it.name == action.name && (it.id.is_empty() || it.id == action.id);
        let at = whole.iter().position(is_of);
        whole.remove(at.ok_or_else(|| format!("{} ran", action.id))?);
    }
    let kept = without_calls(&out.text);
    let sure = recording.text[..recording.length_at(cut)].trim();
    if !kept.starts_with(sure) || !recording.text.trim().starts_with(&kept) {
        return Err(format!("{kept:?} was kept, not {sure:?}"));
    }
    // A reply that was as long as it may be is partial without an error.
    let is_cut = out.error.is_some();
    if out.is_partial != (is_cut || out.truncated) {
        return Err(format!("partial: {}, error: {:?}", out.is_partial, out.error));
    }
    if asked < 2 {
        return match is_cut {
            true => Err("it wasn't asked again".to_owned()),
            false => Ok(begun.len()),
        };
    }
    let (own, results, told) = history(recording.wire, next);
    if own.trim() != kept {
        return Err(format!("{own:?} is in the next prompt, not {kept:?}"));
    }
    if results < begun.len() {
        return Err(format!("{results} results are in the next prompt, not {}", begun.len()));
    }
    // By a broken connection, or by as many tokens as a reply may have.
    let words = ["[Previous response was interrupted", "[Your reply reached its limit"];
    let is_told: usize = words.iter().map(|it| told.matches(it).count()).sum();
    if is_told != usize::from(out.is_partial && !out.text.is_empty()) {
        return Err(format!("the next prompt says {is_told} times that the reply was cut"));
    }
    Ok(begun.len())
}

/// The entries of a thread once its agent is done. An answer that was cut goes on after it came,
/// and an answer may come before its turn is over.
async fn done(pump: &Pump, thread: &ThreadId) -> Vec<Entry> {
    let mut follow = pump.follow_log(thread, 0);
    let (mut entries, mut open, mut is_end) = (Vec::new(), 0, false);
    while let Followed::Entry(entry) = follow.next().await.unwrap() {
        let is_final = entry.decode_if::<Response>().is_some_and(|it| it.is_final);
        is_end |= is_final || entry.is::<Stopped>();
        open += i32::from(entry.is::<CognitionIn>()) - i32::from(entry.is::<CognitionOut>());
        entries.push(entry);
        if is_end && open == 0 {
            break;
        }
    }
    entries
}

/// Cuts a recording at each of these bytes: how many actions began, and what is wrong.
#[expect(clippy::disallowed_methods, reason = "an agent that never answers fails the test")]
async fn cut(recording: &Recording, cuts: Vec<usize>) -> (usize, Vec<String>) {
    let nexts = Nexts::default();
    let provider = provider(recording, nexts.clone()).await;
    let limits = ModelLimits { retries_max: 0, ..ModelLimits::default() };
    let model = Remote::at(recording.wire, provider.url(), "m").limits(limits).build().unwrap();
    let settings = Settings { dialect: Dialect::Native, ..Settings::default() };
    let mut names: Vec<&str> = recording.calls.iter().map(|it| &*it.name).collect();
    names.sort_unstable();
    names.dedup();
    let agent = Agent::new("oracle", Arc::new(model)).settings(settings).peers(names.clone());
    let tools: Vec<Listener> = names.into_iter().map(tool).collect();
    let asking: Vec<(usize, Element)> =
        cuts.into_iter().map(|it| (it, agent.ask(&format!("Cut at {it}.")).unwrap())).collect();
    let builder = pumphouse::builder().with((core(), agent_support(), tools, agent.listener()));
    let pump = builder.build().unwrap().start();
    let one = async |(at, question): (usize, Element)| {
        let answer = pump.ask_element(question).await.unwrap();
        let entries = tokio::time::timeout(WAIT, done(&pump, answer.thread())).await.unwrap();
        provider.forget();
        let next = nexts.lock().unwrap().remove(&at).unwrap();
        let came = check(recording, at, &entries, (next.0, &next.1));
        came.map_err(|why| format!("{} {} cut at {at}: {why}", recording.wire, recording.file))
    };
    let came: Vec<_> = stream::iter(asking).map(one).buffer_unordered(8).collect().await;
    pump.shutdown().await.unwrap();
    let actions = came.iter().flatten().sum();
    (actions, came.into_iter().filter_map(Result::err).collect())
}

#[tokio::test(flavor = "multi_thread")]
#[expect(clippy::disallowed_methods, reason = "a long form cuts more")]
async fn a_reply_that_is_cut_anywhere_runs_whole_calls_once_and_is_told_in_the_next_prompt() {
    let long = std::env::var("PUMPHOUSE_CUT_RECORDINGS").ok();
    let is_long = long.is_some();
    let Some(recordings) = recordings(is_long) else { return };
    let mut all_wrong = Vec::new();
    println!("| wire | recordings | cuts | actions | wrong |");
    println!("| --- | ---: | ---: | ---: | ---: |");
    let is_chosen = |wire: &Wire| long.as_deref().is_none_or(|it| it == "all" || it == wire.name());
    for wire in RECORDINGS.map(|it| it.0).iter().copied().filter(is_chosen) {
        let (mut count, mut cuts, mut actions, mut failures) = (0, 0, 0, 0);
        for recording in recordings.iter().filter(|it| it.wire == wire) {
            let step = if is_long { 1 } else { recording.bytes.len().div_ceil(100) };
            let mut places: Vec<usize> = (0..recording.bytes.len()).step_by(step).collect();
            places.push(recording.bytes.len());
            count += 1;
            cuts += places.len();
            let (began, wrong) = cut(recording, places).await;
            actions += began;
            failures += wrong.len();
            all_wrong.extend(wrong.into_iter().take(5));
        }
        println!("| `{wire}` | {count} | {cuts} | {actions} | {failures} |");
    }
    assert!(all_wrong.is_empty(), "{}", all_wrong.join("\n"));
}
