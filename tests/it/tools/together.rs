//! Tools side by side: a manifest with many tools, and an agent that repairs a program.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;

use serde_json::json;

use super::{asked, in_order, organism};
use crate::program::{Ran, Scene};

const MANIFEST: &str = r#"models: {m: {use: openai, url: "${LLM_URL}", model: "${LLM_MODEL}"}}
listeners:
  - {use: files, settings: {root: work}}
  - {use: shell, settings: {programs: [cargo, ls]}}
  - {use: fetch, settings: {hosts: ["127.0.0.1:9000"]}}
  - {use: command, name: shout, settings: {run: [tr, a-z, A-Z], input: text}}
  - {use: mcp, name: clock, settings: {command: [mcp-server-time]}}
  - {use: agent, name: coder, model: m, peers: [files, shell, fetch, shout, clock]}
"#;

#[test]
fn a_manifest_of_every_sort_of_tool_is_sound() {
    let scene = Scene::new();
    fs::create_dir(scene.path("work")).unwrap();
    scene.write("organism.yaml", MANIFEST);
    // The server of the clock needn't be a real one: `check` starts nothing.
    for name in ["mcp-server-time", "cargo"] {
        let path = scene.write(&format!("bin/{name}"), "#!/bin/sh\nexit 1\n");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }
    let path = format!("{}:/usr/bin:/bin", scene.path("bin").display());
    let mut check = scene.command(&["check"]);
    check.env("PATH", path).env("LLM_URL", "http://127.0.0.1:1/v1").env("LLM_MODEL", "m");
    Ran::from(check.output().unwrap()).code(0).says(&[
        "organism.yaml is sound",
        "listener  files  Reads, writes, edits, lists and searches the files of a folder.",
        "listener  shell  Runs one of cargo, ls; no shell reads its arguments.",
        "listener  fetch  Gets pages and files from 127.0.0.1:9000, as text.",
        "listener  shout  Runs tr on a text.",
        "listener  clock  ",
        "  peers   files, shell, fetch, shout, clock",
    ]);
}

#[test]
fn describe_tells_what_a_call_may_do_beside_answering() {
    let scene = Scene::new();
    fs::create_dir(scene.path("work")).unwrap();
    scene.write("a.db", "");
    let manifest = "\
models: {m: {use: scripted, file: replies.txt}}
listeners:
  - {use: calculate}
  - {use: echo}
  - {use: files, settings: {root: work}}
  - {use: files, name: pages, settings: {root: work, read_only: true}}
  - {use: git, settings: {root: work}}
  - {use: shell, settings: {programs: [ls]}}
  - {use: command, name: shout, settings: {run: [tr, a-z, A-Z]}}
  - use: command
    name: ping
    settings: {run: [tr, a-z, A-Z], network: any, beside_open_door: true}
  - {use: fetch}
  - {use: http, settings: {hosts: [a.org]}}
  - {use: keyvalue, settings: {file: b.db}}
  - {use: sql, settings: {file: a.db}}
  - {use: system_monitor}
  - {use: llm, settings: {model: m}}
";
    scene.write("replies.txt", "%% reply\nx\n");
    scene.write("organism.yaml", manifest);
    for (word, listener, effects) in [
        ("calculate", "calculate", "none"),
        ("echo", "echo", "none"),
        ("files.read", "files", "writes"),
        ("pages.read", "pages", "reads"),
        ("git.status", "git", "writes"),
        ("shell", "shell", "writes"),
        ("shout", "shout", "writes"),
        ("ping", "ping", "outside"),
        ("fetch", "fetch", "outside"),
        ("http", "http", "outside"),
        ("keyvalue", "keyvalue", "writes"),
        ("sql", "sql", "reads"),
        ("system_monitor", "system_monitor", "reads"),
        ("llm", "llm", "outside"),
    ] {
        scene.run(&["describe", word]).code(0).says(&[&format!("effects    {effects}\n")]);
        let object = scene.run(&["describe", word, "--json"]).code(0).objects();
        assert_eq!(object[0]["effects"], json!({ listener: effects }), "{word}");
    }
}

