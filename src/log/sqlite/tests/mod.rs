//! Tests for a log in a file, which can survive a restart, be damaged, be full, or be locked by
//! another process.

mod backup;
mod damage;
mod disk;
mod formats;
mod history;
mod pages;
mod shares;
mod tamper;

use std::cell::Cell;
use std::collections::VecDeque;
use std::sync::atomic::Ordering;
use std::time::Duration;

use rusqlite::Connection;
use tempfile::TempDir;

use super::*;
use crate::log::conformance;
use crate::log::conformance::{batch, consumed, entry, note, session, started, thread, wait};
use crate::log::entry::{Draft, Flags, NewThread};

/// A path for a log in a directory of its own.
pub(super) fn place() -> (TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("organism.log");
    (directory, path)
}

pub(super) fn open(path: &Path) -> SqliteLog {
    SqliteLog::open(path, Durability::Normal).unwrap()
}

pub(super) fn keep(log: &dyn Log, batch: Batch) -> Receipt {
    wait(log.append(batch)).unwrap()
}

/// A batch with one entry of the thread `a`, whose body has this many bytes.
fn long(seq: u32, bytes: usize) -> Batch {
    let entries = vec![Draft { body: vec![b'x'; bytes].into(), ..note(&format!("a/{seq}")) }];
    Batch { entries, ..Batch::default() }
}

/// Appends three commits: two threads with a child and a fork, a client id, and marks.
pub(super) fn history(log: &dyn Log) -> Head {
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

/// A closed log with the commits of [`history`], and its head.
pub(super) fn written() -> (TempDir, PathBuf, Head) {
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
        conformance::all(&|| {
            count.set(count.get() + 1);
            let path = directory.path().join(format!("{}.log", count.get()));
            Box::new(SqliteLog::open(path, durability).unwrap())
        });
    }
}

#[test]
fn a_log_goes_on_where_it_ended() {
    let (_directory, path, head) = written();
    assert!(!files::beside(&path, "-wal").exists(), "one file is left behind");
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

#[cfg(unix)]
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
    for seq in 1..=360 {
        keep(&log, long(seq, 1 << 20));
        let length = std::fs::metadata(files::beside(&path, "-wal")).unwrap().len();
        longest = longest.max(length);
    }
    assert!(longest < 264 << 20, "{longest}");
}

#[test]
fn the_write_ahead_log_begins_anew_beside_steady_writing() {
    let (_directory, path) = place();
    let log = SqliteLog::open(&path, Durability::Full).unwrap();
    keep(&log, batch(&["a"], &[]));
    let append = |seq| log.append(long(seq, limits::BODY_BYTES_MAX + 1));
    // The writer always has batches to write, 320 MiB in all.
    let mut waiting: VecDeque<_> = (1..=8).map(append).collect();
    for seq in 9..=5_000 {
        wait(waiting.pop_front().unwrap()).unwrap();
        waiting.push_back(append(seq));
    }
    let length = std::fs::metadata(files::beside(&path, "-wal")).unwrap().len() >> 20;
    // Without a new beginning, it would have all 320 MiB.
    assert!((128..300).contains(&length), "{length} MiB");
}

#[test]
fn what_normal_writes_is_synced_each_second_though_a_reader_is_in_the_way_of_copies() {
    let (_directory, path) = place();
    let log = open(&path);
    keep(&log, batch(&["a"], &[]));
    let reader = Connection::open(&path).unwrap();
    reader.execute_batch("BEGIN; SELECT count(*) FROM entries").unwrap();
    // From here on, a copy is requested after each append, but the reader keeps the copy from
    // copying any page.
    (1..=160).for_each(|seq| drop(keep(&log, long(seq, 1 << 20))));
    let is_synced = || {
        std::thread::park_timeout(Duration::from_millis(1));
        !log.shared.unsynced.load(Ordering::Relaxed)
    };
    let was_synced = |seq: u32| {
        keep(&log, long(seq, 100));
        (0..3).any(|_| is_synced())
    };
    assert!((161..=2_000).any(was_synced));
}

#[test]
fn the_write_ahead_log_shrinks_again_once_nobody_holds_it_open() {
    let (_directory, path) = place();
    let log = open(&path);
    keep(&log, batch(&["a"], &[]));
    let reader = Connection::open(&path).unwrap();
    reader.execute_batch("BEGIN; SELECT count(*) FROM entries").unwrap();
    let append = |seq: u32| {
        keep(&log, long(seq, 1 << 20));
        std::fs::metadata(files::beside(&path, "-wal")).unwrap().len() >> 20
    };
    let held = (1..=340).map(append).max();
    assert!(held >= Some(340), "{held:?} MiB");
    reader.execute_batch("COMMIT").unwrap();
    // The write-ahead log starts from its beginning when all of it was copied before the next
    // append.
    let shrank = (341..=420).any(|seq| {
        std::thread::park_timeout(Duration::from_millis(20));
        append(seq) <= 321
    });
    assert!(shrank);
}
