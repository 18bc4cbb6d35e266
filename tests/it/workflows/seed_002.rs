//! The examples of the document *LLM-Driven Metadata & Workflow Triggering System*.

use std::process::Command;
use std::time::{Duration, Instant};

use crate::program::{Ran, Scene, Server};

const AGENT: &str = include_str!("seed_002/coding_agent.yml");
const FINALIZATION: &str = include_str!("seed_002/code_finalization.yml");
const REPLY: &str = include_str!("seed_002/reply.txt");
const WRONG: &str = include_str!("seed_002/wrong.txt");

/// A listener that appends its parameters as JSON to the file `NAME.jsonl`, and answers with them.
/// It stands in for an author's own program.
pub(super) fn records(name: &str, fields: &[&str]) -> String {
    let each: Vec<String> = fields.iter().map(|it| format!("{it}: {{}}")).collect();
    let takes = format!("{{type: object, properties: {{{}}}}}", each.join(", "));
    let run = format!("[tee, -a, {name}.jsonl]");
    format!("  - {{use: command, name: {name}, settings: {{run: {run}, takes: {takes}}}}}\n")
}

/// Makes a repository in the folder `repo`, with a file that isn't committed yet.
fn repository(scene: &Scene) {
    scene.write("repo/src/main.rs", "fn main() {}\n");
    git(scene, &["init", "-q", "-b", "main"]);
}

/// What Git says in the folder `repo`.
#[track_caller]
fn git(scene: &Scene, words: &[&str]) -> String {
    let ran = Command::new("git").args(words).current_dir(scene.path("repo")).output().unwrap();
    assert!(ran.status.success(), "{words:?}: {ran:?}");
    String::from_utf8(ran.stdout).unwrap()
}

/// The document's agent and workflow, with the listeners that it names. The agent replies so.
fn scene(replies: &str) -> Scene {
    let scene = Scene::new();
    for folder in ["agents", "workflows"] {
        std::fs::create_dir(scene.path(folder)).unwrap();
    }
    scene.write("agents/coding_agent.yml", AGENT);
    scene.write("workflows/code_finalization.yml", FINALIZATION);
    let trigger = "\
trigger:
  type: \"metadata_match\"
  conditions:
    priority: \"HIGH\"
    status: \"DEBUGGING\"
  match_all: true
";
    let alert = "steps: [{name: alert, target: pager, parameters: {text: urgent}}]\n";
    let alert = format!("kind: Workflow\nname: high_priority_alert\n{trigger}{alert}");
    scene.write("workflows/high_priority_alert.yml", alert);
    let listeners = [
        records("changelog_updater", &["workspace", "status"]),
        "  - {use: git, settings: {root: repo}}\n".to_owned(),
        records("pager", &["text"]),
    ];
    repository(&scene);
    scene.write(
        "organism.yaml",
        format!(
            "models: {{m: {{use: scripted, file: replies.txt}}, docs: {{use: scripted, file: \
             docs.txt}}}}\ndefault_model: m\ninclude: [agents/*.yml, workflows/*.yml]\n\
             listeners:\n  - {{use: agent, name: doc_generator, model: docs}}\n{}",
            listeners.concat()
        ),
    );
    scene.write("docs.txt", "%% reply\n<response>Documented.</response>\n".repeat(5));
    scene.write("replies.txt", replies);
    scene.run(&["check"]).code(0);
    scene
}

/// Asks the agent, and waits for the end of everything that comes of it. Returns the session.
#[track_caller]
fn ask(scene: &Scene, server: &Server) -> String {
    let root =
        "<coding_agent xmlns=\"https://xml-pipeline.org/ns/coding_agent/v1\">Go.</coding_agent>";
    let verb = ["send", "--connect", &server.address, "--json"];
    let ran = scene.pipe(&verb, root).code(0);
    let session = ran.objects().iter().find_map(|it| Some(it["thread"].as_str()?.to_owned()));
    session.unwrap()
}

