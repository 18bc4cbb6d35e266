//! `use: command` and `use: shell`: what programs may do, and how misbehaving programs end.

use std::fs;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use pumphouse::listeners::tool::command::confine::note;

use super::{asked, in_order, organism};
use crate::program::{Ran, Scene, Server};
use crate::until;

/// A pump with a shell that runs `sh`, and the settings beside that.
pub(super) struct Shell {
    pub(super) scene: Scene,
    pub(super) server: Server,
}

impl Shell {
    #[track_caller]
    pub(super) fn new(settings: &str) -> Shell {
        let scene = Scene::new();
        fs::create_dir(scene.path("work")).unwrap();
        scene.write("secret", "the secret");
        let settings = format!("programs: [sh, bash], root: work{settings}");
        let manifest = format!("listeners: [{{use: shell, settings: {{{settings}}}}}]\n");
        scene.write("organism.yaml", manifest);
        let server = scene.serve(&["--unix", "pump.sock", "--metrics", "127.0.0.1:0"]);
        Shell { scene, server }
    }

    pub(super) fn payload(program: &str, script: &str) -> String {
        let script = script.replace('&', "&amp;").replace('<', "&lt;");
        format!(
            "<shell xmlns=\"https://xml-pipeline.org/ns/shell/v1\"><command>{program}</command>\
             <command>-c</command><command>{script}</command></shell>\n"
        )
    }

    #[track_caller]
    pub(super) fn with(&self, program: &str, script: &str) -> Ran {
        sent(&self.scene, &self.server, &Shell::payload(program, script))
    }

    #[track_caller]
    pub(super) fn sh(&self, script: &str) -> Ran {
        self.with("sh", script)
    }
}

/// What comes of a payload, without the marks of lines that belong to a text.
#[track_caller]
pub(super) fn sent(scene: &Scene, server: &Server, payload: &str) -> Ran {
    let ran = scene.pipe(&["send", "--connect", &server.address], payload);
    Ran { out: ran.out.replace("\n│ ", "\n"), ..ran }
}

/// Whether a process with these arguments is there, here or where it is an orphan.
pub(super) fn runs(arguments: &str) -> bool {
    let wanted = format!("{}\0", arguments.replace(' ', "\0"));
    let all = fs::read_dir("/proc").unwrap().flatten();
    all.filter_map(|it| fs::read(it.path().join("cmdline")).ok()).any(|it| it == wanted.as_bytes())
}

/// Whether the kernel has Landlock; where it hasn't, the test says that it was skipped.
pub(super) fn is_confined() -> bool {
    let is_confined = note().is_empty();
    if !is_confined {
        crate::skipped("no Landlock");
    }
    is_confined
}

#[test]
fn an_agent_of_a_manifest_runs_programs() {
    let replies = r#"%% reply
<action id="loud">{"name": "shout", "parameters": {"text": "hello"}}</action>
<action id="long">{"name": "count", "parameters": {"text": "four"}}</action>
<action id="both">{"name": "find", "parameters": {"text": "one"}}</action>
<action id="all">{"name": "shell", "parameters": {"command": ["ls", "-a", "$HOME; *"]}}</action>
<action id="no">{"name": "shell", "parameters": {"command": ["rm", "x"]}}</action>
%% reply
<response>${loud} ${long}, ${both}.</response>
"#;
    let tools = [
        ("shout", "use: command, settings: {run: [tr, a-z, A-Z], input: text}"),
        ("count", "use: command, settings: {run: [expr, length, \"{text}\"]}"),
        ("find", "use: command, settings: {run: [grep, -c, \"{text}\"], input: text}"),
        ("shell", "use: shell, settings: {programs: [ls, cat]}"),
    ];
    let log = asked(&organism(&tools, replies), "Go.");
    in_order(&log, &["HELLO 4, 1."]);
    // What a shell would make something of is one argument as it stands.
    in_order(&log, &["ls ended with the exit code 2", "cannot access '$HOME; *'"]);
    in_order(&log, &["`rm` may not be run; there is one of cat, ls"]);
}

