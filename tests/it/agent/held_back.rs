//! A final response with a reference to nothing is held back once in a work, and the agent is told.

use pumphouse::listeners::agent::settings::{Dialect, Settings};
use pumphouse::listeners::agent::words::{CognitionIn, Notice};

use super::world::play;
use super::*;

const SUM: &str = r#"
<action id="sum">{"name": "calculate", "parameters": {"expression": "6*7"}}</action>"#;

/// What came of an agent's replies: its responses, the notices, and the number of its turns.
struct Came {
    responses: Vec<(bool, String)>,
    notices: Vec<String>,
    turns: usize,
    stops: usize,
}

fn came<const N: usize>(replies: [String; N], set: impl FnOnce(&mut Settings)) -> Came {
    let mut settings = Settings::default();
    set(&mut settings);
    let (world, thread) = play(|world| {
        let model = world.timed(Scripted::replies(replies));
        Agent::new("oracle", Arc::new(model)).settings(settings).peers(["calculate"])
    });
    let responses = world.all::<Response>(&thread).into_iter();
    Came {
        responses: responses.map(|it| (it.is_final, it.text)).collect(),
        notices: world.all::<Notice>(&thread).into_iter().map(|it| it.text).collect(),
        turns: world.all::<CognitionIn>(&thread).len(),
        stops: world.all::<Stopped>(&thread).len(),
    }
}

fn said(text: &str) -> String {
    format!("<response>{text}</response>")
}

/// Checks that a response is held back for this reason, and that the next one is delivered.
#[track_caller]
fn check_held(text: &str, why: &str) {
    for replies in [
        [SUM.to_owned() + &said(text), said("Forty-two."), said("no more")],
        [SUM.to_owned(), said(text), said("Forty-two.")],
    ] {
        let came = came(replies, |_| {});
        assert_eq!(came.responses, [(true, "Forty-two.".to_owned())], "{text}");
        let [notice] = &came.notices[..] else { panic!("{:?}", came.notices) };
        assert!(notice.starts_with("Your response was not delivered: "), "{notice}");
        assert!(notice.contains(why), "{notice}");
        assert!(notice.contains("There are calculate, sum. Write it again"), "{notice}");
    }
}

/// Checks that a response is delivered at once, as this text.
#[track_caller]
fn check_delivered(text: &str, expected: &str, set: fn(&mut Settings)) {
    let came = came([SUM.to_owned() + &said(text)], set);
    assert_eq!(came.responses, [(true, expected.to_owned())], "{:?}", came.notices);
    assert_eq!((came.turns, came.stops), (1, 0), "{text}");
}

#[test]
fn a_path_that_leads_to_nothing_holds_a_response_back() {
    let why = "${sum.valu} leads to nothing: the result of sum has no valu; it has value; did you \
               mean value?";
    check_held("It is ${sum.valu}.", why);
}

#[test]
fn a_word_that_is_nearly_a_name_holds_a_response_back() {
    check_held("It is ${summ}.", "${summ}: nothing is called summ; did you mean sum?");
    check_held("${sum}, ${smu.value}", "${smu.value}: nothing is called smu; did you mean sum?");
    let near = "${calculat}: nothing is called calculat; did you mean calculate?";
    check_held("It is ${calculat}.", near);
}

#[test]
fn what_an_agent_says_then_is_delivered_as_it_stands_with_a_notice() {
    let first = SUM.to_owned() + &said("It is ${summ}.");
    let came = came([first, said("It is ${summ}, ${sum}."), said("no more")], |_| {});
    assert_eq!(came.responses, [(true, "It is ${summ}, 42.".to_owned())]);
    assert_eq!((came.turns, came.notices.len()), (2, 2), "{:?}", came.notices);
    let told = "Your response was delivered as you wrote it, with ${summ}: nothing is called summ; \
                did you mean sum?";
    assert_eq!(came.notices[1], told);
}

