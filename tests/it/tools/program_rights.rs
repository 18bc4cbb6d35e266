//! A program gets no rights from the pump that begins it: neither at the pump's doors, nor to what
//! the system keeps from others.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use super::command::{Shell, is_confined, runs, sent};
use crate::program::{Scene, Server};
use crate::until;

/// The pump's own program, which a program may use as a client.
const CLIENT: &str = env!("CARGO_BIN_EXE_pumphouse");

const REFUSED: &str = "the pump began this process or an ancestor of it, and lets none of them in";
const NEEDS_TOKEN: &str = "the process is in another PID namespace, so it needs a token";
const MESSAGE: &str = "<shell xmlns=\"https://xml-pipeline.org/ns/shell/v1\"><command>sh</command>\
                       <command>-c</command><command>echo in | tr a-z A-Z</command></shell>";
/// The part of an answer that shows that the pump took the message.
const ANSWER: &str = "<out>IN";

#[test]
fn a_program_is_not_let_in_at_the_pumps_doors() {
    let network = "network: any, beside_open_door: true";
    let shell = Shell::new(&format!(", {network}, read: [{CLIENT}]"));
    fs::write(shell.scene.path("work/message.xml"), MESSAGE).unwrap();
    for address in [&*shell.server.address, "unix:../pump.sock"] {
        let send = format!("{CLIENT} send --connect {address} message.xml >out 2>&1");
        shell.sh(&format!("{send}; cat out")).code(0).says(&[REFUSED]);
        // Nor is an orphan in a session of its own.
        let wait = "while [ -e busy ]; do sleep 0.05; done";
        let orphan = format!("touch busy; (setsid sh -c '{send}; rm busy' &); {wait}; cat out");
        shell.sh(&orphan).code(0).says(&[REFUSED]);
    }
    // Everybody else is let in.
    let message = shell.scene.write("message.xml", MESSAGE);
    for address in [&*shell.server.address, "unix:pump.sock"] {
        let sent = shell.scene.run(&["send", "--connect", address, message.to_str().unwrap()]);
        sent.code(0).says(&[ANSWER]);
    }
}

#[test]
fn a_program_is_not_shown_the_pumps_metrics() {
    let shell = Shell::new(", network: any, beside_open_door: true");
    let url = shell.server.greeting["metrics"][0].as_str().unwrap();
    let at = url.trim_start_matches("http://").trim_end_matches("/metrics");
    let ask = format!(
        "exec 3<>/dev/tcp/{}; printf 'GET /metrics HTTP/1.1\r\nhost: x\r\n\r\n' >&3; \
         head -n 1 <&3",
        at.replace(':', "/")
    );
    // The same line asks in vain as a program, and is answered from outside.
    let ran = shell.with("bash", &format!("({ask}); echo ended"));
    assert!(ran.out.contains("ended") && !ran.out.contains("200 OK"), "{ran:?}");
    let outside = Command::new("bash").args(["-c", &ask]).output().unwrap();
    assert!(String::from_utf8_lossy(&outside.stdout).contains("200 OK"), "{outside:?}");
}

/// What has sent its message and ended can't be told from a program that has ended.
#[test]
fn a_client_that_is_gone_needs_a_token() {
    let shell = Shell::new(", network: any, beside_open_door: true");
    let (host, port) = shell.server.address.rsplit_once(':').unwrap();
    let push = "<list-todos xmlns=\"https://xml-pipeline.org/ns/todo/v1\"/>";
    shell.with("bash", &format!("echo '{push}' >/dev/tcp/{host}/{port}")).code(0);
    // The door has dealt with the connection once it serves a later one.
    shell.sh("true").code(0);
    let threads = shell.scene.run(&["threads", "--json"]).code(0).objects();
    assert_eq!(threads.len(), 2, "{threads:?}");
}