#[test]
fn check_finds_each_program() {
    let scene = Scene::new();
    scene.write("tools/mine", "#!/bin/sh\nexec cat\n");
    let manifest = "\
listeners:
  - {use: shell, settings: {programs: [sh, ls]}}
  - {use: shell, name: open, settings: {programs: any}}
  - {use: command, name: mine, settings: {run: [./tools/mine], input: text}}
";
    scene.write("organism.yaml", manifest);
    scene.run(&["check"]).code(1).says(&["organism.yaml:4:42: ", "/tools/mine is no program"]);
    Command::new("chmod").arg("+x").arg(scene.path("tools/mine")).status().unwrap();
    let told = [
        "listener  shell  Runs one of ls, sh; no shell reads its arguments.",
        "listener  open  Runs a program; no shell reads its arguments.",
        "listener  mine  Runs ./tools/mine on a text.",
    ];
    scene.run(&["check"]).code(0).says(&told);
    let server = scene.serve(&[]);
    let run = "<run xmlns=\"https://xml-pipeline.org/ns/mine/v1\"><text>a\nb</text></run>\n";
    sent(&scene, &server, run).code(0).says(&["<text>a\nb</text>"]);
    let wrong = |settings: &str, text: &str| {
        scene.write("wrong.yaml", format!("listeners: [{{use: shell, settings: {settings}}}]"));
        scene.run(&["check", "wrong.yaml"]).code(1).says(&[text]);
    };
    wrong("{}", "here the key `programs` is missing");
    wrong("{programs: []}", "no program may be run: list some");
    wrong("{programs: [sh, no-such]}", "there is no program `no-such`");
    wrong("{programs: [sh], network: yes}", "any");
    wrong("{programs: [sh], limits: {second: 1}}", "did you mean `seconds_max`?");
}

#[test]
fn what_a_program_wrote_comes_with_its_failure() {
    let shell = Shell::new("");
    shell.sh("echo out; echo err >&2; exit 3").code(1).says(&[
        "code=\"3\" reason=\"exit-code\"",
        "<text>sh ended with the exit code 3</text>",
        "<out>out\n</out>",
        "<err>err\n</err>",
    ]);
    shell.sh("kill -SEGV $$").code(1).says(&["reason=\"unknown\"", "by the signal 11"]);
    shell.sh("printf '\\033[1m\\001'").code(0).says(&["<out>\u{fffd}[1m\u{fffd}</out>"]);
}

#[test]
fn what_forks_ends_with_its_call() {
    let shell = Shell::new("");
    let script = "for i in 1 2 3; do setsid sleep 41230 & (sleep 41231 & ) ; done; echo begun";
    shell.sh(script).code(0).says(&["begun"]);
    assert!(!runs("sleep 41230") && !runs("sleep 41231"));
}

#[test]
#[expect(clippy::disallowed_methods, reason = "how long it takes is what is tested")]
fn what_ignores_sigterm_is_killed() {
    let shell = Shell::new(", limits: {seconds_max: 1}");
    let begun = Instant::now();
    let script = "trap '' TERM HUP INT; echo begun; sleep 41232; sleep 41232";
    let text = "sh was ended after 1 s; the limit seconds_max is 1";
    shell.sh(script).code(1).says(&["reason=\"unknown\"", text, "<out>begun\n</out>"]);
    assert!(begun.elapsed() < Duration::from_secs(15), "{:?}", begun.elapsed());
    assert!(!runs("sleep 41232"));
}

#[test]
fn what_writes_without_end_is_ended() {
    let shell = Shell::new(", limits: {written_bytes_max: 1000000, output_bytes_max: 100}");
    let ran = shell.sh("head -c 10G /dev/zero | tr '\\0' x").code(1);
    assert!(ran.out.len() < 10_000, "{}", ran.out.len());
    ran.says(&["reason=\"unknown\"", "the limit written_bytes_max is 1000000", "left out"]);
    let ran = shell.sh("seq 1000").code(0);
    ran.says(&["1\n2\n3\n", "bytes left out; 100 are shown", "999\n1000\n"]);
}