#[test]
fn other_words_are_delivered() {
    check_delivered("$summ costs $5.", "$summ costs $5.", |_| {});
    check_delivered("${nothing} and ${HOME}", "${nothing} and ${HOME}", |_| {});
    check_delivered("$${summ} is ${sum}", "${summ} is 42", |_| {});
    check_delivered("Write `${summ}`.", "Write `${summ}`.", |_| {});
    let fence = "```sh\necho ${summ} ${sum.valu}\n```";
    check_delivered(fence, fence, |_| {});
}

#[test]
fn the_last_turn_holds_nothing_back() {
    check_delivered("It is ${summ}.", "It is ${summ}.", |it| it.max_turns = 1);
}

#[test]
fn without_references_nothing_is_looked_for() {
    check_delivered("${summ} $sum $$", "${summ} $sum $$", |it| it.references = Some(false));
    for dialect in [Dialect::ToolUse, Dialect::Native] {
        let first = "<tool_use id=\"sum\" name=\"calculate\">{\"expression\": \"6*7\"}</tool_use>";
        let replies = [format!("{first}<response>${{summ}} ${{sum}} $$</response>")];
        let came = came(replies, |it| it.dialect = dialect);
        assert_eq!(came.responses, [(true, "${summ} ${sum} $$".to_owned())], "{dialect:?}");
    }
}

#[test]
fn with_references_the_other_dialects_have_them_too() {
    for dialect in [Dialect::ToolUse, Dialect::Native] {
        let calls = "<tool_use id=\"sum\" name=\"calculate\">{\"expression\": \"6*7\"}</tool_use>\
            <tool_use id=\"same\" name=\"calculate\">{\"expression\": \"${sum}\"}</tool_use>\
            <tool_use id=\"not\" name=\"calculate\">{\"expression\": \"$sum\"}</tool_use>";
        let replies =
            [calls.to_owned(), said("${summ}"), said("$sum, ${same.value}, ${not} `${sum}`")];
        let came = came(replies, |it| {
            (it.dialect, it.references) = (dialect, Some(true));
        });
        let text = "42, 42, [not: failed] `${sum}`";
        assert_eq!(came.responses, [(true, text.to_owned())], "{dialect:?} {:?}", came.notices);
    }
}

#[test]
fn a_partial_response_is_never_held_back() {
    let first = format!("{SUM}<response final=\"false\">${{summ}}</response>");
    let came = came([first, said("42")], |_| {});
    let expected = [(false, "${summ}".to_owned()), (true, "42".to_owned())];
    assert_eq!(came.responses, expected);
    assert_eq!(came.notices, Vec::<String>::new());
}

#[test]
fn a_response_that_was_held_back_is_delivered_where_the_agent_would_stop() {
    let first = || SUM.to_owned() + &said("It is ${summ}, ${sum}.");
    let text = || "some words".to_owned();
    let idle = came([first(), text(), text(), text()], |_| {});
    assert_eq!(idle.responses, [(true, "It is ${summ}, 42.".to_owned())]);
    assert_eq!((idle.stops, idle.turns), (0, 3));
    let told =
        "Your response of turn 1 was delivered as you wrote it: 2 turns in a row did nothing.";
    assert_eq!(idle.notices[1], told);
    let spent =
        came([first(), SUM.replace("sum", "b"), SUM.replace("sum", "c")], |it| it.max_turns = 3);
    assert_eq!(spent.responses, [(true, "It is ${summ}, 42.".to_owned())]);
    assert_eq!((spent.stops, spent.turns), (0, 3));
}

#[test]
fn a_value_with_characters_that_xml_lacks_is_delivered_escaped() {
    let replies =
        ["<metadata>{\"mood\": \"x\\u0001\"}</metadata>".to_owned() + &said("${metadata.mood}!")];
    let came = came(replies, |it| {
        it.metadata = serde_yaml::from_str("fields: {mood: {type: string}}").unwrap();
    });
    assert_eq!(came.responses, [(true, "x\u{241B}[1]!".to_owned())], "{:?}", came.notices);
}
