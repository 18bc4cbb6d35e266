//! Feeds that are set from outside: by an operator, by identities and by listeners.

use crate::program::{Scene, Server};

const ORGANISM: &str = "\
name: desk
tokens: {file: tokens}
doors: [{tcp: \"127.0.0.1:0\"}, {unix: pump.sock}]
models: {m: {use: scripted, file: replies.txt}}
listeners:
  - use: agent
    name: octopus
    model: m
    peers: []
    context_feeds:
      - {id: notice, set_by: [bob]}
";

const REPLY: &str = "%% reply\n<response>I read: $notice</response>\n";
const NS: &str = "https://xml-pipeline.org/ns/agent/v1";

fn scene() -> Scene {
    let scene = Scene::new();
    scene.write("organism.yaml", ORGANISM);
    scene.write("replies.txt", REPLY.repeat(4));
    let tokens = scene.write("tokens", "bob:bobs-token\neve:eves-token\n");
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::set_permissions(&tokens, std::fs::Permissions::from_mode(0o600)).unwrap();
    scene
}

fn set(text: &str) -> String {
    format!("<set-feed xmlns=\"{NS}\" agent=\"octopus\" id=\"notice\">{text}</set-feed>\n")
}

fn get() -> String {
    format!("<get-feed xmlns=\"{NS}\" agent=\"octopus\" id=\"notice\"/>\n")
}

/// What the agent answers in a new session.
#[track_caller]
fn asked(scene: &Scene, server: &Server) -> String {
    let ask = "<octopus xmlns=\"https://xml-pipeline.org/ns/octopus/v1\">Well?</octopus>\n";
    let to = ["send", "--connect", &server.address, "--token", "bobs-token"];
    scene.pipe(&to, ask).code(0).out
}

#[track_caller]
fn says(told: &str, text: &str) {
    assert!(told.contains(&format!("I read: {text}")), "{told}");
}

#[test]
fn an_operator_and_those_of_set_by_set_a_feed_and_nobody_else() {
    let scene = scene();
    scene.run(&["check"]).code(0);
    let server = scene.serve(&[]);
    says(&asked(&scene, &server), "[notice: unavailable]");
    let ask = get();
    let with_token = ["send", "--connect", &server.address, "--token", "eves-token"];
    scene.pipe(&with_token, &ask).says(&["eve may not read notice of octopus"]);
    let operator = ["send", "--connect", "unix:pump.sock"];
    scene.pipe(&operator, &set("The exchange closes at noon.")).code(0).says(&["feed-set"]);
    says(&asked(&scene, &server), "The exchange closes at noon.");
    let with = |token: &'static str| ["send", "--connect", &server.address, "--token", token];
    let refused = scene.pipe(&with("eves-token"), &set("All is lost."));
    let who = "operators and the senders in the feed's `set_by` may set it";
    refused.says(&[&format!("eve may not set notice of octopus; {who}")]);
    says(&asked(&scene, &server), "The exchange closes at noon.");
    scene.pipe(&with("bobs-token"), &set("The exchange is open.")).code(0).says(&["feed-set"]);
    drop(server);
    // The content outlives the pump.
    let server = scene.serve(&[]);
    says(&asked(&scene, &server), "The exchange is open.");
    drop(server);
    let organism = scene.run(&["show", "organism", "--json"]).code(0).out;
    let by_bob = "by=\\\"bob\\\" id=\\\"notice\\\">The exchange is open.";
    assert!(organism.contains(by_bob), "{organism}");
    let feeds = scene.run(&["feeds", "octopus", "--values"]).code(0).out;
    assert!(feeds.contains("from feed-values") && feeds.contains("is open."), "{feeds}");
}

#[test]
fn what_cannot_be_set_is_told() {
    let scene = scene();
    let server = scene.serve(&[]);
    let operator = ["send", "--connect", "unix:pump.sock"];
    let notcie = set("a").replace("notice", "notcie");
    let told = "octopus has no feed notcie that can be set; did you mean notice?";
    scene.pipe(&operator, &notcie).says(&[told]);
    let other = set("a").replace("octopus", "squid");
    scene.pipe(&operator, &other).says(&["squid has no feed notice that can be set"]);
    drop(server);
    let wrong = ORGANISM.replace("set_by: [bob]", "set_by: [bob], source: {type: tool, name: a}");
    scene.write("organism.yaml", wrong);
    scene.run(&["check"]).code(1).says(&["set_by is for a source of the type set"]);
    let wrong = ORGANISM.replace("set_by: [bob]", "source: {type: set, name: a}");
    scene.write("organism.yaml", wrong);
    scene.run(&["check"]).code(1).says(&["a source of the type set has no name"]);
}

/// An organism with an agent that reads a notice, and one that may set it.
const WITH_SETTER: &str = "\
doors: [{tcp: \"127.0.0.1:0\"}]
models:
  reader: {use: scripted, file: reader.txt}
  setter: {use: scripted, file: setter.txt}
listeners:
  - use: agent
    name: octopus
    model: reader
    peers: []
    context_feeds: [{id: notice, set_by: [squid]}]
  - {use: agent, name: squid, model: setter, peers: [feed-values]}
  - {use: agent, name: crab, model: setter, peers: [feed-values]}
";

const SETS: &str = "%% reply
<action id=\"set\">
{\"name\": \"feed-values.set-feed\", \"parameters\":
 {\"agent\": \"octopus\", \"id\": \"notice\", \"text\": \"All hands on deck.\"}}
</action>
%% reply
<response>$set</response>
";

/// The reader's thread has had a turn without the content, so the content comes in its next one.
#[test]
fn an_agent_of_set_by_sets_a_feed_and_a_thread_at_work_has_it_in_its_next_turn() {
    let scene = Scene::new();
    scene.write("organism.yaml", WITH_SETTER);
    scene.write("reader.txt", REPLY.repeat(2));
    scene.write("setter.txt", SETS.repeat(2));
    scene.run(&["check"]).code(0);
    let server = scene.serve(&[]);
    let to = ["send", "--connect", &server.address];
    let ask = |agent: &str| {
        format!("<{agent} xmlns=\"https://xml-pipeline.org/ns/{agent}/v1\">Go.</{agent}>\n")
    };
    let begun = scene.pipe(&["send", "--json", "--connect", &server.address], &ask("octopus"));
    let thread = begun.objects()[0]["thread"].as_str().unwrap().to_owned();
    scene.pipe(&to, &ask("crab")).code(0).says(&["[set: failed]"]);
    scene.pipe(&to, &ask("squid")).code(0);
    let again = ["send", "--connect", &server.address, "--thread", &thread];
    let told = scene.pipe(&again, &ask("octopus")).code(0).out;
    says(&told, "All hands on deck.");
    drop(server);
    let organism = scene.run(&["show", "organism", "--json"]).code(0).out;
    assert!(organism.contains("by=\\\"squid\\\""), "{organism}");
}
