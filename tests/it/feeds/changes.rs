//! Internal actions by which agents change their feeds.

use std::collections::BTreeMap;
use std::time::Duration;

use pumphouse::listeners::action::{InternalActions, Settings, action};
use pumphouse::listeners::agent::settings as agents;
use pumphouse::listeners::feed::{self, Definition, Feeds, Source};

use super::world::{World, block};
use super::*;

const DONE: &str = "<response>Done.</response>";
const ADD: &str = r#"<action type="internal" mode="sync" id="add_feed">
{
  "name": "add_context_feed",
  "parameters": {
    "id": "recent_errors",
    "type": "on_demand",
    "source": {
      "type": "relic",
      "name": "teller",
      "params": {
        "about": "ERROR"
      }
    }
  }
}
</action>"#;
const REMOVE: &str = r#"<action type="internal" mode="sync" id="remove_feed">
{
  "name": "remove_context_feed",
  "parameters": {
    "id": "recent_errors"
  }
}
</action>"#;
const UPDATE: &str = r#"<action type="internal" mode="sync" id="update_feed">
{
  "name": "update_context_feed",
  "parameters": {
    "id": "system_metrics",
    "interval": 60
  }
}
</action>"#;

#[test]
fn a_feed_is_added_shown_and_taken_away() {
    let log = r#"<action id="l">
{"name": "logger", "parameters": {"message": "$recent_errors"}}</action>"#;
    let world =
        World::new(&[(0, ADD), (0, log), (0, REMOVE), (0, "<response>$recent_errors</response>")]);
    let world = world.saying(&[(0, Ok("two"))]);
    let came = world.ask(world.agent(&[]), &["Go."]);
    let told = block("recent_errors", "two");
    assert_eq!(came.late, ["", &told, &told, ""]);
    assert_eq!(came.world.asked.lock().unwrap()[0].0.as_deref(), Some("ERROR"));
    assert_eq!(came.world.logged.lock().unwrap()[0].message, "two");
    let results = came.results();
    assert!(
        results[0].contains("status=\"ok\"") && results[0].contains("recent_errors"),
        "{results:?}"
    );
    // What is gone stands for nothing.
    assert!(came.said().ends_with(">$recent_errors</response>"), "{}", came.said());
    grows(&came.world.seen);
}

#[test]
fn the_older_type_of_the_action_means_the_same() {
    let older = r#"<action type="context_feed" mode="sync" id="add_feed">
{
  "name": "add_context_feed",
  "parameters": {
    "id": "recent_errors",
    "type": "on_demand",
    "source": {
      "type": "relic",
      "name": "teller",
      "params": { "about": "ERROR" }
    }
  }
}

</action>"#;
    let world = World::new(&[(0, older), (0, DONE)]);
    let came = world.ask(world.agent(&[]), &["Go."]);
    assert_eq!(came.late[1], block("recent_errors", "nothing"));
}

#[test]
fn a_feed_is_changed() {
    let source = Source::listener("teller");
    let metrics = Definition::periodic("system_metrics", Duration::from_secs(30), source);
    let world = World::new(&[(0, UPDATE), (170, DONE)]);
    let came = world.ask(world.agent(&[metrics]), &["Go."]);
    assert_eq!(came.asked(), [0, 60, 120]);
    let result = &came.results()[0];
    assert!(result.contains("\"interval\":60.0"), "{result}");
}

#[test]
fn a_feed_of_its_own_asks_peers_only() {
    let add = |name: &'static str| {
        let text = format!(
            r#"<action type="internal" id="a">{{"name": "add_context_feed", "parameters":
            {{"id": "x", "source": {{"type": "tool", "name": "{name}"}}}}}}</action>"#
        );
        let text: &'static str = Box::leak(text.into_boxed_str());
        let world = World::new(&[(0, text), (0, DONE)]);
        let came = world.ask(world.agent(&[]), &["Go."]);
        (came.results().remove(0), came.story)
    };
    let generic = "Message could not be delivered. Please verify your target and try again.";
    for name in ["monitor", "nobody", "feed", "action"] {
        let (result, story) = add(name);
        assert!(result.contains("status=\"failed\"") && result.contains(generic), "{result}");
        assert!(!story.iter().any(|it| it.starts_with("feed > monitor")), "{story:?}");
    }
    // Nor may it have a feed that it was given ask somebody else.
    let update = r#"<action type="internal" id="a">{"name": "update_context_feed", "parameters":
        {"id": "load", "source": {"type": "tool", "name": "monitor", "params": {"metrics": []}}}}
        </action>"#;
    let load = Definition::on_demand("load", Source::listener("teller"));
    let world = World::new(&[(0, update), (0, DONE)]);
    let came = world.ask(world.agent(&[load]), &["Go."]);
    assert!(came.results()[0].contains(generic), "{:?}", came.results());
}

