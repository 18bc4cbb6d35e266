//! `use: other_organism`: the source of a feed that asks another pump over one of its doors.

use std::fs::{Permissions, set_permissions};
use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;

use crate::program::{Scene, Server};

/// The other organism: a pump that echoes for clients with the token.
fn fleet() -> (Scene, Server) {
    let scene = Scene::new();
    let tokens = scene.write("tokens", "octopus:fleet-token\n");
    set_permissions(&tokens, Permissions::from_mode(0o600)).unwrap();
    scene.write(
        "organism.yaml",
        "tokens: {file: tokens}\ndoors: [{tcp: \"127.0.0.1:0\"}]\nlisteners:\n  - use: echo\n",
    );
    let server = scene.serve(&[]);
    (scene, server)
}

/// An organism with an agent, which has a feed of the other one.
fn desk(address: &str, payload: &str) -> Scene {
    let scene = Scene::new();
    scene.write(
        "organism.yaml",
        format!(
            "models: {{m: {{use: scripted, file: replies.txt}}}}\nlisteners:\n  \
             - use: other_organism\n    name: fleet\n    \
             settings: {{connect: \"{address}\", token: fleet.token, seconds_max: 5}}\n  \
             - use: agent\n    name: octopus\n    model: m\n    context_feeds:\n      \
             - id: news\n        source: {{type: tool, name: fleet, params: {{payload: \
             '{payload}'}}}}\n"
        ),
    );
    scene.write("replies.txt", "%% reply\n<response>I read: $news</response>\n".repeat(3));
    let token = scene.write("fleet.token", "fleet-token\n");
    set_permissions(&token, Permissions::from_mode(0o600)).unwrap();
    scene
}

const ECHO: &str =
    "<echo xmlns=\"https://xml-pipeline.org/ns/echo/v1\"><text>All is well.</text></echo>";

const LOUD: &str =
    "<run xmlns=\"https://xml-pipeline.org/ns/loud/v1\"><text>All is lost.</text></run>";

/// What the agent answers.
#[track_caller]
fn asked(scene: &Scene) -> String {
    let server = scene.serve(&[]);
    let ask = "<octopus xmlns=\"https://xml-pipeline.org/ns/octopus/v1\">Well?</octopus>\n";
    scene.pipe(&["send", "--connect", &server.address], ask).code(0).out
}

#[test]
fn a_feed_shows_what_a_listener_of_another_organism_says() {
    let (_other, server) = fleet();
    let scene = desk(&server.address, ECHO);
    scene.run(&["check"]).code(0);
    let told = asked(&scene);
    assert!(told.contains("I read:") && told.contains("All is well."), "{told}");
    let feeds = scene.run(&["feeds", "octopus", "--values"]).code(0).out;
    assert!(feeds.contains("from fleet") && feeds.contains("All is well."), "{feeds}");
    let log = scene.run(&["threads", "--json"]).code(0).objects();
    for thread in log {
        let shown = scene.run(&["show", thread["thread"].as_str().unwrap(), "--json"]).code(0).out;
        assert!(!shown.contains("fleet-token"), "{shown}");
    }
}

#[test]
fn an_organism_that_does_not_answer_makes_the_feed_unavailable_and_says_why() {
    let (_other, server) = fleet();
    let unknown = desk(&server.address, "<nothing xmlns=\"urn:none\"/>");
    assert!(asked(&unknown).contains("I read: [news: unavailable]"));
    let feeds = unknown.run(&["feeds", "octopus"]).code(0).out;
    assert!(feeds.contains("unavailable"), "{feeds}");
    drop(server);
    let gone = desk("127.0.0.1:9", ECHO);
    assert!(asked(&gone).contains("I read: [news: unavailable]"));
    gone.run(&["feeds", "octopus"]).code(0).says(&["127.0.0.1:9: it can't be reached"]);
}

#[test]
fn wrong_settings_are_told_and_no_token_is() {
    let scene = desk("127.0.0.1:8765", ECHO);
    let told = |from: &str, to: &str, text: &str| {
        let manifest = std::fs::read_to_string(scene.path("organism.yaml")).unwrap();
        scene.write("wrong.yaml", manifest.replace(from, to));
        scene.run(&["check", "wrong.yaml"]).code(1).says(&[text]);
    };
    told("127.0.0.1:8765", "nowhere", "connect: \"nowhere\": an address is HOST:PORT");
    told("seconds_max: 5", "seconds_max: 0", "seconds_max: it is from 1 to 600, not 0");
    told("token: fleet.token", "token: none", "token: ");
    let short = scene.write("short.token", "abcdefg\n");
    set_permissions(&short, Permissions::from_mode(0o600)).unwrap();
    told("token: fleet.token", "token: short.token", "a secret of 7 bytes is too short");
    set_permissions(scene.path("fleet.token"), Permissions::from_mode(0o644)).unwrap();
    told("x", "x", "its mode is 0644");
}

