//! Deduplication: text that an entry's body shares with an earlier body of its thread is stored
//! once. The entry's row has the rest of the body. Rows of the table `shares` say which text
//! belongs between the pieces of the rest.

use rusqlite::{Connection, OptionalExtension};

use crate::log::error::Error;
use crate::log::sqlite::limits::{BODY_BYTES_MAX, SHARES_MAX};
use crate::log::sqlite::read::{Reader, signed};
use crate::log::sqlite::row::Raw;

/// A piece of shared text: `length` bytes of the source's row, from `start` on, belong after the
/// first `at` bytes of the entry's own row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Share {
    pub(super) at: usize,
    /// The position of the source, an earlier entry of the same thread. The bytes are in the
    /// source's own row, so no share leads to another share.
    pub(super) source: u64,
    pub(super) start: usize,
    pub(super) length: usize,
}

impl Share {
    /// Makes a share from a row. `None` if no log writes such a row.
    fn of([at, source, start, length]: [i64; 4]) -> Option<Share> {
        let bytes = |number| usize::try_from(number).ok().filter(|it| *it <= BODY_BYTES_MAX);
        let length = bytes(length).filter(|it| *it > 0)?;
        let source = u64::try_from(source).ok()?;
        Some(Share { at: bytes(at)?, source, start: bytes(start)?, length })
    }
}

/// Writes an entry's shares.
pub(super) fn keep(db: &Connection, entry: u64, shares: &[Share]) -> rusqlite::Result<()> {
    if shares.is_empty() {
        return Ok(());
    }
    let mut insert = db.prepare_cached("INSERT INTO shares VALUES (?1, ?2, ?3, ?4, ?5)")?;
    for Share { at, source, start, length } in shares {
        let source = source.cast_signed();
        let (at, start, length) = (signed(*at), signed(*start), signed(*length));
        insert.execute((entry.cast_signed(), at, source, start, length))?;
    }
    Ok(())
}

impl Reader {
    /// Fills in the text that bodies share with earlier bodies. If some of this text is missing,
    /// the body is left as it is in the row, and `lacks` is set.
    pub(super) fn complete(&mut self, rows: &mut [Raw]) -> Result<(), Error> {
        if rows.is_empty() {
            return Ok(());
        }
        self.sql(complete(&self.db, rows))
    }

    /// How many shares belong to entries after a position, or to a position below 1.
    pub(super) fn shares_beyond(&mut self, position: u64) -> Result<u64, Error> {
        let sql = "SELECT count(*) FROM shares WHERE entry > ?1 OR entry < 1";
        let count = self.db.query_row(sql, [position.cast_signed()], |row| row.get(0));
        self.sql(count).map(i64::cast_unsigned)
    }
}

fn complete(db: &Connection, rows: &mut [Raw]) -> rusqlite::Result<()> {
    let mut next = db.prepare_cached("SELECT min(entry) FROM shares WHERE entry >= ?1")?;
    // A range of positions that have no shares. Entries in this range need no query.
    let mut whole = 0..0;
    for row in rows {
        let position = row.position.cast_signed();
        if whole.contains(&position) {
            continue;
        }
        let sharing: Option<i64> = next.query_row([position], |row| row.get(0))?;
        whole = position..sharing.unwrap_or(i64::MAX);
        if sharing == Some(position) {
            match body(db, row)? {
                Some(body) => row.body = body.into(),
                None => row.lacks = true,
            }
        }
    }
    Ok(())
}

/// Puts together the whole body of an entry with shares. `None` if something is missing or wrong.
fn body(db: &Connection, row: &Raw) -> rusqlite::Result<Option<Vec<u8>>> {
    let mut find = db.prepare_cached(
        "SELECT at, source, start, length FROM shares WHERE entry = ?1 ORDER BY at LIMIT ?2",
    )?;
    let shares = find.query_map((row.position.cast_signed(), signed(SHARES_MAX + 1)), |share| {
        Ok(Share::of([share.get(0)?, share.get(1)?, share.get(2)?, share.get(3)?]))
    })?;
    let shares: Vec<_> = shares.collect::<rusqlite::Result<_>>()?;
    if shares.len() > SHARES_MAX || row.key.is_some() {
        return Ok(None);
    }
    let (mut whole, mut done) = (Vec::new(), 0);
    for share in shares {
        let Some(share) = share.filter(|it| it.source < row.position) else { return Ok(None) };
        let Some(own) = row.body.get(done..share.at) else { return Ok(None) };
        whole.extend_from_slice(own);
        done = share.at;
        if !extend(db, row.thread, share, &mut whole)? {
            return Ok(None);
        }
    }
    whole.extend_from_slice(&row.body[done..]);
    Ok(Some(whole))
}

/// Appends a share's bytes to a body. Returns false if the source doesn't have these bytes.
fn extend(
    db: &Connection,
    thread: i64,
    Share { source, start, length, .. }: Share,
    whole: &mut Vec<u8>,
) -> rusqlite::Result<bool> {
    let mut find = db.prepare_cached(
        "SELECT substr(body, ?2, ?3) FROM entries WHERE position = ?1 AND thread = ?4
           AND key_id IS NULL",
    )?;
    let bounds = (source.cast_signed(), signed(start + 1), signed(length), thread);
    let found = find.query_row(bounds, |row| {
        let bytes = row.get_ref(0)?.as_bytes().unwrap_or_default();
        whole.extend_from_slice(bytes);
        Ok(bytes.len() == length)
    });
    Ok(found.optional()? == Some(true))
}
