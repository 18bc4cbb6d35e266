//! Verbs for operators and auditors: filters, following, trees, exports and completions.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use bytes::Bytes;
use pumphouse::engine::{Port as _, Tokio};
use pumphouse::log::{Batch, Draft, Durability, Flags, Log, Mark, NewThread, SqliteLog};
use pumphouse::prelude::*;
use pumphouse::xml::{self, Profile};
use serde_json::{Value, json};

use crate::program::{Ran, Scene, log_in};

const AT_US: u64 = 1_795_300_536_123_456;

/// A log with a tree of four threads, and one thread beside it.
async fn written(scene: &Scene) {
    let data = scene.write("data/here", "");
    let log = SqliteLog::open(log_in(data.parent().unwrap()), Durability::Normal).unwrap();
    let thread = |id: &str, parent: Option<&str>| NewThread {
        id: ThreadId::new(id),
        parent: parent.map(ThreadId::new),
        fork: None,
    };
    let threads = vec![
        thread("sess-a", None),
        thread("sess-a.left", Some("sess-a")),
        thread("sess-b", None),
        thread("sess-a.right", Some("sess-a")),
        thread("sess-a.left.deep", Some("sess-a.left")),
    ];
    let outside = |it: Draft| Draft { flags: Flags::FROM_IDENTITY, ..it };
    let entries = vec![
        outside(draft("sess-a/1", ["ada", "plan"], "go", "Begin & end.")),
        draft("sess-a.left/1", ["plan", "work"], "job", "dig\n   deep"),
        draft("sess-a.right/1", ["plan", "work"], "job", "\u{9b}2J\u{202e}"),
        Draft { flags: Flags::PAUSES, ..draft("sess-a.right/2", ["core", "work"], "stop", "") },
        Draft { flags: Flags::CLOSES, ..draft("sess-a.left/2", ["work", "plan"], "did", "all") },
        outside(draft("sess-b/1", ["bob", "work"], "job", "alone")),
        Draft { receivers: 1, ..draft("sess-b/2", ["work", "work"], "job", "on") },
    ];
    let marks = vec![Mark::Started {
        as_of: None,
        entry: "sess-b/2".parse().unwrap(),
        listener: "work".into(),
        attempt: 1,
    }];
    log.append(Batch { threads, entries, marks }).await.unwrap();
    log.close().await.unwrap();
}

fn draft(id: &str, [from, to]: [&str; 2], name: &str, text: &str) -> Draft {
    let id: EntryId = id.parse().unwrap();
    let mut escaped = String::new();
    xml::escape_text(text, &mut escaped);
    let body = Bytes::from(format!("<{name} xmlns=\"urn:{name}\">{escaped}</{name}>"));
    let at_us = AT_US + id.seq * 60_000_000;
    let draft = Draft::new(id, at_us, from.into(), Name::new(format!("urn:{name}"), name), body);
    Draft { to: Some(to.into()), ..draft }
}

