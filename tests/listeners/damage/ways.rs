//! Ways to damage a log's file: by the disk, by hand, and by an attacker who knows how the log is
//! protected.

use std::path::Path;

use rusqlite::Connection;
use rusqlite::config::DbConfig;

use super::written::Written;

const PAGE: usize = 4_096;

/// Numbers that a seed decides.
pub(super) struct Chance(blake3::OutputReader);

impl Chance {
    pub(super) fn of(seed: u64) -> Chance {
        Chance(blake3::Hasher::new().update(&seed.to_le_bytes()).finalize_xof())
    }

    fn below(&mut self, end: usize) -> usize {
        let mut bytes = [0; 8];
        self.0.fill(&mut bytes);
        (u64::from_le_bytes(bytes) % end.max(1) as u64) as usize
    }

    fn of_these<T: Copy>(&mut self, these: &[T]) -> T {
        these[self.below(these.len())]
    }
}

type Way = fn(&Written, &Path, &mut Chance);

/// Each, and its name.
pub(super) const WAYS: [(&str, Way); 13] = [
    ("bits flipped", flipped),
    ("cut", cut),
    ("pages zeroed", zeroed),
    ("a page written elsewhere", misplaced),
    ("a page of an older copy", stale),
    ("rows of a page in another order", disordered),
    ("garbage", garbage),
    ("rows doubled", doubled),
    ("rows gone", gone),
    ("threads swapped", swapped),
    ("edited", edited),
    ("rolled back", rolled_back),
    ("written anew", written_anew),
];

fn flipped(it: &Written, to: &Path, chance: &mut Chance) {
    let mut bytes = it.whole.clone();
    for _ in 0..=chance.below(8) {
        let at = chance.below(bytes.len());
        bytes[at] ^= 1 << chance.below(8);
    }
    std::fs::write(to, bytes).unwrap();
}

fn cut(it: &Written, to: &Path, chance: &mut Chance) {
    let at = chance.below(it.whole.len());
    let at = chance.of_these(&[at, at / PAGE * PAGE]);
    std::fs::write(to, &it.whole[..at]).unwrap();
}

fn zeroed(it: &Written, to: &Path, chance: &mut Chance) {
    let mut bytes = it.whole.clone();
    for _ in 0..=chance.below(3) {
        let page = chance.below(bytes.len() / PAGE) * PAGE;
        bytes[page..page + PAGE].fill(0);
    }
    std::fs::write(to, bytes).unwrap();
}

fn misplaced(it: &Written, to: &Path, chance: &mut Chance) {
    let mut bytes = it.whole.clone();
    let (from, page) = (chance.below(bytes.len() / PAGE), chance.below(bytes.len() / PAGE));
    bytes.copy_within(from * PAGE..(from + 1) * PAGE, page * PAGE);
    std::fs::write(to, bytes).unwrap();
}

/// What a disk leaves that said it wrote, and didn't.
fn stale(it: &Written, to: &Path, chance: &mut Chance) {
    let mut bytes = it.whole.clone();
    let pages = it.older.chunks_exact(PAGE).zip(it.whole.chunks_exact(PAGE)).enumerate();
    let rewritten: Vec<_> = pages.filter(|(_, (old, new))| old != new).collect();
    let (page, (old, _)) = chance.of_these(&rewritten);
    bytes[page * PAGE..(page + 1) * PAGE].copy_from_slice(old);
    std::fs::write(to, bytes).unwrap();
}

/// Two cells of a page change places: whoever walks from row to row may come back to the first.
fn disordered(it: &Written, to: &Path, chance: &mut Chance) {
    /// What a page of a table's, or of an index's, rows begins with, and where its cells are told.
    const LEAVES: [u8; 2] = [0x0d, 0x0a];
    const CELLS: usize = 8;
    let mut bytes = it.whole.clone();
    let cells = |page: &[u8]| usize::from(u16::from_be_bytes([page[3], page[4]]));
    let pages = bytes.chunks_exact(PAGE).enumerate();
    let leaves = pages.filter(|(_, page)| LEAVES.contains(&page[0]) && cells(page) > 1);
    let leaves: Vec<_> = leaves.map(|(at, page)| (at * PAGE, cells(page))).collect();
    let (page, count) = chance.of_these(&leaves);
    let (one, two) = (chance.below(count), chance.below(count));
    for byte in 0..2 {
        bytes.swap(page + CELLS + one * 2 + byte, page + CELLS + two * 2 + byte);
    }
    std::fs::write(to, bytes).unwrap();
}

fn garbage(it: &Written, to: &Path, chance: &mut Chance) {
    let mut bytes = it.whole.clone();
    let at = chance.below(bytes.len());
    let end = (at + chance.below(200)).min(bytes.len());
    bytes[at..end].fill_with(|| chance.below(256) as u8);
    std::fs::write(to, bytes).unwrap();
}

/// Another client's way in, which keeps the triggers as they are.
fn by_hand(it: &Written, to: &Path, sql: &str) {
    std::fs::write(to, &it.whole).unwrap();
    let db = Connection::open(to).unwrap();
    db.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_TRIGGER, false).unwrap();
    // What the tables themselves refuse is no damage.
    let _ = db.execute_batch(sql);
}

