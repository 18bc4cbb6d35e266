//! Verifies a file: compares its rows with the digests and the chain.

use rusqlite::OptionalExtension;

use crate::id::EntryId;
use crate::log::chain::CommitRow;
use crate::log::error::Error;
use crate::log::head::Head;
use crate::log::identity::Identity;
use crate::log::mark_bytes;
use crate::log::sqlite::read::{COMMITS_AT_ONCE, FAILED_ONCE, Reader};
use crate::log::sqlite::row::Raw;
use crate::log::sqlite::schema;
use crate::log::sqlite::write::Tip;
use crate::log::verify::{Report, Verifier, Wrong};

/// How many findings about pages are reported at most.
const PAGES_MAX: usize = 100;

/// Finds the end of a log. Returns an error if the log's tables were changed or its last commit
/// isn't sound.
pub(super) fn tip(reader: &mut Reader) -> Result<Tip, Error> {
    for (kind, name, what) in reader.sql(schema::differences(&reader.db))? {
        if kind == "table" {
            return Err(schema::damaged(&reader.path, &format!("table {name} {what}")));
        }
    }
    let ends = reader.db.query_row(
        "SELECT (SELECT max(number) FROM commits), (SELECT max(position) FROM entries),
           (SELECT max(number) FROM threads), (SELECT max(id) FROM names)",
        [],
        |row| {
            let number = |at| Ok::<_, rusqlite::Error>(row.get::<_, Option<i64>>(at)?.unwrap_or(0));
            Ok((number(0)?, number(1)?, number(2)?, number(3)?))
        },
    );
    let (number, position, thread, name) = reader.sql(ends)?;
    let (tip_position, tip_thread) = (position.cast_unsigned(), thread.cast_unsigned());
    let shares_beyond = reader.shares_beyond(tip_position)?;
    let missing = |what: &str| schema::damaged(&reader.path, what);
    let last = reader.commits(number - 1, 1)?.pop();
    let last = last.ok_or_else(|| missing("its last commit is missing"))?;
    if shares_beyond > 0
        || last.commit.last_position != tip_position
        || last.commit.last_thread != tip_thread
    {
        return Err(missing("its last commit doesn't end where its entries do"));
    }
    let head = last.head();
    if number > 0 {
        let before = reader.commits(number - 2, 1)?.pop();
        let before = before.ok_or_else(|| missing("the commit before its last is missing"))?;
        let mut verifier = Verifier::after(&before);
        walk(reader, &mut verifier, last)?;
        if let Some(finding) = verifier.finish().findings.first() {
            return Err(schema::damaged(&reader.path, &finding.to_string()));
        }
    }
    Ok(Tip { head, position: tip_position, thread: tip_thread, name })
}

/// Verifies the whole file. The report lists the damage as findings. If a finding is about a page,
/// the whole file is verified once more.
pub(super) fn verify(reader: &mut Reader, expect: Option<Head>) -> Result<Report, Error> {
    let report = look(reader, expect)?;
    if report.findings.iter().all(|it| it.wrong != Wrong::Page) {
        return Ok(report);
    }
    let again = look(reader, expect)?;
    if again.is_sound() {
        tracing::error!(file = %reader.path.display(), "{FAILED_ONCE}");
    }
    Ok(again)
}

fn look(reader: &mut Reader, expect: Option<Head>) -> Result<Report, Error> {
    reader.forget();
    let identity = match schema::identity(&reader.db, &reader.path) {
        Ok(identity) => Some(identity),
        Err(Error::Damaged { .. }) => None,
        Err(error) => return Err(error),
    };
    let genesis = reader.commits(-1, 1)?.pop();
    let genesis = genesis.filter(|it| it.commit.number == 0);
    let nobody = Identity { format: 0, key: [0; 32], ..Identity::fresh() };
    let identity = identity.unwrap_or(nobody);
    let mut verifier = Verifier::new(&identity, genesis.as_ref(), expect);
    file(reader, &mut verifier)?;
    if let Err(error) = chain_of(reader, &mut verifier) {
        broken(&mut verifier, error)?;
    }
    if let Err(error) = sequences(reader, &mut verifier) {
        broken(&mut verifier, error)?;
    }
    Ok(verifier.finish())
}

