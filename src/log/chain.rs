//! Computes the digests of entries and the chain of commits, and writes and reads the bytes of
//! marks. `docs/log.md` specifies all of them byte by byte.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use blake3::Hasher;
use rustc_hash::FxHashMap;
use uuid::Uuid;

use crate::id::{EntryId, ThreadId};
use crate::log::Identity;
use crate::log::entry::{Draft, Entry, Mark};
use crate::name::Name;

/// The prefixes of the three kinds of hashed bytes. Since they differ, bytes of one kind can't be
/// taken for another kind.
const ENTRY: &[u8] = b"pumphouse entry 1\0";
const COMMIT: &[u8] = b"pumphouse commit 1\0";
const GENESIS: &[u8] = b"pumphouse log 1\0";

/// Bodies up to this size are copied into the buffer with the other fields and hashed in one call.
/// Larger bodies are hashed in place.
const COPIED_BYTES_MAX: usize = 8 * 1024;

/// A commit's number and the hash of the chain up to this commit. As text: `1234:hex…`.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Head {
    /// The commit's number. Commit 0 is written when the log is made.
    pub number: u64,
    /// A BLAKE3 hash that covers this commit and all commits before it.
    pub chain: [u8; 32],
}

impl fmt::Display for Head {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.number, blake3::Hash::from_bytes(self.chain).to_hex())
    }
}

impl fmt::Debug for Head {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The error of a text that isn't a head.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoHead;

impl fmt::Display for NoHead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a head is a commit's number, a colon and 64 hexadecimal digits")
    }
}

impl std::error::Error for NoHead {}

impl FromStr for Head {
    type Err = NoHead;

    fn from_str(text: &str) -> Result<Head, NoHead> {
        let (number, chain) = text.split_once(':').ok_or(NoHead)?;
        if !number.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(NoHead);
        }
        let number = number.parse().map_err(|_| NoHead)?;
        let chain = blake3::Hash::from_hex(chain).map_err(|_| NoHead)?;
        Ok(Head { number, chain: chain.into() })
    }
}

/// The origin of a thread: its parent and the entry that it was forked at, if it has them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Origin {
    pub(super) parent: Option<ThreadId>,
    pub(super) fork: Option<EntryId>,
}

impl Origin {
    /// Makes an origin. `None` for a thread that is neither a child nor a fork.
    pub(super) fn of(parent: Option<ThreadId>, fork: Option<EntryId>) -> Option<Arc<Origin>> {
        (parent.is_some() || fork.is_some()).then(|| Arc::new(Origin { parent, fork }))
    }
}

/// The fields that an entry's digest covers besides the thread's origin, borrowed from a draft or
/// an entry.
struct Parts<'a> {
    id: &'a EntryId,
    at_us: u64,
    from: &'a str,
    to: Option<&'a str>,
    name: &'a Name,
    cause: Option<&'a EntryId>,
    reply_to: Option<&'a EntryId>,
    flags: u32,
    receivers: u32,
    client_id: Option<&'a str>,
    key: Option<u64>,
    meta: Option<&'a [u8]>,
    body: &'a [u8],
}

/// Computes the digest of the entry that a draft becomes. `space` is a buffer to work in.
pub(super) fn of_draft(draft: &Draft, origin: Option<&Origin>, space: &mut Vec<u8>) -> [u8; 32] {
    let parts = Parts {
        id: &draft.id,
        at_us: draft.at_us,
        from: &draft.from,
        to: draft.to.as_deref(),
        name: &draft.name,
        cause: draft.cause.as_ref(),
        reply_to: draft.reply_to.as_ref(),
        flags: draft.flags.bits(),
        receivers: draft.receivers,
        client_id: draft.client_id.as_deref(),
        key: draft.key,
        meta: draft.meta.as_deref(),
        body: &draft.body,
    };
    digest(&parts, origin, space)
}

/// Computes the digest that an entry should have. `space` is a buffer to work in.
pub(super) fn of_entry(entry: &Entry, origin: Option<&Origin>, space: &mut Vec<u8>) -> [u8; 32] {
    let parts = Parts {
        id: &entry.id,
        at_us: entry.at_us,
        from: &entry.from,
        to: entry.to.as_deref(),
        name: &entry.name,
        cause: entry.cause.as_ref(),
        reply_to: entry.reply_to.as_ref(),
        flags: entry.flags.bits(),
        receivers: entry.receivers,
        client_id: entry.client_id.as_deref(),
        key: entry.key,
        meta: entry.meta.as_deref(),
        body: &entry.body,
    };
    digest(&parts, origin, space)
}

