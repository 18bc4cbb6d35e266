//! `check` compares the calls of workflows and feeds with the payloads that they call, and tells
//! all mistakes of a file at once.

use crate::program::Scene;

/// Checks a manifest with these listeners, which includes a workflow with these lines.
fn checked(listeners: &str, workflow: &str) -> (Scene, Vec<String>) {
    let scene = Scene::new();
    scene.write("flow.yml", format!("kind: Workflow\nname: flow\n{workflow}\n"));
    scene.write("organism.yaml", format!("include: [flow.yml]\nlisteners: {listeners}\n"));
    let mistakes = scene.run(&["check", "--json"]).objects();
    let text = |it: &serde_json::Value, key: &str| it[key].as_str().unwrap_or("").to_owned();
    let told = |it: &serde_json::Value| {
        format!("{}:{} {}: {}", text(it, "file"), it["line"], text(it, "path"), text(it, "message"))
    };
    let is_mistake = |it: &&serde_json::Value| it["message"].is_string();
    let told = mistakes.iter().filter(is_mistake).map(told).collect();
    (scene, told)
}

#[track_caller]
fn check(listeners: &str, workflow: &str, expected: &[&str]) {
    let (_scene, told) = checked(listeners, workflow);
    assert_eq!(told.len(), expected.len(), "{told:#?}");
    for (told, expected) in told.iter().zip(expected) {
        assert!(told.contains(expected), "{told}\nlacks\n{expected}");
    }
}

const TOOLS: &str = "[{use: calculate}, {use: echo}, {use: files, settings: {root: .}}]";

#[test]
fn a_steps_parameters_are_those_of_its_payload() {
    check(
        TOOLS,
        "steps:\n\
         - {name: one, target: calculate, parameters: {expresion: 1+1}}\n\
         - {name: two, target: echo, parameters: {txt: \"${steps.one}\"}}\n\
         - {name: three, target: echo}\n\
         - {name: four, target: echo.echo, parameters: {text: 5}}\n",
        &[
            "steps[0].parameters.expresion: `calculate` has no property \"expresion\"; it has \
             \"expression\"",
            "steps[1].parameters.txt: `echo` has no property \"txt\"; it has \"text\"",
            "steps[2]: `echo` needs the property \"text\"",
            "steps[3].parameters.text: `echo`: $.text takes text, not 5",
        ],
    );
}

#[test]
fn a_reference_stands_for_any_value() {
    for parameters in [
        "{expression: \"${steps.zero}\"}",
        "{expression: \"${trigger.a} + 1\"}",
        "{expression: \"1 + 1\"}",
    ] {
        check(
            TOOLS,
            &format!(
                "steps:\n\
                 - {{name: zero, target: calculate, parameters: {{expression: \"1\"}}}}\n\
                 - {{name: one, target: calculate, parameters: {parameters}}}\n"
            ),
            &[],
        );
    }
}

#[test]
fn a_target_of_several_payloads_is_told_with_the_right_word() {
    check(
        TOOLS,
        "steps:\n\
         - {name: one, target: files, parameters: {path: a}}\n\
         - {name: write, target: files, parameters: {path: a, text: \"${steps.one}\"}}\n\
         - {name: two, target: files.raed, parameters: {path: a}}\n\
         - {name: three, target: calculate, parameters: {expression: \"1\"},\n\
         \x20  compensate: {target: files, parameters: {}}}\n",
        &[
            "steps[0].target: `files` takes several payloads, and more than one fits",
            "steps[2].target: `files` takes no payload `raed`; did you mean `files.read`?",
            "steps[3].compensate.target: `files` takes several payloads",
        ],
    );
}