fn doubled(it: &Written, to: &Path, chance: &mut Chance) {
    let (row, last) = (1 + chance.below(it.said.entries.len()), it.said.entries.len());
    let again = "time, \"from\", \"to\", name, cause_thread, cause_seq, reply_thread, reply_seq,
        flags, receivers, NULL, key_id, digest, meta, body FROM entries WHERE position";
    let ways = [
        format!("INSERT INTO entries SELECT {}, thread, 90, {again} = {row}", last + 1),
        format!("INSERT INTO entries SELECT {}, thread, 90, {again} = {row}", last + 9),
        format!("INSERT INTO entries SELECT 0, thread, 0, {again} = {row}"),
        "INSERT INTO commits SELECT number + 1, writer, last_position, last_thread, chain, marks
         FROM commits ORDER BY number DESC LIMIT 1"
            .to_owned(),
        format!("INSERT INTO threads VALUES (9, 'a{row}', NULL, NULL, NULL)"),
        format!(
            "INSERT INTO shares SELECT entry, at + 1, source, start, length FROM shares WHERE {}",
            one_of("shares", row)
        ),
        format!("INSERT INTO shares SELECT {row}, at, source, start, length FROM shares LIMIT 1"),
        format!(
            "UPDATE entries SET (\"from\", body, digest) =
             (SELECT \"from\", body, digest FROM entries WHERE position = {row})
             WHERE position = {}",
            1 + chance.below(last)
        ),
    ];
    let way = chance.below(ways.len());
    by_hand(it, to, &ways[way]);
}

fn gone(it: &Written, to: &Path, chance: &mut Chance) {
    let tables = ["entries", "entries", "entries", "threads", "commits", "names", "shares"];
    let table = chance.of_these(&tables);
    let row = chance.below(it.said.entries.len() + 1);
    by_hand(it, to, &format!("DELETE FROM {table} WHERE {}", one_of(table, row)));
}

/// One row of a table.
fn one_of(table: &str, row: usize) -> String {
    match table {
        "shares" => format!(
            "(entry, at) = (SELECT entry, at FROM shares
             LIMIT 1 OFFSET {row} % (SELECT count(*) FROM shares))"
        ),
        _ => format!("rowid = {row} % (SELECT max(rowid) + 1 FROM {table})"),
    }
}

fn swapped(it: &Written, to: &Path, chance: &mut Chance) {
    let last = it.said.entries.len();
    let (one, two) = (1 + chance.below(last), 1 + chance.below(last));
    let (this, that) = (1 + chance.below(8), 1 + chance.below(8));
    let ways = [
        // All entries of two threads.
        format!(
            "UPDATE entries SET thread = -thread WHERE thread IN ({this}, {that});
             UPDATE entries SET thread = CASE thread WHEN -{this} THEN {that} ELSE {this} END
             WHERE thread < 0"
        ),
        // The names of two threads.
        format!(
            "CREATE TEMP TABLE t AS SELECT number, id FROM threads;
             UPDATE threads SET id = 'x' || number WHERE number IN ({this}, {that});
             UPDATE threads SET id = (SELECT id FROM t WHERE number = {that}) WHERE number = {this};
             UPDATE threads SET id = (SELECT id FROM t WHERE number = {this}) WHERE number = {that}"
        ),
        // The places of two entries.
        format!(
            "UPDATE entries SET position = -1 WHERE position = {one};
             UPDATE entries SET position = {one} WHERE position = {two};
             UPDATE entries SET position = {two} WHERE position = -1"
        ),
        // One entry, into another thread's end.
        format!("UPDATE entries SET thread = {this}, seq = 80 WHERE position = {one}"),
    ];
    let way = chance.below(ways.len());
    by_hand(it, to, &ways[way]);
}

fn edited(it: &Written, to: &Path, chance: &mut Chance) {
    let (table, columns): (_, &[&str]) = chance.of_these(&[
        (
            "entries",
            &[
                "thread",
                "seq",
                "time",
                "\"from\"",
                "\"to\"",
                "name",
                "cause_thread",
                "cause_seq",
                "reply_thread",
                "reply_seq",
                "flags",
                "receivers",
                "client_id",
                "key_id",
                "digest",
                "meta",
                "body",
            ][..],
        ),
        ("threads", &["id", "parent", "fork_thread", "fork_seq"]),
        ("commits", &["writer", "last_position", "last_thread", "chain", "marks"]),
        ("names", &["namespace", "local"]),
        ("log", &["format", "uuid", "key", "created"]),
        ("shares", &["entry", "at", "source", "start", "length"]),
    ]);
    let column = chance.of_these(columns);
    let value = chance.of_these(&[
        "NULL",
        "0",
        "1",
        "-1",
        "9223372036854775807",
        "{} + 1",
        "{} | 64",
        "{} & ~1",
        "{} || 'x'",
        "''",
        "'eve'",
        "CAST(x'ff' AS TEXT)",
        "x''",
        "zeroblob(32)",
        "CAST('<note xmlns=\"urn:damage\"><text>forged</text></note>' AS BLOB)",
        "CAST({} || ' ' AS BLOB)",
    ]);
    let value = value.replace("{}", column);
    let row = chance.below(it.said.entries.len() + 1);
    let rows = one_of(table, row);
    by_hand(it, to, &format!("UPDATE {table} SET {column} = {value} WHERE {rows}"));
}

fn rolled_back(it: &Written, to: &Path, _: &mut Chance) {
    std::fs::write(to, &it.older).unwrap();
}

fn written_anew(it: &Written, to: &Path, _: &mut Chance) {
    std::fs::write(to, &it.rewritten).unwrap();
}
