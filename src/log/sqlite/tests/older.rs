//! Logs that older versions wrote, and logs that a later version wrote.

use rusqlite::Connection;

use super::*;
use crate::log::conformance::wait;

/// Makes a log from SQL in `tests/logs`, as an older version left it.
fn older(sql: &str) -> (TempDir, PathBuf) {
    let (directory, path) = place();
    Connection::open(&path).unwrap().execute_batch(sql).unwrap();
    (directory, path)
}

/// The name and the SQL of every log in `tests/logs`.
fn all() -> Vec<(String, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/logs");
    let files = std::fs::read_dir(folder).unwrap().map(|it| it.unwrap().path());
    let mut all: Vec<_> = files
        .filter(|it| it.extension().is_some_and(|it| it == "sql"))
        .map(|path| {
            let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
            (name, std::fs::read_to_string(path).unwrap())
        })
        .collect();
    all.sort();
    all
}

fn version(path: &Path) -> u32 {
    let db = Connection::open(path).unwrap();
    db.pragma_query_value(None, "user_version", |row| row.get(0)).unwrap()
}

fn layout(path: &Path) -> Vec<(String, String)> {
    let db = Connection::open(path).unwrap();
    let mut rows =
        db.prepare("SELECT name, coalesce(sql, '') FROM sqlite_schema ORDER BY 1").unwrap();
    rows.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))
        .unwrap()
        .collect::<Result<_, _>>()
        .unwrap()
}

#[test]
fn every_layout_ever_written_is_among_the_logs_that_are_kept() {
    let names: Vec<_> = all().into_iter().map(|it| it.0).collect();
    for format in 1..=Identity::FORMAT {
        let name = format!("format-{format}");
        assert!(names.contains(&name), "tests/logs has no {name}.sql");
    }
    let (_directory, path) = place();
    drop(open(&path));
    let ours = layout(&path);
    let kept = |sql: &String| {
        let (_directory, path) = older(sql);
        layout(&path) == ours
    };
    let is_kept = all().iter().any(|(_, sql)| kept(sql));
    assert!(
        is_kept,
        "the layout is another than any in tests/logs: keep a log of it there as well"
    );
}

#[test]
fn an_older_log_is_sound_as_it_is_and_is_brought_up_to_date_when_it_is_opened() {
    for (name, sql) in all() {
        let (_directory, path) = older(&sql);
        let reader = SqliteLog::open_read_only(&path).unwrap();
        let before = wait(reader.verify(None)).unwrap();
        assert!(before.is_sound() && before.entries > 5, "{name}: {:?}", before.findings);
        let entries = wait(reader.tail(0, 999)).unwrap();
        drop(reader);
        let log = open(&path);
        assert_eq!(wait(log.tail(0, 999)).unwrap(), entries, "{name}");
        let left = match &*name {
            "format-1" | "agent-0.1.0" => 2,
            "agent-rules-3" => 3,
            _ => 1,
        };
        assert_eq!(wait(log.open_entries()).unwrap().len(), left, "{name}");
        let id = entries[0].id.thread.clone();
        let next = wait(log.thread(&id)).unwrap().unwrap().last_seq + 1;
        keep(&log, batch(&["new"], &["new/1", &format!("{id}/{next}")]));
        assert!(wait(log.verify(Some(before.head))).unwrap().is_sound(), "{name}");
        drop(log);
        let (_directory, fresh) = place();
        drop(open(&fresh));
        assert_eq!(layout(&path), layout(&fresh), "{name}");
        assert_eq!((version(&path), version(&fresh)), (2, 2), "{name}");
    }
}

#[test]
fn only_a_log_of_the_first_format_lacks_what_the_second_has() {
    let [first, second] = ["format-1", "format-2"].map(|name| {
        let (_, sql) = all().into_iter().find(|it| it.0 == name).unwrap();
        older(&sql)
    });
    let shares = "SELECT count(*) FROM shares";
    let count: i64 =
        Connection::open(&second.1).unwrap().query_row(shares, [], |row| row.get(0)).unwrap();
    assert!(count > 3, "the log that is kept shows what is shared");
    for (path, change, finding) in [
        (&first.1, "PRAGMA user_version = 2", "table shares is missing"),
        (&second.1, "DROP TABLE shares", "table shares is missing"),
        (&first.1, "PRAGMA user_version = 2", "view messages was changed"),
    ] {
        Connection::open(path).unwrap().execute_batch(change).unwrap();
        let report = wait(SqliteLog::open_read_only(path).unwrap().verify(None)).unwrap();
        let found: Vec<_> = report.findings.iter().map(ToString::to_string).collect();
        assert!(found.iter().any(|it| it == finding), "{found:?}");
        let error = SqliteLog::open(path, Durability::Full).err();
        assert!(matches!(error, Some(Error::Damaged { .. })), "{error:?}");
    }
}

#[test]
fn an_older_log_that_was_tampered_with_is_no_older_log() {
    let first = all().into_iter().find(|it| it.0 == "format-1-first").unwrap().1;
    for (change, finding) in [
        ("DROP VIEW messages", "view messages is missing"),
        ("DROP INDEX entries_client_id", "index entries_client_id is missing"),
        ("DROP TRIGGER log_no_update", "trigger log_no_update is missing"),
        ("DROP VIEW messages; CREATE VIEW messages AS SELECT 1", "view messages was changed"),
    ] {
        let (_directory, path) = older(&first);
        Connection::open(&path).unwrap().execute_batch(change).unwrap();
        for log in [SqliteLog::open_read_only(&path).unwrap(), open(&path)] {
            let report = wait(log.verify(None)).unwrap();
            let found: Vec<_> = report.findings.iter().map(ToString::to_string).collect();
            assert_eq!(found, [finding]);
        }
    }
}

#[test]
fn a_newer_log_is_refused_with_advice_and_left_as_it_is() {
    let (_directory, path, _) = written();
    Connection::open(&path).unwrap().execute_batch("PRAGMA user_version = 3").unwrap();
    let bytes = std::fs::read(&path).unwrap();
    for error in [
        SqliteLog::open(&path, Durability::Full).unwrap_err(),
        SqliteLog::open_read_only(&path).unwrap_err(),
    ] {
        assert_eq!(error, Error::Newer { path: path.clone(), format: 3 });
        let advice = "has format 3, and this version reads up to 2; upgrade pumphouse";
        assert!(error.to_string().ends_with(advice), "{error}");
    }
    assert_eq!(std::fs::read(&path).unwrap(), bytes);
}