#[test]
fn a_listener_that_is_not_there_is_told_with_the_line_to_add() {
    let (scene, _) = checked("[{use: calculate}]", "steps: [{name: a, target: echo}]");
    scene
        .run(&["check"])
        .code(1)
        .says(&["flow.yml:3:27: there is no listener `echo`", "add `- use: echo` to `listeners`"]);
    scene.write(
        "organism.yaml",
        "models: {m: {use: scripted, file: r.txt}}\n\
         listeners: [{use: agent, name: a, model: m, peers: [fetch, calculate]}]\n",
    );
    scene.write("r.txt", "%% reply\nx\n");
    scene.run(&["check"]).code(1).says(&[
        "there is no listener `fetch`",
        "add `- use: fetch` to `listeners`",
        "there is no listener `calculate`",
        "add `- use: calculate` to `listeners`",
    ]);
}

#[test]
fn one_mistake_hides_no_other() {
    check(
        TOOLS,
        "steps:\n\
         - {name: one, target: calculate, parameters: {expresion: 1+1}, condition: \"a ==\"}\n\
         - {name: two, target: echo, parameters: {text: \"${steps.oen}\"}, depends_on: [onee]}\n\
         - {name: three, target: echo, parameters: {text: \"${steps.four}\"}, on_failure: abrt}\n\
         - {name: four, target: ehco, type: tol, retry_policy: {max_attempts: 99}, colour: red}\n\
         outputs: {a: \"${step.four}\"}\n",
        &[
            "steps[0].parameters.expresion: ",
            "steps[0].condition: ",
            "steps[1].parameters.text: ${steps.oen}: there is no step `oen`; did you mean `one`?",
            "steps[1].depends_on[0]: there is no step `onee`; did you mean `one`?",
            "steps[2].parameters: `four` doesn't come before `three`",
            "steps[2].on_failure: ",
            "steps[3].target: there is no listener `ehco`; did you mean `echo`?",
            "steps[3].type: ",
            "steps[3].retry_policy.max_attempts: it is from 1 to 6",
            "steps[3].colour: here is no key `colour`",
            "outputs.a: ${step.four}: references don't begin with `step`",
        ],
    );
}

#[test]
fn a_missing_key_is_told_beside_the_others() {
    check(
        TOOLS,
        "steps:\n\
         - {nmae: one, target: calculate, parameters: {expression: \"1\"}}\n\
         - {name: two, target: echo, parameters: {txt: a}}\n",
        &["steps[0].nmae: here is no key `nmae`", "steps[1].parameters.txt: "],
    );
}

#[test]
fn a_feeds_parameters_are_those_of_its_payload() {
    let scene = Scene::new();
    scene.write("r.txt", "%% reply\nx\n");
    let feed = |id: &str, source: &str| {
        format!("      - {{id: {id}, source: {{type: tool, {source}}}}}\n")
    };
    let manifest = "models: {m: {use: scripted, file: r.txt}}\n\
                    listeners:\n\
                    \x20 - use: calculate\n\
                    \x20 - {use: files, settings: {root: .}}\n\
                    \x20 - use: agent\n\
                    \x20   name: a\n\
                    \x20   model: m\n\
                    \x20   peers: [calculate, files]\n\
                    \x20   context_feeds:\n";
    let feeds = [
        feed("one", "name: calculate, params: {expresion: 1+1}"),
        feed("two", "name: calculate"),
        feed("three", "name: files, params: {path: a}"),
        feed("four", "name: calculate, params: {expression: \"$one\"}"),
    ];
    scene.write("organism.yaml", format!("{manifest}{}", feeds.concat()));
    scene.run(&["check"]).code(1).says(&[
        "3 mistakes in organism.yaml",
        "`calculate` has no property \"expresion\"; it has \"expression\"",
        "`calculate` needs the property \"expression\"",
        "`files` takes several payloads",
    ]);
}

#[test]
fn a_triggers_mistakes_come_with_those_of_other_keys() {
    check(
        TOOLS,
        "trigger: {type: payload, payload: calculatde, conditions: \"payload.a == 1\"}\n\
         steps:\n\
         - {name: one, target: calculate, parameters: {expresion: 1+1}}\n",
        &[
            "trigger.payload: no listener takes or sends a payload `calculatde`",
            "steps[0].parameters.expresion: ",
        ],
    );
}
