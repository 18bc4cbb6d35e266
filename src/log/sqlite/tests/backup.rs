//! Backups: a backup either makes a complete and sound copy of one moment, or leaves no copy.

use std::sync::mpsc::sync_channel;

use rusqlite::Connection;

use super::*;
use crate::log::conformance::{batch, note, wait};
use crate::log::entry::Draft;
use crate::log::sqlite::{Copied, Existing};

fn backup(log: &SqliteLog, to: &Path, existing: Existing) -> Result<Report, Error> {
    wait(log.backup(to, existing, |_| {}))
}

/// The names of the files in a folder that begin with the copy's name.
fn copies(directory: &TempDir) -> Vec<String> {
    let entries = std::fs::read_dir(directory.path()).unwrap();
    let name = |it: io::Result<std::fs::DirEntry>| it.unwrap().file_name();
    let names = entries.map(|it| name(it).into_string().unwrap());
    names.filter(|it| it.starts_with("copy.log")).collect()
}

#[test]
fn a_backup_is_the_log_as_it_was_when_it_began() {
    let (directory, path) = place();
    let log = open(&path);
    let head = history(&log);
    let copy = directory.path().join("copy.log");
    let report = backup(&log, &copy, Existing::Keep).unwrap();
    assert_eq!((report.head, report.entries, report.is_sound()), (head, 6, true));
    keep(&log, batch(&[], &["a/4"]));
    drop(log);
    assert_eq!(copies(&directory), ["copy.log"]);
    let restored = open(&copy);
    assert_eq!(wait(restored.head()).unwrap(), head);
    keep(&restored, batch(&[], &["a/4"]));
    assert!(wait(restored.verify(Some(head))).unwrap().is_sound());
    // A head that was kept elsewhere shows that later entries are missing.
    let later = wait(open(&path).head()).unwrap();
    let report = wait(restored.verify(Some(later))).unwrap();
    assert_eq!(report.findings[0].wrong, crate::log::verify::Wrong::Head);
}

#[test]
fn a_backup_ends_beside_a_writer_who_never_stops() {
    let (directory, path) = place();
    let log = Arc::new(open(&path));
    keep(&*log, batch(&["a"], &[]));
    for seq in 1..=12 {
        let entries = vec![Draft { body: vec![b'x'; 1 << 20].into(), ..note(&format!("a/{seq}")) }];
        keep(&*log, Batch { entries, ..Batch::default() });
    }
    let mut steps = Vec::new();
    let (step, stepped) = sync_channel(0);
    let writer = log.clone();
    let copy = directory.path().join("copy.log");
    // Each step of the backup waits until the writer has written once more.
    let copying = log.backup(&copy, Existing::Keep, move |copied: Copied| {
        let _ = step.send(copied);
    });
    let mut seq = 12;
    while let Ok(copied) = stepped.recv() {
        seq += 1;
        keep(&*writer, batch(&[], &[&format!("a/{seq}")]));
        steps.push(copied);
    }
    let report = wait(copying).unwrap();
    assert!(steps.len() > 2 && steps.is_sorted_by_key(|it| it.bytes), "{steps:?}");
    let last = steps.last().unwrap();
    assert_eq!(last.bytes, last.of);
    assert_eq!(last.of, std::fs::metadata(&copy).unwrap().len());
    assert_eq!(report.entries, 12, "nothing of what came meanwhile");
    assert!(wait(log.verify(Some(report.head))).unwrap().is_sound(), "it is on the log's chain");
}

#[test]
fn a_backup_that_nobody_waits_for_leaves_nothing() {
    let (directory, path, _) = written();
    let log = SqliteLog::open_read_only(&path).unwrap();
    let (step, stepped) = sync_channel(0);
    let copy = directory.path().join("copy.log");
    let copying = log.backup(&copy, Existing::Keep, move |_| {
        let _ = step.send(());
    });
    assert_eq!(copies(&directory).len(), 1, "half a copy");
    drop(copying);
    let _ = stepped.recv();
    assert_eq!(copies(&directory), [""; 0]);
}

#[test]
fn what_stands_in_the_way_of_a_backup_stays() {
    let (directory, path, head) = written();
    let log = SqliteLog::open_read_only(&path).unwrap();
    let copy = directory.path().join("copy.log");
    std::fs::write(&copy, "mine").unwrap();
    let refused = |to: &Path, existing, why: &str| {
        let error = backup(&log, to, existing).unwrap_err();
        assert!(matches!(&error, Error::Io(text) if text.contains(why)), "{error}");
    };
    refused(&copy, Existing::Keep, "is there already");
    assert_eq!(std::fs::read(&copy).unwrap(), b"mine");
    refused(&path, Existing::Replace, "the log itself");
    refused(directory.path(), Existing::Replace, "is a folder");
    refused(&directory.path().join("no/where"), Existing::Keep, "no/where");
    std::fs::write(files::beside(&copy, "-wal"), "not mine").unwrap();
    refused(&copy, Existing::Replace, "the write-ahead log beside it");
    std::fs::remove_file(files::beside(&copy, "-wal")).unwrap();
    assert_eq!(backup(&log, &copy, Existing::Replace).unwrap().head, head);
    assert_eq!(copies(&directory), ["copy.log"]);
}

#[test]
fn a_backup_takes_the_place_of_no_log_in_use_however_idle() {
    let (directory, path) = place();
    let log = open(&path);
    let copy = directory.path().join("copy.log");
    drop(open(&copy));
    let idle = open(&copy);
    let refused = backup(&log, &copy, Existing::Replace).unwrap_err();
    assert!(refused.to_string().contains("a pump writes to a log there"), "{refused}");
    drop(idle);
    let report = backup(&log, &copy, Existing::Replace).unwrap();
    assert_eq!(report.head, wait(log.head()).unwrap());
}

#[test]
fn a_damaged_log_has_no_backup() {
    let (directory, path, _) = written();
    let db = Connection::open(&path).unwrap();
    let change = "DROP TRIGGER entries_no_update; UPDATE entries SET time = 0 WHERE position = 3";
    db.execute_batch(change).unwrap();
    drop(db);
    let log = SqliteLog::open_read_only(&path).unwrap();
    let error = backup(&log, &directory.path().join("copy.log"), Existing::Keep).unwrap_err();
    assert!(matches!(&error, Error::Damaged { path: it, .. } if *it == path), "{error}");
    assert_eq!(copies(&directory), [""; 0]);
}

#[cfg(unix)]
#[test]
fn a_backup_is_for_its_owners_eyes_only() {
    use std::os::unix::fs::PermissionsExt as _;
    let (directory, path, _) = written();
    let copy = directory.path().join("copy.log");
    backup(&SqliteLog::open_read_only(&path).unwrap(), &copy, Existing::Keep).unwrap();
    assert_eq!(std::fs::metadata(&copy).unwrap().permissions().mode() & 0o777, 0o600);
}
