//! A final response and a call in which references would be replaced by more than a message may
//! hold.

use crate::program::Scene;

const AGENT: &str = "https://xml-pipeline.org/ns/a/v1";

/// What an agent answers whose first turn gets a text of 900 kB by the name `big`. Its further
/// replies are these.
fn answer(replies: &str) -> (Scene, String) {
    let scene = Scene::new();
    let text = "y".repeat(900_000);
    let first = format!(
        r#"<action id="big">{{"name": "echo", "parameters": {{"text": "{text}"}}}}</action>"#
    );
    scene.write("r.txt", format!("%% script repeat=last\n%% reply\n{first}\n{replies}"));
    let agent = "{use: agent, name: a, model: m, peers: [echo]}";
    let models = "models: {m: {use: scripted, file: r.txt}}";
    scene.write("organism.yaml", format!("{models}\nlisteners: [{{use: echo}}, {agent}]\n"));
    let server = scene.serve(&[]);
    let asked = format!("<a xmlns=\"{AGENT}\">go</a>");
    let told = scene.pipe(&["send", "--connect", &server.address, "--json"], &asked).code(0);
    (scene, told.out)
}

/// Values of 18 MB in a text of 120 bytes.
fn many() -> String {
    "${big}".repeat(20)
}

#[test]
fn a_response_whose_values_are_too_large_is_held_back_and_the_agent_is_told() {
    let replies = format!(
        "%% reply\n<response>{}</response>\n%% reply\n<response>short</response>\n",
        many()
    );
    let (scene, told) = answer(&replies);
    assert!(told.contains("short") && !told.contains("P0017"), "{told}");
    let notices = scene.run(&["tail", "--json", "-n", "1000"]).code(0).out;
    let why = "Your response was not delivered: ${big} isn't filled in: the values are more than";
    assert!(notices.contains(why), "{notices}");
}

#[test]
fn a_call_whose_values_are_too_large_has_failed() {
    let list = vec!["\"${big}\""; 20].join(", ");
    let call = format!(
        "<action id=\"b\">{{\"name\": \"echo\", \"parameters\": {{\"text\": [{list}]}}}}</action>"
    );
    let replies = format!("%% reply\n{call}\n%% reply\n<response>over</response>\n");
    let (scene, told) = answer(&replies);
    assert!(told.contains("over"), "{told}");
    let entries = scene.run(&["tail", "--json", "-n", "1000"]).code(0).out;
    assert!(entries.contains("${big} isn't filled in: the values are more than"), "{entries}");
}
