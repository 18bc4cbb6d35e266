//! Changes of a log are noticed, and the log's triggers prevent accidental changes.

use rusqlite::Connection;

use super::*;
use crate::log::conformance::wait;
use crate::log::verify::Wrong;

/// Changes a log's file by SQL. Drops the triggers before, and makes them again afterwards.
pub(super) fn change(path: &Path, sql: &str) {
    let db = Connection::open(path).unwrap();
    let triggers: Vec<(String, String)> = db
        .prepare("SELECT name, sql FROM sqlite_schema WHERE type = 'trigger'")
        .unwrap()
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))
        .unwrap()
        .collect::<Result<_, _>>()
        .unwrap();
    for (name, _) in &triggers {
        db.execute_batch(&format!("DROP TRIGGER {name}")).unwrap();
    }
    db.execute_batch(sql).unwrap();
    for (_, sql) in &triggers {
        db.execute_batch(sql).unwrap();
    }
}

/// Changes a log by SQL, and returns what `verify` and `open` find.
fn tampered(sql: &str) -> (Vec<(Wrong, Option<String>)>, Option<Error>) {
    let (_directory, path, head) = written();
    change(&path, sql);
    let log = SqliteLog::open_read_only(&path).unwrap();
    let report = wait(log.verify(Some(head))).unwrap();
    let found = report.findings.iter().map(|finding| {
        let what = finding.to_string();
        assert!(what.len() > 10, "{what}");
        (finding.wrong, finding.entry.as_ref().map(ToString::to_string))
    });
    (found.collect(), SqliteLog::open(&path, Durability::Normal).err())
}

fn check(sql: &str, wrong: Wrong, entry: Option<&str>) {
    let (found, _) = tampered(sql);
    let expected = (wrong, entry.map(str::to_owned));
    assert!(found.contains(&expected), "{sql}: {expected:?} is not in {found:?}");
}

#[test]
fn a_changed_entry_is_named() {
    let of = |change: &str| format!("UPDATE entries SET {change} WHERE position = 3");
    for change in [
        "time = time + 1",
        "time = -1",
        "\"from\" = 'eve'",
        "\"from\" = CAST(x'ff' AS TEXT)",
        "\"to\" = 'eve'",
        "\"to\" = NULL",
        "\"to\" = ''",
        "cause_thread = 2",
        "cause_thread = NULL, cause_seq = NULL",
        "reply_thread = 2",
        "reply_seq = NULL",
        "flags = flags | 8",
        "flags = flags + 4294967296",
        "receivers = 1",
        "client_id = 'x'",
        "client_id = ''",
        "key_id = 0",
        "digest = zeroblob(32)",
        "digest = x''",
        "meta = NULL",
        "meta = x''",
        "body = CAST('<note/>' AS BLOB)",
        "body = CAST(body || x'20' AS BLOB)",
        "body = x''",
        "name = 99",
    ] {
        check(&of(change), Wrong::Digest, Some("a/2"));
    }
    check("UPDATE entries SET meta = x'' WHERE position = 1", Wrong::Digest, Some("a/1"));
    check("UPDATE names SET local = 'memo'", Wrong::Digest, Some("a/2"));
    check("UPDATE names SET namespace = 'urn:tes'", Wrong::Digest, Some("b/1"));
    check("UPDATE threads SET id = 'e' WHERE id = 'a'", Wrong::Digest, Some("e/1"));
    check("UPDATE threads SET parent = NULL", Wrong::Digest, Some("a.c/1"));
    check("UPDATE threads SET parent = 1 WHERE id = 'b'", Wrong::Digest, Some("b/1"));
    check("UPDATE threads SET fork_seq = 1 WHERE id = 'f'", Wrong::Digest, Some("f/3"));
    check("UPDATE threads SET fork_thread = 2 WHERE id = 'f'", Wrong::Digest, Some("f/3"));
}

