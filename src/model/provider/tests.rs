//! Tests provider files: their checks, their requests, and how they read replies.

use serde_json::json;

use super::*;
use crate::model::attachments::Attached;
use crate::model::error::Kind;
use crate::model::piece::{Call, Piece, Stop};
use crate::model::prompt::{Prompt, Role, Tool};
use crate::model::usage::Usage;
use crate::model::wire::Gathered;

fn provider(text: &str) -> Provider {
    text.parse().unwrap()
}

fn wrong(text: &str) -> String {
    text.parse::<Provider>().unwrap_err().to_string()
}

/// The pieces that a reader makes of events, the stop reason, and whether an end mark came.
fn read(mut reader: Box<dyn Reader>, events: &[&str]) -> (Vec<Piece>, Option<String>, bool) {
    events.iter().for_each(|it| reader.read(it).unwrap());
    let gathered: &mut Gathered = reader.gathered_mut();
    let (word, is_over) = (gathered.word().map(str::to_owned), gathered.is_over());
    gathered.finish();
    (gathered.pieces.drain(..).collect(), word, is_over)
}

fn text(text: &str) -> Piece {
    Piece::Text(text.to_owned())
}

const BLOCKS: &str = "
provider: {name: blocks, api_url: 'http://127.0.0.1/say'}
stream:
  mode: event_typed
  event_type: $.kind
  events:
    open: {index: $.n, tool_calls: '$[?is_call == true]'}
    more: {index: $.n, text: $.text, reasoning: $.thought, arguments: $.part}
    over: {stop_reason: $.why, end: $, usage: {input: $.in, output: [$.out, $.thoughts]}}
    oops: {error: $.what}
  tool_call: {id: $.id, name: $.tool, arguments: $.with}
  stops: {had_enough: max-tokens}
";

