//! `use: git`: what an agent sees and commits, and that code in a malicious repository doesn't run.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;
use std::process::Command;

use super::{asked, in_order, organism};
use crate::program::{Ran, Scene, Server};

/// Runs Git as a user would whose configuration is a folder's own; whether it ended well.
fn git(folder: &Path, home: &Path, words: &[&str]) -> bool {
    let mut command = Command::new("git");
    command.args(["-c", "user.name=Ada", "-c", "user.email=ada@example.org"]).args(words);
    command.current_dir(folder).env("HOME", home).env("GIT_CONFIG_NOSYSTEM", "1");
    command.output().unwrap().status.success()
}

/// A repository with one commit, in `work`.
#[track_caller]
fn repository() -> Scene {
    let scene = Scene::new();
    scene.write("work/a.txt", "one\n");
    begin(&scene.path("work"));
    scene
}

#[track_caller]
fn begin(folder: &Path) {
    let home = folder.parent().unwrap();
    assert!(git(folder, home, &["init", "--quiet", "-b", "main"]));
    assert!(git(folder, home, &["add", "."]));
    assert!(git(folder, home, &["commit", "--quiet", "-m", "Begin"]));
}

#[track_caller]
fn serve(scene: &Scene) -> Server {
    scene.write("organism.yaml", "listeners: [{use: git, settings: {root: work}}]\n");
    scene.serve(&[])
}

#[track_caller]
fn send(scene: &Scene, server: &Server, what: &str, inside: &str) -> Ran {
    let ns = "https://xml-pipeline.org/ns/git/v1";
    let payload = format!("<{what} xmlns=\"{ns}\">{inside}</{what}>\n");
    let ran = scene.pipe(&["send", "--connect", &server.address], &payload);
    Ran { out: ran.out.replace("\n│ ", "\n"), ..ran }
}

#[test]
fn the_tree_of_a_commit_is_shown_and_may_be_a_feed() {
    let scene = repository();
    let (work, home) = (scene.path("work"), scene.path(""));
    scene.write("work/src/engine/mod.rs", "//! Engine\n");
    scene.write("work/new.txt", "not in the commit");
    assert!(git(&work, &home, &["add", "src"]));
    assert!(git(&work, &home, &["commit", "--quiet", "-m", "Engine"]));
    let server = serve(&scene);
    let told = send(&scene, &server, "tree", "");
    told.says(&["files=\"2\"", "a.txt\nsrc/\n  engine/\n    mod.rs\n"]);
    send(&scene, &server, "tree", "<max_depth>1</max_depth>").says(&["a.txt\nsrc/ (1 file)\n"]);
    send(&scene, &server, "tree", "<path>src</path>").says(&["files=\"1\"", "src/\n  engine/"]);
    send(&scene, &server, "tree", "<commit>HEAD~1</commit>").says(&["files=\"1\"", "a.txt\n"]);
    send(&scene, &server, "tree", "<commit>--help</commit>").says(&["bad-request"]);
    drop(server);
    scene.write(
        "organism.yaml",
        "models: {m: {use: scripted, file: replies.txt}}
listeners:
  - {use: git, name: repository, settings: {root: work}}
  - {use: files, name: folder, settings: {root: work, read_only: true}}
  - use: agent
    name: coder
    model: m
    context_feeds:
      - {id: repo, source: {type: tool, name: repository.tree, params: {max_depth: 3}}}
      - {id: commits, source: {type: tool, name: repository.log, params: {count: 10}}}
      - {id: work, source: {type: tool, name: folder.tree}}
      - {id: letter, source: {type: tool, name: folder.read, params: {path: a.txt}}}
",
    );
    scene.write("replies.txt", "%% reply\n<response>$work $letter</response>\n");
    let all = asked(&scene, "What is there?");
    in_order(&all, &["mod.rs", "Begin", "new.txt", "one"]);
}

