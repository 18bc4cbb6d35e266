//! What the command line shows of workflows and metadata: `workflows`, `metadata` and `watch`.

use std::io::{BufRead, BufReader, Lines, Read, Write as _};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::program::{Scene, Server};

/// A workflow that an agent triggers, one that fails unless it is given `b`, one that runs it, and
/// one that takes a minute.
const REPORT: &str = "\
kind: Workflow
name: report
trigger: {conditions: {status: CODING}}
steps: [{name: sum, target: calculate, parameters: {expression: 1 + 2}}]
outputs: {sum: \"${steps.sum}\"}
";
const HALF: &str = "\
kind: Workflow
name: half
steps:
  - {name: rest, target: nap}
  - {name: halve, target: calculate, parameters: {expression: \"${trigger.b} / 2\"}}
";
const OUTER: &str = "\
kind: Workflow
name: outer
steps: [{name: inner, type: workflow, target: half, parameters: {a: 1}}]
";
const LONG: &str = "\
kind: Workflow
name: long
steps: [{name: nap, target: slow}]
";
const ORGANISM: &str = "\
include: [\"*.yml\"]
models: {m: {use: scripted, file: replies.txt}}
listeners:
  - {use: calculate}
  - {use: command, name: slow, settings: {run: [sleep, \"60\"], takes: {type: object}}}
  - {use: command, name: nap, settings: {run: [sleep, \"0.6\"], takes: {type: object}}}
  - use: agent
    name: coder
    model: m
    workflows: [report, half]
    metadata:
      fields:
        status: {values: [IDLE, CODING, DONE], default: IDLE}
        count: {type: number}
";
const REPLIES: &str = "\
%% reply
<metadata>{\"status\": \"CODING\", \"count\": \"three\"}</metadata>
<action type=\"workflow\" id=\"h\">{\"name\": \"half\", \"parameters\": {\"b\": 6}}</action>
<response final=\"false\">I begin: ${h}.</response>
%% reply
<metadata>{\"status\": \"DONE\", \"count\": 3}</metadata><response>Done.</response>
";
const ASK: &str = "<coder xmlns=\"https://xml-pipeline.org/ns/coder/v1\">Build it.</coder>";

fn scene() -> Scene {
    let scene = Scene::new();
    for (name, text) in [
        ("report.yml", REPORT),
        ("half.yml", HALF),
        ("outer.yml", OUTER),
        ("long.yml", LONG),
        ("organism.yaml", ORGANISM),
        ("replies.txt", REPLIES),
    ] {
        scene.write(name, text);
    }
    scene
}

/// Runs a workflow, or begins it if it takes longer than the time, and has the thread.
#[track_caller]
pub(super) fn begin(scene: &Scene, server: &Server, workflow: &str, timeout: &str) -> String {
    let ns = format!("https://xml-pipeline.org/ns/workflow/{workflow}/v1");
    let verb = ["send", "--json", "--timeout", timeout, "--connect", &server.address];
    let ran = scene.pipe(&verb, &format!("<{workflow} xmlns=\"{ns}\"/>"));
    ran.objects()[0]["thread"].as_str().unwrap().to_owned()
}

/// Asks the agent, and waits for the end of everything that comes of it. Returns the session.
#[track_caller]
fn ask(scene: &Scene, server: &Server) -> String {
    let ran = scene.pipe(&["send", "--json", "--connect", &server.address], ASK).code(0);
    ran.objects()[0]["thread"].as_str().unwrap().to_owned()
}

/// The runs that `workflows --json` lists with these arguments.
#[track_caller]
fn runs(scene: &Scene, arguments: &[&str]) -> Vec<Value> {
    scene.run(&[&["workflows", "--json"], arguments].concat()).code(0).objects()
}

/// The runs of a workflow, once one of them is in a state.
#[expect(clippy::disallowed_methods, reason = "a served pump works by the clock")]
#[track_caller]
pub(super) fn once(scene: &Scene, workflow: &str, state: &str) -> Value {
    let until = Instant::now() + Duration::from_secs(20);
    loop {
        let all = runs(scene, &["--workflow", workflow]);
        if let Some(run) = all.iter().find(|it| it["state"] == state) {
            return run.clone();
        }
        assert!(Instant::now() < until, "no run of {workflow} is {state}: {all:#?}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn runs_are_listed_in_each_state_the_newest_first() {
    let scene = scene();
    let server = scene.serve(&[]);
    begin(&scene, &server, "report", "10");
    begin(&scene, &server, "outer", "10");
    let thread = begin(&scene, &server, "long", "2");
    let running = once(&scene, "long", "running");
    assert_eq!((&running["steps"], &running["ended"]), (&json!(["nap"]), &Value::Null));
    assert_eq!(running["thread"], *thread);
    let steer = |verb: &str| {
        let arguments = [verb, &thread, "--connect", &server.address];
        scene.run(&arguments).code(0);
    };
    steer("pause");
    let waiting = once(&scene, "long", "waiting");
    assert_eq!(waiting["reason"], "its thread is paused");
    steer("resume");
    steer("cancel");
    let cancelled = once(&scene, "long", "cancelled");
    assert_eq!(cancelled["reason"], "by console");
    assert!(cancelled["ended"].is_string() && cancelled["steps"] == json!(["nap"]));
    let all = runs(&scene, &[]);
    let told = |it: &Value| {
        let by = &it["by"];
        json!([it["workflow"], it["state"], it["failed_step"], by["kind"], by["name"]])
    };
    assert_eq!(
        json!(all.iter().map(told).collect::<Vec<_>>()),
        json!([
            ["long", "cancelled", null, "push", "console"],
            ["half", "failed", "halve", "workflow", "outer"],
            ["outer", "failed", "inner", "push", "console"],
            ["report", "done", null, "push", "console"],
        ])
    );
    assert_eq!(all[1]["reason"], "${trigger.b} has no value");
    assert_eq!(all[1]["by"]["step"], "inner");
    assert_eq!(all[1]["run"], format!("{}/1", all[1]["thread"].as_str().unwrap()));
    assert!(all[3]["seconds"].as_f64().unwrap() < 60.0);
    drop(server);
}

#[test]
fn runs_are_chosen_by_workflow_state_and_thread() {
    let scene = scene();
    scene.run(&["workflows"]).code(2).says(&["there is no folder data"]);
    let server = scene.serve(&[]);
    let empty = scene.run(&["workflows"]).code(0);
    empty.says(&["the log holds no runs yet; `pumphouse workflow run FILE` begins one"]);
    let outer = begin(&scene, &server, "outer", "10");
    for _ in 0..2 {
        begin(&scene, &server, "report", "10");
    }
    let names = |arguments: &[&str]| {
        let all = runs(&scene, arguments);
        all.iter().map(|it| it["workflow"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(names(&[&outer]), ["half", "outer"]);
    assert_eq!(names(&["--state", "done"]), ["report", "report"]);
    assert_eq!(names(&["--state", "done", "--state", "failed", "-n", "3"]).len(), 3);
    assert_eq!(names(&["--workflow", "half"]), ["half"]);
    scene
        .run(&["workflows", "-n", "1"])
        .code(0)
        .says(&["there are older ones; `-n 20` shows more"]);
    let table = scene.run(&["workflows", &outer]).code(0);
    table
        .says(&["step inner of outer; halve failed: ${trigger.b} has no value", "push by console"]);
    let none = scene.run(&["workflows", "--state", "running"]).code(0);
    none.says(&["no run is wanted by these filters"]);
    scene.run(&["workflows", "--state", "over"]).code(2).says(&["a run is waiting, running, done"]);
    scene.run(&["workflows", "sess-nope"]).code(1).says(&["there is no thread sess-nope"]);
    drop(server);
}

#[test]
fn a_run_tells_which_agent_began_it_and_how() {
    let scene = scene();
    let server = scene.serve(&[]);
    let session = ask(&scene, &server);
    once(&scene, "report", "done");
    let all = runs(&scene, &[&session]);
    let by =
        |workflow: &str| all.iter().find(|it| it["workflow"] == workflow).unwrap()["by"].clone();
    let (report, half) = (by("report"), by("half"));
    let told = |it: &Value| json!([it["kind"], it["name"], it["rule"], it["turn"]]);
    assert_eq!(told(&report), json!(["trigger", "coder", "report", 1]));
    assert_eq!(told(&half), json!(["action", "coder", null, 1]));
    let change = scene.run(&["show", report["entry"].as_str().unwrap()]).code(0);
    change.says(&["<metadata-changed"]);
    drop(server);
}

#[test]
fn a_run_that_begins_once_its_condition_has_held_is_listed_with_the_change_that_led_to_it() {
    let scene = Scene::new();
    let late = REPORT.replace("report", "late").replace("CODING}}", "CODING}, for: 100ms}");
    scene.write("late.yml", late);
    scene.write("organism.yaml", ORGANISM.replace("[report, half]", "[late]"));
    let set = "<metadata>{\"status\": \"CODING\"}</metadata>";
    scene.write("replies.txt", format!("%% reply\n{set}<response>Done.</response>\n"));
    let server = scene.serve(&[]);
    let session = ask(&scene, &server);
    let run = once(&scene, "late", "done");
    let by = &run["by"];
    let told = json!([by["kind"], by["name"], by["rule"], by["turn"]]);
    assert_eq!(told, json!(["trigger", "coder", "late", 1]));
    scene.run(&["show", by["entry"].as_str().unwrap()]).code(0).says(&["<metadata-changed"]);
    scene.run(&["workflows"]).code(0).says(&["trigger of coder, turn 1"]);
    let history = scene.run(&["metadata", &session, "--history", "--json"]).code(0).objects();
    let began = json!([{"rule": "late", "thread": format!("{session}.late")}]);
    assert_eq!(history[0]["runs"], began, "{history:#?}");
    drop(server);
}

#[test]
fn the_history_of_metadata_has_each_change_and_the_runs_that_it_led_to() {
    let scene = scene();
    let server = scene.serve(&[]);
    let session = ask(&scene, &server);
    let values = scene.run(&["metadata", &session, "--json"]).code(0).objects();
    let value = |it: &Value| json!([it["agent"], it["field"], it["value"], it["turn"]]);
    let values: Vec<Value> = values.iter().map(value).collect();
    assert_eq!(values, [json!(["coder", "count", 3, 2]), json!(["coder", "status", "DONE", 2])]);
    let history = scene.run(&["metadata", &session, "--history", "--json"]).code(0).objects();
    let change = |it: &Value| json!([it["turn"], it["field"], it["old"], it["new"]]);
    let changes: Vec<Value> = history.iter().map(change).collect();
    assert_eq!(
        changes,
        [
            json!([1, "status", null, "CODING"]),
            json!([1, "count", null, null]),
            json!([2, "status", "CODING", "DONE"]),
            json!([2, "count", null, 3]),
        ]
    );
    assert_eq!(history[1]["refused"], "count: \"three\" is not a number");
    let run = json!([{"rule": "report", "thread": format!("{session}.report")}]);
    let led: Vec<&Value> = history.iter().map(|it| &it["runs"]).collect();
    assert_eq!(led, [&run, &json!([]), &json!([]), &json!([])]);
    let told = scene.run(&["metadata", &session, "--history"]).code(0);
    let began = format!("status: not set → CODING; began report in {session}.report");
    told.says(&[&began, "status: CODING → DONE", "count: refused: \"three\" is not a number"]);
    scene.run(&["metadata", &session]).code(0).says(&["coder\n  count   3     20"]);
    drop(server);
}

#[test]
fn metrics_by_state_say_what_was_used_while_a_field_had_each_value() {
    let scene = scene();
    let server = scene.serve(&[]);
    let session = ask(&scene, &server);
    let verb = ["metadata", &session, "--by-state", "status"];
    let metrics = scene.run(&[&verb[..], &["--json"]].concat()).code(0).objects();
    let told = |it: &Value| json!([it["value"], it["entered"], it["turns"], it["is_current"]]);
    let all: Vec<Value> = metrics.iter().map(told).collect();
    assert_eq!(
        all,
        [json!([null, 1, 1, false]), json!(["CODING", 1, 1, false]), json!(["DONE", 1, 0, true]),]
    );
    assert!(metrics[0]["tokens_in"].as_u64() > Some(0) && metrics[2]["tokens"] == 0);
    scene.run(&verb).code(0).says(&[
        "agent  status     entered",
        "coder  not set",
        "coder  CODING",
    ]);
    drop(server);
}

#[test]
fn who_asks_for_metadata_that_are_not_there_is_told_so() {
    let scene = scene();
    let server = scene.serve(&[]);
    let session = ask(&scene, &server);
    scene.run(&["metadata", "sess-nope"]).code(1).says(&["there is no thread sess-nope"]);
    let none = scene.run(&["metadata", &session, "--by-state", "mood"]).code(1);
    none.says(&["no agent has set the field mood", "the fields with values are count, status"]);
    let other = scene.run(&["metadata", &session, "--agent", "bob", "--history"]).code(0);
    other.says(&["bob has set no metadata in sess-"]);
    let both = ["metadata", &session, "--history", "--by-state", "status"];
    scene.run(&both).code(2).says(&["cannot be used with"]);
    let run = format!("{session}.report");
    scene.run(&["metadata", &run]).code(0).says(&["no agent has set metadata in sess-"]);
    drop(server);
}

/// A `watch` that runs. It is killed when it is dropped.
struct Watching {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Watching {
    fn start(scene: &Scene, arguments: &[&str]) -> Watching {
        let mut command = scene.command(&[&["watch"], arguments].concat());
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Watching { child, lines }
    }

    /// The lines up to the first one that has a text.
    fn until(&mut self, text: &str) -> Vec<String> {
        let mut all = Vec::new();
        for line in &mut self.lines {
            all.push(line.unwrap());
            if all[all.len() - 1].contains(text) {
                return all;
            }
        }
        panic!("no {text} in {all:#?}");
    }

    /// Ends it as Ctrl-C does. Returns its code.
    fn stop(mut self) -> Option<i32> {
        interrupt(self.child.id());
        self.child.wait().unwrap().code()
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        // It may be gone already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn interrupt(process: u32) {
    assert!(Command::new("kill").args(["-INT", &process.to_string()]).status().unwrap().success());
}

#[test]
fn watch_tells_each_change_until_it_is_stopped() {
    let scene = scene();
    let server = scene.serve(&[]);
    let before = ask(&scene, &server);
    let mut watching = Watching::start(&scene, &["--json", "--agent", "coder"]);
    let first = watching.until("\"done\"");
    assert_eq!(first.len(), 1, "{first:#?}");
    let mut other = Watching::start(&scene, &[&before]);
    other.until("done      count=3  status=DONE");
    // A pump that starts anew begins with the first reply again.
    drop(server);
    let server = scene.serve(&[]);
    let session = ask(&scene, &server);
    let lines = watching.until("\"state\":\"done\"");
    let changes: Vec<Value> = lines.iter().map(|it| serde_json::from_str(it).unwrap()).collect();
    assert!(changes.iter().all(|it| it["thread"] == *session && it["agent"] == "coder"));
    let mut states: Vec<&str> = changes.iter().map(|it| it["state"].as_str().unwrap()).collect();
    states.dedup();
    assert_eq!(states.first(), Some(&"thinking"), "{states:?}");
    assert!(states.contains(&"waiting"), "{states:?}");
    let has = |wanted: &dyn Fn(&Value) -> bool| changes.iter().any(wanted);
    assert!(has(&|it| it["metadata"] == json!({"status": "CODING"})));
    assert!(has(&|it| it["runs"][0]["workflow"] == "report"), "{changes:#?}");
    let last = changes.last().unwrap();
    assert_eq!((&last["turn"], &last["metadata"]["count"]), (&json!(2), &json!(3)));
    assert_eq!(last["waits_for"], 0);
    assert_eq!((watching.stop(), other.stop()), (Some(0), Some(0)));
    scene.run(&["watch", "sess-nope"]).code(1).says(&["there is no thread sess-nope"]);
    drop(server);
}

#[test]
fn watch_draws_on_the_other_screen_of_a_terminal_and_leaves_it() {
    if Command::new("script").arg("--version").output().is_err() {
        crate::skipped("no script");
        return;
    }
    let scene = scene();
    let server = scene.serve(&[]);
    let session = ask(&scene, &server);
    let mut command = Command::new("script");
    let program = env!("CARGO_BIN_EXE_pumphouse");
    // Without exec, a shell that the terminal's Ctrl-C reaches as well decides the exit code.
    command.args(["-qec", &format!("exec {program} watch"), "/dev/null"]);
    command.current_dir(scene.path("")).env("TERM", "xterm").env("NO_COLOR", "1");
    let mut watching = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut keys = watching.stdin.take().unwrap();
    let mut shown = watching.stdout.take().unwrap();
    let (mut seen, mut bytes) = (String::new(), vec![0_u8; 4_096]);
    while !seen.contains("Ctrl-C ends") {
        let read = shown.read(&mut bytes).unwrap();
        assert!(read > 0, "it ended: {seen}");
        seen.push_str(&String::from_utf8_lossy(&bytes[..read]));
    }
    assert!(seen.starts_with("\u{1b}[?1049h\u{1b}[?25l"), "{seen:?}");
    assert!(seen.contains(&format!("coder       {session}      2  done      count=3")), "{seen}");
    keys.write_all(b"\x03").unwrap();
    let mut rest = String::new();
    shown.read_to_string(&mut rest).unwrap();
    assert!(rest.ends_with("\u{1b}[?25h\u{1b}[?1049l"), "{rest:?}");
    let ended = watching.wait().unwrap();
    assert!(ended.success(), "{ended}");
    drop(server);
}