/// What a verb prints with `--json`, one value of each line.
#[track_caller]
fn listed(scene: &Scene, arguments: &[&str], value: &str) -> Vec<String> {
    let ran = scene.run(&[arguments, &["--json"]].concat()).code(0);
    ran.objects().iter().map(|it| it[value].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn filters_hold_for_threads_show_and_tail() {
    let scene = Scene::new();
    written(&scene).await;
    let check = |filters: &[&str], threads: &[&str], entries: &[&str]| {
        let all = |verb: &[&'static str]| [verb, filters].concat();
        assert_eq!(listed(&scene, &all(&["threads"]), "thread"), threads, "{filters:?}");
        assert_eq!(listed(&scene, &all(&["tail"]), "entry"), entries, "{filters:?}");
        for thread in ["sess-a", "sess-a.left", "sess-a.right", "sess-b"] {
            let here = entries.iter().filter(|it| it.rsplit_once('/').unwrap().0 == thread);
            let here: Vec<&str> = here.copied().collect();
            let shown = [&["show", thread][..], filters].concat();
            assert_eq!(listed(&scene, &shown, "entry"), here, "{thread} {filters:?}");
        }
    };
    let (left, right, b) = ("sess-a.left", "sess-a.right", "sess-b");
    let [left_1, left_2] = ["sess-a.left/1", "sess-a.left/2"];
    let [right_1, right_2] = ["sess-a.right/1", "sess-a.right/2"];
    let [b_1, b_2] = ["sess-b/1", "sess-b/2"];
    let work = [left_1, right_1, right_2, left_2, b_1, b_2];
    check(&["--listener", "work"], &[left, b, right], &work);
    check(&["--listener", "work", "--payload", "did"], &[left], &[left_2]);
    check(&["--payload", "{urn:stop}stop"], &[right], &[right_2]);
    check(&["--identity", "bob", "--identity", "ada"], &["sess-a", b], &["sess-a/1", b_1]);
    check(&["--text", "dig\n   deep"], &[left], &[left_1]);
    check(&["--text", "Begin & end"], &["sess-a"], &["sess-a/1"]);
    check(&["--state", "paused"], &[right], &[right_2]);
    check(&["--state", "closed", "--state", "paused"], &[left, right], &[right_2, left_2]);
    let seconds = ["--since", "2026-11-21T22:37", "--until", "2026-11-21T22:38:00Z"];
    check(&seconds, &[left, b, right], &[right_2, left_2, b_2]);
    check(&["--text", "nowhere"], &[], &[]);
    scene.run(&["threads"]).code(0).says(&["  closed  child of sess-a  plan → work  <job>dig"]);
    scene.run(&["threads", "--text", "nowhere"]).code(0).says(&["no thread is wanted"]);
    scene.run(&["tail", "--text", "nowhere"]).code(0).says(&["no message is wanted"]);
    // The last two of those that are wanted, from the end or, for states, from the beginning.
    let last = ["tail", "-n", "2", "--payload", "job"];
    assert_eq!(listed(&scene, &last, "entry"), [b_1, b_2]);
    let last = ["tail", "-n", "2", "--state", "open", "--listener", "work"];
    assert_eq!(listed(&scene, &last, "entry"), [b_1, b_2]);
    assert_eq!(listed(&scene, &["tail", "-n", "0", "--state", "open"], "entry"), [""; 0]);
}

#[tokio::test]
async fn one_message_is_neither_filtered_nor_followed() {
    let scene = Scene::new();
    written(&scene).await;
    scene.run(&["show", "sess-b/2"]).code(0).says(&["on"]);
    let text = "sess-b/2 is one message: leave out --follow, --story and filters, or name \
                its thread alone";
    for more in [&["--follow"][..], &["--failed"], &["--payload", "job"], &["--since", "1d"]] {
        let arguments = [&["show", "sess-b/2"][..], more].concat();
        scene.run(&arguments).code(2).says(&[text]);
        let asked = [&arguments[..], &["--connect", "127.0.0.1:9"]].concat();
        scene.run(&asked).code(2).says(&[text]);
    }
}

#[test]
fn a_wrong_filter_says_what_is_right() {
    let scene = Scene::new();
    for (option, value, says) in [
        ("--since", "soon", "10m"),
        ("--payload", "{urn:x", "{NAMESPACE}LOCAL"),
        ("--state", "shut", "open, paused, closed, cancelled, over-budget, failed"),
    ] {
        for verb in [&["threads"][..], &["tail"], &["show", "sess-a"]] {
            scene.run(&[verb, &[option, value]].concat()).code(2).says(&[says]);
        }
    }
}

#[tokio::test]
async fn a_tree_draws_threads_and_states() {
    let scene = Scene::new();
    written(&scene).await;
    let draw = |locale: &str, arguments: &[&str]| {
        let mut command = scene.command(&[&["tree"], arguments].concat());
        let output = command.env_remove("LC_CTYPE").env("LC_ALL", locale).output().unwrap();
        Ran::from(output).code(0).out
    };
    let drawn = draw("C.UTF-8", &[]);
    let starts = [
        "sess-a  open  1 entry  2026-11-21T22:36:36Z  ada → plan  <go>Begin &amp; end.</go>",
        "├─ sess-a.left  closed  2 entries  2026-11-21T22:36:36Z  plan → work  <job>dig deep</job>",
        "│  └─ sess-a.left.deep  open  0 entries",
        "└─ sess-a.right  paused  2 entries  2026-11-21T22:36:36Z  plan → work  <job>&#x9B;2J",
        "sess-b  open  2 entries  2026-11-21T22:36:36Z  1 under way  bob → work  <job>alone</job>",
    ];
    assert_eq!(drawn.lines().count(), starts.len(), "{drawn}");
    for (line, start) in drawn.lines().zip(starts) {
        assert!(line.starts_with(start), "{line}\nis not\n{start}");
    }
    let plain = draw("C", &["sess-a.left"]);
    assert!(plain.contains("\n`- sess-a.left.deep  open"), "{plain}");
    let objects = scene.run(&["tree", "sess-a", "--json"]).code(0).objects();
    let told: Vec<Value> =
        objects.iter().map(|it| json!([it["thread"], it["depth"], it["state"]])).collect();
    let expected = [
        json!(["sess-a", 0, "open"]),
        json!(["sess-a.left", 1, "closed"]),
        json!(["sess-a.left.deep", 2, "open"]),
        json!(["sess-a.right", 1, "paused"]),
    ];
    assert_eq!(told, expected);
    scene.run(&["tree", "sess-c"]).code(1).says(&["there is no thread sess-c; did you mean sess-"]);
}

#[test]
fn a_tree_shows_what_was_spawned() {
    let scene = Scene::new();
    let server = scene.serve(&[]);
    let spawn = "<spawn-thread suggested_sub_id=\"aside\"><initial-payload>\
                 <echo xmlns=\"https://xml-pipeline.org/ns/echo/v1\"><text>hi</text></echo>\
                 </initial-payload></spawn-thread>";
    let sent = scene.pipe(&["send", "--json", "--connect", &server.address], spawn).code(0);
    let thread = sent.objects()[0]["thread"].as_str().unwrap().to_owned();
    let objects = scene.run(&["tree", "--json"]).code(0).objects();
    let told: Vec<Value> = objects.iter().map(|it| json!([it["thread"], it["state"]])).collect();
    let aside = format!("{thread}.aside");
    assert!(told.contains(&json!([thread, "open"])), "{told:?}");
    assert!(told.contains(&json!([aside, "closed"])), "{told:?}");
    assert_eq!(listed(&scene, &["threads", "--state", "closed"], "thread"), [aside.as_str()]);
    let last = listed(&scene, &["show", &aside], "entry").pop().unwrap();
    let way = scene.run(&["why", &last]).code(0);
    way.says(&[&format!("1. From outside, console opened {thread} with this, for thread.")]);
}

#[tokio::test]
async fn a_text_that_goes_on_is_not_indented() {
    let scene = Scene::new();
    written(&scene).await;
    let shown = scene.run(&["show", "sess-a.left/1"]).code(0).out;
    assert!(shown.ends_with("\n  <job xmlns=\"urn:job\">dig\n│    deep</job>\n"), "{shown}");
}

/// A verb that goes on until it is told to stop.
struct Following {
    child: Child,
    lines: std::io::Lines<BufReader<std::process::ChildStdout>>,
}

impl Following {
    fn start(scene: &Scene, arguments: &[&str]) -> Following {
        let mut child = scene.command(arguments).stdout(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Following { child, lines }
    }

    fn next(&mut self) -> Value {
        serde_json::from_str(&self.lines.next().unwrap().unwrap()).unwrap()
    }

    /// Ends it as Ctrl-C does; its code.
    fn stop(mut self) -> Option<i32> {
        let id = self.child.id().to_string();
        assert!(Command::new("kill").args(["-INT", &id]).status().unwrap().success());
        self.child.wait().unwrap().code()
    }
}

impl Drop for Following {
    fn drop(&mut self) {
        // It may be gone already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[tokio::test]
async fn what_comes_is_followed_while_another_process_writes() {
    let scene = Scene::new();
    written(&scene).await;
    let json = "--json";
    let mut shows = Following::start(&scene, &["show", "sess-b", "--follow", json]);
    let mut tails = Following::start(&scene, &["tail", "-f", "-n", "1", "--payload", "job", json]);
    assert_eq!([&shows.next()["seq"], &shows.next()["seq"]], [&json!(1), &json!(2)]);
    assert_eq!(tails.next()["entry"], "sess-b/2");
    let log = SqliteLog::open(log_in(&scene.path("data")), Durability::Normal).unwrap();
    for seq in 3..6 {
        let name = if seq == 4 { "did" } else { "job" };
        let entries = vec![draft(&format!("sess-b/{seq}"), ["work", "work"], name, "more")];
        let batch = Batch { threads: Vec::new(), entries, marks: Vec::new() };
        log.append(batch).await.unwrap();
        assert_eq!(shows.next()["seq"], seq);
        if seq != 4 {
            assert_eq!(tails.next()["seq"], seq);
        }
    }
    assert_eq!((shows.stop(), tails.stop()), (Some(0), Some(0)));
}

#[tokio::test]
async fn a_tail_of_new_messages_knows_the_states_of_their_threads() {
    let scene = Scene::new();
    written(&scene).await;
    let arguments = ["tail", "-f", "-n", "0", "--state", "paused", "--json"];
    let mut tails = Following::start(&scene, &arguments);
    let first = std::thread::spawn(move || (tails.next(), tails.stop()));
    let log = SqliteLog::open(log_in(&scene.path("data")), Durability::Normal).unwrap();
    let mut seq = 2;
    while !first.is_finished() {
        seq += 1;
        let open = draft(&format!("sess-b/{seq}"), ["work", "work"], "job", "open");
        // A tail without the states would show this one first.
        let open = if seq == 2_000 { Draft { flags: Flags::PAUSES, ..open } } else { open };
        let paused = draft(&format!("sess-a.right/{seq}"), ["plan", "work"], "job", "paused");
        let batch = Batch { threads: Vec::new(), entries: vec![open, paused], marks: Vec::new() };
        log.append(batch).await.unwrap();
        Tokio::current().sleep_until(Tokio::current().now_us() + 10_000).await;
    }
    let (first, code) = first.join().unwrap();
    assert_eq!((&first["thread"], code), (&json!("sess-a.right"), Some(0)));
}

#[tokio::test]
async fn an_export_can_be_checked_again() {
    let scene = Scene::new();
    written(&scene).await;
    let head = scene.run(&["verify", "--json"]).code(0).objects()[0]["head"].clone();
    for thread in ["sess-a", "sess-a.left", "sess-a.right", "sess-a.left.deep", "sess-b"] {
        let file = format!("{thread}.xml");
        scene.run(&["export", thread, "--output", &file]).code(0);
        let text = std::fs::read_to_string(scene.path(&file)).unwrap();
        assert_eq!(text, scene.run(&["export", thread]).code(0).out);
        assert!(!text.contains(['\u{9b}', '\u{202e}']), "{text}");
        let document = roxmltree::Document::parse(&text).unwrap();
        let root = document.root_element();
        assert_eq!(root.attribute("head"), head.as_str());
        let origin = |id: &str| {
            let all = root.children().filter(|it| it.has_tag_name((EXPORT, "thread")));
            all.clone().find(|it| it.attribute("id") == Some(id)).unwrap()
        };
        let entries = root.children().filter(|it| it.has_tag_name((EXPORT, "entry")));
        for entry in entries.clone() {
            let parent = origin(entry.attribute("thread").unwrap()).attribute("parent");
            let digest = blake3::hash(&hashed(&text, entry, parent)).to_hex().to_string();
            assert_eq!(entry.attribute("digest"), Some(digest.as_str()), "{entry:?}");
        }
        let count = entries.count().to_string();
        assert_eq!(root.attribute("entries"), Some(count.as_str()));
        lint(&scene.path(&file));
    }
}

const EXPORT: &str = "https://xml-pipeline.org/ns/export/v1";

/// What the digest of an exported entry is over, as docs/log.md has it.
fn hashed(document: &str, entry: roxmltree::Node<'_, '_>, parent: Option<&str>) -> Vec<u8> {
    let mut bytes = b"pumphouse entry 1\0".to_vec();
    let of = |name: &str| entry.attribute(name);
    let number = |name: &str| of(name).unwrap().parse::<u64>().unwrap();
    let text = |bytes: &mut Vec<u8>, it: &[u8]| {
        bytes.extend((it.len() as u64).to_le_bytes());
        bytes.extend(it);
    };
    let link = |bytes: &mut Vec<u8>, it: &str| {
        let (thread, seq) = it.rsplit_once('/').unwrap();
        text(bytes, thread.as_bytes());
        bytes.extend(seq.parse::<u64>().unwrap().to_le_bytes());
    };
    let option = |bytes: &mut Vec<u8>, it: Option<&str>, put: &dyn Fn(&mut Vec<u8>, &str)| {
        bytes.push(u8::from(it.is_some()));
        it.into_iter().for_each(|it| put(bytes, it));
    };
    let words = |bytes: &mut Vec<u8>, it: &str| text(bytes, it.as_bytes());
    link(&mut bytes, &format!("{}/{}", of("thread").unwrap(), number("seq")));
    option(&mut bytes, parent, &words);
    option(&mut bytes, None, &link);
    let time: jiff::Timestamp = of("time").unwrap().parse().unwrap();
    bytes.extend(time.as_microsecond().to_le_bytes());
    words(&mut bytes, of("from").unwrap());
    option(&mut bytes, of("to"), &words);
    words(&mut bytes, of("namespace").unwrap());
    words(&mut bytes, of("name").unwrap());
    option(&mut bytes, of("cause"), &link);
    option(&mut bytes, of("reply-to"), &link);
    for name in ["flags", "receivers"] {
        bytes.extend(u32::try_from(number(name)).unwrap().to_le_bytes());
    }
    option(&mut bytes, of("client-id"), &words);
    option(&mut bytes, of("key"), &words);
    option(&mut bytes, None, &words);
    let payload = entry.children().find(|it| it.has_tag_name((EXPORT, "payload"))).unwrap();
    let payload = &document[payload.first_element_child().unwrap().range()];
    let payload = xml::read(payload, Profile::Wire, &pumphouse::limits::XmlLimits::FILE).unwrap();
    text(&mut bytes, &payload.canonical());
    bytes
}

/// Has `xmllint` hold an export against its schema.
fn lint(file: &Path) {
    let schema = Path::new(env!("CARGO_MANIFEST_DIR")).join("schemas/export.xsd");
    let mut command = Command::new("xmllint");
    match command.args(["--noout", "--nonet", "--schema"]).arg(schema).arg(file).output() {
        Err(_) => crate::skipped("no xmllint"),
        Ok(told) => {
            assert!(told.status.success(), "{}", String::from_utf8_lossy(&told.stderr));
        }
    }
}

#[tokio::test]
async fn an_export_has_other_forms_and_spares_what_is_there() {
    let scene = Scene::new();
    written(&scene).await;
    let jsonl = scene.run(&["export", "sess-b", "--format", "jsonl"]).code(0).out;
    assert_eq!(jsonl, scene.run(&["show", "sess-b", "--json"]).code(0).out);
    let page = scene.run(&["export", "sess-b", "--format", "markdown"]).code(0).out;
    assert!(page.starts_with("# Thread `sess-b`\n\n- 2 entries\n"), "{page}");
    assert_eq!(page.matches("\n## ").count(), 2, "{page}");
    scene.write("b.xml", "mine");
    let write = |more: &[&str]| scene.run(&[&["export", "sess-b", "-o", "b.xml"], more].concat());
    write(&[]).code(2).says(&["b.xml is there already", "--force"]);
    assert_eq!(std::fs::read_to_string(scene.path("b.xml")).unwrap(), "mine");
    write(&["--force"]).code(0);
    assert!(std::fs::read_to_string(scene.path("b.xml")).unwrap().starts_with("<?xml "));
    // What fails on the way leaves what was there, and nothing else.
    let fails = ["export", "sess-b", "--format", "messages-openai", "-o"];
    scene.write("kept.txt", "mine");
    scene.run(&[&fails[..], &["kept.txt", "--force"]].concat()).code(1);
    assert_eq!(std::fs::read_to_string(scene.path("kept.txt")).unwrap(), "mine");
    scene.run(&[&fails[..], &["none.txt"]].concat()).code(1);
    scene.run(&[&fails[..], &["none.txt", "--force"]].concat()).code(1);
    assert!(!scene.path("none.txt").exists());
    let files = std::fs::read_dir(scene.path(".")).unwrap().map(|it| it.unwrap().file_name());
    let parts = files.filter(|it| it.to_string_lossy().ends_with(".part")).count();
    assert_eq!(parts, 0);
    scene.run(&["export", "sess-b", "-o", "/dev/null", "--force"]).code(0);
    scene.run(&["export", "sess-b", "-o", "no/where"]).code(2).says(&["can't be written"]);
    scene.run(&["export", "sess-x"]).code(1).says(&["did you mean sess-"]);
}

#[test]
fn shells_complete_the_verbs() {
    let scene = Scene::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = scene.run(&["completions", shell]).code(0).out;
        for word in ["export", "follow", "payload"] {
            assert!(script.contains(word), "{shell} lacks {word}");
        }
    }
    scene.write("complete.bash", scene.run(&["completions", "bash"]).code(0).out);
    let asks = "source complete.bash; COMP_WORDS=(pumphouse ex) COMP_CWORD=1; \
                _pumphouse pumphouse ex pumphouse; echo ${COMPREPLY[@]}";
    match Command::new("bash").args(["-c", asks]).current_dir(scene.path("")).output() {
        Err(_) => crate::skipped("no bash"),
        Ok(told) => assert_eq!(String::from_utf8_lossy(&told.stdout), "export\n"),
    }
    scene.run(&["completions", "tcsh"]).code(2).says(&["bash", "fish", "zsh"]);
}

#[tokio::test]
async fn readers_are_quiet_about_a_closed_pipe_and_helpful_without_a_log() {
    let scene = Scene::new();
    written(&scene).await;
    let verbs: [&[&str]; 5] = [
        &["tree"],
        &["export", "sess-a"],
        &["completions", "bash"],
        &["show", "sess-a", "--follow"],
        &["tail", "--follow"],
    ];
    for verb in verbs {
        let mut command = scene.command(verb);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());
        let ran = Ran::from(child.wait_with_output().unwrap());
        assert_eq!((ran.code, &*ran.err), (0, ""), "{verb:?}");
    }
    for verb in [&["tree"][..], &["export", "sess-a"]] {
        let ran = scene.run(&[verb, &["--data", "absent"]].concat());
        ran.code(2).says(&["there is no folder absent", "`pumphouse run` makes one"]);
        scene.run(&[verb, &["--help"]].concat()).code(0).says(&["Examples:", "Exits with 1 "]);
    }
}

/// What is said where nothing fits: only threads that look alike, and that filters want nothing.
#[tokio::test]
async fn who_finds_nothing_is_told_so() {
    let scene = Scene::new();
    written(&scene).await;
    let nope = scene.run(&["show", "nope"]).code(1).says(&["none is called much like it"]);
    assert!(!nope.err.contains("sess-"), "{nope:?}");
    scene.run(&["show", "sess-c"]).code(1).says(&["did you mean sess-"]);
    let nothing = scene.run(&["show", "sess-a", "--text", "nowhere"]).code(0);
    nothing.says(&["no message is wanted by these filters"]);
    assert_eq!(scene.run(&["show", "sess-a", "--text", "nowhere", "--json"]).code(0).out, "");
}

/// A thread, asked for at a door: as far as it is, one message of it, and what comes to it.
#[test]
fn a_thread_is_shown_by_the_pump_that_has_it() {
    let scene = Scene::new();
    let server = scene.serve(&["--durability", "memory"]);
    let at = ["--connect", &server.address];
    let send = |more: &[&str], text: &str| {
        let echo = "<echo xmlns=\"https://xml-pipeline.org/ns/echo/v1\"><text>TEXT</text></echo>";
        let all = [&["send", "--json"], &at[..], more].concat();
        scene.pipe(&all, &echo.replace("TEXT", text)).code(0).objects()
    };
    let thread = send(&[], "one")[0]["thread"].as_str().unwrap().to_owned();
    let show =
        |what: &str, more: &[&str]| scene.run(&[&["show", what, "--json"], &at[..], more].concat());
    let entries = |it: Ran| -> Vec<Value> {
        it.code(0).objects().iter().map(|it| it["entry"].clone()).collect()
    };
    let of = |seq: u64| json!(format!("{thread}/{seq}"));
    assert_eq!(entries(show(&thread, &[])), [of(1), of(2)]);
    assert_eq!(entries(show(&format!("{thread}/2"), &[])), [of(2)]);
    show(&format!("{thread}/3"), &[]).code(1).says(&["isn't in the thread yet"]);
    show("sess-nosuch00", &[]).code(1);
    show(&thread, &["--payload", "echo"]).code(2).says(&["filters are for a log's file"]);
    let follow = ["show", &thread, "--follow", "--json", "--connect", &server.address];
    let mut follows = Following::start(&scene, &follow);
    assert_eq!([&follows.next()["entry"], &follows.next()["entry"]], [&of(1), &of(2)]);
    send(&["--thread", &thread], "two");
    assert_eq!(follows.next()["entry"], of(3));
    assert_eq!(follows.stop(), Some(0));
}
