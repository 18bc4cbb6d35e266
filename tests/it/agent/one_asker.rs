//! An agent works for one asker at a time: what an answer waits for, when the agent continues, and
//! which sender gets the answer.

use pumphouse::engine::Identity;
use pumphouse::listeners::action::words::{ActionResult, Status};
use pumphouse::listeners::agent::settings::{Calls, Settings};
use pumphouse::listeners::agent::words::{
    CognitionIn, CognitionOut, Correction, Interrupt, Notice, Response, Stopped,
};
use pumphouse::listeners::timer::{ClearTimer, Tick, TimerSet};
use pumphouse::model;
use pumphouse::wire::core::{NothingUnderWay, ThreadSpawned};

use super::world::World;
use super::*;

const MS: Duration = Duration::from_millis(1);

/// What the model was shown, turn by turn.
pub(super) type Seen = Arc<std::sync::Mutex<Vec<Prompt>>>;

/// An agent that says these, turn by turn, and what its model was shown.
pub(super) fn oracle_saying(world: &World, replies: &[&str]) -> (Agent, Seen) {
    let (seen, replies) = (Seen::default(), replies.iter().map(|it| (*it).to_owned()));
    let (kept, replies) = (seen.clone(), replies.collect::<Vec<String>>());
    let model = Scripted::new(move |prompt: &Prompt, turn| {
        kept.lock().unwrap().push(prompt.clone());
        let at = usize::try_from(turn).unwrap() - 1;
        replies.get(at).cloned().unwrap_or_else(|| "<response>Too many turns.</response>".into())
    });
    let peers = ["calculate", "tool", "clerk", "timer", "todo", "thread"];
    (Agent::new("oracle", Arc::new(world.timed(model))).peers(peers), seen)
}

/// Asks an agent that says these, and lets everything come to rest.
pub(super) fn played(replies: &[&str]) -> (World, ThreadId, Seen) {
    let world = World::new(1);
    let (agent, seen) = oracle_saying(&world, replies);
    let question = agent.ask("Go.").unwrap();
    let pump = world.start([agent]);
    let thread = world.tell(&pump, question, Duration::ZERO);
    world.sim.rest().unwrap();
    (world, thread, seen)
}

pub(super) fn responses(world: &World, thread: &ThreadId) -> Vec<String> {
    world.all::<Response>(thread).into_iter().map(|it| it.text).collect()
}

fn turns(world: &World, thread: &ThreadId) -> usize {
    world.all::<CognitionIn>(thread).len()
}

pub(super) fn last(prompt: &Prompt) -> &str {
    &prompt.messages.last().unwrap().text
}

/// An action that the tool takes so many milliseconds for.
pub(crate) fn tool(id: &str, mode: &str, ms: u64) -> String {
    format!(
        "<action id=\"{id}\" mode=\"{mode}\">{{\"name\": \"tool\", \
         \"parameters\": {{\"what\": \"{id} is done\", \"ms\": {ms}}}}}</action>"
    )
}

#[test]
fn a_malformed_action_counts_as_a_failed_one_of_its_turn() {
    let broken = r#"<action id="w">{"name": "tool", "parameters": {"what": "x"},}</action>"#;
    let (world, thread, seen) = played(&[
        &format!("{broken}<response>Saved: ${{w}}</response>"),
        "<response>No.</response>",
    ]);
    assert_eq!(responses(&world, &thread), ["No."]);
    let told = last(&seen.lock().unwrap()[1]).to_owned();
    assert!(told.contains("w did not run") || told.contains("<action> did not run"), "{told}");
    assert!(told.contains("Your response was not delivered: w failed"), "{told}");
    let kept = world.all::<Notice>(&thread).into_iter().find_map(|it| it.response);
    assert_eq!(kept.as_deref(), Some("Saved: ${w}"));
}

#[test]
fn an_action_that_is_spoken_of_is_no_failure() {
    let (world, thread, _) = played(&["<response>Begin an <action>.</response>"]);
    assert_eq!(responses(&world, &thread), ["Begin an <action>."]);
    let (world, thread, _) =
        played(&["To act, write <action>name</action>.\n<response>So.</response>"]);
    assert_eq!(responses(&world, &thread), ["So."]);
    assert_eq!(world.all::<Notice>(&thread), []);
}

