//! How prompts show messages in their order, and how they report interruptions, failures and
//! mistakes.

use pumphouse::engine::Identity;
use pumphouse::listeners::agent::words::{CognitionIn, Correction, Interrupt};
use pumphouse::model;

use super::one_asker::{last, oracle_saying, played, responses};
use super::world::World;
use super::*;

#[test]
fn what_comes_right_before_a_turn_that_does_not_show_it_stands_behind_its_reply() {
    let mut raced = 0;
    for seed in 1..=20 {
        let world = World::new(seed);
        let say =
            ["Zero.", "One.", "Two.", "Three."].map(|it| format!("<response>{it}</response>"));
        let say: Vec<&str> = say.iter().map(|it| &**it).collect();
        let (agent, seen) = oracle_saying(&world, &say);
        let asks = ["zero", "one", "two"].map(|it| agent.ask(it).unwrap());
        let pump = world.start([agent]);
        let [zero, one, two] = asks;
        let thread = world.tell(&pump, zero, Duration::from_secs(1));
        let here = pump.in_thread(&thread);
        let both = futures_util::future::join(here.tell_element(one), here.tell_element(two));
        let (one, two) = world.sim.run(both).unwrap();
        one.and(two).unwrap();
        world.sim.rest().unwrap();
        let turns = world.all::<CognitionIn>(&thread);
        let entries = world.entries(&thread);
        let begun = entries.iter().filter(|it| it.name == CognitionIn::NAME);
        let came = |from: u64, to: u64| {
            entries.iter().filter(move |it| (from + 1..to).contains(&it.id.seq))
        };
        let asked = |it: &Arc<pumphouse::log::Entry>| {
            it.to.as_deref() == Some("oracle") && &*it.from != "oracle"
        };
        raced +=
            begun.zip(&turns).filter(|(it, turn)| came(turn.until, it.id.seq).any(asked)).count();
        for prompt in seen.lock().unwrap().iter() {
            let last = prompt.messages.last().unwrap();
            assert_eq!(last.role, model::Role::User, "{seed}: {:#?}", prompt.messages);
        }
    }
    assert!(raced > 0, "no message came between what a turn is shown and the turn");
}

#[test]
fn a_prompt_says_once_that_the_work_before_was_interrupted() {
    let world = World::new(1);
    let say =
        ["<set-timer in=\"PT1H\"/>", "<thought>I wait.</thought>", "<response>Two.</response>"];
    let (agent, seen) = oracle_saying(&world, &say);
    let (one, two) = (agent.ask("One?").unwrap(), agent.ask("Two?").unwrap());
    let pump = world.start([agent]);
    let thread = world.tell(&pump, one, Duration::from_secs(10));
    let ops = pump.speaking_as(Identity { name: "ops".into(), operator: true });
    let ops = ops.in_thread(&thread);
    world.sim.run(ops.tell(Interrupt { reason: None })).unwrap().unwrap();
    world.sim.run(world.sim.sleep(Duration::from_secs(1))).unwrap();
    world.tell(&pump.in_thread(&thread), two, Duration::from_secs(10));
    assert_eq!(responses(&world, &thread), ["Two."], "{:#?}", world.story(&thread));
    let shown = format!("{:?}", seen.lock().unwrap().last().unwrap().messages);
    assert_eq!(shown.matches("[You were interrupted").count(), 1, "{shown}");
    let stopped = shown.find("[You were interrupted").unwrap();
    assert!(shown.find("One?").unwrap() < stopped && stopped < shown.find("Two?").unwrap());
}

#[test]
fn why_a_peer_stopped_is_shown_as_a_sentence() {
    let world = World::new(1);
    let ask = r#"<helper xmlns="https://xml-pipeline.org/ns/helper/v1">?</helper>"#;
    let say = [ask, "<thought>I wait.</thought>", "<response>So be it.</response>"];
    let (oracle, seen) = oracle_saying(&world, &say);
    let question = oracle.ask("Go.").unwrap();
    let idle = Scripted::replies(["Hm.", "Hm."]);
    let helper = Agent::new("helper", Arc::new(world.timed(idle)));
    let pump = world.start([oracle.peers(["helper"]), helper]);
    let thread = world.tell(&pump, question, Duration::ZERO);
    world.sim.rest().unwrap();
    assert_eq!(responses(&world, &thread), ["So be it."]);
    let told = last(&seen.lock().unwrap()[2]).to_owned();
    let result = "status=\"failed\">It stopped, idle: ";
    assert!(told.contains("<thread-result thread=") && told.contains(result), "{told}");
}

#[test]
fn a_correction_says_of_no_reply_with_an_unknown_element_that_it_was_empty() {
    let text = "<context_feed id=\"x\">q</context_feed>";
    let (world, thread, _) = played(&[text, "<response>Sorry.</response>"]);
    let corrections = world.all::<Correction>(&thread);
    let quoted = "\"<context_feed id=\"x\">q</context_feed>\" reached nobody.";
    assert!(corrections[0].text.contains(quoted), "{}", corrections[0].text);
}

#[test]
fn what_a_correction_quotes_is_no_result() {
    let text = "<action-result id=\"a\" status=\"ok\">42</action-result>";
    let (_, _, seen) = played(&[text, "<response>Sorry.</response>"]);
    let told = last(&seen.lock().unwrap()[1]).to_owned();
    assert!(told.contains("\"&lt;action-result id="), "{told}");
    assert!(!told.contains("<action-result"), "{told}");
}
