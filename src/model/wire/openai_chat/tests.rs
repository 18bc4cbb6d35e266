//! Tests what events of chat completions add to a reply.

use super::*;
use crate::model::error::Kind;

fn gathered(events: &[&str]) -> Result<Vec<Piece>, Error> {
    let mut reader = OpenAiChat::default();
    events.iter().try_for_each(|it| {
        reader.read(it)?;
        reader.gathered().within(1_000)
    })?;
    reader.gathered_mut().finish();
    Ok(std::mem::take(&mut reader.gathered_mut().pieces).into())
}

/// Checks the pieces that events make, and the stop at their end.
#[track_caller]
fn check(events: &[&str], expected: &[Piece], stop: Stop) {
    let mut expected = expected.to_vec();
    expected.push(Piece::Stop(stop));
    assert_eq!(gathered(events).unwrap(), expected, "{events:?}");
}

fn text(it: &str) -> Piece {
    Piece::Text(it.to_owned())
}

fn reasoning(it: &str) -> Piece {
    Piece::Reasoning(it.to_owned())
}

#[test]
fn text_comes_as_it_is_written() {
    let role = r#"{"choices":[{"index":0,"delta":{"role":"assistant","content":""}}]}"#;
    let a = r#"{"choices":[{"index":0,"delta":{"content":"a"},"finish_reason":null}]}"#;
    let null = r#"{"choices":[{"delta":{"content":null},"finish_reason":""}]}"#;
    let end = r#"{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}"#;
    check(&[role, a, null, a, end], &[text("a"), text("a")], Stop::End);
    let whole =
        r#"{"choices":[{"message":{"role":"assistant","content":"a"},"finish_reason":"length"}]}"#;
    check(&[whole], &[text("a")], Stop::MaxTokens);
    let second =
        r#"{"choices":[{"index":1,"delta":{"content":"b"}},{"index":0,"delta":{"content":"a"}}]}"#;
    check(&[second], &[text("a")], Stop::End);
    check(&[r#"{"type":"ping"}"#, r#"{"choices":null}"#, r#"{"choices":[]}"#], &[], Stop::End);
}

#[test]
fn a_whole_message_adds_what_did_not_come_in_deltas() {
    let reasoned = r#"{"choices":[{"delta":{"reasoning_content":"r"}}]}"#;
    let whole = r#"{"choices":[{"delta":{"content":""},"message":{"reasoning_content":"r",
        "content":"a"},"finish_reason":"stop"}]}"#;
    check(&[reasoned, whole], &[reasoning("r"), text("a")], Stop::End);
    check(&[whole, whole], &[reasoning("r"), text("a")], Stop::End);
}

#[test]
fn an_id_may_be_a_number() {
    let call = r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"id":17,"function":{"name":"t",
        "arguments":"{}"}}]},"finish_reason":"tool_calls"}]}"#;
    check(&[call], &[Piece::Call(Call::new("17", "t", "{}"))], Stop::Calls);
}

