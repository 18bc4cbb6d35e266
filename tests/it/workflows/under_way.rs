//! Runs that are under way: timeouts, changed workflow files, and replays.

use serde_json::json;

use super::views::{begin, once};
use crate::program::Scene;

/// A step that fails once and is tried again after 1.5 s, and one that calculates.
const REPORT: &str = "\
kind: Workflow
name: report
steps:
  - name: first
    target: first
    retry_policy: {max_attempts: 2, backoff: none, initial_delay: 1500ms}
  - {name: sum, target: calculate, parameters: {expression: 1 + 2}}
outputs: {sum: \"${steps.sum}\"}
";

/// A pump with the workflow `report` and tools that add lines to a file.
fn scene(workflow: &str) -> Scene {
    let scene = Scene::new();
    scene.write("report.yml", workflow);
    let tool = |name: &str, run: &str| {
        let settings = format!("{{run: {run}, takes: {{type: object}}}}");
        format!("  - {{use: command, name: {name}, settings: {settings}}}\n")
    };
    let listeners = [
        tool(
            "first",
            "[sh, -c, 'echo first >>done.txt; test -e again || { touch again; exit 1; }']",
        ),
        tool("undo", "[sh, -c, 'echo undo >>done.txt']"),
        tool("nap", "[sleep, \"60\"]"),
    ];
    let include = "include: [report.yml]\nlisteners:\n  - {use: calculate}\n  - {use: echo}\n";
    scene.write("organism.yaml", format!("{include}{}", listeners.concat()));
    scene
}

#[test]
fn a_run_that_takes_longer_than_its_timeout_says_so_and_undoes_its_steps() {
    let scene = scene(
        "kind: Workflow\nname: report\ntimeout: 700ms\nsteps:\n  - {name: sum, target: calculate, \
         parameters: {expression: 1 + 2}, compensate: {target: undo}}\n  - {name: nap, target: \
         nap}\n",
    );
    let server = scene.serve(&[]);
    let verb = ["workflow", "run", "report.yml", "--json", "--connect", &server.address];
    let failed = scene.run(&verb).code(1).objects()[0].clone();
    assert_eq!(failed["reason"], "the run took longer than its timeout, 0.7 s", "{failed}");
    assert_eq!((&failed["undone"], &failed["not_undone"]), (&json!(["sum"]), &json!(["nap"])));
    assert_eq!(failed["step"], json!(null), "{failed}");
    assert_eq!(std::fs::read_to_string(scene.path("work/done.txt")).unwrap(), "undo\n");
}

/// Kills a pump while a run waits for the second attempt of its first step, changes the file, and
/// starts a pump again. Returns what `workflows` says of the run once it is in this state.
#[track_caller]
fn changed(right: &str, changed: &str, state: &str) -> (Scene, serde_json::Value) {
    let scene = scene(REPORT);
    let mut server = scene.serve(&[]);
    begin(&scene, &server, "report", "1");
    server.signal("-KILL");
    let (_, _) = server.stop("-KILL");
    assert_eq!(std::fs::read_to_string(scene.path("work/done.txt")).unwrap(), "first\n");
    let other = REPORT.replace(right, changed);
    assert_ne!(other, REPORT);
    scene.write("report.yml", other);
    let _server = scene.serve(&[]);
    let run = once(&scene, "report", state);
    assert_eq!(std::fs::read_to_string(scene.path("work/done.txt")).unwrap(), "first\nfirst\n");
    (scene, run)
}

#[test]
fn a_run_under_way_goes_on_by_the_file_with_which_it_began() {
    let (scene, run) = changed("1 + 2", "3 + 4", "done");
    let thread = run["thread"].as_str().unwrap();
    scene.run(&["show", thread]).code(0).says(&["{\"sum\":\"3\"}"]);
    // The replay goes by the old file, too.
    scene.run(&["replay", thread]).code(0).says(&["the same: ", "report 3"]);
}

#[test]
fn a_run_under_way_calls_nobody_whom_the_changed_file_no_longer_names() {
    let (right, other) = ("target: calculate, parameters: {expression: 1 + 2}", "target: echo,");
    let other = format!("{other} parameters: {{text: 1 + 2}}");
    let (scene, run) = changed(right, &other, "failed");
    let thread = run["thread"].as_str().unwrap();
    scene.run(&["show", thread]).code(0).says(&["P0011", "you have no peer calculate"]);
}

#[test]
fn a_replay_has_the_workflow_decide_again() {
    let scene = scene(&REPORT.replace("retry_policy", "condition: 1 == 2\n    retry_policy"));
    let server = scene.serve(&[]);
    let thread = begin(&scene, &server, "report", "10");
    scene.run(&["replay", &thread]).code(0).says(&["the same: ", "report 2"]);
}

#[test]
fn a_replay_has_the_triggers_decide_again_also_where_one_was_switched_off() {
    let scene = scene(REPORT);
    scene.write("report.yml", format!("{REPORT}trigger: {{event: deploy}}\n"));
    scene.write("work/again", "");
    let server = scene.serve(&["--unix", "pump.sock"]);
    let event = "<trigger xmlns=\"https://xml-pipeline.org/ns/trigger/v1\" name=\"deploy\"/>";
    let push = || {
        let ran = scene.pipe(&["send", "--json", "--connect", &server.address], event).code(0);
        ran.objects()[0]["thread"].as_str().unwrap().to_owned()
    };
    let fired = push();
    let switch = |verb: &str| {
        scene.run(&["trigger", verb, "report", "--connect", "unix:pump.sock"]).code(0);
    };
    switch("disable");
    let off = push();
    scene.run(&["show", &off]).code(0).says(&["it is switched off"]);
    switch("enable");
    for thread in [fired, off] {
        scene.run(&["replay", &thread]).code(0).says(&["the same: ", "trigger "]);
    }
}

#[test]
fn a_run_over_its_budget_fails_and_names_the_budget() {
    let scene = scene(REPORT);
    let limits = "limits: {tree_messages_max: 6}\n";
    let organism = std::fs::read_to_string(scene.path("organism.yaml")).unwrap();
    scene.write("organism.yaml", format!("{limits}{organism}"));
    let server = scene.serve(&[]);
    let verb = ["workflow", "run", "report.yml", "--connect", &server.address];
    scene.run(&verb).code(1).says(&["P0042: messages: 1 asked for", "the limit is 6"]);
    scene.run(&["workflows"]).code(0).says(&["failed", "P0042"]);
}

#[test]
fn steps_may_get_the_same_answer_again_and_again() {
    let step = |it: u32| format!("  - {{name: s{it}, target: undo, parameters: {{n: {it}}}}}\n");
    let steps: String = (1..=6).map(step).collect();
    let scene = scene(&format!("kind: Workflow\nname: report\nsteps:\n{steps}"));
    let server = scene.serve(&[]);
    let verb = ["workflow", "run", "report.yml", "--connect", &server.address];
    scene.run(&verb).code(0);
}

#[test]
fn a_step_that_timed_out_is_named_among_those_that_were_not_undone() {
    let scene = scene(
        "kind: Workflow\nname: report\nsteps:\n  - {name: nap, target: nap, timeout: 300ms, \
         compensate: {target: undo}}\n",
    );
    let server = scene.serve(&[]);
    let verb = ["workflow", "run", "report.yml", "--json", "--connect", &server.address];
    let failed = scene.run(&verb).code(1).objects()[0].clone();
    assert_eq!(failed["not_undone"], json!(["nap"]), "{failed}");
}