#[test]
fn an_agent_sees_what_is_changed_and_commits_it() {
    let replies = r#"%% reply
<action id="was">{"name": "git.status", "parameters": {}}</action>
%% reply
<action id="what">{"name": "git.diff", "parameters": {}}</action>
%% reply
<action id="some">{"name": "git.commit",
"parameters": {"message": "Two\n\nIt was one.", "path": ["a.txt"]}}</action>
%% reply
<action id="rest">{"name": "git.commit", "parameters": {"message": "New: ümlaut"}}</action>
%% reply
<action id="none">{"name": "git.commit", "parameters": {"message": "Nothing"}}</action>
<action id="all">{"name": "git.log", "parameters": {"count": 2}}</action>
<action id="past">{"name": "git.diff", "parameters": {"commit": "HEAD~1"}}</action>
<action id="odd">{"name": "git.diff", "parameters": {"commit": "--output=x"}}</action>
%% reply
<response>Done.</response>
"#;
    let scene = organism(&[("git", "use: git, settings: {root: work}")], replies);
    scene.write("work/a.txt", "one\n");
    begin(&scene.path("work"));
    scene.write("work/a.txt", "two\n");
    scene.write("work/ü b.txt", "new\n");
    let log = asked(&scene, "Commit.");
    in_order(
        &log,
        &["<changes", "branch=\\\"main\\\"", "<path>a.txt</path>", "<path>ü b.txt</path>"],
    );
    in_order(&log, &["unstaged=\\\"modified\\\"", "unstaged=\\\"untracked\\\""]);
    in_order(&log, &["-one\\n+two"]);
    in_order(&log, &["<committed", "branch=\\\"main\\\"", "<committed"]);
    in_order(&log, &["nothing is changed: there is nothing to commit"]);
    in_order(&log, &["<history", "pumphouse", "New: ümlaut", "Two"]);
    in_order(&log, &["It was one.", "-one\\n+two"]);
    in_order(&log, &["`--output=x` names no commit"]);
    assert!(!scene.path("work/x").exists());
    let shown = ["diff", "--quiet", "HEAD"];
    assert!(git(&scene.path("work"), &scene.path("home"), &shown), "the index is as committed");
}

#[test]
fn a_first_commit_and_a_commit_of_a_file_that_is_gone() {
    let scene = Scene::new();
    scene.write("work/a.txt", "one\n");
    scene.write("work/b.txt", "one\n");
    assert!(git(&scene.path("work"), &scene.path(""), &["init", "--quiet", "-b", "trunk"]));
    let server = serve(&scene);
    send(&scene, &server, "status", "").code(0).says(&["branch=\"trunk\"", "untracked"]);
    send(&scene, &server, "log", "").code(1).says(&["does not have any commits yet"]);
    let message = "<message>Begin</message>";
    send(&scene, &server, "commit", message).code(0).says(&["<committed", "branch=\"trunk\""]);
    fs::remove_file(scene.path("work/b.txt")).unwrap();
    send(&scene, &server, "status", "").code(0).says(&["unstaged=\"deleted\"", "b.txt"]);
    let gone = "<message>No b</message><path>b.txt</path>";
    send(&scene, &server, "commit", gone).code(0).says(&["<committed"]);
    let none = send(&scene, &server, "status", "").code(0);
    assert!(!none.out.contains("b.txt"), "{none:?}");
    // More than one list of changed files holds.
    for number in 0..700 {
        scene.write(&format!("work/many/{number:0>60}"), "x");
    }
    send(&scene, &server, "commit", "<message>Many</message>").code(0);
    assert!(git(&scene.path("work"), &scene.path(""), &["diff", "--quiet"]));
    let server_says = send(&scene, &server, "status", "").code(0);
    assert!(!server_says.out.contains("many"), "{server_says:?}");
    let all = [
        "<subject>Many</subject>",
        "<subject>No b</subject>",
        "<subject>Begin</subject>",
        "pumphouse",
    ];
    send(&scene, &server, "log", "").code(0).says(&all);
}

