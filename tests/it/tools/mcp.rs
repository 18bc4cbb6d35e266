//! `use: mcp`: MCP servers that work, that misbehave, and that change.

mod hostile;
mod real;
mod remote;
mod schemas;
mod start;
mod unknown;

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::program::{Ran, Scene, Server};
use crate::until;

const SERVER: &str = include_str!("mcp/server.py");

/// A folder with the server of these tests; none where there is no Python.
fn scene(settings: &str) -> Option<Scene> {
    let python = Command::new("python3").arg("--version").output();
    if !python.is_ok_and(|it| it.status.success()) {
        crate::skipped("no python3");
        return None;
    }
    let scene = Scene::new();
    scene.write("server.py", SERVER);
    scene.write("organism.yaml", manifest(settings));
    Some(scene)
}

fn manifest(settings: &str) -> String {
    let command = "command: [python3, server.py]";
    format!("listeners: [{{use: mcp, name: words, settings: {{{command}{settings}}}}}]\n")
}

/// What comes of a call.
#[track_caller]
fn called(scene: &Scene, server: &Server, tool: &str, inside: &str) -> Ran {
    let ns = "https://xml-pipeline.org/ns/mcp/words/v1";
    let payload = format!("<{tool} xmlns=\"{ns}\">{inside}</{tool}>\n");
    let ran = scene.pipe(&["send", "--connect", &server.address], &payload);
    Ran { out: ran.out.replace("\n│ ", "\n"), ..ran }
}

#[test]
fn a_tool_is_called_and_its_answer_is_a_payload() {
    let Some(scene) = scene("") else { return };
    let server = scene.serve(&[]);
    let said = called(&scene, &server, "say", "<words>a &lt; b</words>");
    said.says(&["<tool-result", "tool=\"say\"", "<text>a &lt; b</text>"]);
    let counted = called(&scene, &server, "count", "<words>a b c</words>");
    counted.says(&["<text>3 words</text>", "<data>{\"count\":3}</data>"]);
    let picture = called(&scene, &server, "picture", "");
    picture.says(&[
        "<text>[image/png of 3 bytes, attached]</text>",
        "<attachment ",
        "entry=\"sess-",
    ]);
    let refused = called(&scene, &server, "refuse", "");
    refused.says(&["<tool-failed", "reason=\"tool\"", "<text>not today</text>"]);
    called(&scene, &server, "say", "").says(&["P0007", "<say> needs <words>"]);
}

#[test]
fn a_server_has_an_environment_of_its_own() {
    let Some(scene) = scene(", env: {SAID: yes}") else { return };
    let server = scene.serve(&[]);
    let env = called(&scene, &server, "env", "");
    let names = env.out.split("<text>").nth(1).and_then(|it| it.split('<').next()).unwrap();
    // What runs the tests has these.
    let is_ours = |it: &str| it == "HOME" || it.starts_with("CARGO");
    assert!(!names.split(' ').any(is_ours), "{names}");
    assert!(names.contains("SAID"), "{names}");
}

#[test]
fn a_server_that_ends_fails_its_call_and_is_begun_again() {
    let Some(scene) = scene("") else { return };
    let server = scene.serve(&[]);
    called(&scene, &server, "die", "").says(&["<tool-failed", "reason=\"unknown\""]);
    let said = called(&scene, &server, "say", "<words>again</words>");
    said.says(&["<text>again</text>"]);
    let shouted = called(&scene, &server, "shout", "");
    shouted.says(&["reason=\"unknown\"", "a line of more than 4194304 bytes"]);
    // The server is ended while it writes on, and a call that it had then is unknown.
    let said = (0..10).map(|_| called(&scene, &server, "say", "<words>still</words>"));
    assert!(said.into_iter().any(|it| it.out.contains("<text>still</text>")));
}

#[test]
fn a_call_has_its_time() {
    let Some(scene) = scene(", limits: {seconds_max: 1}") else { return };
    let server = scene.serve(&[]);
    called(&scene, &server, "say", "<words>first</words>").says(&["<text>first</text>"]);
    let slept = called(&scene, &server, "sleep", "");
    slept.says(&["reason=\"unknown\"", "the limit seconds_max is 1"]);
}

#[test]
fn the_start_of_a_server_does_not_count_as_time_of_a_call() {
    let Some(scene) = scene(", limits: {seconds_max: 1}") else { return };
    let server = scene.serve(&[]);
    scene.write("slow", "");
    called(&scene, &server, "say", "<words>late</words>").says(&["<text>late</text>"]);
}

/// A server, and a child of it in another session, end with the pump that is killed.
#[test]
fn a_server_ends_with_the_pump() {
    let Some(scene) = scene("") else { return };
    let server = scene.serve(&[]);
    let list = scene.path("sleeping");
    let ids = || fs::read_to_string(&list).unwrap_or_default();
    std::thread::scope(|scope| {
        scope.spawn(|| called(&scene, &server, "sleep", ""));
        until(|| ids().lines().count() == 2);
        server.signal("-KILL");
    });
    let is_there = |id: &str| Path::new("/proc").join(id).exists();
    until(|| !ids().lines().any(is_there));
}

/// What kills its supervisor first ends with the pump all the same.
#[test]
fn a_server_cant_get_away_from_its_supervisor() {
    let Some(scene) = scene(", limits: {seconds_max: 1}") else { return };
    let mut server = scene.serve(&[]);
    called(&scene, &server, "strike", "").says(&["<tool-failed"]);
    let list = scene.path("sleeping");
    let ids = || fs::read_to_string(&list).unwrap_or_default();
    until(|| ids().lines().count() == 1);
    server.stop("-TERM");
    let is_there = |id: &str| Path::new("/proc").join(id).exists();
    until(|| !ids().lines().any(is_there));
}

