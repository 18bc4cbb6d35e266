//! A sink that writes files.

use std::fs;
use std::path::Path;

use serde_json::Value;

use super::{logged, push, scene};
use crate::program::{Scene, Server};
use crate::until;

const ONE: &str = "sinks: [{type: file, path: sinks/all.jsonl, format: jsonl}]\n";

pub(super) fn lines(path: &Path) -> Vec<Value> {
    let text = fs::read_to_string(path).unwrap_or_default();
    text.lines().map(|it| serde_json::from_str(it).expect(it)).collect()
}

fn position(scene: &Scene) -> Value {
    let text = fs::read(scene.path("data/pumphouse.db-sink-file.json")).unwrap();
    serde_json::from_slice::<Value>(&text).unwrap()["position"].clone()
}

#[test]
fn each_thread_has_a_file_with_its_entries_as_they_are_exported() {
    let scene = scene("sinks: [{type: file, path: \"sinks/{thread_id}/stream.jsonl\"}]\n");
    let mut server = scene.serve(&[]);
    push(&scene, &server);
    push(&scene, &server);
    server.stop("-INT");
    let all = logged(&scene);
    let threads: Vec<&str> =
        all.iter().step_by(2).map(|it| it["thread"].as_str().unwrap()).collect();
    assert_eq!(threads.len(), 2);
    for thread in threads {
        let exported = scene.run(&["export", thread, "--format", "jsonl"]).code(0).out;
        let written = scene.path(&format!("sinks/{thread}/stream.jsonl"));
        assert_eq!(fs::read_to_string(written).unwrap(), exported);
    }
}

#[test]
fn a_restart_goes_on_without_a_gap() {
    let scene = scene(ONE);
    for _ in 0..3 {
        let mut server = scene.serve(&[]);
        push(&scene, &server);
        server.stop("-INT");
    }
    assert_eq!(lines(&scene.path("sinks/all.jsonl")), logged(&scene));
    assert_eq!(position(&scene), 6);
}

#[test]
fn a_kill_loses_no_entry_and_keeps_their_order() {
    let scene = scene(ONE);
    for _ in 0..3 {
        let server = scene.serve(&[]);
        push(&scene, &server);
        server.signal("-KILL");
    }
    scene.serve(&[]).stop("-INT");
    let mut written = lines(&scene.path("sinks/all.jsonl"));
    let mut seen = std::collections::BTreeSet::new();
    // What was written after the position was kept last is there again.
    written.retain(|it| seen.insert(it["position"].as_u64()));
    assert_eq!(written, logged(&scene));
}

#[test]
fn a_file_is_rotated_and_older_ones_stay() {
    let sinks = "sinks: [{type: file, path: s.jsonl, max_size: 1KiB, keep: 2}]\n";
    let scene = scene(sinks);
    let mut server = scene.serve(&[]);
    for _ in 0..4 {
        push(&scene, &server);
    }
    server.stop("-INT");
    let names = ["s.jsonl.2", "s.jsonl.1", "s.jsonl"].map(|it| scene.path(it));
    assert!(!scene.path("s.jsonl.3").exists());
    let all: Vec<Value> = names.iter().flat_map(|it| lines(it)).collect();
    assert!(names.iter().all(|it| fs::metadata(it).unwrap().len() <= 1_024));
    let expected = logged(&scene);
    assert!(!all.is_empty() && expected.ends_with(&all), "the last ones, in order");
}

#[test]
fn a_sink_that_cant_write_waits_and_disturbs_nothing_else() {
    let scene = scene(ONE);
    scene.write("sinks", "this is no folder");
    let traces = fs::File::create(scene.path("traces.txt")).unwrap();
    let mut server = scene.serve_traced(&["--metrics", "127.0.0.1:0"], traces.into());
    push(&scene, &server);
    let lag = |server: &Server| server.metric("pumphouse_sink_lag_entries{sink=\"file\"}");
    until(|| lag(&server) == 2);
    push(&scene, &server);
    fs::remove_file(scene.path("sinks")).unwrap();
    until(|| lag(&server) == 0);
    server.stop("-INT");
    assert_eq!(lines(&scene.path("sinks/all.jsonl")), logged(&scene));
    let traces = fs::read_to_string(scene.path("traces.txt")).unwrap();
    assert_eq!(traces.matches("a sink can't write").count(), 1, "{traces}");
}

#[test]
fn a_wrong_sink_is_a_mistake_with_its_place() {
    for (sinks, says) in [
        ("[{type: fiel, path: a}]", "organism.yaml:2:16: this is `fiel`"),
        ("[{type: fiel, path: a}]", "did you mean `file`?"),
        ("[{path: a}]", "organism.yaml:2:9: here the key `type` is missing"),
        ("[{type: file}]", "a sink of the type file needs the key `path`"),
        ("[{type: file, paht: a}]", "did you mean `path`?"),
        ("[{type: file, path: \"{thread}/a\"}]", "organism.yaml:2:28: only {thread_id}"),
        ("[{type: file, path: a, format: csv}]", "`csv`"),
        ("[{type: file, path: a, drop: [detla]}]", "did you mean `delta`?"),
        ("[{type: file, path: a}, {type: file, path: b}]", "line 2 has a sink `file` already"),
        ("[{type: websocket}]", "needs the key `url`"),
        ("[{type: websocket, url: \"http://x\"}]", "begins with ws:// or wss://"),
        ("[{type: websocket, url: \"ws://x\", reconnect_attempts: 0}]", "from 1 to"),
    ] {
        let scene = scene(&format!("sinks: {sinks}\n"));
        scene.run(&["check"]).code(1).says(&[says]);
    }
}

#[test]
fn a_start_says_what_to_do_about_a_position_or_a_path_that_is_of_no_use() {
    let scene = scene(ONE);
    scene.serve(&[]).stop("-INT");
    scene.write("data/pumphouse.db-sink-file.json", "nonsense");
    let run = ["run", "--listen", "127.0.0.1:0"];
    let says = ["pumphouse.db-sink-file.json holds no position", "remove it"];
    scene.run(&run).code(2).says(&says);
    let path = "sinks: [{type: file, path: data/pumphouse.db}]\n";
    scene.write("organism.yaml", path);
    scene.run(&run).code(2).says(&["may be a file of the log", "name another"]);
}
