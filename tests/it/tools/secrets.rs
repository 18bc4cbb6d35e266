//! An organism with a secret in every place that may have one, and peers that say these secrets in
//! every form: nothing that the organism writes, sends or shows has one.

mod forms;
mod hostile;

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Stdio};

use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::{Config, TestRunner};
use pumphouse::schema::base64_text;
use serde_json::json;

use crate::program::{Ran, Scene, Server};
use forms::{FORMS, Form, found};
use hostile::{Hostile, Said};

/// Each secret with its place.
const SECRETS: [(&str, &str); 12] = [
    ("key", "sk-model/KEY+0123\"56789&abc"),
    ("header", "hd-model~HEADER=0123456%789"),
    ("http", "ht-credential\\HTTP/0123456789"),
    ("password", "pw-ofBASIC:>>??0123456789a"),
    ("one", "on-oneURL.KEY/0123456789abc"),
    ("service", "sv-service<TOKEN>0123456789ab"),
    ("bearer", "mb-mcp?BEARER??0123456789abcd"),
    ("url", "mu-mcpURLTOKEN0123456789ab"),
    ("program", "ma-mcpARGUMENT!0123456789ab"),
    ("organism", "oo-otherORGANISM0123456789"),
    ("env", "ev-command>>ENV>0123456789"),
    ("door", "do-doorTOKEN0123456789abcdef"),
];

fn secret(of: &str) -> &'static str {
    SECRETS.iter().find(|(name, _)| *name == of).unwrap().1
}

/// The whole of a secret, and its halves.
fn parts(secret: &str) -> [&str; 3] {
    let (first, second) = secret.split_at(secret.len() / 2);
    [secret, first, second]
}

/// The secrets that peers know.
fn told() -> impl Iterator<Item = &'static str> {
    SECRETS.iter().filter(|(name, _)| *name != "door").map(|(_, it)| *it)
}

#[track_caller]
fn is_nowhere(place: &str, bytes: &[u8]) {
    if let Some(near) = found(bytes) {
        panic!("{place} has a secret: {near}");
    }
}

/// Looks through each file below a folder, but not through those of the secrets themselves.
fn look_through(folder: &Path) -> usize {
    let mut count = 0;
    for entry in fs::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        if entry.file_type().unwrap().is_dir() {
            count += look_through(&path);
        } else if path.extension().is_none_or(|it| it != "secret")
            && entry.file_type().unwrap().is_file()
        {
            is_nowhere(&path.display().to_string(), &fs::read(&path).unwrap());
            count += 1;
        }
    }
    count
}

fn scene(hostile: &Hostile) -> Scene {
    let scene = Scene::new();
    let private = |name: &str, text: String| {
        let path = scene.write(name, text);
        fs::set_permissions(path, Permissions::from_mode(0o600)).unwrap();
    };
    let host = &hostile.web;
    private("tokens.secret", format!("ops:{}:operator\n", secret("door")));
    let pair = base64_text(format!("ada:{}", secret("password")).as_bytes());
    let bearer = secret("http");
    let lines = format!("{host} Authorization: Bearer {bearer}\n{host} X-Proxy: Basic {pair}\n");
    private("http.secret", lines);
    private("other.secret", format!("{}\n", secret("organism")));
    let service = json!({ "auth_type": "bearer", "token": secret("service") });
    private("service.secret", service.to_string());
    scene.write("bridge.py", BRIDGE);
    let manifest = MANIFEST.replace("WEB", host).replace("DOOR", &hostile.door);
    scene.write("organism.yaml", manifest);
    scene
}

/// An MCP server that asks the hostile web server what to answer.
const BRIDGE: &str = r#"
import sys, urllib.request
for line in sys.stdin:
    with urllib.request.urlopen("http://" + sys.argv[1] + "/own", line.encode()) as it:
        said = it.read().decode()
    if "tools/list" in line: print(said, file=sys.stderr)
    if said: print(said, flush=True)
"#;

const MANIFEST: &str = r#"
tokens: {file: tokens.secret}
models:
  m:
    use: openai-chat
    url: "http://WEB/v1"
    model: m
    key: "${KEY}"
    headers: {x-api-token: "${HEADER}"}
  a: {use: anthropic-messages, url: "http://WEB/v1", model: a, key: "${KEY}"}
