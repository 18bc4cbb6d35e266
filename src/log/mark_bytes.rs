//! Writes and reads the bytes of the marks in a commit. `docs/log.md` specifies them.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::id::{EntryId, ThreadId};
use crate::log::entry::Mark;

/// Starts and waits are encoded alike, with one number. Below this value, the number is the attempt
/// that starts. From this value on, the number is the time until which the delivery waits, in
/// microseconds since the epoch.
///
/// A start that has the last entry that its handler sees is encoded as a consumption whose number
/// is this value plus the attempt, and that entry's number follows.
const WAITS_FROM: u64 = 1 << 32;

/// The time that stands for a start that came to nothing. Deliveries that wait for a time above it
/// are parked or wait for an entry.
const STOPPED: u64 = u64::MAX - 3;

/// A mark as the log stores it, with the number of the thread instead of its id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct MarkRow {
    pub(super) thread: u64,
    pub(super) seq: u64,
    pub(super) listener: Arc<str>,
    pub(super) kind: Marked,
}

impl MarkRow {
    /// Converts the row to a [`Mark`], given the id of the row's thread.
    pub(super) fn mark(self, thread: &ThreadId) -> Mark {
        let (entry, listener) = (EntryId::new(thread, self.seq), self.listener);
        match self.kind {
            Marked::Started(attempt, as_of) => Mark::Started { entry, listener, attempt, as_of },
            Marked::Stopped => Mark::Stopped { entry, listener },
            Marked::Consumed(attempt) => Mark::Consumed { entry, listener, attempt },
            Marked::Waits(until_us) => Mark::Waits { entry, listener, until_us },
        }
    }
}

/// The kinds of marks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Marked {
    /// The number of the attempt that begins, or 0 as in [`Mark::Started`], and the last entry
    /// that it sees, if the mark has that.
    Started(u32, Option<u64>),
    /// The last start came to nothing.
    Stopped,
    /// The number of the attempt that consumed the entry, or 0 if no handler ran for it.
    Consumed(u32),
    /// The delivery waits until this time, in microseconds since the epoch.
    Waits(u64),
}

/// Encodes marks as bytes: the listeners' names first, then the marks.
#[derive(Default)]
pub(super) struct MarkWriter {
    listeners: FxHashMap<Arc<str>, u64>,
    names: Vec<u8>,
    marks: Vec<u8>,
    count: u64,
}

impl MarkWriter {
    /// Adds a mark. `thread` is the number of its entry's thread.
    pub(super) fn put(&mut self, mark: &Mark, thread: u64) {
        let (consumed, number, as_of) = match mark {
            Mark::Started { attempt, as_of: None, .. } => (0, (*attempt).into(), None),
            Mark::Started { attempt, as_of, .. } => (1, WAITS_FROM + u64::from(*attempt), *as_of),
            Mark::Consumed { attempt, .. } => (1, (*attempt).into(), None),
            Mark::Stopped { .. } => (0, STOPPED, None),
            Mark::Waits { until_us: STOPPED, .. } => (0, STOPPED - 1, None),
            Mark::Waits { until_us, .. } => (0, (*until_us).max(WAITS_FROM), None),
        };
        let listener = self.listener(mark.listener());
        put_varint(&mut self.marks, listener << 1 | consumed);
        put_varint(&mut self.marks, thread);
        put_varint(&mut self.marks, mark.entry().seq);
        put_varint(&mut self.marks, number);
        if let Some(as_of) = as_of {
            put_varint(&mut self.marks, as_of);
        }
        self.count += 1;
    }

    fn listener(&mut self, name: &Arc<str>) -> u64 {
        if let Some(index) = self.listeners.get(name) {
            return *index;
        }
        let index = self.listeners.len() as u64;
        put_varint(&mut self.names, name.len() as u64);
        self.names.extend_from_slice(name.as_bytes());
        self.listeners.insert(name.clone(), index);
        index
    }

    /// The bytes of all marks. Empty if there are no marks.
    pub(super) fn finish(&self) -> Vec<u8> {
        if self.count == 0 {
            return Vec::new();
        }
        let mut all = Vec::with_capacity(self.names.len() + self.marks.len() + 8);
        put_varint(&mut all, self.listeners.len() as u64);
        all.extend_from_slice(&self.names);
        put_varint(&mut all, self.count);
        all.extend_from_slice(&self.marks);
        debug_assert_eq!(
            read_marks(&all).map(|it| it.len() as u64),
            Some(self.count),
            "written marks read back"
        );
        all
    }
}

