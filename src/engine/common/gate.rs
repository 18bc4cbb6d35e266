//! Bounds how many handlers of one listener run at once, over all workers.

use std::sync::atomic::Ordering::SeqCst;
use std::sync::atomic::{AtomicU64, AtomicUsize};

/// A listener's free places, the workers that wait for one, and the handlers that can't be ended.
#[derive(Debug)]
pub(crate) struct Gate {
    free: AtomicUsize,
    /// A bit for each worker that waits for a place.
    waiting: AtomicU64,
    /// The handlers that gave their place back after their time, and still block a thread.
    stuck: AtomicUsize,
}

impl Gate {
    pub(crate) fn new(places: usize) -> Gate {
        let (waiting, stuck) = (AtomicU64::new(0), AtomicUsize::new(0));
        Gate { free: AtomicUsize::new(places), waiting, stuck }
    }

    /// Counts a handler that can't be ended, and returns how many there are now.
    pub(crate) fn count_stuck(&self) -> usize {
        self.stuck.fetch_add(1, SeqCst) + 1
    }

    /// Counts a handler no longer that couldn't be ended, and ended by itself.
    pub(crate) fn release_stuck(&self) {
        self.stuck.fetch_sub(1, SeqCst);
    }

    /// Returns how many handlers can't be ended.
    pub(crate) fn stuck(&self) -> usize {
        self.stuck.load(SeqCst)
    }

    /// Returns how many places are free.
    pub(crate) fn free(&self) -> usize {
        self.free.load(SeqCst)
    }

    /// Takes a place and returns true. If no place is free, notes that this worker waits for one,
    /// and returns false.
    pub(crate) fn enter(&self, worker: usize) -> bool {
        if self.take() {
            return true;
        }
        // A place may have been freed just before the bit was set, so the worker tries once more.
        self.waiting.fetch_or(1 << worker, SeqCst);
        self.take()
    }

    /// Gives a place back. Returns the workers that wait for a place, as bits.
    pub(crate) fn leave(&self) -> u64 {
        self.free.fetch_add(1, SeqCst);
        if self.waiting.load(SeqCst) == 0 { 0 } else { self.waiting.swap(0, SeqCst) }
    }

    /// Notes that this worker waits for a place. Returns whether a place is free already.
    pub(crate) fn wait(&self, worker: usize) -> bool {
        self.waiting.fetch_or(1 << worker, SeqCst);
        self.free.load(SeqCst) > 0
    }

    fn take(&self) -> bool {
        self.free.fetch_update(SeqCst, SeqCst, |free| free.checked_sub(1)).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_finds_no_place_is_told_of_the_next() {
        let gate = Gate::new(1);
        assert!(gate.enter(0));
        assert!(!gate.enter(3));
        assert_eq!(gate.leave(), 1 << 3);
        assert!(gate.enter(3));
        assert_eq!(gate.leave(), 0);
    }
}
