//! Text that several bodies share is stored once, and is read in each of them.

use proptest::prelude::*;

use super::*;
use crate::log::conformance::wait;
use crate::log::sqlite::Existing;
use crate::log::verify::Wrong;

/// Text that is long enough to be shared, different for each number, with characters of one to four
/// bytes.
fn text(number: u64, bytes: usize) -> String {
    let words = ["thought ", "wäre ", "思考 ", "🐟 ", "&lt;a&gt; ", "x"];
    let mut text = format!("{number}: ");
    for at in (number * 7..).map(|it| it * it % 31) {
        text.push_str(words[usize::try_from(at).unwrap() % words.len()]);
        if text.len() >= bytes {
            return text;
        }
    }
    text
}

fn said(id: &str, body: impl Into<Vec<u8>>) -> Draft {
    Draft { body: body.into().into(), receivers: 1, ..note(id) }
}

/// The entries of an agent's turn: a thought, a response, and an entry that repeats both.
fn turn(thread: &str, first: u64, bytes: usize) -> Vec<Draft> {
    let (thought, response) = (text(first, bytes), text(first + 1, bytes));
    let all = format!("&lt;thought&gt;{thought}&lt;/thought&gt;\n<b/>{response}");
    let turn = [
        format!("<thought xmlns=\"urn:test\">{thought}</thought>"),
        format!("<response xmlns=\"urn:test\">{response}</response>"),
        format!("<cognition_out xmlns=\"urn:test\"><text>{all}</text></cognition_out>"),
    ];
    let ids = (first..).map(|seq| format!("{thread}/{seq}"));
    ids.zip(turn).map(|(id, body)| said(&id, body)).collect()
}

fn count(path: &Path) -> i64 {
    let db = Connection::open(path).unwrap();
    db.query_row("SELECT count(*) FROM shares", [], |row| row.get(0)).unwrap()
}

/// A turn like [`turn`], but with the response after the entry that repeats it.
fn last_turn(thread: &str, first: u64, bytes: usize) -> Vec<Draft> {
    let mut turn = turn(thread, first, bytes);
    turn.swap(1, 2);
    let ids = [1, 2].map(|at| turn[at].id.clone());
    [turn[2].id, turn[1].id] = ids;
    turn
}

/// A closed log with one turn in the thread `a` and one in `b`.
fn one_turn() -> (TempDir, PathBuf, Head) {
    let (directory, path) = place();
    let log = open(&path);
    let entries = [turn("a", 1, 700), turn("b", 1, 700)].concat();
    let head = keep(&log, Batch { entries, ..batch(&["a", "b"], &[]) }).head;
    wait(log.close()).unwrap();
    assert_eq!(count(&path), 4);
    (directory, path, head)
}

/// Checks that every way to read a log returns what was written, by position.
fn reads_as_written(path: &Path, written: &[Draft]) {
    let (writing, reading) = (open(path), SqliteLog::open_read_only(path).unwrap());
    for log in [&writing, &reading] {
        let same = |entries: &[Arc<Entry>], which: &dyn Fn(&&Draft) -> bool| {
            let expected = written.iter().filter(which);
            assert!(
                entries
                    .iter()
                    .map(|it| (&it.id, &it.body))
                    .eq(expected.map(|it| (&it.id, &it.body)))
            );
        };
        same(&wait(log.tail(0, usize::MAX)).unwrap(), &|_| true);
        let open = wait(log.open_entries()).unwrap();
        let open: Vec<_> = open.into_iter().map(|it| it.entry).collect();
        same(&open, &|it| it.receivers > 0);
        for (at, draft) in (1..).zip(written) {
            assert_eq!(wait(log.tail(at - 1, 1)).unwrap()[0].body, draft.body);
        }
        for id in ["a", "b"].map(thread) {
            same(&wait(log.read(&id, 0, u64::MAX, usize::MAX)).unwrap(), &|it| it.id.thread == id);
            let first = wait(log.thread(&id)).unwrap().unwrap().first;
            let first = first.as_slice();
            same(first, &|it| it.id.thread == id && it.id.seq == 1);
        }
        let report = wait(log.verify(None)).unwrap();
        assert!(report.is_sound(), "{:?}", report.findings);
    }
    let db = Connection::open(path).unwrap();
    let mut payloads = db.prepare("SELECT payload FROM messages ORDER BY position").unwrap();
    let payloads = payloads.query_map([], |row| Ok(row.get_ref(0)?.as_bytes().unwrap().to_vec()));
    let payloads: Vec<Vec<u8>> = payloads.unwrap().collect::<Result<_, _>>().unwrap();
    assert!(payloads.iter().eq(written.iter().map(|it| &it.body)));
}

