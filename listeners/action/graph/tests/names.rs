//! Tests the meaning of references: in parameters, where an action waits for the action that it
//! refers to, and in responses.

use super::*;

#[test]
fn a_reference_waits_for_what_it_refers_to() {
    check(
        "a async key=page => call a
           b async with=$page+$a =>
           c async with=${to-a} =>
           ok a => a ok, call b $a $page, call c $to-a",
    );
    check(
        "a async to=web => call a
           b async with=$web =>
           ok a => a ok, call b $web
           c async to=web => call c
           ok c => c ok
           d async with=$web =>
           over => call d",
    );
    check(
        "a async => call a
           b async with=$a =>
           fail a => a failed, b skipped for a",
    );
    check(
        "a async skip => call a
           b async with=$a =>
           fail a => a failed, call b $a skipped",
    );
}

#[test]
fn a_reference_to_what_had_failed_says_so_and_skips_nothing() {
    check(
        "a async => call a
           fail a => a failed
           b async with=$a => call b $a failed
           c async on=a with=$a => c skipped for a",
    );
    check(
        "a async skip => call a
           fail a => a failed
           b async with=$a => call b $a skipped",
    );
    // The reference says that `a` failed even if a later action takes the name.
    check(
        "policy immediate at_once=1
           a async => call a
           fail a => a failed
           x async => call x
           b async with=$a =>
           over =>
           a async turn=2 =>
           ok x => x ok, call b $a failed
           ok b => b ok, call a",
    );
}

#[test]
fn a_reference_may_mean_an_action_that_its_turn_defines_later() {
    check(
        "b async with=$a =>
           c async with=$page =>
           d async with=$web =>
           a async key=page to=web => call a
           over =>
           ok a => a ok, call b $a, call c $page, call d $web",
    );
    check(
        "b async with=$a =>
           a async => call a
           fail a => a failed, b skipped for a",
    );
    // If several later actions have the name, the first is meant. Actions of another turn don't
    // count.
    check(
        "b async with=$web =>
           a async to=web => call a
           c async to=web => call c
           over =>
           ok c => c ok
           ok a => a ok, call b $web",
    );
    check(
        "b async with=$a =>
           over => call b
           a async turn=2 => call a",
    );
}

#[test]
fn a_word_that_nothing_is_called_is_text_when_the_turn_is_over() {
    check(
        "b async with=$HOME =>
           c async with=$b =>
           over => call b
           ok b => b ok, call c $b",
    );
    check("b async alone with=$HOME => call b");
    // A reference never means its own action.
    check(
        "b sync with=$b+${to-b} =>
           over => call b",
    );
    check(
        "x async alone => call x
           b async alone on=x with=$c =>
           c async alone => call c
           ok x => x ok, call b",
    );
}

#[test]
fn a_circle_through_a_later_action_is_an_error_at_once() {
    check(
        "a async with=$b =>
           b async with=$a => a failed cycle, b failed cycle",
    );
    check(
        "s sync with=$page =>
           l async key=page => s failed cycle, l failed cycle",
    );
}

#[test]
fn later_turns_change_nothing_about_a_reference() {
    for (names, reference) in [("key=it", "it"), ("", "a"), ("to=web", "web")] {
        let script = format!(
            "policy immediate at_once=3
               x async => call x
               a async {names} => call a
               b async on=x with=${{{reference}}} =>
               over =>
               a async turn=2 {names} => call a
               fail a => a failed
               ok x => x ok
               ok a 1 =>"
        );
        let script = script.replace(" {", "{").replace("  =>", " =>");
        let mut play = Play::default();
        let mut told = Vec::new();
        for line in script.lines().map(str::trim) {
            told = play.line(line.split(" =>").next().unwrap().trim());
        }
        assert_eq!(told, Vec::<String>::new());
        let first = Input::Replied(2, 1, CallOutcome::Ok(None));
        assert_eq!(play.step(first), ["a ok".to_owned(), format!("call b ${reference}")]);
    }
}

#[test]
fn a_feeds_name_means_what_the_turns_prompt_showed_and_nothing_waits() {
    check(
        "shows weather=sunny news=
           a async to=news => call a
           b async with=$weather+$news => call b $news unavailable $weather=sunny
           weather async => call weather
           c async with=$weather =>
           ok weather => weather ok, call c $weather",
    );
    // A turn's actions get the content that the feed had in that turn.
    check(
        "policy immediate at_once=1
           shows weather=sunny
           x async => call x
           b async with=$weather =>
           policy immediate at_once=1 turn=2
           shows weather=rain turn=2
           c async turn=2 with=$weather =>
           ok x => x ok, call b $weather=sunny
           ok b => b ok, call c $weather=rain",
    );
}

/// Checks the meanings of names. In `name@at/turn`, `at` is the entry number of the response and
/// `turn` its turn.
#[track_caller]
fn check_meaning(play: &Play, table: &[(&str, Meaning)]) {
    for (words, meaning) in table {
        let (name, place) = words.split_once('@').unwrap();
        let (at, turn) = place.split_once('/').unwrap();
        let (at, turn) = (at.parse().unwrap(), turn.parse().unwrap());
        assert_eq!(play.graph.meaning(AGENT, name, at, turn), *meaning, "{words}");
    }
}

