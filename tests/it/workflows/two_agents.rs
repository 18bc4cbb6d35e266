//! Two agents in one session that share a workflow with a trigger.

use std::time::{Duration, Instant};

use crate::program::{Scene, Server};

/// The agents `a` and `b`, whose replies set these metadata, with a workflow that takes long.
fn scene(trigger: &str, a: &[&str], b: &[&str]) -> Scene {
    let scene = Scene::new();
    for (name, all) in [("a", a), ("b", b)] {
        let reply =
            |it: &&str| format!("%% reply\n<metadata>{it}</metadata><response>x</response>\n");
        scene.write(&format!("{name}.txt"), all.iter().map(reply).collect::<String>());
    }
    let steps = "[{name: a, target: slow}]";
    scene.write("w.yml", format!("kind: Workflow\nname: w\ntrigger: {trigger}\nsteps: {steps}\n"));
    let fields = "{status: {values: [IDLE, CODING], default: IDLE}, count: {type: number}}";
    let agent = |it: &str| {
        let rest = format!("workflows: [w], metadata: {{fields: {fields}}}");
        format!("  - {{use: agent, name: {it}, model: {it}, {rest}}}\n")
    };
    let slow =
        "  - {use: command, name: slow, settings: {run: [sleep, \"60\"], takes: {type: object}}}\n";
    let models = "models: {a: {use: scripted, file: a.txt}, b: {use: scripted, file: b.txt}}";
    let listeners = [&agent("a"), &agent("b"), slow].concat();
    scene.write("organism.yaml", format!("{models}\ninclude: [w.yml]\nlisteners:\n{listeners}"));
    scene.run(&["check"]).code(0);
    scene
}

/// Asks an agent, in a thread or a new session. Returns the thread.
#[track_caller]
fn ask(scene: &Scene, server: &Server, agent: &str, thread: Option<&str>) -> String {
    let root = format!("<{agent} xmlns=\"https://xml-pipeline.org/ns/{agent}/v1\">Go.</{agent}>");
    let mut arguments = vec!["send", "--connect", &server.address, "--json", "--timeout", "3"];
    arguments.extend(thread.into_iter().flat_map(|it| ["--thread", it]));
    let sent = scene.pipe(&arguments, &root).objects();
    sent.iter().find_map(|it| Some(it["thread"].as_str()?.to_owned())).unwrap()
}

/// Waits until the runs have these states, the newest first.
#[expect(clippy::disallowed_methods, reason = "a served pump works by the clock")]
#[track_caller]
fn has_states(scene: &Scene, expected: &[&str]) {
    let until = Instant::now() + Duration::from_secs(20);
    let mut since = Instant::now();
    loop {
        let ran = scene.run(&["workflows", "--json"]).objects();
        let states: Vec<&str> = ran.iter().filter_map(|it| it["state"].as_str()).collect();
        if states != expected {
            assert!(Instant::now() < until, "{states:?}");
            since = Instant::now();
        } else if since.elapsed() > Duration::from_millis(400) {
            return;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

const CODING: &str = "{\"status\": \"CODING\"}";
const IDLE: &str = "{\"status\": \"IDLE\"}";

#[test]
fn an_agent_that_leaves_a_state_cancels_its_own_runs_only() {
    let trigger = "{conditions: {status: CODING}, cancel_on_change: true}";
    let scene = scene(trigger, &[CODING], &[CODING, IDLE]);
    let server = scene.serve(&[]);
    let session = ask(&scene, &server, "a", None);
    has_states(&scene, &["running"]);
    ask(&scene, &server, "b", Some(&session));
    has_states(&scene, &["running", "running"]);
    ask(&scene, &server, "b", Some(&session));
    has_states(&scene, &["cancelled", "running"]);
    drop(server);
}

#[test]
fn a_level_of_one_agent_does_not_wait_for_the_run_of_another() {
    let count = "{\"count\": 1}";
    let scene = scene("{conditions: {status: CODING}, fire: level}", &[CODING, count], &[CODING]);
    let server = scene.serve(&[]);
    let session = ask(&scene, &server, "a", None);
    has_states(&scene, &["running"]);
    // The run of `a` is at work, so `a` begins no other.
    ask(&scene, &server, "a", Some(&session));
    has_states(&scene, &["running"]);
    ask(&scene, &server, "b", Some(&session));
    has_states(&scene, &["running", "running"]);
    let shown = scene.run(&["show", &session]).code(0);
    shown.says(&["its last run is at work"]);
    drop(server);
}

#[test]
fn a_fork_begins_with_the_metadata() {
    let scene = scene("{conditions: {count: 7}}", &[CODING], &[IDLE]);
    let server = scene.serve(&[]);
    let session = ask(&scene, &server, "a", None);
    let entries = scene.run(&["show", &session, "--json"]).code(0).objects();
    let newest = format!("{session}/{}", entries.len());
    let fork = scene.run(&["fork", &newest, "--connect", &server.address]).code(0).out;
    scene.run(&["metadata", fork.trim()]).code(0).says(&["CODING"]);
    drop(server);
}
