//! Workflows whose values grow beyond what a message may hold: a step that can't be called has
//! failed, and outputs that can't be sent fail their run.

use serde_json::Value;

use super::run;
use crate::program::Scene;

/// Runs a workflow with a text of 90 kB. `rest` follows its first step, whose result is the text
/// ten times.
fn grown(rest: &str, code: i32) -> Value {
    let scene = Scene::new();
    let text = "${trigger.t}".repeat(10);
    let first = format!("{{name: a, target: echo, parameters: {{text: \"{text}\"}}}}");
    let steps = format!("steps:\n  - {first}\n");
    scene.write("report.yml", format!("kind: Workflow\nname: report\n{steps}{rest}"));
    scene.write("organism.yaml", "include: [report.yml]\nlisteners: [{use: echo}]\n");
    let server = scene.serve(&[]);
    let input = format!("{{\"t\": \"{}\"}}", "x".repeat(90_000));
    let ended = run(&scene, &server, &input, code);
    scene.run(&["workflows"]).code(0).says(&[if code == 0 { "done" } else { "failed" }]);
    ended
}

/// A step whose text is the first step's result, twenty times.
fn second(policy: &str) -> String {
    let text = "${steps.a}".repeat(20);
    format!("  - {{name: b, target: echo{policy}, parameters: {{text: \"{text}\"}}}}\n")
}

#[test]
fn a_step_whose_call_is_too_large_has_failed() {
    let failed = grown(&second(""), 1);
    assert_eq!(failed["step"], "b", "{failed}");
    let reason = failed["reason"].as_str().unwrap();
    let why = "b failed: ${steps.a} isn't filled in: the values are more than 8388608 bytes \
               together with it";
    assert_eq!(reason, why);
}

#[test]
fn what_a_step_says_of_its_failure_holds_for_a_call_that_is_too_large() {
    let rest = second(", on_failure: continue") + "outputs: {r: done}\n";
    assert_eq!(grown(&rest, 0)["outputs"]["r"], "done");
}

#[test]
fn outputs_that_are_too_large_fail_their_run() {
    let text = "${steps.a}".repeat(20);
    let failed = grown(&format!("outputs: {{r: \"{text}\"}}\n"), 1);
    let reason = failed["reason"].as_str().unwrap();
    assert!(reason.contains("the outputs can't be sent: ${steps.a} isn't filled in"), "{reason}");
}

#[test]
fn a_reason_that_is_too_large_says_so() {
    let text = "${steps.a}".repeat(20);
    let failed = grown(&format!("  - {{name: b, fail: \"{text}\"}}\n"), 1);
    assert_eq!(failed["step"], "b", "{failed}");
    assert!(failed["reason"].as_str().unwrap().starts_with("${steps.a} isn't filled in"));
}