#[test]
fn a_process_of_another_namespace_needs_a_token() {
    let unshare = |rest: &[&str], scene: &Scene| {
        let mut command = Command::new("unshare");
        command.args(["--pid", "--fork"]).args(rest).current_dir(scene.path(""));
        command.env_remove("PUMPHOUSE_TOKEN");
        command
    };
    let scene = Scene::new();
    if !unshare(&["true"], &scene).status().is_ok_and(|it| it.success()) {
        return crate::skipped("no PID namespaces");
    }
    scene.write(
        "organism.yaml",
        "listeners: [{use: shell, door: true, settings: {programs: [sh]}}]\n",
    );
    scene.write("message.xml", MESSAGE);
    scene.write("tokens", "ann:s3cret-a\n");
    fs::set_permissions(scene.path("tokens"), std::os::unix::fs::PermissionsExt::from_mode(0o600))
        .unwrap();
    let send = |server: &Server, token: &str| {
        let all = [&*server.address, "unix:pump.sock"].map(|address| {
            let mut command = unshare(&[CLIENT, "send", "--connect", address], &scene);
            let ran = command.arg("message.xml").env("PUMPHOUSE_TOKEN", token).output().unwrap();
            format!("{ran:?}")
        });
        all.join("\n")
    };
    let server = scene.serve(&["--unix", "pump.sock"]);
    let without = send(&server, "");
    assert_eq!(without.matches(NEEDS_TOKEN).count(), 2, "{without}");
    drop(server);
    let server = scene.serve(&["--unix", "pump.sock", "--tokens", "tokens"]);
    let with = send(&server, "s3cret-a");
    assert_eq!(with.matches(ANSWER).count(), 2, "{with}");
    assert_eq!(send(&server, "wrong").matches("P0021").count(), 2);
}

/// Where the system hides the processes of other users, the ancestors of an operator's shell are
/// hidden from the pump, and the operator is let in all the same.
#[test]
fn an_operator_whose_ancestors_are_hidden_is_let_in() {
    let nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"];
    let hiding = "mount -t proc -o hidepid=2 proc /proc && exec \"$@\"";
    let hidden = ["unshare", "--mount", "sh", "-c", hiding, "-"];
    let scene = Scene::new();
    let command = |all: &[&[&str]]| {
        let all = all.concat();
        let mut command = Command::new(all[0]);
        command.args(&all[1..]).current_dir(scene.path("")).env_remove("PUMPHOUSE_TOKEN");
        command
    };
    std::os::unix::fs::chown(scene.path(""), Some(65534), Some(65534)).ok();
    let mut probe = command(&[&hidden, &nobody, &["sh", "-c", "! ls /proc/1 && touch probe"]]);
    let mut client = command(&[&nobody, &[CLIENT, "--version"]]);
    let mut all = [&mut probe, &mut client].map(|it| it.stderr(Stdio::null()).output());
    if !all.iter_mut().all(|it| it.as_ref().is_ok_and(|it| it.status.success())) {
        return crate::skipped("no hidepid, or no right to become another user");
    }
    scene.write("organism.yaml", "listeners: [{use: shell, settings: {programs: [sh]}}]\n");
    scene.write("message.xml", MESSAGE);
    let run = [CLIENT, "run", "--json", "--listen", "127.0.0.1:0", "--unix", "pump.sock"];
    let _server = Server::begin(&mut command(&[&hidden, &nobody, &run]));
    let send = [CLIENT, "send", "--connect", "unix:pump.sock", "message.xml"];
    let sent = command(&[&nobody, &send]).output().unwrap();
    assert!(String::from_utf8_lossy(&sent.stdout).contains(ANSWER), "{sent:?}");
}

#[test]
fn a_program_reads_of_the_systems_settings_what_programs_need() {
    if !is_confined() {
        return;
    }
    let shell = Shell::new("");
    shell.sh("id -un && cat /etc/passwd | head -c 4").code(0).says(&["<out>"]);
    for path in
        ["/etc/shadow", "/etc/gshadow", "/etc/sudoers", "/etc/login.defs", "/etc/ssl/private"]
    {
        if Path::new(path).exists() {
            let read = if Path::new(path).is_dir() { "ls" } else { "cat" };
            shell
                .sh(&format!("{read} {path} 2>&1 | head -c 200; exit"))
                .says(&["ermission denied"]);
        }
    }
    shell.sh("ls /etc 2>&1").says(&["ermission denied"]);
}