const REPLIES: &str = r#"%% reply
<action id="test">{"name": "shell", "parameters": {"command": ["./test.sh"]}}</action>
<action id="see">{"name": "files.read", "parameters": {"path": "sums.rs"}}</action>
%% reply
<action id="try">{"name": "files.edit", "parameters":
{"path": "sums.rs", "old": "a - b", "new": "a + b"}}</action>
%% reply
<action id="mend">{"name": "files.edit", "parameters": {"path": "sums.rs",
"old": "fn add(a: u8, b: u8) -> u8 {\n    a - b", "new": "fn add(a: u8, b: u8) -> u8 {\n    a + b"}}
</action>
<action id="again" depends_on="mend">{"name": "shell",
"parameters": {"command": ["./test.sh"]}}</action>
%% reply
<action id="diff">{"name": "git.diff", "parameters": {}}</action>
<action id="done" depends_on="diff">{"name": "git.commit", "parameters":
{"message": "Sums are right", "path": ["sums.rs"]}}</action>
%% reply
<response>It adds: ${again.out}</response>
"#;

const SUMS: &str = "\
pub fn sub(a: u8, b: u8) -> u8 {
    a - b
}

pub fn add(a: u8, b: u8) -> u8 {
    a - b
}

#[test]
fn it_adds() {
    assert_eq!(add(2, 2), 4);
}
";

#[test]
fn an_agent_mends_a_failing_test_after_an_edit_that_was_refused() {
    let tools = [
        ("files", "use: files, settings: {root: work}"),
        ("shell", "use: shell, settings: {programs: [./work/test.sh], root: work}"),
        ("git", "use: git, settings: {root: work}"),
    ];
    let replies = REPLIES.replace("./test.sh", "./work/test.sh");
    let scene = organism(&tools, &replies);
    scene.write("work/sums.rs", SUMS);
    let rustc = Command::new("rustc").args(["--print", "sysroot"]).output().unwrap().stdout;
    let rustc = format!("{}/bin/rustc", String::from_utf8(rustc).unwrap().trim());
    let sysroot = rustc.strip_suffix("/bin/rustc").unwrap();
    let test = format!(
        "#!/bin/sh\nset -e\n{rustc} --test --edition 2024 -C debuginfo=0 -o \"$TMPDIR/sums\" \
         sums.rs 2>&1\nexec \"$TMPDIR/sums\" --quiet\n"
    );
    let path = scene.write("work/test.sh", test);
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    let manifest = fs::read_to_string(scene.path("organism.yaml")).unwrap();
    let read = format!("root: work, read: [{sysroot}]");
    let manifest =
        manifest.replace("[./work/test.sh], root: work", &format!("[./work/test.sh], {read}"));
    scene.write("organism.yaml", manifest);
    let git = |words: &[&str]| {
        let mut git = Command::new("git");
        git.args(["-c", "user.name=Ada", "-c", "user.email=a@b.org"]).args(words);
        let ran = git.current_dir(scene.path("work")).output().unwrap();
        assert!(ran.status.success(), "{ran:?}");
        String::from_utf8(ran.stdout).unwrap()
    };
    git(&["init", "--quiet", "-b", "main"]);
    git(&["add", "."]);
    git(&["commit", "--quiet", "-m", "Begin"]);
    let log = asked(&scene, "The test fails.");
    in_order(
        &log,
        &[
            "reason=\\\"exit-code\\\"",
            "this text stands twice in sums.rs, in the lines 2, 6",
            "1 passed",
            "-    a - b",
            "+    a + b",
            "<committed",
            "It adds:",
            "1 passed",
        ],
    );
    assert_eq!(fs::read_to_string(scene.path("work/sums.rs")).unwrap().matches("a - b").count(), 1);
    assert_eq!(git(&["log", "--format=%an: %s"]), "pumphouse: Sums are right\nAda: Begin\n");
    assert_eq!(git(&["status", "--porcelain"]), "");
}
