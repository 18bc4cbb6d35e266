//! Control flow in replies: blocks around actions, templates and compensations. The agent comes
//! from a served manifest and has a scripted model.

use std::io::Write as _;
use std::process::Stdio;

use pumphouse::listeners::action::variables::{Piece, pieces};
use serde_json::Value;

use crate::program::{Scene, Server};

const ASK: &str = "<clerk xmlns=\"https://xml-pipeline.org/ns/clerk/v1\">Go.</clerk>";

/// Starts a server whose agent has these replies and these further keys.
fn served(keys: &str, replies: &[&str]) -> (Scene, Server) {
    let scene = Scene::new();
    let replies: String = replies.iter().map(|it| format!("%% reply\n{it}\n")).collect();
    scene.write("replies.txt", replies);
    let models = "models: {m: {use: scripted, file: replies.txt}}";
    let agent = format!("use: agent, name: clerk, model: m, peers: [calculate], {keys}");
    let listeners = format!("  - {{use: calculate}}\n  - {{{agent}}}\n");
    scene.write("organism.yaml", format!("{models}\nlisteners:\n{listeners}"));
    let server = scene.serve(&[]);
    (scene, server)
}

/// The log of a thread, with the characters of its texts.
fn read(scene: &Scene, thread: &str) -> String {
    let escapes = [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&amp;", "&")];
    let shown = scene.run(&["show", thread]).code(0).out;
    escapes.into_iter().fold(shown, |text, (from, to)| text.replace(from, to))
}

fn thread_of(objects: &[Value]) -> Option<String> {
    objects.iter().find_map(|it| Some(it["thread"].as_str()?.to_owned()))
}

/// Asks the agent, checks that its answer says all of `texts`, and has the log of the thread.
#[track_caller]
fn plays(keys: &str, replies: &[&str], texts: &[&str]) -> String {
    let (scene, server) = served(keys, replies);
    let ran = scene.pipe(&["send", "--connect", &server.address, "--json"], ASK);
    let thread = thread_of(&ran.objects()).unwrap_or_else(|| panic!("{}{}", ran.out, ran.err));
    let shown = read(&scene, &thread);
    for text in texts {
        assert!(shown.contains(text), "{text}\n{}\n{shown}", ran.err);
    }
    scene.run(&["replay", &thread]).code(0);
    shown
}

/// An action that calculates.
/// An action that calculates. References within a longer expression become named values.
fn sum(id: &str, expression: &str) -> String {
    let pieces = pieces(expression);
    let (mut text, mut values) = (String::new(), Vec::new());
    for piece in &pieces {
        match piece {
            Piece::Reference(it) if pieces.len() > 1 => {
                let name = format!("v{}", values.len());
                text += &name;
                values.push(format!("\"{name}\": \"{}\"", it.whole));
            }
            Piece::Reference(it) => text += it.whole,
            Piece::Text(it) => text += it,
        }
    }
    let values = match &values[..] {
        [] => String::new(),
        all => format!(", \"values\": {{{}}}", all.join(", ")),
    };
    let parameters = format!("{{\"expression\": \"{text}\"{values}}}");
    format!(
        "<action id=\"{id}\">{{\"name\": \"calculate\", \"parameters\": {parameters}}}</action>"
    )
}

const ON: &str = "control_flow: true";

#[test]
fn one_branch_of_a_condition_runs() {
    for (value, expected) in [("2+2", "4: null 1"), ("2+1", "3: 0 null")] {
        let (first, big, small) = (sum("s", value), sum("big", "1"), sum("small", "0"));
        let branches = format!("<then>\n{big}\n</then>\n<else>{small}</else>");
        let answer = "<response>${s}: ${small} ${big}</response>";
        let reply = format!("{first}\n<if test=\"s > 3\">\n{branches}\n</if>\n{answer}");
        plays(ON, &[&reply], &[expected]);
    }
}

#[test]
fn a_condition_may_refer_to_metadata_and_to_how_an_action_ended() {
    let keys = "metadata: {fields: {mode: {values: [FAST, SAFE], default: FAST}}}, ";
    let set = "<metadata>{\"mode\": \"SAFE\"}</metadata>";
    let (bad, twice) = (sum("bad", "1/0"), sum("twice", "2*2"));
    let test = "bad.action_status == 'failed' and metadata.mode == \"SAFE\" and 1 < 2";
    let block = format!("<if test='{}'>\n{twice}\n</if>", test.replace('\'', "&apos;"));
    let reply = format!("{set}\n{bad}\n{block}\n<thought>Wait.</thought>");
    let answer = "<response>It is ${twice}.</response>";
    plays(&format!("{keys}{ON}"), &[&reply, answer], &["It is 4."]);
}

#[test]
fn conditions_within_one_another_all_count() {
    let (a, b) = (sum("a", "1"), sum("b", "2"));
    let inner = format!("<if test=\"a == 2\"><then>{}</then><else>{b}</else></if>", sum("c", "3"));
    let reply = format!("{a}\n<if test=\"a == 1\">\n{inner}\n</if>\n<response>$b $c</response>");
    let shown = plays(ON, &[&reply], &["2 null"]);
    assert!(shown.contains("(a == 1) and not (a == 2)"), "{shown}");
}

#[test]
fn a_list_is_gone_through_and_the_result_is_a_list() {
    let each = |list: &str| {
        let body = format!("{}\n{}", sum("square", "$n*$n"), sum("next", "$square+1"));
        let answer = "<response>$square $next</response>";
        format!("<foreach var=\"n\" in='{list}'>\n{body}\n</foreach>\n{answer}")
    };
    let expected = "[\"1\",\"4\",\"9\"] [\"2\",\"5\",\"10\"]";
    plays(ON, &[&each("[1, 2, 3]")], &[expected]);
    // The results of the first block are the list of the second one.
    let first = format!("<foreach var=\"m\" in=\"[1, 2]\">{}</foreach>", sum("s", "$m*10"));
    let second = format!("{first}\n{}", each("s"));
    plays(ON, &[&second], &["[\"100\",\"400\"] [\"101\",\"401\"]"]);
}

#[test]
fn an_item_that_cannot_be_called_holds_up_no_later_one() {
    let call = "{\"name\": \"calculate\", \"parameters\": {\"expression\": \"$n\"}, \
                \"on_error\": \"skip\"}";
    let list = "[1, \"1+1\", true, \"3\"]";
    let block =
        format!("<foreach var=\"n\" in='{list}'><action id=\"s\">{call}</action></foreach>");
    let reply = format!("{block}\n<response>$s</response>");
    plays(ON, &[&reply], &["[null,\"2\",null,\"3\"]"]);
}

#[test]
fn a_condition_in_a_loop_is_decided_for_each_item() {
    let block = format!("<if test=\"n > 1\">{}</if>", sum("s", "$n*2"));
    let reply = format!("<foreach var=\"n\" in=\"[1, 2]\">\n{block}\n</foreach>");
    plays(ON, &[&format!("{reply}\n<response>$s</response>")], &["[null,\"4\"]"]);
}

#[test]
fn a_text_in_a_condition_is_compared_as_a_text() {
    let each = |test: &str| {
        let block = format!("<if test=\"{test}\">\n{}\n</if>", sum("s", "7"));
        let list = r#"["1.10", "1.1", "42"]"#;
        let each = format!("<foreach var=\"n\" in='{list}'>\n{block}\n</foreach>");
        format!("{each}\n<response>$s</response>")
    };
    for (test, expected) in [
        ("n == '1.10'", r#"["7",null,null]"#),
        ("n != '1.1'", r#"["7",null,"7"]"#),
        ("n in ['41', '42']", r#"[null,null,"7"]"#),
        ("n == 1.1", r#"["7","7",null]"#),
        ("n in [41, 42]", r#"[null,null,"7"]"#),
    ] {
        plays(ON, &[&each(test)], &[expected]);
    }
}

#[test]
fn the_error_of_a_loop_says_which_item_failed_and_why() {
    let each = format!("<foreach var=\"n\" in=\"[1, 0, 2]\">{}</foreach>", sum("s", "6/$n"));
    let shown = plays(ON, &[&each, "<response>Seen.</response>"], &["Seen."]);
    assert!(shown.contains(">item 2 of 3: division-by-zero: column: 2<"), "{shown}");
}

#[test]
fn too_long_a_list_is_refused_with_the_numbers() {
    let many = format!("[{}0]", "0,".repeat(20_000));
    let block = |list: &str, max: &str| {
        let body = sum("s", "$n");
        format!("<foreach var=\"n\" in='{list}'{max}>\n{body}\n</foreach>\n<thought>.</thought>")
    };
    let told = |reply: &str| plays(ON, &[reply, "<response>Seen.</response>"], &["Seen."]);
    let shown = told(&block(&many, ""));
    assert!(shown.contains("in has 20001 items, and takes 100 at the most"), "{shown}");
    assert!(!shown.contains("calculated"), "{shown}");
    let shown = told(&block("[1,2,3]", " max=\"2\""));
    assert!(shown.contains("in has 3 items, and takes 2 at the most"), "{shown}");
    let shown = told(&block("[1]", " max=\"101\""));
    assert!(shown.contains("max takes a whole number from 1 to 100"), "{shown}");
    // One that only the result of an action shows.
    let first = format!("<foreach var=\"m\" in=\"[1, 2]\">{}</foreach>", sum("l", "$m+0"));
    let shown = told(&format!("{first}\n{}", block("l", " max=\"1\"")));
    assert!(shown.contains("l has 2 items, and this foreach takes 1 at the most"), "{shown}");
    let shown = told(&format!("{}\n{}", sum("x", "1"), block("x", "")));
    assert!(shown.contains("and no list"), "{shown}");
}

/// An action that calculates with each partial result of another one.
fn stream(id: &str, expression: &str) -> String {
    sum(id, expression).replace("\"name\"", "\"stream\": true, \"name\"")
}

#[test]
fn a_stream_takes_each_item_of_a_loop_and_each_answer_of_a_stream() {
    let each = format!("<foreach var=\"n\" in=\"[1, 2, 3]\">{}</foreach>", sum("square", "$n*$n"));
    let answer = "<response>$next $sum of $square</response>";
    let (next, last) = (stream("next", "$square+1"), stream("sum", "$next*10"));
    let reply = format!("{each}\n{next}\n{last}\n{answer}");
    let all = "[\"2\",\"5\",\"10\"] [\"20\",\"50\",\"100\"] of [\"1\",\"4\",\"9\"]";
    plays(ON, &[&reply], &[all]);
}

#[test]
fn mistakes_about_streams_are_told_and_the_action_does_not_run() {
    let told = |keys: &str, action: &str, text: &str| {
        let reply = format!("{}\n{action}\n<thought>.</thought>", sum("s", "1"));
        let shown = plays(keys, &[&reply, "<response>Seen.</response>"], &["Seen."]);
        assert!(shown.contains(text), "{text}\n{shown}");
        assert_eq!(shown.matches("action → calculate").count(), 1, "{shown}");
    };
    let word = stream("t", "2*$s").replace("true", "\"yes\"");
    told(ON, &word, "stream takes true or false, not \"yes\"");
    let each = format!("<foreach var=\"n\" in=\"[1]\">{}</foreach>", stream("t", "2*$s"));
    told(ON, &each, "stream is not for an action in a <foreach>");
    told(ON, &stream("t", "2"), "it names none");
    told(ON, &stream("t", "2*$s+$x"), "it names s, x; depends_on says which");
    told("max_turns: 9", &stream("t", "2*$s"), "stream is no field of an action");
}

#[test]
fn actions_run_side_by_side_and_the_next_one_waits() {
    let block = format!("<parallel max=\"2\">\n{}\n{}\n</parallel>", sum("a", "1"), sum("b", "2"));
    let reply = format!("{block}\n{}\n<response>$c</response>", sum("c", "$a+$b"));
    let shown = plays(ON, &[&reply], &["3</response>"]);
    assert!(shown.contains("parallel"), "{shown}");
}

#[test]
fn a_template_is_filled_in_and_stands_in_the_prompt() {
    let keys = "action_templates: {add: {name: calculate, parameters: {expression: \"{{a}}+1\"}}}";
    let call = "{\"template\": \"add\", \"parameters\": {\"a\": 4}}";
    let reply = format!("<action id=\"s\">{call}</action><response>$s</response>");
    let shown = plays(keys, &[&reply], &["5</response>"]);
    assert!(shown.contains("4+1"), "{shown}");
    assert!(shown.contains("\"template\": \"add\", \"parameters\": {\"a\": …}"), "{shown}");
    let wrong = "<action id=\"s\">{\"template\": \"add\", \"parameters\": {\"aa\": 4}}</action>";
    let shown = plays(keys, &[wrong, "<response>Seen.</response>"], &["Seen."]);
    let told = "the template add needs the parameter a, and has no parameter aa; did you mean a?";
    assert!(shown.contains(told), "{shown}");
    let wrong = "<action id=\"s\">{\"template\": \"ad\"}</action>";
    let shown = plays(keys, &[wrong, "<response>Seen.</response>"], &["Seen."]);
    assert!(shown.contains("there is no template \"ad\"; there are add; did you mean add?"));
}

#[test]
fn a_rollback_undoes_what_ended_ok_the_last_first_and_nothing_twice() {
    let done = |id: &str, expression: &str, undo: &str| {
        let call = |it: &str| format!("\"name\": \"calculate\", \"parameters\": {it}");
        let parameters = format!("{{\"expression\": \"{expression}\"}}");
        let undo = call(&format!("{{\"expression\": \"{undo}\"}}"));
        let body = format!("{{{}, \"compensate\": {{{undo}}}}}", call(&parameters));
        format!("<action id=\"{id}\">{body}</action>")
    };
    let all =
        format!("{}\n{}\n{}", done("a", "1", "10"), done("b", "1/0", "20"), done("c", "3", "30"));
    let back =
        "<if test=\"b.action_status == 'failed'\">\n<rollback/>\n</if>\n<rollback to=\"a\"/>";
    let reply = format!("{all}\n{back}\n<thought>Undone.</thought>");
    let shown = plays(ON, &[&reply, "<response>${c-undo} ${a-undo}</response>"], &["30 10"]);
    let value = |it: &str| shown.find(&format!("<value>{it}</value>"));
    assert!(value("30") < value("10") && value("20").is_none(), "{shown}");
    assert!(shown.contains("a-undo-2"), "{shown}");
    // What isn't undone says so in plain words, not by the condition that the pump makes.
    for text in [
        "a is undone already, by a-undo",
        "c is undone already, by c-undo",
        "there is nothing to undo: the status of b is failed",
    ] {
        assert!(shown.contains(text), "{text}\n{shown}");
    }
    assert!(!shown.contains("\"skipped\" doesn't hold"), "{shown}");
}

#[test]
fn a_rollback_behind_a_tag_that_cannot_be_read_does_not_run() {
    let call = "\"name\": \"calculate\", \"parameters\": {\"expression\": \"6*7\"}";
    let body = format!("{{{call}, \"compensate\": {{{call}}}}}");
    let done = format!("<action id=\"s\">{body}</action>");
    let reply = format!("{done}\n<if test=\"true\"\n<rollback/>\n<thought>.</thought>");
    let shown = plays(ON, &[&reply, "<response>Seen.</response>"], &["Seen."]);
    let told = "<rollback> did not run: the tag <if> before it couldn't be read";
    assert!(shown.contains(told), "{shown}");
    assert!(!shown.contains("s-undo"), "{shown}");
}

#[test]
fn a_compensation_that_the_agent_can_not_call_is_told_and_its_action_does_not_run() {
    let undo = |name: &str| {
        let call = "\"parameters\": {\"expression\": \"6*7\"}";
        let undo = format!("{{\"name\": \"{name}\"}}");
        let body = format!("{{\"name\": \"calculate\", {call}, \"compensate\": {undo}}}");
        format!("<action id=\"s\">{body}</action>")
    };
    let reply = format!("{}\n<rollback/>\n<thought>.</thought>", undo("calculat"));
    let shown = plays(ON, &[&reply, "<response>Seen.</response>"], &["Seen."]);
    let told = "s did not run: compensate: you have no peer calculat; did you mean calculate?";
    assert!(shown.contains(told), "{shown}");
    assert!(!shown.contains("calculated") && !shown.contains("s-undo"), "{shown}");
    plays(ON, &[&format!("{}<response>$s</response>", undo("calculate"))], &["42</response>"]);
}

#[test]
fn a_block_that_is_not_closed_is_told() {
    let block = |inside: &str| format!("{}\n<if test=\"s > 3\">\n{inside}\n", sum("s", "4"));
    let reply = block(&format!("{}\n<thought>.</thought>", sum("t", "$s+1")));
    let shown = plays(ON, &[&reply, "<response>It is $t.</response>"], &["It is 5."]);
    let open = "<if> has no </if>: all that follows it, up to the end of your text, stood in it";
    assert!(shown.contains(open), "{shown}");
    let inner = format!("<parallel>\n{}\n</if>\n<thought>.</thought>", sum("t", "$s+1"));
    let shown = plays(ON, &[&block(&inner), "<response>It is $t.</response>"], &["It is 5."]);
    let open =
        "<parallel> has no </parallel>: all that follows it, up to the end of <if> around it";
    assert!(shown.contains(open), "{shown}");
    assert!(!shown.contains("<if> has no </if>"), "{shown}");
}

#[test]
fn a_branch_ends_where_the_other_one_begins() {
    for (value, expected) in [("4", "null 1"), ("2", "0 null")] {
        let (big, small) = (sum("big", "1"), sum("small", "0"));
        let branches = format!("<then>\n{big}\n<else>\n{small}\n</else>");
        let reply = format!("{}\n<if test=\"s > 3\">\n{branches}\n</if>", sum("s", value));
        plays(ON, &[&format!("{reply}\n<response>$small $big</response>")], &[expected]);
    }
}

#[test]
fn mistakes_in_blocks_are_told_and_nothing_in_them_runs() {
    let s = sum("s", "6*7");
    let blocks = [
        ("<if test=\"a = 3\">", "</if>", "test: byte 3: `=` is written `==`"),
        (
            "<if tset=\"a\">",
            "</if>",
            "tset is no attribute of it; it takes test; did you mean test?",
        ),
        ("<if>", "</if>", "test is missing"),
        ("<if test=\"metadata.mode == 1\">", "</if>", "your metadata has no mode"),
        ("<if test=\"3\">", "</if>", "a condition is true or false"),
        ("Then <if test=\"true\">", "</if>", "it stands within a line"),
        ("<parallel max=\"0\">", "</parallel>", "max takes a whole number from 1 on"),
        ("<foreach var=\"1\" in=\"[1]\">", "</foreach>", "var is a name of letters"),
        ("<foreach var=\"n\" in=\"a b\">", "</foreach>", "in takes a list in JSON or a reference"),
        ("<foreach var=\"n\" in=\"[1\">", "</foreach>", "in is no list in JSON"),
        ("<parallel><parallel>", "</parallel></parallel>", "it stands in a <parallel>"),
        ("<rollback to=\"x\"/>", "", "this turn has no action x before it"),
    ];
    for (begin, end, text) in blocks {
        let inside = if end.is_empty() { "" } else { &s };
        let reply = format!("{begin}{inside}{end}\n<thought>.</thought>");
        let shown = plays(ON, &[&reply, "<response>Seen.</response>"], &["Seen."]);
        assert!(shown.contains(text), "{text}\n{shown}");
        assert!(!shown.contains("calculated"), "{begin}\n{shown}");
    }
    let keys = "control_flow: true, metadata: {fields: {mode: {values: [FAST, SAFE]}, n: {type: \
                number}}}";
    for (test, text) in [
        ("metadata.mode == 'SAFF'", "never \"SAFF\"; did you mean \"SAFE\"?"),
        ("s == 42 and metadata.n < '3'", "`metadata.n` is a number"),
        ("metadata.n", "`metadata.n` is a number; a condition is true or false"),
        ("metadata.moed == 'SAFE'", "your metadata has no moed; did you mean mode?"),
    ] {
        let reply = format!("<if test=\"{test}\">\n{s}\n</if>\n<thought>.</thought>");
        let shown = plays(keys, &[&reply, "<response>Seen.</response>"], &["Seen."]);
        assert!(shown.contains(text), "{text}\n{shown}");
        assert!(!shown.contains("calculated"), "{test}\n{shown}");
    }
    let deep = format!("{}{s}{}", "<if test=\"true\">\n".repeat(17), "</if>".repeat(17));
    let shown = plays(ON, &[&deep, "<response>Seen.</response>"], &["Seen."]);
    assert!(shown.contains("there are 16 blocks around it, which is the most"), "{shown}");
    assert!(!shown.contains("calculated"), "{shown}");
    // Only what is decided when the turn is over.
    let unknown = format!("{s}\n<if test=\"ss == 1\">\n{}\n</if>", sum("t", "2"));
    let shown = plays(ON, &[&unknown, "<response>Seen.</response>"], &["Seen."]);
    let told = "its condition refers to ss, and the turn is over without an action called so; did \
                you mean s?";
    assert!(shown.contains(told), "{shown}");
    let circle = format!("<if test=\"t == 1\">\n{}\n</if>", sum("t", "2"));
    let shown = plays(ON, &[&circle, "<response>Seen.</response>"], &["Seen."]);
    assert!(shown.contains("it waits for itself"), "{shown}");
    let held = "<if test=\"true\">\n<response>No.</response>\n</if>";
    let shown = plays(ON, &[held, "<response>Seen.</response>"], &["Seen."]);
    assert!(shown.contains("it stands in <if>, which takes actions only"), "{shown}");
}

#[test]
fn a_thought_within_a_thought_is_one_of_its_own() {
    let inner = format!("<thought>Inner.{}</thought>", sum("s", "6*7"));
    let reply = format!("<thought>Outer.\n{inner}</thought><response>$s</response>");
    let shown = plays(ON, &[&reply], &["42</response>"]);
    let (inner, outer) = (shown.find("Inner.").unwrap(), shown.find("Outer.").unwrap());
    assert!(shown[..inner.max(outer)].contains("depth=\"1\""), "{shown}");
}

#[test]
fn blocks_are_text_unless_the_agent_has_the_key() {
    let reply = format!("<if test=\"false\">\n{}\n</if>\n<response>$s</response>", sum("s", "6*7"));
    let shown = plays("max_turns: 9", &[&reply], &["42</response>"]);
    assert!(!shown.contains("<foreach") && !shown.contains("\"stream\""), "{shown}");
}

/// Reads the log of a thread until it says this.
#[track_caller]
fn shown(scene: &Scene, thread: &str, text: &str) -> String {
    let mut shown = String::new();
    for _ in 0..100 {
        shown = read(scene, thread);
        if shown.contains(text) {
            return shown;
        }
        #[expect(clippy::disallowed_methods, reason = "a server works meanwhile")]
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    panic!("{text}\n{shown}");
}

#[test]
fn a_killed_server_goes_on_in_the_middle_of_a_block() {
    let each = format!("<foreach var=\"n\" in=\"[1, 2, 3]\">\n{}\n</foreach>", sum("s", "$n*2"));
    // It fails, and is tried again a second later.
    let bad = sum("bad", "1/0").replace("\"name\"", "\"retry\": 1, \"name\"");
    let test = "bad.action_status == 'failed' and s[2] == 6";
    let branch = format!("<if test=\"{test}\">\n{}\n</if>", sum("t", "${s[0]}+1"));
    let reply = format!("{each}\n{bad}\n{branch}\n<thought>.</thought>");
    let (scene, server) = served(ON, &[&reply, "<response>It is $t.</response>"]);
    let arguments = ["send", "--connect", &server.address, "--json"];
    let mut child = scene.command(&arguments);
    let mut child = child.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(ASK.as_bytes()).unwrap();
    let thread = loop {
        let threads = scene.run(&["threads", "--json"]).objects();
        if let Some(it) = threads.iter().find_map(|it| it["thread"].as_str().or(it["id"].as_str()))
        {
            break it.to_owned();
        }
    };
    shown(&scene, &thread, "actions-due");
    server.signal("-KILL");
    drop(server);
    child.kill().unwrap();
    child.wait().unwrap();
    let server = scene.serve(&[]);
    let log = shown(&scene, &thread, "It is 3.");
    assert_eq!(log.matches("action → calculate").count(), 6, "{log}");
    drop(server);
    scene.run(&["replay", &thread]).code(0);
}

#[test]
fn a_parameter_of_a_tool_call_that_is_named_compensate_stays_a_parameter() {
    let call = "<tool_use id=\"s\" name=\"calculate\">{\"expression\": \"6*7\", \"compensate\": \
                1}</tool_use>";
    let shown = plays(ON, &[call, "<response>Seen.</response>"], &["Seen."]);
    assert!(!shown.contains("compensate takes a JSON object"), "{shown}");
    assert!(shown.contains("compensate"), "{shown}");
}

#[test]
fn parameters_of_an_action_may_refer_to_metadata() {
    let keys = |more: &str| format!("metadata: {{fields: {{n: {{type: number}}}}{more}}}");
    let set = |n: u32| format!("<metadata>{{\"n\": {n}}}</metadata>");
    let by_elements = "<action id=\"b\"><name>calculate</name><parameters><expression>\
                       n * 100</expression><values><entry key=\"n\">${metadata.n}</entry></values>\
                       </parameters></action>";
    let reply = format!("{}{}{}{by_elements}", set(2), sum("a", "${metadata.n} * 10"), set(3));
    let answer = "<response>${a}, ${b}</response>";
    for more in ["", ", injection: {method: none}"] {
        plays(&keys(more), &[&format!("{reply}{answer}")], &["20, 300</response>"]);
    }
}

#[test]
fn a_waiting_response_names_metadata_once() {
    let keys = "metadata: {fields: {n: {type: number, default: 7}}}";
    let reply = sum("a", "1+1") + "<response>${a}, ${metadata.n} and ${metadata.n}</response>";
    let shown = plays(keys, &[&reply], &["2, 7 and 7</response>"]);
    assert_eq!(shown.matches("<on>metadata</on>").count(), 1, "{shown}");
}

#[test]
fn a_reference_to_metadata_without_a_value_is_told_apart_from_one_to_no_field() {
    let keys = "metadata: {fields: {state: {type: number}}}";
    let lost = "${metadata.stat} leads to nothing: your metadata has no stat; it has state; did \
                you mean state?";
    for (reference, told) in [("${metadata.state}", "found: `[`"), ("${metadata.stat}", lost)] {
        let call = sum("a", reference);
        let shown = plays(keys, &[&call, "<response>Seen.</response>"], &["Seen."]);
        assert!(shown.contains(told), "{shown}");
    }
    plays(keys, &["<response>${metadata.state}</response>"], &["[metadata.state: not set]"]);
}

#[test]
fn metadata_for_a_tool_is_a_warning() {
    let call = "<action id=\"a\" metadata=\"share\">{\"name\": \"calculate\", \"parameters\": \
                {\"expression\": \"6*7\"}}</action>";
    let shown = plays(ON, &[call, "<response>$a</response>"], &["42"]);
    assert!(
        shown.contains("metadata says what a called agent gets, and calculate is no agent"),
        "{shown}"
    );
}
