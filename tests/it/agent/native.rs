//! Calls in a provider's native protocol. They become the same payloads as other calls, with an
//! attribute that tells them apart.

use pumphouse::listeners::action::words::{Action, ActionResult, Dialect as CallForm};
use pumphouse::listeners::agent::recall::recall;
use pumphouse::listeners::agent::settings::{Dialect, Settings};
use pumphouse::listeners::agent::words::{
    CognitionIn, CognitionOut, CognitionSystem, CognitionTools, Notice, Response,
};
use pumphouse::model::{Call, Piece, Script, Tool};
use pumphouse::wire::budget::Charge;
use serde_json::json;

use super::world::{World, play};
use super::*;

fn native(world: &World, replies: Vec<Script>) -> (Agent, Arc<std::sync::Mutex<Vec<Prompt>>>) {
    let seen: Arc<std::sync::Mutex<Vec<Prompt>>> = Arc::default();
    let kept = seen.clone();
    let model = world.timed(Scripted::new(move |prompt: &Prompt, turn| {
        kept.lock().unwrap().push(prompt.clone());
        replies[usize::try_from(turn).unwrap() - 1].clone()
    }));
    let settings = Settings { dialect: Dialect::Native, ..Settings::default() };
    let peers = ["calculate", "feeds"];
    (Agent::new("oracle", Arc::new(model)).settings(settings).peers(peers), seen)
}

fn playing(replies: Vec<Script>) -> (World, ThreadId, Vec<Prompt>) {
    let mut kept = None;
    let (world, thread) = play(|world| {
        let (agent, seen) = native(world, replies);
        kept = Some(seen);
        agent
    });
    let seen = kept.unwrap().lock().unwrap().clone();
    (world, thread, seen)
}

#[test]
fn what_peers_take_is_offered_as_tools() {
    let (_, _, seen) = playing(vec![Script::text("<response>.</response>")]);
    let names: Vec<&str> = seen[0].tools.iter().map(|it| &*it.name).collect();
    let feeds = ["feeds_add_context_feed", "feeds_update_context_feed"];
    assert_eq!(names, ["calculate", feeds[0], feeds[1], "read-result"]);
    let Tool { parameters, description, .. } = &seen[0].tools[0];
    assert_eq!(parameters["required"], json!(["expression"]));
    assert_eq!(parameters["properties"]["expression"]["type"], "string");
    assert!(!description.is_empty());
    assert!(!seen[0].system.contains("<action id"), "{}", seen[0].system);
    // Others aren't told of tools, and read of their peers.
    let (model, seen) = remembering(["<response>.</response>"]);
    drop(play(|_| oracle(model)));
    let seen = &seen.lock().unwrap()[0];
    assert!(seen.tools.is_empty() && seen.system.contains("{\"expression\":"));
}