#[test]
fn what_git_wont_do_is_a_refusal_without_the_machines_paths() {
    let scene = repository();
    let server = serve(&scene);
    let refused = |what: &str, inside: &str, text: &[&str]| {
        let ran = send(&scene, &server, what, inside).code(1).says(text);
        assert!(!ran.out.contains(scene.path("work").to_str().unwrap()), "{ran:?}");
    };
    refused("diff", "<path>../secret</path>", &["failed", "outside repository"]);
    refused("diff", "<path>/etc/passwd</path>", &["failed", "outside repository"]);
    refused("diff", "<staged>true</staged><commit>HEAD</commit>", &["bad-request", "give one"]);
    refused("log", "<count>101</count>", &["`count` is at most 100"]);
    refused("log", "<from>no-such</from>", &["failed", "no-such"]);
    refused("commit", "<message> </message>", &["the `message` is empty"]);
    let nothing = ["nothing", "nothing is changed there"];
    refused("commit", "<message>a</message><path>no</path>", &nothing);
    scene.write("work/b.txt", "new");
    refused("commit", "<message>a</message><path>*</path>", &nothing);
    refused("commit", "<message>a</message><path>../x</path>", &["outside repository"]);
    scene.write("work/.git/MERGE_HEAD", "x");
    refused("commit", "<message>a</message>", &["busy", "there is a `.git/MERGE_HEAD`"]);
    fs::remove_file(scene.path("work/.git/MERGE_HEAD")).unwrap();
    assert!(git(&scene.path("work"), &scene.path(""), &["checkout", "--quiet", "--detach"]));
    refused("commit", "<message>a</message>", &["busy", "no branch is checked out"]);
    send(&scene, &server, "log", "").code(0).says(&["Begin"]);
}

#[test]
fn all_runs_of_a_call_have_one_time_together() {
    let scene = repository();
    // It takes most of a run's time, and always has more files to stage.
    let slow = "#!/bin/sh\n/bin/sleep 0.7\nprintf '%0100d\\0' 1\n";
    let path = scene.write("bin/git", slow);
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    let limits = "limits: {seconds_max: 1, output_bytes_max: 64}";
    let manifest = format!("listeners: [{{use: git, settings: {{root: work, {limits}}}}}]\n");
    scene.write("organism.yaml", manifest);
    let mut command = scene.command(&["run", "--json", "--listen", "127.0.0.1:0"]);
    let server = Server::begin(command.env("PATH", scene.path("bin")));
    let expected = ["<refused", "timeout", "all its runs of a call have 4 s"];
    send(&scene, &server, "commit", "<message>Many</message>").code(1).says(&expected);
}

#[test]
fn a_repository_that_leads_elsewhere_is_none() {
    let elsewhere = repository();
    let there = elsewhere.path("work/.git");
    let check = |make: &dyn Fn(&Path), expected: &str| {
        let scene = Scene::new();
        fs::create_dir(scene.path("work")).unwrap();
        make(&scene.path("work"));
        let server = serve(&scene);
        send(&scene, &server, "status", "").code(1).says(&["no-repository", expected]);
    };
    check(&|_| {}, "there is no folder `.git` below the root");
    check(&|it| symlink(&there, it.join(".git")).unwrap(), "no folder `.git`");
    let file = format!("gitdir: {}", there.display());
    check(&|it| fs::write(it.join(".git"), &file).unwrap(), "no folder `.git`");
    let lend = |it: &Path, what: &str| {
        assert!(git(it, it, &["init", "--quiet"]));
        fs::remove_dir_all(it.join(".git").join(what)).unwrap();
        symlink(there.join(what), it.join(".git").join(what)).unwrap();
    };
    check(&|it| lend(it, "objects"), "no folder `.git/objects`");
    check(&|it| lend(it, "refs"), "no folder `.git/refs`");
    let replace = |it: &Path, name: &str, make: &dyn Fn(&Path)| {
        assert!(git(it, it, &["init", "--quiet"]));
        let path = it.join(".git").join(name);
        fs::remove_file(&path).unwrap();
        make(&path);
    };
    let fifo = |it: &Path| assert!(Command::new("mkfifo").arg(it).status().unwrap().success());
    check(&|it| replace(it, "HEAD", &fifo), "`.git/HEAD`");
    check(&|it| replace(it, "config", &fifo), "`.git/config`");
    let secret = there.parent().unwrap().join("a.txt");
    check(&|it| replace(it, "HEAD", &|it| symlink(&secret, it).unwrap()), "`.git/HEAD`");
    let odd = |it: &Path| fs::write(it, "ref: refs/heads/../../../x").unwrap();
    check(&|it| replace(it, "HEAD", &odd), "`.git/HEAD` says nothing of use");
}

