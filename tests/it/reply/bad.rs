//! Mistakes that models make in replies, and how the parser reads them.

use pumphouse::reply::{Parser, What};

use super::tell::{action, check, check_with, config, tell, whole};

#[test]
fn text_is_said_as_it_comes() {
    let text = "<thought>a `b` c\n\n```\nd < e\n```\n* f < g & <h> <thou</thought>i <!-- j -->";
    let mut parser = Parser::new(config());
    let mut said = 0;
    for (at, character) in text.char_indices() {
        let end = at + character.len_utf8();
        parser.feed(&text[at..end], &mut |event| said += event.source.len());
        let held = &text[said..end];
        let tags = ["<thought>", "</thought>", "<!--"];
        assert!(tags.iter().any(|it| it.starts_with(held)), "{held:?} is held back");
    }
}

#[test]
fn a_close_tag_in_a_string_is_text() {
    check(
        &action("{\"a\": \"</action>\"}"),
        &["action id=a type=tool mode=sync {\"a\": \"</action>\"}"],
    );
    check(
        &action("{\"a\": \"\\\"</action>\"}"),
        &["action id=a type=tool mode=sync {\"a\": \"\\\"</action>\"}"],
    );
    check(
        &action("<![CDATA[{\"a\": \"</action>\"}]]>"),
        &["action id=a type=tool mode=sync {\"a\": \"</action>\"}"],
    );
    check(
        &action("{\"a\": \"` ``` <!-- ~~~\"}"),
        &["action id=a type=tool mode=sync {\"a\": \"` ``` <!-- ~~~\"}"],
    );
    check(&action("<!-- </action> -->{}"), &["action id=a type=tool mode=sync {}"]);
}

#[test]
fn an_unbalanced_quote_costs_one_action() {
    check(
        "<action>{\"name\": \"x, \"parameters\": {}}</action> so\n<action>{}</action>",
        &[
            "broken action 1:23 expected `,` or `}`",
            "text:  so\n",
            "action type=tool mode=sync id=__auto_1 {}",
        ],
    );
    // Nothing on the line of an open string is sure to be meant.
    check(
        "<action>{\"a\": \"b}</action> <action>{}\n</action><response>c</response>",
        &[
            "broken action 1:15 the string has no end",
            "text:  <action>{}\n",
            "repaired: </action> closes nothing; it is dropped",
            "<response",
            "response: c",
            "response>",
        ],
    );
    check(
        "<action>{\"a\": \"b}</action> and the rest",
        &["broken action 1:15 the string has no end", "text:  and the rest"],
    );
    // A string that was never closed, over many lines.
    check(
        "<action>{\"a\": \"one\ntwo\"}\n</action>ok",
        &[
            "broken action 1:19 control character (\\u0000-\\u001F) found while parsing a string",
            "text: ok",
        ],
    );
}

#[test]
fn two_actions_in_one_do_not_run_as_one() {
    check(
        "<action>{\"a\":1}\n<action>{\"b\":2}</action>",
        &[
            "broken action 2:1 </action> is missing before <action>",
            "action type=tool mode=sync id=__auto_1 {\"b\":2}",
        ],
    );
    check(&action("{}{}"), &["broken action 1:18 trailing characters"]);
    check(
        "<action>{}<action>{}</action></action>",
        &[
            "broken action 1:11 trailing characters",
            "repaired: </action> closes nothing; it is dropped",
        ],
    );
    check(
        "<thought><action>{\"a\":1}</thought>ok",
        &[
            "<thought",
            "broken action 1:25 </action> is missing before </thought>",
            "thought>",
            "text: ok",
        ],
    );
}

#[test]
fn attributes_are_read_as_they_are_meant() {
    check(
        "<action type=tool id='a > b'>{}</action>",
        &[
            "repaired: the value of attribute type has no quotes",
            "action type=tool id=a > b mode=sync {}",
        ],
    );
    check(
        "<action id=\"a\" id=\"a\">{}</action>",
        &[
            "repaired: attribute id stands twice with one value",
            "action id=a type=tool mode=sync {}",
        ],
    );
    check(
        "<action id=\"a\" id=\"b\">{}</action>",
        &["broken action 1:1 attribute id stands twice, with two values"],
    );
    check(
        "<action depends_on=[\"a\", \"b>\"] id=x>{}</action>",
        &[
            "repaired: the value of attribute depends_on has no quotes",
            "repaired: the value of attribute id has no quotes",
            "action depends_on=[\"a\", \"b>\"] id=x type=tool mode=sync {}",
        ],
    );
    check(
        "<action id=\"a>{}</action> <action>{}</action>",
        &[
            "broken action 1:1 the tag has no end before the next `<`; is a quote missing?",
            "repaired: </action> closes nothing; it is dropped",
            "text:  ",
            "action type=tool mode=sync id=__auto_1 {}",
        ],
    );
    check(
        "<response final>a &amp; b</response>",
        &[
            "repaired: attribute final has no value; it is taken as empty",
            "<response final=",
            "response: a &amp; b",
            "response>",
        ],
    );
    check(
        "<thought a=\"&lt;&#x41;&\">b</thought>",
        &[
            "repaired: `&` that begins no entity is taken as `&amp;`",
            "<thought a=<A&",
            "thought: b",
            "thought>",
        ],
    );
}

