//! Workflows that fail by choice: `fail`, and statuses of answers that count as failures.

use serde_json::Value;

use super::site::{Answer, Site, head, page};
use crate::program::Scene;

/// A shop whose payments are refused.
async fn shop() -> Site {
    Site::start(|path| match path {
        "/pay" => {
            let body = "no money";
            let headers = format!("content-type: text/plain\r\ncontent-length: {}\r\n", body.len());
            Answer::Whole(
                [head("402 Payment Required", &headers).as_slice(), body.as_bytes()].concat(),
            )
        }
        _ => page("text/plain", "ok"),
    })
    .await
}

/// What comes of a run of these steps.
#[track_caller]
fn run(site: &Site, more: &str, steps: &str) -> Value {
    let scene = Scene::new();
    let step = |name: &str, path: &str| {
        format!(
            "{{name: {name}, target: http, parameters: {{url: \"{}\", headers: {{}}}}",
            site.url(path)
        )
    };
    let steps =
        steps.replace("{PAY", &step("pay", "/pay")).replace("{RESERVE", &step("reserve", "/r"));
    scene.write("w.yml", format!("kind: Workflow\nname: w\n{more}steps:\n{steps}"));
    let http = format!("{{use: http, settings: {{hosts: [\"{}\"]}}}}", site.host());
    let listeners = format!("listeners: [{http}, {{use: calculate}}, {{use: echo}}]\n");
    scene.write("organism.yaml", format!("include: [w.yml]\n{listeners}"));
    scene.run(&["check"]).code(0);
    let server = scene.serve(&[]);
    let verb = ["workflow", "run", "w.yml", "--json", "--connect", &server.address];
    let ran = scene.run(&verb);
    ran.objects().first().cloned().unwrap_or_else(|| panic!("{}{}", ran.out, ran.err))
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_with_a_failed_status_is_a_failure() {
    let site = shop().await;
    let reserve = "  - {RESERVE, compensate: {target: echo, parameters: {text: free}}}\n";
    let reason = "pay failed: the answer has the status 402";
    let failed = run(&site, "", &format!("{reserve}  - {{PAY, failed_statuses: 400-}}\n"));
    assert_eq!((&failed["step"], &failed["reason"]), (&"pay".into(), &reason.into()), "{failed}");
    assert_eq!(failed["undone"], serde_json::json!(["reserve"]), "{failed}");
    let failed = run(&site, "failed_statuses: [\"400-499\"]\n", "  - {PAY}\n");
    assert_eq!(failed["reason"], reason, "{failed}");
    // Other statuses are answers, and a step's own statuses count more than the workflow's.
    let steps = "  - {PAY, failed_statuses: 500-}\n";
    let ran = run(&site, "outputs: {s: \"${steps.pay.status}\"}\nfailed_statuses: 400-\n", steps);
    assert_eq!(ran["outputs"]["s"], 402, "{ran}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_step_may_end_the_run_as_failed_for_a_reason_of_its_own() {
    let site = shop().await;
    let stop = "{name: stop, condition: steps.pay.status >= 400, \
                fail: \"refused with ${steps.pay.status}\"}";
    let reserve = "{RESERVE, compensate: {target: echo, parameters: {text: free}}}";
    let steps = format!("  - {reserve}\n  - {{PAY}}\n  - {stop}\n");
    let failed = run(&site, "on_failure: continue\n", &steps);
    assert_eq!(failed["step"], "stop", "{failed}");
    assert_eq!(failed["reason"], "refused with 402", "{failed}");
    assert_eq!(failed["undone"], serde_json::json!(["reserve"]), "{failed}");
    // A step whose condition doesn't hold fails nothing.
    let ran = run(&site, "", &format!("  - {{PAY}}\n  - {}\n", stop.replace(">= 400", ">= 500")));
    assert_eq!(ran["outputs"], serde_json::json!({}), "{ran}");
}

#[test]
fn a_step_with_a_reason_calls_nobody() {
    let scene = Scene::new();
    for (step, said) in [
        ("{name: a, fail: no, target: echo}", "a step with `fail` ends the run, and calls nobody"),
        ("{name: a, fail: no, on_failure: continue}", "a step with `fail` ends the run"),
        ("{name: a, fail: no, type: barrier}", "a step with `fail` has no `type`"),
        ("{name: a, fail: [1]}", "a reason is a text"),
        ("{name: a, fail: \"${steps.b.c}\"}", "there is no step `b`"),
        ("{name: a, target: echo, failed_statuses: 4xx}", "is no status: write 404"),
        ("{name: a}", "needs the key `target`, the listener that it calls, or `fail`"),
    ] {
        let step = step.replace("fail: no,", "fail: \"no\",");
        scene.write("w.yml", format!("kind: Workflow\nname: w\nsteps: [{step}]\n"));
        scene.write("organism.yaml", "include: [w.yml]\nlisteners: [{use: echo}]\n");
        scene.run(&["check"]).code(1).says(&[said, "w.yml:3:"]);
    }
}
