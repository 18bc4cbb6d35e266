//! The tests that *Streaming Inline Tool Execution* lists for the parser, under the names it gives
//! them.

use pumphouse::reply::{Dialect, Parser, What, Why};

use super::tell::{self, check_with};

#[track_caller]
fn check(text: &str, expected: &[&str]) {
    let mut config = tell::config();
    config.dialect = Dialect::ToolUse;
    check_with(&config, text, expected);
}

#[test]
fn test_xml_format_single_tool() {
    check(
        "<tool_use id=\"t1\" name=\"read\">{\"path\": \"a.txt\"}</tool_use>",
        &["tool_use id=t1 name=read {\"path\": \"a.txt\"}"],
    );
    check("<tool_use name='ls'/>", &["tool_use name=ls id=__auto_1 "]);
    check(
        "<tool_use id=\"t1\" name=\"read\"><path>a.txt</path></tool_use>",
        &["tool_use id=t1 name=read \
           <tool_use id=\"t1\" name=\"read\"><path>a.txt</path></tool_use>"],
    );
}

#[test]
fn test_xml_format_multiple_tools() {
    check(
        "<tool_use id=\"1\" name=\"a\">{}</tool_use><tool_use id=\"2\" name=\"b\">[2]</tool_use>",
        &["tool_use id=1 name=a {}", "tool_use id=2 name=b [2]"],
    );
}

#[test]
fn test_partial_accumulation() {
    let text = "<tool_use id=\"t1\" name=\"read\">{\"path\": \"a.txt\"}</tool_use>";
    let mut config = tell::config();
    config.dialect = Dialect::ToolUse;
    let expected = tell::whole(&config, text);
    for cut in 0..=text.len() {
        let (head, tail) = text.split_at(cut);
        assert_eq!(tell::tell(&config, [head, tail]), expected, "cut at {cut}");
        if cut > "<tool_use".len() && cut < text.len() {
            assert_eq!(tell::tell(&config, [head]), [format!("cut tool_use: {head}")]);
        }
    }
}

#[test]
fn test_text_between_tools() {
    check(
        "First.<tool_use name=\"a\">{}</tool_use> Then, {x}: <tool_use name=\"b\">{}</tool_use>.",
        &[
            "text: First.",
            "tool_use name=a id=__auto_1 {}",
            "text:  Then, {x}: ",
            "tool_use name=b id=__auto_2 {}",
            "text: .",
        ],
    );
}

#[test]
fn test_json_format_single_tool() {
    check(
        "{\"type\": \"tool_use\", \"id\": \"t1\", \"name\": \"read\", \"input\": {\"a\": \"}\"}}",
        &["tool_use id=t1 name=read {\"a\": \"}\"}"],
    );
    check(
        "{\"name\": \"read\", \"input\": {}, \"type\": \"tool_use\"}",
        &["tool_use name=read id=__auto_1 {}"],
    );
    check(
        "[{\"type\":\"tool_use\",\"name\":\"a\",\"input\":{}},\n {\"type\":\"tool_use\",\
         \"name\":\"b\",\"input\":{}}]",
        &["tool_use name=a id=__auto_1 {}", "tool_use name=b id=__auto_2 {}"],
    );
    check(
        "{\"type\": \"object\", \"name\": \"x\"}",
        &["text: {\"type\": \"object\", \"name\": \"x\"}"],
    );
    check("[1, 2] {a} {\"b\": 1}", &["text: [1, 2] {a} {\"b\": 1}"]);
    check(
        "`{\"type\":\"tool_use\",\"name\":\"a\",\"input\":{}}`",
        &["text: `{\"type\":\"tool_use\",\"name\":\"a\",\"input\":{}}`"],
    );
}