/// The other agent's prompt needs a feed, so its answer comes of a later entry than the question.
#[test]
fn an_agent_of_another_organism_answers_after_more_than_one_step() {
    let other = Scene::new();
    let tokens = other.write("tokens", "octopus:fleet-token\n");
    set_permissions(&tokens, Permissions::from_mode(0o600)).unwrap();
    other.write(
        "organism.yaml",
        "tokens: {file: tokens}\nmodels: {m: {use: scripted, file: replies.txt}}\n\
         doors: [{tcp: \"127.0.0.1:0\"}]\n\
         listeners:\n  - use: calculate\n  - use: agent\n    name: squid\n    model: m\n    \
         peers: [calculate]\n    \
         context_feeds: [{id: now, source: {type: internal, action: system_clock}}]\n",
    );
    let sum = "{\"name\": \"calculate\", \"parameters\": {\"expression\": \"6*7\"}}";
    let replies = format!(
        "%% reply\n<response final=\"false\">A moment.</response>\n\
         <action id=\"sum\">{sum}</action>\n%% reply\n<response>It is $sum.</response>\n"
    );
    other.write("replies.txt", replies);
    let server = other.serve(&[]);
    let ask = "<squid xmlns=\"https://xml-pipeline.org/ns/squid/v1\">Well?</squid>";
    let scene = desk(&server.address, ask);
    let told = asked(&scene);
    assert!(told.contains("I read: It is 42."), "{told}");
}

#[test]
fn an_organism_that_sends_without_end_is_given_up() {
    use std::io::{Read as _, Write as _};
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let flood = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let _ = stream.read(&mut [0; 4_096]);
        let piece = [b'x'; 65_536];
        let mut sent = 0;
        let _ = stream.write_all(b"<message>");
        while sent < 1 << 30 && stream.write_all(&piece).is_ok() {
            sent += piece.len();
        }
        sent
    });
    let scene = desk(&address, ECHO);
    assert!(asked(&scene).contains("I read: [news: unavailable]"));
    let sent = flood.join().unwrap();
    assert!(sent < 64 << 20, "{sent} bytes were taken");
}

#[test]
fn an_error_of_another_organism_is_cut_at_a_limit() {
    let other = Scene::new();
    let tokens = other.write("tokens", "octopus:fleet-token\n");
    set_permissions(&tokens, Permissions::from_mode(0o600)).unwrap();
    // The output of the command is an error of the other organism.
    let script = "head -c 600000 /dev/zero | tr '\\0' x >&2; exit 1";
    other.write("fail.sh", script);
    other.write(
        "organism.yaml",
        "tokens: {file: tokens}\ndoors: [{tcp: \"127.0.0.1:0\"}]\nlisteners:\n  \
         - {use: command, name: loud, door: [octopus], settings: {run: [sh, ../fail.sh], \
         read: [fail.sh], limits: {error_bytes_max: 500000}}}\n",
    );
    let server = other.serve(&[]);
    let scene = desk(&server.address, LOUD);
    asked(&scene);
    let threads = scene.run(&["threads", "--json"]).code(0).objects();
    let sizes = threads.iter().flat_map(|it| {
        let thread = it["thread"].as_str().unwrap();
        scene.run(&["show", thread, "--json"]).code(0).objects()
    });
    let largest = sizes.filter_map(|it| Some(it["payload"].as_str()?.len())).max().unwrap();
    assert!((200_000..300_000).contains(&largest), "{largest}");
}