#[test]
fn a_partial_response_comes_after_the_sync_action_before_it() {
    let one = tool("patterns", "sync", 2_000);
    let reply = format!("{one}<response final=\"false\">Found: $patterns</response><thought/>");
    let (world, thread, _) = played(&[&reply, "<response>All.</response>"]);
    assert_eq!(responses(&world, &thread), ["Found: patterns is done", "All."]);
    let story = world.story(&thread);
    let result = story.iter().position(|it| it == "action > oracle: action-result");
    assert!(result < story.iter().position(|it| it == "oracle > console: response"), "{story:#?}");
}

#[test]
fn a_response_waits_for_the_unfinished_actions_that_it_names_of_any_turn() {
    let begin = tool("slow", "async", 3_000);
    let (world, thread, _) = played(&[
        &begin,
        "<response final=\"false\">Wait.</response>",
        "<response>Got ${slow}.</response>",
    ]);
    // The second turn leaves it asleep until the result is there.
    assert_eq!(responses(&world, &thread), ["Wait.", "Got slow is done."]);
    let begun = tool("log", "fire_and_forget", 1_000);
    let (world, thread, _) = played(&[&format!("{begun}<response>$log</response>")]);
    assert_eq!(responses(&world, &thread), ["log is done"]);
}

#[test]
fn a_final_response_is_held_for_the_actions_of_earlier_turns() {
    let all = tool("q1", "async", 4_000) + &tool("q2", "async", 500);
    let (world, thread, seen) = played(&[&all, "<response>1: ${q1} 2: ${q2}</response>"]);
    assert_eq!(responses(&world, &thread), ["1: q1 is done 2: q2 is done"]);
    assert_eq!((turns(&world, &thread), seen.lock().unwrap().len()), (2, 2));
}

#[test]
fn a_failure_that_the_model_was_not_shown_counts_against_its_answer() {
    let fails = r#"<action id="sum" mode="async">
{"name": "calculate", "parameters": {"expression": "1/0"}}</action>"#;
    let reply = format!("{fails}<response>It is ${{sum}}.</response>");
    let (world, thread, seen) = played(&[&reply, "<response>It can't be said: $sum</response>"]);
    // The second answer was written by a model that knew of it.
    assert_eq!(responses(&world, &thread), ["It can't be said: [sum: failed]"]);
    let told = last(&seen.lock().unwrap()[1]).to_owned();
    assert!(told.contains("Your response was not delivered: sum failed"), "{told}");
    let skips = fails.replace("}}</action>", "}, \"on_error\": \"skip\"}</action>");
    let (world, thread, _) = played(&[&format!("{skips}<response>Fine.</response>")]);
    assert_eq!(responses(&world, &thread), ["Fine."]);
}

/// Two identities in one thread of an agent that says these: the second asks so much later.
fn two(replies: &[&str], after: Duration) -> (World, ThreadId, Seen, [String; 2]) {
    let world = World::new(1);
    let (agent, seen) = oracle_saying(&world, replies);
    let (one, two) = (agent.ask("One?").unwrap(), agent.ask("Two?").unwrap());
    let pump = world.start([agent]);
    let bob = pump.speaking_as(Identity { name: "bob".into(), operator: true });
    let second = async {
        world.sim.sleep(after).await;
        let thread = world.disk.kept().threads(None, 1).await.unwrap().remove(0).id.clone();
        (thread.clone(), bob.in_thread(&thread).ask_element(two).await)
    };
    let asked = futures_util::future::join(pump.ask_element(one), second);
    let (one, (thread, two)) = world.sim.run(asked).unwrap();
    let told = |it: Result<Entry, AskError>| {
        let it = it.unwrap();
        let stopped = || it.decode::<Stopped>().map(|it| it.reason);
        it.decode::<Response>().map(|it| it.text).or_else(|_| stopped()).unwrap()
    };
    world.sim.rest().unwrap();
    (world, thread, seen, [told(one), told(two)])
}