#[test]
fn a_call_in_other_json_or_in_quotes_is_none() {
    let call = "{\"type\":\"tool_use\",\"name\":\"a\",\"input\":{}}";
    for (before, after) in [("{\"example\": ", "}"), ("[1, ", "]"), ("\"", "\""), ("'", "'")] {
        let text = format!("{before}{call}{after}");
        check(&text, &[&format!("text: {text}")]);
        let twice = format!("{text} {call}");
        check(&twice, &[&format!("text: {text} "), "tool_use name=a id=__auto_1 {}"]);
    }
}

#[test]
fn a_call_within_open_brackets_is_none_also_where_they_are_not_json() {
    let call = "{\"type\":\"tool_use\",\"name\":\"a\",\"input\":{}}";
    for (before, after) in [
        ("{ // comment\n  \"call\": ", "}"),
        ("{'call': ", "}"),
        ("{call: ", "}"),
        ("{ /* so */ call: {then: ", "}}"),
        ("{\n\n\"call\": ", "\n\n}"),
        ("[NaN, ", "]"),
        ("['a', ", "]"),
        ("const a = [1, b(", ")]"),
    ] {
        let text = format!("{before}{call}{after}");
        check(&text, &[&format!("text: {text}")]);
        assert_eq!(ignored(&text), [(Some("a".to_owned()), Why::Nested)], "{text}");
        let twice = format!("{text} {call}");
        check(&twice, &[&format!("text: {text} "), "tool_use name=a id=__auto_1 {}"]);
    }
    // Where a line ends in a string, nobody knows what stands in one behind it.
    let text = format!("{{\"a\": \"b\nc\", \"call\": {call}}} {call}");
    check(&text, &[&format!("text: {text}")]);
    let text = format!("{text}\n\n");
    check(&format!("{text}{call}"), &[&format!("text: {text}"), "tool_use name=a id=__auto_1 {}"]);
    for before in ["[ ] ", "[a](b) ", "A brace: { so\n\n", "a[0] ", "}] ", "`{` "] {
        check(
            &format!("{before}{call}"),
            &[&format!("text: {before}"), "tool_use name=a id=__auto_1 {}"],
        );
    }
}

/// Which calls are told to be text, and why.
fn ignored(text: &str) -> Vec<(Option<String>, Why)> {
    let mut config = tell::config();
    config.dialect = Dialect::ToolUse;
    let mut found = Vec::new();
    Parser::new(config).feed(text, &mut |it| {
        if let What::Ignored { element, why } = it.what {
            found.push((element.attribute("name").map(str::to_owned), why));
        }
    });
    found
}

#[test]
fn a_sound_call_in_code_is_told() {
    let call = "{\"type\":\"tool_use\",\"name\":\"a\",\"input\":{}}";
    let mut config = tell::config();
    config.dialect = Dialect::ToolUse;
    for (before, after, why) in [
        ("`", "`", Why::Span),
        ("Look:\n```json\n", "\n```\n", Why::Fence),
        ("a\n\n    ", "\n", Why::Indent),
        ("`<action>`: `", "`", Why::Span),
    ] {
        let text = format!("{before}{call}{after}");
        check_with(&config, &text, &[&format!("text: {text}")]);
        assert_eq!(ignored(&text), [(Some("a".to_owned()), why)], "{text}");
    }
}

#[test]
fn test_mixed_text_and_tools() {
    check(
        "<thought>Both. {\"type\":\"tool_use\",\"name\":\"a\",\"input\":{}} Now\
         <tool_use name=\"b\">{}</tool_use></thought><response>Done: {\"type\":\"tool_use\"}\
         </response>",
        &[
            "<thought",
            "thought: Both. ",
            "tool_use name=a id=__auto_1 {}",
            "thought:  Now",
            "tool_use name=b id=__auto_2 {}",
            "thought>",
            "<response",
            "response: Done: {\"type\":\"tool_use\"}",
            "response>",
        ],
    );
}