/// Turns damage that ended a walk into a finding. Any other error is returned.
fn broken(verifier: &mut Verifier, error: Error) -> Result<(), Error> {
    let Error::Damaged { why, .. } = error else { return Err(error) };
    verifier.wrong(Wrong::Page, None, None, why.to_string());
    Ok(())
}

/// Checks the file's pages and its schema.
fn file(reader: &Reader, verifier: &mut Verifier) -> Result<(), Error> {
    for (kind, name, what) in reader.sql(schema::differences(&reader.db))? {
        verifier.wrong(Wrong::Schema, None, None, format!("{kind} {name} {what}"));
    }
    let pages = || -> rusqlite::Result<Vec<String>> {
        let mut check = reader.db.prepare(&format!("PRAGMA integrity_check({PAGES_MAX})"))?;
        check.query_map([], |row| row.get(0))?.collect()
    };
    match reader.sql(pages()) {
        Ok(told) => {
            for what in told.into_iter().filter(|it| it != "ok") {
                verifier.wrong(Wrong::Page, None, None, what);
            }
            Ok(())
        }
        Err(error) => broken(verifier, error),
    }
}

impl Reader {
    /// The first `limit` commits after a commit number.
    pub(super) fn commits(&self, after: i64, limit: u64) -> Result<Vec<CommitRow>, Error> {
        let sql = format!(
            "SELECT {} FROM commits WHERE number > ?1 ORDER BY number LIMIT ?2",
            schema::COMMIT
        );
        let some = || -> rusqlite::Result<Vec<CommitRow>> {
            let mut find = self.db.prepare_cached(&sql)?;
            find.query_map([after, limit.cast_signed()], schema::commit)?.collect()
        };
        let some = self.sql(some())?;
        self.in_order(after, some.iter().map(|it| it.commit.number.cast_signed()))?;
        Ok(some)
    }
}

/// Checks every commit, a few in each transaction. Between two transactions, a writer may start the
/// write-ahead log from its beginning.
fn chain_of(reader: &mut Reader, verifier: &mut Verifier) -> Result<(), Error> {
    while at_once(reader, |reader| some_commits(reader, verifier))? {
        reader.go_on()?;
    }
    uncovered(reader, verifier)
}

/// Checks the next commits. Returns false if there are none.
fn some_commits(reader: &mut Reader, verifier: &mut Verifier) -> Result<bool, Error> {
    let number = verifier.head().number.cast_signed();
    let some = reader.commits(number, COMMITS_AT_ONCE)?;
    let any = !some.is_empty();
    for row in some {
        walk(reader, verifier, row)?;
    }
    Ok(any)
}

/// Runs `work` in one read transaction. Without it, each query would take locks of its own.
pub(super) fn at_once<T>(
    reader: &mut Reader,
    work: impl FnOnce(&mut Reader) -> Result<T, Error>,
) -> Result<T, Error> {
    reader.sql(reader.db.execute_batch("BEGIN"))?;
    let outcome = work(reader);
    let over = reader.sql(reader.db.execute_batch("COMMIT"));
    // If both fail, the first error says more.
    outcome.and_then(|it| over.map(|()| it))
}

/// Checks one commit: its threads, entries and marks.
fn walk(reader: &mut Reader, verifier: &mut Verifier, row: CommitRow) -> Result<(), Error> {
    let (last_position, last_thread) = (row.commit.last_position, row.commit.last_thread);
    let (position, thread) = verifier.covered();
    let marks = mark_bytes::read_marks(&row.marks);
    let number = row.commit.number;
    verifier.begin(row);
    threads(reader, verifier, thread, last_thread)?;
    entries(reader, verifier, position, last_position)?;
    let Some(marks) = marks else {
        verifier.wrong(Wrong::Mark, None, Some(number), "its marks can't be read".to_owned());
        verifier.end();
        return Ok(());
    };
    for mark in marks {
        let thread = mark.thread.cast_signed();
        let found = place(reader, thread, mark.seq)?;
        if found.is_none_or(|position| position > last_position) {
            let what = format!("a mark of {} is for no entry before it", mark.listener);
            let entry = name(reader, thread, mark.seq);
            verifier.wrong(Wrong::Mark, entry, Some(number), what);
        }
    }
    verifier.end();
    Ok(())
}

