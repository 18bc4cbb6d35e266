//! Models that answer in plain text and make calls in their own syntax. Test names such as `d11_…`
//! begin with the number of a finding in a trial of 0.1.0.

use pumphouse::listeners::action::words::{Action, Dialect as CallForm};
use pumphouse::listeners::agent::settings::{Dialect, Settings};
use pumphouse::listeners::agent::words::{CognitionOut, Correction, Response, Stopped, Thought};
use pumphouse::model::{Call, Kind, Piece, Stop};

use super::world::{World, play};
use super::*;

/// Plays an agent that says these, one a turn; `None` is the dialect's default.
fn chat(dialect: Dialect, is_text: Option<bool>, replies: Vec<Script>) -> (World, ThreadId) {
    play(|world: &World| {
        let model = world.timed(Scripted::new(move |_: &Prompt, turn| {
            let at = usize::try_from(turn).unwrap() - 1;
            replies.get(at).cloned().unwrap_or_else(|| Script::text("<response>.</response>"))
        }));
        let mut settings = Settings::default();
        (settings.dialect, settings.text_is_response) = (dialect, is_text);
        Agent::new("oracle", Arc::new(model)).settings(settings).peers(["calculate", "tool"])
    })
}

fn finals(world: &World, thread: &ThreadId) -> Vec<String> {
    world.all::<Response>(thread).into_iter().filter(|it| it.is_final).map(|it| it.text).collect()
}

#[test]
fn d15_a_text_is_the_response_of_a_chat_model_and_think_is_reasoning() {
    let said = || Script::text("<think>2 and 2.</think>\n\nHello, it is *4*.\n");
    let (world, thread) = chat(Dialect::Tags, Some(true), vec![said()]);
    assert_eq!(finals(&world, &thread), ["Hello, it is *4*."], "{:#?}", world.story(&thread));
    assert_eq!(world.all::<Thought>(&thread).remove(0).text, "2 and 2.");
    assert_eq!(world.all::<CognitionOut>(&thread).len(), 1);
    // So it is by itself where calls are native, and only there.
    let (world, thread) = chat(Dialect::Native, None, vec![said()]);
    assert_eq!(finals(&world, &thread), ["Hello, it is *4*."]);
    let (world, thread) = chat(Dialect::Tags, None, vec![said(), said()]);
    assert_eq!(world.all::<Stopped>(&thread).remove(0).reason, "idle");
    let (world, thread) = chat(Dialect::Native, Some(false), vec![said(), said()]);
    assert_eq!(world.all::<Stopped>(&thread).remove(0).reason, "idle");
}

#[test]
fn d11_text_beside_native_calls_is_neither_response_nor_idle() {
    let call = Call::new("c1", "calculate", r#"{"expression": "6*7"}"#);
    let calls = Script::text("Let me see.").then(Piece::Call(call));
    let (world, thread) = chat(Dialect::Native, None, vec![calls, Script::text("It is 42.")]);
    assert_eq!(finals(&world, &thread), ["It is 42."], "{:#?}", world.story(&thread));
    assert_eq!(world.all::<Correction>(&thread), []);
    let outs = world.all::<CognitionOut>(&thread);
    assert_eq!(outs.iter().map(|it| it.is_idle).collect::<Vec<_>>(), [false, false]);
}

#[test]
fn a_text_that_was_cut_or_filtered_is_no_response() {
    let cut = Script::text("It is for").fails(9, Kind::Cut);
    let filtered = Script::text("It is").then(Piece::Stop(Stop::Filtered));
    for broken in [cut, filtered] {
        let (world, thread) = chat(Dialect::Native, None, vec![broken, Script::text("42.")]);
        assert_eq!(finals(&world, &thread), ["42."], "{:#?}", world.story(&thread));
    }
}

/// D9: the model hears of it, and so does whoever asked where nothing else comes.
#[test]
fn d9_a_reply_that_its_provider_filters_says_so() {
    let filtered = || Script::text("").then(Piece::Stop(Stop::Filtered));
    let (world, thread) = chat(Dialect::Tags, None, vec![filtered(), filtered()]);
    let told = "[The provider's content filter stopped the last reply. Say it in other words.]";
    assert_eq!(world.all::<Correction>(&thread)[0].text, told);
    let stopped = world.all::<Stopped>(&thread).remove(0);
    assert_eq!(stopped.reason, "idle");
    assert!(stopped.text.ends_with("The provider's content filter stopped the last reply."));
}

#[test]
fn d15_a_hermes_call_is_an_action() {
    let call = "<think>I sum.</think>\n<tool_call>\n{\"name\": \"calculate\", \"arguments\": \
                {\"expression\": \"6*7\"}}\n</tool_call>";
    for dialect in [Dialect::Tags, Dialect::Native] {
        let replies = vec![Script::text(call), Script::text("It is 42.")];
        let (world, thread) = chat(dialect, Some(true), replies);
        let [action] = &world.all::<Action>(&thread)[..] else { panic!("{dialect:?}") };
        assert_eq!((&*action.name, action.dialect), ("calculate", Some(CallForm::ToolUse)));
        assert_eq!(finals(&world, &thread), ["It is 42."], "{:#?}", world.story(&thread));
    }
    // In code it is text.
    let code = Script::text(format!("Write `{}`.", &call[call.find("<tool_call").unwrap()..]));
    let (world, thread) = chat(Dialect::Tags, Some(true), vec![code]);
    assert_eq!(world.all::<Action>(&thread), []);
    assert_eq!(finals(&world, &thread).len(), 1, "{:#?}", world.story(&thread));
}

#[test]
fn the_arguments_of_a_hermes_call_may_be_a_string_of_json() {
    let call = r#"<tool_call>{"name": "calculate", "arguments": "{\"expression\": \"6*7\"}",
        "id": "sum"}</tool_call>"#;
    let replies = vec![Script::text(call), Script::text("It is 42.")];
    let (world, thread) = chat(Dialect::Native, None, replies);
    assert_eq!(finals(&world, &thread), ["It is 42."], "{:#?}", world.story(&thread));
}

#[test]
fn code_in_a_fence_is_a_response_and_a_fenced_call_is_none() {
    let code = "```python\nprint(6 * 7)\n```";
    let (world, thread) = chat(Dialect::Native, None, vec![Script::text(code)]);
    assert_eq!(finals(&world, &thread), [code]);
    let call = "```xml\n<tool_call>{\"name\": \"calculate\", \"arguments\": {}}</tool_call>\n```";
    let (world, thread) =
        chat(Dialect::Native, None, vec![Script::text(call), Script::text("So.")]);
    assert_eq!(finals(&world, &thread), ["So."]);
    let told = world.all::<Correction>(&thread).remove(0).text;
    assert!(told.contains("code fence (```xml)"), "{told}");
}