services:
  quotes: {url: "http://WEB", auth: service.secret}
sinks:
  - {type: file, name: all, path: "sinks/all.jsonl"}
listeners:
  - {use: echo}
  - {use: http, name: web, settings: {hosts: ["WEB"], credentials: http.secret}}
  - use: http
    name: one
    settings:
      hosts: ["WEB"]
      url: "http://WEB/text?key=${ONE}"
      takes: {type: object, properties: {x: {type: string}}, required: [x]}
  - use: mcp
    name: srv
    settings: {url: "http://WEB/mcp?access_token=${URL}", bearer: "${BEARER}"}
  - {use: mcp, name: own, settings: {command: [python3, bridge.py, "WEB", --token, "${PROGRAM}"]}}
  - {use: other_organism, name: fleet, settings: {connect: "DOOR", token: other.secret}}
  - {use: command, name: env, settings: {run: [printenv, API_KEY], env: {API_KEY: "${ENV}"}}}
  - use: agent
    name: ada
    model: m
    references: true
    max_turns: 3
    peers: [web, srv, own, fleet, env, echo]
    context_feeds:
      - {id: fleet, source: {type: tool, name: fleet, params: {payload: '<m xmlns="urn:m"/>'}}}
    feeds:
      - source: quotes
        path: /quotes
        transform: {template: "{{ $.a }}{{ $.b }}{{ $.c }}{{ $.d }}"}
      - {source: quotes, path: /text}
  - {use: agent, name: bob, model: a, peers: [echo], references: true, max_turns: 3}
"#;

/// A command of the program, with the variables.
fn with_variables(command: &mut Command) -> &mut Command {
    for (variable, of) in [
        ("KEY", "key"),
        ("HEADER", "header"),
        ("ONE", "one"),
        ("BEARER", "bearer"),
        ("URL", "url"),
        ("PROGRAM", "program"),
        ("ENV", "env"),
    ] {
        command.env(variable, secret(of));
    }
    command
}

/// A question to a listener, and how its peer answers.
#[derive(Clone, Copy, Debug)]
struct Question {
    listener: &'static str,
    how: &'static str,
}

/// Every question.
fn questions() -> Vec<Question> {
    let all = |listener, hows: &[&'static str]| {
        hows.iter().map(|how| Question { listener, how }).collect::<Vec<_>>()
    };
    let models = ["ada", "bob"].map(|it| all(it, &hostile::MODELS)).concat();
    let mcp = [all("srv", &hostile::MCP), all("own", &hostile::MCP[..hostile::MCP_JSON])].concat();
    let door = all("fleet", &hostile::DOOR);
    [all("web", &hostile::WEB), all("one", &["text"]), mcp, door, all("env", &["key"]), models]
        .concat()
}

impl Question {
    /// Asks, and checks what comes.
    #[track_caller]
    fn ask(self, scene: &Scene, server: &Server, web: &str) -> Ran {
        let Question { listener, how } = self;
        let (group, local, inside) = match listener {
            "web" => ("web", "http", format!("<url>http://{web}/{how}</url><headers/>")),
            "one" => ("one", "request", "<x>1</x>".to_owned()),
            "srv" => ("mcp/srv", "t", format!("<x>{how}</x>")),
            "own" => ("mcp/own", "t", format!("<x>{how}</x>")),
            "fleet" => {
                let ask = "<payload>&lt;m xmlns=\"urn:m\"/></payload>";
                ("fleet", "ask-organism", ask.to_owned())
            }
            "env" => ("env", "run", "<text>x</text>".to_owned()),
            agent => (agent, agent, how.to_owned()),
        };
        let space = format!("https://xml-pipeline.org/ns/{group}/v1");
        let payload = format!("<{local} xmlns=\"{space}\">{inside}</{local}>\n");
        let input = fs::File::open(scene.write("payload.xml", payload)).unwrap();
        let mut command = scene.command(&["send", "--connect", &server.address]);
        let ran = Ran::of(command.env("PUMPHOUSE_TOKEN", secret("door")).stdin(input));
        is_nowhere(
            &format!("the answer to {self:?}"),
            format!("{}{}", ran.out, ran.err).as_bytes(),
        );
        ran
    }

