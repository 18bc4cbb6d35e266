//! Replies put together at random. Every chunking gives the same events, the sources of all events
//! together are the reply, and an action is reported if and only if it isn't quoted.

use proptest::collection::vec;
use proptest::prelude::*;
use pumphouse::reply::{Config, Dialect};

use super::tell::{config, cuts, sources, tell};

/// What replies are made of, so that much happens in a few of them.
const PIECES: &[&str] = &[
    "<thought>",
    "</thought>",
    "<think>",
    "</thinking>",
    "<response>",
    "</response>",
    "<action>",
    "<action id=\"a\" ",
    "type=tool",
    ">",
    "</action>",
    "<tool_use name='x'>",
    "</tool_use>",
    "<calculate>",
    "</calculate>",
    "<researcher>",
    "</researcher>",
    "<metadata>",
    "</metadata>",
    "<context_feed>",
    "</context_feed>",
    "<tool_result>",
    "</tool_result>",
    "{",
    "}",
    "[",
    "]",
    "\"",
    "\\",
    ":",
    ",",
    "1",
    "null",
    "{\"a\": 1}",
    "{\"type\":\"tool_use\",",
    "\"name\":\"b\",",
    "\"input\":{}}",
    "`",
    "``",
    "```",
    "~~~",
    "\n",
    "\n\n",
    " ",
    "> ",
    "<!--",
    "-->",
    "<![CDATA[",
    "]]>",
    "<",
    "</",
    "<a>",
    "</a>",
    "<a b='",
    "'",
    "&",
    "&amp;",
    "=",
    "/",
    "é",
    "\u{1F600}",
    "x",
];

fn text() -> impl Strategy<Value = String> {
    vec(
        prop_oneof![4 => prop::sample::select(PIECES).prop_map(str::to_owned), 1 => ".{0,3}"],
        0..40,
    )
    .prop_map(|it| it.concat())
}

fn configs() -> [Config; 4] {
    let [plain, mut calls, mut small, mut wanted] = [config(), config(), config(), config()];
    calls.dialect = Dialect::ToolUse;
    small.dialect = Dialect::ToolUse;
    small.limits.action_bytes_max = 24;
    small.limits.text_bytes_max = 16;
    small.limits.tag_bytes_max = 20;
    small.limits.depth_max = 2;
    wanted.actions_in_response = true;
    [plain, calls, small, wanted]
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 2_000,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn every_chunking_tells_the_same(text in text(), seed in any::<u64>()) {
        for config in configs() {
            let told = tell(&config, [&*text]);
            let characters = text.char_indices().map(|(at, it)| &text[at..at + it.len_utf8()]);
            prop_assert_eq!(&tell(&config, characters), &told);
            prop_assert_eq!(&tell(&config, cuts(&text, seed)), &told);
            prop_assert_eq!(sources(&config, &text), &*text);
        }
    }

    /// Each piece stands for itself: what it is quoted in says whether its action runs.
    #[test]
    fn an_action_is_told_exactly_when_it_is_not_quoted(
        pieces in vec((0_usize..QUOTES.len(), 0_usize..BODIES.len()), 1..12),
    ) {
        let (mut text, mut expected) = (String::new(), Vec::new());
        for (count, (quote, body)) in pieces.into_iter().enumerate() {
            let ((before, after, runs), body) = (QUOTES[quote], BODIES[body]);
            text.push_str(&format!("{before}<action id=\"{count}\">{body}</action>{after} "));
            if runs {
                expected.push(count.to_string());
            }
        }
        let told = tell(&config(), [&*text]);
        let ran: Vec<String> = told
            .iter()
            .filter_map(|it| Some(it.strip_prefix("action id=")?.split(' ').next()?.to_owned()))
            .collect();
        prop_assert_eq!(ran, expected, "{}", text);
    }
}

/// What may stand around an action, and whether it runs then.
const QUOTES: [(&str, &str, bool); 14] = [
    ("", "", true),
    (" so ", " ", true),
    ("\n\n", "\n", true),
    ("<thought>", "</thought>", true),
    ("<thought>`</thought>` ", " </thought>", true),
    ("<researcher>", "</researcher>", true),
    ("`", "`", false),
    ("`` ` ", "``", false),
    ("\n```xml\n", "\n```\n", false),
    ("\n~~~\n", "\n~~~\n", false),
    // The line that ends them is HTML to its end, in Markdown.
    ("<!-- ", " -->\n\n", false),
    ("<![CDATA[", "]]>\n\n", false),
    ("<response>", "</response>", false),
    ("<tool_result>", "</tool_result>", false),
];

/// Bodies that are whole, with every close tag that isn't one.
const BODIES: [&str; 9] = [
    "{}",
    "{\"a\": \"</action>\"}",
    "{\"a\": \"\\\"</action>\"}",
    "\n{\n\"a\": [1, {\"b\": \"```\"}]\n}\n",
    "<![CDATA[{\"a\": \"</action>\"}]]>",
    "<!-- </action> -->[]",
    "<a>1</a>",
    "<a><![CDATA[</action>]]></a>",
    "<a><!-- </action> --></a>",
];
