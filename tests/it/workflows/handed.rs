//! Metadata that agents pass to the agents that they call, and metadata that workflows set.

use super::seed_002::shown;
use crate::program::Scene;

/// The fields of both agents.
const FIELDS: &str = "{status: {values: [IDLE, CODING, TESTING], default: IDLE}, note: {type: \
                      string}}";

/// A workflow that the status TESTING triggers, and that sets a field and tries to set another.
const REPORT: &str = "\
kind: Workflow
name: report
trigger: {conditions: {status: TESTING}}
steps:
  - {name: sum, target: calculate, parameters: {expression: 1+1}}
outputs: {note: \"${steps.sum}\", status: NOPE, other: 1}
";

/// A boss that calls a helper. `children` and `action` say what the helper gets.
fn scene(children: &str, action: &str, helper: &str) -> Scene {
    let scene = Scene::new();
    scene.write("helper.txt", format!("%% reply\n{helper}<response>Done.</response>\n"));
    scene.write(
        "boss.txt",
        format!(
            "%% reply\n<metadata>{{\"status\": \"CODING\", \"note\": \"mine\"}}</metadata>\n\
             <action type=\"agent\" id=\"a\"{action}>{{\"name\": \"helper\", \"parameters\": \
             {{\"text\": \"Go.\"}}}}</action>\n%% reply\n<response>All done.</response>\n"
        ),
    );
    scene.write("report.yml", REPORT);
    scene.write(
        "organism.yaml",
        format!(
            "\
models: {{boss: {{use: scripted, file: boss.txt}}, helper: {{use: scripted, file: helper.txt}}}}
include: [report.yml]
listeners:
  - use: calculate
  - use: agent
    name: boss
    model: boss
    peers: [helper]
    workflows: [report]
    metadata: {{fields: {FIELDS}{children}, from_workflows: [report]}}
  - use: agent
    name: helper
    model: helper
    metadata: {{fields: {FIELDS}}}
"
        ),
    );
    scene.run(&["check"]).code(0);
    scene
}

/// Asks the boss. Returns its session.
#[track_caller]
fn ask(scene: &Scene, address: &str) -> String {
    let ask = "<boss xmlns=\"https://xml-pipeline.org/ns/boss/v1\">Go.</boss>";
    let sent = scene.pipe(&["send", "--connect", address, "--json"], ask).code(0).objects();
    sent[0]["thread"].as_str().unwrap().to_owned()
}

/// Asks the boss. Returns the session, and the histories of the boss's and the helper's metadata.
fn histories(scene: &Scene, address: &str) -> (String, String, String) {
    let session = ask(scene, address);
    let history = |thread: &str| {
        let out = scene.run(&["metadata", thread, "--history"]).code(0).out;
        let each = out.lines().filter_map(|it| Some(it.split_once("  ")?.1.to_owned()));
        each.map(|it| it.split_once("  ").map_or("", |it| it.1).to_owned() + "\n").collect()
    };
    let (boss, helper): (String, String) =
        (history(&session), history(&format!("{session}.helper")));
    (session, boss, helper)
}

#[test]
fn a_called_agent_gets_nothing_unless_its_caller_says_so() {
    let scene = scene("", "", "");
    let server = scene.serve(&[]);
    let (_, boss, helper) = histories(&scene, &server.address);
    assert_eq!(boss, "boss turn 1  status: not set → CODING\nboss turn 1  note: not set → mine\n");
    assert_eq!(helper, "");
    drop(server);
}

#[test]
fn a_called_agent_inherits_a_copy_and_changes_only_its_own() {
    let set = "<metadata>{\"status\": \"TESTING\"}</metadata>";
    for (children, action) in [(", children: inherit", ""), ("", " metadata=\"inherit\"")] {
        let scene = scene(children, action, set);
        let server = scene.serve(&[]);
        let (session, boss, helper) = histories(&scene, &server.address);
        assert!(!boss.contains("TESTING"), "{boss}");
        let expected = "helper by boss  note: not set → mine\nhelper by boss  status: not set → \
                        CODING\nhelper turn 1  status: CODING → TESTING\n";
        assert_eq!(helper, expected);
        let helper = format!("{session}.helper");
        scene.run(&["show", &helper]).code(0).says(&["- status: CODING", "- note: mine"]);
        scene.run(&["replay", &helper]).code(0);
        drop(server);
    }
}

#[test]
fn what_an_agent_shares_changes_the_metadata_of_its_caller_and_fires_its_triggers() {
    let set = "<metadata>{\"status\": \"TESTING\"}</metadata>";
    let scene = scene(", children: share", "", set);
    let server = scene.serve(&[]);
    let (session, boss, helper) = histories(&scene, &server.address);
    assert!(helper.contains("helper turn 1  status: CODING → TESTING"), "{helper}");
    let run = format!("{session}.report");
    shown(&scene, &run, &["<workflow-result"]);
    let shared = format!("boss by helper turn 1  status: CODING → TESTING; began report in {run}");
    assert!(boss.contains(&shared), "{boss}");
    let boss = scene.run(&["metadata", &session, "--history"]).code(0).out;
    assert!(boss.contains("boss by report  note: mine → 2"), "{boss}");
    assert!(boss.contains("status: refused: \"NOPE\" not in [IDLE, CODING, TESTING]"), "{boss}");
    scene.run(&["replay", &session]).code(0);
    drop(server);
}

/// A workflow that says for which agent it works, and with which metadata.
fn telling(name: &str, status: &str, outputs: &str) -> String {
    let whose = "${agent.agent_name} in ${agent.thread}, turn ${agent.iteration_count}";
    let has = "${metadata.status} ${agent.metadata.note} ${trigger.metadata.note}";
    let steps = "[{name: who, target: agent_context}]";
    format!(
        "kind: Workflow\nname: {name}\ntrigger: {{conditions: {{status: {status}}}}}\nsteps: \
         {steps}\noutputs: {{{outputs}whose: \"{whose}\", has: \"{has}\"}}\n"
    )
}

/// Adds the listener by which workflows ask for an agent's context.
fn add_agent_context(scene: &Scene) {
    let manifest = std::fs::read_to_string(scene.path("organism.yaml")).unwrap();
    let both = "  - use: calculate\n  - use: agent_context\n";
    scene.write("organism.yaml", manifest.replace("  - use: calculate\n", both));
    scene.run(&["check"]).code(0);
}

#[test]
fn a_run_that_shared_metadata_begin_works_for_the_agent_for_which_they_were_set() {
    let set = "<metadata>{\"status\": \"TESTING\"}</metadata>";
    let scene = scene(", children: share", "", set);
    scene.write("report.yml", telling("report", "TESTING", ""));
    add_agent_context(&scene);
    let mut server = scene.serve(&[]);
    let session = ask(&scene, &server.address);
    server.signal("-KILL");
    drop(server);
    server = scene.serve(&[]);
    let run = format!("{session}.report");
    let whose = format!("\"boss in {session}, turn 1\"");
    let words = ["<workflow-result", "agent_name=\"boss\"", "TESTING mine mine", &*whose];
    let ran = shown(&scene, &run, &words);
    assert!(!ran.out.contains("agent_name=\"helper\""), "{}", ran.out);
    scene.run(&["replay", &run]).code(0);
    drop(server);
}

#[test]
fn a_run_that_a_workflow_triggers_sees_what_the_workflow_has_set() {
    let scene = scene("", "", "");
    let outputs = "status: TESTING, note: theirs, ";
    scene.write("report.yml", telling("report", "CODING", outputs));
    scene.write("second.yml", telling("second", "TESTING", ""));
    let manifest = std::fs::read_to_string(scene.path("organism.yaml")).unwrap();
    let manifest = manifest.replace("include: [report.yml]", "include: [report.yml, second.yml]");
    let manifest = manifest.replace("workflows: [report]\n", "workflows: [report, second]\n");
    scene.write("organism.yaml", manifest);
    add_agent_context(&scene);
    let server = scene.serve(&[]);
    let session = ask(&scene, &server.address);
    shown(&scene, &format!("{session}.report"), &["CODING mine mine"]);
    let run = format!("{session}.second");
    let context = "\"status\":\"TESTING\",\"note\":\"theirs\"";
    shown(&scene, &run, &["<workflow-result", "TESTING theirs theirs", context]);
    scene.run(&["replay", &run]).code(0);
    drop(server);
}

#[test]
fn a_word_that_means_no_handing_over_is_refused() {
    let scene = scene("", " metadata=\"shared\"", "");
    let server = scene.serve(&[]);
    let session = ask(&scene, &server.address);
    let said = "metadata takes none, inherit or share, not \"shared\"; did you mean share?";
    scene.run(&["show", &session]).code(0).says(&[said]);
    drop(server);
}

#[test]
fn only_workflows_of_the_agent_set_its_metadata() {
    let scene = scene("", "", "");
    let manifest = std::fs::read_to_string(scene.path("organism.yaml")).unwrap();
    scene.write(
        "organism.yaml",
        manifest.replace("from_workflows: [report]", "from_workflows: [reprot]"),
    );
    let said = "`reprot` is no workflow of this agent; did you mean `report`?";
    scene.run(&["check"]).code(1).says(&[said, "the key `workflows` of the agent"]);
}

/// Plays two workflows that set metadata to and fro, with this key of their triggers.
fn plays_to_and_fro(key: &str) {
    let scene = Scene::new();
    let set = "%% reply\n<metadata>{\"status\": \"CODING\"}</metadata><response>Done.</response>\n";
    scene.write("boss.txt", set);
    for (on, to) in [("CODING", "TESTING"), ("TESTING", "CODING")] {
        let name = on.to_lowercase();
        let text = format!(
            "kind: Workflow\nname: {name}\ntrigger: {{conditions: {{status: {on}}}{key}}}\n\
             steps:\n  - {{name: wait, type: barrier}}\noutputs: {{status: {to}}}\n"
        );
        scene.write(&format!("{name}.yml"), text);
    }
    scene.write(
        "organism.yaml",
        format!(
            "\
models: {{boss: {{use: scripted, file: boss.txt}}}}
include: [coding.yml, testing.yml]
listeners:
  - use: agent
    name: boss
    model: boss
    workflows: [coding, testing]
    metadata: {{fields: {FIELDS}, from_workflows: [coding, testing]}}
"
        ),
    );
    scene.run(&["check"]).code(0);
    let server = scene.serve(&[]);
    let session = ask(&scene, &server.address);
    let shown = shown(&scene, &session, &["have begun one another"]);
    assert!(shown.out.matches("<workflow-result").count() < 100, "{}", shown.out);
    drop(server);
}

#[test]
fn workflows_that_set_metadata_to_and_fro_come_to_an_end() {
    plays_to_and_fro("");
}

#[test]
fn workflows_whose_triggers_hold_for_a_time_come_to_an_end_too() {
    plays_to_and_fro(", for: 10ms");
}
