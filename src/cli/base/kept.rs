//! Makes entries of a log, for the tests of the modules that read logs.

use bytes::Bytes;

use crate::id::{EntryId, ThreadId};
use crate::listener::Entry;
use crate::log::{Draft, Flags};
use crate::wire::Payload;

/// The fields of an entry that most tests leave out.
#[derive(Clone, Copy, Default)]
pub(crate) struct Kept {
    pub(crate) flags: Flags,
    /// The number of the entry's cause, in the same thread.
    pub(crate) cause: Option<u64>,
    /// The number of the entry that this one answers, in the same thread.
    pub(crate) reply_to: Option<u64>,
    pub(crate) receivers: u32,
    pub(crate) key: Option<&'static str>,
}

/// Makes an entry of the thread `t`. The entry's time is `seq` seconds after the epoch.
pub(crate) fn kept<P: Payload>(seq: u64, from: &str, to: &str, payload: &P, with: Kept) -> Entry {
    let element = payload.encode().unwrap();
    let thread = ThreadId::new("t");
    let id = EntryId::new(&thread, seq);
    let draft = Draft::new(id, seq * 1_000_000, from.into(), P::NAME, element.canonical());
    let link = |it: Option<u64>| it.map(|it| EntryId::new(&thread, it));
    let key = with.key.map(|it| {
        let ns = "https://xml-pipeline.org/ns/meta/v1";
        Bytes::from(format!("<key xmlns=\"{ns}\">{it}</key>"))
    });
    let draft = Draft {
        to: Some(to.into()),
        flags: with.flags,
        cause: link(with.cause),
        reply_to: link(with.reply_to),
        receivers: with.receivers,
        meta: key,
        ..draft
    };
    Entry::fresh(&draft, element)
}
