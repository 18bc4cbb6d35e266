//! What a fork shares with the threads that it goes on from.

use std::sync::Arc;

use crate::id::{EntryId, ThreadId};
use crate::log;
use crate::log::Log;

/// What a fork goes on from.
#[derive(Clone, Debug)]
pub(crate) struct Source {
    /// The last entry that it shares.
    pub(crate) at: EntryId,
    pub(crate) lineage: Lineage,
}

/// What a thread shares with others: of each that it goes on from, the last entry.
#[derive(Clone, Debug, Default)]
pub(crate) struct Lineage(Arc<[EntryId]>);

impl Lineage {
    /// The lineage of a thread with this link.
    pub(crate) async fn read(log: &dyn Log, fork: Option<&EntryId>) -> Result<Lineage, log::Error> {
        let mut all: Vec<EntryId> = Vec::new();
        let mut next = fork.cloned();
        while let Some(at) = next {
            let source = log.thread(&at.thread).await?.and_then(|it| it.fork);
            // A fork within what its source shares ends there as well.
            next = source.map(|it| EntryId { seq: it.seq.min(at.seq), ..it });
            all.push(at);
        }
        Ok(Lineage(all.into()))
    }

    /// The threads that it shares entries of.
    pub(crate) fn threads(&self) -> impl Iterator<Item = &ThreadId> {
        self.0.iter().map(|it| &it.thread)
    }

    /// Whether an entry is shared.
    pub(crate) fn has(&self, id: &EntryId) -> bool {
        self.0.iter().any(|it| it.thread == id.thread && id.seq <= it.seq)
    }
}