fn digest(parts: &Parts<'_>, origin: Option<&Origin>, space: &mut Vec<u8>) -> [u8; 32] {
    space.clear();
    space.extend_from_slice(ENTRY);
    put_entry(space, parts.id);
    put_origin(space, origin);
    put_u64(space, parts.at_us);
    put_bytes(space, parts.from.as_bytes());
    put_option(space, parts.to, |space, to| put_bytes(space, to.as_bytes()));
    put_bytes(space, parts.name.namespace().as_bytes());
    put_bytes(space, parts.name.local().as_bytes());
    put_option(space, parts.cause, put_entry);
    put_option(space, parts.reply_to, put_entry);
    space.extend_from_slice(&parts.flags.to_le_bytes());
    space.extend_from_slice(&parts.receivers.to_le_bytes());
    put_option(space, parts.client_id, |space, id| put_bytes(space, id.as_bytes()));
    put_option(space, parts.key, put_u64);
    put_option(space, parts.meta, put_bytes);
    put_u64(space, parts.body.len() as u64);
    if parts.body.len() <= COPIED_BYTES_MAX {
        space.extend_from_slice(parts.body);
        return blake3::hash(space).into();
    }
    Hasher::new().update(space).update(parts.body).finalize().into()
}

/// Whether commit 0 of a log may have this writer. In today's logs, the writer of commit 0 is the
/// log's own UUID. In logs of older versions, it is a UUID of version 7 that the writing process
/// drew at most a minute before it made the log.
pub(super) fn may_have_made(writer: Uuid, log: &Identity) -> bool {
    /// The longest time between the drawing of the writer's UUID and the making of the log.
    const BEFORE_US: u64 = 60_000_000;
    let made_us = writer.get_timestamp().map(|time| {
        let (seconds, nanos) = time.to_unix();
        seconds.saturating_mul(1_000_000).saturating_add(u64::from(nanos) / 1_000)
    });
    let is_before = |us| (us..=us + BEFORE_US).contains(&log.created_us);
    writer == log.uuid || writer.get_version_num() == 7 && made_us.is_some_and(is_before)
}

/// The hash that the chain begins with. It covers the log's identity.
pub(super) fn genesis(identity: &Identity) -> [u8; 32] {
    let mut space = Vec::with_capacity(GENESIS.len() + 4 + 16 + 32 + 8);
    space.extend_from_slice(GENESIS);
    space.extend_from_slice(&identity.format.to_le_bytes());
    space.extend_from_slice(identity.uuid.as_bytes());
    space.extend_from_slice(&identity.key);
    put_u64(&mut space, identity.created_us);
    blake3::hash(&space).into()
}

/// Computes the chain's hash for one commit. The caller adds the commit's threads, then the digests
/// of its entries, and finally its marks.
pub(super) struct Link {
    hasher: Hasher,
    space: Vec<u8>,
}

/// A commit as the log stores it.
#[derive(Clone, Debug)]
pub(super) struct CommitRow {
    pub(super) commit: Commit,
    pub(super) chain: [u8; 32],
    pub(super) marks: Vec<u8>,
}

impl CommitRow {
    pub(super) fn head(&self) -> Head {
        Head { number: self.commit.number, chain: self.chain }
    }
}

/// The fields of a commit.
#[derive(Clone, Copy, Debug)]
pub(super) struct Commit {
    pub(super) number: u64,
    pub(super) writer: Uuid,
    pub(super) last_position: u64,
    pub(super) last_thread: u64,
}

impl Link {
    pub(super) fn new(previous: [u8; 32], commit: Commit) -> Link {
        let mut space = Vec::with_capacity(1024);
        space.extend_from_slice(COMMIT);
        space.extend_from_slice(&previous);
        put_u64(&mut space, commit.number);
        space.extend_from_slice(commit.writer.as_bytes());
        put_u64(&mut space, commit.last_position);
        put_u64(&mut space, commit.last_thread);
        Link { hasher: Hasher::new(), space }
    }

    pub(super) fn thread(&mut self, id: &ThreadId, origin: Option<&Origin>) {
        self.space.push(b't');
        put_bytes(&mut self.space, id.as_str().as_bytes());
        put_origin(&mut self.space, origin);
        self.spill();
    }

    pub(super) fn entry(&mut self, digest: &[u8; 32]) {
        self.space.push(b'e');
        self.space.extend_from_slice(digest);
        self.spill();
    }

    pub(super) fn finish(mut self, marks: &[u8]) -> [u8; 32] {
        self.space.push(b'm');
        put_u64(&mut self.space, marks.len() as u64);
        self.hasher.update(&self.space).update(marks).finalize().into()
    }