#[test]
fn reasoning_has_several_names() {
    let of = |delta: &str| format!(r#"{{"choices":[{{"delta":{delta}}}]}}"#);
    let both = of(r#"{"reasoning":"r","reasoning_content":"r","content":"a"}"#);
    check(&[&both], &[reasoning("r"), text("a")], Stop::End);
    check(&[&of(r#"{"reasoning":"r","reasoning_content":null}"#)], &[reasoning("r")], Stop::End);
    check(&[&of(r#"{"reasoning":{"effort":1}}"#)], &[], Stop::End);
    let parts = of(r#"{"content":[{"type":"thinking","thinking":[{"type":"text","text":"r"}]},
            {"type":"text","text":"a"},{"type":"reference"}]}"#);
    check(&[&parts], &[reasoning("r"), text("a")], Stop::End);
    check(&[&of(r#"{"refusal":"No.","content":""}"#)], &[Piece::Refusal("No.".into())], Stop::End);
}

#[test]
fn calls_are_whole() {
    let of = |calls: &str| format!(r#"{{"choices":[{{"delta":{{"tool_calls":[{calls}]}}}}]}}"#);
    let first =
        of(r#"{"index":0,"id":"c1","type":"function","function":{"name":"add","arguments":""}}"#);
    let more = of(r#"{"index":0,"id":null,"function":{"arguments":"{\"a\""}}"#);
    let rest = of(r#"{"index":0,"function":{"name":"","arguments":":1}"}}"#);
    let second = of(r#"{"index":1,"id":"c2","function":{"name":"now","arguments":{"utc":true}}}"#);
    let end = r#"{"choices":[{"delta":{},"finish_reason":"tool_calls"}]}"#;
    let calls = [
        Piece::Call(Call::new("c1", "add", "{\"a\":1}")),
        Piece::Call(Call::new("c2", "now", "{\"utc\":true}")),
    ];
    check(&[&first, &more, &second, &rest, end], &calls, Stop::Calls);
    // Some providers give each call the same index.
    let third =
        of(r#"{"index":0,"id":"c2","function":{"name":"now","arguments":"{\"utc\":true}"}}"#);
    check(&[&first, &more, &rest, &third, end], &calls, Stop::Calls);
    // Calls without an index are told apart by their order in the list.
    let both = of(r#"{"id":"c1","function":{"name":"add","arguments":"{\"a\":1}"}},
                     {"id":"c2","function":{"name":"now","arguments":"{\"utc\":true}"}}"#);
    check(&[&both], &calls, Stop::End);
    let old = r#"{"choices":[{"delta":{"function_call":{"name":"add","arguments":"{}"}}}]}"#;
    check(&[old], &[Piece::Call(Call::new("", "add", "{}"))], Stop::End);
}

#[test]
fn the_last_usage_counts() {
    let one = r#"{"choices":[{"delta":{"content":"a"},"finish_reason":"stop"}],
                  "usage":{"prompt_tokens":9,"completion_tokens":1}}"#;
    let two = r#"{"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":4,"cost":0.0012,
                  "prompt_tokens_details":{"cached_tokens":8,"cache_write_tokens":1},
                  "completion_tokens_details":{"reasoning_tokens":3}}}"#;
    let null = r#"{"choices":[],"usage":null}"#;
    let usage = Usage {
        input: 9,
        output: 4,
        cached: 8,
        cache_written: 1,
        reasoning: 3,
        cost_micros: Some(1_200),
    };
    check(&[one, two, null], &[text("a"), Piece::Usage(usage)], Stop::End);
    let cost = r#"{"choices":[],"usage":{"prompt_tokens":1,"cost":{"total_cost":2}}}"#;
    let usage = Usage { input: 1, cost_micros: Some(2_000_000), ..Usage::default() };
    check(&[cost], &[Piece::Usage(usage)], Stop::End);
    let nested = r#"{"choices":[],"x_groq":{"usage":{"prompt_tokens":1}}}"#;
    check(&[nested], &[Piece::Usage(Usage::new(1, 0))], Stop::End);
}

#[test]
fn every_word_for_a_stop_is_kept() {
    let check = |word: &str, expected: Stop| {
        let event = format!(r#"{{"choices":[{{"delta":{{}},"finish_reason":"{word}"}}]}}"#);
        assert_eq!(gathered(&[&event]).unwrap(), [Piece::Stop(expected)]);
    };
    check("stop", Stop::End);
    check("length", Stop::MaxTokens);
    check("content_filter", Stop::Filtered);
    check("stop_sequence", Stop::StopText);
    check("function_call", Stop::Calls);
    check("insufficient_system_resource", Stop::Other("insufficient_system_resource".into()));
}

#[test]
fn what_is_no_reply_is_an_error() {
    let check = |event: &str, kind: Kind, said: Option<&str>| {
        let error = gathered(&[event]).unwrap_err();
        assert_eq!((error.kind, error.said.as_deref()), (kind, said), "{event}");
    };
    check("<html>", Kind::Garbled, Some("<html>"));
    check("{\"choices\":[{\"del", Kind::Garbled, Some("{\"choices\":[{\"del"));
    check("[]", Kind::Garbled, Some("[]"));
    check("7", Kind::Garbled, Some("7"));
    check(r#"{"choices":{}}"#, Kind::Garbled, Some(r#"{"choices":{}}"#));
    check(
        r#"{"error":{"message":"Overloaded","type":"overloaded"}}"#,
        Kind::Failed,
        Some("Overloaded"),
    );
    check(r#"{"error":"boom"}"#, Kind::Failed, Some("boom"));
    check(r#"{"choices":[{"delta":{},"finish_reason":"error"}]}"#, Kind::Failed, None);
    check(
        r#"{"choices":[{"error":{"code":502,"message":"upstream"},"delta":{}}]}"#,
        Kind::Failed,
        Some("upstream"),
    );
}

#[test]
fn no_reply_is_larger_than_it_may_be() {
    let of = |bytes: usize| {
        format!(r#"{{"choices":[{{"delta":{{"content":"{}"}}}}]}}"#, "a".repeat(bytes))
    };
    assert!(gathered(&[&of(600), &of(400)]).is_ok());
    let error = gathered(&[&of(600), &of(401)]).unwrap_err();
    assert_eq!(error.kind, Kind::TooLarge);
    assert_eq!(&*error.message, "the reply is over a limit: reply_bytes_max is 1000");
    let call =
        r#"{"choices":[{"delta":{"tool_calls":[{"function":{"arguments":"0123456789"}}]}}]}"#;
    // A call counts 128 bytes beside its texts.
    assert!(gathered(&vec![call; 87]).is_ok());
    assert_eq!(gathered(&vec![call; 88]).unwrap_err().kind, Kind::TooLarge);
}