/// Lays a trap in `work`: something that Git would run, and that makes the file `ran` there.
type Trap = fn(&Scene);

/// Whether plain Git runs into the trap: what shows that it is one.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Plain {
    RunsIt,
    RunsItElsewhere,
}

fn configure(scene: &Scene, key: &str, value: &str) {
    assert!(git(&scene.path("work"), &scene.path("home"), &["config", "--add", key, value]));
}

/// The path of a program that leaves a mark.
fn evil(scene: &Scene) -> String {
    let mark = scene.path("work/ran");
    let text = format!("#!/bin/sh\necho \"$0 $*\" >> {}\ncat\n", mark.display());
    let path = scene.write("work/evil", text);
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path.display().to_string()
}

fn hook(scene: &Scene, folder: &str) {
    let evil = evil(scene);
    fs::create_dir_all(scene.path(folder)).unwrap();
    let all = [
        "pre-commit",
        "prepare-commit-msg",
        "commit-msg",
        "post-commit",
        "post-index-change",
        "reference-transaction",
        "pre-auto-gc",
        "fsmonitor-watchman",
    ];
    for it in all {
        symlink(&evil, scene.path(folder).join(it)).unwrap();
    }
}

/// Nothing of a repository with this trap runs, whatever is asked; and it is a trap.
#[track_caller]
fn check(lay: Trap, plain: Plain) {
    let scene = repository();
    fs::create_dir_all(scene.path("home")).unwrap();
    lay(&scene);
    scene.write("work/a.txt", "two\n");
    let server = serve(&scene);
    let asked = || {
        send(&scene, &server, "status", "").code(0);
        send(&scene, &server, "diff", "").code(0);
        send(&scene, &server, "diff", "<commit>HEAD</commit>").code(0);
        send(&scene, &server, "log", "").code(0);
    };
    asked();
    let path = "<message>One</message><path>a.txt</path>";
    send(&scene, &server, "commit", path).code(0);
    scene.write("work/b.txt", "two\n");
    send(&scene, &server, "commit", "<message>All</message>").code(0);
    scene.write("work/a.txt", "three\n");
    asked();
    let mark = scene.path("work/ran");
    assert!(!mark.exists(), "{}", fs::read_to_string(&mark).unwrap_or_default());
    if plain == Plain::RunsIt {
        for words in [&["status"][..], &["diff"], &["log", "-p"], &["commit", "-qam", "Three"]] {
            git(&scene.path("work"), &scene.path("home"), words);
        }
        assert!(mark.exists(), "plain Git doesn't run into this trap");
    }
}

macro_rules! traps {
    ($($name:ident: $plain:ident, $lay:expr;)*) => {
        $(
            #[test]
            fn $name() {
                check($lay, Plain::$plain);
            }
        )*
    };
}