#[test]
fn a_message_of_somebody_else_waits_until_the_work_at_hand_is_done() {
    let act = tool("c", "sync", 300) + "<response>For A: ${c}.</response>";
    let (world, thread, seen, heard) = two(&[&act, "<response>For B.</response>"], 50 * MS);
    assert_eq!(heard, ["For A: c is done.", "For B."]);
    let seen = seen.lock().unwrap();
    assert!(!format!("{:?}", seen[0].messages).contains("Two?"));
    assert!(last(&seen[1]).contains("Two?"), "{:?}", seen[1].messages);
    let story = world.story(&thread);
    assert!(story.contains(&"oracle > bob: response".to_owned()), "{story:#?}");
}

#[test]
fn the_prompt_shows_a_message_where_the_turn_stands_that_shows_it() {
    let act = tool("c", "sync", 300);
    let replies = [
        &*act,
        "<thought>Hm.</thought><oracle/>",
        "<response>A.</response>",
        "<response>B.</response>",
    ];
    let (_, _, seen, heard) = two(&replies, 50 * MS);
    assert_eq!(heard, ["A.", "B."]);
    let seen = seen.lock().unwrap();
    let texts: Vec<String> = seen.iter().map(|it| format!("{:?}", it.messages)).collect();
    assert!(texts[..3].iter().all(|it| !it.contains("Two?")), "{texts:#?}");
    let answered = texts[3].find("<response>A.</response>").unwrap();
    assert!(texts[3].find("Two?").unwrap() > answered, "{}", texts[3]);
}

#[test]
fn a_message_of_the_same_asker_withdraws_the_answer_that_is_held() {
    let world = World::new(1);
    let act = tool("c", "async", 1_000) + "<response>First: ${c}.</response>";
    let (agent, seen) = oracle_saying(&world, &[&act, "<response>Both: ${c}.</response>"]);
    let (one, two) = (agent.ask("One?").unwrap(), agent.ask("Two?").unwrap());
    let pump = world.start([agent]);
    let thread = world.tell(&pump, one, 500 * MS);
    world.sim.run(pump.in_thread(&thread).tell_element(two)).unwrap().unwrap();
    world.sim.rest().unwrap();
    assert_eq!(responses(&world, &thread), ["Both: c is done."]);
    let told = last(&seen.lock().unwrap()[1]).to_owned();
    assert!(told.contains("console has sent another message") && told.contains("Two?"), "{told}");
}

#[test]
fn d10_an_interrupt_answers_its_sender_and_the_asker() {
    let world = World::new(1);
    let (agent, _) = oracle_saying(&world, &[&tool("hang", "sync", 100_000)]);
    let question = agent.ask("One?").unwrap();
    let pump = world.start([agent]);
    let bob = pump.speaking_as(Identity { name: "bob".into(), operator: true });
    let second = async {
        world.sim.sleep(50 * MS).await;
        let thread = world.disk.kept().threads(None, 1).await.unwrap().remove(0).id.clone();
        bob.in_thread(&thread).ask::<Stopped>(Interrupt { reason: None }).await
    };
    let asked = futures_util::future::join(pump.ask_element(question), second);
    let (one, two) = world.sim.run(asked).unwrap();
    assert_eq!(one.unwrap().decode::<Stopped>().unwrap().reason, "interrupted");
    assert_eq!(two.unwrap().reason, "interrupted");
    assert!(world.ms() < 1_000, "{}", world.ms());
}

#[test]
fn an_agent_with_something_under_way_sleeps_until_there_is_news() {
    let wait = "<response final=\"false\">Still waiting.</response>";
    let (world, thread, _) =
        played(&[&tool("slow", "async", 4_000), wait, "<response>${slow}</response>"]);
    assert_eq!(responses(&world, &thread), ["Still waiting.", "slow is done"]);
    assert_eq!(turns(&world, &thread), 3);
}

#[test]
fn an_agent_waits_for_its_timer() {
    let (world, thread, _) = played(&[
        "<set-timer in=\"PT5S\" note=\"now\"/>",
        "<thought>Nothing to do until then.</thought>",
        "<response>It ticked.</response>",
    ]);
    assert_eq!(responses(&world, &thread), ["It ticked."]);
    assert_eq!((turns(&world, &thread), world.all::<Tick>(&thread).len()), (3, 1));
    assert_eq!(world.all::<Stopped>(&thread), []);
}

