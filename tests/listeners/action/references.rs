//! How references to results are resolved in a whole pump.

use super::*;

fn came(says: &'static str) -> Came {
    play(vec![Turn(1, Dispatch::Immediate), Says(says), Pause(500), Over(1)])
}

#[test]
fn a_word_that_nothing_is_called_is_sent_as_it_is_when_the_turn_is_over() {
    let came = came(
        r#"<action id="a" mode="async">
{"name": "tool", "parameters": {"what": "$HOME"}}</action>
<action id="b" mode="async">{"name": "tool", "parameters": {"what": "b"}}</action>"#,
    );
    let warning = "($HOME stays as it is: nothing is called HOME)";
    assert_eq!(came.results, [r#"b ok "b""#.to_owned(), format!(r#"a ok "$HOME" {warning}"#)]);
    assert!(came.at("$HOME") >= 500 && came.at("b") < 50, "{:?}", came.effects);
}

#[test]
fn a_reference_to_a_later_action_waits_for_it() {
    let came = came(
        r#"<action id="a" mode="async">
{"name": "tool", "parameters": {"what": "$page"}}</action>
<action id="b" mode="async">
{"name": "tool", "parameters": {"what": "b", "ms": 100}, "output_key": "page"}</action>"#,
    );
    assert_eq!(came.results, [r#"b ok "b""#, r#"a ok "b""#]);
    let times: Vec<u64> = came.effects.iter().map(|it| it.2).collect();
    assert!(times[0] < 100 && (100..200).contains(&times[1]), "{:?}", came.effects);
}

#[test]
fn what_had_failed_reads_as_failed() {
    let script = vec![
        Turn(1, Dispatch::Immediate),
        Says(
            r#"<action id="a">{"name": "trap", "parameters": {}}</action>
<action id="s" depends_on="a">{"name": "tool", "parameters": {"what": "s"}}</action>"#,
        ),
        Pause(500),
        Says(
            r#"<action id="b" mode="async">{"name": "tool", "parameters":
{"what": "${a.title}"}}</action>
<action id="d" mode="async">{"name": "tool", "parameters": {"what": "$s"}}</action>
<action id="c" type="relic">{"name": "cache", "parameters": {"value": "$a"}}</action>"#,
        ),
        Over(1),
    ];
    let came = play(script);
    for told in [r#"b ok "[a: failed]""#, r#"d ok "[s: failed]""#] {
        assert!(came.results.contains(&told.to_owned()), "{:?}", came.results);
    }
    assert!(came.at("[a: failed]") >= 500);
}

#[test]
fn elements_of_others_are_sent_as_they_are_and_nothing_waits_for_their_words() {
    let came = came(
        r#"<action id="a" mode="async"><name>spawn-thread</name><parameters><initial-payload>
<sub xmlns="urn:test"><question>$HOME</question></sub></initial-payload></parameters></action>
<action id="b" mode="async"><name>tool</name>
<parameters><what>$HOME</what></parameters></action>"#,
    );
    assert_eq!(came.results[0], r#"a ok "answer to $HOME""#);
    assert!(came.results[1].starts_with(r#"b ok "$HOME" ("#), "{:?}", came.results);
}
