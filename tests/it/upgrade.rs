//! Logs of older versions, served and read by this version.

use std::collections::BTreeSet;
use std::ffi::OsString;

use rusqlite::Connection;
use rusqlite::config::DbConfig;
use serde_json::Value;

use crate::program::{Scene, log_in};

/// A folder with a log from `tests/logs` in it.
fn older(name: &str) -> Scene {
    let scene = Scene::new();
    let path = format!("{}/tests/logs/{name}.sql", env!("CARGO_MANIFEST_DIR"));
    std::fs::create_dir(scene.path("data")).unwrap();
    let log = Connection::open(log_in(&scene.path("data"))).unwrap();
    log.execute_batch(&std::fs::read_to_string(path).unwrap()).unwrap();
    scene
}

/// Those that open a log, each in its way.
const VERBS: [&[&str]; 4] =
    [&["run", "--listen", "127.0.0.1:0"], &["threads"], &["verify"], &["backup", "copy.db"]];

/// What stands in the data folder.
fn names(scene: &Scene) -> BTreeSet<OsString> {
    let all = std::fs::read_dir(scene.path("data")).unwrap();
    all.map(|it| it.unwrap().file_name()).collect()
}

fn echo(meta: &str) -> String {
    format!(
        "<message xmlns=\"https://xml-pipeline.org/ns/envelope/v1\"><meta>{meta}</meta>\
         <echo xmlns=\"https://xml-pipeline.org/ns/echo/v1\"><text>first</text></echo></message>"
    )
}

/// The lines of a thread: from whom, to whom, what.
fn story(scene: &Scene, thread: &str) -> Vec<String> {
    let word = |it: &Value, key: &str| it[key].as_str().unwrap_or("*").to_owned();
    let line = |it: &Value| ["from", "to", "name"].map(|key| word(it, key)).join(" ");
    scene.run(&["show", thread, "--json"]).code(0).objects().iter().map(line).collect()
}

/// Waits for what a killed pump had not begun.
#[track_caller]
fn taken_up(scene: &Scene, thread: &str) {
    let answered = std::iter::repeat_with(|| story(scene, thread)).find(|it| it.len() > 1);
    assert_eq!(answered.unwrap(), ["console echo echo", "echo console echo"]);
}

#[test]
fn a_pump_goes_on_with_a_log_of_the_first_version() {
    let scene = older("format-1-first");
    scene.run(&["verify"]).code(0).says(&["sound: ", "7 entries in 3 threads, 7 commits"]);
    let server = scene.serve(&[]);
    let send = ["send", "--connect", &server.address];
    // What was not begun when the old one was killed is done now.
    taken_up(&scene, "sess-zsjnsjwd");
    // What was sent under an id is known.
    let again = scene.pipe(&send, &echo("<thread>sess-m84sdmat</thread><id>mine-1</id>"));
    again.code(0).says(&["accepted as sess-m84sdmat/3"]);
    scene.pipe(&send, &echo("<thread>sess-m84sdmat</thread>")).code(0).says(&["sess-m84sdmat/5"]);
    scene.run(&["verify"]).code(0).says(&["sound: "]);
    let problem = scene.run(&["show", "sess-wegk58y8"]).code(0);
    problem.says(&["<division-by-zero>"]);
}

#[test]
fn a_pump_goes_on_with_a_log_of_the_first_format() {
    let scene = older("format-1");
    scene.run(&["verify"]).code(0).says(&["sound: ", "19 entries in 6 threads, 16 commits"]);
    let server = scene.serve(&[]);
    taken_up(&scene, "sess-w2k1sycn");
    scene.run(&["tree"]).code(0).says(&["sess-wbft306n.sub", "sess-b1917xr1"]);
    scene.run(&["state", "sess-wbft306n"]).code(0).says(&["timer", "until 2100-01-01"]);
    scene.run(&["replay", "sess-wbft306n"]).code(0).says(&["the same: "]);
    let sent = scene.pipe(&["send", "--connect", &server.address], &echo(""));
    sent.code(0).says(&["accepted as sess-"]);
    scene.run(&["verify"]).code(0).says(&["sound: "]);
}

#[test]
fn a_pump_goes_on_with_a_log_of_this_format() {
    let scene = older("format-2");
    scene.run(&["verify"]).code(0).says(&["sound: ", "11 entries in 3 threads, 6 commits"]);
    let payloads = || {
        let lines = scene.run(&["show", "sess-tppvswb0", "--json"]).code(0).objects();
        lines.iter().map(|it| it["payload"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let before = payloads();
    let text = |at: usize| {
        let (_, text) = before[at].split_once("<text>").unwrap();
        text.split_once("</text>").unwrap().0
    };
    // What the third says stands in the rows of the first and the second.
    let third = format!("both: &lt;text&gt;{}&lt;/text&gt;\n{} and that is all", text(0), text(2));
    assert_eq!((text(4), text(5)), (&*third, &*third));
    let server = scene.serve(&[]);
    let send = ["send", "--connect", &server.address];
    scene.pipe(&send, &echo("<thread>sess-tppvswb0</thread>")).code(0).says(&["sess-tppvswb0/8"]);
    assert_eq!(payloads()[..6], before);
    scene.run(&["state", "sess-pjdg44gq"]).code(0).says(&["timer", "until 2100-01-01"]);
    scene.run(&["replay", "sess-tppvswb0"]).code(0).says(&["the same: "]);
    scene.run(&["verify"]).code(0).says(&["sound: "]);
}

#[test]
fn a_newer_log_is_refused_by_every_verb_and_left_as_it_is() {
    let scene = older("format-1");
    let log = log_in(&scene.path("data"));
    Connection::open(&log).unwrap().execute_batch("PRAGMA user_version = 3").unwrap();
    let (bytes, beside) = (std::fs::read(&log).unwrap(), names(&scene));
    for verb in VERBS {
        let refused = scene.run(verb).code(2);
        refused.says(&["has format 3, and this version reads up to 2; upgrade pumphouse"]);
    }
    assert_eq!(std::fs::read(&log).unwrap(), bytes);
    assert_eq!(names(&scene), beside);
}

#[test]
fn a_newer_log_that_was_left_in_a_hurry_is_left_as_it_is_too() {
    let scene = older("format-2");
    let log = log_in(&scene.path("data"));
    let newer = Connection::open(&log).unwrap();
    newer.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true).unwrap();
    newer.execute_batch("PRAGMA journal_mode = WAL; PRAGMA user_version = 3").unwrap();
    drop(newer);
    let bytes = || [log.clone(), log.with_extension("db-wal")].map(|it| std::fs::read(it).unwrap());
    let (before, beside) = (bytes(), names(&scene));
    assert!(!before[1].is_empty());
    for verb in VERBS {
        scene.run(verb).code(2).says(&["has format 3", "upgrade pumphouse"]);
    }
    assert!(before == bytes(), "it was written to");
    assert_eq!(names(&scene), beside);
}