#[test]
fn an_agent_that_waits_for_its_own_timer_is_not_told_that_nothing_is_under_way() {
    for timer in ["in=\"PT5S\"", "every=\"PT5S\""] {
        let world = World::new(1);
        let (agent, _) = oracle_saying(
            &world,
            &[
                &format!("<set-timer {timer}/>"),
                "<thought>Nothing to do until then.</thought>",
                "<response>It ticked.</response>",
            ],
        );
        let question = agent.ask("Well?").unwrap();
        let pump = world.start([agent]);
        let thread = world.tell(&pump, question, Duration::from_secs(8));
        assert_eq!(responses(&world, &thread), ["It ticked."], "{timer}");
        assert_eq!(world.all::<NothingUnderWay>(&thread), [], "{:#?}", world.story(&thread));
    }
}

#[test]
fn an_agent_whose_timer_an_operator_takes_back_is_told_that_nothing_is_under_way() {
    let world = World::new(1);
    let (agent, _) = oracle_saying(
        &world,
        &[
            "<set-timer in=\"PT1H\"/>",
            "<thought>Nothing to do until then.</thought>",
            "<response>Somebody took my timer back.</response>",
        ],
    );
    let question = agent.ask("Well?").unwrap();
    let pump = world.start([agent]);
    let thread = world.tell(&pump, question, Duration::from_secs(60));
    assert_eq!(world.all::<NothingUnderWay>(&thread), [], "{:#?}", world.story(&thread));
    let [TimerSet { timer, .. }] = world.all::<TimerSet>(&thread)[..] else { panic!("no timer") };
    let console = pump.in_thread(&thread);
    world.sim.run(console.tell(ClearTimer { timer })).unwrap().unwrap();
    world.sim.run(world.sim.sleep(Duration::from_secs(60))).unwrap();
    assert_eq!(world.all::<NothingUnderWay>(&thread).len(), 1, "{:#?}", world.story(&thread));
    assert_eq!(responses(&world, &thread), ["Somebody took my timer back."]);
}

#[test]
fn an_agent_whose_peer_answers_nothing_is_told_so() {
    let (world, thread, seen) = played(&[
        "<report><summary>All well.</summary></report>",
        "<thought>I wait for the clerk.</thought>",
        "<response>Nobody answers.</response>",
    ]);
    assert_eq!(responses(&world, &thread), ["Nobody answers."]);
    assert!(world.all::<NothingUnderWay>(&thread).len() <= 1);
    let told = last(&seen.lock().unwrap()[2]).to_owned();
    assert!(!told.contains("nobody"), "{told}");
}

#[test]
fn thoughts_and_metadata_alone_are_not_idle() {
    let think = "<thought>Hm.</thought>";
    let (world, thread, _) = played(&[think, think, think, "<response>Now.</response>"]);
    assert_eq!(responses(&world, &thread), ["Now."]);
    assert_eq!(world.all::<Correction>(&thread), []);
}

#[test]
fn text_outside_is_quoted_in_its_correction() {
    let text = "I will now look at this, and then at that, for a long while.";
    let (world, thread, _) = played(&[text, text]);
    let corrections = world.all::<Correction>(&thread);
    let quoted = "\"I will now look at this, and then at tha…\" reached nobody";
    assert!(corrections[0].text.contains(quoted), "{}", corrections[0].text);
    assert_eq!(world.all::<Stopped>(&thread)[0].reason, "idle");
}

#[test]
fn news_makes_the_count_of_idle_turns_begin_anew() {
    let act = tool("a", "async", 500) + &tool("b", "async", 1_500);
    let (world, thread, _) =
        played(&[&act, "Waiting.", "Still waiting.", "<response>$a $b</response>"]);
    assert_eq!(responses(&world, &thread), ["a is done b is done"]);
    assert_eq!(world.all::<Stopped>(&thread), []);
}

#[test]
fn d12_a_tick_after_the_answer_begins_new_work_for_the_same_asker() {
    let (world, thread, _) = played(&[
        "<set-timer in=\"PT60S\"/><response>I remind you.</response>",
        "<response>Now.</response>",
    ]);
    assert_eq!(responses(&world, &thread), ["I remind you.", "Now."]);
    let story = world.story(&thread);
    assert_eq!(story.iter().filter(|it| *it == "oracle > console: response").count(), 2);
}

