//! Failures that the seeds have found, each as the smallest test that shows it.

use std::sync::Arc;
use std::time::Duration;

use pumphouse::engine::Identity;
use pumphouse::listeners::agent::Agent;
use pumphouse::listeners::agent::settings::{FinalWithActions, Settings};
use pumphouse::listeners::agent::words::{Interrupt, Response, Stopped};
use pumphouse::model::Scripted;
use pumphouse::prelude::*;

use super::super::world::{World, play, play_within};

fn finals(world: &World, thread: &ThreadId) -> Vec<String> {
    let all = world.all::<Response>(thread).into_iter();
    all.filter(|it| it.is_final).map(|it| it.text).collect()
}

#[test]
fn who_interrupts_another_is_still_answered_where_a_question_of_theirs_waits() {
    let world = World::new(1);
    let replies = [
        r#"<action id="a">{"name": "tool", "parameters": {"what": "a", "ms": 5000}}</action>"#,
        "<response>Here I am.</response>",
    ];
    let model = world.timed(Scripted::replies(replies));
    let agent = Agent::new("oracle", Arc::new(model)).peers(["tool"]);
    let (one, two) = (agent.ask("One?").unwrap(), agent.ask("Two?").unwrap());
    let pump = world.start([agent]);
    let said_by = |name: &str| pump.speaking_as(Identity { name: name.into(), operator: true });
    let thread = world.tell(&said_by("bob"), one, Duration::from_millis(500));
    let ann = said_by("ann").in_thread(&thread);
    world.tell(&ann, two, Duration::from_millis(500));
    world.sim.run(ann.tell(Interrupt { reason: None })).unwrap().unwrap();
    world.sim.rest().unwrap();
    let story = world.story(&thread);
    let told = |line: &str| story.iter().filter(|it| *it == line).count();
    assert_eq!(told("oracle > bob: agent-stopped"), 1, "{story:#?}");
    assert_eq!(told("oracle > ann: agent-stopped"), 1, "{story:#?}");
    assert_eq!(told("oracle > ann: response"), 1, "{story:#?}");
}

#[test]
fn an_agent_without_turns_stops_once_where_a_tick_begins_its_work() {
    let (world, thread) = play_within(2, |world| {
        let replies = ["<set-timer every=\"PT1S\"/>", "<response>It is set.</response>"];
        let model = world.timed(Scripted::replies(replies));
        Agent::new("oracle", Arc::new(model)).peers(["timer"])
    });
    let story = world.story(&thread);
    assert_eq!(finals(&world, &thread), ["It is set."], "{story:#?}");
    assert_eq!(world.all::<Stopped>(&thread).len(), 1, "{story:#?}");
}

#[test]
fn a_response_waits_for_the_first_of_two_actions_of_one_name() {
    let (world, thread) = play(|world| {
        let reply = r#"<action id="a" mode="async">
{"name": "tool", "parameters": {"what": "the first", "ms": 300}}</action>
<action id="a" mode="async">{"name": "tool", "parameters": {"what": "the second"}}</action>
<response>It was $a.</response>"#;
        let settings =
            Settings { final_with_actions: FinalWithActions::Trust, ..Settings::default() };
        let model = world.timed(Scripted::replies([reply]));
        Agent::new("oracle", Arc::new(model)).settings(settings).peers(["tool"])
    });
    assert_eq!(finals(&world, &thread), ["It was the first."], "{:#?}", world.story(&thread));
}

#[test]
fn an_agent_hears_of_quiet_beside_the_timer_of_work_that_is_done() {
    let (world, thread) = play_within(5, |world| {
        let replies = [
            r#"<set-timer in="PT1S"/><set-timer every="PT1H"/>
<response>I will look again.</response>"#,
            "<report xmlns=\"urn:test\"><summary>So far</summary></report>",
            "<thought>I wait.</thought>",
            "<response>Nothing was said.</response>",
        ];
        let model = world.timed(Scripted::replies(replies));
        Agent::new("oracle", Arc::new(model)).peers(["timer", "clerk"])
    });
    let story = world.story(&thread);
    assert!(story.iter().any(|it| it == "core > oracle: nothing-under-way"), "{story:#?}");
    assert_eq!(finals(&world, &thread)[1..], ["Nothing was said."], "{story:#?}");
}

#[test]
fn a_tick_between_an_interrupt_and_the_stop_begins_no_work() {
    let replies = [
        r#"<set-timer in="PT1S"/>
<action id="a">{"name": "tool", "parameters": {"what": "a", "ms": 5000}}</action>"#,
        "<response>The timer ticked.</response>",
    ];
    let mut between = 0;
    // Whether a tick comes between depends on the seed.
    for (seed, at) in (1..=8).flat_map(|seed| (980..1020).map(move |at| (seed, at))) {
        if between > 0 && at == 980 {
            break;
        }
        let world = World::new(seed);
        let model = world.timed(Scripted::replies(replies));
        let agent = Agent::new("oracle", Arc::new(model)).peers(["timer", "tool"]);
        let question = agent.ask("One?").unwrap();
        let pump = world.start([agent]);
        let thread = world.tell(&pump, question, Duration::from_millis(at));
        let within = pump.in_thread(&thread);
        world.sim.run(within.tell(Interrupt { reason: None })).unwrap().unwrap();
        world.sim.rest().unwrap();
        let story = world.story(&thread);
        let place = |what: &str| story.iter().position(|it| it.contains(what));
        let told = [place(": interrupt"), place(": tick"), place(": agent-stopped")];
        between += u32::from(told.iter().all(Option::is_some) && told.is_sorted());
        if told[0] < told[1] {
            assert_eq!(finals(&world, &thread), Vec::<String>::new(), "{at} ms: {story:#?}");
        }
    }
    assert!(between > 0, "no tick came between");
}
