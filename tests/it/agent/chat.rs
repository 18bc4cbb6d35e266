//! `chat` through pipes and, with `script`, on a terminal. More tests of the terminal are beside
//! its code.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::process::Stdio;

use crate::program::Scene;

const REPLIES: &str = r#"%% reply when="first"
<thought>A sum.</thought>
<action id="sum">{"name": "calculate", "parameters": {"expression": "6*7"}}</action>
<action id="no" show="false">{"name": "calculate", "parameters": {"expression": "7"}}</action>
<todo-until condition="all is done"><step done="false">rest</step></todo-until>
<response final="false">One moment.</response>
%% reply when="sum"
<response>It is ${sum}.</response>
%% reply when="slow" fail=hang
<thought>This will take a while.</thought>
%% reply when="again"
<response>Here I am.</response>
"#;

const ORGANISM: &str = "
models:
  fixed: {use: scripted, file: replies.txt}
listeners:
  - use: calculate
  - {use: agent, name: oracle, model: fixed, peers: [calculate]}
durability: normal
";

fn scene() -> Scene {
    let scene = Scene::new();
    scene.write("replies.txt", REPLIES);
    scene.write("organism.yaml", ORGANISM);
    scene
}

#[test]
fn a_conversation_through_pipes() {
    let scene = scene();
    let ran = scene.pipe(&["chat"], "the first one\n\nand again\n").code(0);
    let (told, thread) = ran.out.rsplit_once("sess-").unwrap();
    let (told, _) = told.rsplit_once("sess-").unwrap();
    assert!(thread.len() > 8, "{}", ran.out);
    let lines: Vec<&str> = told.lines().filter(|it| !it.contains("calculate")).collect();
    let todo = ["", "todo /11  all is done  1 of 1 open", "  [ ] rest"];
    let expected = ["A sum.", "One moment.", "It is 42."];
    let expected = [&expected[..], &todo, &["Here I am."], &todo].concat();
    let same = |it: &&str| !it.starts_with("todo");
    assert!(lines.iter().filter(|it| same(it)).eq(expected.iter().filter(|it| same(it))), "{told}");
    // One of the two is not for showing.
    assert_eq!(told.matches("✓ calculate").count(), 1, "{told}");
}

#[test]
fn what_went_wrong_with_an_action_is_told() {
    let scene = scene();
    let replies = r#"%% reply
<action id="no">{"name": "calculate", "parameters": {"expression": "1/0"}}</action>
%% reply
<response>It can't be said.</response>
"#;
    scene.write("replies.txt", replies);
    let ran = scene.pipe(&["chat"], "What is it?\n").code(0);
    ran.says(&["failed: problem: division-by-zero: column: 2", "It can't be said."]);
}

#[test]
fn a_conversation_goes_on_over_a_door() {
    let scene = scene();
    let server = scene.serve(&[]);
    let talk = |more: &[&str], line: &str| {
        let verb = [&["chat", "oracle", "--connect", &server.address], more].concat();
        scene.pipe(&verb, line)
    };
    let events = talk(&["--json"], "the first one\n").code(0).objects();
    let last = events.iter().rfind(|it| it["type"] == "response").unwrap();
    assert_eq!((&last["text"], &last["final"]), (&"It is 42.".into(), &true.into()));
    let thread = last["thread"].as_str().unwrap();
    let again = talk(&["--thread", thread], "and again\n").code(0);
    assert!(again.out.starts_with("Here I am.\n"), "{}", again.out);
    talk(&["--thread", "sess-none"], "hello?\n").code(1);
    let nobody = ["chat", "orcle", "--connect", &server.address];
    scene.pipe(&nobody, "hello?\n").code(1).says(&["P0011"]);
    drop(server);
    scene.pipe(&["chat", "orcle"], "").code(2).says(&["there is no agent orcle", "oracle"]);
}

