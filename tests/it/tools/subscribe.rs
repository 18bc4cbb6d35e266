//! `use: subscribe`: the state of another thread.

use serde_json::Value;

use crate::program::{Scene, Server};

const ORGANISM: &str = "\
tokens: {file: tokens}
doors: [{tcp: \"127.0.0.1:0\"}]
models: {m: {use: scripted, file: replies.txt}}
listeners:
  - {use: subscribe, grants: [read:identity]}
  - use: agent
    name: writer
    model: m
    metadata: {fields: {status: {values: [IDLE, DRAFTING]}}}
";

const REPLY: &str = "%% reply
<metadata>{\"status\": \"DRAFTING\"}</metadata>
<todo-until condition=\"the draft is done\"><step>write it</step></todo-until>
<response final=\"false\">I am at it.</response>
%% reply
<response>Done.</response>
";

fn scene() -> (Scene, Server) {
    use std::os::unix::fs::PermissionsExt as _;
    let scene = Scene::new();
    scene.write("organism.yaml", ORGANISM);
    scene.write("replies.txt", REPLY.repeat(2));
    let tokens = scene.write("tokens", "ada:adas-token\neve:eves-token\n");
    std::fs::set_permissions(&tokens, std::fs::Permissions::from_mode(0o600)).unwrap();
    scene.run(&["check"]).code(0);
    let server = scene.serve(&[]);
    (scene, server)
}

fn sent(scene: &Scene, server: &Server, token: &str, payload: &str) -> Vec<Value> {
    let to = ["send", "--json", "--connect", &server.address, "--token", token];
    scene.pipe(&to, payload).objects()
}

fn subscribed(scene: &Scene, server: &Server, token: &str, fields: &str) -> String {
    let ns = "https://xml-pipeline.org/ns/subscribe/v1";
    let ask = format!("<subscribe xmlns=\"{ns}\">{fields}</subscribe>\n");
    sent(scene, server, token, &ask).iter().map(Value::to_string).collect()
}

#[test]
fn the_state_of_a_thread_is_told_to_the_identity_that_opened_it_alone() {
    let (scene, server) = scene();
    let ask = "<writer xmlns=\"https://xml-pipeline.org/ns/writer/v1\">Write.</writer>\n";
    let thread = sent(&scene, &server, "adas-token", ask)[0]["thread"].clone();
    let thread = format!("<thread>{}</thread>", thread.as_str().unwrap());
    let told =
        |token: &str, more: &str| subscribed(&scene, &server, token, &format!("{thread}{more}"));
    let metadata = told("adas-token", "<of>metadata</of>");
    assert!(metadata.contains(r#"{\"writer\":{\"status\":\"DRAFTING\"}}"#), "{metadata}");
    let own = told("adas-token", "<of>metadata</of><agent>writer</agent>");
    assert!(own.contains(r#">{\"status\":\"DRAFTING\"}<"#), "{own}");
    let todos = told("adas-token", "<of>todos</of>");
    assert!(todos.contains("the draft is done") && todos.contains("write it"), "{todos}");
    let response = told("adas-token", "<of>response</of>");
    assert!(response.contains(">Done.<"), "{response}");
    let refused = told("eves-token", "<of>metadata</of>");
    assert!(
        refused.contains("can be read from here") && !refused.contains("DRAFTING"),
        "{refused}"
    );
    let none =
        subscribed(&scene, &server, "adas-token", "<thread>sess-none</thread><of>todos</of>");
    assert!(none.contains("no thread sess-none can be read from here"), "{none}");
    drop(server);
}