#[test]
fn the_pumps_environment_is_not_the_programs() {
    let scene = Scene::new();
    scene.write(
        "organism.yaml",
        "listeners: [{use: shell, settings: {programs: [sh], env: {OWN: \"${GIVEN}\"}}}]\n",
    );
    let mut command = scene.command(&["run", "--listen", "127.0.0.1:0", "--json"]);
    command.env("LLM_KEY", "s3cret").env("GIVEN", "given");
    let server = Server::begin(&mut command);
    let ask = |script: &str| sent(&scene, &server, &Shell::payload("sh", script));
    let own = ask("env | sed 's/=.*//' | sort").code(0);
    own.says(&["<out>LANG\nOWN\nPATH\nPWD\nTMPDIR\n</out>"]);
    ask("echo $OWN").code(0).says(&["given"]);
    if is_confined() {
        let id = server.id().to_string();
        for process in ["self", "$PPID", "1", &id] {
            let read = ask(&format!("cat /proc/{process}/environ")).code(1);
            assert!(!read.out.contains("s3cret"), "{}", read.out);
            read.says(&["ermission denied"]);
        }
        ask("ls /proc").code(1).says(&["ermission denied"]);
    }
}

#[test]
fn what_needs_a_terminal_has_none() {
    let shell = Shell::new("");
    shell.sh("read x </dev/tty").code(1).says(&["reason=\"exit-code\"", "/dev/tty"]);
    shell.sh("tty; cat; echo end").code(0).says(&["not a tty\nend\n"]);
}

#[test]
fn a_program_sees_its_folders_and_no_more() {
    if !is_confined() {
        return;
    }
    let shell = Shell::new("");
    shell.sh("cat ../secret").code(1).says(&["ermission denied"]);
    shell.sh("echo x >../new").code(1).says(&["ermission denied"]);
    let mine = "echo in >new && echo tmp >$TMPDIR/x && cat new $TMPDIR/x && echo $TMPDIR >where";
    shell.sh(mine).code(0).says(&["<out>in\ntmp\n</out>"]);
    let scratch = fs::read_to_string(shell.scene.path("work/where")).unwrap();
    assert!(!std::path::Path::new(scratch.trim()).exists(), "{scratch}");
    // Nor does it reach the process that would end it.
    shell.sh("kill -9 $PPID").code(1).says(&["not permitted"]);
    let more = Shell::new(", read: [secret]");
    more.sh("cat ../secret").code(0).says(&["the secret"]);
}

#[test]
fn a_program_connects_only_where_it_may() {
    if !is_confined() {
        return;
    }
    let connect = |shell: &Shell| {
        let (host, port) = shell.server.address.rsplit_once(':').unwrap();
        shell.with("bash", &format!("exec 3<>/dev/tcp/{host}/{port} && echo connected"))
    };
    connect(&Shell::new("")).code(1).says(&["ermission denied"]);
    let network = ", network: any, beside_open_door: true";
    connect(&Shell::new(network)).code(0).says(&["connected"]);
}

#[test]
fn a_program_has_its_limits() {
    let limits = "memory_bytes_max: 50000000, file_bytes_max: 1000, descriptors_max: 16";
    let shell = Shell::new(&format!(", limits: {{{limits}}}"));
    shell.sh("head -c 300M /dev/zero | tail -c 200M | wc -c").code(0).says(&["exhausted"]);
    shell.sh("head -c 2000 /dev/zero >big; wc -c <big").code(0).says(&["<out>1000\n</out>"]);
    shell.with("bash", "for i in {10..19}; do eval \"exec $i</dev/null\"; done").code(1);
    let small = Shell::new(", limits: {input_bytes_max: 10}");
    small.sh("echo 1234567").code(1).says(&["the limit input_bytes_max is 10"]);
}

