//! Transforms: feeds that show a part of their source's answer.

use pumphouse::listeners::feed::definition::Transform;
use pumphouse::listeners::feed::{Definition, Source};
use serde_json::json;

use super::world::{World, block};

const DONE: &str = "<response>Done.</response>";
const CPU: &str = "$.cpu";

fn load() -> Definition {
    Definition::on_demand("load", Source::listener("monitor").params(json!({"metrics": []})))
}

#[test]
fn a_prompt_shows_the_part_and_references_stand_for_it() {
    let line = Transform::jsonpath(CPU).template("CPU at {{ $ }} %");
    let world = World::new(&[(0, "<response>$load</response>")]);
    let came = world.ask(world.agent(&[load().transform(line)]), &["Go."]);
    assert_eq!(came.late, [block("load", "CPU at 45.2 %")]);
    assert!(came.said().ends_with(">CPU at 45.2 %</response>"), "{}", came.said());
}

#[test]
fn parameters_of_other_feeds_have_the_part() {
    let about = Source::listener("teller").params(json!({"about": "$load"}));
    let feeds =
        [load().transform(Transform::jsonpath(CPU)), Definition::on_demand("summary", about)];
    let world = World::new(&[(0, DONE)]);
    let came = world.ask(world.agent(&feeds), &["Go."]);
    assert_eq!(came.world.asked.lock().unwrap()[0].0.as_deref(), Some("45.2"));
}

#[test]
fn an_internal_source_may_have_one() {
    let counts = Definition::on_demand("turns", Source::internal("thread_statistics"));
    let line = Transform::default().template("{{ $.turns }} turns");
    let world = World::new(&[(0, DONE)]);
    let came = world.ask(world.agent(&[counts.transform(line)]), &["Go."]);
    assert_eq!(came.late, [block("turns", "0 turns")]);
}

#[test]
fn a_path_to_nothing_makes_the_feed_unavailable_and_says_why() {
    let world = World::new(&[(0, "<response>$load</response>")]);
    let none = load().transform(Transform::jsonpath("$.gpu"));
    let came = world.ask(world.agent(&[none]), &["Go."]);
    let recorded = &came.recorded("load")[0];
    assert!(recorded.contains("why=\"$.gpu leads to nothing in the answer\""), "{recorded}");
    assert!(recorded.contains("status=\"unavailable\""), "{recorded}");
    assert!(came.said().ends_with(">[load: unavailable]</response>"), "{}", came.said());
}

#[test]
fn what_is_fetched_is_the_part_too() {
    let fetch = "<action type=\"internal\" mode=\"sync\" id=\"f\">\
        {\"name\": \"fetch_context_feed\", \"parameters\": {\"id\": \"load\"}}</action>";
    let world = World::new(&[(0, fetch), (0, "<response>$f</response>")]);
    let came = world.ask(world.agent(&[load().transform(Transform::jsonpath(CPU))]), &["Go."]);
    assert!(came.said().ends_with(">45.2</response>"), "{}", came.said());
}

#[test]
fn an_agent_may_set_one() {
    let add = "<action type=\"internal\" mode=\"sync\" id=\"a\">{\"name\": \"add_context_feed\", \
        \"parameters\": {\"id\": \"said\", \"type\": \"tool\", \"transform\": {\"template\": \
        \"It says: {{ $ }}\"}, \"source\": {\"type\": \"tool\", \"name\": \"teller\"}}}</action>";
    let world = World::new(&[(0, add), (0, DONE)]).saying(&[(0, Ok("all is well"))]);
    let came = world.ask(world.agent(&[]), &["Go."]);
    assert_eq!(came.late[1], block("said", "It says: all is well"));
}

#[test]
fn an_agent_sets_no_path_that_may_lead_to_several_places() {
    let add = "<action type=\"internal\" mode=\"sync\" id=\"a\">{\"name\": \"add_context_feed\", \
        \"parameters\": {\"id\": \"said\", \"type\": \"tool\", \"transform\": {\"jsonpath\": \
        \"$[?$..a]\"}, \"source\": {\"type\": \"tool\", \"name\": \"teller\"}}}</action>";
    let change = "<action type=\"internal\" mode=\"sync\" id=\"b\">{\"name\": \
        \"update_context_feed\", \"parameters\": {\"id\": \"load\", \"transform\": \
        {\"template\": \"{{ $..* }}\"}}}</action>";
    let world = World::new(&[(0, add), (0, change), (0, DONE)]);
    let came = world.ask(world.agent(&[load()]), &["Go."]);
    let results = came.results().join(" ");
    assert!(results.contains("$[?$..a] may lead to several places"), "{results}");
    assert!(results.contains("$..* may lead to several places"), "{results}");
}

#[test]
fn an_unavailable_feed_is_unavailable_in_the_parameters_of_others_too() {
    let teller = |about: &str| Source::listener("teller").params(json!({ "about": about }));
    let number = Definition::on_demand("number", teller("a number"));
    let number = number.transform(Transform::jsonpath("$.n"));
    let feeds = [number, Definition::on_demand("summary", teller("of $number"))];
    let on = "<response final=\"false\">On.</response>";
    let world = World::new(&[(0, on), (0, DONE)]);
    let world = world.saying(&[(0, Ok("{\"n\": 7}")), (0, Ok("a")), (0, Ok("{}")), (0, Ok("b"))]);
    let came = world.ask(world.agent(&feeds), &["Go."]);
    let asked = came.world.asked.lock().unwrap();
    let asked: Vec<&str> = asked.iter().filter_map(|it| it.0.as_deref()).collect();
    assert_eq!(asked, ["a number", "of 7", "a number", "of [number: unavailable]"]);
}
