//! MCP servers that take long to start.

use std::fs;
use std::fs::File;

use super::called;
use crate::program::Scene;

const SERVER: &str = include_str!("odd.py");

/// A folder with three servers, whose tools are recorded; none where there is no Python.
fn scene() -> Option<Scene> {
    let scene = super::scene("")?;
    scene.write("odd.py", SERVER);
    let server = |name: &str| {
        let settings = "command: [python3, odd.py, plain], limits: {start_seconds_max: 600}";
        format!("  - {{use: mcp, name: {name}, settings: {{{settings}}}}}\n")
    };
    let all: String = ["words", "one", "two"].into_iter().map(server).collect();
    scene.write("organism.yaml", format!("listeners:\n{all}"));
    scene.run(&["check", "--live"]).code(0);
    Some(scene)
}

/// Each would be waited for for ten minutes.
#[test]
fn servers_that_hang_delay_no_door_and_say_so() {
    let Some(scene) = scene() else { return };
    scene.write("hang", "");
    let traces = File::create(scene.path("traces")).unwrap();
    drop(scene.serve_traced(&[], traces.into()));
    let told = fs::read_to_string(scene.path("traces")).unwrap();
    let text = "a server hasn't answered yet: its recorded tools are offered meanwhile";
    assert_eq!(told.matches(text).count(), 3, "{told}");
}

#[test]
fn a_server_that_hangs_before_anything_is_recorded_leaves_its_tools_out() {
    let Some(scene) = super::scene("") else { return };
    scene.write("odd.py", SERVER);
    scene.write("hang", "");
    let settings = "command: [python3, odd.py, plain], limits: {start_seconds_max: 3}";
    let server = format!("{{use: mcp, name: words, settings: {{{settings}}}}}");
    scene.write("organism.yaml", format!("listeners:\n  - {server}\n  - {{use: echo}}\n"));
    let traces = File::create(scene.path("traces")).unwrap();
    drop(scene.serve_traced(&[], traces.into()));
    let told = fs::read_to_string(scene.path("traces")).unwrap();
    assert!(told.contains("a server can't be asked for its tools"), "{told}");
}

#[test]
fn a_tool_that_changed_meanwhile_is_refused_once_its_server_answers() {
    let Some(scene) = scene() else { return };
    let server = fs::read_to_string(scene.path("odd.py")).unwrap();
    let until = "while os.path.exists(\"hang\"):\n        time.sleep(0.05)\n    if False:";
    scene.write("odd.py", server.replace("if os.path.exists(\"hang\"):", until));
    scene.write("hang", "");
    scene.write("changed", "");
    let server = scene.serve(&[]);
    fs::remove_file(scene.path("hang")).unwrap();
    called(&scene, &server, "pay", "").says(&["<tool-failed", "reason=\"changed\""]);
    scene.write("paid", "");
    called(&scene, &server, "wait", "").says(&["<text>pong</text>"]);
}
