//! `use: files`, from a manifest to the messages that a model reads.

use std::fs;

use super::{asked, in_order, organism};

const REPLIES: &str = r#"%% reply
<action id="see">{"name": "files.read", "parameters": {"path": "src/lib.rs"}}</action>
%% reply
<action id="try">
{"name": "files.edit", "parameters": {"path": "src/lib.rs", "old": "a - b", "new": "a + b"}}
</action>
%% reply
<action id="again">{"name": "files.edit", "parameters": {"path": "src/lib.rs",
"old": "add(a: u8, b: u8) -> u8 { a - b", "new": "add(a: u8, b: u8) -> u8 { a + b"}}
</action>
%% reply
<action id="find">{"name": "files.search", "parameters": {"pattern": "a \\+ b"}}</action>
<action id="all">{"name": "files.list", "parameters": {}}</action>
<action id="note">
{"name": "notes.write", "parameters": {"path": "done.md", "text": "It adds."}}
</action>
<action id="out">{"name": "files.read", "parameters": {"path": "../notes/done.md"}}</action>
%% reply
<response>It adds: ${find}</response>
"#;

const LIB: &str = "\
pub fn add(a: u8, b: u8) -> u8 { a - b }
pub fn sub(a: u8, b: u8) -> u8 { a - b }
";

#[test]
fn an_agent_of_a_manifest_mends_a_file_after_a_refusal() {
    let two = [
        ("files", "use: files, settings: {root: work}"),
        ("notes", "use: files, settings: {root: notes}"),
    ];
    let scene = organism(&two, REPLIES);
    scene.write("work/src/lib.rs", LIB);
    fs::create_dir(scene.path("notes")).unwrap();
    let log = asked(&scene, "Mend it.");
    in_order(
        &log,
        &[
            "https://xml-pipeline.org/ns/files/v1",
            "this text stands twice in src/lib.rs, in the lines 1, 2",
            "-pub fn add(a: u8, b: u8) -&gt; u8 { a - b }",
            "+pub fn add(a: u8, b: u8) -&gt; u8 { a + b }",
        ],
    );
    in_order(&log, &["`../notes/done.md` leads out of the folder"]);
    in_order(&log, &["https://xml-pipeline.org/ns/notes/v1"]);
    in_order(&log, &["<response", "It adds:", "src/lib.rs", "a + b"]);
    let lib = fs::read_to_string(scene.path("work/src/lib.rs")).unwrap();
    assert_eq!(lib, LIB.replacen("a - b", "a + b", 1));
    assert_eq!(fs::read_to_string(scene.path("notes/done.md")).unwrap(), "It adds.");
}

#[test]
fn check_tells_what_is_wrong_with_a_folder() {
    let scene = organism(&[("files", "use: files, settings: {root: work}")], "%% reply\nx\n");
    let none = "organism.yaml:3:41: there is no folder work; make it first";
    scene.run(&["check"]).code(1).says(&[none]);
    fs::create_dir(scene.path("work")).unwrap();
    scene.run(&["check"]).code(0).says(&[
        "listener  files  Reads, writes, edits, lists and searches the files of a folder.\n",
        "  takes   {https://xml-pipeline.org/ns/files/v1}search\n",
    ]);
    // The folder is beside the manifest, wherever the program was started.
    scene.write("conf/organism.yaml", "listeners: [{use: files, settings: {root: work}}]");
    scene.run(&["check", "conf/organism.yaml"]).code(1).says(&["no folder conf/work;"]);
    let wrong = |settings: &str, text: &str| {
        scene.write("wrong.yaml", format!("listeners: [{{use: files, settings: {settings}}}]"));
        scene.run(&["check", "wrong.yaml"]).code(1).says(&[text]);
    };
    wrong("{}", "here the key `root` is missing");
    wrong("{root: 7}", "this is `7`, and a path is expected");
    wrong("{root: [work]}", "this is a list, and a path is expected");
    wrong("{rot: work}", "here is no key `rot`; did you mean `root`?");
    wrong("{root: work, limits: {hits: 1}}", "here is no key `hits`; did you mean `hits_max`?");
    scene.write("wrong.yaml", "listeners: [{use: files, name: core, settings: {root: work}}]");
    scene.run(&["check", "wrong.yaml"]).code(1).says(&["`core` is a word of the pump's own"]);
    let both = "listeners:\n  - {use: files, settings: {root: work}}\n  - {use: files, settings: \
                {root: .}}\n";
    scene.write("wrong.yaml", both);
    scene.run(&["check", "wrong.yaml"]).code(1).says(&["give this one a `name:` of its own"]);
}

#[test]
fn what_may_only_be_read_has_no_word_for_writing() {
    let files = [("files", "use: files, settings: {root: ., read_only: true}")];
    let replies = r#"%% reply
<action id="w">{"name": "files.write", "parameters": {"path": "x", "text": "y"}}</action>
%% reply
<response>No.</response>
"#;
    let scene = organism(&files, replies);
    in_order(&asked(&scene, "Write."), &["you have no peer files.write", "No."]);
    assert!(!scene.path("x").exists());
}