    fn door(self) -> &'static str {
        if self.listener == "fleet" { self.how } else { hostile::DOOR[0] }
    }
}

/// A text with a few secrets, or parts of them, in any form.
fn texts() -> impl Strategy<Value = String> {
    let secrets = select(told().collect::<Vec<_>>());
    let part = (secrets, 0..4_usize, 0..8_usize, select(FORMS.to_vec()));
    let part = part.prop_map(|(secret, part, more, form): (&str, _, _, Form)| {
        let half = secret.len() / 2;
        form.of(match part {
            0 => &secret[..(half + more).min(secret.len())],
            part => parts(secret)[part - 1],
        })
    });
    let other = "[ -~\né…]{0,6}|[A-Za-z0-9+/]{1,3}|[\\\\&%]{1,3}";
    let all = prop::collection::vec((other, part), 1..5);
    all.prop_map(|all| all.into_iter().map(|(a, b)| a + &b).collect())
}

/// Secrets and their halves, in all forms.
fn forms(secrets: impl Iterator<Item = &'static str>) -> String {
    let all = secrets.flat_map(parts).flat_map(|it| FORMS.map(|form| form.of(it)));
    all.collect::<Vec<_>>().join(" ")
}

/// Asks what is answered with random texts. A failure is made as small as it can be.
fn storm(scene: &Scene, server: &Server, hostile: &Hostile) {
    let cuts = prop::collection::vec(any::<usize>(), 0..6);
    let cases = (select(questions()), texts(), cuts);
    let config =
        Config { cases: 32, max_shrink_iters: 24, failure_persistence: None, ..Config::default() };
    let asked = TestRunner::new(config).run(&cases, |(question, all, cuts)| {
        hostile.say(Said { all, cuts, door: question.door() });
        question.ask(scene, server, &hostile.web);
        Ok(())
    });
    if let Err(wrong) = asked {
        panic!("{wrong}");
    }
}

#[test]
fn a_secret_of_any_place_stands_in_nothing_that_is_said_or_written() {
    let said = Said { all: forms(told()), cuts: vec![7, 77, 777], door: hostile::DOOR[0] };
    let hostile = Hostile::start(said.clone());
    let scene = scene(&hostile);
    let checked = Ran::of(with_variables(&mut scene.command(&["check", "--live"])));
    is_nowhere("check", format!("{}{}", checked.out, checked.err).as_bytes());
    let traces = scene.path("traces");
    let file = Stdio::from(fs::File::create(&traces).unwrap());
    let mut run = scene.command(&["run", "--json", "--listen", "127.0.0.1:0"]);
    let run = with_variables(&mut run).env("RUST_LOG", "debug,hyper=off,reqwest=off").stderr(file);
    let mut server = Server::begin(run);
    let mut quiet = Vec::new();
    for question in questions() {
        hostile.say(Said { door: question.door(), ..said.clone() });
        let ran = question.ask(&scene, &server, &hostile.web);
        // An agent keeps back what it says beside a call.
        let is_quiet = question.how != "say-calls" && !ran.out.contains('…');
        quiet.extend(is_quiet.then_some((question, ran)));
    }
    assert!(quiet.is_empty(), "peers said secrets, and nothing was hidden: {quiet:?}");
    storm(&scene, &server, &hostile);
    server.stop("-TERM");
    for (place, said) in hostile.heard() {
        is_nowhere(&place, &said);
    }
    for thread in scene.run(&["threads", "--json"]).code(0).objects() {
        let shown = scene.run(&["show", thread["thread"].as_str().unwrap(), "--json"]).code(0).out;
        is_nowhere("show", shown.as_bytes());
    }
    for arguments in [&["feeds", "ada", "--values"][..], &["export"]] {
        is_nowhere(arguments[0], scene.run(arguments).out.as_bytes());
    }
    assert!(fs::metadata(&traces).unwrap().len() > 0);
    let count = look_through(&scene.path("."));
    assert!(scene.path("mcp.lock.json").exists() && count > 5, "{count} files");
}
