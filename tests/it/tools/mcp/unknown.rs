//! Calls of MCP servers that may have happened, and answers in other forms than the protocol's.

use std::fs;

use super::called;
use crate::program::Scene;
use crate::tools::{asked, in_order, organism};

const SERVER: &str = include_str!("odd.py");

fn settings(how: &str, more: &str) -> String {
    format!("settings: {{command: [python3, odd.py, {how}]{more}}}")
}

/// A folder with a server that answers so; none where there is no Python.
fn scene(how: &str, more: &str) -> Option<Scene> {
    let scene = super::scene("")?;
    scene.write("odd.py", SERVER);
    let settings = settings(how, more);
    scene.write("organism.yaml", format!("listeners: [{{use: mcp, name: words, {settings}}}]\n"));
    Some(scene)
}

/// A folder whose agent calls the tool with two retries.
fn paying(how: &str, more: &str) -> Option<Scene> {
    drop(scene(how, "")?);
    let replies = "%% reply\n<action id=\"a\" retry=\"2\">{\"name\": \"words.pay\"}\
                   </action>\n%% reply\n<response>It is: ${a}</response>\n";
    let tool = format!("use: mcp, {}", settings(how, more));
    let scene = organism(&[("words", &tool)], replies);
    scene.write("odd.py", SERVER);
    scene.run(&["check", "--live"]).code(0);
    Some(scene)
}

fn paid(scene: &Scene) -> usize {
    fs::read_to_string(scene.path("paid")).unwrap_or_default().lines().count()
}

#[test]
fn a_call_that_may_have_happened_is_unknown_and_not_made_again() {
    for (how, more, text) in [
        ("dies", "", "the server has ended: no money left; whether anything was done is unknown"),
        ("mute", ", limits: {seconds_max: 1}", "no answer within 1 s"),
        ("broken", "", "the server's JSON can't be read"),
        ("nothing", "", "the server answers no result of a tool: null"),
    ] {
        let Some(scene) = paying(how, more) else { return };
        let log = asked(&scene, "Pay.");
        in_order(&log, &["<tool-failed", "reason=\\\"unknown\\\"", text]);
        in_order(&log, &["<action-result", "attempts=\\\"1\\\"", "status=\\\"unknown\\\""]);
        assert_eq!(paid(&scene), 1, "{how}");
    }
}

#[test]
fn a_call_that_may_be_made_twice_is_tried_again_where_the_manifest_says_so() {
    let Some(scene) = paying("dies once", ", trust_hints: true") else { return };
    let log = asked(&scene, "Pay.");
    in_order(&log, &["reason=\\\"unknown\\\"", "status=\\\"ok\\\"", "It is: pong"]);
    assert_eq!(paid(&scene), 2);
    let Some(scene) = paying("dies once", "") else { return };
    let manifest = fs::read_to_string(scene.path("organism.yaml")).unwrap();
    scene.write("organism.yaml", manifest.replace("use: mcp,", "use: mcp, idempotent: true,"));
    in_order(&asked(&scene, "Pay."), &["status=\\\"ok\\\"", "It is: pong"]);
    let Some(scene) = paying("dies once", "") else { return };
    in_order(&asked(&scene, "Pay."), &["status=\\\"unknown\\\"", "[a: failed]"]);
    assert_eq!(paid(&scene), 1, "hints aren't trusted by themselves");
}

#[test]
fn answers_in_other_forms_are_read() {
    for how in ["text id", "text", "part", "texts", "old", "old text"] {
        let Some(scene) = scene(&format!("\"{how}\""), "") else { return };
        let server = scene.serve(&[]);
        called(&scene, &server, "pay", "").says(&["<tool-result", "<text>pong</text>"]);
    }
    let Some(scene) = scene("\"no id\"", "") else { return };
    let server = scene.serve(&[]);
    called(&scene, &server, "pay", "").says(&["reason=\"refused\"", "not today"]);
}

#[test]
fn a_line_that_cannot_be_read_fails_its_own_call_alone() {
    let Some(scene) = scene("broken", "") else { return };
    let server = scene.serve(&[]);
    std::thread::scope(|scope| {
        let waits = scope.spawn(|| called(&scene, &server, "wait", ""));
        let broken = called(&scene, &server, "pay", "");
        broken.says(&["reason=\"unknown\"", "the server's JSON can't be read"]);
        waits.join().unwrap().says(&["<text>pong</text>"]);
    });
}

#[test]
fn a_server_that_ends_at_its_start_has_its_last_words_told() {
    let Some(scene) = scene("fails", "") else { return };
    let told = scene.run(&["check", "--live"]).code(1);
    told.says(&["the server has ended: ImportError: no module named tea"]);
}