#[test]
fn what_cannot_be_changed_is_told_with_what_can() {
    let says = r#"<action type="internal" id="a">
{"name": "remove_context_feed", "parameters": {"id": "recent_erorrs"}}</action>
<action type="internal" id="b">
{"name": "remove_context_feed", "parameters": {"id": "todos"}}</action>
<action type="internal" id="c">{"name": "add_context_feed", "parameters":
 {"id": "recent_errors", "source": {"type": "internal", "action": "system_clock"}}}</action>
<action type="internal" id="d">{"name": "add_context_feed", "parameters":
 {"id": "n", "type": "periodic", "source": {"type": "internal", "action": "system_clock"}}}
</action>"#;
    let world = World::new(&[(0, says), (0, DONE)]);
    let feed = Definition::on_demand("recent_errors", Source::listener("teller"));
    let came = world.ask(world.agent(&[feed]), &["Go."]);
    let results = came.results();
    let told = [
        "no feed is called recent_erorrs; did you mean recent_errors?",
        "todos is made by the pump; whoever sets the agent up turns it off",
        "a feed recent_errors is there already; update_context_feed changes it",
        "n: a periodic feed needs an interval",
    ];
    for (result, told) in results.iter().zip(told) {
        assert!(result.contains("status=\"failed\"") && result.contains(told), "{result}");
    }
    assert_eq!(results.len(), 4);
}

#[test]
fn whoever_sets_an_agent_up_says_what_it_may_change() {
    let internal = InternalActions {
        allowed_actions: vec!["add_context_feed".into(), "update_context_feed".into()],
        blocked_actions: vec!["update_context_feed".into()],
        ..InternalActions::default()
    };
    let settings = Settings {
        internal: [feed::NAME.to_owned()].into(),
        agents: BTreeMap::from([("ada".to_owned(), internal)]),
    };
    let update = r#"<action type="internal" id="u">{"name": "update_context_feed", "parameters":
{"id": "recent_errors", "enabled": false}}</action>"#;
    let world = World::new(&[(0, ADD), (0, update), (0, REMOVE), (0, DONE)]);
    let mind = vec![action(settings), feed::feed()];
    let came = world.play(world.agent(&[]), mind, &["Go."]);
    let results = came.results();
    let is_ok: Vec<bool> = results.iter().map(|it| it.contains("status=\"ok\"")).collect();
    assert_eq!(is_ok, [true, false, false], "{results:?}");
    assert_eq!(came.late[3], block("recent_errors", "nothing"));
}

#[test]
fn the_documents_internal_actions_are_those_that_it_allows() {
    let written = r#"
internal_actions:
  enabled: true
  allowed_actions:
    - "add_context_feed"
    - "remove_context_feed"
  # blocked_actions:
  #   - "update_context_feed"
"#;
    let came = |written: &str| {
        let mut manifest: BTreeMap<String, InternalActions> =
            serde_yaml::from_str(written).unwrap();
        let settings = agents::Settings {
            internal_actions: manifest.remove("internal_actions").unwrap(),
            ..agents::Settings::default()
        };
        let world = World::new(&[(0, ADD), (0, UPDATE), (0, REMOVE), (0, DONE)]);
        let source = Source::listener("teller");
        let metrics = Definition::periodic("system_metrics", Duration::from_secs(30), source);
        let feeds = Feeds::new([metrics]).unwrap();
        let agent = world.agent(&[]).settings(settings).feeds(feeds);
        let came = world.ask(agent, &["Go."]);
        let ran = |id: &str| {
            let mut results = came.results().into_iter();
            results.any(|it| it.contains(&format!("id=\"{id}\"")) && it.contains("\"ok\""))
        };
        ["add_feed", "update_feed", "remove_feed"].map(ran)
    };
    assert_eq!(came(written), [true, false, true]);
    assert_eq!(came(&written.replace("  # ", "  ")), [true, false, true]);
    assert_eq!(came(&written.replace("enabled: true", "enabled: false")), [false; 3]);
}

#[test]
fn whoever_is_no_agent_has_no_feeds() {
    let world = World::new(&[]);
    let all = (world.listeners(), agent_support());
    let pump = pumphouse::builder().with(all).workers(1).build().unwrap().start_on(&world.sim);
    let remove = feed::words::RemoveContextFeed { id: "a".into() };
    let refused = world.sim.run(pump.ask::<feed::words::ContextFeedRefused>(remove)).unwrap();
    assert_eq!(refused.unwrap().message, "console is no agent, and has no feeds");
}
