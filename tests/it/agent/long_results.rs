//! Long work: conversations of many messages, and results that are longer than a prompt should be.

use pumphouse::listeners::action::words::{ActionResult, Status};
use pumphouse::listeners::agent::recall::recall;
use pumphouse::listeners::agent::settings::Settings;
use pumphouse::listeners::agent::words::{CognitionIn, Response, Stopped};

use super::world::{World, play};
use super::*;

#[test]
fn d7_a_conversation_has_as_many_messages_as_one_likes() {
    let world = World::new(1);
    let agent = || {
        let model = Scripted::new(|_: &Prompt, _| "<response>Yes.</response>");
        Agent::new("oracle", Arc::new(model))
    };
    let pump = world.start([agent()]);
    let thread = world.tell(&pump, agent().ask("Well?").unwrap(), Duration::ZERO);
    world.sim.rest().unwrap();
    let pump = pump.in_thread(&thread);
    for _ in 0..50 {
        world.sim.run(pump.tell_element(agent().ask("And?").unwrap())).unwrap().unwrap();
        world.sim.rest().unwrap();
    }
    assert_eq!(world.all::<Response>(&thread).len(), 51);
    assert!(world.all::<Stopped>(&thread).is_empty());
    assert_eq!(world.replay(agent(), &thread).difference, None);
}

/// What an agent with a tool is shown turn by turn, whose model says these.
fn shown<const N: usize>(
    window: Option<u32>,
    replies: [&'static str; N],
) -> (World, ThreadId, Vec<Prompt>) {
    let (model, seen) = remembering(replies);
    let model = match window {
        Some(window) => model.with_window(window),
        None => model,
    };
    let agent = || Agent::new("oracle", Arc::new(model.clone())).peers(["tool"]);
    let (world, thread) = play(|_| agent());
    let seen = seen.lock().unwrap().clone();
    let entries = world.entries(&thread);
    let entries: Vec<Entry> = entries.iter().map(|it| (&**it).into()).collect();
    let turns = entries.iter().filter(|it| it.is::<CognitionIn>());
    let again: Vec<Prompt> = turns.map(|it| recall(&entries, it.seq()).unwrap().prompt).collect();
    assert!(again == seen, "a recalled prompt is another");
    assert_eq!(world.replay(agent(), &thread).difference, None);
    (world, thread, seen)
}

fn last(prompt: &Prompt) -> &str {
    &prompt.messages.last().unwrap().text
}

#[test]
fn a_prompt_shows_a_long_result_cut_and_the_log_and_its_name_have_all_of_it() {
    let (world, thread, seen) = shown(
        None,
        [
            r#"<action id="a">{"name": "tool", "parameters": {"what": "long 20000"}}</action>"#,
            "<response>$a</response>",
        ],
    );
    let result = last(&seen[1]);
    assert!(result.len() < 33 * 1_024, "{}", result.len());
    let entry = world.story(&thread).iter().position(|it| it == "action > oracle: action-result");
    let note = format!(
        "é\n[32768 of 40000 bytes are shown. For more call read-result with \
         {{\"entry\": {}, \"from\": 32768}}.]</action-result>",
        entry.unwrap() + 1
    );
    assert!(result.ends_with(&note), "{}", &result[result.len() - 200..]);
    assert_eq!(world.all::<Response>(&thread)[0].text, "é".repeat(20_000));
}

/// A call whose result is long.
const LONG: &str =
    r#"<action id="a">{"name": "tool", "parameters": {"what": "long 20000"}}</action>"#;

/// The number of the entry with the result of [`LONG`] in a world that begins with it.
fn entry_of_result() -> u64 {
    let (world, thread, _) = shown(None, [LONG, "<response>.</response>"]);
    let story = world.story(&thread);
    let at = story.iter().position(|it| it == "action > oracle: action-result");
    at.map(|it| it as u64 + 1).unwrap()
}

#[test]
fn what_a_prompt_cut_is_read_by_an_action() {
    let entry = entry_of_result();
    let reads = format!(
        r#"<action id="b">{{"name": "read-result", "parameters":
        {{"entry": {entry}, "from": 39997}}}}</action>
        <action id="c">{{"name": "read-result", "parameters":
        {{"entry": {entry}, "from": 32768, "bytes": 3}}}}</action>
        <action id="d">{{"name": "read-result", "parameters": {{"entry": 1}}}}</action>"#
    );
    let (world, thread, seen) = shown(None, [LONG, reads.leak(), "<response>.</response>"]);
    let results = last(&seen[2]);
    assert!(
        results.contains("<action-result id=\"b\" status=\"ok\">éé</action-result>"),
        "{results}"
    );
    let part = "<action-result id=\"c\" status=\"ok\">é\n\
                [Bytes 32768 to 32770 of 40000; the rest is from 32770.]</action-result>";
    assert!(results.contains(part), "{results}");
    let refused = world.all::<ActionResult>(&thread).pop().unwrap();
    assert_eq!((&*refused.id, refused.status), ("d", Status::Failed));
    assert!(results.contains("entry 1 is no result of an action of yours"), "{results}");
}

#[test]
fn a_call_for_an_item_of_a_list_reads_the_results_of_its_agent() {
    let entry = entry_of_result();
    let reads = format!(
        r#"<foreach var="n" in="[1]"><action id="b">{{"name": "read-result", "parameters":
            {{"entry": {entry}, "from": 39997}}}}</action></foreach>"#
    );
    let (model, seen) = remembering([LONG, reads.leak(), "<response>.</response>"]);
    let settings = Settings { control_flow: true, ..Settings::default() };
    play(|_| {
        let agent = Agent::new("oracle", Arc::new(model.clone())).peers(["tool"]);
        agent.settings(settings.clone())
    });
    let seen = seen.lock().unwrap();
    let told = last(&seen[2]);
    assert!(told.contains("éé") && !told.contains("is no result"), "{told}");
}

#[test]
fn d6_a_megabyte_of_output_stops_no_agent() {
    let (world, thread, seen) = shown(
        Some(4_096),
        [
            r#"<action id="a">{"name": "tool", "parameters": {"what": "long 500000"}}</action>
            <action id="b">{"name": "tool", "parameters": {"what": "long 500000"}}</action>
            <action id="c">{"name": "tool", "parameters": {"what": "long 500000"}}</action>
            <action id="d">{"name": "tool", "parameters": {"what": "long 500000"}}</action>"#,
            "<response>So.</response>",
        ],
    );
    assert!(world.all::<Stopped>(&thread).is_empty());
    assert_eq!(world.all::<Response>(&thread)[0].text, "So.");
    let told = seen[1].messages.iter().map(|it| it.text.matches("call read-result").count());
    assert!(told.sum::<usize>() > 1);
    let turns = world.all::<CognitionIn>(&thread);
    assert!(turns[1].result_bytes_max.is_some_and(|it| it <= 4_096), "{turns:?}");
}