#[test]
fn test_malformed_tool_handling() {
    check(
        "<tool_use name=\"a\">{\"x\": }</tool_use>\
         {\"type\":\"tool_use\",\"name\":1,\"input\":{}} ok",
        &[
            "broken tool_use 1:26 expected value",
            "broken tool_use 1:38 \"name\" must be of the type string",
            "text:  ok",
        ],
    );
    check("{\"type\":\"tool_use\",\"x\":1}", &["broken tool_use 1:1 a tool_use has no \"name\""]);
    check("{\"type\":\"tool_use\",x}", &["broken tool_use 1:20 key must be a string"]);
    check(
        "{\"type\":\"tool_use\",\"name\":\"a",
        &["cut tool_use: {\"type\":\"tool_use\",\"name\":\"a"],
    );
    check(
        "{\"type\":\"tool_use\",\"name\":\"a\nb",
        &["broken tool_use 1:29 EOF while parsing a string", "text: \nb"],
    );
}

#[test]
fn test_buffer_overflow_protection() {
    let mut config = tell::config();
    config.dialect = Dialect::ToolUse;
    let long = "x".repeat(1 << 20);
    for (begin, end) in [
        ("<tool_use name=\"a\">{\"x\": \"", "\"}</tool_use>"),
        ("{\"type\":\"tool_use\",\"name\":\"a\",\"input\":{\"x\":\"", "\"}}"),
    ] {
        let text = format!("{begin}{long}{end}<action id=\"b\">{{}}</action>");
        let told = tell::tell(&config, tell::cuts(&text, 7));
        let broken = "broken tool_use 1:1 too large: action_bytes_max is 1048576";
        assert_eq!(told.len(), 3, "{told:.200?}");
        assert_eq!((&*told[0], &*told[2]), (broken, "action id=b type=tool mode=sync {}"));
        assert!(told[1].ends_with(end), "what is left is given away");
        assert_eq!(told, tell::tell(&config, [&*text]));
        assert_eq!(tell::sources(&config, &text), text);
    }
}

#[test]
fn comments_in_the_json_of_a_call_change_nothing() {
    let bodies = |text: &str| {
        let (mut parser, mut found) = (Parser::new(tell::config()), Vec::new());
        // Also where it comes in single bytes.
        for letter in text.chars() {
            parser.feed(letter.encode_utf8(&mut [0; 4]), &mut |event| match event.what {
                What::Closed(it) => {
                    let body: serde_json::Value = serde_json::from_str(it.body.as_str()).unwrap();
                    found.push(body.to_string());
                }
                What::Broken(it) => found.push(format!("broken: {}", it.reason)),
                _ => {}
            });
        }
        found
    };
    let expected = r#"{"name":"a","parameters":{"url":"http://a.org/*b*/ // c"}}"#;
    for body in [
        "{\n  \"name\": \"a\",   // Required: Name of tool/agent/relic\n  \
         \"parameters\": {\"url\": \"http://a.org/*b*/ // c\"} // it's \"one\n}",
        "// First.\n/* Second. */{\"name\": \"a\", \"parameters\": /**/{\"url\": \
         \"http://a.org/*b*/ // c\"}}// Last.",
        "{\"name\": \"a\", // if a < b, see <b> and \"<i>\n\"parameters\": {\"url\": \
         \"http://a.org/*b*/ // c\"} /* <u>\"</u> and <!-- */}",
    ] {
        for tag in ["action id=\"x\"", "tool_use id=\"x\" name=\"a\""] {
            let name = tag.split(' ').next().unwrap();
            let text =
                format!("<{tag}>{body}</{name}>\n<action id=\"y\">{{\"name\": \"b\"}}</action>");
            assert_eq!(bodies(&text), [expected, "{\"name\":\"b\"}"], "{text}");
        }
    }
    // What is no comment, and one without an end, are no JSON as before.
    for body in ["{\"name\": \"a\" / 2}", "{\"name\": \"a\" /* x}", "{\"name\": // \"a\"}"] {
        let text = format!("<action id=\"x\">{body}</action>");
        let found = bodies(&text);
        assert!(found.len() == 1 && found[0].starts_with("broken"), "{text}: {found:?}");
    }
}
