//! The log of this format that is kept, and logs of other formats.

use rusqlite::Connection;

use super::*;
use crate::log::conformance::wait;

/// The log of this format that `tests/logs` keeps.
fn kept() -> (TempDir, PathBuf) {
    let name = format!("../../tests/logs/format-{}.sql", Identity::FORMAT);
    let sql = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(&name));
    let sql = sql.unwrap_or_else(|error| panic!("{name}: {error}"));
    let (directory, path) = place();
    Connection::open(&path).unwrap().execute_batch(&sql).unwrap();
    (directory, path)
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
fn a_change_of_the_layout_takes_the_next_number() {
    let ((_first, kept), (_second, path)) = (kept(), place());
    drop(open(&path));
    let what = "the layout is another than that of tests/logs: it takes the next number, and a log \
                of it takes the place of the one that is kept";
    assert!(layout(&kept) == layout(&path), "{what}");
}

#[test]
fn the_log_that_is_kept_is_sound_and_goes_on() {
    let (_directory, path) = kept();
    let reader = SqliteLog::open_read_only(&path).unwrap();
    let before = wait(reader.verify(None)).unwrap();
    assert!(before.is_sound() && before.entries > 5, "{:?}", before.findings);
    let entries = wait(reader.tail(0, 999)).unwrap();
    drop(reader);
    let log = open(&path);
    assert_eq!(wait(log.tail(0, 999)).unwrap(), entries);
    assert_eq!(wait(log.open_entries()).unwrap().len(), 1);
    let id = entries[0].id.thread.clone();
    let next = wait(log.thread(&id)).unwrap().unwrap().last_seq + 1;
    keep(&log, batch(&["new"], &["new/1", &format!("{id}/{next}")]));
    assert!(wait(log.verify(Some(before.head))).unwrap().is_sound());
}

#[test]
fn a_log_of_another_format_is_refused_with_advice_and_left_as_it_is() {
    for (format, advice) in [
        (1, "the program that wrote it reads it, and so does sqlite3"),
        (2, "the program that wrote it reads it, and so does sqlite3"),
        (Identity::FORMAT + 1, "upgrade pumphouse"),
    ] {
        let (_directory, path, _) = written();
        let change = format!("PRAGMA user_version = {format}");
        Connection::open(&path).unwrap().execute_batch(&change).unwrap();
        let bytes = std::fs::read(&path).unwrap();
        for error in [
            SqliteLog::open(&path, Durability::Full).unwrap_err(),
            SqliteLog::open_read_only(&path).unwrap_err(),
        ] {
            assert_eq!(error, Error::OtherFormat { path: path.clone(), format });
            let told = format!("has format {format}, and this version reads 3; {advice}");
            assert!(error.to_string().ends_with(&told), "{error}");
        }
        assert_eq!(std::fs::read(&path).unwrap(), bytes);
    }
}
