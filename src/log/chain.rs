//! Computes the digests of entries and the chain of commits. `docs/log.md` specifies both byte by
//! byte.

use std::sync::Arc;

use blake3::Hasher;
use uuid::Uuid;

use crate::id::{EntryId, ThreadId};
use crate::log::entry::{Draft, Entry};
use crate::log::head::Head;
use crate::log::identity::Identity;
use crate::name::Name;

/// The prefixes of the three kinds of hashed bytes. Since they differ, bytes of one kind can't be
/// taken for another kind.
const ENTRY: &[u8] = b"pumphouse entry 1\0";
const COMMIT: &[u8] = b"pumphouse commit 1\0";
const GENESIS: &[u8] = b"pumphouse log 1\0";

/// Bodies up to this size are copied into the buffer with the other fields and hashed in one call.
/// Larger bodies are hashed in place.
const COPIED_BYTES_MAX: usize = 8 * 1024;

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

/// Computes the digest that an entry of a thread with this parent and this fork link should have.
pub fn digest_of(entry: &Entry, parent: Option<&ThreadId>, fork: Option<&EntryId>) -> [u8; 32] {
    let origin = Origin::of(parent.cloned(), fork.cloned());
    of_entry(entry, origin.as_deref(), &mut Vec::new())
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

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::log::entry::{Flags, Mark};
    use crate::log::mark_bytes::MarkWriter;

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
            format: Identity::FORMAT,
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
        let (listener, attempt): (Arc<str>, u32) = ("echo".into(), 1);
        let started = |as_of| {
            let (entry, listener) = (entry.clone(), listener.clone());
            Mark::Started { entry, listener, attempt, as_of }
        };
        marks.put(&started(None), 1);
        marks.put(&Mark::Stopped { entry: entry.clone(), listener: listener.clone() }, 1);
        marks.put(&started(Some(1)), 1);
        marks.put(&Mark::Consumed { entry: entry.clone(), listener: listener.clone(), attempt }, 1);
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
}
