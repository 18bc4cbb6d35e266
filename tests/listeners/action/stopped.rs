//! An agent that stopped is a failure of the action that called it, whatever type the action has.

use pumphouse::wire::core::ThreadSpawned;

use super::*;

/// What one turn's actions come to, and what stands in its thread.
fn came(says: &'static str) -> Came {
    play(vec![Turn(1, Dispatch::Immediate), Says(says), Over(1)])
}

/// How many threads were opened for it.
fn threads(came: &Came) -> usize {
    let line = format!("core > action: {}", ThreadSpawned::NAME.local());
    came.story.iter().filter(|it| **it == line).count()
}

#[test]
fn an_agent_that_stopped_is_a_failure_tried_again_in_threads_of_its_own() {
    let came = came(
        r#"<action id="a" type="agent" retry="2">
{"name": "idler", "parameters": {"text": "Do it."}}</action>
<action id="b" depends_on="a">{"name": "tool", "parameters": {"what": "$a"}}</action>
<action id="c" mode="async">{"name": "tool", "parameters": {"what": "c"}}</action>
<action id="d" mode="async">{"name": "tool", "parameters": {"what": "$b"}}</action>"#,
    );
    assert_eq!(threads(&came), 3);
    let (failed, rest) = came.results.split_first().unwrap();
    assert!(failed.starts_with("a failed agent-stopped: sess-"), "{failed}");
    assert!(failed.contains(" stopped (idle): 2 turns in a row did nothing."), "{failed}");
    let skipped = "skipped skipped: b was skipped because of a";
    assert_eq!(
        rest,
        ["b skipped skipped: a failed".to_owned(), format!("d {skipped}"), "c ok \"c\"".to_owned()]
    );
    assert_eq!(came.attempts, [3, 0, 1, 0]);
}

#[test]
fn a_further_attempt_of_an_agent_may_do_better() {
    let came = came(
        r#"<action id="a" type="agent" on_error="retry">
{"name": "starter", "parameters": {"text": "Do it."}}</action>"#,
    );
    assert_eq!((threads(&came), &came.attempts[..]), (2, &[2][..]));
    assert!(came.results[0].starts_with("a ok "), "{:?}", came.results);
}

#[test]
fn a_failed_agent_may_be_passed_over() {
    let came = came(
        r#"<action id="a" type="agent" on_error="skip">
{"name": "idler", "parameters": {"text": "Do it."}}</action>
<action id="b" depends_on="a" type="relic"><name>cache</name>
<parameters><value>${a}</value></parameters></action>"#,
    );
    assert_eq!(came.results[1], "b ok null");
    assert_eq!(came.effects[0].1, "null");
}

/// What an agent comes to that stops for a reason, called in each way, with two retries.
fn stops(reason: &str) -> [(String, u32); 3] {
    let ways = [
        ("tool", format!(r#"{{"name": "halt", "parameters": {{"reason": "{reason}"}}}}"#)),
        (
            "tool",
            format!(r#"{{"name": "halt", "parameters": {{"reason": "{reason}", "error": true}}}}"#),
        ),
        ("agent", format!(r#"{{"name": "below", "parameters": {{"reason": "{reason}"}}}}"#)),
    ];
    ways.map(|(kind, way)| {
        let says = format!("<action id=\"a\" type=\"{kind}\" retry=\"2\">{way}</action>");
        let mut came = came(String::leak(says));
        (came.results.remove(0), came.attempts[0])
    })
}

#[test]
fn why_an_agent_stopped_decides_what_becomes_of_its_action() {
    for (told, attempts) in stops("turns") {
        assert!(told.starts_with("a failed agent-stopped: "), "{told}");
        assert!(told.ends_with(" stopped (turns): No."), "{told}");
        assert_eq!(attempts, 3, "{told}");
    }
    // What is spent is spent.
    for (told, attempts) in stops("budget") {
        assert!(told.starts_with("a failed agent-stopped: "), "{told}");
        assert_eq!(attempts, 1, "{told}");
    }
    for (told, attempts) in stops("interrupted") {
        assert!(told.starts_with("a cancelled agent-stopped: "), "{told}");
        assert_eq!(attempts, 1, "{told}");
    }
}