#[test]
fn late_results_of_finished_work_wake_nobody_and_are_shown_next() {
    let world = World::new(1);
    let settings = Settings { max_turns: 9, ..Settings::default() };
    let act = tool("log", "fire_and_forget", 2_000) + "<response>Done.</response>";
    let (agent, seen) = oracle_saying(&world, &[&act, "<response>Two.</response>"]);
    let (agent, again) = (agent.settings(settings), agent_question());
    let question = agent.ask("One?").unwrap();
    let pump = world.start([agent]);
    let thread = world.tell(&pump, question, Duration::from_secs(5));
    assert_eq!(turns(&world, &thread), 1);
    world.sim.run(pump.in_thread(&thread).tell_element(again)).unwrap().unwrap();
    world.sim.rest().unwrap();
    assert_eq!(responses(&world, &thread), ["Done.", "Two."]);
    let told = format!("{:?}", seen.lock().unwrap()[1].messages);
    assert!(told.contains("log is done") && told.contains("late"), "{told}");
}

fn agent_question() -> Element {
    pumphouse::listeners::agent::ask("oracle", "And now?").unwrap()
}

#[test]
fn two_agents_that_ask_each_other_in_one_thread_come_to_an_end() {
    let world = World::new(1);
    let same = || Settings { agent_calls: Calls::SameThread, ..Settings::default() };
    let ada = Scripted::new(move |prompt: &Prompt, turn| {
        let is_asked_back = prompt.messages[0].text.contains("And you?");
        match turn {
            1 if !is_asked_back => ask("bob"),
            _ if is_asked_back => "<response>I am well.</response>".to_owned(),
            _ => "<response>Bob says: ${q}</response>".to_owned(),
        }
    });
    let bob = Scripted::replies([ask("ada"), "<response>Ada said: ${q}</response>".to_owned()]);
    let agents = [
        Agent::new("ada", Arc::new(world.timed(ada))).peers(["bob"]).settings(same()),
        Agent::new("bob", Arc::new(world.timed(bob))).peers(["ada"]).settings(same()),
    ];
    let question = agents[0].ask("How is Bob?").unwrap();
    let pump = world.start(agents);
    let thread = world.tell(&pump, question, Duration::ZERO);
    world.sim.rest().unwrap();
    let heard: Vec<String> = responses(&world, &thread);
    assert_eq!(
        heard.last().unwrap(),
        "Bob says: Ada said: I am well.",
        "{:#?}",
        world.story(&thread)
    );
    assert_eq!(world.all::<ThreadSpawned>(&thread).len(), 1);
}

/// An action that asks an agent.
fn ask(whom: &str) -> String {
    format!(
        "<action type=\"agent\" id=\"q\">{{\"name\": \"{whom}\", \
         \"parameters\": {{\"text\": \"And you?\"}}}}</action>"
    )
}

#[test]
fn a_sub_agent_that_stopped_is_a_failure_of_its_action_and_of_its_thread() {
    let world = World::new(1);
    let broken = Scripted::replies(["nothing", "at all"]);
    let call = r#"<action type="agent" id="h">
{"name": "helper", "parameters": {"text": "?"}}</action>
<response>The helper says: ${h}</response>"#;
    let (oracle, seen) = oracle_saying(&world, &[call, "<response>It failed.</response>"]);
    let oracle = oracle.peers(["helper"]);
    let question = oracle.ask("Go.").unwrap();
    let helper = Agent::new("helper", Arc::new(world.timed(broken)));
    let pump = world.start([oracle, helper]);
    let thread = world.tell(&pump, question, Duration::ZERO);
    world.sim.rest().unwrap();
    assert_eq!(responses(&world, &thread), ["It failed."]);
    let result = world.all::<ActionResult>(&thread).remove(0);
    assert_eq!(result.status, Status::Failed, "{result:?}");
    let story = world.story(&thread);
    assert!(story.iter().any(|it| it.ends_with(": thread-result")), "{story:#?}");
    let told = last(&seen.lock().unwrap()[1]).to_owned();
    assert!(told.contains("h failed"), "{told}");
    // The way to the result leads through the thread in which it failed.
    let result = world.entries(&thread).into_iter().find(|it| it.name == ActionResult::NAME);
    let (result, kept) = (result.unwrap(), world.disk.kept());
    let way = pumphouse::audit::why(kept, &result.id);
    let way = world.sim.run(way).unwrap().unwrap().unwrap();
    let below: Vec<&str> = way
        .iter()
        .filter(|it| it.entry.id.thread != thread)
        .map(|it| it.entry.name.local())
        .collect();
    assert_eq!(below.first(), Some(&"helper"), "{below:?}");
    assert_eq!(below.last(), Some(&"agent-stopped"), "{below:?}");
}

