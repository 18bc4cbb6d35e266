//! Workflows and triggers of served manifests, over real sockets: the document on metadata word for
//! word, and mistakes that users make.

mod batches;
mod crash;
mod handed;
mod mistakes;
mod retry;
mod schedules;
mod seed_002;
mod shared;
mod storm;
mod too_large;
mod triggers;
mod two_agents;
mod under_way;
mod use_cases;
mod views;

use serde_json::Value;

use crate::program::{Scene, Server};

/// A workflow that adds two numbers and halves a large sum.
const REPORT: &str = "\
kind: Workflow
name: report
steps:
  - {name: sum, target: calculate, parameters: {expression: \"${trigger.a} + ${trigger.b}\"}}
  - name: is_large
    type: decision
    condition: trigger.b > 3
    then:
      - {name: half, target: calculate, parameters: {expression: \"${steps.sum} / 2\"}}
outputs: {sum: \"${steps.sum}\", half: \"${steps.half}\", text: \"It is ${steps.sum}.\"}
";

fn served() -> (Scene, Server) {
    let scene = Scene::new();
    scene.write("report.yml", REPORT);
    scene.write("organism.yaml", "include: [report.yml]\nlisteners: [{use: calculate}]\n");
    scene.run(&["check"]).code(0);
    let server = scene.serve(&[]);
    (scene, server)
}

/// Runs the workflow with an input, and has what the command says.
#[track_caller]
fn run(scene: &Scene, server: &Server, input: &str, code: i32) -> Value {
    let verb = ["workflow", "run", "report.yml", "--connect", &server.address];
    let arguments = [&verb[..], &["--input", input, "--json"]].concat();
    let objects = scene.run(&arguments).code(code).objects();
    objects.first().cloned().unwrap_or_default()
}

#[test]
fn a_run_answers_with_its_outputs_and_a_branch_that_was_not_taken_has_none() {
    let (scene, server) = served();
    let outputs = |input: &str| run(&scene, &server, input, 0)["outputs"].clone();
    let large = serde_json::json!({"sum": "46", "half": "23", "text": "It is 46."});
    assert_eq!(outputs("{\"a\": 40, \"b\": 6}"), large);
    let small = serde_json::json!({"sum": "42", "half": null, "text": "It is 42."});
    assert_eq!(outputs("{\"a\": 40, \"b\": 2}"), small);
}

#[test]
fn a_result_that_is_a_number_as_a_text_counts_as_a_number_in_conditions() {
    let scene = Scene::new();
    let sum = "{name: sum, target: calculate, parameters: {expression: \"${trigger.a} + 1\"}}";
    let large = "{name: large, target: echo, condition: steps.sum > 9, parameters: {text: large}}";
    let steps = format!("steps: [{sum}, {large}]\noutputs: {{size: \"${{steps.large}}\"}}\n");
    scene.write("report.yml", format!("kind: Workflow\nname: report\n{steps}"));
    let listeners = "listeners: [{use: calculate}, {use: echo}]\n";
    scene.write("organism.yaml", format!("include: [report.yml]\n{listeners}"));
    let server = scene.serve(&[]);
    let size = |input: &str| run(&scene, &server, input, 0)["outputs"]["size"].clone();
    assert_eq!((size("{\"a\": 2}"), size("{\"a\": 40}")), (Value::Null, "large".into()));
}

#[test]
fn a_result_that_is_a_text_is_compared_as_a_text() {
    let check = |value: &str, condition: &str, expected: bool| {
        let scene = Scene::new();
        let said = format!("{{name: said, target: echo, parameters: {{text: \"{value}\"}}}}");
        let held = format!(
            "{{name: held, type: decision, condition: '{condition}', then: [{{\
                            name: yes, target: echo, parameters: {{text: held}}}}]}}"
        );
        let steps = format!("steps: [{said}, {held}]\noutputs: {{held: \"${{steps.yes}}\"}}\n");
        scene.write("report.yml", format!("kind: Workflow\nname: report\n{steps}"));
        scene.write("organism.yaml", "include: [report.yml]\nlisteners: [{use: echo}]\n");
        let server = scene.serve(&[]);
        let held = run(&scene, &server, "{}", 0)["outputs"]["held"] == "held";
        assert_eq!(held, expected, "{value}: {condition}");
    };
    check("1.10", "steps.said == \"1.10\"", true);
    check("1.10", "steps.said == \"1.1\"", false);
    check("042", "steps.said in [\"41\", \"042\"] and steps.said != \"42\"", true);
    check("1.10", "steps.said == 1.1 and steps.said > 1", true);
}

#[test]
fn the_input_may_be_elements_whose_contents_are_texts() {
    let (scene, server) = served();
    let ns = "https://xml-pipeline.org/ns/workflow/report/v1";
    let input = &format!("<report xmlns=\"{ns}\"><a>40</a><b>2</b></report>");
    let ran = scene.pipe(&["send", "--connect", &server.address], input).code(0);
    ran.says(&["\"sum\":\"42\""]);
}

#[test]
fn two_runs_in_one_thread_keep_apart() {
    let (scene, server) = served();
    let input = |a: i64| {
        let ns = "https://xml-pipeline.org/ns/workflow/report/v1";
        format!("<report xmlns=\"{ns}\">{{\"a\": {a}, \"b\": 6}}</report>")
    };
    let send = |arguments: &[&str], input: &str| {
        let verb = ["send", "--connect", &server.address, "--json"];
        scene.pipe(&[&verb[..], arguments].concat(), input).code(0)
    };
    let first = send(&[], &input(1));
    let thread = first.objects()[0]["thread"].as_str().unwrap().to_owned();
    let both = send(&["--thread", &thread], &(input(10) + &input(20)));
    for half in [8, 13] {
        assert!(both.out.contains(&format!("\\\"half\\\":\\\"{half}\\\"")), "{}", both.out);
    }
}

#[test]
fn a_step_may_run_another_workflow_which_gets_its_parameters_with_their_types() {
    let scene = Scene::new();
    scene.write("report.yml", REPORT);
    let outer = "\
kind: Workflow
name: outer
steps:
  - {name: inner, type: workflow, target: report, parameters: {a: \"${trigger.a}\", b: 6}}
outputs: {half: \"${steps.inner.half}\"}
";
    scene.write("outer.yml", outer);
    scene.write("organism.yaml", "include: [\"*.yml\"]\nlisteners: [{use: calculate}]\n");
    let server = scene.serve(&[]);
    let verb = ["workflow", "run", "outer.yml", "--connect", &server.address, "--json"];
    let ran = scene.run(&[&verb[..], &["--input", "{\"a\": 40}"]].concat()).code(0);
    assert_eq!(ran.objects()[0]["outputs"]["half"], "23", "{}", ran.out);
}

#[test]
fn an_agent_runs_a_workflow_as_an_action() {
    let scene = Scene::new();
    scene.write("report.yml", REPORT);
    let call = "{\"name\": \"report\", \"parameters\": {\"a\": 40, \"b\": 6}}";
    let action = format!("<action type=\"workflow\" id=\"r\">{call}</action>");
    let reply = format!("{action}<response>Half is ${{r.half}}.</response>");
    scene.write("replies.txt", format!("%% reply\n{reply}\n"));
    let listeners =
        "  - {use: calculate}\n  - {use: agent, name: clerk, model: m, workflows: [report]}\n";
    let models = "models: {m: {use: scripted, file: replies.txt}}";
    scene.write(
        "organism.yaml",
        format!("{models}\ninclude: [report.yml]\nlisteners:\n{listeners}"),
    );
    let server = scene.serve(&[]);
    let ask = "<clerk xmlns=\"https://xml-pipeline.org/ns/clerk/v1\">Go.</clerk>";
    let ran = scene.pipe(&["send", "--connect", &server.address], ask).code(0);
    ran.says(&["Half is 23."]);
}

#[test]
fn no_step_runs_twice_where_results_come_together() {
    let scene = Scene::new();
    let mut steps = String::new();
    let mut step = |name: &str, after: &str, value: &str| {
        let parameters = format!("parameters: {{expression: \"{value}\"}}");
        let name = format!("name: {name}, target: calculate, depends_on: [{after}]");
        steps += &format!("  - {{{name}, {parameters}}}\n");
    };
    for chain in 0..12 {
        step(&format!("a{chain}_0"), "", "1");
        for number in 1..4 {
            let before = format!("a{chain}_{}", number - 1);
            step(&format!("a{chain}_{number}"), &before, &format!("${{steps.{before}}} + 1"));
        }
    }
    scene.write("report.yml", format!("kind: Workflow\nname: report\nsteps:\n{steps}"));
    scene.write("organism.yaml", "include: [report.yml]\nlisteners: [{use: calculate}]\n");
    let server = scene.serve(&[]);
    let ran = run(&scene, &server, "{}", 0);
    let shown = scene.run(&["show", ran["thread"].as_str().unwrap()]).code(0);
    assert_eq!(shown.out.matches("report → action").count(), 48);
}

#[test]
fn a_run_fails_where_a_reference_has_no_value() {
    let (scene, server) = served();
    let failed = run(&scene, &server, "{\"a\": 40}", 1);
    assert_eq!(failed["step"], "sum");
    assert_eq!(failed["reason"], "sum failed: ${trigger.b} has no value");
}

#[test]
fn a_run_is_the_same_when_it_is_replayed() {
    let (scene, server) = served();
    let run = run(&scene, &server, "{\"a\": 1, \"b\": 5}", 0);
    let thread = run["thread"].as_str().unwrap();
    scene.run(&["replay", thread]).code(0);
}

#[test]
fn a_pump_without_the_workflow_says_so() {
    let (scene, server) = served();
    scene
        .write("other.yml", "kind: Workflow\nname: other\nsteps: [{name: a, target: calculate}]\n");
    let verb = ["workflow", "run", "other.yml", "--connect", &server.address];
    scene.run(&verb).code(1).says(&["no listener is called other"]);
}

#[test]
fn a_value_that_is_an_argument_of_a_program_is_no_option() {
    let scene = Scene::new();
    let command = "command: [ls, \"${trigger.dir}\", \"--\", \"${trigger.file}\"]";
    let step = format!("{{name: a, target: shell, parameters: {{{command}}}}}");
    scene.write("report.yml", format!("kind: Workflow\nname: report\nsteps: [{step}]\n"));
    let shell = "{use: shell, settings: {programs: [ls]}}";
    scene.write("organism.yaml", format!("include: [report.yml]\nlisteners: [{shell}]\n"));
    let server = scene.serve(&[]);
    let at = ["--connect", &*server.address];
    let run = |input: &str, code: i32| {
        scene
            .run(&[&["workflow", "run", "report.yml", "--input", input][..], &at].concat())
            .code(code)
    };
    scene.write("work/list", "");
    run("{\"dir\": \".\", \"file\": \"list\"}", 0);
    let told = run("{\"dir\": \"-la\", \"file\": \"-x\"}", 1);
    told.says(&["$.command[1] begins with `-`, and the program could take it for an option"]);
}
