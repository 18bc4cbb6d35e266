//! Hostile and broken MCP servers: they harm their own calls and nothing else.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::called;
use crate::model::fake::{self, answer};
use crate::program::{Scene, Server};
use crate::tools::{asked, in_order, organism};
use crate::until;

const SERVER: &str = include_str!("hostile.py");
/// Memory that a pump may take in these tests, in KiB: more than it does, and far less than 1 GB.
const MEMORY_KIB_MAX: u64 = 256 << 10;

fn settings(how: &str, more: &str) -> String {
    format!("settings: {{command: [python3, hostile.py, {how}]{more}}}")
}

/// A folder with a server that behaves so; none where there is no Python.
fn scene(how: &str, more: &str) -> Option<Scene> {
    let scene = super::scene("")?;
    scene.write("hostile.py", SERVER);
    let settings = settings(how, more);
    scene.write("organism.yaml", format!("listeners: [{{use: mcp, name: words, {settings}}}]\n"));
    Some(scene)
}

/// The most memory that a process had, in KiB.
fn memory_kib(server: &Server) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", server.id())).unwrap();
    let line = status.lines().find_map(|it| it.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

#[test]
fn a_line_of_a_gigabyte_ends_its_connection_and_takes_no_memory() {
    let Some(scene) = scene("line", "") else { return };
    let server = scene.serve(&[]);
    let ended = called(&scene, &server, "good", "");
    ended.says(&["reason=\"unknown\"", "a line of more than 4194304 bytes"]);
    assert!(memory_kib(&server) < MEMORY_KIB_MAX, "{} KiB", memory_kib(&server));
    // The next call begins it anew.
    called(&scene, &server, "good", "").says(&["a line of more than 4194304 bytes"]);
}

#[test]
fn endless_pages_of_tools_are_refused() {
    let Some(scene) = scene("pages", "") else { return };
    let told = scene.run(&["check", "--live"]).code(1);
    told.says(&["its list of tools has more than 32 pages"]);
}

#[expect(clippy::disallowed_methods, reason = "a time that another process takes")]
#[test]
fn a_schema_bomb_leaves_its_tool_out_and_no_other() {
    let Some(scene) = scene("schemas", "") else { return };
    let begun = Instant::now();
    let told = scene.run(&["check", "--live"]).code(0);
    assert!(begun.elapsed() < Duration::from_secs(30), "{:?}", begun.elapsed());
    let told = told.says(&["ns/mcp/words/v1}good", "Left out: ", "bomb ("]);
    assert!(told.out.len() < 64 << 10, "{} bytes", told.out.len());
    let server = scene.serve(&[]);
    called(&scene, &server, "good", "").says(&["<text>good is done</text>"]);
    let many = "a".repeat(5_000) + "!";
    let begun = Instant::now();
    called(&scene, &server, "slow", &format!("<x>{many}</x>"));
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    assert!(memory_kib(&server) < MEMORY_KIB_MAX, "{} KiB", memory_kib(&server));
}

#[test]
fn json_that_is_too_deep_fails_its_request() {
    let Some(scene) = scene("deep", "") else { return };
    let told = scene.run(&["check", "--live"]).code(1);
    told.says(&["the server's JSON can't be read: ", "more than 384 objects and arrays"]);
}

#[test]
fn what_a_terminal_would_obey_is_not_shown() {
    let Some(scene) = scene("ansi", "") else { return };
    let live = scene.run(&["check", "--live"]).code(0);
    let page = scene.run(&["describe", "good"]).code(0);
    let schema = scene.run(&["describe", "good", "--json-schema"]).code(0);
    let server = scene.serve(&[]);
    let answer = called(&scene, &server, "good", "");
    let bad = |it: char| it.is_control() && it != '\n' || it == '\u{202e}';
    for ran in [&live, &page, &schema, &answer] {
        assert!(!ran.out.contains(bad) && !ran.err.contains(bad), "{ran:?}");
    }
    page.says(&["Ignore"]);
}

#[test]
fn answers_to_other_ids_and_second_answers_are_nobodys() {
    let Some(scene) = scene("ids", "") else { return };
    let server = scene.serve(&[]);
    for _ in 0..3 {
        called(&scene, &server, "good", "").says(&["<text>good is done</text>"]);
    }
    assert_eq!(starts(&scene), 2);
}

#[test]
fn a_server_that_never_answers_is_left_when_its_time_is_over() {
    let Some(scene) = scene("mute", ", limits: {start_seconds_max: 1}") else { return };
    let told = scene.run(&["check", "--live"]).code(1);
    told.says(&["can't be asked for its tools: it didn't answer within 1 s"]);
}

/// A call without an answer costs no other call its own, and the server hears of it.
#[test]
fn a_call_that_is_never_answered_ends_with_its_time_and_is_cancelled() {
    let Some(scene) = scene("plain", ", limits: {seconds_max: 1}") else { return };
    let server = scene.serve(&[]);
    std::thread::scope(|scope| {
        let silent = scope.spawn(|| called(&scene, &server, "silent", ""));
        called(&scene, &server, "good", "").says(&["<text>good is done</text>"]);
        silent.join().unwrap().says(&["reason=\"unknown\"", "the limit seconds_max is 1"]);
    });
    until(|| scene.path("cancelled").exists());
    called(&scene, &server, "good", "").says(&["<text>good is done</text>"]);
    assert_eq!(starts(&scene), 2, "it gives signs of life, so it isn't begun anew");
}

/// How often the server was begun: once to be asked for its tools, and then to be called.
fn starts(scene: &Scene) -> usize {
    fs::read_to_string(scene.path("starts")).unwrap().lines().count()
}

#[test]
fn a_server_that_hangs_is_ended_and_begun_anew_for_the_next_call() {
    let Some(scene) = scene("plain", ", limits: {seconds_max: 1}") else { return };
    let server = scene.serve(&[]);
    for starts_so_far in [2, 3] {
        let hung = called(&scene, &server, "hangs", "");
        hung.says(&["reason=\"unknown\"", "the limit seconds_max is 1"]);
        assert_eq!(starts(&scene), starts_so_far);
        called(&scene, &server, "good", "").says(&["<text>good is done</text>"]);
        let id = fs::read_to_string(scene.path("hanging")).unwrap();
        until(|| !Path::new("/proc").join(&id).exists());
    }
}

/// A server that says that its tools changed is asked again in the same process.
#[test]
fn a_tool_that_changes_in_a_running_server_is_refused() {
    let Some(scene) = scene("plain", "") else { return };
    let server = scene.serve(&[]);
    called(&scene, &server, "good", "").says(&["<text>good is done</text>"]);
    called(&scene, &server, "turns", "").says(&["<text>turns is done</text>"]);
    called(&scene, &server, "good", "").says(&["<tool-failed", "reason=\"changed\""]);
    called(&scene, &server, "turns", "").says(&["<text>turns is done</text>"]);
    fs::remove_file(scene.path("turned")).unwrap();
    called(&scene, &server, "good", "").says(&["<text>good is done</text>"]);
    assert_eq!(starts(&scene), 2);
}

#[test]
fn a_call_of_a_thread_that_is_cancelled_is_cancelled() {
    let Some(scene) = scene("plain", "") else { return };
    let server = scene.serve(&[]);
    std::thread::scope(|scope| {
        scope.spawn(|| called(&scene, &server, "silent", ""));
        let session = || {
            let threads = scene.run(&["threads", "--json"]).objects().into_iter();
            let mut ids = threads.map(|it| it["thread"].as_str().unwrap().to_owned());
            ids.find(|it| it.starts_with("sess-"))
        };
        until(|| session().is_some());
        let thread = session().unwrap();
        until(|| scene.path("called").exists());
        scene.run(&["cancel", &thread, "--connect", &server.address]).code(0);
    });
    until(|| scene.path("cancelled").exists());
    called(&scene, &server, "good", "").says(&["<text>good is done</text>"]);
}

/// All calls that a dead server had are answered, and the next one begins it again.
#[test]
fn a_server_that_dies_takes_its_own_calls_with_it() {
    let Some(scene) = scene("plain", "") else { return };
    let server = scene.serve(&[]);
    std::thread::scope(|scope| {
        let calls = ["silent", "dies"].map(|it| scope.spawn(|| called(&scene, &server, it, "")));
        for it in calls {
            it.join().unwrap().says(&["<tool-failed", "reason=\"unknown\""]);
        }
    });
    called(&scene, &server, "good", "").says(&["<text>good is done</text>"]);
}

#[test]
fn a_server_that_cannot_begin_is_begun_less_and_less_often() {
    let Some(scene) = scene("plain", "") else { return };
    scene.run(&["check", "--live"]).code(0);
    let server_of = |how: &str| scene.write("hostile.py", SERVER.replace("sys.argv[1]", how));
    server_of("'dead'");
    let server = scene.serve(&[]);
    called(&scene, &server, "good", "").says(&["reason=\"unreachable\"", "the server has ended"]);
    called(&scene, &server, "good", "").says(&["reason=\"unreachable\"", "the server has ended"]);
    called(&scene, &server, "good", "").says(&["reason=\"unreachable\"", "times in a row"]);
    server_of("'plain'");
    until(|| called(&scene, &server, "good", "").out.contains("good is done"));
}

/// What a tool says while it is at work reaches those who follow, and no log.
#[test]
fn progress_is_live() {
    let Some(folder) = scene("plain", "") else { return };
    drop(folder);
    let replies = "%% reply\n<action id=\"a\">{\"name\": \"words.works\"}</action>\n\
                   %% reply\n<response>It is: ${a}</response>\n";
    let scene = organism(&[("words", &format!("use: mcp, {}", settings("plain", "")))], replies);
    scene.write("hostile.py", SERVER);
    scene.run(&["check", "--live"]).code(0);
    let chat = scene.pipe(&["chat", "--json"], "Do it.\n");
    let events: Vec<Value> = chat.objects();
    let of = |kind: &str| events.iter().filter(|it| it["type"] == kind).collect::<Vec<_>>();
    let progress = of("tool_call_progress");
    assert!(!progress.is_empty(), "{events:#?}");
    let last = progress[progress.len() - 1];
    assert_eq!((&last["call_id"], &last["total"]), (&"a".into(), &4.0.into()), "{last}");
    assert!(last["text"].as_str().unwrap().starts_with("part "), "{last}");
    let threads = scene.run(&["threads", "--json"]).code(0).objects();
    let thread = threads[0]["thread"].as_str().unwrap();
    let log = scene.run(&["show", thread, "--json"]).code(0);
    assert!(!log.out.contains("part 3"), "{}", log.out);
}

/// Pictures, sounds and files are entries of their own, each once in a thread; the result names
/// them.
#[test]
fn images_are_attachments_that_the_result_names() {
    let Some(folder) = scene("plain", "") else { return };
    drop(folder);
    let replies = "%% reply\n<action id=\"a\">{\"name\": \"words.good\"}</action>\n\
                   %% reply\n<action id=\"b\">{\"name\": \"words.good\"}</action>\n\
                   %% reply\n<response>It is: ${b}</response>\n";
    let more = ", limits: {attachment_bytes_max: 100}";
    let tool = format!("use: mcp, {}", settings("pictures", more));
    let scene = organism(&[("words", &tool)], replies);
    scene.write("hostile.py", SERVER);
    scene.run(&["check", "--live"]).code(0);
    let log = asked(&scene, "Show it.");
    in_order(&log, &["R0lGODlhAQABAAAAACw=", "tool-result", "tool-result"]);
    for (base64, count) in [("R0lGODlhAQABAAAAACw=", 1), ("AAECAw==", 1), ("AAAAAAAA", 0)] {
        let found = log.matches(&format!(">{base64}<")).count();
        assert_eq!(found, count, "{base64} in {log}");
    }
    let left_out = "[image/png of 3000 bytes left out; the limit attachment_bytes_max is 100]";
    in_order(&log, &["[image/gif of 14 bytes, attached]", "audio/wav", left_out]);
    is_named_by_both(&log);
}

/// What the provider was asked after the tool had answered.
#[tokio::test(flavor = "multi_thread")]
async fn an_image_of_a_tool_is_in_the_next_prompt_as_its_provider_wants_it() {
    let Some(folder) = scene("plain", "") else { return };
    drop(folder);
    let call = "<action id=\"a\">{\"name\": \"words.good\"}</action>";
    let replies = [call, "<response>A dot.</response>"].map(answer);
    let provider = fake::Server::start(replies.to_vec()).await;
    let tool = format!("use: mcp, {}", settings("pictures", ""));
    let scene = organism(&[("words", &tool)], "");
    scene.write("hostile.py", SERVER);
    let manifest = fs::read_to_string(scene.path("organism.yaml")).unwrap();
    let model =
        format!("use: openai, url: \"{}\", model: large, attachments: [image/*]", provider.url());
    let manifest = manifest.replace("use: scripted, file: replies.txt", &model);
    scene.write("organism.yaml", manifest);
    scene.run(&["check", "--live"]).code(0);
    let log = asked(&scene, "Show it.");
    in_order(&log, &["tool-result", "<attachments>image/*</attachments>", "A dot."]);
    let messages = provider.asked().remove(1).body["messages"].take();
    let said = messages.as_array().unwrap().last().unwrap();
    assert_eq!(said["role"], "user");
    let [text, image] = &said["content"].as_array().unwrap()[..] else { panic!("{said}") };
    let text = text["text"].as_str().unwrap();
    in_order(text, &["[image/gif, 14 bytes, entry sess-", "[image/gif of 14 bytes, attached]"]);
    assert_eq!(image["type"], "image_url");
    assert_eq!(image["image_url"]["url"], "data:image/gif;base64,R0lGODlhAQABAAAAACw=");
}

/// A thread of the tree that has an attachment already keeps it for the others.
#[test]
fn an_attachment_is_kept_once_in_a_tree() {
    let Some(folder) = scene("plain", "") else { return };
    drop(folder);
    let replies = "%% reply\n<action id=\"a\">{\"name\": \"words.good\"}</action>\n\
                   %% reply\n<action id=\"b\">{\"name\": \"helper\", \
                   \"parameters\": {\"text\": \"Look, too.\"}}</action>\n\
                   %% reply\n<action id=\"c\">{\"name\": \"words.good\"}</action>\n\
                   %% reply\n<response>I see ${c}</response>\n\
                   %% reply\n<response>It is: ${a}</response>\n";
    let tool = format!("use: mcp, {}", settings("pictures", ""));
    let helper = "use: agent, model: m, peers: [words]";
    let scene = organism(&[("words", &tool), ("helper", helper)], replies);
    scene.write("hostile.py", SERVER);
    scene.run(&["check", "--live"]).code(0);
    let log = asked(&scene, "Show it.");
    assert_eq!(log.matches(">R0lGODlhAQABAAAAACw=<").count(), 1, "{log}");
    is_named_by_both(&log);
}

#[track_caller]
fn is_named_by_both(log: &str) {
    let entry = log.lines().find(|it| it.contains("R0lGODlhAQABAAAAACw=")).unwrap();
    let entry: Value = serde_json::from_str(entry).unwrap();
    let id = entry["entry"].as_str().unwrap();
    assert!(log.matches(id).count() >= 4, "both results name {id} twice: {log}");
}
