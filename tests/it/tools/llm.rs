//! `use: llm`: one call of a model that the caller chooses, charged to the caller's tree.

use super::{asked, in_order, organism};
use crate::program::Scene;

/// A scene whose manifest has two more models and the listener `summarize`.
fn scene(replies: &str, settings: &str) -> Scene {
    let scene = organism(&[], replies);
    scene.write("small.txt", "%% reply\nSmall: a summary.\n");
    scene.write("large.txt", "%% reply\nLarge: a summary.\n");
    scene.write(
        "organism.yaml",
        format!(
            "models:\n  m: {{use: scripted, file: replies.txt}}\n  small: {{use: scripted, file: \
             small.txt}}\n  large: {{use: scripted, file: large.txt}}\nlisteners:\n  - {{use: llm, \
             name: summarize, settings: {{{settings}}}}}\n  - {{use: agent, name: coder, model: m, \
             peers: [summarize]}}\n"
        ),
    );
    scene
}

#[test]
fn a_call_chooses_among_the_models_and_says_what_is_to_be_done() {
    let replies = r#"%% reply
<action type="llm" id="one">{"name": "summarize",
"parameters": {"text": "Long.", "max_length": 9}}</action>
<action type="llm" id="two">{"name": "summarize",
"parameters": {"prompt": "Translate it.", "context": "Tea.", "model": "large"}}</action>
<action type="llm" id="no">{"name": "summarize",
"parameters": {"text": "a", "model": "huge"}}</action>
<action type="llm" id="none">{"name": "summarize", "parameters": {}}</action>
%% reply
<response>${one} ${two}</response>
"#;
    let log = asked(&scene(replies, "model: small, prompt: Summarize."), "Go.");
    in_order(&log, &["<completion", "model=\\\"small\\\"", "Small: a summary."]);
    in_order(&log, &["<completion", "model=\\\"large\\\"", "Large: a summary."]);
    in_order(&log, &["unknown-model", "there is no model `huge`; there is large, m, small"]);
    in_order(&log, &["there is nothing to ask"]);
    in_order(&log, &["<charge", "scripted by small.txt", "settled=\\\"true\\\""]);
    in_order(&log, &["<response", "Small: a summary. Large: a summary."]);
}

#[test]
fn the_models_of_a_call_are_bounded_by_the_settings() {
    let scene = scene("%% reply\n<response>x</response>\n", "model: small, models: [small]");
    scene.run(&["check"]).code(0).says(&["Asks a model once: small unless told; there is small."]);
    let wrong = |settings: &str, text: &str| {
        let listener = format!("{{use: llm, settings: {settings}}}");
        let model = "models: {small: {use: scripted, file: small.txt}}";
        scene.write("wrong.yaml", format!("{model}\nlisteners: [{listener}]\n"));
        scene.run(&["check", "wrong.yaml"]).code(1).says(&[text]);
    };
    wrong("{}", "here the key `model` is missing");
    wrong("{model: smal}", "there is no model `smal`; did you mean `small`?");
    wrong("{model: small, models: [large]}", "there is no model `large`");
}

/// A call reserves its prompt and its longest answer, and gives back what it didn't take.
#[test]
fn a_call_reserves_before_and_settles_after() {
    let replies = r#"%% reply
<action type="llm" id="one">{"name": "summarize", "parameters": {"text": "Long text."}}</action>
%% reply
<response>${one}</response>
"#;
    let scene = scene(replies, "model: small, limits: {tokens_max: 100000}");
    let log = asked(&scene, "Go.");
    in_order(&log, &["<charge", "settled=\\\"false\\\"", "small.txt", "tokens_out=\\\"100000\\\""]);
    in_order(&log, &["<charge", "settled=\\\"true\\\"", "small.txt", "<completion"]);
    let threads = scene.run(&["threads", "--json"]).objects();
    let thread = threads[0]["thread"].as_str().unwrap();
    let budget = scene.run(&["budget", thread, "--json"]).code(0).objects();
    let tokens = budget.iter().find(|it| it["key"] == "tokens").expect("it is counted");
    assert!(tokens["used"].as_u64().is_some_and(|it| it > 0 && it < 100_000), "{tokens}");
}

#[test]
fn a_call_that_the_budget_has_no_room_for_is_refused_with_the_numbers() {
    let replies = r#"%% reply
<action type="llm" id="one">{"name": "summarize", "parameters": {"text": "Long text."}}</action>
%% reply
<response>${one}</response>
"#;
    let scene = scene(replies, "model: small, limits: {tokens_max: 900000}");
    let manifest = std::fs::read_to_string(scene.path("organism.yaml")).unwrap();
    scene.write("organism.yaml", format!("{manifest}limits: {{tree_tokens_max: 100000}}\n"));
    let log = asked(&scene, "Go.");
    in_order(&log, &["<refused", "reason=\\\"budget\\\"", "there is no room for the call"]);
    assert!(!log.contains("a summary."), "{log}");
}