#[test]
fn quoted_tags_never_run() {
    for quoted in [
        "`<action>{}</action>`",
        "``a ` <action>{}</action>``",
        "`<action>\n{}\n</action>`",
        "```\n<action>{}</action>\n```",
        "```` xml\n```\n<action>{}</action>\n````",
        "~~~\n```\n<action>{}</action>\n~~~",
        "> ```\n> <action>{}</action>\n> ```",
        "1.  ```\n    <action>{}</action>\n    ```",
        "```<action>{}</action>```",
        "<!-- <action>{}</action> -->",
        "<![CDATA[<action>{}</action>]]>",
        "<tool_result id=\"1\"><action>{}</action> </tool_result >",
    ] {
        let ran = "action type=tool mode=sync id=__auto_1 {}";
        check(&format!("{quoted}<action>{{}}</action>"), &[&format!("text: {quoted}"), ran]);
        check(
            &format!("<thought>{quoted}</thought>"),
            &["<thought", &format!("thought: {quoted}"), "thought>"],
        );
        check(
            &format!("<response>{quoted}</response>"),
            &["<response", &format!("response: {quoted}"), "response>"],
        );
    }
}

#[test]
fn a_lone_backtick_costs_little() {
    check(
        "<thought>the key (`).</thought>\n<action>{}</action>",
        &[
            "<thought",
            "thought: the key (`).",
            "thought>",
            "text: \n",
            "action type=tool mode=sync id=__auto_1 {}",
        ],
    );
    check(
        "<response>``` or ` not </response> <thought>`</thought><action>{}</action>",
        &[
            "<response",
            "response: ``` or ` not ",
            "response>",
            "text:  ",
            "<thought",
            "thought: `",
            "thought>",
            "action type=tool mode=sync id=__auto_1 {}",
        ],
    );
    check(
        "<response>` </response> a ``` b ` c</response>",
        &["<response", "response: ` </response> a ``` b ` c", "response>"],
    );
    let long = "x".repeat(256);
    check(
        &format!("<response>` </response>{long}`"),
        &["<response", "response: ` ", "response>", &format!("text: {long}`")],
    );
    check(
        "a ` b\n\nc <action>{}</action>",
        &["text: a ` b\n\nc ", "action type=tool mode=sync id=__auto_1 {}"],
    );
}

#[test]
fn a_response_never_runs_unless_that_is_wanted() {
    let text = "<response>a <action>{}</action> <response>b</response> </thought>c</response>";
    check(
        text,
        &[
            "<response",
            "response: a <action>{}</action> <response>b</response> </thought>c",
            "response>",
        ],
    );
    let mut wanted = config();
    wanted.actions_in_response = true;
    check_with(
        &wanted,
        text,
        &[
            "<response",
            "response: a ",
            "action type=tool mode=sync id=__auto_1 {}",
            "response:  <response>b</response> </thought>c",
            "response>",
        ],
    );
}

#[test]
fn missing_and_stray_tags_are_repaired() {
    check(
        "<thought>a\n<response>b",
        &[
            "<thought",
            "thought: a\n",
            "repaired: <thought> is closed before <response>",
            "thought>",
            "<response",
            "response: b",
            "repaired: <response> is closed where the reply ends",
            "response>",
        ],
    );
    check(
        "<thought>I write <response> then.</thought></thought>a",
        &[
            "<thought",
            "thought: I write <response> then.",
            "thought>",
            "repaired: </thought> closes nothing; it is dropped",
            "text: a",
        ],
    );
    check(
        "<researcher xmlns=\"u\"><think>a</thinking><think>b</researcher>",
        &[
            "<researcher xmlns=u",
            "<think",
            "thought: a",
            "repaired: <think> is closed with </thinking>",
            "think>",
            "<think",
            "thought: b",
            "repaired: <think> is closed before </researcher>",
            "think>",
            "researcher>",
        ],
    );
    check(
        "<action><a>x & <b>y</a></action>",
        &[
            "repaired: `&` that begins no entity is taken as `&amp;`",
            "repaired: <b> is closed with </a>",
            "action type=tool mode=sync id=__auto_1 <action><a>x &amp; <b>y</b></a></action>",
        ],
    );
    check(
        "<calculate><a:b>1</a:b></calculate>",
        &["broken calculate 1:13 the prefix a is bound to nothing"],
    );
}

