//! The verbs by which operators steer what runs: each against a server, with what the log keeps.

use serde_json::{Value, json};

use crate::program::{Scene, Server};

const CORE: &str = "https://xml-pipeline.org/ns/core/v1";
const OPERATOR: [&str; 2] = ["--connect", "unix:pump.sock"];

/// A server with a door for operators.
fn served(scene: &Scene) -> Server {
    scene.serve(&["--unix", "pump.sock", "--durability", "normal"])
}

/// A session of `console`, opened with this; its thread.
fn opened(scene: &Scene, server: &Server, payload: &str) -> String {
    let send = ["send", "--json", "--connect", &server.address];
    let sent = scene.pipe(&send, payload).code(0).objects();
    sent[0]["thread"].as_str().unwrap().to_owned()
}

/// An echo in a thread below.
fn below() -> String {
    format!(
        "<spawn-thread xmlns=\"{CORE}\" suggested_sub_id=\"wait\"><initial-payload>{}\
         </initial-payload></spawn-thread>",
        echo("below")
    )
}

fn echo(text: &str) -> String {
    format!("<echo xmlns=\"https://xml-pipeline.org/ns/echo/v1\"><text>{text}</text></echo>")
}

/// A session of `console` that pauses, with a thread below it that hasn't begun.
fn held(scene: &Scene, server: &Server) -> String {
    let thread = opened(scene, server, &format!("<pause-thread xmlns=\"{CORE}\"/>"));
    let send = ["send", "--thread", &thread, "--timeout", "0.2", "--connect", &server.address];
    scene.pipe(&send, &below()).code(1).says(&["not all that came of them is done"]);
    assert_eq!(states(scene, &thread), ["paused", "paused"]);
    thread
}

/// The states of a tree, its threads by id.
#[track_caller]
fn states(scene: &Scene, thread: &str) -> Vec<Value> {
    let tree = scene.run(&["tree", thread, "--json"]).code(0).objects();
    tree.into_iter().map(|it| it["state"].clone()).collect()
}

/// The last entry of a name in a thread.
#[track_caller]
fn last(scene: &Scene, thread: &str, name: &str) -> Value {
    let shown = scene.run(&["show", thread, "--json", "--payload", name]).code(0).objects();
    shown.last().unwrap_or_else(|| panic!("{thread} has no {name}")).clone()
}

#[test]
fn an_operator_cancels_a_tree_and_the_log_says_who_and_why() {
    let scene = Scene::new();
    let server = served(&scene);
    let thread = held(&scene, &server);
    let below = format!("{thread}.wait");
    let cancel = ["cancel", &thread, "--reason", "goes in <circles>"];
    let ran = scene.run(&[&cancel[..], &OPERATOR].concat()).code(0);
    let said = last(&scene, &thread, "thread-cancelled");
    let by = said["to"].as_str().unwrap().to_owned();
    assert_eq!(ran.out, format!("{thread} is cancelled by {by}: goes in <circles>\n"));
    assert_eq!(states(&scene, &thread), ["cancelled", "cancelled"]);
    for id in [&thread, &below] {
        let payload = last(&scene, id, "thread-cancelled")["payload"].clone();
        let payload = payload.as_str().unwrap();
        for part in [format!("by=\"{by}\""), "reason=\"goes in &lt;circles>\"".to_owned()] {
            assert!(payload.contains(&part), "{part} in {payload}");
        }
    }
    let asked = last(&scene, &thread, "cancel-thread");
    assert_eq!(asked["from"], by.as_str());
    assert!(asked["flags"].to_string().contains("from-operator"), "{asked}");
    // What has ended can't be ended again.
    let ran = scene.run(&[&cancel[..], &OPERATOR].concat()).code(1);
    ran.says(&["refused P0040", &format!("{thread} is cancelled")]);
    scene.run(&["verify"]).code(0);
}

#[test]
fn an_operator_pauses_and_resumes_a_tree() {
    let scene = Scene::new();
    let server = served(&scene);
    let thread = opened(&scene, &server, &echo("first"));
    let run = |verb: &str, more: &[&str]| {
        scene.run(&[&[verb, &thread, "--json"][..], more, &OPERATOR].concat()).code(0).objects()
    };
    let paused = run("pause", &["--reason", "looks odd"]);
    let events: Vec<&Value> = paused.iter().map(|it| &it["event"]).collect();
    assert_eq!(events, ["accepted", "message"]);
    assert_eq!(paused[1]["name"], "thread-paused");
    assert!(paused[1]["payload"].as_str().unwrap().contains("reason=\"looks odd\""));
    assert_eq!(states(&scene, &thread), ["paused"]);
    // What comes meanwhile waits until it goes on.
    let send = ["send", "--thread", &thread, "--timeout", "0.2", "--connect", &server.address];
    scene.pipe(&send, &below()).code(1).says(&["not all that came of them is done"]);
    assert_eq!(states(&scene, &thread), ["paused", "paused"]);
    let resumed = run("resume", &[]);
    assert_eq!(resumed[1]["name"], "thread-resumed");
    let over = || states(&scene, &thread) == ["open", "closed"];
    assert!(std::iter::repeat_with(over).take(500).any(|it| it), "what waited began");
}

