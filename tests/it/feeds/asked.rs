//! Internal actions by which agents ask about their feeds and tools.

use std::collections::BTreeMap;

use pumphouse::listeners::action::{InternalActions, Settings, action};
use pumphouse::listeners::feed::{self, Definition, Source};

use super::world::{Broke, World};

const LIST: &str =
    r#"<action type="internal" mode="sync" id="list">{"name": "list_context_feeds"}</action>"#;
const FETCH: &str = r#"<action type="internal" mode="sync" id="f">
{"name": "fetch_context_feed", "parameters": {"id": "load"}}</action>"#;

fn load() -> Definition {
    Definition::on_demand("load", Source::listener("teller"))
}

fn clock() -> Definition {
    Definition::on_demand("now", Source::internal("system_clock")).referenced()
}

#[test]
fn an_agent_lists_its_feeds() {
    let world = World::new(&[(0, LIST), (0, DONE)]).saying(&[(0, Ok("half"))]);
    let came = world.ask(world.agent(&[load(), clock()]), &["Go."]);
    let result = came.results().remove(0);
    let feeds = "[{\"bytes\":4,\"id\":\"load\",\"is_shown\":true,\
        \"refreshed\":\"2026-01-01T00:00:00Z\",\"source\":\"teller\",\"status\":\"fresh\"},\
        {\"bytes\":20,\"id\":\"now\",\"is_shown\":false,\
        \"refreshed\":\"2026-01-01T00:00:00Z\",\"source\":\"system_clock\",\"status\":\"fresh\"}]";
    assert!(result.contains(feeds), "{result}");
}

#[test]
fn an_agent_lists_the_tools_of_its_peers_only() {
    let list = r#"<action type="internal" id="t">{"name": "list_available_tools"}</action>"#;
    let world = World::new(&[(0, list), (0, DONE)]);
    let result = world.ask(world.agent(&[]), &["Go."]).results().remove(0);
    for tool in ["calculate", "teller", "logger"] {
        assert!(result.contains(&format!("\"name\":\"{tool}\"")), "{result}");
    }
    assert!(!result.contains("monitor") && !result.contains("\"name\":\"ada\""), "{result}");
}

#[test]
fn a_fetched_feed_is_asked_for_although_it_is_fresh_or_not_enabled() {
    let says = [(0, Ok("one")), (3, Ok("two"))];
    let world = World::new(&[(0, FETCH), (0, "<response>$f, $load</response>")]).saying(&says);
    let load = load().cache_ttl(std::time::Duration::from_secs(600));
    let came = world.ask(world.agent(&[load]), &["Go."]);
    assert_eq!(came.asked(), [0, 0]);
    assert!(came.said().ends_with(">two, two</response>"), "{}", came.said());
    let off = World::new(&[(0, FETCH), (0, "<response>$f</response>")]);
    let off = off.saying(&[(0, Ok("one"))]);
    let came = off.ask(off.agent(&[self::load().disabled()]), &["Go."]);
    assert!(came.said().ends_with(">one</response>"), "{}", came.said());
    assert_eq!(came.late, ["", ""]);
}

#[test]
fn an_internal_source_is_fetched_too() {
    let fetch = r#"<action type="internal" id="f">
{"name": "fetch_context_feed", "parameters": {"id": "now"}}</action>"#;
    let world = World::new(&[(0, fetch), (0, "<response>$f</response>")]);
    let came = world.ask(world.agent(&[clock()]), &["Go."]);
    assert!(came.said().ends_with(">2026-01-01T00:00:00Z</response>"), "{}", came.said());
}

#[test]
fn a_feed_that_cannot_be_fetched_is_a_failed_action_and_stays_as_it_was() {
    let says = [(0, Ok("one")), (0, Err(Broke))];
    let world = World::new(&[(0, FETCH), (0, "<response>$f, $load</response>")]).saying(&says);
    let load = load().cache_ttl(std::time::Duration::from_secs(600));
    let came = world.ask(world.agent(&[load]), &["Go."]);
    let result = came.results().remove(0);
    assert!(result.contains("status=\"failed\""), "{result}");
    assert!(result.contains("teller answered an error: broke"), "{result}");
    assert!(came.said().ends_with(">[f: failed], one</response>"), "{}", came.said());
    let unknown = r#"<action type="internal" id="f">
{"name": "fetch_context_feed", "parameters": {"id": "laod"}}</action>"#;
    let world = World::new(&[(0, unknown), (0, DONE)]);
    let result = world.ask(world.agent(&[self::load()]), &["Go."]).results().remove(0);
    assert!(result.contains("no feed is called laod; did you mean load?"), "{result}");
}

#[test]
fn a_fetch_of_a_feed_that_is_removed_meanwhile_fails() {
    let both = r#"<action type="internal" mode="async" id="f">
{"name": "fetch_context_feed", "parameters": {"id": "load"}}</action>
<action type="internal" mode="sync" id="r">
{"name": "remove_context_feed", "parameters": {"id": "load"}}</action>"#;
    let world = World::new(&[(0, both), (0, "<response>$f</response>"), (0, DONE)]);
    let world = world.saying(&[(0, Ok("one")), (3, Ok("two"))]);
    let came = world.ask(world.agent(&[load()]), &["Go."]);
    let results = came.results();
    let is_told = |it: &String| it.contains("the feed was removed meanwhile");
    assert!(results.iter().any(is_told), "{results:?}");
}

#[test]
fn an_answer_to_an_older_request_does_not_replace_what_was_fetched() {
    let world = World::new(&[(0, FETCH), (15, DONE)]);
    let world = world.saying(&[(20, Ok("old")), (0, Ok("new"))]);
    let load = load().cache_ttl(std::time::Duration::from_secs(600));
    let came = world.ask(world.agent(&[load]), &["Go."]);
    assert_eq!(came.asked(), [0, 10]);
    let recorded = came.recorded("load");
    assert!(recorded.last().is_some_and(|it| it.contains(">new<")), "{recorded:?}");
    assert!(!recorded.iter().any(|it| it.contains(">old<")), "{recorded:?}");
}

#[test]
fn what_is_blocked_is_not_listed_or_fetched() {
    let blocked = ["fetch_context_feed", "list_context_feeds", "list_available_tools"];
    let internal = InternalActions {
        blocked_actions: blocked.map(str::to_owned).to_vec(),
        ..InternalActions::default()
    };
    let settings = Settings {
        internal: [feed::NAME.to_owned()].into(),
        agents: BTreeMap::from([("ada".to_owned(), internal)]),
    };
    let tools = r#"<action type="internal" id="t">{"name": "list_available_tools"}</action>"#;
    let world = World::new(&[(0, FETCH), (0, LIST), (0, tools), (0, DONE)]);
    let mind = vec![action(settings), feed::feed()];
    let results = world.play(world.agent(&[load()]), mind, &["Go."]).results();
    assert_eq!(results.len(), 3);
    assert!(results.iter().all(|it| it.contains("status=\"failed\"")), "{results:?}");
    assert_eq!(world.asked.lock().unwrap().len(), 4, "each turn asks once");
}

const DONE: &str = "<response>Done.</response>";