/// Parses the bytes of marks. `None` if they are malformed.
pub(super) fn read_marks(mut bytes: &[u8]) -> Option<Vec<MarkRow>> {
    if bytes.is_empty() {
        return Some(Vec::new());
    }
    let from = &mut bytes;
    let mut listeners: Vec<Arc<str>> = Vec::new();
    for _ in 0..take_varint(from)? {
        let length = usize::try_from(take_varint(from)?).ok()?;
        let (name, rest) = from.split_at_checked(length)?;
        listeners.push(std::str::from_utf8(name).ok()?.into());
        *from = rest;
    }
    let mut marks = Vec::new();
    for _ in 0..take_varint(from)? {
        let first = take_varint(from)?;
        let listener = listeners.get(usize::try_from(first >> 1).ok()?)?.clone();
        let (thread, seq, number) = (take_varint(from)?, take_varint(from)?, take_varint(from)?);
        let kind = match (first & 1, u32::try_from(number)) {
            (0, Ok(attempt)) => Marked::Started(attempt, None),
            (0, Err(_)) if number == STOPPED => Marked::Stopped,
            (0, Err(_)) => Marked::Waits(number),
            (_, Ok(attempt)) => Marked::Consumed(attempt),
            (_, Err(_)) => {
                let attempt = u32::try_from(number - WAITS_FROM).ok()?;
                Marked::Started(attempt, Some(take_varint(from)?))
            }
        };
        marks.push(MarkRow { thread, seq, listener, kind });
    }
    from.is_empty().then_some(marks)
}

/// Writes a number with seven bits per byte, the lowest bits first. The high bit of a byte means
/// that more bytes follow.
fn put_varint(to: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        to.push((number & 0x7f) as u8 | 0x80);
        number >>= 7;
    }
    to.push(number as u8);
}

fn take_varint(from: &mut &[u8]) -> Option<u64> {
    let mut number = 0u64;
    for place in 0..10 {
        let (&byte, rest) = from.split_first()?;
        *from = rest;
        let seven = u64::from(byte & 0x7f);
        if place == 9 && byte > 1 {
            return None;
        }
        number |= seven << (7 * place);
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_read_as_they_are_written() {
        let mut writer = MarkWriter::default();
        for number in [0, 1, 127, 128, u64::MAX] {
            let entry = EntryId::new(&ThreadId::new("t"), number);
            let listener: Arc<str> = format!("l{}", number % 3).into();
            let attempt = u32::MAX;
            let as_of = Some(number).filter(|it| *it > 0);
            let started = Mark::Started { entry: entry.clone(), listener, attempt, as_of };
            writer.put(&started, number);
            let listener: Arc<str> = "l0".into();
            let consumed =
                Mark::Consumed { entry: entry.clone(), listener: listener.clone(), attempt: 0 };
            writer.put(&consumed, 1);
            for until_us in [WAITS_FROM, STOPPED, STOPPED + 1] {
                let (entry, listener) = (entry.clone(), listener.clone());
                writer.put(&Mark::Waits { entry, listener, until_us }, 1);
            }
            writer.put(&Mark::Stopped { entry, listener }, 1);
        }
        let bytes = writer.finish();
        let marks = read_marks(&bytes).unwrap();
        let told: Vec<_> = marks.iter().map(|it| (it.kind, it.thread, it.seq)).collect();
        assert_eq!(told[0], (Marked::Started(u32::MAX, None), 0, 0));
        let first = Marked::Started(u32::MAX, Some(u64::MAX));
        assert_eq!(told[24], (first, u64::MAX, u64::MAX));
        let waits = [WAITS_FROM, STOPPED - 1, STOPPED + 1].map(Marked::Waits);
        let rest = [&[Marked::Consumed(0)], &waits[..], &[Marked::Stopped]].concat();
        let rest: Vec<_> = rest.into_iter().map(|it| (it, 1, u64::MAX)).collect();
        assert_eq!(told[25..], rest);
        assert_eq!((&*marks[1].listener, marks[1].kind), ("l0", Marked::Consumed(0)));
        assert_eq!(read_marks(b""), Some(Vec::new()));
        for end in 1..bytes.len() {
            assert_eq!(read_marks(&bytes[..end]), None, "{end}");
        }
        assert_eq!(read_marks(&[&bytes[..], b"\0"].concat()), None);
        assert_eq!(read_marks(&[0xff; 40]), None);
    }
}
