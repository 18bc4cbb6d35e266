//! `use: environment`: listed variables and no others.

use serde_json::Value;

use crate::program::Scene;

const MANIFEST: &str = "\
models: {m: {use: scripted, file: replies.txt}}
listeners:
  - {use: environment, settings: {variables: [PUMPHOUSE_TEST_DEPLOYMENT, PUMPHOUSE_TEST_UNSET]}}
  - use: agent
    name: ada
    model: m
    peers: [environment]
    context_feeds: [{id: place, source: {type: tool, name: environment}}]
";

const ASKS: &str = "%% reply
<action type=\"tool\" mode=\"sync\" id=\"one\">
{\"name\": \"environment\", \"parameters\": {\"name\": [\"PUMPHOUSE_TEST_DEPLOYMENT\"]}}</action>
<action type=\"tool\" mode=\"sync\" id=\"other\">
{\"name\": \"environment\", \"parameters\": {\"name\": [\"PUMPHOUSE_TEST_DEPLOYMNT\"]}}</action>
%% reply
<response>$one $other</response>
";

#[test]
fn an_agent_sees_listed_variables_alone() {
    let scene = Scene::new();
    scene.write("organism.yaml", MANIFEST);
    scene.write("replies.txt", ASKS);
    let mut serve = scene.command(&["run", "--json", "--listen", "127.0.0.1:0"]);
    serve.env("PUMPHOUSE_TEST_DEPLOYMENT", "staging").env("PUMPHOUSE_TEST_TOKEN", "s3cret");
    let server = crate::program::Server::begin(&mut serve);
    let ask = "<ada xmlns=\"https://xml-pipeline.org/ns/ada/v1\">Where?</ada>\n";
    let ran = scene.pipe(&["send", "--connect", &server.address], ask).code(0);
    ran.says(&["\"PUMPHOUSE_TEST_DEPLOYMENT\":\"staging\"", "[other: failed]"]);
    drop(server);
    let feed = scene.run(&["feeds", "ada", "--json"]).code(0).objects().remove(0);
    let text: Value = serde_json::from_str(feed["text"].as_str().unwrap()).unwrap();
    assert_eq!(text, serde_json::json!({"PUMPHOUSE_TEST_DEPLOYMENT": "staging"}));
    let failed = scene.run(&["tail", "--failed"]).out;
    assert!(failed.contains("did you mean PUMPHOUSE_TEST_DEPLOY"), "{failed}");
}

#[test]
fn a_list_that_is_empty_or_odd_is_a_mistake() {
    let checked = |variables: &str| {
        let scene = Scene::new();
        let listener = format!("{{use: environment, settings: {{variables: {variables}}}}}");
        scene.write("organism.yaml", format!("listeners: [{listener}]\n"));
        scene.run(&["check"]).code(1)
    };
    checked("[]").says(&["variables: at least one, as in `variables: [TZ]`"]);
    checked("[\"A=B\"]").says(&["variables: \"A=B\" can't be the name of a variable"]);
}
