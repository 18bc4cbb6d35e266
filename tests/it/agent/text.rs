//! Which parts of a reply are text, which of them the agent is told about, and that no text is
//! lost.

use pumphouse::listeners::action::words::{Action, ActionResult};
use pumphouse::listeners::agent::settings::{Dialect, Settings};
use pumphouse::listeners::agent::words::{CognitionOut, Notice, Response, Thought};

use super::world::{World, play};
use super::*;

/// Plays an agent whose first reply is this, and whose second ends the work.
fn saying(text: &'static str, dialect: Dialect) -> (World, ThreadId) {
    play(|world: &World| {
        let replies = [text, "<response>So.</response>"];
        let model = world.timed(Scripted::replies(replies));
        let settings = Settings { dialect, ..Settings::default() };
        let agent = Agent::new("oracle", Arc::new(model)).settings(settings);
        agent.peers(["calculate", "tool", "clerk"])
    })
}

fn notices(world: &World, thread: &ThreadId) -> Vec<String> {
    world.all::<Notice>(thread).into_iter().map(|it| it.text).collect()
}

#[test]
fn a_call_behind_a_tag_that_is_spoken_of_runs() {
    let (world, thread) = saying(
        "I can use <action> here. <action id=\"q\">{\"name\":\"calculate\",\"parameters\":\
         {\"expression\":\"6*7\"}}</action><response>It is ${q}.</response>",
        Dialect::Tags,
    );
    let said: Vec<String> = world.all::<Response>(&thread).into_iter().map(|it| it.text).collect();
    assert_eq!(said, ["It is 42."], "{:#?}", world.story(&thread));
    assert_eq!(notices(&world, &thread), [""; 0]);
}

#[test]
fn a_tag_that_is_spoken_of_stays_in_a_thought() {
    let text = "<thought>I can use <action> here, <b>yes</b>.</thought><response>So.</response>";
    let (world, thread) = saying(text, Dialect::Tags);
    let thought = world.all::<Thought>(&thread).remove(0).text;
    assert_eq!(thought, "I can use <action> here, <b>yes</b>.");
    assert_eq!(notices(&world, &thread), [""; 0]);
}

#[test]
fn a_tag_of_the_other_dialect_that_is_spoken_of_is_no_failure() {
    let text = "<thought>I can use <tool_use> here.</thought><response>So.</response>";
    let (world, thread) = saying(text, Dialect::ToolUse);
    let thought = world.all::<Thought>(&thread).remove(0).text;
    assert_eq!(thought, "I can use <tool_use> here.");
    assert_eq!(notices(&world, &thread), [""; 0]);
}

#[test]
fn an_action_that_names_itself_is_told_so() {
    let (world, thread) = saying(
        "<action id=\"q\">{\"name\":\"tool\",\"parameters\":{\"what\":\"$q\"}}</action>",
        Dialect::Tags,
    );
    let warnings: Vec<String> =
        world.all::<ActionResult>(&thread).into_iter().flat_map(|it| it.warning).collect();
    assert_eq!(warnings, ["$q stays as it is: q is this action itself"]);
    assert_eq!(notices(&world, &thread), [""; 0]);
}

#[test]
fn a_payload_that_is_refused_stays_in_its_thought_and_is_told() {
    let (world, thread) = saying(
        "<thought>I look.\n<calculate><nonsense/></calculate>\n<calculate>\
         <expression>1</expression></calculate> Then.</thought>",
        Dialect::Tags,
    );
    let thought = world.all::<Thought>(&thread).remove(0).text;
    assert_eq!(thought, "I look.\n<calculate><nonsense/></calculate>\n Then.");
    let told = notices(&world, &thread);
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].starts_with("<calculate> was not sent: "), "{told:?}");
}

#[test]
fn a_sound_payload_within_a_line_is_text_and_told() {
    let said = "<thought>To sum, <calculate><expression>1</expression></calculate> would do; the \
                error says \"emit <spawn-thread/> to create\".</thought><response>So.</response>";
    let (world, thread) = saying(said, Dialect::Tags);
    let thought = world.all::<Thought>(&thread).remove(0).text;
    assert_eq!(format!("<thought>{thought}</thought><response>So.</response>"), said);
    let why = "it stands within a line, and counts only where it begins one";
    assert_eq!(notices(&world, &thread), [format!("<calculate> did not run: {why}")]);
}

#[test]
fn a_sound_call_in_code_is_told() {
    let span = "it stands in a code span, or in what may become one";
    let (world, thread) = saying(
        "Write `<action id=\"q\">{\"name\":\"calculate\",\"parameters\":{\"expression\":\"6*7\"}}\
         </action>`.<response>So.</response>",
        Dialect::Tags,
    );
    assert_eq!(notices(&world, &thread), [format!("<action> did not run: {span}")]);
    let (world, thread) = saying(
        "```\n{\"type\":\"tool_use\",\"name\":\"calculate\",\"input\":{\"expression\":\"6*7\"}}\n\
         ```\n{\"type\":\"tool_use\",\"name\":\"calculate\",\"input\":{\"expression\":\"1\"}}",
        Dialect::ToolUse,
    );
    assert_eq!(notices(&world, &thread), ["<tool_use> did not run: it stands in a code fence"]);
    assert_eq!(world.all::<Action>(&thread).len(), 1);
}

#[test]
fn a_character_that_xml_does_not_have_is_kept_and_the_turn_goes_on() {
    let text = "<thought>a\0b</thought><action id=\"q\">{\"name\":\"calculate\",\"parameters\":\
                {\"expression\":\"6*7\"}}</action><response>red \u{1b}[31m ${q}</response>";
    let (world, thread) = saying(text, Dialect::Tags);
    let said: Vec<String> = world.all::<Response>(&thread).into_iter().map(|it| it.text).collect();
    assert_eq!(said, ["red ␛[1B][31m 42"], "{:#?}", world.story(&thread));
    assert_eq!(world.all::<Thought>(&thread).remove(0).text, "a␛[0]b");
    let out = world.all::<CognitionOut>(&thread).remove(0).text;
    assert_eq!(out, text.replace('\0', "␛[0]").replace('\u{1b}', "␛[1B]"));
    assert_eq!(notices(&world, &thread), [""; 0]);
}
