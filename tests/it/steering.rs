//! The verbs by which operators steer running threads. Each is run against a server, and the log's
//! entries are checked.

use pumphouse::ThreadId;
use pumphouse::client::Client;
use serde_json::{Value, json};

use crate::program::{Scene, Server, log_in};

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
fn a_retry_says_where_no_listener_is_stopped() {
    let scene = Scene::new();
    let server = served(&scene);
    let thread = opened(&scene, &server, &echo("first"));
    let retry = [&["retry", &thread, "--reason", "mended"][..], &OPERATOR].concat();
    let ran = scene.run(&retry).code(1);
    assert_eq!(ran.out, format!("no listener is stopped in {thread}\n"));
    let asked = last(&scene, &thread, "retry-listeners");
    assert!(asked["payload"].as_str().unwrap().contains("reason=\"mended\""), "{asked}");
    scene.run(&["verify"]).code(0);
}

#[test]
fn an_operator_raises_a_budget() {
    let scene = Scene::new();
    scene.write("organism.yaml", "limits: {tree_messages_max: 3}\ndoors: [{unix: pump.sock}]\n");
    let mut server = scene.command(&["run", "--json"]);
    let server = server.stdout(std::process::Stdio::null()).spawn().unwrap();
    let _stopped = Stopped(server);
    crate::until(|| scene.path("pump.sock").exists());
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
    assert_eq!(messages("messages"), json!({ "key": "messages", "used": 3, "limit": 3 }));
    let raise = [&["budget", &thread, "--raise", "messages=+2"][..], &OPERATOR].concat();
    let ran = scene.run(&raise).code(0);
    assert_eq!(ran.out, "messages: the limit is 5\n");
    assert_eq!(states(&scene, &thread), ["open"]);
    assert_eq!(messages("messages")["limit"], 5, "the log has it");
    assert_eq!(messages("tokens")["limit"], Value::Null, "unlimited");
    scene.pipe(&into, echo).code(0);
    let lower = [&["budget", &thread, "--raise", "messages=1"][..], &OPERATOR].concat();
    scene.run(&lower).code(1).says(&[
        "messages can't be lowered to 1: the limit is 5",
        "(at /raise-budget/@to)",
        "Say more than 5 in to, or how much more in by.",
    ]);
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
    for verb in ["cancel", "pause", "resume", "retry"] {
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
    let budget = &["budget", "--raise", "tokens=+1"][..];
    for verb in [&["cancel"][..], &["pause"], &["resume"], &["retry"], budget] {
        let all = [verb, &["sess-a", "--connect", &address]].concat();
        let ran = scene.run(&all).code(2);
        ran.says(&[&format!("{address} can't be reached"), "start `pumphouse run` there"]);
        let all = [verb, &["sess-a", "--connect", "unix:no.sock"]].concat();
        scene.run(&all).code(2).says(&["unix:no.sock can't be reached"]);
    }
}

#[test]
fn a_thread_is_forked_and_every_reader_sees_one_thread() {
    let scene = Scene::new();
    let server = served(&scene);
    let console = ["--connect", &server.address];
    let thread = opened(&scene, &server, &echo("one"));
    let into = |thread: &str, text: &str| {
        let send = [&["send", "--json", "--thread", thread][..], &console].concat();
        scene.pipe(&send, &echo(text)).code(0).objects()
    };
    into(&thread, "two");
    let before = scene.run(&["show", &thread]).code(0).out;
    let at = format!("{thread}/2");
    let fork = [&["fork", &at, "--reason", "the other way"][..], &console].concat();
    let fork = scene.run(&fork).code(0).out.trim().to_owned();
    into(&fork, "three");
    assert_eq!(scene.run(&["show", &thread]).code(0).out, before, "the original is as it was");
    let shown = scene.run(&["show", &fork, "--json"]).code(0).objects();
    let entries: Vec<&str> = shown.iter().map(|it| it["entry"].as_str().unwrap()).collect();
    let own = [3, 4, 5, 6].map(|it| format!("{fork}/{it}"));
    assert_eq!(entries[..2], [&format!("{thread}/1"), &at]);
    assert_eq!(entries[2..], own);
    scene.run(&["show", &fork]).code(0).says(&[&format!("thread {fork}  6 entries")]);
    scene.run(&["show", &fork]).code(0).says(&[&format!("forked after {at}")]);
    let one = scene.run(&["show", &format!("{fork}/1"), "--json"]).code(0).objects();
    assert_eq!(one[0], shown[0], "what is shared is there under both names");
    scene.run(&["tree"]).code(0).says(&[&format!("forked after {at}")]);
    scene.run(&["why", &own[1]]).code(0).says(&[
        &format!("1. From outside, console forked {fork} after {at} with this, for thread."),
        "2. Handling it, thread answered console.",
        "reason=\"the other way\"",
    ]);
    let shared = scene.run(&["why", &format!("{fork}/2")]).code(0);
    shared.says(&[&format!("From outside, console opened {thread}"), "echo answered console"]);
    let export = scene.run(&["export", &fork]).code(0);
    export.says(&[&format!("<x:thread id=\"{thread}\"/>"), &format!("fork=\"{at}\"")]);
    scene.run(&["verify"]).code(0).says(&["sound: ", " in 2 threads"]);
    // Any message may begin a fork, and one under an id begins one only once.
    let under = |text: &str, at: &str| {
        let message = format!(
            "<message xmlns='https://xml-pipeline.org/ns/envelope/v1'><meta><thread>{at}</thread>\
             <id>mine</id></meta>{}</message>",
            echo(text)
        );
        scene.pipe(&[&["send", "--json"][..], &console].concat(), &message)
    };
    let first = under("four", &at).code(0).objects();
    let other = first[0]["thread"].as_str().unwrap();
    assert_eq!(first[0]["seq"], 3);
    assert_eq!(under("four", &at).code(0).objects()[0]["entry"], first[0]["entry"]);
    for elsewhere in [other, &format!("{thread}/1")] {
        under("four", elsewhere).code(1).says(&["P0013"]);
    }
    for (nowhere, says) in [
        (format!("{thread}/9"), format!("its thread ends with {thread}/4")),
        ("sess-nobodys/1".to_owned(), "refused: thread sess-nobodys".to_owned()),
    ] {
        let fork = [&["fork", &nowhere][..], &console].concat();
        scene.run(&fork).code(1).says(&[&says]);
    }
    scene.run(&["fork", &thread]).code(2).says(&["an entry is written THREAD/SEQ"]);
    let theirs = [&["fork", &at][..], &["--connect", "unix:no.sock"]].concat();
    scene.run(&theirs).code(2).says(&["can't be reached"]);
}

#[tokio::test]
async fn a_follower_over_a_socket_sees_a_fork_as_one_thread() {
    let scene = Scene::new();
    let server = served(&scene);
    let thread = opened(&scene, &server, &echo("one"));
    let at = format!("{thread}/1");
    let fork = scene.run(&["fork", &at, "--connect", &server.address]).code(0).out;
    let fork = ThreadId::new(fork.trim());
    let mut client = Client::connect(&server.address).await.unwrap();
    let mut follow = client.follow(&fork, 0).await.unwrap();
    let mut entries = Vec::new();
    while !follow.has_caught_up() {
        entries.push(follow.next().await.unwrap().unwrap().entry.unwrap().to_string());
    }
    assert_eq!(entries, [at, format!("{fork}/2"), format!("{fork}/3")]);
}

#[test]
fn damage_stays_where_it_is() {
    let scene = Scene::new();
    let server = served(&scene);
    let thread = opened(&scene, &server, &echo("one"));
    let send = ["send", "--thread", &thread, "--connect", &server.address];
    scene.pipe(&send, &echo("two")).code(0);
    let sound = opened(&scene, &server, &echo("three"));
    // A start would see it, so it happens while the pump runs.
    let log = rusqlite::Connection::open(log_in(&scene.path("data"))).unwrap();
    log.execute_batch(
        "DROP TRIGGER entries_no_delete; DROP TRIGGER entries_no_update;
         UPDATE entries SET body = CAST('<a/>' AS BLOB) WHERE position = 1;
         DELETE FROM entries WHERE position = 3;",
    )
    .unwrap();
    drop(log);
    let fork = |of: &str| {
        let at = format!("{of}/2");
        scene.run(&["fork", &at, "--connect", &server.address])
    };
    // Nothing is shared that isn't what was written.
    let changed = format!("the log is damaged: {thread}/1 doesn't fit its digest");
    let refused = fork(&thread).code(1).says(&["refused P0027", &changed]);
    let told = format!("{}{}", refused.out, refused.err);
    assert!(!told.contains("pumphouse.db"), "a client learns no paths: {told}");
    let forked = fork(&sound).code(0).out.trim().to_owned();
    assert!(scene.run(&["show", &forked]).code(0).out.contains("three"));
    let report = scene.run(&["verify", "--json"]).code(1).objects();
    let report = report[0].to_string();
    assert!(report.contains(&format!("{thread}/1")), "{report}");
    assert!(!report.contains(&sound) && !report.contains(&forked), "{report}");
}