#[test]
fn check_starts_nothing_unless_it_is_told_to() {
    let Some(scene) = scene("") else { return };
    scene.write("broken", "");
    let resting = scene.run(&["check"]).code(0);
    resting.says(&["known once the pump has run, or `check --live` did"]);
    assert!(!scene.path("mcp.lock.json").exists());
    let told = scene.run(&["check", "--live"]).code(1);
    told.says(&["python3 can't be asked for its tools: the server has ended"]);
    fs::remove_file(scene.path("broken")).unwrap();
    let live = scene.run(&["check", "--live"]).code(0);
    live.says(&["ns/mcp/words/v1}say", "Left out: bomb (", "http://x/y"]);
    // A process that can write the record can accept tools.
    let mode = scene.path("mcp.lock.json").metadata().unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    scene.write("broken", "");
    scene.run(&["check"]).code(0).says(&["ns/mcp/words/v1}say"]);
    let page = scene.run(&["describe", "count"]).code(0);
    page.says(&["Counts \u{FFFD}[31mwords.", "taken by   words"]);
    let schema = scene.run(&["describe", "say", "--json-schema"]).code(0);
    let schema = schema.says(&["\"required\": [", "\"words\""]);
    assert!(!schema.out.contains("$schema"), "{}", schema.out);
}

#[test]
fn a_server_that_cannot_be_asked_has_the_tools_that_are_recorded() {
    let Some(scene) = scene("") else { return };
    scene.run(&["check", "--live"]).code(0);
    scene.write("broken", "");
    let server = scene.serve(&[]);
    let said = called(&scene, &server, "say", "<words>x</words>");
    said.says(&["<tool-failed", "reason=\"unreachable\""]);
    fs::remove_file(scene.path("broken")).unwrap();
    until(|| called(&scene, &server, "say", "<words>x</words>").out.contains("<text>x</text>"));
}

#[test]
fn a_tool_that_changed_is_refused_until_it_is_accepted() {
    let Some(scene) = scene("") else { return };
    scene.run(&["check", "--live"]).code(0);
    let before = fs::read_to_string(scene.path("mcp.lock.json")).unwrap();
    assert!(before.contains("\"digest\""), "{before}");
    scene.write("changed", "");
    let server = scene.serve(&[]);
    let said = called(&scene, &server, "say", "<words>x</words>");
    said.says(&["<tool-failed", "reason=\"changed\""]);
    called(&scene, &server, "count", "<words>x</words>").says(&["<text>1 words</text>"]);
    drop(server);
    assert_eq!(fs::read_to_string(scene.path("mcp.lock.json")).unwrap(), before);
    scene.run(&["check", "--live"]).code(0).says(&["Refused, since they changed: say"]);
    let accepted = scene.run(&["mcp", "accept"]).code(0);
    accepted.says(&["python3 server.py\n  ~ say  ", "tools of 1 servers are accepted"]);
    let again = scene.run(&["mcp", "accept"]).code(0);
    again.says(&["nothing changed; "]);
    let server = scene.serve(&[]);
    let said = called(&scene, &server, "say", "<words>x</words>");
    said.says(&["<text>x</text>"]);
    drop(server);
    // The log says by which descriptions a pump went: each once, though there were more starts.
    let organism = scene.run(&["show", "organism", "--json"]).code(0).objects();
    let accepted = |it: &&Value| it["payload"].to_string().contains("tools-accepted");
    let said: Vec<&Value> = organism.iter().filter(accepted).collect();
    assert_eq!(said.len(), 2, "{organism:#?}");
    let text = said[0].to_string();
    assert!(text.contains("ns/mcp/words/v1") && text.contains("name=\\\"say\\\""), "{text}");
    fs::remove_file(scene.path("changed")).unwrap();
    scene.write("organism.yaml", manifest(", trust: all"));
    let server = scene.serve(&[]);
    called(&scene, &server, "say", "<words>x</words>").says(&["<text>x</text>"]);
}

/// Each process that is called is the one that was compared with the record.
#[test]
fn a_server_is_asked_for_its_tools_each_time_it_begins() {
    let Some(scene) = scene("") else { return };
    let server = scene.serve(&[]);
    let said = || called(&scene, &server, "say", "<words>x</words>");
    // It was asked in another process, and described its tools as they are recorded.
    scene.write("changed", "");
    said().says(&["<tool-failed", "reason=\"changed\""]);
    called(&scene, &server, "count", "<words>x</words>").says(&["<text>1 words</text>"]);
    fs::remove_file(scene.path("changed")).unwrap();
    said().says(&["<tool-failed", "reason=\"changed\""]);
    called(&scene, &server, "die", "").says(&["reason=\"unknown\""]);
    said().says(&["<text>x</text>"]);
    scene.write("changed", "");
    called(&scene, &server, "die", "").says(&["reason=\"unknown\""]);
    said().says(&["<tool-failed", "reason=\"changed\""]);
}

#[test]
fn nothing_is_accepted_of_a_server_that_cannot_be_asked() {
    let Some(scene) = scene("") else { return };
    scene.run(&["mcp", "accept"]).code(0);
    let before = fs::read_to_string(scene.path("mcp.lock.json")).unwrap();
    scene.write("broken", "");
    let refused = scene.run(&["mcp", "accept"]).code(2);
    refused.says(&["python3 can't be asked for its tools: the server has ended"]);
    assert_eq!(fs::read_to_string(scene.path("mcp.lock.json")).unwrap(), before);
}

#[test]
fn patterns_choose_tools() {
    let Some(scene) = scene(", tools: [sa*, count]") else { return };
    let live = scene.run(&["check", "--live"]).code(0);
    let live = live.says(&["}say", "}count"]);
    assert!(!live.out.contains("}die"), "{}", live.out);
}