    /// Passes the collected bytes to the hasher once they are at least 64 KiB, since the hasher is
    /// fastest with long input.
    fn spill(&mut self) {
        if self.space.len() >= 64 * 1024 {
            self.hasher.update(&self.space);
            self.space.clear();
        }
    }
}

/// Starts and waits are encoded alike, with one number. Below this value, the number is the attempt
/// that starts. From this value on, the number is the time until which the delivery waits, in
/// microseconds since the epoch.
const WAITS_FROM: u64 = 1 << 32;

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
            Marked::Started(attempt) => Mark::Started { entry, listener, attempt },
            Marked::Consumed(attempt) => Mark::Consumed { entry, listener, attempt },
            Marked::Waits(until_us) => Mark::Waits { entry, listener, until_us },
        }
    }
}

/// The kinds of marks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Marked {
    /// The number of the attempt that begins, or 0 as in [`Mark::Started`].
    Started(u32),
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
        let (consumed, entry, listener, number) = match mark {
            Mark::Started { entry, listener, attempt } => (0, entry, listener, (*attempt).into()),
            Mark::Consumed { entry, listener, attempt } => (1, entry, listener, (*attempt).into()),
            Mark::Waits { entry, listener, until_us } => {
                (0, entry, listener, (*until_us).max(WAITS_FROM))
            }
        };
        let listener = self.listener(listener);
        put_varint(&mut self.marks, listener << 1 | consumed);
        put_varint(&mut self.marks, thread);
        put_varint(&mut self.marks, entry.seq);
        put_varint(&mut self.marks, number);
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
            (0, Ok(attempt)) => Marked::Started(attempt),
            (0, Err(_)) => Marked::Waits(number),
            (_, attempt) => Marked::Consumed(attempt.ok()?),
        };
        marks.push(MarkRow { thread, seq, listener, kind });
    }
    from.is_empty().then_some(marks)
}

fn put_u64(to: &mut Vec<u8>, number: u64) {
    to.extend_from_slice(&number.to_le_bytes());
}

fn put_bytes(to: &mut Vec<u8>, bytes: &[u8]) {
    put_u64(to, bytes.len() as u64);
    to.extend_from_slice(bytes);
}

fn put_option<T>(to: &mut Vec<u8>, value: Option<T>, put: impl FnOnce(&mut Vec<u8>, T)) {
    match value {
        None => to.push(0),
        Some(content) => {
            to.push(1);
            put(to, content);
        }
    }
}

fn put_entry(to: &mut Vec<u8>, id: &EntryId) {
    put_bytes(to, id.thread.as_str().as_bytes());
    put_u64(to, id.seq);
}

