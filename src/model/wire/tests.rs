//! Tests of all wires: halves of characters, numbers in arguments, and ids of calls.

use super::*;
use crate::model::piece::{Call, Piece, Stop};
use crate::model::prompt::Role;

/// The pieces of a reply with these events.
fn pieces(wire: Wire, events: &[String]) -> Vec<Piece> {
    let mut reader = wire.reader();
    events.iter().for_each(|it| reader.take(it).expect("an event"));
    reader.gathered_mut().finish();
    reader.gathered().pieces.iter().cloned().collect()
}

/// An event with a piece of text, which is written as JSON.
fn says(wire: Wire, text: &str) -> String {
    match wire {
        Wire::AnthropicMessages => format!(
            "{{\"type\":\"content_block_delta\",\"index\":0,\
             \"delta\":{{\"type\":\"text_delta\",\"text\":\"{text}\"}}}}"
        ),
        Wire::OpenAiChat => format!(r#"{{"choices":[{{"delta":{{"content":"{text}"}}}}]}}"#),
        Wire::OpenAiResponses => {
            format!(r#"{{"type":"response.output_text.delta","delta":"{text}"}}"#)
        }
        Wire::Gemini => {
            format!(r#"{{"candidates":[{{"content":{{"parts":[{{"text":"{text}"}}]}}}}]}}"#)
        }
        Wire::Ollama => format!(r#"{{"message":{{"content":"{text}"}}}}"#),
    }
}

/// An event with a whole call, whose arguments are an object.
fn calls(wire: Wire, arguments: &str) -> String {
    let text = serde_json::to_string(arguments).expect("a text");
    match wire {
        Wire::AnthropicMessages => format!(
            "{{\"type\":\"content_block_start\",\"index\":0,\
             \"content_block\":{{\"type\":\"tool_use\",\"id\":\"a\",\"name\":\"t\",\
             \"input\":{arguments}}}}}"
        ),
        Wire::OpenAiChat => format!(
            "{{\"choices\":[{{\"delta\":{{\"tool_calls\":[{{\"index\":0,\
             \"id\":\"a\",\"function\":{{\
             \"name\":\"t\",\"arguments\":{arguments}}}}}]}}}}]}}"
        ),
        Wire::OpenAiResponses => format!(
            "{{\"type\":\"response.output_item.done\",\"output_index\":0,\
             \"item\":{{\"type\":\"function_call\",\"call_id\":\"a\",\
             \"name\":\"t\",\"arguments\":{text}}}}}"
        ),
        Wire::Gemini => format!(
            "{{\"candidates\":[{{\"content\":{{\"parts\":[{{\"functionCall\":{{\"id\":\"a\",\
             \"name\":\"t\",\"args\":{arguments}}}}}]}}}}]}}"
        ),
        Wire::Ollama => format!(
            "{{\"message\":{{\"tool_calls\":[{{\"id\":\"a\",\
             \"function\":{{\"name\":\"t\",\"arguments\":{arguments}}}}}]}}}}"
        ),
    }
}

fn texts(pieces: &[Piece]) -> String {
    let text = |it: &Piece| match it {
        Piece::Text(text) => text.clone(),
        _ => String::new(),
    };
    pieces.iter().map(text).collect()
}

#[test]
fn the_halves_of_a_character_are_joined_and_a_half_alone_is_replaced() {
    for wire in Wire::ALL {
        let check = |texts_of: &[&str], expected: &str| {
            let events: Vec<String> = texts_of.iter().map(|it| says(wire, it)).collect();
            assert_eq!(texts(&pieces(wire, &events)), expected, "{wire}");
        };
        check(&[r"good \ud83d", r"\ude00 day"], "good \u{1F600} day");
        check(&[r"good \ud83d", "day"], "good \u{FFFD}day");
        check(&[r"\ude00 day \uD83D"], "\u{FFFD} day \u{FFFD}");
        check(&[r"\ud83d\ude00", r"\\ud83d"], "\u{1F600}\\ud83d");
    }
}

#[test]
fn arguments_keep_their_numbers_their_order_and_their_characters() {
    for wire in Wire::ALL {
        let check = |arguments: &str, expected: &str| {
            let pieces = pieces(wire, &[calls(wire, arguments)]);
            let expected = Piece::Call(Call::new("a", "t", expected));
            assert!(pieces.contains(&expected), "{wire}: {pieces:?}");
        };
        let numbers = r#"{"b":18446744073709551616,"a":9007199254740993,"c":1.10}"#;
        check(numbers, numbers);
        let spaced = r#"{ "a b": "c \" d\\", "e" : [ 1, 2 ] }"#;
        let is_text = wire == Wire::OpenAiResponses;
        check(spaced, if is_text { spaced } else { r#"{"a b":"c \" d\\","e":[1,2]}"# });
    }
    let part = |more: &str| {
        format!(
            "{{\"choices\":[{{\"delta\":{{\"tool_calls\":[{{\"index\":0,\
             \"id\":\"a\",\"function\":{{\
             \"name\":\"t\",\"arguments\":\"{more}\"}}}}]}}}}]}}"
        )
    };
    let events = [part(r#"{\"a\":\"\ud83d"#), part(r#"\ude00\"}"#)];
    let expected = Piece::Call(Call::new("a", "t", "{\"a\":\"\u{1F600}\"}"));
    assert_eq!(pieces(Wire::OpenAiChat, &events)[0], expected);
}

#[test]
fn halves_in_ids_names_and_stops_and_in_parts_of_gemini_are_mended() {
    let named = r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"c\ud83d","function":{
        "name":"t\ud83d\ude00","arguments":"{}"}}]},"finish_reason":"eos\ud83d"}]}"#;
    let stop = Piece::Stop(Stop::Other("eos\u{FFFD}".to_owned()));
    let call = Piece::Call(Call::new("c\u{FFFD}", "t\u{1F600}", "{}"));
    assert_eq!(pieces(Wire::OpenAiChat, &[named.to_owned()]), [call, stop]);
    let part = |call: &str| {
        format!("{{\"candidates\":[{{\"content\":{{\"parts\":[{{\"functionCall\":{call}}}]}}}}]}}")
    };
    let events = [
        part(
            r#"{"id":"a","name":"t","willContinue":true,"partialArgs":[
            {"jsonPath":"$.text","stringValue":"a\ud83d","willContinue":true}]}"#,
        ),
        part(
            r#"{"willContinue":true,"partialArgs":[
            {"jsonPath":"$.text","stringValue":"\ude00b \ud83d","willContinue":true}]}"#,
        ),
        part(r#"{"partialArgs":[{"jsonPath":"$.text","stringValue":"."}]}"#),
    ];
    let arguments = "{\"text\":\"a\u{1F600}b \u{FFFD}.\"}";
    assert_eq!(pieces(Wire::Gemini, &events)[0], Piece::Call(Call::new("a", "t", arguments)));
}