#[test]
fn what_is_missing_moved_or_too_much_is_named() {
    check("DELETE FROM entries WHERE position = 3", Wrong::Sequence, Some("a/3"));
    check("DELETE FROM entries WHERE position = 3", Wrong::Sequence, None);
    check("DELETE FROM entries WHERE position = 3", Wrong::Chain, None);
    check("DELETE FROM entries WHERE position = 6", Wrong::Chain, None);
    check("UPDATE entries SET seq = 9 WHERE position = 3", Wrong::Digest, Some("a/9"));
    check("UPDATE entries SET seq = 9 WHERE position = 3", Wrong::Sequence, Some("a/3"));
    check("UPDATE entries SET thread = 2, seq = 2 WHERE position = 3", Wrong::Digest, Some("b/2"));
    check("UPDATE entries SET position = 60 WHERE position = 6", Wrong::Unchained, None);
    let swap = "UPDATE entries SET position = 99 WHERE position = 3;
        UPDATE entries SET position = 3 WHERE position = 5;
        UPDATE entries SET position = 5 WHERE position = 99;";
    check(swap, Wrong::Chain, None);
    check(swap, Wrong::Sequence, Some("a/3"));
    let copy = "INSERT INTO entries SELECT 7, 1, 4, time, \"from\", \"to\", name, cause_thread,
        cause_seq, reply_thread, reply_seq, flags, receivers, NULL, key_id, digest, meta, body
        FROM entries WHERE position = 3";
    check(copy, Wrong::Unchained, None);
    check("INSERT INTO threads VALUES (5, 'new', NULL, NULL, NULL)", Wrong::Unchained, None);
    check("DELETE FROM threads WHERE id = 'a.c'", Wrong::Digest, None);
    for change in ["parent = 9", "parent = -1", "fork_thread = 0", "fork_thread = NULL"] {
        check(&format!("UPDATE threads SET {change} WHERE id = 'f'"), Wrong::Link, None);
    }
    check("UPDATE threads SET fork_seq = 1 WHERE id = 'b'", Wrong::Link, None);
    check("UPDATE entries SET cause_seq = 9 WHERE position = 3", Wrong::Link, Some("a/2"));
    check("UPDATE entries SET reply_seq = 2 WHERE position = 3", Wrong::Link, Some("a/2"));
    let weaker = "CREATE TRIGGER entries_no_updates BEFORE UPDATE ON entries BEGIN SELECT 1; END";
    check(weaker, Wrong::Schema, None);
    check("DROP INDEX entries_client_id", Wrong::Schema, None);
    check("DROP VIEW messages; CREATE VIEW messages AS SELECT 1", Wrong::Schema, None);
}

#[test]
fn of_a_fork_that_is_missing_no_entry_is_missing() {
    let (_directory, path, head) = written();
    change(&path, "DELETE FROM threads WHERE id = 'f'");
    let log = SqliteLog::open_read_only(&path).unwrap();
    let report = wait(log.verify(Some(head))).unwrap();
    let found: Vec<String> = report.findings.iter().map(ToString::to_string).collect();
    assert!(!found.is_empty() && found.iter().all(|it| !it.contains("sequence 1")), "{found:?}");
}

#[test]
fn a_changed_commit_is_named() {
    for change in [
        "writer = zeroblob(16)",
        "writer = x''",
        "chain = zeroblob(32)",
        "marks = x''",
        "marks = CAST(marks || x'00' AS BLOB)",
        "marks = x'ff'",
        "last_position = 4",
        "last_thread = 4",
    ] {
        check(&format!("UPDATE commits SET {change} WHERE number = 2"), Wrong::Chain, None);
    }
    check("UPDATE commits SET marks = x'ff' WHERE number = 2", Wrong::Mark, None);
    // The bytes have one listener, `E`, and one mark: `E` started on entry 9 of thread 1, attempt
    // 1.
    let nowhere = "UPDATE commits SET marks = x'0101450100010901' WHERE number = 2";
    check(nowhere, Wrong::Mark, Some("a/9"));
    check("UPDATE commits SET number = 9 WHERE number = 3", Wrong::Sequence, None);
    check("DELETE FROM commits WHERE number = 2", Wrong::Sequence, None);
    check("DELETE FROM commits WHERE number = 3", Wrong::Head, None);
    check("DELETE FROM commits WHERE number = 3", Wrong::Unchained, None);
    check("DELETE FROM commits WHERE number = 0", Wrong::Chain, None);
    check("DELETE FROM commits", Wrong::Head, None);
    for change in ["key = zeroblob(32)", "uuid = zeroblob(16)", "created = 0", "format = 4"] {
        check(&format!("UPDATE log SET {change}"), Wrong::Identity, None);
    }
}

