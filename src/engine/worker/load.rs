//! Reads trees and folds from the log.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use crate::engine::common::shared::Shared;
use crate::engine::read_fault::unread;
use crate::engine::tree::budget_ledger;
use crate::engine::tree::budget_ledger::Ledger;
use crate::engine::tree::event::{FoldPanic, Key};
use crate::engine::tree::folds::FoldVersion;
use crate::engine::tree::lineage::Lineage;
use crate::engine::worker::outcome::panic_text;
use crate::id::{EntryId, ThreadId};
use crate::limits::Limits;
use crate::listener::Entry;
use crate::log;
use crate::log::{Log, Pages};
use crate::wire::{Code, Fault};

/// A tree or folds that were loaded from the log, or the error of loading them.
pub(crate) enum Loaded {
    Tree(ThreadId, Result<LoadedTree, UnreadableTree>),
    Folds { thread: ThreadId, listener: usize, folds: Result<Vec<FoldVersion>, FoldError> },
}

/// Why folds can't be computed: the log can't be read, or a fold panicked.
pub(crate) enum FoldError {
    Unread(Fault),
    Panicked(FoldPanic),
}

/// A tree that was read from the log: its threads, its budget, and its deliveries that wait for a
/// time or an entry.
pub(crate) struct LoadedTree {
    pub(super) threads: Vec<log::ThreadRecord>,
    /// If the session is a fork: the threads that it continues.
    pub(super) lineage: Lineage,
    pub(super) ledger: Ledger,
    pub(super) waits: Vec<(Key, Entry)>,
}

/// The error of reading a tree, and the tree's owner, if the log can tell it.
pub(crate) struct UnreadableTree {
    pub(super) error: log::Error,
    pub(super) owner: Option<Arc<str>>,
}

/// Reads a tree, and the entries of the deliveries in `waits`.
pub(super) async fn find(
    log: &dyn Log,
    tree: &ThreadId,
    waits: Vec<(u64, Key)>,
    limits: &Limits,
) -> Result<LoadedTree, log::Error> {
    let mut threads = log.tree(tree).await?;
    let mut lineage = Lineage::default();
    // The sender of the opening entry owns the tree, even after the session has ended. The opening
    // entry of a fork is its first own entry, not the first entry that it shares.
    if let Some(session) = threads.first_mut().filter(|it| it.first.is_none() || it.fork.is_some())
    {
        session.first = log.opening(session).await?;
        lineage = Lineage::read(log, session.fork.as_ref()).await?;
    }
    let ledger = budget_ledger::read(log, &threads, limits).await?;
    let mut found = LoadedTree { threads, lineage, ledger, waits: Vec::new() };
    for (_, key) in waits {
        let entry = log.entry(&EntryId::new(&key.thread, key.seq)).await?;
        found.waits.extend(entry.map(|entry| (key, Entry::kept(&entry))));
    }
    Ok(found)
}

/// Applies an entry to the folds of a listener, unless a fold's state already includes the entry. A
/// panic of a fold is caught, and concerns this listener alone.
pub(super) fn apply(
    shared: &Shared,
    listener: usize,
    entry: &Entry,
    versions: &mut [FoldVersion],
) -> Result<(), FoldPanic> {
    let registered = &shared.routes.listeners[listener];
    let applied = catch_unwind(AssertUnwindSafe(|| {
        for (version, (_, fold)) in versions.iter_mut().zip(&registered.folds) {
            if version.seq < entry.seq() {
                (fold.apply)(&mut version.state, entry);
                version.seq = entry.seq();
            }
        }
    }));
    applied.map_err(|panic| FoldPanic { entry: entry.id().clone(), text: panic_text(&*panic) })
}

/// Brings the folds of a listener up to the entry `upto`, with entries from the log.
pub(crate) async fn read_folds(
    shared: Arc<Shared>,
    listener: usize,
    upto: EntryId,
    mut versions: Vec<FoldVersion>,
) -> Result<Vec<FoldVersion>, FoldError> {
    let mut seq = versions.iter().map(|it| it.seq).min().unwrap_or(upto.seq);
    let mut pages = Pages::of(&*shared.log, &upto.thread).after(seq).upto(upto.seq);
    while seq < upto.seq {
        let page = pages.next().await.map_err(|error| FoldError::Unread(unread(&error)))?;
        let Some(page) = page else {
            let text = format!("{} has no entry after {seq}", upto.thread);
            return Err(FoldError::Unread(Fault::new(Code::Unreadable, text)));
        };
        for entry in &page {
            let entry = Entry::kept(entry);
            apply(&shared, listener, &entry, &mut versions).map_err(FoldError::Panicked)?;
            debug_assert_eq!(entry.seq(), seq + 1, "the log gives a thread without a gap");
            seq = entry.seq();
        }
    }
    Ok(versions)
}