#[test]
fn an_operator_raises_a_budget() {
    let scene = Scene::new();
    scene.write("organism.yaml", "limits: {tree_messages_max: 3}\ndoors: [{unix: pump.sock}]\n");
    let mut server = scene.command(&["run", "--json"]);
    let server = server.stdout(std::process::Stdio::null()).spawn().unwrap();
    let _stopped = Stopped(server);
    while !scene.path("pump.sock").exists() {
        std::thread::yield_now();
    }
    let echo = &echo("a");
    let send = [&["send", "--json"][..], &OPERATOR].concat();
    let sent = scene.pipe(&send, echo).code(0).objects();
    let thread = sent[0]["thread"].as_str().unwrap().to_owned();
    let into = [&send[..], &["--thread", &thread]].concat();
    scene.pipe(&into, echo).code(0);
    scene.pipe(&into, echo).code(0);
    scene.pipe(&into, echo).code(1).says(&["P0042"]);
    assert_eq!(states(&scene, &thread), ["over-budget"]);
    let messages = |key: &str| {
        let shown = scene.run(&["budget", &thread, "--json"]).code(0).objects();
        shown.into_iter().find(|it| it["key"] == key).unwrap()
    };
    assert_eq!(messages("messages"), json!({ "key": "messages", "used": 3, "limit": "3" }));
    let raise = [&["budget", &thread, "--raise", "messages=+2"][..], &OPERATOR].concat();
    let ran = scene.run(&raise).code(0);
    assert_eq!(ran.out, "messages: the limit is 5\n");
    assert_eq!(states(&scene, &thread), ["open"]);
    assert_eq!(messages("messages")["limit"], "5", "the log has it");
    scene.pipe(&into, echo).code(0);
    let lower = [&["budget", &thread, "--raise", "messages=1"][..], &OPERATOR].concat();
    scene.run(&lower).code(1).says(&["messages is 5 already"]);
    scene.run(&["budget", "sess-nobodys"]).code(1).says(&["there is no thread sess-nobodys"]);
    scene.run(&["budget", &thread, "--connect", "unix:pump.sock"]).code(2).says(&["--raise"]);
}

/// A server that is ended with the test.
struct Stopped(std::process::Child);

impl Drop for Stopped {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn who_may_not_steer_is_told_no_more_than_that() {
    let scene = Scene::new();
    let server = served(&scene);
    let console = ["--connect", &server.address];
    let theirs = [&["send", "--json"][..], &OPERATOR].concat();
    let sent = scene.pipe(&theirs, &echo("a")).code(0).objects();
    let thread = sent[0]["thread"].as_str().unwrap();
    for verb in ["cancel", "pause", "resume"] {
        for id in [thread, "sess-nobodys"] {
            let ran = scene.run(&[&[verb, id][..], &console].concat()).code(1);
            assert!(ran.out.starts_with(&format!("refused: thread {id}\n")), "{ran:?}");
        }
    }
    assert_eq!(states(&scene, thread), ["open"]);
    // Raising takes an operator, also in one's own thread.
    let own = opened(&scene, &server, &echo("a"));
    let raise = [&["budget", &own, "--raise", "tokens=+1"][..], &console].concat();
    scene.run(&raise).code(1).says(&["P0011"]);
    let object = [&["cancel", &own, "--json"][..], &console].concat();
    let cancelled = scene.run(&object).code(0).objects();
    assert!(cancelled[1]["payload"].as_str().unwrap().contains("by=\"console\""));
}

#[test]
fn without_a_server_there_is_advice() {
    let scene = Scene::new();
    let nobody = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let address = nobody.to_string();
    for verb in [&["cancel"][..], &["pause"], &["resume"], &["budget", "--raise", "tokens=+1"]] {
        let all = [verb, &["sess-a", "--connect", &address]].concat();
        let ran = scene.run(&all).code(2);
        ran.says(&[&format!("{address} can't be reached"), "start `pumphouse run` there"]);
        let all = [verb, &["sess-a", "--connect", "unix:no.sock"]].concat();
        scene.run(&all).code(2).says(&["unix:no.sock can't be reached"]);
    }
}