traps! {
    a_monitor_of_files_doesnt_run: RunsIt, |it| configure(it, "core.fsmonitor", &evil(it));
    a_hook_doesnt_run: RunsIt, |it| hook(it, "work/.git/hooks");
    a_hook_in_another_folder_doesnt_run: RunsIt, |it| {
        hook(it, "work/hooks");
        configure(it, "core.hooksPath", "hooks");
    };
    a_hook_of_the_configuration_doesnt_run: RunsItElsewhere, |it| {
        configure(it, "hook.x.command", &evil(it));
        configure(it, "hook.x.event", "pre-commit");
    };
    an_external_diff_doesnt_run: RunsIt, |it| configure(it, "diff.external", &evil(it));
    a_diff_of_an_attribute_doesnt_run: RunsIt, |it| {
        it.write("work/.gitattributes", "* diff=x\n");
        configure(it, "diff.x.command", &evil(it));
    };
    a_text_conversion_doesnt_run: RunsIt, |it| {
        it.write("work/.gitattributes", "* diff=x\n");
        configure(it, "diff.x.textconv", &evil(it));
    };
    a_clean_filter_doesnt_run: RunsIt, |it| {
        it.write("work/.gitattributes", "* filter=x\n");
        configure(it, "filter.x.clean", &evil(it));
        configure(it, "filter.x.smudge", &evil(it));
        configure(it, "filter.x.required", "true");
    };
    a_filter_process_doesnt_run: RunsIt, |it| {
        it.write("work/.git/info/attributes", "* filter=x\n");
        configure(it, "filter.x.process", &evil(it));
    };
    a_signing_program_doesnt_run: RunsIt, |it| {
        configure(it, "commit.gpgSign", "true");
        configure(it, "gpg.program", &evil(it));
        configure(it, "log.showSignature", "true");
    };
    an_ssh_signing_program_doesnt_run: RunsIt, |it| {
        configure(it, "commit.gpgSign", "true");
        configure(it, "gpg.format", "ssh");
        configure(it, "gpg.ssh.program", &evil(it));
        configure(it, "gpg.ssh.defaultKeyCommand", &evil(it));
    };
    a_pager_doesnt_run: RunsItElsewhere, |it| {
        configure(it, "core.pager", &evil(it));
        configure(it, "pager.log", &evil(it));
        configure(it, "pager.status", &evil(it));
    };
    an_editor_doesnt_run: RunsItElsewhere, |it| {
        configure(it, "core.editor", &evil(it));
        configure(it, "sequence.editor", &evil(it));
    };
    an_alias_doesnt_run: RunsItElsewhere, |it| {
        for name in ["status", "diff", "log", "commit", "add", "rev-parse"] {
            configure(it, &format!("alias.{name}"), &format!("!{}", evil(it)));
        }
    };
    an_included_file_doesnt_count: RunsIt, |it| {
        let text = format!("[core]\n\tfsmonitor = {}\n", evil(it));
        let path = it.write("work/more.config", text);
        configure(it, "include.path", path.to_str().unwrap());
    };
    a_file_that_is_included_on_a_condition_doesnt_count: RunsIt, |it| {
        let text = format!("[core]\n\tfsmonitor = {}\n", evil(it));
        let path = it.write("work/more.config", text);
        configure(it, "includeIf.onbranch:main.path", path.to_str().unwrap());
    };
    a_configuration_of_the_working_tree_doesnt_count: RunsIt, |it| {
        configure(it, "extensions.worktreeConfig", "true");
        it.write("work/.git/config.worktree", format!("[core]\n\tfsmonitor = {}\n", evil(it)));
    };
    a_command_of_ssh_doesnt_run: RunsItElsewhere, |it| {
        configure(it, "core.sshCommand", &evil(it));
        configure(it, "credential.helper", &format!("!{}", evil(it)));
        configure(it, "remote.origin.url", &format!("ext::{}", evil(it)));
        configure(it, "remote.origin.promisor", "true");
        configure(it, "remote.origin.uploadpack", &evil(it));
        configure(it, "extensions.partialClone", "origin");
        configure(it, "protocol.ext.allow", "always");
    };
    a_trailer_doesnt_run: RunsItElsewhere, |it| {
        configure(it, "trailer.sign.command", &evil(it));
        configure(it, "trailer.sign.cmd", &evil(it));
    };
    tidying_up_runs_no_hook: RunsIt, |it| {
        hook(it, "work/.git/hooks");
        configure(it, "gc.auto", "1");
        configure(it, "gc.recentObjectsHook", &evil(it));
        configure(it, "maintenance.auto", "true");
    };
    a_repository_inside_runs_nothing: RunsIt, |it| {
        let inside = it.path("work/inside");
        fs::create_dir(&inside).unwrap();
        fs::write(inside.join("c.txt"), "one\n").unwrap();
        begin(&inside);
        assert!(git(&it.path("work"), &it.path("home"), &["add", "inside"]));
        let modules = "[submodule \"inside\"]\npath = inside\nurl = ./inside\nignore = none\n";
        it.write("work/.gitmodules", modules);
        assert!(git(&inside, &it.path("home"), &["config", "core.fsmonitor", &evil(it)]));
        fs::write(inside.join("c.txt"), "two\n").unwrap();
    };
}

