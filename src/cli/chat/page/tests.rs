//! Tests of what a page shows of events.

use serde_json::json;

use super::*;

fn event(mut it: Value) -> Event {
    it["agent"] = "oracle".into();
    it["thread"] = "sess-a".into();
    serde_json::from_value(it).unwrap()
}

fn delta(within: &str, text: &str) -> Event {
    event(json!({ "type": "cognition_out_delta", "turn": 1, "within": within, "text": text }))
}

fn thought(text: &str) -> Event {
    event(json!({ "type": "thought", "turn": 1, "text": text }))
}

fn response(text: &str) -> Event {
    event(json!({ "type": "response", "turn": 1, "text": text, "final": true }))
}

fn call(kind: &str, more: &Value) -> Event {
    let mut it = json!({ "type": kind, "turn": 1, "call_id": "sum", "tool": "calculate" });
    for (key, value) in more.as_object().unwrap() {
        it[key] = value.clone();
    }
    event(it)
}

/// Returns what a terminal shows in the end.
fn seen(events: &[Event]) -> String {
    let mut page = Page::new("oracle", Style { colour: false, width: 60 }, true);
    events.iter().for_each(|it| page.hear(it, None, 0));
    page.shown(0)
}

#[test]
fn an_action_says_how_far_it_is() {
    let begins = json!({ "id": "sum", "input": {}, "mode": "sync" });
    let further =
        |done: u64| json!({ "done": done, "total": 4, "text": "reading\u{1b}[2J\nnotes" });
    let events = [
        call("tool_call_start", &begins),
        call("tool_call_progress", &further(1)),
        call("tool_call_progress", &further(3)),
    ];
    let seen = seen(&events);
    assert!(seen.contains("calculate  0.0 s  3/4  reading"), "{seen}");
    assert!(!seen.contains("1/4") && !seen.contains("\u{1b}[2J\n"), "{seen}");
}

#[test]
fn what_a_program_writes_is_shown_line_by_line() {
    let begins = json!({ "id": "t", "input": {}, "mode": "sync" });
    let writes = |text: &str| call("tool_call_output", &json!({ "stream": "out", "text": text }));
    let events =
        [call("tool_call_start", &begins), writes("one\ntwo\n"), writes("\u{1b}[2Jthree\n")];
    let seen = seen(&events);
    assert!(seen.starts_with("t │ one\nt │ two\nt │ "), "{seen}");
    assert!(seen.contains("three") && !seen.contains("\u{1b}[2J"), "{seen}");
}

#[test]
fn what_was_shown_while_it_was_written_is_not_shown_again() {
    let events = [
        delta("thought", "\n  Six "),
        delta("thought", "times seven.\n"),
        delta("text", "\n"),
        delta("response", "It "),
        thought("Six times seven."),
        delta("response", "is 42"),
        response("It is 42."),
    ];
    assert_eq!(seen(&events), "Six times seven.\nIt is 42.\n");
    assert_eq!(seen(&[thought("a"), response("b")]), "a\nb\n");
    assert_eq!(reference("It is $5, or 5$ ."), None);
    assert_eq!(reference("It is $5 and $sum."), Some(13));
    assert_eq!((reference("${a}"), reference("end $")), (Some(0), Some(4)));
    // The page has missed the beginning of the thought.
    assert_eq!(
        seen(&[delta("thought", "seven."), thought("Six, seven.")]),
        "seven.\nSix, seven.\n"
    );
}

#[test]
fn a_response_is_shown_up_to_what_refers_to_something() {
    let written = [delta("response", "It is ${su"), delta("response", "m}.")];
    assert_eq!(seen(&written), "It is\n");
    let all = [&written[..], &[response("It is 42.")]].concat();
    assert_eq!(seen(&all), "It is 42.\n");
}

#[test]
fn an_action_runs_below_and_ends_above_what_is_written() {
    let start = call("tool_call_start", &json!({ "id": "sum", "input": {}, "mode": "sync" }));
    let text = delta("thought", "While that runs");
    let running = seen(&[start.clone(), text.clone()]);
    assert_eq!(running, "While that runs\n  ⠋ calculate  0.0 s\n");
    let came = |more: Value| call("tool_call_result", &more);
    let ok = came(json!({ "status": "ok", "output": "42", "error": null }));
    assert_eq!(seen(&[start.clone(), text, ok]), "  ✓ calculate\nWhile that runs\n");
    let why = json!({ "status": "failed", "output": null, "error": "P0016: no" });
    assert_eq!(seen(&[start.clone(), came(why)]), "  ✗ calculate  failed: P0016: no\n");
    let mut hidden = start;
    hidden.show = false;
    assert_eq!(seen(&[hidden]), "");
}

#[test]
fn metadata_are_a_line_and_mistakes_in_them_one_each() {
    let set = json!({ "type": "metadata", "turn": 1, "fields": { "status": "CODING", "n": 1 } });
    assert_eq!(seen(&[event(set)]), "metadata  status: CODING, n: 1\n");
    let errors = ["status: \"X\" not in [IDLE]", "Unknown field: a"];
    let wrong = json!({ "type": "metadata", "turn": 1, "fields": {}, "errors": errors });
    let told = "metadata  status: \"X\" not in [IDLE]\nmetadata  Unknown field: a\n";
    assert_eq!(seen(&[event(wrong)]), told);
}