/// Random bodies that are made of some texts, cut here and there, with or without tags.
fn bodies() -> impl Strategy<Value = Vec<(bool, Vec<u8>)>> {
    let piece = prop_oneof![
        4 => (0..4u64).prop_map(|it| text(it, 600)),
        1 => (0..4u64).prop_map(|it| text(it, 600).split_off(3)),
        1 => (0..4u64).prop_map(|it| format!("<i>{}</i>", text(it, 600))),
        1 => Just(format!("{}{}", text(1, 600), text(2, 600))),
        1 => Just("x".repeat(1_200)),
        1 => Just(text(5, 70_000)),
        2 => Just(String::new()),
        2 => "[<>a-cä]{0,9}",
    ];
    let pieces = proptest::collection::vec(piece, 0..5).prop_map(|it| it.concat());
    let body = prop_oneof![
        8 => pieces.clone().prop_map(|it| format!("<note a=\">\">{it}</note>").into_bytes()),
        1 => pieces.prop_map(String::into_bytes),
        1 => proptest::collection::vec(any::<u8>(), 0..900),
    ];
    proptest::collection::vec((any::<bool>(), body), 1..24)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, ..ProptestConfig::default() })]
    #[test]
    fn bodies_are_read_as_they_were_written(bodies in bodies(), at_once in 1..9usize) {
        let (_directory, path) = place();
        let mut log = open(&path);
        keep(&log, batch(&["a", "b"], &["a/1", "b/1"]));
        let mut written = batch(&[], &["a/1", "b/1"]).entries;
        let mut lasts = [1, 1];
        for (at, some) in bodies.chunks(at_once).enumerate() {
            let entries = some.iter().map(|(is_a, body)| {
                let thread = usize::from(*is_a);
                lasts[thread] += 1;
                said(&format!("{}/{}", ["b", "a"][thread], lasts[thread]), body.clone())
            });
            let entries: Vec<Draft> = entries.collect();
            written.extend(entries.clone());
            keep(&log, Batch { entries, ..Batch::default() });
            if at % 4 == 3 {
                drop(log);
                log = open(&path);
            }
        }
        drop(log);
        reads_as_written(&path, &written);
    }
}

#[test]
fn what_an_agent_said_stands_in_the_file_once() {
    let (directory, path) = place();
    let log = open(&path);
    keep(&log, batch(&["a", "b"], &["a/1", "b/1"]));
    let mut written = batch(&[], &["a/1", "b/1"]).entries;
    for first in (2..).step_by(3).take(100) {
        let turn = if first % 5 == 0 { last_turn } else { turn };
        let entries = turn("a", first, 2_048);
        written.extend(entries.clone());
        keep(&log, Batch { entries, ..Batch::default() });
    }
    wait(log.close()).unwrap();
    let text: u64 = 100 * 2 * 2_048;
    let size = std::fs::metadata(&path).unwrap().len();
    assert_eq!(count(&path), 200);
    assert!(size * 10 < text * 24, "{size} bytes for {text} of text");
    reads_as_written(&path, &written);
    let copy = directory.path().join("copy.log");
    wait(SqliteLog::open_read_only(&path).unwrap().backup(&copy, Existing::Keep, |_| {})).unwrap();
    reads_as_written(&copy, &written);
}

#[test]
fn what_says_nothing_of_its_own_is_whole_too() {
    let (_directory, path) = place();
    let log = open(&path);
    let bare = text(1, 900);
    let bodies = [&format!("<a>{bare}</a>"), &bare, &bare];
    let ids = ["a/1", "a/2", "a/3"].into_iter();
    let entries: Vec<Draft> = ids.zip(bodies).map(|(id, it)| said(id, &**it)).collect();
    let entries = [entries, vec![note("b/1")]].concat();
    keep(&log, Batch { entries: entries.clone(), ..batch(&["a", "b"], &[]) });
    drop(log);
    assert_eq!(count(&path), 2);
    reads_as_written(&path, &entries);
}

#[test]
fn a_thread_shares_with_itself_alone_and_nothing_that_is_encrypted() {
    let (_directory, path) = place();
    let log = open(&path);
    let body = format!("<note>{}</note>", text(1, 900));
    let mut entries = vec![said("a/1", &*body), said("b/1", &*body)];
    entries.push(Draft { key: Some(1), ..said("b/2", &*body) });
    keep(&log, Batch { entries: entries.clone(), ..batch(&["a", "b"], &[]) });
    let fork = NewThread { fork: Some(entry("a/1")), ..session("f") };
    let forked = vec![said("f/2", &*body)];
    keep(&log, Batch { threads: vec![fork], entries: forked, ..Batch::default() });
    assert_eq!(count(&path), 0);
    keep(&log, Batch { entries: vec![said("f/3", &*body)], ..Batch::default() });
    assert_eq!(count(&path), 1);
    let bodies = wait(log.read(&thread("f"), 0, 9, 9)).unwrap();
    assert!(bodies.iter().all(|it| *it.body == *body.as_bytes()));
}

