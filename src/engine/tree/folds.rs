//! The folds of a thread in memory. All listeners of a thread share one state for each type of
//! fold. So the engine computes a fold once for all listeners that take it, unless one of them
//! lags.
//!
//! A handler takes its folds as of a certain entry. Another listener may bring a shared state past
//! that entry before the handler starts. Then the handler needs an older state. So the engine first
//! *pins* the shared state for each listener that has messages left.

use std::any::TypeId;
use std::collections::VecDeque;

use rustc_hash::FxHashMap;

use crate::engine::tree::event::Start;
use crate::listener::{Awake, FoldId, FoldOf};

/// The state of a fold as of an entry.
#[derive(Clone)]
pub(crate) struct FoldVersion {
    /// The type of the fold.
    pub(crate) id: TypeId,
    /// The number of the last entry that the state includes. 0 for an empty state.
    pub(crate) seq: u64,
    pub(crate) state: Awake,
}

impl FoldVersion {
    /// Returns the state of a fold before the first entry.
    pub(crate) fn empty(((id, _), fold): &(FoldId, FoldOf)) -> FoldVersion {
        FoldVersion { id: *id, seq: 0, state: (fold.empty)() }
    }
}

/// The folds of a thread in memory.
#[derive(Default)]
pub(crate) struct Folds {
    /// The newest state of each fold, which all listeners share.
    newest: Vec<FoldVersion>,
    /// Older states, each with the one listener that may still need the state.
    pinned: Vec<(usize, FoldVersion)>,
    /// Handlers that start once the folds of their listener are loaded.
    waking: FxHashMap<usize, VecDeque<Box<Start>>>,
    /// The handlers that are to start and haven't taken their folds yet: the listener of each, and
    /// the number of the last entry that its folds may include.
    starting: Vec<(usize, u64)>,
}

impl Folds {
    /// Returns whether no fold is in memory or being loaded.
    pub(crate) fn is_empty(&self) -> bool {
        self.newest.is_empty() && self.pinned.is_empty() && self.waking.is_empty()
    }

    /// Returns whether folds are being loaded.
    pub(crate) fn is_waking(&self) -> bool {
        !self.waking.is_empty()
    }

    /// Returns the number of the last entry that all states in memory include. None if no state is
    /// in memory.
    pub(crate) fn seen_by_all(&self) -> Option<u64> {
        let pinned = self.pinned.iter().map(|(_, it)| it.seq);
        self.newest.iter().map(|it| it.seq).chain(pinned).min()
    }

    /// Drops the states that don't include the entry `oldest`.
    pub(crate) fn drop_before(&mut self, oldest: u64) {
        self.newest.retain(|it| it.seq >= oldest);
        self.pinned.retain(|(_, it)| it.seq >= oldest);
    }

    /// Notes that a handler of a listener is to start, and will take folds as of the entry `upto`.
    pub(crate) fn note_start(&mut self, listener: usize, upto: u64) {
        self.starting.push((listener, upto));
    }

    /// Notes that a handler of a listener has its folds, has to wait for them, or won't start.
    pub(crate) fn note_started(&mut self, listener: usize, upto: u64) {
        if let Some(at) = self.starting.iter().position(|it| *it == (listener, upto)) {
            self.starting.swap_remove(at);
        }
    }

    /// Returns the handlers that are to start and haven't taken their folds yet: the listener of
    /// each, and the number of the last entry that its folds may include.
    pub(crate) fn starting(&self) -> impl Iterator<Item = (usize, u64)> {
        self.starting.iter().copied()
    }

    /// Keeps the shared state of a fold for a listener that will take its folds as of the entry
    /// `upto`. Does nothing if the state includes later entries. A state that was pinned earlier
    /// stays.
    pub(crate) fn pin(&mut self, listener: usize, id: TypeId, upto: u64) {
        let is_pinned = self.pinned.iter().any(|(of, it)| *of == listener && it.id == id);
        let newest = self.newest.iter().find(|it| it.id == id && it.seq <= upto);
        if let Some(newest) = newest.filter(|_| !is_pinned) {
            self.pinned.push((listener, newest.clone()));
        }
    }

    /// Returns the newest state that a listener can take and that has no entry after `upto`. None
    /// if there is no such state in memory.
    pub(crate) fn best(&self, listener: usize, id: TypeId, upto: u64) -> Option<&FoldVersion> {
        let newest = self.newest.iter().find(|it| it.id == id && it.seq <= upto);
        let is_own =
            |(of, it): &&(usize, FoldVersion)| *of == listener && it.id == id && it.seq <= upto;
        newest.or_else(|| self.pinned.iter().find(is_own).map(|(_, it)| it))
    }

