//! `workflow retry`: a new run begins at the step where another run failed.

use serde_json::Value;

use super::views::{begin, once};
use crate::program::{Scene, Server};

/// A workflow whose second step fails until there is a file `there`. Each step adds a line to a
/// file.
fn scene(undo: &str) -> Scene {
    let scene = Scene::new();
    let steps = "  - name: first
    target: first
    parameters: {text: \"${trigger.text}\"}
UNDO  - {name: second, target: second, parameters: {text: \"${steps.first}\"}}
";
    let steps = steps.replace("UNDO", undo);
    let workflow = format!(
        "kind: Workflow\nname: report\nsteps:\n{steps}outputs: {{text: \"${{steps.second}}\"}}\n"
    );
    scene.write("report.yml", workflow);
    let tool = |name: &str, script: &str| {
        let run = format!("run: [sh, -c, '{script}']");
        let takes = "takes: {type: object, properties: {text: {type: string}}}";
        format!("  - {{use: command, name: {name}, settings: {{{run}, {takes}}}}}\n")
    };
    let listeners = [
        tool("first", "echo first >>done.txt; echo one"),
        tool("second", "echo second >>done.txt; test -e there && echo two"),
        tool("undo", "echo undo >>done.txt"),
    ];
    scene.write(
        "organism.yaml",
        format!("include: [report.yml]\nlisteners:\n{}", listeners.concat()),
    );
    scene
}

/// What the command says of a run, as JSON.
#[track_caller]
fn run(scene: &Scene, server: &Server, arguments: &[&str], code: i32) -> Value {
    let all = [&["workflow"], arguments, &["--connect", &server.address, "--json"]].concat();
    scene.run(&all).code(code).objects()[0].clone()
}

fn done(scene: &Scene) -> String {
    std::fs::read_to_string(scene.path("work/done.txt")).unwrap().replace('\n', " ")
}

#[test]
fn a_run_begins_anew_with_the_step_that_failed() {
    let scene = scene("");
    let server = scene.serve(&[]);
    let failed = run(&scene, &server, &["run", "report.yml", "--input", "{\"text\": \"x\"}"], 1);
    let thread = failed["thread"].as_str().unwrap();
    let again = run(&scene, &server, &["retry", thread], 1);
    assert_eq!((&again["step"], &again["thread"]), (&failed["step"], &failed["thread"]));
    scene.write("work/there", "");
    let whole = run(&scene, &server, &["retry", thread], 0);
    assert_eq!(whole["outputs"]["text"], "two", "{whole}");
    assert_eq!(done(&scene), "first second second second ");
    // The first step's result is that of the first run.
    scene.run(&["show", thread]).code(0).says(&["repeats=", "\"step\":\"first\""]);
    scene.run(&["replay", thread]).code(0);
    let runs = scene.run(&["workflows", "--json"]).code(0).objects();
    let states: Vec<&str> = runs.iter().filter_map(|it| it["state"].as_str()).collect();
    assert_eq!(states, ["done", "failed", "failed"]);
    let retry = |run: &str| scene.run(&["workflow", "retry", run, "--connect", &server.address]);
    retry(thread).code(1).says(&["error: ", "has come to its end; nothing of it has failed"]);
    retry(&format!("{thread}/1")).code(1).says(&["/1 has begun anew already, as "]);
    // What was refused is no run.
    assert_eq!(scene.run(&["workflows", "--json"]).code(0).objects().len(), 3);
    assert_eq!(done(&scene), "first second second second ");
}

#[test]
fn of_two_retries_at_once_one_is_refused() {
    let scene = scene("");
    let server = scene.serve(&[]);
    let failed = run(&scene, &server, &["run", "report.yml", "--input", "{\"text\": \"x\"}"], 1);
    let id = format!("{}/1", failed["thread"].as_str().unwrap());
    scene.write("work/there", "");
    let retry = || {
        let mut command = scene.command(&["workflow", "retry", &id, "--connect", &server.address]);
        command.stderr(std::process::Stdio::piped()).stdout(std::process::Stdio::piped());
        command.spawn().unwrap()
    };
    let all = [retry(), retry(), retry()].map(|it| it.wait_with_output().unwrap());
    assert_eq!(all.iter().filter(|it| it.status.success()).count(), 1, "{all:?}");
    assert_eq!(done(&scene), "first second second ");
}

#[test]
fn a_run_whose_workflow_was_missing_when_a_result_came_can_begin_anew() {
    let scene = scene("");
    let script = "test -e quick || sleep 60";
    let slow = format!(
        "include: [\"*.yml\"]\nlisteners:\n  - {{use: command, name: slow, settings: {{run: \
         [sh, -c, '{script}'], takes: {{type: object}}}}}}\n  - {{use: calculate}}\n"
    );
    scene.write("organism.yaml", slow);
    let step = "{name: a, target: calculate, parameters: {expression: 1 + 2}}";
    let other = format!("kind: Workflow\nname: other\nsteps: [{step}]\n");
    scene.write("other.yml", other);
    let sum = "{name: sum, target: calculate, parameters: {expression: 1 + 2}}";
    let workflow = format!(
        "kind: Workflow\nname: report\nsteps:\n  - {{name: nap, target: slow, on_failure: \
         continue}}\n  - {sum}\noutputs: {{sum: \"${{steps.sum}}\"}}\n"
    );
    scene.write("report.yml", &workflow);
    let mut server = scene.serve(&[]);
    let thread = begin(&scene, &server, "report", "1");
    server.stop("-KILL");
    std::fs::remove_file(scene.path("report.yml")).unwrap();
    let mut server = scene.serve(&[]);
    server.stop("-TERM");
    scene.write("report.yml", workflow);
    let server = scene.serve(&[]);
    let why = once(&scene, "report", "waiting")["reason"].as_str().unwrap().to_owned();
    assert!(why.contains(&format!("`pumphouse workflow retry {thread}/1`")), "{why}");
    scene.write("work/quick", "");
    let whole = run(&scene, &server, &["retry", &format!("{thread}/1")], 0);
    assert_eq!(whole["outputs"]["sum"], "3", "{whole}");
}

#[test]
fn a_step_that_was_undone_runs_again() {
    let scene = scene("    compensate: {target: undo}\n");
    let server = scene.serve(&[]);
    let failed = run(&scene, &server, &["run", "report.yml", "--input", "{\"text\": \"x\"}"], 1);
    scene.write("work/there", "");
    run(&scene, &server, &["retry", failed["thread"].as_str().unwrap()], 0);
    assert_eq!(done(&scene), "first second undo first second ");
}

#[test]
fn what_is_no_run_is_refused() {
    let scene = scene("");
    let server = scene.serve(&[]);
    let retry = |run: &str| scene.run(&["workflow", "retry", run, "--connect", &server.address]);
    retry("sess-nothing").code(1).says(&["there is no thread sess-nothing"]);
    let ran = run(&scene, &server, &["run", "report.yml", "--input", "{\"text\": \"x\"}"], 1);
    let thread = ran["thread"].as_str().unwrap();
    retry(&format!("{thread}/7")).code(1).says(&["is no run of a workflow"]);
}