#[test]
fn typed_events_begin_blocks_and_grow_them_at_their_index() {
    let events = [
        r#"{"kind":"more","n":0,"thought":"So."}"#,
        r#"{"kind":"open","n":1,"call":{"is_call":true,"id":"a","tool":"add","with":{}}}"#,
        r#"{"kind":"open","n":2,"call":{"is_call":true,"id":"b","tool":"add","with":{}}}"#,
        r#"{"kind":"more","n":2,"part":"{\"b\""}"#,
        r#"{"kind":"more","n":1,"part":"{\"a\":1}"}"#,
        r#"{"kind":"more","n":2,"part":":2}"}"#,
        r#"{"kind":"nobody-knows","n":2,"part":"?"}"#,
        r#"{"kind":"over","why":"had_enough","in":5,"out":2,"thoughts":3}"#,
    ];
    let read = read(provider(BLOCKS).reader(false), &events);
    let expected = vec![
        Piece::Reasoning("So.".to_owned()),
        Piece::Call(Call::new("a", "add", r#"{"a":1}"#)),
        Piece::Call(Call::new("b", "add", r#"{"b":2}"#)),
        Piece::Usage(Usage::new(5, 5)),
        Piece::Stop(Stop::MaxTokens),
    ];
    assert_eq!(read, (expected, Some("had_enough".to_owned()), true));
}

#[test]
fn an_error_that_a_path_finds_ends_the_reply() {
    let mut reader = provider(BLOCKS).reader(false);
    let error = reader.read(r#"{"kind":"oops","what":{"message":"Overloaded"}}"#).unwrap_err();
    assert_eq!(error.said.as_deref(), Some("Overloaded"));
}

const CHUNKS: &str = "
provider: {name: chunks, api_url: 'http://127.0.0.1/say'}
stream:
  mode: delta_merge
  extract: {text: $.t, tool_calls: '$.calls[*]', stop_reason: $.stop}
  tool_call: {id: $.id, name: $.f, arguments: $.args, index: $.i}
  end_mark: '[END]'
";

#[test]
fn chunks_are_merged_into_calls_by_their_index() {
    let events = [
        r#"{"t":"Hel"}"#,
        r#"{"t":"lo.","calls":[{"i":0,"id":"a","f":"add","args":"{\"a\""}]}"#,
        r#"{"calls":[{"i":1,"id":"b","f":"add","args":""},{"i":0,"args":":1}"}]}"#,
        r#"{"calls":[{"i":1,"args":"{}"}],"stop":"stop"}"#,
        "[END]",
    ];
    let read = read(provider(CHUNKS).reader(false), &events);
    let expected = vec![
        text("Hel"),
        text("lo."),
        Piece::Call(Call::new("a", "add", r#"{"a":1}"#)),
        Piece::Call(Call::new("b", "add", "{}")),
        Piece::Stop(Stop::Calls),
    ];
    assert_eq!(read, (expected, Some("stop".to_owned()), true));
}

const WHOLE: &str = "
provider: {name: whole, api_url: 'http://127.0.0.1/say'}
stream:
  format: ndjson
  mode: complete_chunks
  extract: {text: $.t, tool_calls: '$.calls[*]', end: $.done}
  tool_call: {name: $.f, arguments: $.args}
";

#[test]
fn a_call_of_a_whole_event_is_whole() {
    let events = [
        r#"{"t":"Hello.","calls":[{"f":"add","args":{"a":1}}],"done":false}"#,
        r#"{"calls":[{"f":"add","args":{}}]}"#,
        r#"{"done":true}"#,
    ];
    let read = read(provider(WHOLE).reader(false), &events);
    let expected = vec![
        text("Hello."),
        Piece::Call(Call::new("", "add", r#"{"a":1}"#)),
        Piece::Call(Call::new("", "add", "{}")),
        Piece::Stop(Stop::Calls),
    ];
    assert_eq!(read, (expected, None, true));
}

#[test]
fn a_reply_has_so_many_calls_at_most_by_paths_too() {
    let event = |calls: usize| {
        let calls = vec![r#"{"f":"t"}"#; calls].join(",");
        format!("{{\"calls\":[{calls}]}}")
    };
    assert!(provider(WHOLE).reader(false).take(&event(4_096)).is_ok());
    let error = provider(WHOLE).reader(false).take(&event(4_097)).unwrap_err();
    assert_eq!(error.kind, Kind::Garbled);
}

#[test]
fn a_document_in_which_no_path_finds_anything_is_no_reply() {
    let mut reader = provider(WHOLE).reader(true);
    assert!(reader.read(r#"{"detail":"nope"}"#).is_err());
}

/// A wire's provider file under another name, so that it is read by its paths alone.
fn by_paths(wire: Wire) -> Provider {
    let named = format!("name: {wire}\n");
    provider(&crate::model::provider_file::built_in::text(wire).replace(&named, "name: made-up\n"))
}

#[test]
fn each_built_in_description_reads_its_sample_as_the_reader_in_rust_does() {
    for wire in Wire::ALL {
        let mut all = built_in::sample(wire).iter().map(Value::to_string).collect::<Vec<_>>();
        if wire == Wire::OpenAiChat {
            all.push("[DONE]".to_owned());
        }
        let events: Vec<&str> = all.iter().map(String::as_str).collect();
        let (mut expected, word, is_over) = read(wire.reader(), &events);
        expected.retain(|it| !matches!(it, Piece::Signed(_)));
        assert!(expected.iter().any(|it| matches!(it, Piece::Call(_))), "{wire}");
        assert_eq!(
            read(by_paths(wire).reader(false), &events),
            (expected, word, is_over),
            "{wire}"
        );
    }
}

#[test]
fn a_description_that_is_built_in_adds_nothing_to_its_wire() {
    for wire in Wire::ALL {
        let it = of_wire(wire);
        assert_eq!((it.wire(), it.rules.is_empty(), it.whole.is_empty()), (Some(wire), true, true));
        assert!(it.unmatched().is_empty(), "{wire}");
        assert!(wire.home().starts_with("http") && !wire.home().contains('{'), "{wire}");
        assert!(it.api_url.starts_with(&format!("{}/", wire.home())), "{wire}");
    }
    assert_eq!(Wire::Gemini.query(), Some("alt=sse"));
    assert_eq!(Wire::AnthropicMessages.query(), None);
}

const ADDED: &str = "
provider: {name: openai, api_url: 'https://llm.example.org/v1/chat/completions'}
stream:
  extract: {text: '$.choices[*].delta.content', reasoning: $.thoughts, stop_reason: $.why}
";

#[test]
fn a_path_of_a_file_adds_what_its_wire_does_not_find_in_an_event() {
    let it = provider(ADDED);
    assert_eq!(it.wire(), Some(Wire::OpenAiChat));
    let events = [
        r#"{"thoughts":"So.","choices":[{"delta":{"content":"Hi"}}]}"#,
        r#"{"choices":[],"why":"length"}"#,
        "[DONE]",
    ];
    let read = read(it.reader(false), &events);
    let expected =
        vec![text("Hi"), Piece::Reasoning("So.".to_owned()), Piece::Stop(Stop::MaxTokens)];
    assert_eq!(read, (expected, Some("length".to_owned()), true));
    let unmatched = it.unmatched();
    let keys: Vec<&str> = unmatched.iter().map(|it| it.key.as_str()).collect();
    assert_eq!(keys, ["stream.extract.reasoning", "stream.extract.stop_reason"]);
}

const ASKED: &str = "
provider:
  name: acme
  api_url: https://llm.example.org/{model}/say
  headers: {X-Acme-Key: \"{key}\", X-Model: \"{model}\"}
request:
  body:
    engine: '{model}'
    system: '{system}'
    turns: '{messages}'
    sampling: {temperature: '{temperature}', most: '{max_tokens}', best_of: 1}
    halt: '{stop}'
    choice: {seed: '{seed}'}
    functions: '{tools}'
    live: '{stream}'
    note: 'asked of {model} by {nobody.else}'
  messages:
    user: {from: human, parts: [{say: '{text}'}, '{attachments}']}
    assistant: {from: bot, say: '{text}', uses: '{calls}'}
    result: {from: tool, of: '{call_id}', tool: '{name}', gave: '{text}'}
  call: {id: '{id}', tool: '{name}', with: '{input}'}
  tool: {tool: '{name}', for: '{description}', takes: '{parameters}'}
  attachment: {mime: '{media_type}', data: '{base64}'}
stream:
  mode: complete_chunks
  extract: {text: $.t, end: $.done}
";

fn asked(prompt: &Prompt) -> Value {
    let asked = RequestContent {
        model: "m",
        max_tokens: Some(64),
        temperature: None,
        effort: None,
        is_streamed: true,
        is_structured: true,
        tools: &prompt.tools,
        window: None,
        host: "127.0.0.1",
        extra: &Map::new(),
        prompt,
    };
    provider(ASKED).body(&asked).into()
}

#[test]
fn a_request_is_the_template_filled_in_and_empty_placeholders_are_left_out() {
    let mut prompt = Prompt::new("Be brief.").user("1+1?").assistant("");
    prompt.messages[0].attached = vec![Attached::new("image/png", b"\x89PNG")];
    prompt.messages[1].calls = vec![Call::new("c1", "add", r#"{"a":1}"#)];
    prompt = prompt.said(Role::Tool, "");
    prompt.messages[2].of = Some("c1".to_owned());
    prompt.tools = vec![Tool::new("add", "Adds.", json!({ "type": "object" }))];
    let uses = json!([{ "id": "c1", "tool": "add", "with": { "a": 1 } }]);
    let expected = json!({
        "engine": "m",
        "system": "Be brief.",
        "turns": [
            { "from": "human", "parts": [
                { "say": "1+1?" },
                { "mime": "image/png", "data": "iVBORw==" },
            ] },
            { "from": "bot", "say": "", "uses": uses },
            { "from": "tool", "of": "c1", "tool": "add", "gave": "" },
        ],
        "sampling": { "most": 64, "best_of": 1 },
        "functions": [{ "tool": "add", "for": "Adds.", "takes": { "type": "object" } }],
        "live": true,
        "note": "asked of m by {nobody.else}",
    });
    assert_eq!(asked(&prompt), expected);
    prompt.without_calls = true;
    assert_eq!(asked(&prompt).get("functions"), None);
}

#[test]
fn headers_and_address_have_the_model_and_the_key() {
    let it = provider(ASKED);
    assert_eq!(it.address("m", true), "https://llm.example.org/m/say");
    let headers = |key: Option<&Secret>| {
        let all = it.headers("m", key).into_iter();
        all.map(|(name, it)| format!("{name}: {}", it.reveal())).collect::<Vec<_>>()
    };
    assert_eq!(headers(None), ["X-Model: m"]);
    assert_eq!(headers(Some(&Secret::new("sk-1"))), ["X-Acme-Key: sk-1", "X-Model: m"]);
}

#[test]
fn a_header_of_a_file_replaces_that_of_its_wire() {
    let file = "provider: {name: anthropic, api_url: 'http://127.0.0.1/v1/messages', \
                headers: {Authorization: 'Bearer {key}', Anthropic-Version: '2024-01-01'}}";
    let all = provider(file).headers("m", Some(&Secret::new("k"))).into_iter();
    let all: Vec<_> = all.map(|(name, it)| format!("{name}: {}", it.reveal())).collect();
    assert_eq!(all, ["Anthropic-Version: 2024-01-01", "Authorization: Bearer k"]);
}

#[test]
fn a_file_may_name_another_end_mark_than_its_wire() {
    let it = provider(&ADDED.replace("stream:\n", "stream:\n  end_mark: '[OVER]'\n"));
    let events = [r#"{"choices":[{"delta":{"content":"Hi"}}]}"#, "[OVER]"];
    let expected = vec![text("Hi"), Piece::Stop(Stop::End)];
    assert_eq!(read(it.reader(false), &events), (expected, None, true));
}

#[test]
fn what_a_file_lacks_is_told() {
    let with = |stream: &str| {
        wrong(&format!("{{provider: {{name: a, api_url: 'http://x/y'}}, stream: {stream}}}"))
    };
    let check = |stream: &str, expected: &str| {
        let wrong = with(stream);
        assert!(wrong.contains(expected), "{stream}: {wrong}");
    };
    check(
        "{extract: {text: $.t, end: $.e}}",
        "stream: a provider that isn't built in needs `mode`",
    );
    check("{mode: complete_chunks, extract: {end: $.e}}", "stream: say where the text stands");
    check("{mode: complete_chunks, extract: {text: $.t}}", "stream: say how a reply ends");
    check(
        "{mode: event_typed, extract: {text: $.t, end: $.e}}",
        "say where an event's type stands",
    );
    let typed = "{mode: delta_merge, extract: {text: $.t, end: $.e}, events: {x: {}}}";
    check(typed, "stream.events: only events with `mode: event_typed` have types");
    check("{enabled: false}", "whole: say where the text stands");
    check("{mode: delta_marge}", "unknown variant `delta_marge`");
    check("{extract: {text: '$.['}}", "`$.[` is no JSONPath: ");
    assert!(wrong("provider: {name: openai}").contains("missing field `api_url`"));
    let text = ASKED.replace("'{system}'", "'{sytem}'").replace("'{id}'", "'{text}'");
    let expected = "request.body.system: nothing is filled in for {sytem} here; did you mean \
                    {system}?; request.call.id: nothing is filled in for {text} here; there is \
                    {id}, {name}, {arguments}, {input}";
    assert_eq!(wrong(&text), expected);
}

#[test]
fn a_name_that_is_not_built_in_is_told_which_are() {
    let check = |name: &str, expected: &str| {
        assert_eq!(NoProvider::not_built_in(name).to_string(), expected);
    };
    check("antropic", "no provider `antropic` is built in; did you mean `anthropic`?");
    let all = "anthropic, openai, google, anthropic-messages, openai-chat, openai-responses, \
               gemini, ollama";
    check("telex", &format!("no provider `telex` is built in; there is {all}"));
}