    /// Removes and returns the state that [`best`](Folds::best) finds, or an empty state. The
    /// caller brings the state up to `upto` and hands it to [`put`](Folds::put).
    pub(crate) fn take(
        &mut self,
        listener: usize,
        fold: &(FoldId, FoldOf),
        upto: u64,
    ) -> FoldVersion {
        let (id, _) = fold.0;
        let is_own = |(of, it): &(usize, FoldVersion)| *of == listener && it.id == id;
        let pinned = self.pinned.iter().position(is_own);
        let pinned = pinned.map(|at| self.pinned.swap_remove(at).1);
        let newest = self.newest.iter().position(|it| it.id == id && it.seq <= upto);
        let newest = newest.map(|at| self.newest.swap_remove(at));
        let found = newest.or(pinned.filter(|it| it.seq <= upto));
        found.unwrap_or_else(|| FoldVersion::empty(fold))
    }

    /// Keeps a state. All listeners share the state unless there is a newer one. Otherwise the
    /// state is for this listener alone.
    pub(crate) fn put(&mut self, listener: usize, version: FoldVersion) {
        match self.newest.iter_mut().find(|it| it.id == version.id) {
            None => self.newest.push(version),
            Some(newest) if newest.seq < version.seq => *newest = version,
            Some(newest) if newest.seq == version.seq => {}
            Some(_) => {
                self.pinned.retain(|(of, it)| *of != listener || it.id != version.id);
                self.pinned.push((listener, version));
            }
        }
    }

    /// Returns the handlers of a listener that wait for its folds to be loaded. None if its folds
    /// aren't being loaded.
    pub(crate) fn waiting(&mut self, listener: usize) -> Option<&mut VecDeque<Box<Start>>> {
        self.waking.get_mut(&listener)
    }

    /// Notes that the folds of a listener are being loaded. These handlers wait for them.
    pub(crate) fn begin_waking(&mut self, listener: usize, waiting: VecDeque<Box<Start>>) {
        self.waking.insert(listener, waiting);
    }

    /// Notes that the folds of a listener are loaded. Returns the handlers that waited for them, or
    /// None if the folds weren't being loaded.
    pub(crate) fn end_waking(&mut self, listener: usize) -> Option<VecDeque<Box<Start>>> {
        self.waking.remove(&listener)
    }

    /// Returns the newest states.
    pub(crate) fn newest(&self) -> &[FoldVersion] {
        &self.newest
    }

    /// Drops all states. Returns the listener of each handler that waits for its folds.
    pub(crate) fn drain(&mut self) -> Vec<usize> {
        let waking = std::mem::take(self).waking.into_iter();
        waking.flat_map(|(listener, it)| std::iter::repeat_n(listener, it.len())).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::listener::{Apply, Entry};

    #[derive(Clone, Debug, Default)]
    struct Sum;

    impl Apply for Sum {
        fn apply(&mut self, _: &Entry) {}
    }

    fn fold() -> (FoldId, FoldOf) {
        FoldOf::of::<Sum>()
    }

    fn version(seq: u64) -> FoldVersion {
        FoldVersion { id: TypeId::of::<Sum>(), seq, state: Arc::new(Sum) }
    }

    /// The entry up to which a listener finds a state, if it may go no further than `upto`.
    fn found(folds: &Folds, listener: usize, upto: u64) -> Option<u64> {
        folds.best(listener, TypeId::of::<Sum>(), upto).map(|it| it.seq)
    }

    #[test]
    fn listeners_share_the_newest_state() {
        let mut folds = Folds::default();
        folds.put(1, version(4));
        assert_eq!((found(&folds, 1, 5), found(&folds, 2, 5)), (Some(4), Some(4)));
        let mut taken = folds.take(2, &fold(), 5);
        assert!(folds.newest().is_empty(), "only the taker may change the state");
        taken.seq = 5;
        folds.put(2, taken);
        assert_eq!((found(&folds, 1, 5), found(&folds, 1, 4)), (Some(5), None));
    }

    #[test]
    fn a_pinned_state_is_for_its_listener_alone() {
        let mut folds = Folds::default();
        folds.put(1, version(4));
        folds.pin(2, fold().0.0, 5);
        folds.put(1, version(7));
        folds.pin(2, fold().0.0, 5);
        assert_eq!((found(&folds, 2, 5), found(&folds, 3, 5)), (Some(4), None));
        assert_eq!(folds.seen_by_all(), Some(4));
        let mut taken = folds.take(2, &fold(), 5);
        taken.seq = 5;
        folds.put(2, taken);
        assert_eq!((found(&folds, 2, 6), found(&folds, 2, 7)), (Some(5), Some(7)));
        folds.take(2, &fold(), 7);
        assert_eq!(
            found(&folds, 2, 6),
            None,
            "a listener that has caught up needs no pinned state"
        );
    }

    #[test]
    fn states_that_miss_entries_are_dropped() {
        let mut folds = Folds::default();
        folds.put(1, version(4));
        folds.pin(2, fold().0.0, 5);
        folds.put(1, version(7));
        folds.drop_before(5);
        assert_eq!((found(&folds, 2, 6), found(&folds, 2, 7)), (None, Some(7)));
        folds.drop_before(8);
        assert!(folds.is_empty());
    }
}
