//! A disk that is full or fails, and a writer that went past the lock.

use rusqlite::Connection;

use super::*;
use crate::log::Draft;
use crate::log::suite::{batch, note, wait};

/// Leaves a disk no room, and adds `a/4`, a large one, to a batch: it waits until there is some.
fn without_room(log: &SqliteLog, mut batch: Batch) -> Boxed<'static, Receipt> {
    log.shared.trouble.pages_max.store(1, Ordering::Relaxed);
    batch.entries.push(Draft { body: vec![b'x'; 1 << 20].into(), ..note("a/4") });
    let append = log.append(batch);
    while log.health() == Health::Well {
        std::thread::yield_now();
    }
    append
}

#[test]
fn a_full_disk_is_waited_for() {
    let (_directory, path) = place();
    let log = open(&path);
    history(&log);
    let append = without_room(&log, batch(&["z"], &[]));
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
    let append = without_room(&log, Batch::default());
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
fn what_could_not_be_trusted_is_in_the_file_before_the_log_goes_on() {
    let (_directory, path) = place();
    let rest = || std::fs::metadata(connect::beside(&path, "-wal")).map_or(0, |it| it.len());
    let is_marked = || connect::beside(&path, "-failed").exists();
    let log = open(&path);
    let head = history(&log);
    log.shared.poison("a test");
    assert!(matches!(wait(log.close()), Err(Error::Poisoned(_))));
    drop(log);
    assert!(rest() > 0, "nobody copied it, and it is gone");
    assert!(is_marked());
    let log = open(&path);
    assert_eq!(rest(), 0);
    assert!(!is_marked());
    assert!(wait(log.verify(Some(head))).unwrap().is_sound());
    keep(&log, batch(&[], &["a/4"]));
}

#[test]
fn what_could_not_be_trusted_waits_for_whoever_knows_it_copied() {
    let (_directory, path) = place();
    let log = open(&path);
    history(&log);
    let reader = connect::reading(&path).unwrap();
    let copier = connect::writing(&path).unwrap();
    assert!(!copy::copy(&copier).unwrap());
    log.shared.poison("a test");
    drop((copier, log));
    // It only has it open, as one does that follows the log.
    let refused = SqliteLog::open(&path, Durability::Normal);
    assert!(matches!(&refused, Err(Error::Io(why)) if why.contains("end whoever reads it")));
    drop(reader);
    keep(&open(&path), batch(&[], &["a/4"]));
}

#[test]
fn whoever_waits_for_room_is_refused_when_the_log_is_poisoned_meanwhile() {
    let (_directory, path) = place();
    let log = open(&path);
    let head = history(&log);
    let append = without_room(&log, Batch::default());
    log.shared.poison("a test");
    log.shared.trouble.pages_max.store(0, Ordering::Relaxed);
    assert!(matches!(wait(append), Err(Error::Poisoned(_))));
    assert_eq!(wait(log.head()).unwrap(), head);
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