/// What becomes of a question over a door: what was never sent, and what may have happened.
#[test]
fn a_question_that_may_have_been_answered_is_unknown() {
    let ask = |scene: &Scene, server: &Server, payload: &str| {
        let payload = payload.replace('<', "&lt;");
        let ns = "https://xml-pipeline.org/ns/fleet/v1";
        let asked =
            format!("<ask-organism xmlns=\"{ns}\"><payload>{payload}</payload></ask-organism>\n");
        scene.pipe(&["send", "--connect", &server.address], &asked)
    };
    let gone = desk("127.0.0.1:9", ECHO);
    let server = gone.serve(&[]);
    ask(&gone, &server, ECHO).says(&["<not-told", "reason=\"unreachable\""]);
    let other = Scene::new();
    let tokens = other.write("tokens", "octopus:fleet-token\n");
    set_permissions(&tokens, Permissions::from_mode(0o600)).unwrap();
    other.write(
        "organism.yaml",
        "tokens: {file: tokens}\ndoors: [{tcp: \"127.0.0.1:0\"}]\nlisteners:\n  \
         - use: command\n    name: loud\n    door: [octopus]\n    \
         settings: {run: [sleep, \"41250\"], input: text, limits: {seconds_max: 1}}\n  \
         - use: command\n    name: slow\n    door: true\n    \
         settings: {run: [sleep, \"41251\"], input: text}\n",
    );
    let fleet = other.serve(&[]);
    let scene = desk(&fleet.address, ECHO);
    let server = scene.serve(&[]);
    ask(&scene, &server, "<nothing xmlns=\"urn:none\"/>").says(&["reason=\"refused\"", "P0011"]);
    ask(&scene, &server, LOUD).says(&["reason=\"unknown\"", "sleep was ended after 1 s"]);
    let slow = LOUD.replace("loud", "slow");
    let text = "no answer in 5 s, the limit seconds_max; whether anything was done is unknown";
    ask(&scene, &server, &slow).says(&["reason=\"unknown\"", text]);
}

#[test]
fn messages_of_other_sessions_are_passed_over() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let core = "https://xml-pipeline.org/ns/core/v1";
        let envelope = "https://xml-pipeline.org/ns/envelope/v1";
        let said = |thread: &str, payload: &str| {
            format!(
                "<message xmlns='{envelope}'><meta><from>echo</from><to>octopus</to>{thread}\
                 </meta>{payload}</message>"
            )
        };
        let let_in = format!("<authenticated xmlns='{core}' identity='octopus'/>");
        let accepted = format!("<accepted xmlns='{core}' thread='sess-a' seq='1'/>");
        let other = said("<thread>sess-b</thread>", "<a xmlns='urn:x'>All is lost.</a>");
        let answer = said("<thread>sess-a</thread>", "<a xmlns='urn:x'>All is well.</a>");
        let all = [said("", &let_in), other.repeat(2_000), said("", &accepted), other, answer];
        stream.write_all(all.concat().as_bytes()).unwrap();
        let mut rest = Vec::new();
        stream.read_to_end(&mut rest).unwrap();
    });
    let told = asked(&desk(&address, ECHO));
    assert!(told.contains("All is well.") && !told.contains("All is lost."), "{told}");
}

/// The organism there sends its token back as the names of a sender and of a payload.
#[test]
fn a_token_that_comes_back_is_hidden_wherever_it_stands() {
    let (listener, token) = (TcpListener::bind("127.0.0.1:0").unwrap(), "fleet-token");
    let address = listener.local_addr().unwrap().to_string();
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let core = "https://xml-pipeline.org/ns/core/v1";
        let envelope = "https://xml-pipeline.org/ns/envelope/v1";
        let said = |from: &str, thread: &str, payload: &str| {
            format!(
                "<message xmlns='{envelope}'><meta><from>{from}</from><to>octopus</to>{thread}\
                 </meta>{payload}</message>"
            )
        };
        let accepted = format!("<authenticated xmlns='{core}' identity='octopus'/>");
        stream.write_all(said("core", "", &accepted).as_bytes()).unwrap();
        let accepted = format!("<accepted xmlns='{core}' thread='sess-a' seq='1'/>");
        stream.write_all(said("core", "", &accepted).as_bytes()).unwrap();
        let answer = format!("<{token} xmlns='urn:x'>All is {token}.</{token}>");
        let thread = "<thread>sess-a</thread>";
        stream.write_all(said(token, thread, &answer).as_bytes()).unwrap();
        let mut rest = Vec::new();
        stream.read_to_end(&mut rest).unwrap();
    });
    let scene = desk(&address, ECHO);
    let told = asked(&scene);
    assert!(told.contains("All is …."), "{told}");
    for thread in scene.run(&["threads", "--json"]).code(0).objects() {
        let shown = scene.run(&["show", thread["thread"].as_str().unwrap(), "--json"]).code(0).out;
        assert!(!shown.contains(token), "{shown}");
    }
}
