//! The log of this format that is kept, and logs of other formats.

use std::collections::BTreeSet;
use std::ffi::OsString;

use rusqlite::Connection;
use rusqlite::config::DbConfig;

use crate::program::{Scene, log_in};

/// A folder with the log of `tests/logs` in it.
fn kept() -> Scene {
    let scene = Scene::new();
    let path = format!("{}/tests/logs/format-3.sql", env!("CARGO_MANIFEST_DIR"));
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

#[test]
fn a_pump_goes_on_with_a_log_of_this_format() {
    let scene = kept();
    scene.run(&["verify"]).code(0).says(&["sound: ", "22 entries in 4 threads, 9 commits"]);
    let payloads = || {
        let lines = scene.run(&["show", "sess-bssfkm80", "--json"]).code(0).objects();
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
    scene.pipe(&send, &echo("<thread>sess-bssfkm80</thread>")).code(0).says(&["sess-bssfkm80/8"]);
    assert_eq!(payloads()[..6], before);
    scene.run(&["state", "sess-ksfvkxnm"]).code(0).says(&["timer", "until 2100-01-01"]);
    scene.run(&["replay", "sess-bssfkm80"]).code(0).says(&["the same: "]);
    scene.run(&["verify"]).code(0).says(&["sound: "]);
}

#[test]
fn a_log_of_another_format_is_refused_by_every_verb_and_left_as_it_is() {
    for (format, advice) in [(2, "and so does sqlite3"), (4, "upgrade pumphouse")] {
        let scene = kept();
        let log = log_in(&scene.path("data"));
        let change = format!("PRAGMA user_version = {format}");
        Connection::open(&log).unwrap().execute_batch(&change).unwrap();
        let (bytes, beside) = (std::fs::read(&log).unwrap(), names(&scene));
        for verb in VERBS {
            let told = format!("has format {format}, and this version reads 3; ");
            scene.run(verb).code(2).says(&[&told, advice]);
        }
        assert_eq!(std::fs::read(&log).unwrap(), bytes);
        assert_eq!(names(&scene), beside);
    }
}

#[test]
fn a_log_of_another_format_that_was_left_in_a_hurry_is_left_as_it_is_too() {
    let scene = kept();
    let log = log_in(&scene.path("data"));
    let newer = Connection::open(&log).unwrap();
    newer.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true).unwrap();
    newer.execute_batch("PRAGMA journal_mode = WAL; PRAGMA user_version = 4").unwrap();
    drop(newer);
    let bytes = || [log.clone(), log.with_extension("db-wal")].map(|it| std::fs::read(it).unwrap());
    let (before, beside) = (bytes(), names(&scene));
    assert!(!before[1].is_empty());
    for verb in VERBS {
        scene.run(verb).code(2).says(&["has format 4", "upgrade pumphouse"]);
    }
    assert!(before == bytes(), "it was written to");
    assert_eq!(names(&scene), beside);
}