#[test]
fn the_commit_that_made_the_log_is_held_to_its_fixed_values() {
    for change in ["marks = x'0101450100010901'", "last_position = 4", "last_thread = 4"] {
        check(&format!("UPDATE commits SET {change} WHERE number = 0"), Wrong::Identity, None);
    }
    for writer in ["zeroblob(16)", "x'33333333333373338333333333333333'"] {
        let change = format!("UPDATE commits SET writer = {writer} WHERE number = 0");
        check(&change, Wrong::Identity, None);
    }
}

#[test]
fn a_damaged_end_is_refused_when_it_is_opened() {
    for sql in [
        "DELETE FROM commits",
        "DELETE FROM commits WHERE number = 3",
        "DELETE FROM entries WHERE position = 6",
        "UPDATE entries SET body = x'00' WHERE position = 6",
        "UPDATE commits SET chain = zeroblob(32) WHERE number = 3",
        "UPDATE threads SET id = 'g' WHERE id = 'f'",
        "DELETE FROM log",
        "ALTER TABLE entries RENAME COLUMN meta TO foreign_meta",
        "PRAGMA user_version = -1",
    ] {
        let (directory, path, _) = written();
        let db = Connection::open(&path).unwrap();
        let triggers = "SELECT group_concat('DROP TRIGGER ' || name, ';') FROM sqlite_schema
            WHERE type = 'trigger'";
        let drop_all: String = db.query_row(triggers, [], |row| row.get(0)).unwrap();
        db.execute_batch(&drop_all).unwrap();
        db.execute_batch(sql).unwrap();
        drop(db);
        let error = SqliteLog::open(&path, Durability::Full).err();
        assert!(matches!(error, Some(Error::Damaged { .. })), "{sql}: {error:?}");
        drop(directory);
    }
}

#[test]
fn nothing_in_a_log_can_be_changed_by_accident() {
    let (_directory, path, head) = written();
    let db = Connection::open(&path).unwrap();
    let count = "SELECT (SELECT count(*) FROM entries) + (SELECT count(*) FROM threads)
        + (SELECT count(*) FROM names) + (SELECT count(*) FROM commits)";
    let before: i64 = db.query_row(count, [], |row| row.get(0)).unwrap();
    for table in ["log", "names", "threads", "entries", "commits"] {
        for sql in [
            format!("UPDATE {table} SET rowid = rowid"),
            format!("DELETE FROM {table}"),
            format!("INSERT INTO {table} SELECT * FROM {table}"),
            format!("INSERT OR REPLACE INTO {table} SELECT * FROM {table}"),
            format!("REPLACE INTO {table} SELECT * FROM {table} LIMIT 1"),
            format!("INSERT OR IGNORE INTO {table} SELECT * FROM {table}"),
        ] {
            let error = db.execute_batch(&sql).unwrap_err().to_string();
            assert_eq!(error, "the log is append-only", "{sql}");
        }
    }
    let entry = |position: i64, thread: i64, seq: i64, from: &str| {
        format!(
            "INSERT OR REPLACE INTO entries VALUES ({position}, {thread}, {seq}, 0, '{from}',
             NULL, 1, NULL, NULL, NULL, NULL, 1, 0, 'mine', NULL, x'', NULL, x'')"
        )
    };
    for sql in [
        entry(3, 1, 9, "eve"),
        entry(9, 1, 2, "eve"),
        entry(9, 1, 9, "alice"),
        "INSERT OR REPLACE INTO threads VALUES (9, 'a', NULL, NULL, NULL)".to_owned(),
        "INSERT OR REPLACE INTO names VALUES (9, 'urn:test', 'note')".to_owned(),
    ] {
        let error = db.execute_batch(&sql).unwrap_err().to_string();
        assert_eq!(error, "the log is append-only", "{sql}");
    }
    assert_eq!(db.query_row(count, [], |row| row.get::<_, i64>(0)).unwrap(), before);
    drop(db);
    assert!(wait(open(&path).verify(Some(head))).unwrap().is_sound());
}