fn put_origin(to: &mut Vec<u8>, origin: Option<&Origin>) {
    let parent = origin.and_then(|it| it.parent.as_ref());
    put_option(to, parent, |to, parent| put_bytes(to, parent.as_str().as_bytes()));
    put_option(to, origin.and_then(|it| it.fork.as_ref()), put_entry);
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
    use bytes::Bytes;

    use super::*;
    use crate::log::Flags;

    const PAGE: &str = include_str!("../../docs/log.md");

    fn hex(bytes: &[u8]) -> String {
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// Checks that `docs/log.md` has this line among its test vectors.
    fn told(what: &str, bytes: &[u8]) {
        let line = format!("{what}: {}\n", hex(bytes));
        assert!(PAGE.contains(&line), "docs/log.md lacks the line\n{line}");
    }

    fn identity() -> Identity {
        Identity {
            format: 1,
            uuid: Uuid::from_bytes([0x11; 16]),
            key: [0x22; 32],
            created_us: 1_700_000_000_000_000,
        }
    }

    fn least() -> Draft {
        let id = "sess-00000001/1".parse().unwrap();
        let name = Name::of("urn:test", "note");
        Draft::new(
            id,
            1_700_000_000_000_001,
            "console".into(),
            name,
            Bytes::from_static(b"<note/>"),
        )
    }

    fn most() -> (Draft, Origin) {
        let draft = Draft {
            id: "sess-00000001.a/3".parse().unwrap(),
            to: Some("echo".into()),
            cause: Some("sess-00000001/1".parse().unwrap()),
            reply_to: Some("sess-00000001/2".parse().unwrap()),
            flags: Flags::FROM_IDENTITY.with(Flags::ANSWER_WANTED),
            receivers: 2,
            client_id: Some("mine".into()),
            meta: Some(Bytes::from_static(b"<m/>")),
            key: Some(9),
            ..least()
        };
        let parent = Some(ThreadId::new("sess-00000001"));
        (draft, Origin { parent, fork: Some("sess-00000001/2".parse().unwrap()) })
    }

    #[test]
    fn the_page_has_the_digests_of_entries() {
        let mut space = Vec::new();
        let digest = of_draft(&least(), None, &mut space);
        assert_eq!(digest, *blake3::hash(&space).as_bytes());
        told("entry 1 bytes", &space);
        told("entry 1 digest", &digest);
        let (draft, origin) = most();
        let digest = of_draft(&draft, Some(&origin), &mut space);
        told("entry 2 bytes", &space);
        told("entry 2 digest", &digest);
        assert_eq!(of_entry(&draft.seal(digest), Some(&origin), &mut space), digest);
    }

    #[test]
    fn the_page_has_the_chain() {
        let start = genesis(&identity());
        told("genesis", &start);
        let commit = Commit {
            number: 1,
            writer: Uuid::from_bytes([0x33; 16]),
            last_position: 1,
            last_thread: 1,
        };
        let mut marks = MarkWriter::default();
        let entry: EntryId = "sess-00000001/1".parse().unwrap();
        marks.put(&Mark::Started { entry: entry.clone(), listener: "echo".into(), attempt: 1 }, 1);
        marks.put(&Mark::Consumed { entry, listener: "echo".into(), attempt: 1 }, 1);
        let marks = marks.finish();
        told("marks", &marks);
        let mut link = Link::new(start, commit);
        link.thread(&ThreadId::new("sess-00000001"), None);
        link.entry(&of_draft(&least(), None, &mut Vec::new()));
        let chain = link.finish(&marks);
        told("chain", &chain);
        let head = Head { number: 1, chain };
        assert!(PAGE.contains(&format!("head: {head}\n")), "{head}");
        assert_eq!(head.to_string().parse(), Ok(head));
    }

    #[test]
    fn a_head_is_read_exactly() {
        let good = format!("7:{}", "ab".repeat(32));
        assert_eq!(good.parse::<Head>().unwrap().to_string(), good);
        for bad in ["", "7", ":", "7:", "7:ab", "+7:", "-1:"] {
            let long = format!("{bad}{}", "ab".repeat(32));
            assert_eq!(bad.parse::<Head>(), Err(NoHead), "{bad}");
            assert!(long.parse::<Head>().is_err() || bad == "7:", "{long}");
        }
    }

    #[test]
    fn large_bodies_have_the_digest_of_their_bytes() {
        for length in [COPIED_BYTES_MAX, COPIED_BYTES_MAX + 1] {
            let draft = Draft { body: vec![7; length].into(), ..least() };
            let mut space = Vec::new();
            let digest = of_draft(&draft, None, &mut space);
            if length > COPIED_BYTES_MAX {
                space.extend_from_slice(&draft.body);
            }
            assert_eq!(digest, *blake3::hash(&space).as_bytes());
        }
    }

    #[test]
    fn marks_are_read_as_they_are_written() {
        let mut writer = MarkWriter::default();
        for number in [0, 1, 127, 128, u64::MAX] {
            let entry = EntryId::new(&ThreadId::new("t"), number);
            let listener: Arc<str> = format!("l{}", number % 3).into();
            let attempt = u32::MAX;
            let started = Mark::Started { entry: entry.clone(), listener, attempt };
            writer.put(&started, number);
            let (listener, until_us) = ("l0".into(), WAITS_FROM);
            writer.put(&Mark::Consumed { entry: entry.clone(), listener, attempt: 0 }, 1);
            writer.put(&Mark::Waits { entry, listener: "l0".into(), until_us }, 1);
        }
        let bytes = writer.finish();
        let marks = read_marks(&bytes).unwrap();
        let told: Vec<_> = marks.iter().map(|it| (it.kind, it.thread, it.seq)).collect();
        let (first, last) = (Marked::Started(u32::MAX), Marked::Waits(WAITS_FROM));
        assert_eq!(told[12], (first, u64::MAX, u64::MAX));
        assert_eq!(told[13..], [(Marked::Consumed(0), 1, u64::MAX), (last, 1, u64::MAX)]);
        assert_eq!((&*marks[1].listener, marks[1].kind), ("l0", Marked::Consumed(0)));
        assert_eq!(read_marks(b""), Some(Vec::new()));
        for end in 1..bytes.len() {
            assert_eq!(read_marks(&bytes[..end]), None, "{end}");
        }
        assert_eq!(read_marks(&[&bytes[..], b"\0"].concat()), None);
        assert_eq!(read_marks(&[0xff; 40]), None);
    }
}