#[test]
fn what_is_mentioned_in_prose_is_text_as_far_as_it_can_be() {
    for text in [
        "if a <b and c> d",
        "<div class=\"x\">",
        "<actions>",
        "< action>",
        "</ action>",
        "a<",
        "<invoke name=\"x\"><parameter name=\"y\">z</parameter></invoke>",
        "Vec<u8>",
        "<Action>{}",
    ] {
        check(text, &[&format!("text: {text}")]);
    }
    check(
        "<thought>the <action> tag</thought>\n<action>{}</action>",
        &[
            "<thought",
            "thought: the ",
            "broken action 1:24 expected a value; outside quotes there are true, false and null",
            "thought>",
            "text: \n",
            "action type=tool mode=sync id=__auto_1 {}",
        ],
    );
}

#[test]
fn who_speaks_of_a_tag_without_quotes_loses_little() {
    check(
        "<thought>I could <spawn-thread> here</thought><response>a</response>",
        &[
            "<thought",
            "thought: I could <spawn-thread> here",
            "thought>",
            "<response",
            "response: a",
            "response>",
        ],
    );
    check(
        "A <calculate> would do.\n<action>{}</action>",
        &["text: A <calculate> would do.\n", "action type=tool mode=sync id=__auto_1 {}"],
    );
    // What stands deeper is the element's own.
    let nested =
        "<calculate><a>\n<action>{}</action>\n<thought/><calculate/></a> &amp; b</calculate>";
    check(
        &format!("<think>{nested}</think>"),
        &["<think", &format!("calculate {nested}"), "think>"],
    );
}

#[test]
fn children_may_begin_in_any_way() {
    for inside in ["a <![C- b", "a <!- b", "a < b", "a <- b"] {
        let mended = inside.replace('<', "&lt;");
        check(
            &format!("<calculate>{inside}</calculate>"),
            &[
                "repaired: `<` that begins no tag is taken as `&lt;`",
                &format!("calculate <calculate>{mended}</calculate>"),
            ],
        );
    }
    check(
        "<calculate><a b='>'/><cal/><calculates/></calculate >",
        &["calculate <calculate><a b='>'/><cal/><calculates/></calculate >"],
    );
}

#[test]
fn a_reply_cut_anywhere_loses_nothing() {
    let text = "<thought>a `b` <action id=\"x\">{\"c\": \"\\\"</action>\"}</action></thought>\n\
                <response final=\"false\">d é ```\n<action></response>\n```\n</response>\
                <calculate><e>1</e></calculate>";
    for (cut, _) in text.char_indices() {
        let told = whole(&config(), &text[..cut]);
        let ran = told.iter().filter(|it| it.starts_with("action ")).count();
        assert_eq!(ran, usize::from(cut >= 59), "{cut}: {told:?}");
    }
}

#[test]
fn other_characters_go_through() {
    check(
        "a\u{0}b\u{FFFD}<action id=\"\u{0}\">\"\u{1F600}\"</action>",
        &["text: a\u{0}b\u{FFFD}", "action id=\u{0} type=tool mode=sync \"\u{1F600}\""],
    );
    check(&action("\"\\ud800\""), &["action id=a type=tool mode=sync \"\\ud800\""]);
    check(
        &action("\"a\u{0}b\""),
        &["broken action 1:18 control character (\\u0000-\\u001F) found while parsing a string"],
    );
}

#[test]
fn defaults_are_filled_in() {
    check(
        "<action>{}</action><action mode=\"async\"/><action name=\"x\"/><metadata>{}</metadata>",
        &[
            "action type=tool mode=sync id=__auto_1 {}",
            "broken action 1:42 the body is empty; it must be JSON or elements",
            "action name=x type=tool mode=sync id=__auto_2 ",
            "metadata {}",
        ],
    );
    check(
        "<context_feed id=\"a\">b < c</context_feed><spawn-thread/>",
        &["context_feed id=a b < c", "spawn-thread <spawn-thread/>"],
    );
}

