//! What only a file can do: survive, be damaged, be full, be held by another.

use std::cell::Cell;

use proptest::prelude::*;
use rusqlite::Connection;
use tempfile::TempDir;

use super::*;
use crate::log::suite::{self, batch, consumed, entry, note, session, started, thread, wait};
use crate::log::{Draft, Flags, Mark, MemoryLog, NewThread, Wrong};

/// A file in a directory of its own.
fn place() -> (TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("organism.log");
    (directory, path)
}

fn open(path: &Path) -> SqliteLog {
    SqliteLog::open(path, Durability::Normal).unwrap()
}

fn keep(log: &dyn Log, batch: Batch) -> Receipt {
    wait(log.append(batch)).unwrap()
}

/// Three commits: two threads with a child and a fork, a client's id, marks.
fn history(log: &dyn Log) -> Head {
    let mut first = batch(&["a", "b"], &["a/1", "b/1"]);
    first.threads.push(NewThread { parent: Some(thread("a")), ..session("a.c") });
    first.entries[0].client_id = Some("mine".into());
    first.entries[0].flags = Flags::FROM_IDENTITY.with(Flags::ANSWER_WANTED);
    first.entries[0].receivers = 1;
    keep(log, first);
    let answer = Draft {
        to: Some("alice".into()),
        cause: Some(entry("a/1")),
        reply_to: Some(entry("a/1")),
        meta: Some("<trace xmlns=\"urn:x\"/>".into()),
        ..note("a/2")
    };
    let marks = vec![started("a/1", "echo", 1), consumed("a/1", "echo")];
    keep(
        log,
        Batch { entries: vec![answer, note("a.c/1"), note("a/3")], marks, ..batch(&[], &[]) },
    );
    let threads = vec![NewThread { fork: Some(entry("a/2")), ..session("f") }];
    keep(log, Batch { threads, entries: vec![note("f/3")], ..batch(&[], &[]) }).head
}

/// A closed file with that history.
fn written() -> (TempDir, PathBuf, Head) {
    let (directory, path) = place();
    let log = open(&path);
    let head = history(&log);
    wait(log.close()).unwrap();
    (directory, path, head)
}

#[test]
fn it_keeps_every_rule() {
    for durability in [Durability::Full, Durability::Normal] {
        let directory = tempfile::tempdir().unwrap();
        let count = Cell::new(0);
        suite::all(&|| {
            count.set(count.get() + 1);
            let path = directory.path().join(format!("{}.log", count.get()));
            Box::new(SqliteLog::open(path, durability).unwrap())
        });
    }
}

#[test]
fn a_log_goes_on_where_it_ended() {
    let (_directory, path, head) = written();
    assert!(!connect::beside(&path, "-wal").exists(), "one file is left behind");
    let log = open(&path);
    let identity = log.identity();
    assert_eq!(wait(log.head()).unwrap(), head);
    assert_eq!(keep(&log, batch(&["g"], &["a/4", "a.c/2", "f/4", "g/1"])).first_position, 7);
    drop(log);
    let log = open(&path);
    assert_eq!(log.identity(), identity);
    assert!(wait(log.verify(Some(head))).unwrap().is_sound());
    let ids: Vec<_> = wait(log.read(&thread("f"), 0, 9, 9)).unwrap();
    let ids: Vec<_> = ids.iter().map(|it| it.id.to_string()).collect();
    assert_eq!(ids, ["a/1", "a/2", "f/3", "f/4"]);
    let conflict = wait(log.append(batch(&[], &["a/4"])));
    assert_eq!(conflict.err(), Some(Error::Conflict { entry: entry("a/4"), next: 5 }));
    assert_eq!(wait(log.client_id("alice", "mine")).unwrap().unwrap().position, 1);
}

/// What a killed process leaves: the file and its write-ahead log, up to some byte.
#[test]
fn what_a_killed_process_leaves_is_a_whole_log() {
    let (directory, path) = place();
    let log = open(&path);
    let mut heads = vec![wait(log.head()).unwrap()];
    for seq in 1..=12 {
        let threads: &[&str] = if seq == 1 { &["a"] } else { &[] };
        heads.push(keep(&log, batch(threads, &[&format!("a/{seq}")])).head);
    }
    let wal = std::fs::read(connect::beside(&path, "-wal")).unwrap();
    let copy = directory.path().join("copy.log");
    let mut seen = 0;
    for length in (0..=wal.len()).rev().step_by(997) {
        std::fs::copy(&path, &copy).unwrap();
        std::fs::write(connect::beside(&copy, "-wal"), &wal[..length]).unwrap();
        let _ = std::fs::remove_file(connect::beside(&copy, "-shm"));
        let log = match SqliteLog::open(&copy, Durability::Full) {
            Ok(log) => log,
            Err(error) => panic!("{length}: {error}"),
        };
        let report = wait(log.verify(None)).unwrap();
        assert!(report.is_sound(), "{length}: {:?}", report.findings);
        // Shorter write-ahead logs may lose even the making of the log.
        if log.identity() == open_identity(&path) {
            assert_eq!(heads[usize::try_from(report.head.number).unwrap()], report.head);
            seen += 1;
            keep(&log, batch(&["z"], &["z/1"]));
        }
        drop(log);
        std::fs::remove_file(&copy).unwrap();
    }
    assert!(seen > 12, "{seen}");
}

