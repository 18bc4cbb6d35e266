//! Files that are cut off, damaged, or not a log.

use std::cell::Cell;

use rusqlite::Connection;

use super::*;
use crate::log::conformance::{batch, wait};

/// A process that is killed leaves the database file and a part of its write-ahead log, which may
/// be cut after any byte.
#[test]
fn what_a_killed_process_leaves_is_a_whole_log() {
    let (directory, path) = place();
    let log = open(&path);
    let mut heads = vec![wait(log.head()).unwrap()];
    for seq in 1..=12 {
        let threads: &[&str] = if seq == 1 { &["a"] } else { &[] };
        heads.push(keep(&log, batch(threads, &[&format!("a/{seq}")])).head);
    }
    let wal = std::fs::read(files::beside(&path, "-wal")).unwrap();
    let copy = directory.path().join("copy.log");
    let mut seen = 0;
    for length in (0..=wal.len()).rev().step_by(997) {
        std::fs::copy(&path, &copy).unwrap();
        std::fs::write(files::beside(&copy, "-wal"), &wal[..length]).unwrap();
        let _ = std::fs::remove_file(files::beside(&copy, "-shm"));
        let log = match SqliteLog::open(&copy, Durability::Full) {
            Ok(log) => log,
            Err(error) => panic!("{length}: {error}"),
        };
        let report = wait(log.verify(None)).unwrap();
        assert!(report.is_sound(), "{length}: {:?}", report.findings);
        // If the write-ahead log is very short, even the making of the log is lost.
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

#[test]
fn a_damaged_write_ahead_log_ends_early_and_a_head_kept_elsewhere_finds_it() {
    let (directory, path) = place();
    let log = open(&path);
    let mut head = wait(log.head()).unwrap();
    for seq in 1..=12 {
        let threads: &[&str] = if seq == 1 { &["a"] } else { &[] };
        head = keep(&log, batch(threads, &[&format!("a/{seq}")])).head;
    }
    let (copy, beside) = (directory.path().join("copy.log"), |path| files::beside(path, "-wal"));
    std::fs::copy(&path, &copy).unwrap();
    let mut rest = std::fs::read(beside(&path)).unwrap();
    let middle = rest.len() / 2;
    rest[middle] ^= 1;
    std::fs::write(beside(&copy), rest).unwrap();
    let log = SqliteLog::open(&copy, Durability::Full).unwrap();
    let alone = wait(log.verify(None)).unwrap();
    assert!(alone.is_sound() && alone.head.number < head.number, "{alone:?}");
    assert!(!wait(log.verify(Some(head))).unwrap().is_sound());
}

fn open_identity(path: &Path) -> Identity {
    SqliteLog::open_read_only(path).unwrap().identity()
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
    assert!(SqliteLog::open_read_only(directory.path().join("none")).is_err());
    assert!(SqliteLog::open(directory.path().join("no/where"), Durability::Full).is_err());
    assert!(SqliteLog::open(directory.path(), Durability::Full).is_err());
}

#[test]
fn a_cut_or_scribbled_file_never_panics() {
    let (directory, path, head) = written();
    let whole = std::fs::read(&path).unwrap();
    let copy = directory.path().join("copy.log");
    let sound = Cell::new(0);
    let try_it = |bytes: &[u8], what: &str| {
        for beside in ["-wal", "-shm"] {
            let _ = std::fs::remove_file(files::beside(&copy, beside));
        }
        std::fs::write(&copy, bytes).unwrap();
        if let Ok(log) = SqliteLog::open_read_only(&copy) {
            match wait(log.verify(Some(head))) {
                Ok(report) => sound.set(sound.get() + usize::from(report.is_sound())),
                Err(error) => assert!(!error.to_string().is_empty(), "{what}"),
            }
            let _ = wait(log.open_entries());
        }
        if let Err(error) = SqliteLog::open(&copy, Durability::Normal) {
            let typed = matches!(
                error,
                Error::Damaged { .. }
                    | Error::NotALog { .. }
                    | Error::OtherFormat { .. }
                    | Error::Io(_)
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
    // A few bytes of the file have no meaning, so changing them does no harm.
    assert!(sound.get() < 20, "{sound:?}");
}