#[test]
fn a_program_ends_with_its_thread() {
    let shell = Shell::new("");
    let payload = Shell::payload("sh", "sleep 41235 & sleep 41236");
    let input = shell.scene.write("message.xml", payload);
    let verb = ["send", input.to_str().unwrap(), "--connect", &shell.server.address];
    let mut asking = shell.scene.command(&verb).stdout(Stdio::null()).spawn().unwrap();
    until(|| runs("sleep 41235") && runs("sleep 41236"));
    let threads = shell.scene.run(&["threads", "--json"]).code(0).objects();
    let thread = threads[0]["thread"].as_str().unwrap();
    shell.scene.run(&["cancel", thread, "--connect", &shell.server.address]).code(0);
    until(|| !runs("sleep 41235") && !runs("sleep 41236"));
    asking.wait().unwrap();
}

#[test]
fn all_ends_with_the_pump_also_where_it_is_killed() {
    let shell = Shell::new("");
    let payload = Shell::payload("sh", "setsid sleep 41233 & trap '' TERM; sleep 41234; sleep 1");
    let input = shell.scene.write("message.xml", payload);
    let verb = ["send", input.to_str().unwrap(), "--connect", &shell.server.address];
    let mut asking = shell.scene.command(&verb).stdout(Stdio::null()).spawn().unwrap();
    until(|| runs("sleep 41233") && runs("sleep 41234"));
    shell.server.signal("-KILL");
    until(|| !runs("sleep 41233") && !runs("sleep 41234"));
    asking.kill().unwrap();
    asking.wait().unwrap();
}

/// What a program writes reaches those who follow while it runs, and the log has its result alone.
#[test]
fn the_output_of_a_shell_is_shown_while_it_runs() {
    let replies = "%% reply\n<action id=\"t\">{\"name\": \"shell\", \"parameters\": {\"command\": \
                   [\"sh\", \"-c\", \"echo one; echo oops >&2; sleep 0.2; echo two\"]}}</action>\n\
                   %% reply\n<response>It wrote: ${t.out}</response>\n";
    let tools = [("shell", "use: shell, settings: {programs: [sh]}")];
    let scene = organism(&tools, replies);
    let events = scene.pipe(&["chat", "--json"], "Test it.\n").objects();
    let place = |kind: &str| events.iter().position(|it| it["type"] == kind).unwrap();
    let (first, result) = (place("tool_call_output"), place("tool_call_result"));
    assert!(first < result, "{events:#?}");
    let all = events.iter().filter(|it| it["type"] == "tool_call_output");
    let of = |stream: &str| {
        let texts = all.clone().filter(|it| it["stream"] == stream);
        texts.map(|it| it["text"].as_str().unwrap()).collect::<String>()
    };
    assert_eq!((&*of("out"), &*of("err")), ("one\ntwo\n", "oops\n"));
    assert_eq!(events[first]["call_id"], "t");
    let chat = scene.pipe(&["chat"], "Test it.\n");
    let (line, answer) = (chat.out.find("t │ one\n"), chat.out.find("It wrote: one\ntwo"));
    assert!(line.is_some() && line < answer, "{}", chat.out);
    for thread in scene.run(&["threads", "--json"]).objects() {
        let log = scene.run(&["show", thread["thread"].as_str().unwrap(), "--json"]).code(0);
        assert!(!log.out.contains("program-output"), "{}", log.out);
    }
}

/// A program that says when it begins, and that it wasn't ended.
const SLOW: &str = "use: command, settings: {run: [sh, -c, \"echo begin >> log; sleep 41240; echo \
                    end >> log\"], takes: {type: object}}";

