//! What prompts tell a model of its mistakes and of the actions that it began. Test names such as
//! `d15_…` begin with the number of a finding in a trial of 0.1.0.

use pumphouse::model::Kind;

use super::one_asker::{last, played, responses, tool};
use super::world::play;
use super::*;

/// What the second turn's prompt ends with, where the first reply is this.
fn told_of(reply: &str) -> String {
    let (_, _, seen) = played(&[reply, "<response>So.</response>"]);
    last(&seen.lock().unwrap()[1]).to_owned()
}

#[test]
fn d15_an_unknown_tool_is_answered_with_the_agents_peers_the_nearest_first() {
    let told = told_of(r#"<action id="a">{"name": "calculator", "parameters": {}}</action>"#);
    let why = "you have no peer calculator; you may call calculate, ";
    assert!(told.contains(why), "{told}");
    // What is there but not the agent's reads the same.
    let told = told_of(r#"<action id="a">{"name": "feeds", "parameters": {}}</action>"#);
    assert!(told.contains("you have no peer feeds; you may call "), "{told}");
}

#[test]
fn d15_broken_json_is_told_with_its_call_its_line_and_what_to_write() {
    let told = told_of(
        "<thought>I write.</thought>\n<action id=\"w\">\n{\"name\": \"tool\", \"parameters\": \
         {\"what\": \"one\ntwo\"}}\n</action>",
    );
    assert!(
        told.contains("[w did not run: in line 3 of your reply its JSON is broken: "),
        "{told}"
    );
    assert!(told.contains("write a new line as \\n and a quote as \\\""), "{told}");
    assert!(told.contains("<content><![CDATA[…]]></content>"), "{told}");
    assert!(!told.contains("reached nobody"), "{told}");
}

#[test]
fn d15_parameters_as_elements_hold_any_text() {
    let what = "<what><![CDATA[say \"hi\" &\n<b>]]></what>";
    let call = format!(
        "<action id=\"w\"><name>tool</name><parameters>{what}</parameters></action>\
         <response>${{w}}</response>"
    );
    let (world, thread, _) = played(&[&call]);
    assert_eq!(responses(&world, &thread), ["say \"hi\" &\n<b>"]);
}

#[test]
fn d15_a_reply_within_one_fence_is_told_that_the_fence_is_why() {
    let call =
        r#"<action id="a">{"name": "calculate", "parameters": {"expression": "1"}}</action>"#;
    for reply in [
        format!("```xml\n{call}\n<response>One: $a</response>\n```"),
        format!("<thought>Hm.</thought>\n```xml\n{call}\n```\n"),
        "~~~\n<response>So.</response>".to_owned(),
    ] {
        let told = told_of(&reply);
        assert!(told.contains("Your whole reply stands in a code fence ("), "{reply}: {told}");
        assert!(told.contains("Write it again without the fence."), "{reply}: {told}");
    }
    // Where there is more than the fence, the fence isn't all that is wrong.
    let told = told_of("Look:\n```\n1\n```\n");
    assert!(told.contains("reached nobody") && !told.contains("code fence"), "{told}");
}

#[test]
fn d5_what_runs_and_what_is_held_stands_at_the_prompts_end() {
    let after = r#"<action id="q3">{"name": "tool", "parameters": {"what": "x"},
        "depends_on": ["q1"]}</action>"#;
    let begun = tool("q1", "async", 4_000)
        + &tool("q2", "async", 9_000)
        + &after.replace("<action id", "<action mode=\"async\" id");
    let begun = begun + "<response final=\"false\">I look.</response>";
    let (_, _, seen) = played(&[&begun, "<thought>I wait.</thought>", "<response>So.</response>"]);
    let seen = seen.lock().unwrap();
    let end = |it| unmarked(last(it).lines().last().unwrap());
    let ends: Vec<String> = seen.iter().map(end).collect();
    assert_eq!(ends[0], "Go.");
    assert_eq!(ends[1], "[running: q1, q2; held: q3]");
    assert!(ends[2].starts_with("[running: q2"), "{ends:#?}");
}

#[test]
fn d9_a_reply_that_was_cut_before_its_first_word_is_not_mentioned() {
    for (text, is_told) in [("", false), ("<thought>I ", true)] {
        let seen: Arc<std::sync::Mutex<Vec<Prompt>>> = Arc::default();
        let kept = seen.clone();
        let characters = text.len();
        drop(play(move |world| {
            let model = world.timed(Scripted::new(move |prompt: &Prompt, turn| {
                kept.lock().unwrap().push(prompt.clone());
                match turn {
                    1 => Script::text(text).fails(characters, Kind::Cut),
                    _ => Script::text("<response>So.</response>"),
                }
            }));
            Agent::new("oracle", Arc::new(model))
        }));
        let told = unmarked(last(&seen.lock().unwrap()[1]));
        assert_eq!(told.contains("[Previous response was interrupted]"), is_told, "{told}");
        assert!(!told.contains('%'), "{told}");
    }
}