#[test]
fn a_broken_action_has_a_snippet_and_its_place() {
    let text = format!(
        "<action>\n{{\"a\": \"{}é\",\n  \"b\": nul,\n{}}}</action>",
        "x".repeat(60),
        " ".repeat(60)
    );
    let mut parser = Parser::new(config());
    let mut seen = None;
    parser.feed(&text, &mut |event| {
        if let What::Broken(it) = event.what {
            seen = Some((event.place.line, event.place.column, it.snippet.to_owned()));
        }
    });
    let (line, column, snippet) = seen.unwrap();
    assert_eq!((line, column), (3, 11));
    assert!(snippet.contains("\"b\": nul,"), "{snippet}");
    assert!(snippet.chars().count() <= 80 && snippet.starts_with("x"), "{snippet}");
}

#[test]
fn a_hundred_megabytes_without_a_tag_are_told() {
    let chunk = "All work and no play makes Jack a dull boy. ".repeat(1_024);
    let mut parser = Parser::new(config());
    let (mut bytes, mut errors) = (0, 0);
    let cost = allocation_counter::measure(|| {
        let mut take = |event: pumphouse::reply::Event<'_>| match event.what {
            What::Text { .. } => bytes += event.source.len(),
            What::Broken(_) => errors += 1,
            _ => unreachable!("nothing else is there"),
        };
        for _ in 0..100_000_000 / chunk.len() {
            parser.feed(&chunk, &mut take);
        }
    });
    assert!(bytes > 99_000_000);
    assert_eq!(errors, bytes / (10 << 20), "every 10 MiB it is said");
    assert!(cost.bytes_max < 4_096, "{cost:?}");
}

#[test]
fn text_costs_no_allocation() {
    for around in ["", "<thought>", "<response>"] {
        let mut parser = Parser::new(config());
        parser.feed(around, &mut |_| {});
        let text = "Some words, `code`, a < b, <div>, é and\n\n* more.\n";
        // What is kept of a thought grows now and then; here it has grown.
        parser.feed(&text.repeat(4_096), &mut |_| {});
        parser.feed(if around.is_empty() { "" } else { "</thought></response>" }, &mut |_| {});
        parser.feed(around, &mut |_| {});
        let cost = allocation_counter::measure(|| {
            for _ in 0..1_000 {
                parser.feed(text, &mut |_| {});
            }
        });
        assert_eq!(cost.count_total, 0, "{around}: {cost:?}");
    }
}

#[test]
fn a_million_actions_and_ten_thousand_thoughts_take_their_time() {
    let text = "<action id=\"a\">{}</action>".repeat(1_000_000);
    let mut count = 0;
    let mut parser = Parser::new(config());
    let cost = allocation_counter::measure(|| {
        parser
            .feed(&text, &mut |event| count += usize::from(matches!(event.what, What::Closed(_))));
    });
    assert_eq!(count, 1_000_000);
    assert!(cost.bytes_max < 64 << 10, "{cost:?}");
    for (depth, name) in [(10_000, "thought"), (10_000, "researcher")] {
        let text = format!("<{name}>a").repeat(depth) + &format!("</{name}>").repeat(depth);
        let told = tell(&config(), [&*text]);
        assert_eq!(told.len(), 3 * depth);
        assert!(told.iter().all(|it| !it.starts_with("broken")));
    }
}

#[test]
fn thoughts_too_deep_are_refused_and_their_ends_dropped() {
    let mut shallow = config();
    shallow.limits.depth_max = 2;
    check_with(
        &shallow,
        "<think><think><think>a</think>b</think></think>c",
        &[
            "<think",
            "<think",
            "broken think 1:15 too deep: depth_max is 2",
            "thought: a",
            "repaired: it closes what was too deep; it is dropped",
            "thought: b",
            "think>",
            "think>",
            "text: c",
        ],
    );
}

#[test]
fn limits_are_said_and_the_reply_goes_on() {
    let mut small = config();
    small.limits.text_bytes_max = 8;
    small.limits.tag_bytes_max = 16;
    check_with(
        &small,
        "<think>abcdefgéi</think>123",
        &[
            "<think",
            "thought: abcdefg",
            "broken think 1:15 too long a text: text_bytes_max is 8; what is kept begins anew",
            "thought: éi",
            "think>",
            "text: 123",
        ],
    );
    check_with(
        &small,
        "<action a=\"0123456789\">",
        &["broken action 1:1 too long a tag: tag_bytes_max is 16", "text: 56789\">"],
    );
}