#[test]
fn what_the_agent_waits_for_stands_below() {
    let start = call("tool_call_start", &json!({ "id": "q1", "input": {}, "mode": "async" }));
    let out = event(json!({
        "type": "cognition_out", "turn": 1, "text": "", "tool_count": 1,
        "is_partial": false, "truncated": false,
    }));
    let mut page = Page::new("oracle", Style { colour: false, width: 60 }, true);
    page.hear(&start, None, 0);
    page.hear(&out, None, 1_000_000);
    let shown = page.shown(13_000_000);
    assert!(shown.ends_with("waiting for q1 (12 s)\n"), "{shown}");
    page.waits_behind(Some("bob"), 13_000_000);
    page.waits_behind(Some("bob"), 15_000_000);
    let shown = page.shown(16_000_000);
    assert!(shown.ends_with("waiting for what bob asked (3 s)\n"), "{shown}");
    page.waits_behind(None, 17_000_000);
    let begins = event(json!({ "type": "step_start", "turn": 2, "model": "m" }));
    page.hear(&begins, None, 17_000_000);
    assert!(!page.shown(18_000_000).contains("waiting"));
}

#[test]
fn what_ends_an_earlier_question_does_not_end_the_next_one() {
    let at = |entry: u64, mut it: Event| {
        it.entry = Some(entry);
        it
    };
    let stops = json!({ "type": "stopped", "reason": "interrupted", "text": "Ctrl-C" });
    let stops = event(stops);
    let answers = |late: &[Event]| {
        let mut page = Page::new("oracle", Style { colour: false, width: 60 }, true);
        page.asks(0);
        page.leave();
        page.asks(1);
        page.asked(7);
        late.iter().for_each(|it| page.hear(it, None, 2));
        assert!(!page.is_over(), "{late:?}");
        page.hear(&at(12, response("It is 42.")), None, 3);
        page.is_over()
    };
    assert!(answers(&[at(5, response("It was 41."))]));
    assert!(answers(&[at(6, stops.clone())]));
    // The next question is in the log already when the agent stops.
    assert!(answers(&[at(9, stops.clone())]));
    let mut page = Page::new("oracle", Style { colour: false, width: 60 }, true);
    page.asks(0);
    page.asked(7);
    page.hear(&at(9, stops), None, 1);
    assert!(page.is_over(), "nothing else was interrupted");
}

#[test]
fn text_cannot_steer_the_terminal() {
    assert_eq!(seen(&[response("a\u{1b}[2Jb")]), "a&#x1B;[2Jb\n");
}

#[test]
fn a_model_that_says_nothing_yet_is_waited_for_below() {
    let mut page = Page::new("oracle", Style { colour: false, width: 60 }, true);
    page.asks(0);
    let begins = event(json!({ "type": "step_start", "turn": 1, "model": "m" }));
    page.hear(&begins, None, 1_000_000);
    assert_eq!(page.shown(5_200_000), "  \u{2839} waiting for the model  4 s\n");
    page.hear(&delta("response", "It"), None, 6_000_000);
    assert!(!page.shown(6_000_000).contains("waiting"));
}

#[test]
fn an_agent_that_stops_says_how_it_goes_on() {
    let stops =
        event(json!({ "type": "stopped", "reason": "turns", "text": "It had its 2 turns." }));
    let seen = seen(&[stops]);
    assert!(seen.starts_with("oracle stopped, turns: It had its 2 turns.\n"), "{seen}");
    assert!(seen.contains("write again, such as `Go on.`"), "{seen}");
}

#[test]
fn an_answer_of_plain_text_is_shown_once() {
    for pieces in [&["Hello from me."][..], &["Hello ", "from ", "me."]] {
        let mut events: Vec<Event> = pieces.iter().map(|it| delta("text", it)).collect();
        events.push(response("Hello from me."));
        assert_eq!(seen(&events), "Hello from me.\n");
    }
    // Text beside calls stays, above the calls that it announced.
    let start = call("tool_call_start", &json!({ "id": "sum", "input": {}, "mode": "sync" }));
    let ok = json!({ "status": "ok", "output": "42", "error": null });
    let events = [delta("text", "I look."), start, call("tool_call_result", &ok)];
    assert_eq!(seen(&events), "I look.\n  ✓ calculate\n");
}

#[test]
fn the_lines_of_tools_do_not_tear_an_answer() {
    let start = call("tool_call_start", &json!({ "id": "sum", "input": {}, "mode": "async" }));
    let ok = call("tool_call_result", &json!({ "status": "ok", "output": "1", "error": null }));
    let text = "# Oland\n\nIt is long.";
    let events = [
        start,
        delta("response", "# Oland\n\n"),
        ok,
        delta("response", "It is long."),
        response(text),
    ];
    assert_eq!(seen(&events), "# Oland\n\nIt is long.\n  ✓ calculate\n");
}
