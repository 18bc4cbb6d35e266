//! The entries that a fork shares with the threads that it continues.

use std::sync::Arc;

use crate::id::{EntryId, ThreadId};
use crate::log;
use crate::log::Log;

/// The entry that a fork continues from.
#[derive(Clone, Debug)]
pub(crate) struct Source {
    /// The last entry that the fork shares.
    pub(crate) at: EntryId,
    pub(crate) lineage: Lineage,
}

/// The last shared entry of each thread that a fork continues. The fork's own source comes first,
/// then the source's source, and so on.
#[derive(Clone, Debug, Default)]
pub(crate) struct Lineage(Arc<[EntryId]>);

impl Lineage {
    /// Reads the lineage of a thread whose last shared entry is `fork`. `fork` is None for a thread
    /// that is no fork; its lineage is empty.
    pub(crate) async fn read(log: &dyn Log, fork: Option<&EntryId>) -> Result<Lineage, log::Error> {
        let mut all: Vec<EntryId> = Vec::new();
        let mut next = fork.cloned();
        while let Some(at) = next {
            let source = log.thread(&at.thread).await?.and_then(|it| it.fork);
            // The source may be a fork itself. This fork shares no entries after `at`, even if its
            // source does.
            next = source.map(|it| EntryId { seq: it.seq.min(at.seq), ..it });
            all.push(at);
        }
        Ok(Lineage(all.into()))
    }

    /// Returns the threads whose entries are shared.
    pub(crate) fn threads(&self) -> impl Iterator<Item = &ThreadId> {
        self.0.iter().map(|it| &it.thread)
    }

    /// Returns whether an entry is shared.
    pub(crate) fn has(&self, id: &EntryId) -> bool {
        self.0.iter().any(|it| it.thread == id.thread && id.seq <= it.seq)
    }
}
