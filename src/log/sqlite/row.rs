//! Reads raw rows of the tables, without checking that they are right.

use std::cell::Cell;
use std::sync::Arc;

use bytes::Bytes;
use rusqlite::Row;
use rusqlite::types::ValueRef;

use crate::id::{EntryId, ThreadId};
use crate::log::chain::Origin;

/// The columns of an entry that [`Raw`] reads.
pub(super) const COLUMNS: &str = "position, thread, seq, time, \"from\", \"to\", name, \
    cause_thread, cause_seq, reply_thread, reply_seq, flags, receivers, client_id, key_id, \
    digest, meta, body";

/// A row of [`COLUMNS`]. Its name and the threads that it refers to are still numbers.
pub(super) struct Raw {
    pub(super) position: u64,
    pub(super) thread: i64,
    pub(super) seq: u64,
    pub(super) at_us: u64,
    pub(super) from: Arc<str>,
    pub(super) to: Option<Arc<str>>,
    pub(super) name: i64,
    pub(super) cause: Option<(i64, u64)>,
    pub(super) reply_to: Option<(i64, u64)>,
    pub(super) flags: u32,
    pub(super) receivers: u32,
    pub(super) client_id: Option<Arc<str>>,
    pub(super) key: Option<u64>,
    pub(super) digest: [u8; 32],
    pub(super) meta: Option<Bytes>,
    pub(super) body: Bytes,
    /// Whether the row has a value that no log writes.
    pub(super) odd: bool,
    /// Whether text that the body shares with an earlier body is missing.
    pub(super) lacks: bool,
}

/// A cache of the senders and receivers of recent rows, so that each of these few strings is kept
/// in memory only once.
#[derive(Default)]
pub(super) struct Words(Vec<Arc<str>>);

impl Words {
    const KEPT_MAX: usize = 16;

    fn kept(&mut self, word: &str) -> Arc<str> {
        if let Some(known) = self.0.iter().find(|it| &***it == word) {
            return known.clone();
        }
        if self.0.len() >= Words::KEPT_MAX {
            self.0.clear();
        }
        let word = Arc::from(word);
        self.0.push(Arc::clone(&word));
        word
    }
}

impl Raw {
    /// Reads a row without checks. A wrong value sets `odd`, or makes the entry differ from its
    /// digest.
    pub(super) fn of(row: &Row<'_>, kept: &mut Words) -> rusqlite::Result<Raw> {
        let odd = Cell::new(false);
        let number = |at| row.get::<_, i64>(at).map(i64::cast_unsigned);
        let small = |at| -> rusqlite::Result<u32> {
            let small = u32::try_from(row.get::<_, i64>(at)?);
            odd.set(odd.get() || small.is_err());
            Ok(small.unwrap_or(u32::MAX))
        };
        let words = |at| -> rusqlite::Result<Option<&str>> {
            let bytes = row.get_ref(at)?.as_bytes_or_null().unwrap_or_default();
            let words = bytes.map(|it| std::str::from_utf8(it).ok());
            odd.set(odd.get() || words == Some(None));
            Ok(words.flatten())
        };
        let blob = |at| -> rusqlite::Result<Option<Bytes>> {
            let bytes = row.get_ref(at)?.as_bytes_or_null().unwrap_or_default();
            Ok(bytes.map(Bytes::copy_from_slice))
        };
        let link = |at| -> rusqlite::Result<Option<(i64, u64)>> {
            let thread: Option<i64> = row.get(at)?;
            let seq: Option<i64> = row.get(at + 1)?;
            odd.set(odd.get() || thread.is_some() != seq.is_some());
            Ok(thread.zip(seq.map(i64::cast_unsigned)))
        };
        let digest = <[u8; 32]>::try_from(row.get_ref(15)?.as_bytes().unwrap_or_default());
        odd.set(odd.get() || digest.is_err());
        Ok(Raw {
            position: number(0)?,
            thread: row.get(1)?,
            seq: number(2)?,
            at_us: number(3)?,
            from: kept.kept(words(4)?.unwrap_or_default()),
            to: words(5)?.map(|it| kept.kept(it)),
            name: row.get(6)?,
            cause: link(7)?,
            reply_to: link(9)?,
            flags: small(11)?,
            receivers: small(12)?,
            client_id: words(13)?.map(Arc::from),
            key: row.get::<_, Option<i64>>(14)?.map(i64::cast_unsigned),
            digest: digest.unwrap_or_default(),
            meta: blob(16)?,
            body: blob(17)?.unwrap_or_default(),
            odd: odd.get(),
            lacks: false,
        })
    }
}

/// A thread's row, with the ids of its parent and of the thread that it was forked from.
#[derive(Clone)]
pub(super) struct Thread {
    pub(super) id: ThreadId,
    pub(super) origin: Option<Arc<Origin>>,
    /// For a fork: the number of the thread that it was forked from, and the sequence number of the
    /// last shared entry.
    pub(super) fork: Option<(i64, u64)>,
}

/// The beginning of a query for rows that [`Thread::of`] reads. A condition on `t` follows.
pub(super) const THREADS: &str = "SELECT t.id, p.id, f.id, t.fork_seq, t.fork_thread FROM threads t
    LEFT JOIN threads p ON p.number = t.parent
    LEFT JOIN threads f ON f.number = t.fork_thread WHERE";

impl Thread {
    pub(super) fn of(row: &Row<'_>) -> rusqlite::Result<Thread> {
        let id = |at| Ok::<_, rusqlite::Error>(optional(row.get_ref(at)?).map(ThreadId::new));
        let seq = row.get::<_, Option<i64>>(3)?.map(i64::cast_unsigned);
        let source = row.get::<_, Option<i64>>(4)?;
        let fork = id(2)?.as_ref().zip(seq).map(|(id, seq)| EntryId::new(id, seq));
        Ok(Thread {
            id: ThreadId::new(&text(row.get_ref(0)?)),
            origin: Origin::of(id(1)?, fork),
            fork: source.zip(seq),
        })
    }
}

/// A column's text. Bytes that aren't UTF-8 are replaced.
pub(super) fn text(value: ValueRef<'_>) -> String {
    String::from_utf8_lossy(value.as_bytes().unwrap_or_default()).into_owned()
}

fn optional(value: ValueRef<'_>) -> Option<&str> {
    // Bytes that aren't UTF-8 become a replacement character, so that the entry doesn't match its
    // digest.
    value.as_bytes_or_null().ok()?.map(|it| std::str::from_utf8(it).unwrap_or("\u{fffd}"))
}