#[test]
fn a_native_call_is_an_action_like_any_other() {
    let call = Call::new("call_1", "calculate", r#"{"expression": "6*7"}"#);
    let more = Call::new("", "feeds_add_context_feed", r#"{"id": "x"}"#);
    let first = Script::text("<thought>An open thought").call(call).call(more);
    let replies = vec![first, Script::text("<response>It is 42.</response>")];
    let (world, thread, seen) = playing(replies);
    let actions = world.all::<Action>(&thread);
    let told: Vec<_> = actions.iter().map(|it| (&*it.id, &*it.name, it.dialect)).collect();
    let native = Some(CallForm::Native);
    let ids = ["call_1", told[1].0];
    let expected = [(ids[0], "calculate", native), (ids[1], "feeds.add_context_feed", native)];
    assert_eq!(told, expected);
    assert!(world.all::<ActionResult>(&thread).iter().all(|it| it.dialect == native));
    let response = world.all::<Response>(&thread).remove(0);
    assert_eq!(response.text, "It is 42.");
    // The words of the turn have the calls in their places.
    let out = &world.all::<CognitionOut>(&thread)[0].text;
    assert!(out.starts_with("<thought>An open thought<tool_use id=\"call_1\""), "{out}");
    let story = world.story(&thread);
    assert!(story.contains(&"oracle > oracle: thought".to_owned()), "{story:?}");
    let called: Vec<&str> = seen[1].messages[1].calls.iter().map(|it| &*it.name).collect();
    assert_eq!(called, ["calculate", "feeds_add_context_feed"]);
    // Ids belong to the model that gave them.
    let model = world.all::<Charge>(&thread).remove(0).model;
    assert!(model.is_some());
    assert_eq!(seen[1].messages[1].written_by, model);
}

#[test]
fn what_was_offered_is_recalled_and_recorded_once() {
    let call = Call::new("a", "calculate", r#"{"expression": "6*7"}"#);
    let replies = vec![Script::new().call(call), Script::text("<response>$a</response>")];
    let (world, thread, seen) = playing(replies);
    let entries = world.entries(&thread);
    let entries: Vec<Entry> = entries.iter().map(|it| (&**it).into()).collect();
    let turns = entries.iter().filter(|it| it.is::<CognitionIn>());
    let prompts: Vec<Prompt> = turns.map(|it| recall(&entries, it.seq()).unwrap().prompt).collect();
    assert_eq!(prompts, seen);
    assert_eq!(world.all::<CognitionTools>(&thread).len(), 1);
}

#[test]
fn a_native_call_is_replayed_and_an_agent_that_is_told_something_else_is_seen() {
    let call = Call::new("a", "calculate", r#"{"expression": "6*7"}"#);
    let first = Script::text("<thought>An open thought").call(call);
    let (world, thread, _) = playing(vec![first, Script::text("<response>$a</response>")]);
    let agent = || native(&world, Vec::new()).0;
    let same = world.replay(agent(), &thread);
    assert_eq!((same.difference, same.skipped), (None, Vec::new()));
    assert!(same.compared["oracle"] >= 2 && same.compared["action"] >= 2);
    let other = world.replay(agent().prompt("Be brief."), &thread).difference.unwrap();
    assert_eq!(other.now.unwrap().name, CognitionSystem::NAME);
}

#[test]
fn neither_fences_nor_open_responses_hide_a_native_call() {
    for before in ["```xml\n", "<response final=\"false\">So far", "<!-- "] {
        let call = Call::new("a", "calculate", r#"{"expression": "1+1"}"#);
        let first = Script::text(before).call(call);
        let replies = vec![first, Script::text("<response>2</response>")];
        let (world, thread, _) = playing(replies);
        assert_eq!(world.all::<Response>(&thread).last().unwrap().text, "2", "{before}");
    }
}

#[test]
fn a_held_response_is_without_the_call_behind_it() {
    let call = Call::new("a", "calculate", r#"{"expression": "1+1"}"#);
    let script = Script::new().call(call).then(Piece::Text("<response>It is 2.".into()));
    let (world, thread, _) = playing(vec![script]);
    assert_eq!(world.all::<Response>(&thread)[0].text, "It is 2.");
}

#[test]
fn a_native_call_that_is_no_json_does_not_run() {
    let call = Call::new("a", "calculate", r#"{"expression": "1+"#);
    let replies = vec![Script::new().call(call), Script::text("<response>.</response>")];
    let (world, thread, _) = playing(replies);
    assert!(world.all::<Action>(&thread).is_empty());
    assert!(world.all::<Notice>(&thread)[0].text.contains("did not run"));
}

#[test]
fn history_goes_back_as_calls_and_their_results_by_id() {
    let call = Call::new("call_1", "calculate", r#"{"expression": "6*7"}"#);
    let broken = Call::new("call_2", "calculate", r#"{"expression": "6*"#);
    let wrong = Call::new("call_3", "calculate", r#"{"formula": "6"}"#);
    let first = Script::text("<thought>So.</thought>").call(call).call(broken).call(wrong);
    let (world, thread, seen) = playing(vec![first, Script::text("<response>42</response>")]);
    let said = &seen[1].messages;
    let roles: Vec<&str> = said.iter().map(|it| it.role.as_str()).collect();
    assert_eq!(roles, ["user", "assistant", "tool", "tool", "tool"], "{said:#?}");
    assert_eq!(said[1].text, "<thought>So.</thought>");
    let calls: Vec<_> = said[1].calls.iter().map(|it| (&*it.id, &*it.arguments)).collect();
    let (sum, formula) = (r#"{"expression": "6*7"}"#, r#"{"formula": "6"}"#);
    assert_eq!(calls, [("call_1", sum), ("call_2", "{}"), ("call_3", formula)]);
    let of: Vec<_> = said[2..].iter().map(|it| it.of.as_deref().unwrap()).collect();
    assert_eq!(of, ["call_1", "call_2", "call_3"]);
    assert_eq!(said[2].text, "42");
    assert!(said[3].text.contains("did not run"), "{said:#?}");
    assert!(
        unmarked(&said[4].text).starts_with("[failed] ") && said[4].text.contains("expression")
    );
    let entries = world.entries(&thread);
    let entries: Vec<Entry> = entries.iter().map(|it| (&**it).into()).collect();
    let last = entries.last().unwrap().seq();
    assert_eq!(&recall(&entries, last).unwrap().prompt, &seen[1]);
    assert_eq!(world.replay(native(&world, Vec::new()).0, &thread).difference, None);
}

#[test]
fn an_id_is_the_providers_and_each_call_has_its_own_result() {
    let long = "a".repeat(500);
    let odd = "1\u{1}<&\" \n\u{FFFE}é->]]></tool_use>\n";
    let ids = ["call_1", "3kTz91abQ", "x", "x", &long, odd, "", "", "call_1_7"];
    let mut script = Script::new();
    for (at, id) in ids.iter().enumerate() {
        script = script.call(Call::new(*id, "calculate", format!(r#"{{"expression": "{at}+0"}}"#)));
    }
    let (world, thread, seen) = playing(vec![script, Script::text("<response>.</response>")]);
    let said = &seen[1].messages;
    let called: Vec<&str> = said[1].calls.iter().map(|it| &*it.id).collect();
    assert_eq!(called, ids);
    let told: Vec<_> = said[2..].iter().map(|it| (it.of.as_deref().unwrap(), &*it.text)).collect();
    let results = ["0", "1", "2", "3", "4", "5", "6", "7", "8"];
    assert_eq!(told, ids.into_iter().zip(results).collect::<Vec<_>>());
    let own: Vec<String> = world.all::<Action>(&thread).into_iter().map(|it| it.id).collect();
    let expected = ["call_1", "call_1_2", "x", "call_1_4", "call_1_5", "call_1_6", "call_1_7"];
    assert_eq!(own[..7], expected);
    assert_eq!(own[7..], ["call_1_8", "call_1_9"]);
    let entries = world.entries(&thread);
    let entries: Vec<Entry> = entries.iter().map(|it| (&**it).into()).collect();
    let last = entries.last().unwrap().seq();
    assert_eq!(&recall(&entries, last).unwrap().prompt, &seen[1]);
    assert_eq!(world.replay(native(&world, Vec::new()).0, &thread).difference, None);
}

#[test]
fn a_call_with_a_character_that_xml_lacks_says_why_it_did_not_run() {
    for (arguments, why) in [
        (r#"{"expression": "1+\ufffe1"}"#, "U+FFFE"),
        (r#"{"expression": "1+\u00001"}"#, "U+0000"),
        (r#"{"expression": ["\uffff"]}"#, "takes"),
        (r#"{"expression": 1, "\ufffe": 2}"#, "no property"),
        (r#"["\ufffe"]"#, "did not run"),
        (r#"{"expression": 18446744073709551616}"#, "more than 64 bits"),
    ] {
        let call = Call::new("a", "calculate", arguments);
        let replies = vec![Script::new().call(call), Script::text("<response>So.</response>")];
        let (world, thread, seen) = playing(replies);
        let told = &seen[1].messages[2].text;
        assert!(told.contains(why), "{arguments}: {told}");
        assert_eq!(world.all::<Response>(&thread)[0].text, "So.");
    }
}

#[test]
fn half_a_character_in_arguments_is_replaced() {
    let call = Call::new("a", "calculate", r#"{"expression": "1+\ud83d"}"#);
    let replies = vec![Script::new().call(call), Script::text("<response>So.</response>")];
    let (world, thread, _) = playing(replies);
    let action = world.all::<Action>(&thread).remove(0);
    assert_eq!(action.parameters.as_deref(), Some("{\"expression\":\"1+\u{FFFD}\"}"));
}

#[test]
fn in_its_last_turn_a_model_keeps_its_tools_and_is_to_call_none() {
    let (model, seen) = remembering(["<thought>First.</thought>", "It is 42."]);
    drop(play(|_| {
        let settings = Settings { dialect: Dialect::Native, max_turns: 2, ..Settings::default() };
        Agent::new("oracle", Arc::new(model)).settings(settings).peers(["calculate"])
    }));
    let seen = seen.lock().unwrap().clone();
    let told: Vec<bool> = seen.iter().map(|it| it.without_calls).collect();
    assert_eq!(told, [false, true]);
    assert!(!seen[1].tools.is_empty());
    assert_eq!(seen[0].tools, seen[1].tools);
}
