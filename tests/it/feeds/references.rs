//! References `${metadata.…}` in the parameters of feeds and in responses.

use std::time::Duration;

use pumphouse::listeners::agent::words::Response;
use pumphouse::listeners::agent_support;
use pumphouse::listeners::feed::{Definition, Source};
use pumphouse::listeners::metadata::{Field, Fields, Kind};
use pumphouse::prelude::*;
use pumphouse::sim::Disk;
use serde_json::json;

use super::world::{Broke, Came, World, block};

const DONE: &str = "<response>Done.</response>";
const WINDS: &str =
    "<metadata>{\"topic\": \"winds\"}</metadata><response final=\"false\">x</response>";

/// Asks an agent with a topic and a mood, and with this feed. The mood isn't set.
fn ask(world: &World, feeds: &[Definition]) -> Came {
    let topic = Field::new("topic", Kind::String).default("tides");
    let fields = Fields::new([topic, Field::new("mood", Kind::String)]).unwrap();
    world.ask(world.agent(feeds).metadata(fields), &["Go."])
}

fn news() -> Definition {
    let about = Source::listener("teller").params(json!({"about": "On ${metadata.topic}"}));
    Definition::on_demand("news", about).cache_ttl(Duration::from_secs(600))
}

fn asked(came: &Came) -> Vec<String> {
    let asked = came.world.asked.lock().unwrap();
    asked.iter().filter_map(|it| it.0.clone()).collect()
}

#[test]
fn content_counts_only_for_the_metadata_with_which_its_source_was_asked() {
    let mood = "<metadata>{\"mood\": \"calm\"}</metadata><response final=\"false\">x</response>";
    let world = World::new(&[(0, mood), (0, WINDS), (0, DONE)]);
    let came = ask(&world.saying(&[(0, Ok("one")), (0, Ok("two"))]), &[news()]);
    assert_eq!(asked(&came), ["On tides", "On winds"]);
    let shown = [("one", 0), ("one", 1), ("two", 2)];
    for (text, turn) in shown {
        assert!(came.late[turn].contains(&block("news", text)), "{:?}", came.late);
    }
}

#[test]
fn content_for_other_metadata_is_not_shown_where_the_source_fails() {
    let world = World::new(&[(0, WINDS), (0, DONE)]);
    let came = ask(&world.saying(&[(0, Ok("one")), (0, Err(Broke))]), &[news()]);
    let recorded = came.recorded("news");
    assert!(recorded[1].contains("status=\"unavailable\""), "{recorded:?}");
    assert!(!came.late[1].contains("one"), "{:?}", came.late);
}

#[test]
fn a_late_answer_to_a_question_with_other_metadata_is_dropped() {
    let world =
        World::new(&[(5, WINDS), (10, "<response final=\"false\">y</response>"), (0, DONE)]);
    let came = ask(&world.saying(&[(20, Ok("late")), (0, Ok("new"))]), &[news()]);
    assert_eq!(asked(&came), ["On tides", "On winds"]);
    assert!(came.late[2].contains(&block("news", "new")), "{:?}", came.late);
}

#[test]
fn a_feed_whose_parameters_have_no_value_says_so() {
    let about = Source::listener("teller").params(json!({"about": "${metadata.mood}"}));
    let came = ask(&World::new(&[(0, DONE)]), &[Definition::on_demand("news", about)]);
    let recorded = &came.recorded("news")[0];
    assert!(recorded.contains("why=\"${metadata.mood} has no value\""), "{recorded}");
    assert!(asked(&came).is_empty());
}

/// The responses to these replies.
#[track_caller]
fn check(replies: &[(u64, &'static str)], expected: &[&str]) {
    let came = ask(&World::new(replies), &[]);
    let all = came.entries.iter().filter(|it| it.name == Response::NAME);
    let read = |body: bytes::Bytes| {
        let element = Element::from_canonical(body).unwrap();
        Response::read(element.view()).unwrap().text
    };
    let said: Vec<String> = all.map(|it| read(it.body.clone())).collect();
    assert_eq!(said, expected);
}

#[test]
fn a_response_has_the_metadata_of_its_place_in_the_reply() {
    let reply = "<response final=\"false\">${metadata.topic}</response>\
        <metadata>{\"topic\": \"winds\"}</metadata>\
        <response final=\"false\">${metadata.topic}</response>\
        <metadata>{\"topic\": \"rain\"}</metadata>\
        <response>${metadata.topic}, ${metadata.mood}</response>";
    check(&[(0, reply)], &["tides", "winds", "rain, [metadata.mood: not set]"]);
    let lost = "<response>${metadata.nope}</response>";
    check(&[(0, lost), (0, lost)], &["${metadata.nope}"]);
}

#[test]
fn a_response_that_waits_keeps_the_metadata_of_its_place() {
    let reply = "<action id=\"sum\">\
        {\"name\": \"calculate\", \"parameters\": {\"expression\": \"6*7\"}}</action>\
        <response final=\"false\">$sum ${metadata.topic}</response>\
        <metadata>{\"topic\": \"rain\"}</metadata>";
    check(&[(0, reply), (0, "<response>${metadata.topic}</response>")], &["42 tides", "rain"]);
}

/// After a stop of the pump, one handling refreshes the feed `now` of the first agent and asks the
/// source of the second agent's feed `sum`, which refers to its own `now`.
#[test]
fn a_feed_refers_to_the_feed_of_its_own_agent() {
    let world = World::new(&[(100, DONE)]);
    let world = world.saying(&[(0, Ok("of ada")), (0, Ok("a sum"))]);
    let source = Source::listener("teller");
    let now = Definition::on_demand("now", source.clone()).cache_ttl(Duration::from_secs(600));
    let half_a_minute = Duration::from_secs(30);
    let sum = Definition::periodic("sum", half_a_minute, source.params(json!({"about": "$now"})));
    let clock = Definition::periodic("now", half_a_minute, Source::internal("system_clock"));
    let ada = world.agent(&[now, sum]);
    let abe = world.agent_named("abe", &[clock]);
    let (disk, sim) = (Disk::new(&world.sim), &world.sim);
    let start = || {
        let agents = (abe.clone().listener(), ada.clone().listener());
        let all = (world.listeners(), agent_support(), agents);
        pumphouse::builder().with(all).with(disk.log()).workers(1).build().unwrap().start_on(sim)
    };
    let pump = start();
    let first = sim.run(pump.tell_element(abe.ask("Go.").unwrap())).unwrap().unwrap();
    let thread = pump.in_thread(&first.thread);
    sim.run(thread.tell_element(ada.ask("Go.").unwrap())).unwrap().unwrap();
    sim.run(sim.sleep(Duration::from_secs(20))).unwrap();
    sim.crash();
    sim.run(sim.sleep(Duration::from_secs(20))).unwrap();
    let again = start();
    sim.rest().unwrap();
    drop(again);
    let asked: Vec<_> = world.asked.lock().unwrap().iter().map(|it| it.0.clone()).collect();
    assert_eq!(asked[0], None);
    assert!(asked.len() > 3, "{asked:?}");
    assert!(asked[1..].iter().all(|it| it.as_deref() == Some("of ada")), "{asked:?}");
}