/// The turns of an agent whose model fails so, which the asker is told of.
fn turns_of_failing(kind: model::Kind, text: &'static str) -> usize {
    let world = World::new(1);
    let model = Scripted::new(move |_: &Prompt, _| {
        Script::text("").fails_with(0, model::Error::new(kind, text))
    });
    let agent = Agent::new("oracle", Arc::new(world.timed(model)));
    let question = agent.ask("Go.").unwrap();
    let pump = world.start([agent]);
    let thread = world.tell(&pump, question, Duration::ZERO);
    world.sim.rest().unwrap();
    let stopped = world.all::<Stopped>(&thread).remove(0);
    assert!(stopped.reason == "model" && stopped.text.contains(text), "{stopped:?}");
    world.all::<CognitionOut>(&thread).len()
}

#[test]
fn the_cause_of_a_models_failure_reaches_the_asker() {
    assert_eq!(turns_of_failing(model::Kind::Failed, "503: too much to do"), 3);
}

#[test]
fn a_provider_that_refuses_is_not_asked_again() {
    assert_eq!(turns_of_failing(model::Kind::Refused, "401: no key"), 1);
}

/// Scenes whose answers don't depend on where the machine stops.
pub(crate) fn scenes() -> Vec<Vec<String>> {
    let text = |it: &str| it.to_owned();
    let last = text("<response>Too late.</response>");
    vec![
        vec![
            tool("a", "async", 20)
                + &tool("b", "sync", 10)
                + "<response final=\"false\">$a</response>",
            text("<response>$a, $b</response>"),
        ],
        vec![
            tool("patterns", "sync", 30) + "<response final=\"false\">Found: $patterns</response>",
            text("<response>All.</response>"),
        ],
        vec![
            tool("q1", "async", 40) + &tool("q2", "async", 5),
            text("<response>1: ${q1} 2: ${q2}</response>"),
        ],
        vec![
            text("<action id=\"w\">{\"name\": \"tool\",}</action><response>Saved: ${w}</response>"),
            text("<response>Not saved: ${w}</response>"),
        ],
        vec![
            text("<set-timer in=\"PT0.05S\"/>"),
            text("<thought>Nothing to do until then.</thought>"),
            text("<response>It ticked.</response>"),
            last.clone(),
        ],
        vec![
            text("<report><summary>All well.</summary></report>"),
            text("<thought>I wait.</thought>"),
            text("<response>Nobody answers.</response>"),
            last,
        ],
    ]
}

#[test]
fn a_stop_at_any_entry_changes_no_answer() {
    for replies in scenes() {
        let replies: Vec<&str> = replies.iter().map(String::as_str).collect();
        let (world, thread, _) = played(&replies);
        let (expected, entries) = (responses(&world, &thread), world.entries(&thread).len());
        for stop in 1..=entries {
            let world = World::new(1);
            let (agent, _) = oracle_saying(&world, &replies);
            let question = agent.ask("Go.").unwrap();
            let pump = world.start([agent]);
            let thread = world.tell(&pump, question, Duration::ZERO);
            while world.entries(&thread).len() < stop {
                world.sim.run(world.sim.sleep(Duration::from_micros(300))).unwrap();
            }
            world.sim.crash();
            drop(pump);
            let _pump = world.start([oracle_saying(&world, &replies).0]);
            world.sim.rest().unwrap();
            let at = format!("{stop} of {replies:?}: {:#?}", world.story(&thread));
            assert_eq!(responses(&world, &thread), expected, "{at}");
        }
    }
}