fn threads(
    reader: &mut Reader,
    verifier: &mut Verifier,
    after: u64,
    last: u64,
) -> Result<(), Error> {
    type Links = [Option<i64>; 3];
    let numbers = || -> rusqlite::Result<Vec<(i64, Links)>> {
        let mut find = reader.db.prepare_cached(
            "SELECT number, parent, fork_thread, fork_seq FROM threads
             WHERE number > ?1 AND number <= ?2 ORDER BY number",
        )?;
        let bounds = [after.cast_signed(), last.cast_signed()];
        find.query_map(bounds, |row| Ok((row.get(0)?, [row.get(1)?, row.get(2)?, row.get(3)?])))?
            .collect()
    };
    for (number, links) in reader.sql(numbers())? {
        let thread = reader.thread_of(number)?;
        let origin = thread.origin.as_deref();
        verifier.thread(number.cast_unsigned(), &thread.id, origin);
        let parent = origin.is_some_and(|it| it.parent.is_some());
        let fork = origin.is_some_and(|it| it.fork.is_some());
        let backwards = links[..2].iter().flatten().all(|to| *to < number);
        let sound = links.map(|it| it.is_some()) == [parent, fork, fork]
            && backwards
            && match thread.fork {
                None => true,
                Some((source, seq)) => reaches(reader, source, seq, u64::MAX)?,
            };
        if !sound {
            let what = format!("thread {} is linked to nothing before it", thread.id);
            verifier.wrong(Wrong::Link, None, verifier.commit(), what);
        }
    }
    Ok(())
}

fn entries(
    reader: &mut Reader,
    verifier: &mut Verifier,
    after: u64,
    last: u64,
) -> Result<(), Error> {
    /// The most entries of a commit that are in memory at once.
    const AT_ONCE: i64 = 1_024;
    let condition = format!("position > ?1 AND position <= ?2 ORDER BY position LIMIT {AT_ONCE}");
    let mut after = after.cast_signed();
    loop {
        let rows = reader.rows(&condition, [after, last.cast_signed()])?;
        reader.in_order(after, rows.iter().map(|it| it.position.cast_signed()))?;
        let Some(end) = rows.last() else { return Ok(()) };
        after = end.position.cast_signed();
        for row in rows {
            entry(reader, verifier, row)?;
        }
    }
}

fn entry(reader: &mut Reader, verifier: &mut Verifier, row: Raw) -> Result<(), Error> {
    let Raw { thread, seq, position, digest, cause, reply_to, lacks, .. } = row;
    match reader.entry(row) {
        Ok(entry) => {
            let origin = reader.thread_of(thread)?.origin;
            verifier.entry(&entry, origin.as_deref());
        }
        Err(Error::Damaged { why, .. }) => {
            let id = name(reader, thread, seq);
            verifier.unreadable(position, id, &digest, &why);
        }
        Err(error) => return Err(error),
    }
    if lacks {
        let id = name(reader, thread, seq);
        let what = "what it shares with an entry before it isn't there".to_owned();
        verifier.wrong(Wrong::Link, id, verifier.commit(), what);
    }
    for (word, link) in [("cause", cause), ("reply", reply_to)] {
        let Some((to_thread, to_seq)) = link else { continue };
        if !reaches(reader, to_thread, to_seq, position)? {
            let id = name(reader, thread, seq);
            let what = format!("its {word} link leads to nothing before it");
            verifier.wrong(Wrong::Link, id, verifier.commit(), what);
        }
    }
    Ok(())
}

/// Whether a thread has an entry with this number before a position. The entry may be the thread's
/// own, or one that the thread shares as a fork.
fn reaches(reader: &mut Reader, thread: i64, seq: u64, before: u64) -> Result<bool, Error> {
    let (mut thread, mut hops) = (thread, 0);
    loop {
        let fork = match reader.thread_of(thread) {
            Ok(it) => it.fork,
            Err(Error::Damaged { .. }) => return Ok(false),
            Err(error) => return Err(error),
        };
        match fork {
            // In a sound log, a fork's source has a lower number.
            Some((source, link)) if seq <= link && source < thread && hops < u32::MAX => {
                (thread, hops) = (source, hops + 1);
            }
            _ => return Ok(place(reader, thread, seq)?.is_some_and(|it| it < before)),
        }
    }
}