#[test]
fn a_conversation_waits_for_its_own_answer_where_another_asker_gets_one_first() {
    let scene = scene();
    scene.write("tokens.txt", "ada:s3cret-a:operator\nbob:s3cret-b:operator\n");
    let replies = r#"%% reply when="begin"
<response>Begun.</response>
%% reply when="bob's" chunk=1 every=50ms
<response>This one is for you, bob.</response>
%% reply when="ada's"
<response>This one is for you, ada.</response>
"#;
    scene.write("replies.txt", replies);
    let tokens = scene.path("tokens.txt");
    fs::set_permissions(&tokens, fs::Permissions::from_mode(0o600)).unwrap();
    let server = scene.serve(&["--tokens", tokens.to_str().unwrap()]);
    let verb = |token: &str, more: &[&str]| {
        let verb = ["chat", "oracle", "--connect", &server.address];
        let mut command = scene.command(&[&verb, more].concat());
        command.env("PUMPHOUSE_TOKEN", token).stdin(Stdio::piped()).stdout(Stdio::piped());
        command.spawn().unwrap()
    };
    let mut bob = verb("s3cret-b", &["--json"]);
    let mut bobs = bob.stdin.take().unwrap();
    let mut told = BufReader::new(bob.stdout.take().unwrap()).lines().map(Result::unwrap);
    let mut event = |kind: &str| -> serde_json::Value {
        let is_it = |it: &serde_json::Value| it["type"] == kind;
        told.by_ref().map(|it| serde_json::from_str(&it).unwrap()).find(is_it).unwrap()
    };
    bobs.write_all(b"begin\n").unwrap();
    let begun = event("response");
    bobs.write_all(b"bob's question\n").unwrap();
    event("step_start");
    let mut ada = verb("s3cret-a", &["--thread", begun["thread"].as_str().unwrap()]);
    ada.stdin.take().unwrap().write_all(b"ada's question\n").unwrap();
    let said = String::from_utf8(ada.wait_with_output().unwrap().stdout).unwrap();
    let lines: Vec<&str> = said.lines().collect();
    let expected = ["This one is for you, bob.", "↑ for bob", "This one is for you, ada."];
    assert_eq!(lines[..3], expected, "{said}");
    drop(bobs);
    bob.wait().unwrap();
}

