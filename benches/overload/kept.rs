//! Checks the log's file afterwards, without the pump that wrote it.

use std::collections::HashMap;
use std::path::Path;

use rusqlite::{Connection, OpenFlags};

use crate::crowd::Accepted;

/// Counts of accepted messages: all of them, those that are missing, and those without an answer.
pub(crate) struct Kept {
    /// Messages that clients were told are in the log.
    pub(crate) accepted: u64,
    /// Accepted messages that the log doesn't have.
    pub(crate) lost: u64,
    /// Accepted messages without an answer in the log.
    pub(crate) unanswered: u64,
}

const IS_THERE: u8 = 1;
const IS_ANSWERED: u8 = 2;

impl Kept {
    /// Looks in the log for each accepted message and for its answer.
    pub(crate) fn look(folder: &Path, accepted: &Accepted) -> Kept {
        let path = folder.join("data/pumphouse.db");
        let log = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY);
        let log = log.expect("the log can be read");
        let mut threads: HashMap<i64, String> = HashMap::new();
        let mut marks: HashMap<String, Vec<u8>> = HashMap::new();
        let mut mark = |thread: &str, seq: i64, what: u8| {
            let marks = match marks.get_mut(thread) {
                Some(it) => it,
                None => marks.entry(thread.to_owned()).or_default(),
            };
            let at = usize::try_from(seq).expect("a number");
            marks.resize(marks.len().max(at + 1), 0);
            marks[at] |= what;
        };
        let mut all = log.prepare("SELECT number, id FROM threads").expect("the log's table");
        let mut rows = all.query([]).expect("it can be read");
        while let Some(row) = rows.next().expect("a row") {
            threads.insert(row.get(0).expect("a number"), row.get(1).expect("an id"));
        }
        let text = "SELECT thread, seq, reply_thread, reply_seq FROM entries";
        let mut all = log.prepare(text).expect("the log's table");
        let mut rows = all.query([]).expect("it can be read");
        while let Some(row) = rows.next().expect("a row") {
            let at = |column: usize| row.get::<_, Option<i64>>(column).expect("a number");
            let mut entry = |column: usize, what: u8| {
                if let (Some(thread), Some(seq)) = (at(column), at(column + 1)) {
                    mark(&threads[&thread], seq, what);
                }
            };
            entry(0, IS_THERE);
            entry(2, IS_ANSWERED);
        }
        let mut kept = Kept { accepted: 0, lost: 0, unanswered: 0 };
        for (thread, seqs) in accepted {
            let marks = marks.get(thread).map_or(&[][..], |it| it);
            for seq in seqs {
                let seq = usize::try_from(*seq).expect("a number");
                let mark = marks.get(seq).copied().unwrap_or(0);
                kept.accepted += 1;
                kept.lost += u64::from(mark & IS_THERE == 0);
                kept.unanswered += u64::from(mark & IS_ANSWERED == 0);
            }
        }
        kept
    }
}