#[test]
fn a_program_ends_with_its_call_when_its_agent_is_interrupted() {
    let replies = "%% reply\n<action id=\"a\">{\"name\": \"work\"}</action>\n\
                   %% reply\n<response>Done.</response>\n";
    let scene = organism(&[("work", SLOW)], replies);
    let server = scene.serve(&[]);
    std::thread::scope(|scope| {
        let ask = "<coder xmlns=\"https://xml-pipeline.org/ns/coder/v1\">Go.</coder>\n";
        scope.spawn(|| scene.pipe(&["send", "--connect", &server.address], ask));
        until(|| runs("sleep 41240"));
        let threads = scene.run(&["threads", "--json"]).code(0).objects();
        let mut ids = threads.iter().filter_map(|it| it["thread"].as_str());
        let thread = ids.find(|it| it.starts_with("sess-")).unwrap();
        let interrupt = format!(
            "<message xmlns=\"https://xml-pipeline.org/ns/envelope/v1\"><meta><thread>{thread}\
             </thread></meta><interrupt xmlns=\"https://xml-pipeline.org/ns/agent/v1\" \
             reason=\"enough\"/></message>\n"
        );
        scene.pipe(&["send", "--connect", &server.address], &interrupt);
        until(|| !runs("sleep 41240"));
    });
    assert_eq!(fs::read_to_string(scene.path("work/log")).unwrap(), "begin\n");
}

/// The first attempt ignores SIGTERM. It is dead before the second begins.
#[test]
fn a_retry_never_runs_beside_the_attempt_before() {
    let replies = "%% reply\n<action id=\"a\" timeout=\"1\" retry=\"1\">\
                   {\"name\": \"work\"}</action>\n%% reply\n<response>It is: ${a}</response>\n";
    let script = "trap '' TERM; if [ -e first ]; then kill -0 $(cat first) && echo beside || echo \
                  alone; else echo $$ > first; sleep 41241; fi";
    let tool = format!(
        "use: command, idempotent: true, settings: {{run: [sh, -c, \"{script}\"], takes: {{type: \
         object}}}}"
    );
    let scene = organism(&[("work", &tool)], replies);
    let log = asked(&scene, "Go.");
    in_order(&log, &["attempts=\\\"2\\\"", "status=\\\"ok\\\"", "It is: alone"]);
    assert!(!runs("sleep 41241"));
}

#[test]
fn a_program_that_ran_out_of_time_is_unknown_and_not_run_again() {
    let replies = "%% reply\n<action id=\"a\" timeout=\"1\" retry=\"2\">\
                   {\"name\": \"work\"}</action>\n%% reply\n<response>It is: ${a}</response>\n";
    let scene = organism(&[("work", SLOW)], replies);
    let log = asked(&scene, "Go.");
    let text = "no answer came in 1 s; whether it had its effect is unknown";
    in_order(&log, &["attempts=\\\"1\\\"", "status=\\\"unknown\\\"", text]);
    assert_eq!(fs::read_to_string(scene.path("work/log")).unwrap(), "begin\n");
    let limited = SLOW.replace("takes:", "limits: {seconds_max: 1}, takes:");
    let scene = organism(&[("work", &limited)], &replies.replace("timeout=\"1\" ", ""));
    let log = asked(&scene, "Go.");
    in_order(&log, &["reason=\\\"unknown\\\"", "attempts=\\\"1\\\"", "status=\\\"unknown\\\""]);
    assert_eq!(fs::read_to_string(scene.path("work/log")).unwrap(), "begin\n");
}

#[test]
fn an_argument_may_be_empty_a_number_or_a_flag() {
    let scene = Scene::new();
    let run = "[printf, \"[%s]\", \"\", true, 5, 1.50, no]";
    scene.write(
        "organism.yaml",
        format!(
            "listeners:\n  - {{use: command, name: show, settings: {{run: {run}, input: text}}}}\n"
        ),
    );
    scene.run(&["check"]).code(0);
    let server = scene.serve(&[]);
    let payload = "<run xmlns=\"https://xml-pipeline.org/ns/show/v1\"><text>x</text></run>\n";
    sent(&scene, &server, payload).says(&["<text>[][true][5][1.50][no]</text>"]);
    let wrong = |run: &str, expected: &str| {
        let manifest = format!("listeners: [{{use: command, settings: {{run: {run}}}}}]\n");
        scene.write("wrong.yaml", manifest);
        scene.run(&["check", "wrong.yaml"]).code(1).says(&[expected]);
    };
    wrong("[echo, ~]", "a program or an argument is expected");
    wrong("[echo, [a]]", "a program or an argument is expected");
    wrong("[\"\", a]", "there is no program");
}
