//! `use: organism_state` and `use: alerts`: the state of an organism, and its alerts.

use std::fs::{Permissions, set_permissions};
use std::os::unix::fs::PermissionsExt as _;

use serde_json::Value;

use crate::model::fake::{self, Server as Provider};
use crate::program::{Scene, Server};

const NS: &str = "https://xml-pipeline.org/ns/alerts/v1";

fn organism(model: &str) -> String {
    format!(
        "\
name: fleet
tokens: {{file: tokens}}
doors: [{{tcp: \"127.0.0.1:0\"}}, {{unix: pump.sock}}]
models: {{m: {model}}}
listeners:
  - {{use: organism_state}}
  - {{use: alerts, settings: {{raised_by: [monitor]}}}}
  - use: agent
    name: octopus
    model: m
    peers: []
    context_feeds:
      - {{id: fleet, source: {{type: tool, name: organism_state}}}}
  - {{use: agent, name: squid, model: m}}
"
    )
}

fn scene(model: &str) -> Scene {
    let scene = Scene::new();
    scene.write("organism.yaml", organism(model));
    scene.write("replies.txt", "%% reply\n<response>I read: $fleet</response>\n".repeat(4));
    let tokens = scene.write("tokens", "monitor:monitors-token\neve:eves-token\n");
    set_permissions(&tokens, Permissions::from_mode(0o600)).unwrap();
    scene
}

const SCRIPTED: &str = "{use: scripted, file: replies.txt}";

/// What the pump answers to an operator, with its notes.
#[track_caller]
fn operator(scene: &Scene, payload: &str) -> String {
    scene.pipe(&["send", "--connect", "unix:pump.sock"], &format!("{payload}\n")).out
}

/// What the pump answers to an identity.
fn identity(scene: &Scene, server: &Server, token: &str, payload: &str) -> String {
    let to = ["send", "--connect", &server.address, "--token", token];
    scene.pipe(&to, &format!("{payload}\n")).out
}

fn ask() -> String {
    "<get-organism-state xmlns=\"https://xml-pipeline.org/ns/organism_state/v1\"/>".to_owned()
}

fn raise(id: &str, text: &str) -> String {
    format!("<raise-alert xmlns=\"{NS}\" id=\"{id}\">{text}</raise-alert>")
}

fn clear(id: &str) -> String {
    format!("<clear-alert xmlns=\"{NS}\" id=\"{id}\"/>")
}

const WELL: &str = "<octopus xmlns=\"https://xml-pipeline.org/ns/octopus/v1\">Well?</octopus>";

#[test]
fn a_feed_shows_that_the_fleet_is_nominal_and_later_its_alerts() {
    let scene = scene(SCRIPTED);
    scene.run(&["check"]).code(0);
    let server = scene.serve(&[]);
    let told = operator(&scene, WELL);
    assert!(told.contains("I read: Fleet nominal. 2 agents healthy. No alerts."), "{told}");
    let raised = identity(&scene, &server, "monitors-token", &raise("disk", "Full.\n- fake: x"));
    assert!(raised.contains("alert-raised"), "{raised}");
    let told = operator(&scene, WELL);
    assert!(told.contains("I read: 2 agents healthy. 1 alert:\n"), "{told}");
    assert!(told.contains("Z, by monitor: Full. - fake: x"), "{told}");
    drop(server);
    // The alert outlives the pump.
    let server = scene.serve(&[]);
    let told = operator(&scene, &ask());
    assert!(told.contains("agents=\"2\"") && told.contains("alerts=\"1\""), "{told}");
    assert!(operator(&scene, &clear("disk")).contains("alert-cleared"));
    let told = operator(&scene, &ask());
    assert!(told.contains("Fleet nominal. 2 agents healthy. No alerts."), "{told}");
    drop(server);
}

#[test]
fn an_organism_without_a_name_has_a_state_and_alerts_too() {
    let scene = scene(SCRIPTED);
    let manifest = organism(SCRIPTED).replace("name: fleet\n", "");
    scene.write("organism.yaml", manifest);
    let server = scene.serve(&[]);
    let told = operator(&scene, &ask());
    assert!(told.contains("Fleet nominal. 2 agents healthy. No alerts."), "{told}");
    assert!(operator(&scene, &clear("disk")).contains("no alert disk is open; none is"));
    assert!(operator(&scene, &raise("disk", "Full.")).contains("alert-raised"));
    assert!(operator(&scene, &ask()).contains("2 agents healthy. 1 alert:"));
    drop(server);
}

#[test]
fn who_may_not_raise_alerts_and_what_is_no_alert_are_refused() {
    let scene = scene(SCRIPTED);
    let server = scene.serve(&[]);
    let refused = identity(&scene, &server, "eves-token", &raise("disk", "All is lost."));
    assert!(refused.contains("eve may raise and clear no alerts"), "{refused}");
    let told = operator(&scene, &clear("dsik"));
    assert!(told.contains("no alert dsik is open; none is"), "{told}");
    assert!(operator(&scene, &raise("disk", " ")).contains("the alert disk says nothing"));
    assert!(operator(&scene, &raise("", "a")).contains("an id of one line"));
    let long = operator(&scene, &raise("disk", &"a".repeat(1_025)));
    assert!(long.contains("at most 1024 bytes each"), "{long}");
    operator(&scene, &raise("disk", "Full."));
    let told = operator(&scene, &clear("dsik"));
    assert!(told.contains("no alert dsik is open; disk is"), "{told}");
    let refused = identity(&scene, &server, "eves-token", &clear("disk"));
    assert!(refused.contains("eve may raise"), "{refused}");
    drop(server);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_whose_model_fails_is_not_healthy_until_a_reply_comes() {
    let refused = vec![fake::head("401 Unauthorized", "content-length: 0\r\n")];
    let provider = Provider::start(vec![refused, fake::answer("<response>Fine.</response>")]).await;
    let model = format!("{{use: openai-chat, url: \"{}\", model: small}}", provider.url());
    let scene = scene(&model);
    let server = scene.serve(&[]);
    let squid = "<squid xmlns=\"https://xml-pipeline.org/ns/squid/v1\">Go.</squid>";
    operator(&scene, squid);
    let told = operator(&scene, &ask());
    assert!(told.contains("agents=\"2\"") && told.contains("healthy=\"1\""), "{told}");
    assert!(told.contains("1 of 2 agents healthy. 1 alert:\n"), "{told}");
    assert!(told.contains("- squid, since ") && told.contains(": its model fails: "), "{told}");
    operator(&scene, squid);
    let told = operator(&scene, &ask());
    assert!(told.contains("Fleet nominal. 2 agents healthy. No alerts."), "{told}");
    drop(server);
    let organism = scene.run(&["show", "organism", "--json"]).code(0).objects();
    let names: Vec<&str> = organism.iter().filter_map(|it: &Value| it["name"].as_str()).collect();
    let count = |name: &str| names.iter().filter(|it| **it == name).count();
    assert_eq!((count("model-down"), count("model-up")), (1, 1), "{names:?}");
}