#[test]
fn arguments_may_be_as_deep_as_a_payload() {
    let deep = format!("{}{{}}{}", "{\"a\":[".repeat(150), "]}".repeat(150));
    for wire in Wire::ALL {
        let pieces = pieces(wire, &[calls(wire, &deep)]);
        assert!(pieces.contains(&Piece::Call(Call::new("a", "t", &*deep))), "{wire}");
    }
    let hostile = "[".repeat(100_000);
    for wire in Wire::ALL {
        assert!(wire.reader().take(&hostile).is_err(), "{wire}");
    }
}

#[test]
fn a_reply_has_so_many_calls_at_most() {
    for wire in Wire::ALL {
        let mut reader = wire.reader();
        let mut take = |at: usize| {
            let place = format!("\"output_index\":{at}");
            reader.take(&calls(wire, "{}").replace("\"output_index\":0", &place))
        };
        assert!((0..gathered::CALLS_MAX).all(|at| take(at).is_ok()), "{wire}");
        let error = take(gathered::CALLS_MAX).unwrap_err();
        assert_eq!(error.kind, Kind::Garbled, "{wire}");
        assert!(error.message.ends_with("a reply has at most 4096 calls"), "{wire}: {error}");
    }
}

#[test]
fn arguments_in_parts_are_refused_beyond_what_they_may_take() {
    let check = |path: &str| {
        let part = json!({ "jsonPath": path, "boolValue": true });
        let call = json!({ "name": "t", "willContinue": true, "partialArgs": [part] });
        let event =
            json!({ "candidates": [{ "content": { "parts": [{ "functionCall": call }] } }] });
        let error = Wire::Gemini.reader().take(&event.to_string()).unwrap_err();
        assert_eq!(error.kind, Kind::Garbled);
    };
    check(&format!("${}", ".a".repeat(100_000)));
    check(&format!("$.a{}", "[9999]".repeat(20)));
}