/// A thread as text, once it has these words.
#[expect(clippy::disallowed_methods, reason = "a served pump works by the clock")]
#[track_caller]
pub(super) fn shown(scene: &Scene, thread: &str, words: &[&str]) -> Ran {
    let until = Instant::now() + Duration::from_secs(20);
    loop {
        let ran = scene.run(&["show", thread]);
        let is_there = words.iter().all(|it| ran.out.contains(it));
        if is_there || Instant::now() > until {
            assert!(is_there, "{thread} has not {words:?}:\n{}", ran.out);
            return ran;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn replies(all: &[&str]) -> String {
    all.iter().map(|it| format!("%% reply\n{it}\n")).collect()
}

/// A reply that sets the status.
fn set(status: &str) -> String {
    let metadata = format!("<metadata>{{\"status\": \"{status}\"}}</metadata>");
    format!("{metadata}<response final=\"false\">x</response>")
}

const DONE: &str = "<response>Done.</response>";

#[test]
fn the_coding_agent_triggers_its_workflow_with_its_whole_context() {
    let scene = scene(&replies(&[REPLY, DONE]));
    let server = scene.serve(&[]);
    let session = ask(&scene, &server);
    let run = format!("{session}.code_finalization");
    let project = "\"project_name\":\"cortex-prime\",\"current_phase\":\"implementation\"";
    let message = format!("Auto-commit from coding_agent session {session}");
    let folder = scene.path("").canonicalize().unwrap();
    let changelog = format!("{{\"workspace\":\"{}\",\"status\":\"CODING\"}}", folder.display());
    let words = [project, &*changelog, &*message, "<workflow-result", "Documented."];
    shown(&scene, &run, &words);
    assert_eq!(git(&scene, &["log", "--format=%s"]).trim(), message);
    let recorded = std::fs::read_to_string(scene.path("work/changelog_updater.jsonl")).unwrap();
    assert_eq!(recorded, changelog);
    // The last step leads back to the user's first message, through the metadata.
    let why = scene.run(&["why", &format!("{run}/1")]).code(0);
    why.says(&["Go.", "metadata-changed", "code_finalization"]);
    scene.run(&["replay", &session]).code(0);
}

#[test]
fn a_trigger_fires_on_the_edge_and_not_while_its_condition_holds() {
    let all = ["CODING", "CODING", "TESTING", "CODING"].map(set);
    let all: Vec<&str> = all.iter().map(String::as_str).chain([DONE]).collect();
    let scene = scene(&replies(&all));
    let server = scene.serve(&[]);
    let session = ask(&scene, &server);
    let ran = shown(&scene, &session, &["<response", "Done."]);
    assert_eq!(ran.out.matches("fires=\"true\"").count(), 2, "{}", ran.out);
    assert_eq!(ran.out.matches("holds=\"false\"").count(), 1, "{}", ran.out);
}

#[test]
fn changes_in_one_reply_are_decided_one_after_another() {
    let one = |status: &str| format!("<metadata>{{\"status\": \"{status}\"}}</metadata>\n");
    let all: String = ["CODING", "CODING", "TESTING", "CODING"].map(one).concat();
    let all = all + "<response final=\"false\">x</response>";
    let scene = scene(&replies(&[&all, DONE]));
    let server = scene.serve(&[]);
    let session = ask(&scene, &server);
    let ran = shown(&scene, &session, &["<response", "Done."]);
    assert_eq!(ran.out.matches("fires=\"true\"").count(), 2, "{}", ran.out);
}

#[test]
fn several_fields_must_match_together() {
    let urgent = "<metadata>{\"status\": \"DEBUGGING\", \"priority\": \"HIGH\"}</metadata>";
    let high = "<metadata>{\"priority\": \"HIGH\"}</metadata>";
    let first = format!("{high}<response final=\"false\">x</response>");
    let second = format!("{urgent}<response final=\"false\">y</response>");
    let scene = scene(&replies(&[&first, &second, DONE]));
    let server = scene.serve(&[]);
    let session = ask(&scene, &server);
    shown(&scene, &format!("{session}.high_priority_alert"), &["<workflow-result"]);
}

#[test]
fn metadata_that_do_not_fit_trigger_nothing() {
    let wrong = WRONG.trim_end();
    let wrong = format!("{wrong}\n<response final=\"false\">x</response>");
    let scene = scene(&replies(&[&wrong, DONE]));
    let server = scene.serve(&[]);
    let session = ask(&scene, &server);
    let ran = shown(&scene, &session, &["Done.", "\"COMPILING\" not in", "\"CRITICAL\" not in"]);
    assert!(!ran.out.contains("triggers-decided"), "{}", ran.out);
}

#[test]
fn a_killed_pump_begins_each_run_once() {
    let scene = scene(&replies(&[REPLY, DONE]));
    // A commit that the kill cuts off would fail the run.
    let (before, _) = FINALIZATION.split_once("  - name: \"git_commit\"").unwrap();
    scene.write("workflows/code_finalization.yml", before);
    let mut server = scene.serve(&[]);
    let session = ask(&scene, &server);
    server.signal("-KILL");
    drop(server);
    server = scene.serve(&[]);
    let run = format!("{session}.code_finalization");
    shown(&scene, &run, &["<workflow-result"]);
    let ran = scene.run(&["show", &session]).code(0);
    let began = format!("assigned_id=\"{session}.code_finalization");
    assert_eq!(ran.out.matches(&began).count(), 1, "{}", ran.out);
    drop(server);
}

#[test]
fn a_run_is_cancelled_when_its_condition_ceases_to_hold() {
    let scene = scene(&replies(&[&set("CODING"), &set("TESTING"), DONE]));
    let slow =
        "  - {use: command, name: slow, settings: {run: [sleep, \"60\"], takes: {type: object}}}\n";
    let manifest = std::fs::read_to_string(scene.path("organism.yaml")).unwrap();
    scene.write("organism.yaml", manifest + slow);
    let trigger = "{conditions: {status: CODING}, cancel_on_change: true}";
    let steps = "[{name: a, target: slow}]";
    let head = "kind: Workflow\nname: code_finalization";
    let workflow = format!("{head}\ntrigger: {trigger}\nsteps: {steps}\n");
    scene.write("workflows/code_finalization.yml", workflow);
    let server = scene.serve(&[]);
    let session = ask(&scene, &server);
    let cancelled = "the condition of the trigger code_finalization holds no longer";
    shown(&scene, &format!("{session}.code_finalization"), &["thread-cancelled", cancelled]);
    drop(server);
}

#[test]
fn a_circle_of_triggers_ends_at_the_depth_of_threads() {
    let coding = "<metadata>{\"status\": \"CODING\"}</metadata><response>x</response>";
    let scene = scene(&replies(&[coding; 20]));
    let workflow = "\
kind: Workflow
name: code_finalization
trigger: {conditions: {status: CODING}}
steps: [{name: again, type: agent, target: coding_agent, parameters: {text: again}}]
";
    scene.write("workflows/code_finalization.yml", workflow);
    let manifest = std::fs::read_to_string(scene.path("organism.yaml")).unwrap();
    scene.write("organism.yaml", manifest + "limits: {thread_depth_max: 2}\n");
    let server = scene.serve(&[]);
    let session = ask(&scene, &server);
    let inner = format!("{session}.code_finalization.coding_agent");
    shown(&scene, &inner, &["fires=\"true\"", "the limit is 2"]);
    assert!(scene.run(&["show", &session]).code(0).out.contains("final=\"true\""));
    drop(server);
}

#[test]
fn a_condition_may_have_to_hold_for_a_time() {
    let served = |all: &[&str]| {
        let scene = scene(&replies(all));
        let trigger = "{conditions: {status: CODING}, for: 1s}";
        let steps = "[{name: alert, target: pager, parameters: {text: still coding}}]";
        let head = "kind: Workflow\nname: code_finalization";
        let workflow = format!("{head}\ntrigger: {trigger}\nsteps: {steps}\n");
        scene.write("workflows/code_finalization.yml", workflow);
        let server = scene.serve(&[]);
        let session = ask(&scene, &server);
        (scene, server, session)
    };
    let (short, _server, session) = served(&[&set("CODING"), &set("TESTING"), DONE]);
    let broken = "it has not held for 1 s without a break";
    shown(&short, &session, &["it must hold for 1 s", "Done.", broken]);
    let (long, _other, held) = served(&[&set("CODING"), DONE]);
    shown(&long, &format!("{held}.code_finalization"), &["still coding", "<workflow-result"]);
    shown(&long, &held, &["it must hold for 1 s", "fires=\"true\""]);
    long.run(&["replay", &held]).code(0);
    // By now the time of the other one is up as well.
    let ran = shown(&short, &session, &["answers", "<held-long-enough"]);
    assert!(!ran.out.contains("fires=\"true\""), "{}", ran.out);
}