#[test]
fn check_finds_a_network_beside_an_open_door() {
    let scene = Scene::new();
    let check = |settings: &str, rest: &str| {
        let text = format!(
            "listeners:\n  - {{use: shell, settings: {{programs: [sh], {settings}}}}}\n  \
             - {{use: command, settings: {{run: [cat], {settings}}}}}\n{rest}"
        );
        scene.write("organism.yaml", text);
        scene.run(&["check"])
    };
    let text = "the programs of `shell` may use the network, and the door at ADDRESS lets \
                everybody of this machine in without a token";
    let at = |address: &str| text.replace("ADDRESS", address);
    let usual = check("network: any", "").code(1);
    usual.says(&[&at("127.0.0.1:8765"), "organism.yaml:2:", "organism.yaml:3:", "`tokens:`"]);
    let doors = "doors: [{unix: a}, {tcp: \"localhost:9\"}]";
    check("network: any", doors).code(1).says(&[&at("localhost:9")]);
    scene.run(&["run"]).code(2).says(&[&at("localhost:9")]);
    check("network: any", "doors: [{unix: a}]").code(0);
    check("network: any, beside_open_door: true", "").code(0);
    check("network: none", "").code(0);
    check("network: any", "tokens: {env: TOKENS}").code(1);
    scene.write("tokens", "ann:s3cret-a\n");
    fs::set_permissions(scene.path("tokens"), std::os::unix::fs::PermissionsExt::from_mode(0o600))
        .unwrap();
    check("network: any", "tokens: {file: tokens}").code(0);
}

/// The pump ends what is left of a program whose supervisor was killed by somebody else.
#[test]
fn what_a_killed_supervisor_left_ends() {
    let shell = Shell::new("");
    let script = "echo $PPID >supervisor; setsid sleep 41260 & sleep 41261";
    let input = shell.scene.write("message.xml", Shell::payload("sh", script));
    let verb = ["send", input.to_str().unwrap(), "--connect", &shell.server.address];
    let mut asking = shell.scene.command(&verb).stdout(Stdio::null()).spawn().unwrap();
    until(|| runs("sleep 41260") && runs("sleep 41261"));
    let supervisor = fs::read_to_string(shell.scene.path("work/supervisor")).unwrap();
    assert!(Command::new("kill").args(["-KILL", supervisor.trim()]).status().unwrap().success());
    until(|| !runs("sleep 41260") && !runs("sleep 41261"));
    asking.wait().unwrap();
    let next = sent(&shell.scene, &shell.server, &Shell::payload("sh", "echo on"));
    next.code(0).says(&["on"]);
}

/// The first process of a namespace has all orphans, and ends those of its programs, too.
#[test]
fn what_a_killed_supervisor_left_ends_where_the_pump_is_the_first_process() {
    let scene = Scene::new();
    let namespace = ["--pid", "--fork", "--mount-proc", "--kill-child"];
    let is_there = Command::new("unshare").args(namespace).arg("true").status();
    if !is_there.is_ok_and(|it| it.success()) {
        return crate::skipped("no PID namespaces");
    }
    scene.write("organism.yaml", "listeners: [{use: shell, settings: {programs: [sh]}}]\n");
    let tokens = scene.write("tokens", "ann:s3cret-of-ann:operator\n");
    fs::set_permissions(tokens, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    let mut command = Command::new("unshare");
    command.args(namespace).args([CLIENT, "run", "--json", "--listen", "127.0.0.1:0"]);
    let server = Server::begin(command.args(["--tokens", "tokens"]).current_dir(scene.path("")));
    let input =
        scene.write("message.xml", Shell::payload("sh", "setsid sleep 41270 & sleep 41271"));
    let mut client =
        scene.command(&["send", input.to_str().unwrap(), "--connect", &server.address]);
    client.env("PUMPHOUSE_TOKEN", "s3cret-of-ann").stdout(Stdio::null()).stderr(Stdio::null());
    let mut asking = client.spawn().unwrap();
    let number = |arguments: &str| -> Option<u32> {
        let wanted = format!("{}\0", arguments.replace(' ', "\0"));
        let all = fs::read_dir("/proc").unwrap().flatten();
        let mut all = all.filter_map(|it| it.file_name().to_str()?.parse().ok());
        all.find(|it: &u32| {
            fs::read(format!("/proc/{it}/cmdline")).is_ok_and(|it| it == wanted.as_bytes())
        })
    };
    let parent = |number: u32| -> u32 {
        let stat = fs::read_to_string(format!("/proc/{number}/stat")).unwrap();
        stat.rsplit_once(") ").unwrap().1.split(' ').nth(1).unwrap().parse().unwrap()
    };
    until(|| number("sleep 41270").is_some() && number("sleep 41271").is_some());
    let left = number("sleep 41270").unwrap();
    let supervisor = parent(parent(number("sleep 41271").unwrap())).to_string();
    assert!(Command::new("kill").args(["-KILL", &supervisor]).status().unwrap().success());
    // It is reaped, too: what is only dead still has its number.
    until(|| !Path::new(&format!("/proc/{left}")).exists());
    assert!(!runs("sleep 41271"));
    asking.wait().unwrap();
}