#[test]
fn two_calls_of_one_place_and_one_id_are_two_calls() {
    let part = |id: &str, arguments: &str| {
        format!(
            "{{\"choices\":[{{\"delta\":{{\"tool_calls\":[{{\"index\":0,\
             \"id\":\"{id}\",\"function\":{{\
             \"name\":\"t\",\"arguments\":\"{arguments}\"}}}}]}}}}]}}"
        )
    };
    for id in ["x", ""] {
        let events = [part(id, r#"{\"a\":1}"#), part(id, r#"{\"a\":"#), part("", "2}")];
        let calls = pieces(Wire::OpenAiChat, &events);
        let expected = [r#"{"a":1}"#, r#"{"a":2}"#].map(|it| Piece::Call(Call::new(id, "t", it)));
        // A part whose arguments aren't whole continues the call before it.
        let whole = [part(id, r#"{\"a\":1}"#), part(id, r#"{\"a\":2}"#)];
        assert_eq!(pieces(Wire::OpenAiChat, &whole)[..2], expected);
        assert_eq!(calls.iter().filter(|it| matches!(it, Piece::Call(_))).count(), 1);
    }
}

/// A prompt with a call of each id, and its result.
fn prompt(ids: &[&str]) -> Prompt {
    let mut prompt = Prompt::new("").user("Go.").assistant("");
    for (at, id) in ids.iter().enumerate() {
        prompt.messages[1].calls.push(Call::new(*id, format!("t{at}"), "{}"));
        let mut result = PromptMessage::new(Role::Tool, format!("r{at}"));
        result.of = Some((*id).to_owned());
        prompt.messages.push(result);
    }
    prompt
}

fn body(wire: Wire, prompt: &Prompt) -> Value {
    body_with(wire, prompt, &Map::new())
}

/// The body of a request with these fields of its author's.
fn body_with(wire: Wire, prompt: &Prompt, extra: &Map<String, Value>) -> Value {
    let content = RequestContent {
        model: "m",
        max_tokens: None,
        temperature: None,
        effort: None,
        is_structured: true,
        is_streamed: true,
        tools: &[],
        window: None,
        host: "127.0.0.1",
        extra,
        prompt,
    };
    wire.body(&content).into()
}

#[test]
fn a_budget_of_tokens_that_is_too_large_to_add_up_is_the_most() {
    let mut extra = Map::new();
    extra.insert("thinking".to_owned(), json!({ "budget_tokens": 1e20 }));
    let body = body_with(Wire::AnthropicMessages, &Prompt::new("").user("Hi"), &extra);
    assert_eq!(body["max_tokens"], u64::MAX);
}

#[test]
fn an_id_goes_back_as_it_was() {
    let long = "é ".repeat(250);
    let prompt = prompt(&["3kTz91abQ", "x", "x", &long, "functions.a:0\n\"<"]);
    let ids = ["3kTz91abQ", "x", "x", &long, "functions.a:0\n\"<"];
    for (wire, called, answered) in [
        (Wire::OpenAiChat, "/messages/1/tool_calls/AT/id", "/messages/TWO/tool_call_id"),
        (Wire::OpenAiResponses, "/input/ONE/call_id", "/input/SIX/call_id"),
        (
            Wire::AnthropicMessages,
            "/messages/1/content/AT/id",
            "/messages/2/content/AT/tool_use_id",
        ),
        (
            Wire::Gemini,
            "/contents/1/parts/AT/functionCall/id",
            "/contents/2/parts/AT/functionResponse/id",
        ),
        (Wire::Ollama, "/messages/1/tool_calls/AT/id", "/messages/TWO/tool_call_id"),
    ] {
        let body = body(wire, &prompt);
        for (at, id) in ids.iter().enumerate() {
            let found = |path: &str| {
                let path = path.replace("AT", &at.to_string());
                let path = path.replace("ONE", &(at + 1).to_string());
                let path = path.replace("TWO", &(at + 2).to_string());
                let path = path.replace("SIX", &(at + 6).to_string());
                body.pointer(&path).cloned().unwrap_or_default()
            };
            assert_eq!(
                (found(called), found(answered)),
                ((*id).into(), (*id).into()),
                "{wire}: {body}"
            );
        }
    }
    // Each result has the name of its own call.
    let gemini = body(Wire::Gemini, &prompt);
    assert_eq!(gemini["contents"][2]["parts"][2]["functionResponse"]["name"], "t2");
    let ollama = body(Wire::Ollama, &prompt);
    assert_eq!(ollama["messages"][4]["tool_name"], "t2");
}

#[test]
fn a_call_without_an_id_gets_one_where_the_wire_needs_it() {
    let prompt = prompt(&["", ""]);
    let chat = body(Wire::OpenAiChat, &prompt);
    let ids = |it: &Value| [it["tool_calls"][0]["id"].clone(), it["tool_calls"][1]["id"].clone()];
    assert_eq!(ids(&chat["messages"][1]), ["call00001", "call00002"]);
    assert_eq!(chat["messages"][3]["tool_call_id"], "call00002");
    let gemini = body(Wire::Gemini, &prompt);
    assert_eq!(gemini["contents"][1]["parts"][0]["functionCall"].get("id"), None);
    assert_eq!(gemini["contents"][2]["parts"][1]["functionResponse"]["name"], "t1");
    assert_eq!(gemini["contents"][2]["parts"][1]["functionResponse"].get("id"), None);
    assert_eq!(body(Wire::Ollama, &prompt)["messages"][2].get("tool_call_id"), None);
}