#[test]
fn what_never_came_into_the_file_is_no_source() {
    let (_directory, path) = place();
    let log = open(&path);
    keep(&log, batch(&["a", "b"], &["a/1", "b/1"]));
    let mut written = batch(&[], &["a/1", "b/1"]).entries;
    // A batch that is refused.
    let entries = [turn("a", 2, 900), vec![note("a/9")]].concat();
    assert!(wait(log.append(Batch { entries, ..Batch::default() })).is_err());
    // A batch for which there is no room yet.
    log.shared.trouble.pages_max.store(1, Ordering::Relaxed);
    let mut entries = turn("a", 2, 900);
    entries.push(said("a/5", format!("<note>{}</note>", "x".repeat(1 << 20))));
    written.extend(entries.clone());
    let append = log.append(Batch { entries, ..Batch::default() });
    while log.health() == Health::Well {
        std::thread::yield_now();
    }
    log.shared.trouble.pages_max.store(0, Ordering::Relaxed);
    wait(append).unwrap();
    drop(log);
    assert_eq!(count(&path), 2);
    reads_as_written(&path, &written);
}

#[test]
fn whoever_changes_what_is_shared_is_found_out() {
    let found = |sql: &str| {
        let (_directory, path, head) = one_turn();
        match sql.starts_with("DROP") {
            true => Connection::open(&path).unwrap().execute_batch(sql).unwrap(),
            false => tamper::change(&path, sql),
        }
        let log = SqliteLog::open_read_only(&path).unwrap();
        // Reading must not panic, whatever the file has.
        let _ = (wait(log.tail(0, 99)), wait(log.read(&thread("a"), 0, 9, 9)));
        let db = Connection::open(&path).unwrap();
        let _ = db.query_row("SELECT sum(length(payload)) FROM messages", [], |_| Ok(()));
        let report = wait(log.verify(Some(head))).unwrap();
        let found =
            report.findings.iter().map(|it| (it.wrong, it.entry.as_ref().map(ToString::to_string)));
        let found: Vec<_> = found.collect();
        drop(log);
        if let Ok(log) = SqliteLog::open(&path, Durability::Normal) {
            let read = wait(log.read(&thread("a"), 2, 3, 1));
            let written = &turn("a", 1, 700)[2].body;
            assert!(read.is_err() || read.unwrap()[0].body == written, "{sql}");
        }
        found
    };
    let check = |sql: &str, wrong: Wrong, entry: Option<&str>| {
        let (found, expected) = (found(sql), (wrong, entry.map(str::to_owned)));
        assert!(found.contains(&expected), "{sql}: {expected:?} is not in {found:?}");
    };
    let max = i64::MAX.to_string();
    for column in ["at", "source", "start", "length"] {
        for value in
            ["-1", "1", "5", "65537", &max, &format!("{column} + 1"), &format!("-{max} - 1")]
        {
            let sql = "WHERE (entry, at) = (SELECT min(entry), min(at) FROM shares)";
            let sql = format!("UPDATE shares SET {column} = {value} {sql}");
            if !(column == "source" && value == "1") {
                check(&sql, Wrong::Digest, Some("a/3"));
            }
        }
    }
    for (column, value) in [("source", "3"), ("source", "4"), ("source", "99"), ("length", &max)] {
        let sql = format!("UPDATE shares SET {column} = {value} WHERE entry = 3");
        check(&sql, Wrong::Link, Some("a/3"));
    }
    check("UPDATE shares SET entry = 2 WHERE entry = 3", Wrong::Link, Some("a/2"));
    check("UPDATE shares SET source = 2 WHERE entry = 3", Wrong::Digest, Some("a/3"));
    check("DELETE FROM shares", Wrong::Digest, Some("a/3"));
    check("DELETE FROM shares", Wrong::Digest, Some("b/3"));
    check("DELETE FROM shares WHERE source = 1", Wrong::Digest, Some("a/3"));
    check("DELETE FROM entries WHERE position = 1", Wrong::Digest, Some("a/3"));
    check("UPDATE entries SET body = x'' WHERE position = 1", Wrong::Digest, Some("a/3"));
    check("UPDATE entries SET key_id = 1 WHERE position = 3", Wrong::Digest, Some("a/3"));
    check("INSERT INTO shares VALUES (1, 0, 9, 0, 600)", Wrong::Link, Some("a/1"));
    check("INSERT INTO shares VALUES (99, 0, 1, 0, 600)", Wrong::Unchained, None);
    check("INSERT INTO shares VALUES (0, 0, 1, 0, 600)", Wrong::Unchained, None);
    check("DROP TABLE shares", Wrong::Schema, None);
    let many = "WITH n(n) AS (VALUES (200) UNION ALL SELECT n + 1 FROM n LIMIT 99)
        INSERT INTO shares SELECT 3, n, 1, 0, 600 FROM n";
    check(many, Wrong::Link, Some("a/3"));
}

#[test]
fn what_is_shared_is_append_only() {
    let (_directory, path, head) = one_turn();
    let db = Connection::open(&path).unwrap();
    for sql in [
        "UPDATE shares SET length = length",
        "DELETE FROM shares",
        "INSERT INTO shares SELECT * FROM shares",
        "REPLACE INTO shares SELECT * FROM shares LIMIT 1",
        "INSERT OR IGNORE INTO shares SELECT * FROM shares",
    ] {
        let error = db.execute_batch(sql).unwrap_err().to_string();
        assert_eq!(error, "the log is append-only", "{sql}");
    }
    drop(db);
    assert!(wait(open(&path).verify(Some(head))).unwrap().is_sound());
}
