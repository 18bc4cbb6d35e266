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

/// A scene with a scripted model `m`, an agent `bot` with these keys, and these further listeners.
fn with_agent(listeners: &str, agent: &str, workflow: &str) -> Scene {
    let scene = Scene::new();
    scene.write("r.txt", "%% reply\nx\n");
    scene.write("flow.yml", format!("kind: Workflow\nname: flow\n{workflow}\n"));
    let manifest = format!(
        "include: [flow.yml]\n\
         models: {{m: {{use: scripted, file: r.txt}}}}\n\
         listeners:\n\
         - {{use: calculate}}\n\
         - {{use: echo}}\n\
         {listeners}\
         - {{use: agent, name: bot, model: m, {agent}}}\n"
    );
    scene.write("organism.yaml", manifest);
    scene
}

const ECHO: &str = "steps: [{name: a, target: echo, parameters: {text: x}}]";

#[test]
fn a_workflows_mistakes_hide_none_about_its_agents() {
    let agent = "workflows: [flow], metadata: {fields: {mood: {type: enum, values: [A, B]}}}";
    let about_steps = "${metadata.moood}: metadata has no moood; did you mean mood?";
    for (first, wrong) in
        [("{text: \"${agent.namee}\"}", "`agent` has no `namee`"), ("text", "flow.yml:5:39: ")]
    {
        let steps = format!(
            "trigger: {{conditions: {{mood: C}}}}\n\
             steps:\n\
             - {{name: a, target: echo, parameters: {first}}}\n\
             - {{name: b, target: echo, parameters: {{text: \"${{metadata.moood}}\"}}}}\n"
        );
        let ran = with_agent("", agent, &steps).run(&["check"]).code(1);
        ran.says(&[
            "3 mistakes",
            wrong,
            "for the agent `bot`: ",
            "`metadata.mood` is one of A, B",
            about_steps,
        ]);
    }
    // A trigger with a mistake of its own isn't compared with the agent.
    let steps = "trigger: {fire: often, conditions: {mood: C}}\n\
                 steps: [{name: b, target: echo, parameters: {text: \"${metadata.moood}\"}}]\n";
    let ran = with_agent("", agent, steps).run(&["check"]).code(1);
    ran.says(&["2 mistakes", "flow.yml:3:17: ", about_steps]);
}

#[test]
fn a_mistake_of_the_manifest_hides_none_of_a_trigger() {
    let payload = "trigger: {payload: ecko}";
    let about = "no listener takes or sends a payload `ecko`; did you mean `echo`?";
    let checked = |manifest: &str, trigger: &str| {
        let scene = with_agent("", "peers: [echo]", &format!("{trigger}\n{ECHO}"));
        let whole = std::fs::read_to_string(scene.path("organism.yaml")).unwrap();
        scene.write("organism.yaml", format!("{manifest}\n{whole}"));
        scene.run(&["check"]).code(1)
    };
    checked("heartbeet: 5s", payload).says(&["2 mistakes", about]);
    // A payload that can't be read may be the one that the trigger watches.
    let ran = checked("schemas: [ecko.schema.json]", payload).says(&["1 mistake"]);
    assert!(!ran.out.contains(about) && !ran.err.contains(about), "{ran:?}");
    let condition = "trigger: {type: fault, conditions: {cod: P0011}}";
    checked("schemas: [ecko.schema.json]", condition).says(&["2 mistakes", "`fault` has no `cod`"]);
}

#[test]
fn the_line_to_add_is_told_for_a_payload_of_a_kind_too() {
    let steps = "steps: [{name: a, target: files.read, parameters: {path: a}}]";
    let add = "add `- use: files` to `listeners`";
    with_agent("", "peers: [echo]", steps)
        .run(&["check"])
        .code(1)
        .says(&["there is no listener `files.read`", add]);
    let feed = "context_feeds: [{id: a, source: {type: tool, name: files.tree}}]";
    with_agent("", feed, ECHO)
        .run(&["check"])
        .code(1)
        .says(&["there is no listener `files.tree`", add]);
    let repo = "- {use: files, name: repo, settings: {root: .}}\n";
    with_agent(repo, "peers: [files]", steps).run(&["check"]).code(1).says(&[
        "there is no listener `files`",
        "the manifest's files has another name: `repo`",
        "the manifest's files has another name: `repo.read`",
    ]);
}

#[test]
fn a_templates_parameters_are_those_of_its_payload() {
    let shell = "- {use: shell, settings: {programs: [ls]}}\n";
    let agent = |templates: &str| format!("peers: [echo], action_templates: {{{templates}}}");
    let wrong = agent(
        "t: {name: echo, parameters: {tex: \"{{x}}\"}}, \
         u: {name: ecko, parameters: {text: a}}, \
         v: {name: calculate, parameters: {expression: \"{{x}}\", values: \"{{y}}\"}}, \
         w: {name: shell, parameters: {command: [ls, \"a {{x}}\", \"{{y}}\", \"--n={{z}}\"]}}, \
         x: {name: echo, parameters: {text: a}, compensate: {name: echo}}",
    );
    with_agent(shell, &wrong, ECHO).run(&["check"]).code(1).says(&[
        "4 mistakes",
        "`echo` has no property \"tex\"; it has \"text\"",
        "there is no listener `ecko`; did you mean `echo`?",
        "and not within `a {{x}}`",
        "`echo` needs the property \"text\"",
    ]);
    let right = agent(
        "t: {name: \"{{tool}}\", parameters: {tex: a}}, \
         u: {name: echo, parameters: {text: \"{{x}}\"}}, \
         v: {name: shell, parameters: {command: [ls, --, \"{{x}}\"]}}",
    );
    with_agent(shell, &right, ECHO).run(&["check"]).code(0);
}

#[test]
fn a_key_that_stands_twice_in_a_workflow_is_told() {
    check(
        TOOLS,
        "steps:\n\
         - {name: a, target: echo, target: calculate, parameters: {text: one, text: two}}\n\
         outputs: {x: \"${steps.a}\"}\n\
         outputs: {y: \"${steps.a}\"}\n",
        &[
            "4 steps[0].target: `target` stands here again, after line 4",
            "4 steps[0].parameters.text: `text` stands here again, after line 4",
            "6 outputs: `outputs` stands here again, after line 5",
        ],
    );
}