#[test]
fn ctrl_c_interrupts_the_turn_and_the_conversation_goes_on() {
    let scene = scene();
    let mut command = scene.command(&["chat"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let (mut says, out) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    let mut lines = BufReader::new(out).lines().map(Result::unwrap);
    says.write_all(b"the first one\n").unwrap();
    lines.find(|it| it == "It is 42.").unwrap();
    says.write_all(b"a slow one\n").unwrap();
    lines.find(|it| it == "This will take a while.").unwrap();
    let interrupt = ["-INT".to_owned(), child.id().to_string()];
    assert!(std::process::Command::new("kill").args(interrupt).status().unwrap().success());
    lines.find(|it| it == "interrupted").unwrap();
    says.write_all(b"and again\n").unwrap();
    lines.find(|it| it == "Here I am.").unwrap();
    drop(says);
    lines.find(|it| it.contains("has it all")).unwrap();
    assert!(child.wait().unwrap().success());
    // It is one thread, which has what was said before.
    let threads = scene.run(&["threads", "--json"]).code(0).objects();
    let [thread] = &threads[..] else { panic!("{threads:?}") };
    assert_eq!(thread["state"], "open");
    let id = thread["thread"].as_str().unwrap();
    let shown = scene.run(&["show", id]).code(0).out;
    assert_eq!(shown.matches("reason=\"interrupted\"").count(), 1, "{shown}");
    assert_eq!(shown.matches("was interrupted at ?%").count(), 0, "the prompt is not in the log");
}

/// What a terminal shows of a conversation whose lines these are, where there is `script`.
fn on_a_terminal(scene: &Scene, lines: &str) -> Option<String> {
    on_a_terminal_with(scene, "chat", lines)
}

/// The same with this verb.
fn on_a_terminal_with(scene: &Scene, verb: &str, lines: &str) -> Option<String> {
    if std::process::Command::new("script").arg("--version").output().is_err() {
        crate::skipped("no script");
        return None;
    }
    let mut command = std::process::Command::new("script");
    let program = env!("CARGO_BIN_EXE_pumphouse");
    command.args(["-qec", &format!("{program} {verb}"), "/dev/null"]);
    command.current_dir(scene.path("")).env("TERM", "xterm").env("NO_COLOR", "1");
    let mut talk = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut says = talk.stdin.take().unwrap();
    let mut shown = BufReader::new(talk.stdout.take().unwrap());
    // Each line is typed when the prompt is there.
    let mut seen = String::new();
    for line in lines.lines() {
        until_prompt(&mut shown, &mut seen);
        says.write_all(format!("{line}\r").as_bytes()).unwrap();
    }
    until_prompt(&mut shown, &mut seen);
    says.write_all(b"\x04").unwrap();
    let mut rest = String::new();
    std::io::Read::read_to_string(&mut shown, &mut rest).unwrap();
    talk.wait().unwrap();
    Some(seen + &rest)
}

/// Reads up to the next prompt.
fn until_prompt(shown: &mut impl std::io::Read, seen: &mut String) {
    let (from, mut bytes) = (seen.len(), vec![0_u8; 4_096]);
    while !seen[from..].contains("oracle> ") {
        let read = shown.read(&mut bytes).unwrap();
        assert!(read > 0, "no further prompt after {seen}");
        seen.push_str(&String::from_utf8_lossy(&bytes[..read]));
    }
}

#[test]
fn a_question_is_asked_again_or_otherwise_in_a_fork() {
    let scene = scene();
    let replies = r#"%% reply when="six"
<response>First.</response>
%% reply when="seven"
<response>Other.</response>
"#;
    scene.write("replies.txt", replies);
    let lines = "/again\nsix?\n/again\n/edit seven?\n/why\n/budget\n/agian\n/help\n";
    let Some(shown) = on_a_terminal(&scene, lines) else { return };
    let mut rest = &*shown;
    for text in [
        "oracle, which asks scripted by replies.txt, in a new thread; /help",
        "there is no question yet",
        "First.",
        " tokens in, 7 out; cost –",
        "this is sess-",
        "First.",
        "this is sess-",
        "Other.",
        "sess-",
        "there is no command `/agian`",
        "asks the last question once more",
    ] {
        let at = rest.find(text).unwrap_or_else(|| panic!("no {text} in {shown}"));
        rest = &rest[at + text.len()..];
    }
    assert_eq!(scene.run(&["threads", "--json"]).code(0).objects().len(), 3);
}

/// A scene whose model takes these, and says whether it was shown a GIF.
fn looking(types: &str) -> Scene {
    let scene = scene();
    let replies = "%% reply when=\"image/gif, 9 bytes\"\n<response>A GIF.</response>\n\
                   %% reply\n<response>Nothing.</response>\n";
    scene.write("replies.txt", replies);
    let model = format!("file: replies.txt, attachments: [{types}]");
    scene.write("organism.yaml", ORGANISM.replace("file: replies.txt", &model));
    scene.write("cat.gif", "GIF89a...");
    scene
}

#[test]
fn a_file_is_attached_to_the_first_message() {
    let scene = looking("image/*");
    let ran = scene.pipe(&["chat", "--attach", "cat.gif"], "What is it?\n").code(0);
    assert!(ran.out.starts_with("attached cat.gif: image/gif, 9 bytes\nA GIF.\n"), "{}", ran.out);
    let events = scene.pipe(&["chat", "--attach", "cat.gif", "--json"], "And now?\n").code(0);
    let last = events.objects().pop().unwrap();
    assert_eq!((&last["type"], &last["text"]), (&"response".into(), &"A GIF.".into()));
    let entry = format!("{}/{}", last["thread"].as_str().unwrap(), last["entry"]);
    let prompt = scene.run(&["prompt", &entry, "--json"]).code(0).objects().remove(0);
    assert_eq!(prompt["messages"][0]["attached"], serde_json::json!(["image/gif"]));
    scene.run(&["prompt", &entry, "--cost"]).code(0).says(&["attachments       1600"]);
    scene.pipe(&["chat", "--attach", "dog.gif"], "").code(2).says(&["dog.gif can't be read"]);
    let none = looking("");
    let ran = none.pipe(&["chat", "--attach", "cat.gif"], "What is it?\n").code(2);
    ran.says(&["the agent's model takes none; if it can read more, list that in `attachments`"]);
}

#[test]
fn a_file_goes_over_a_door_as_far_as_that_takes_it() {
    let scene = looking("image/*");
    scene.write("large.gif", format!("GIF89a{}", " ".repeat(2 << 20)));
    let server = scene.serve(&[]);
    let verb = ["chat", "oracle", "--connect", &server.address, "--attach"];
    let talk = |file: &str| scene.pipe(&[&verb[..], &[file]].concat(), "What is it?\n");
    talk("cat.gif").code(0).says(&["A GIF."]);
    talk("large.gif").code(2).says(&["message_bytes_max is 1048576"]);
    drop(server);
    // The conversation's own door takes what a prompt shows.
    let ran = scene.pipe(&["chat", "--attach", "large.gif"], "What is it?\n").code(0);
    ran.says(&["attached large.gif: image/gif, 2,097,158 bytes", "Nothing."]);
}

#[test]
fn a_file_is_attached_on_a_terminal_for_the_next_message() {
    let scene = looking("image/*");
    scene.write("notes.txt", "Notes.");
    let lines = "hello\n/attach notes.txt\n/attach cat.gif\nWhat is it?\n";
    let Some(shown) = on_a_terminal(&scene, lines) else { return };
    let mut rest = &*shown;
    for text in [
        "Nothing.",
        "notes.txt is text/plain, and of attachments the agent's model takes image/*",
        "attached cat.gif: image/gif, 9 bytes",
        "A GIF.",
    ] {
        let at = rest.find(text).unwrap_or_else(|| panic!("no {text} in {shown}"));
        rest = &rest[at + text.len()..];
    }
}

#[test]
fn a_budget_that_stops_the_first_turn_is_told_and_ends_the_wait() {
    let scene = scene();
    scene.write("organism.yaml", format!("{ORGANISM}limits: {{tree_tokens_max: 40}}\n"));
    let ran = scene.pipe(&["chat"], "the first one\nand again\n").code(0);
    assert_eq!(ran.out.matches("oracle stopped, budget: ").count(), 2, "{}", ran.out);
    ran.says(&["`pumphouse budget THREAD --raise` gives it more"]);
}

#[test]
fn sigterm_ends_a_conversation_and_what_it_waits_for() {
    let scene = scene();
    let mut command = scene.command(&["chat"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let (mut says, out) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    let mut lines = BufReader::new(out).lines().map(Result::unwrap);
    says.write_all(b"a slow one\n").unwrap();
    lines.find(|it| it == "This will take a while.").unwrap();
    let end = ["-TERM".to_owned(), child.id().to_string()];
    assert!(std::process::Command::new("kill").args(end).status().unwrap().success());
    lines.find(|it| it == "SIGTERM: it was interrupted").unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(1));
    let failed = scene.run(&["tail", "--payload", "agent-stopped"]).code(0).out;
    assert_eq!(failed.matches("reason=\"interrupted\"").count(), 1, "{failed}");
}

#[test]
fn what_an_answer_cost_has_its_helpers_in_it() {
    let scene = scene();
    scene.write(
        "replies.txt",
        "%% reply usage=10/5\n<action id=\"h\" type=\"agent\">{\"name\": \
        \"helper\", \"parameters\": {\"text\": \"x\"}}</action><response>${h}</response>\n",
    );
    scene.write("helper.txt", "%% reply usage=1000/2000\n<response>Six.</response>\n");
    let organism = "models:\n  \
        fixed: {use: scripted, file: replies.txt, price: {input: 1, output: 1}}\n  \
        helper: {use: scripted, file: helper.txt, price: {input: 1000, output: 1000}}\n\
        listeners:\n  \
        - {use: agent, name: oracle, model: fixed, peers: [helper]}\n  \
        - {use: agent, name: helper, model: helper, peers: []}\n";
    scene.write("organism.yaml", organism);
    let Some(shown) = on_a_terminal_with(&scene, "chat oracle", "six?\n") else { return };
    assert!(shown.contains("1010 tokens in, 2005 out; cost 3.000015"), "{shown}");
}