/// The position of a thread's own entry.
fn place(reader: &Reader, thread: i64, seq: u64) -> Result<Option<u64>, Error> {
    let find = || -> rusqlite::Result<Option<i64>> {
        let sql = "SELECT position FROM entries WHERE thread = ?1 AND seq = ?2";
        let mut find = reader.db.prepare_cached(sql)?;
        find.query_row([thread, seq.cast_signed()], |row| row.get(0)).optional()
    };
    Ok(reader.sql(find())?.map(i64::cast_unsigned))
}

fn name(reader: &mut Reader, thread: i64, seq: u64) -> Option<EntryId> {
    let thread = reader.thread_of(thread).ok()?.id;
    Some(EntryId { thread, seq })
}

/// Finds rows that no commit covers.
fn uncovered(reader: &mut Reader, verifier: &mut Verifier) -> Result<(), Error> {
    let (position, thread) = verifier.covered();
    let head = verifier.head().number;
    // The rows of the table `shares` are counted before the commits, so that a writer that adds
    // some meanwhile is noticed.
    let shares = reader.shares_beyond(position)?;
    let count = reader.db.query_row(
        "SELECT (SELECT count(*) FROM entries WHERE position > ?1 OR position < 1),
           (SELECT count(*) FROM threads WHERE number > ?2 OR number < 1),
           (SELECT max(number) FROM commits),
           (SELECT count(*) FROM log) + (SELECT count(*) FROM commits WHERE number < 0)",
        [position.cast_signed(), thread.cast_signed()],
        |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?)),
    );
    let (entries, threads, last, rows): (i64, i64, Option<i64>, i64) = reader.sql(count)?;
    if rows != 1 {
        let what =
            "there is not one row that says which log this is, or a commit before it".to_owned();
        verifier.wrong(Wrong::Identity, None, None, what);
    }
    // If a writer has appended commits meanwhile, those commits cover the counted rows.
    if last.unwrap_or(0).cast_unsigned() != head {
        return Ok(());
    }
    if entries + threads > 0 {
        let what = format!("{entries} entries and {threads} threads belong to no commit");
        verifier.wrong(Wrong::Unchained, None, None, what);
    }
    if shares > 0 {
        let what = format!("{shares} rows of what entries share belong to no entry");
        verifier.wrong(Wrong::Unchained, None, None, what);
    }
    Ok(())
}

/// Checks that the entries of each thread are numbered without gaps, and that their positions rise
/// with the numbers.
fn sequences(reader: &mut Reader, verifier: &mut Verifier) -> Result<(), Error> {
    let mut last: Option<(i64, u64, u64)> = None;
    loop {
        reader.go_on()?;
        let (thread, seq) = last.map_or((i64::MIN, 0), |it| (it.0, it.1));
        let rows = || -> rusqlite::Result<Vec<(i64, u64, u64)>> {
            let mut find = reader.db.prepare_cached(
                "SELECT thread, seq, position FROM entries WHERE (thread, seq) > (?1, ?2)
                 ORDER BY thread, seq LIMIT 65536",
            )?;
            let number =
                |row: &rusqlite::Row<'_>, at| row.get::<_, i64>(at).map(i64::cast_unsigned);
            let rows = find.query_map([thread, seq.cast_signed()], |row| {
                Ok((row.get(0)?, number(row, 1)?, number(row, 2)?))
            })?;
            rows.collect()
        };
        let rows = reader.sql(rows())?;
        reader.in_order((thread, seq), rows.iter().map(|it| (it.0, it.1)))?;
        if rows.is_empty() {
            return Ok(());
        }
        for (thread, seq, position) in rows {
            let (next, before) = match last {
                Some((same, seq, position)) if same == thread => (seq + 1, position),
                // The number before the first entry of a thread that is missing isn't known.
                _ => (first_seq(reader, thread)?.unwrap_or(seq), 0),
            };
            if seq != next || position <= before {
                let what = match seq == next {
                    true => "it stands before the entry that it follows".to_owned(),
                    false => format!("sequence {next} is missing before it"),
                };
                let id = name(reader, thread, seq);
                verifier.wrong(Wrong::Sequence, id, None, what);
            }
            last = Some((thread, seq, position));
        }
    }
}

/// The number of a thread's own first entry. None if the thread's row is damaged.
fn first_seq(reader: &mut Reader, thread: i64) -> Result<Option<u64>, Error> {
    match reader.thread_of(thread) {
        Ok(it) => Ok(Some(it.fork.map_or(1, |(_, seq)| seq + 1))),
        Err(Error::Damaged { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}