#[test]
fn a_response_means_what_had_the_name_when_it_was_written() {
    let mut play = Play::default();
    let lines = [
        "policy immediate turn=1",
        "shows weather=sunny calm= turn=1",
        "a async key=page to=web", // 1
        "b async to=weather",      // 2
        "over 1",
        "policy immediate turn=2",
        "shows turn=2",
        "a async key=page to=web turn=2", // 3
        "c async key=a to=nets turn=2",   // 4
        "d async to=nets turn=2",         // 5
    ];
    for line in lines {
        play.line(line);
    }
    check_meaning(
        &play,
        &[
            ("a@1/1", Meaning::Action(1)),
            ("a@2/1", Meaning::Action(1)),
            ("a@3/2", Meaning::Action(1)),
            ("a@4/2", Meaning::Action(3)),
            ("a@5/2", Meaning::Action(4)),
            ("page@3/1", Meaning::Action(1)),
            ("page@9/2", Meaning::Action(3)),
            ("web@2/1", Meaning::Action(1)),
            ("web@4/2", Meaning::Nothing),
            ("weather@2/1", Meaning::Feed),
            ("weather@3/2", Meaning::Action(2)),
            ("calm@1/1", Meaning::Feed),
            ("nets@4/2", Meaning::Action(4)),
            ("nets@5/2", Meaning::Action(4)),
            ("nets@6/2", Meaning::Nothing),
            ("d@3/2", Meaning::Action(5)),
            ("d@3/1", Meaning::Nothing),
            ("nobody@9/2", Meaning::Nothing),
        ],
    );
    assert_eq!(play.graph.meaning("eve", "a", 9, 2), Meaning::Nothing);
}

pub(super) fn answer(local: &str) -> Element {
    let mut writer = pumphouse::xml::Writer::new(pumphouse::limits::XmlLimits::DOOR);
    writer.start("urn:x", local);
    writer.end();
    writer.finish().unwrap()
}

/// The value of a name in a response that comes after all actions.
fn said(play: &Play, name: &str) -> String {
    match play.graph.meaning(AGENT, name, Id::MAX, 1) {
        Meaning::Action(id) => match play.graph.resolved(id) {
            Some(Value::Result(Some(it))) => it.local().to_owned(),
            other => format!("{other:?}"),
        },
        other => format!("{other:?}"),
    }
}

#[test]
fn a_name_means_the_newest_and_a_key_goes_before_an_id() {
    let mut play = Play::default();
    let ok = |play: &mut Play, id: &str, local: &str| {
        play.reply(id, None, CallOutcome::Ok(Some(answer(local))));
    };
    play.line("a async");
    assert_eq!(said(&play, "a"), "None");
    ok(&mut play, "a", "first");
    assert_eq!(said(&play, "a"), "first");
    play.line("over");
    play.line("a async turn=2");
    assert_eq!(said(&play, "a"), "None");
    ok(&mut play, "a", "second");
    assert_eq!(said(&play, "a"), "second");
    play.line("b async turn=2 key=a");
    ok(&mut play, "b", "third");
    assert_eq!(said(&play, "a"), "third");
    assert!(play.graph.value("eve", "a").is_none(), "agents have names of their own");
}

#[test]
fn in_a_response_each_end_but_ok_has_failed() {
    let ends = ["fail a", "unknown a", "cancel a", "wait 300"];
    for (skips, end) in ["", " skip"].iter().flat_map(|skips| ends.map(|end| (skips, end))) {
        let mut play = Play::default();
        play.line(&format!("a async{skips}"));
        assert!(play.graph.outcome(1).is_none());
        play.line(end);
        assert_eq!(said(&play, "a"), "Some(Failed)", "{end}");
        assert_ne!(play.graph.outcome(1).unwrap().status, Status::Ok);
    }
    let mut play = Play::default();
    play.line("a async");
    play.line("b async on=a");
    play.line("fail a");
    assert_eq!(said(&play, "b"), "Some(Failed)");
}

#[test]
fn what_no_name_leads_to_is_kept_until_the_work_is_over() {
    let mut play = Play::default();
    for turn in 1..100 {
        play.line(&format!("policy immediate turn={turn}"));
        play.line(&format!("shows clock={turn} turn={turn}"));
        play.line(&format!("a async to=x turn={turn}"));
        play.line("ok a");
        play.line(&format!("over {turn}"));
    }
    assert_eq!(play.graph.meaning(AGENT, "a", 7, 1), Meaning::Action(6));
    assert!(matches!(play.graph.shown(AGENT, "clock", 7), Some(Value::Feed(it)) if &*it == "7"));
    play.graph.work_over(AGENT);
    assert_eq!(play.graph.nodes.len(), 1);
    assert_eq!(play.graph.scopes[AGENT].shown.len(), 1);
    assert!(play.graph.scopes[AGENT].turns.len() <= 2);
    // No entry ends the work of a sender that isn't an agent. Its unnamed results are dropped at
    // once.
    for turn in 100..200 {
        play.line(&format!("a async to=x turn={turn}"));
        play.line("ok a");
        play.line(&format!("over {turn}"));
    }
    assert!(play.graph.nodes.len() <= 2, "{}", play.graph.nodes.len());
}

#[test]
fn in_a_fork_nothing_waits_for_what_was_under_way() {
    let mut play = Play::default();
    for line in ["a async key=page to=web", "b async", "ok b"] {
        play.line(line);
    }
    play.graph = play.graph.forked();
    assert_eq!(play.line("c async turn=2 with=$a+$page+$web+$b"), Vec::<String>::new());
    assert_eq!(play.line("over 2"), ["call c $b", "wake 300 maybe"]);
    assert_eq!(play.line("d async turn=3 on=a"), Vec::<String>::new());
    assert_eq!(play.line("over 3"), ["d failed unknown-dependency"]);
}

#[test]
fn what_another_still_waits_for_outlives_its_name_and_the_work() {
    check(
        "policy immediate turn=1
           a async => call a
           x async => call x
           b async on=x with=$a =>
           ok a => a ok
           over =>
           policy immediate turn=2
           a async turn=2 => call a
           answered =>
           ok x => x ok, call b $a",
    );
}