fn open_identity(path: &Path) -> Identity {
    SqliteLog::open_read_only(path).unwrap().identity()
}

/// Changes a copy of a log behind our backs; says what `verify` and `open` find.
fn tampered(sql: &str) -> (Vec<(Wrong, Option<String>)>, Option<Error>) {
    let (_directory, path, head) = written();
    let db = Connection::open(&path).unwrap();
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
    drop(db);
    let log = SqliteLog::open_read_only(&path).unwrap();
    let report = wait(log.verify(Some(head))).unwrap();
    let found = report.findings.iter().map(|it| {
        let what = it.to_string();
        assert!(what.len() > 10, "{what}");
        (it.wrong, it.entry.as_ref().map(ToString::to_string))
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
    // One listener `E`; one mark: it started on sequence 9 of thread 1, attempt 1.
    let nowhere = "UPDATE commits SET marks = x'0101450100010901' WHERE number = 2";
    check(nowhere, Wrong::Mark, Some("a/9"));
    check("UPDATE commits SET number = 9 WHERE number = 3", Wrong::Sequence, None);
    check("DELETE FROM commits WHERE number = 2", Wrong::Sequence, None);
    check("DELETE FROM commits WHERE number = 3", Wrong::Head, None);
    check("DELETE FROM commits WHERE number = 3", Wrong::Unchained, None);
    check("DELETE FROM commits WHERE number = 0", Wrong::Chain, None);
    check("DELETE FROM commits", Wrong::Head, None);
    for change in ["key = zeroblob(32)", "uuid = zeroblob(16)", "created = 0", "key = x''"] {
        check(&format!("UPDATE log SET {change}"), Wrong::Identity, None);
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

#[test]
fn a_second_writer_is_refused_and_told_who_writes() {
    let (directory, path) = place();
    let log = open(&path);
    let link = directory.path().join("other-name.log");
    std::os::unix::fs::symlink(&path, &link).unwrap();
    for path in [&path, &link] {
        let error = SqliteLog::open(path, Durability::Full).err();
        let path = log.path().to_owned();
        assert_eq!(error, Some(Error::Locked { path, process: Some(std::process::id()) }));
    }
    drop(log);
    drop(open(&link));
}

#[test]
fn readers_read_beside_a_writer_and_without_one() {
    let (_directory, path) = place();
    let log = open(&path);
    let reader = SqliteLog::open_read_only(&path).unwrap();
    let head = history(&log);
    assert_eq!(wait(reader.head()).unwrap(), head);
    assert_eq!(wait(reader.tail(0, 9)).unwrap(), wait(log.tail(0, 9)).unwrap());
    assert!(wait(reader.verify(Some(head))).unwrap().is_sound());
    assert_eq!(wait(reader.append(batch(&["z"], &[]))).err(), Some(Error::ReadOnly));
    assert_eq!(reader.identity(), log.identity());
    wait(log.close()).unwrap();
    assert_eq!(wait(reader.head()).unwrap(), head);
    drop(reader);
    assert!(wait(SqliteLog::open_read_only(&path).unwrap().verify(None)).unwrap().is_sound());
}

#[test]
fn a_file_in_a_place_nobody_may_write_to_is_read() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a log?#%20&ü.log");
    let log = open(&path);
    history(&log);
    let error = connect::unchanging(&path).err();
    assert!(matches!(error, Some(Error::Io(_))), "what isn't copied yet would be missed");
    drop(log);
    let db = connect::unchanging(&path).unwrap();
    let entries: i64 = db.query_row("SELECT count(*) FROM entries", [], |row| row.get(0)).unwrap();
    assert_eq!(entries, 6);
}

#[test]
fn what_is_no_log_of_ours_is_said_to_be() {
    let (directory, path) = place();
    let both = |path: &Path| {
        let writing = SqliteLog::open(path, Durability::Full).unwrap_err();
        assert_eq!(SqliteLog::open_read_only(path).unwrap_err(), writing);
        writing
    };
    for bytes in [&b"not a log"[..], &[7; 5_000]] {
        std::fs::write(&path, bytes).unwrap();
        assert_eq!(both(&path), Error::NotALog { path: path.clone() });
        assert_eq!(std::fs::read(&path).unwrap(), bytes, "it is left as it was");
    }
    std::fs::remove_file(&path).unwrap();
    Connection::open(&path).unwrap().execute_batch("CREATE TABLE mine (a)").unwrap();
    assert_eq!(both(&path), Error::NotALog { path: path.clone() });
    let (_newer, path, _) = written();
    Connection::open(&path).unwrap().execute_batch("PRAGMA user_version = 2").unwrap();
    let error = both(&path);
    assert_eq!(error, Error::Newer { path: path.clone(), format: 2 });
    assert!(error.to_string().contains("upgrade pumphouse"), "{error}");
    assert!(SqliteLog::open_read_only(directory.path().join("none")).is_err());
    assert!(SqliteLog::open(directory.path().join("no/where"), Durability::Full).is_err());
    assert!(SqliteLog::open(directory.path(), Durability::Full).is_err());
}

#[test]
fn a_cut_or_scribbled_file_never_panics() {
    let (directory, path, head) = written();
    let whole = std::fs::read(&path).unwrap();
    let copy = directory.path().join("copy.log");
    let mut sound = 0;
    let mut try_it = |bytes: &[u8], what: &str| {
        for beside in ["-wal", "-shm"] {
            let _ = std::fs::remove_file(connect::beside(&copy, beside));
        }
        std::fs::write(&copy, bytes).unwrap();
        if let Ok(log) = SqliteLog::open_read_only(&copy) {
            match wait(log.verify(Some(head))) {
                Ok(report) => sound += usize::from(report.is_sound()),
                Err(error) => assert!(!error.to_string().is_empty(), "{what}"),
            }
            let _ = wait(log.open_entries());
        }
        if let Err(error) = SqliteLog::open(&copy, Durability::Normal) {
            let typed = matches!(
                error,
                Error::Damaged { .. } | Error::NotALog { .. } | Error::Newer { .. } | Error::Io(_)
            );
            assert!(typed, "{what}: {error:?}");
        }
    };
    for length in (1..whole.len()).step_by(1_531) {
        try_it(&whole[..length], &format!("cut at {length}"));
    }
    for at in (0..whole.len()).step_by(3_079) {
        let mut bytes = whole.clone();
        let end = (at + 40).min(bytes.len());
        bytes[at..end].fill(0xa5);
        try_it(&bytes, &format!("scribbled at {at}"));
    }
    drop(try_it);
    // Some bytes belong to nobody; most do.
    assert!(sound < 20, "{sound}");
}

#[test]
fn a_full_disk_is_waited_for() {
    let (_directory, path) = place();
    let log = open(&path);
    history(&log);
    log.shared.trouble.pages_max.store(1, Ordering::Relaxed);
    let large = Draft { body: vec![b'x'; 1 << 20].into(), ..note("a/4") };
    let mut waiting = batch(&["z"], &[]);
    waiting.entries.push(large);
    let append = log.append(waiting);
    while log.health() == Health::Well {
        std::thread::yield_now();
    }
    assert_eq!(log.health(), Health::Full);
    let after = log.append(batch(&[], &["z/1"]));
    assert_eq!(wait(log.tail(0, 99)).unwrap().len(), 6);
    log.shared.trouble.pages_max.store(0, Ordering::Relaxed);
    assert_eq!(wait(append).unwrap().first_position, 7);
    assert_eq!(wait(after).unwrap().first_position, 8);
    assert_eq!(log.health(), Health::Well);
    assert!(wait(log.verify(None)).unwrap().is_sound());
}

#[test]
fn a_log_on_a_full_disk_can_be_closed() {
    let (_directory, path) = place();
    let log = open(&path);
    let head = history(&log);
    log.shared.trouble.pages_max.store(1, Ordering::Relaxed);
    let large = Draft { body: vec![b'x'; 1 << 20].into(), ..note("a/4") };
    let append = log.append(Batch { entries: vec![large], ..Batch::default() });
    while log.health() == Health::Well {
        std::thread::yield_now();
    }
    wait(log.close()).unwrap();
    assert_eq!(wait(append), Err(Error::Full));
    assert!(wait(open(&path).verify(Some(head))).unwrap().is_sound());
}

#[test]
fn a_failed_sync_poisons_for_good() {
    let (_directory, path) = place();
    let log = open(&path);
    let head = history(&log);
    log.shared.trouble.sync.store(true, Ordering::Relaxed);
    let appends = [log.append(batch(&[], &["a/4"])), log.append(batch(&[], &["a/5"]))];
    for append in appends {
        let refused = wait(append);
        assert!(matches!(refused, Err(Error::Poisoned(_))), "{refused:?}");
    }
    log.shared.trouble.sync.store(false, Ordering::Relaxed);
    assert!(matches!(log.health(), Health::Poisoned(_)));
    assert!(matches!(wait(log.append(batch(&[], &["a/4"]))), Err(Error::Poisoned(_))));
    assert_eq!(wait(log.head()).unwrap(), head, "it can still be read");
    assert!(matches!(wait(log.close()), Err(Error::Poisoned(_))));
    drop(log);
    keep(&open(&path), batch(&[], &["a/4"]));
}

#[test]
fn a_writer_that_went_past_the_lock_fences_us_off() {
    let (_directory, path) = place();
    let log = open(&path);
    history(&log);
    let other = Connection::open(&path).unwrap();
    other.execute("INSERT INTO commits VALUES (4, x'', 6, 4, x'', x'')", []).unwrap();
    assert!(matches!(wait(log.append(batch(&[], &["a/4"]))), Err(Error::Poisoned(_))));
}

#[test]
fn people_read_the_messages() {
    let (_directory, path, _) = written();
    let db = Connection::open(&path).unwrap();
    let row = |position: i64| -> Vec<String> {
        let sql = "SELECT thread, seq, time, \"from\", \"to\", namespace, name, cause, reply_to,
            flags, payload, meta, digest FROM messages WHERE position = ?1";
        db.query_row(sql, [position], |row| {
            let text = |at| -> rusqlite::Result<String> {
                Ok(match row.get_ref(at)? {
                    rusqlite::types::ValueRef::Text(text) => String::from_utf8_lossy(text).into(),
                    rusqlite::types::ValueRef::Integer(number) => number.to_string(),
                    _ => "-".to_owned(),
                })
            };
            (0..13).map(text).collect()
        })
        .unwrap()
    };
    let first = row(1);
    let time = "2023-11-14T22:13:20.000000Z";
    assert_eq!(first[..7], ["a", "1", time, "alice", "-", "urn:test", "note"]);
    assert_eq!(first[7..10], ["-", "-", "from-identity answer-wanted"]);
    assert_eq!(first[10..12], ["<note xmlns=\"urn:test\">a/1</note>", "-"]);
    let second = row(3);
    assert_eq!(second[4..5], ["alice"]);
    assert_eq!(second[7..10], ["a/1", "a/1", ""]);
    assert_eq!(second[11], "<trace xmlns=\"urn:x\"/>");
    let log = SqliteLog::open_read_only(&path).unwrap();
    let digest = wait(log.tail(2, 1)).unwrap()[0].digest;
    assert_eq!(second[12], blake3::Hash::from_bytes(digest).to_hex().as_str());
}

#[test]
fn many_senders_share_a_commit() {
    let (_directory, path) = place();
    let log = Arc::new(SqliteLog::open(&path, Durability::Full).unwrap());
    let senders: Vec<_> = (0..8)
        .map(|sender| {
            let log = log.clone();
            std::thread::spawn(move || {
                let id = format!("t{sender}");
                keep(&*log, batch(&[&id], &[]));
                let appends: Vec<_> = (1..=200)
                    .map(|seq| log.append(batch(&[], &[&format!("{id}/{seq}")])))
                    .collect();
                for append in appends {
                    wait(append).unwrap();
                }
            })
        })
        .collect();
    for sender in senders {
        sender.join().unwrap();
    }
    let report = wait(log.verify(None)).unwrap();
    assert!(report.is_sound(), "{:?}", report.findings);
    assert_eq!(report.entries, 1_600);
    assert!(report.commits < 1_600, "{}", report.commits);
}

#[test]
fn the_write_ahead_log_is_bounded() {
    let (_directory, path) = place();
    let log = open(&path);
    keep(&log, batch(&["a"], &[]));
    let mut longest = 0;
    for seq in 1..=120 {
        let body = vec![b'x'; 1 << 20].into();
        let entries = vec![Draft { body, ..note(&format!("a/{seq}")) }];
        keep(&log, Batch { entries, ..Batch::default() });
        let length = std::fs::metadata(connect::beside(&path, "-wal")).unwrap().len();
        longest = longest.max(length);
    }
    assert!(longest < 24 << 20, "{longest}");
}

/// A step of a random history; numbers choose among what is there.
#[derive(Clone, Debug)]
enum Step {
    Open { parent: Option<u8>, fork: Option<(u8, u8)> },
    Append { entries: Vec<(u8, u8, u8)>, marks: Vec<(u8, u8, u8)> },
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let open = (proptest::option::of(0..8u8), proptest::option::of((0..8u8, 0..6u8)))
        .prop_map(|(parent, fork)| Step::Open { parent, fork });
    let number = || (any::<u8>(), any::<u8>(), any::<u8>());
    let append =
        (proptest::collection::vec(number(), 0..5), proptest::collection::vec(number(), 0..4))
            .prop_map(|(entries, marks)| Step::Append { entries, marks });
    proptest::collection::vec(prop_oneof![1 => open, 3 => append], 1..24)
}

/// The batch of a step: mostly right, sometimes wrong, so that refusals are compared as well.
fn batch_of(step: &Step, opened: &mut Vec<String>, lasts: &dyn Fn(&str) -> u64) -> Batch {
    let mut batch = Batch::default();
    match step {
        Step::Open { parent, fork } => {
            let id = format!("t{}", opened.len());
            let parent = parent.map(|at| thread(&format!("t{at}")));
            let fork = fork.map(|(at, seq)| entry(&format!("t{at}/{}", seq + 1)));
            batch.threads.push(NewThread { id: thread(&id), parent, fork });
            opened.push(id);
        }
        Step::Append { entries, marks } => {
            let mut next = std::collections::HashMap::new();
            for (choice, link, extra) in entries {
                let id = format!("t{}", usize::from(*choice) % (opened.len() + 1));
                let seq = next.entry(id.clone()).or_insert_with(|| lasts(&id));
                *seq += if *extra == 255 { 2 } else { 1 };
                let mut draft = note(&format!("{id}/{seq}"));
                draft.receivers = u32::from(extra % 3);
                if link % 3 == 0 && *seq > 1 {
                    draft.cause =
                        Some(entry(&format!("{id}/{}", 1 + u64::from(*link) % (*seq - 1))));
                }
                if link % 7 == 0 {
                    draft.client_id = Some(format!("c{}", extra % 16).into());
                    draft.flags = Flags::of_bits(u32::from(extra % 2));
                }
                batch.entries.push(draft);
            }
            for (choice, seq, attempt) in marks {
                let id = format!("t{}", usize::from(*choice) % (opened.len() + 1));
                let seq = 1 + u64::from(*seq) % (lasts(&id) + 1).max(1);
                let entry = entry(&format!("{id}/{seq}"));
                let (listener, attempt) = (format!("l{}", attempt % 3).into(), u32::from(*attempt));
                batch.marks.push(match choice % 2 {
                    0 => Mark::Started { entry, listener, attempt },
                    _ => Mark::Consumed { entry, listener, attempt },
                });
            }
        }
    }
    batch
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]
    #[test]
    fn a_file_answers_as_memory_does(steps in steps()) {
        let (_directory, path) = place();
        let mut file = open(&path);
        let memory = MemoryLog::new();
        let mut opened = Vec::new();
        for (at, step) in steps.iter().enumerate() {
            let lasts = |id: &str| {
                let record = wait(memory.thread(&thread(id))).unwrap();
                record.map_or(0, |it| it.last_seq)
            };
            let batch = batch_of(step, &mut opened, &lasts);
            let kept = |receipt: Receipt| (receipt.first_position, receipt.entries, receipt.head.number);
            let ours = wait(file.append(batch.clone())).map(kept);
            let theirs = wait(memory.append(batch)).map(kept);
            prop_assert_eq!(ours, theirs);
            if at % 7 == 6 {
                drop(file);
                file = open(&path);
            }
        }
        prop_assert_eq!(wait(file.tail(0, 999)), wait(memory.tail(0, 999)));
        prop_assert_eq!(wait(file.threads(None, 999)), wait(memory.threads(None, 999)));
        prop_assert_eq!(wait(file.open_entries()), wait(memory.open_entries()));
        for id in &opened {
            let id = thread(id);
            prop_assert_eq!(wait(file.thread(&id)), wait(memory.thread(&id)));
            for (after, upto, limit) in [(0, 99, 99), (1, 4, 2), (2, 99, 1)] {
                let ours = wait(file.read(&id, after, upto, limit));
                prop_assert_eq!(ours, wait(memory.read(&id, after, upto, limit)));
            }
        }
        for log in [&file as &dyn Log, &memory] {
            let report = wait(log.verify(None)).unwrap();
            prop_assert!(report.is_sound(), "{:?}", report.findings);
        }
    }
}
