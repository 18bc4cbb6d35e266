//! A disk that is full or fails, and another program that writes in spite of the lock.

use rusqlite::Connection;

use super::*;
use crate::log::conformance::{batch, note, wait};
use crate::log::entry::Draft;

/// Simulates a full disk, and appends a batch with the large entry `a/4`. The append waits until
/// there is room.
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
    let rest = || std::fs::metadata(files::beside(&path, "-wal")).map_or(0, |it| it.len());
    let is_marked = || files::beside(&path, "-failed").exists();
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
    let checkpointer = connect::writing(&path).unwrap();
    assert!(!wal::passive(&checkpointer).unwrap());
    log.shared.poison("a test");
    drop((checkpointer, log));
    // `reader` only has the file open, like a program that follows the log.
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

#[test]
fn a_reading_that_the_disk_failed_once_is_no_damage() {
    let damaged = || Err::<u8, _>(schema::damaged(Path::new("a.db"), "its pages"));
    let mut answers = VecDeque::from([damaged(), Ok(1)]);
    assert_eq!(twice(|| answers.pop_front().unwrap()), Ok(1));
    let mut answers = VecDeque::from([damaged(), damaged()]);
    assert_eq!(twice(|| answers.pop_front().unwrap()), damaged());
}

#[test]
fn where_room_is_short_the_write_ahead_log_stays_short() {
    let (_directory, path) = place();
    let log = open(&path);
    log.shared.trouble.room.store(8 << 20, Ordering::Relaxed);
    keep(&log, batch(&["a"], &[]));
    for seq in 1..=400 {
        keep(&log, long(seq, 64 << 10));
    }
    let length = std::fs::metadata(files::beside(&path, "-wal")).unwrap().len();
    assert!(length < 6 << 20, "{length}");
    assert!(wait(log.verify(None)).unwrap().is_sound());
}

/// Waits up to two seconds until the log is poisoned, without using the log meanwhile. Returns the
/// reason.
#[cfg(unix)]
fn poisoned(log: &SqliteLog) -> String {
    for _ in 0..200 {
        if let Health::Poisoned(why) = log.health() {
            return why.to_string();
        }
        std::thread::park_timeout(Duration::from_millis(10));
    }
    panic!("nobody noticed");
}

#[cfg(unix)]
#[test]
fn a_log_that_isnt_where_it_was_takes_no_more() {
    type Way = fn(&Path);
    let ways: [Way; 4] = [
        |path| std::fs::remove_file(path).unwrap(),
        |path| std::fs::rename(path, path.with_extension("old")).unwrap(),
        |path| {
            std::fs::rename(path, path.with_extension("old")).unwrap();
            std::os::unix::fs::symlink(path.with_extension("old"), path).unwrap();
        },
        |path| {
            std::fs::write(path.with_extension("new"), "else").unwrap();
            std::fs::rename(path.with_extension("new"), path).unwrap();
        },
    ];
    for way in ways {
        let (_directory, path) = place();
        let log = open(&path);
        history(&log);
        way(&path);
        let refused = wait(log.append(batch(&[], &["a/4"])));
        assert!(matches!(refused, Err(Error::Poisoned(_))), "{refused:?}");
        assert!(matches!(wait(log.close()), Err(Error::Poisoned(_))));
        // A log that isn't written to is poisoned as well.
        let (_directory, path) = place();
        let log = SqliteLog::open(&path, Durability::Full).unwrap();
        way(&path);
        assert!(poisoned(&log).contains("removed, renamed or replaced"));
    }
}

#[cfg(unix)]
#[test]
fn what_a_removed_write_ahead_log_had_is_copied_into_the_file() {
    let (_directory, path) = place();
    let log = open(&path);
    let head = history(&log);
    std::fs::remove_file(files::beside(&path, "-wal")).unwrap();
    assert!(poisoned(&log).contains("-wal was removed"));
    assert!(matches!(wait(log.close()), Err(Error::Poisoned(_))));
    drop(log);
    assert!(wait(open(&path).verify(Some(head))).unwrap().is_sound());
}

#[cfg(unix)]
#[test]
fn a_write_ahead_log_without_its_file_is_left_alone() {
    let (_directory, path) = place();
    let log = open(&path);
    let head = history(&log);
    let away = path.with_extension("away");
    std::fs::rename(&path, &away).unwrap();
    assert!(poisoned(&log).contains("removed, renamed or replaced"));
    drop(log);
    let refused = SqliteLog::open(&path, Durability::Full).unwrap_err().to_string();
    assert!(refused.contains("put the file back"), "{refused}");
    std::fs::rename(&away, &path).unwrap();
    assert!(wait(open(&path).verify(Some(head))).unwrap().is_sound());
}

#[cfg(target_os = "linux")]
#[test]
fn a_hard_link_is_the_same_log() {
    let (_directory, path) = place();
    let (_elsewhere, link) = place();
    let log = open(&path);
    std::fs::hard_link(&path, &link).unwrap();
    let second = SqliteLog::open(&link, Durability::Full).err();
    assert_eq!(second, Some(Error::Locked { path: link.clone(), process: None }));
    let reader = SqliteLog::open_read_only(&path).unwrap();
    for own in [path.clone(), link.clone(), files::beside(&path, "-failed")] {
        assert!(reader.file_outside(&own, IfExists::Replace).is_err(), "{own:?}");
    }
    assert!(reader.file_outside(&path.with_extension("other"), IfExists::Keep).is_ok());
    drop((log, reader));
    drop(open(&path));
}
