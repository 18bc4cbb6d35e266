//! `use: llm`: one call of a model, chosen by its caller, charged to the caller's tree.

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
