//! What an entry's body has in common with earlier ones of its thread stands in the file once. The
//! entry's row has the rest, and rows of `shares` say what belongs in between.

use rusqlite::{Connection, OptionalExtension};

use crate::log::Error;
use crate::log::sqlite::read::{Reader, signed};
use crate::log::sqlite::row::Raw;

/// Bytes of a body that shares or is shared from: what one entry is put together from is bounded.
pub(super) const BODY_BYTES_MAX: usize = 64 * 1024;
/// Shares of one entry, for the same reason.
pub(super) const SHARES_MAX: usize = 16;

/// So many bytes of what a source's row has, from `start`, belong behind the first `at` bytes of
/// what the entry's own has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Share {
    pub(super) at: usize,
    /// The position of an earlier entry of the thread. Its row has them, so nobody asks further.
    pub(super) source: u64,
    pub(super) start: usize,
    pub(super) length: usize,
}

impl Share {
    /// A share as it stands there, unless no log writes it.
    fn of([at, source, start, length]: [i64; 4]) -> Option<Share> {
        let bytes = |number| usize::try_from(number).ok().filter(|it| *it <= BODY_BYTES_MAX);
        let length = bytes(length).filter(|it| *it > 0)?;
        let source = u64::try_from(source).ok()?;
        Some(Share { at: bytes(at)?, source, start: bytes(start)?, length })
    }
}

/// Keeps what an entry shares.
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
    /// Puts bodies together. Where that can't be done the rest is left, and `lacks` says so.
    pub(super) fn complete(&mut self, rows: &mut [Raw]) -> Result<(), Error> {
        if rows.is_empty() || !self.has_shares()? {
            return Ok(());
        }
        self.sql(complete(&self.db, rows))
    }

    /// How many shares are of entries behind a position, or before the first.
    pub(super) fn shares_beyond(&mut self, position: u64) -> Result<u64, Error> {
        if !self.has_shares()? {
            return Ok(0);
        }
        let sql = "SELECT count(*) FROM shares WHERE entry > ?1 OR entry < 1";
        let count = self.db.query_row(sql, [position.cast_signed()], |row| row.get(0));
        self.sql(count).map(i64::cast_unsigned)
    }

    /// A log of format 1 has no such table, until a pump opens it.
    fn has_shares(&mut self) -> Result<bool, Error> {
        if !self.shares {
            let sql = "SELECT EXISTS (SELECT 1 FROM sqlite_schema WHERE name = 'shares')";
            let found =
                self.db.prepare_cached(sql).and_then(|mut it| it.query_row([], |row| row.get(0)));
            self.shares = self.sql(found)?;
        }
        Ok(self.shares)
    }
}

fn complete(db: &Connection, rows: &mut [Raw]) -> rusqlite::Result<()> {
    let mut next = db.prepare_cached("SELECT min(entry) FROM shares WHERE entry >= ?1")?;
    // Entries here are known to share nothing, so a page that shares nothing costs one look-up.
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

/// The whole body of an entry that shares something.
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

/// Adds what a source has; whether it has that.
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