#[test]
fn the_users_and_the_pumps_own_settings_of_git_dont_count() {
    let scene = repository();
    let evil = evil(&scene);
    let monitor = format!("[core]\n\tfsmonitor = {evil}\n");
    scene.write("home/.gitconfig", &monitor);
    scene.write("home/.config/git/config", &monitor);
    scene.write("work/a.txt", "two\n");
    scene.write("organism.yaml", "listeners: [{use: git, settings: {root: work}}]\n");
    let mut command = scene.command(&["run", "--json", "--listen", "127.0.0.1:0"]);
    command.env("HOME", scene.path("home")).env("GIT_EXTERNAL_DIFF", &evil);
    command.env("GIT_SSH_COMMAND", &evil).env("GIT_EDITOR", &evil).env("GIT_PAGER", &evil);
    command.env("GIT_CONFIG_COUNT", "1").env("GIT_CONFIG_KEY_0", "diff.external");
    command.env("GIT_CONFIG_VALUE_0", &evil).env("GIT_DIR", "/nowhere");
    let server = Server::begin(&mut command);
    send(&scene, &server, "status", "").code(0).says(&["<path>a.txt</path>"]);
    send(&scene, &server, "diff", "").code(0).says(&["-one\n+two"]);
    send(&scene, &server, "commit", "<message>All</message>").code(0);
    assert!(!scene.path("work/ran").exists());
}

#[test]
fn a_working_tree_elsewhere_isnt_shown() {
    let scene = repository();
    scene.write("other/secret.txt", "secret\n");
    configure(&scene, "core.worktree", scene.path("other").to_str().unwrap());
    let server = serve(&scene);
    let shown = send(&scene, &server, "status", "").code(0);
    assert!(!shown.out.contains("secret"), "{shown:?}");
    send(&scene, &server, "commit", "<message>All</message>").code(1).says(&["reason=\"nothing\""]);
}

#[test]
fn check_wants_a_folder_and_an_author() {
    let scene = repository();
    let wrong = |settings: &str, text: &str| {
        scene.write("wrong.yaml", format!("listeners: [{{use: git, settings: {settings}}}]"));
        scene.run(&["check", "wrong.yaml"]).code(1).says(&[text]);
    };
    wrong("{}", "here the key `root` is missing");
    wrong("{root: no}", "make it first");
    wrong("{root: work, author: Ada}", "`Ada` is no author");
    scene.write("organism.yaml", "listeners: [{use: git, settings: {root: work}}]");
    scene.run(&["check"]).code(0).says(&["Shows what is changed in a Git repository"]);
}
