//! Timers: deliveries that wait for a time or an entry, in all trees of one worker, whether in
//! memory or not. A delivery that waits for an entry has a time that never comes.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use rustc_hash::FxHashMap;

use crate::engine::tree::due_time::Until;
use crate::engine::tree::event::Key;
use crate::id::ThreadId;

/// Deliveries that wait, each with its time.
#[derive(Default)]
pub(crate) struct Waits {
    /// Times and the numbers of their deliveries, the earliest first. A delivery that no longer
    /// waits may still be in the heap.
    heap: BinaryHeap<Reverse<(u64, u64)>>,
    by_number: FxHashMap<u64, Key>,
    /// Maps a tree's id to the tree's waiting deliveries, each with its number and its time.
    by_tree: FxHashMap<ThreadId, FxHashMap<Key, (u64, u64)>>,
    /// Deliveries that wait for a time of the wall clock, each with that time.
    by_clock: FxHashMap<Key, u64>,
    /// How many microseconds the wall clock is ahead of the monotonic clock.
    ahead_us: i64,
    count: u64,
}

impl Waits {
    /// Creates an empty set, for a wall clock that is `ahead_us` ahead of the monotonic clock.
    pub(crate) fn since(ahead_us: i64) -> Waits {
        Waits { ahead_us, ..Waits::default() }
    }

    /// Adds a delivery.
    pub(crate) fn add(&mut self, until: Until, key: Key) {
        let until_us = match until {
            Until::Passed(us) => us,
            Until::Clock(us) => {
                self.by_clock.insert(key.clone(), us);
                us.saturating_sub_signed(self.ahead_us)
            }
        };
        self.count += 1;
        if until_us < u64::MAX {
            self.heap.push(Reverse((until_us, self.count)));
            self.by_number.insert(self.count, key.clone());
        }
        let tree = self.by_tree.entry(key.thread.tree()).or_default();
        tree.insert(key, (self.count, until_us));
    }

    /// Removes a delivery.
    pub(crate) fn remove(&mut self, key: &Key) {
        self.by_clock.remove(key);
        let tree = key.thread.tree_str();
        let Some(waiting) = self.by_tree.get_mut(tree) else { return };
        if let Some((number, _)) = waiting.remove(key) {
            self.by_number.remove(&number);
        }
        if waiting.is_empty() {
            self.by_tree.remove(tree);
        }
    }

    /// Returns whether a delivery waits for a time of the wall clock.
    pub(crate) fn go_by_clock(&self) -> bool {
        !self.by_clock.is_empty()
    }

    /// Notes that the wall clock was set, and how far it is ahead now. With `is_back`, the clock
    /// was set back so far that the deliveries that wait for a time of the wall clock are due at
    /// once.
    pub(crate) fn set_clock(&mut self, ahead_us: i64, is_back: bool) {
        self.ahead_us = ahead_us;
        let mut all: Vec<(Key, u64)> = std::mem::take(&mut self.by_clock).into_iter().collect();
        all.sort_unstable_by(|(a, _), (b, _)| (&a.thread, a.seq).cmp(&(&b.thread, b.seq)));
        for (key, until_us) in all {
            self.remove(&key);
            self.add(Until::Clock(if is_back { 0 } else { until_us }), key);
        }
    }

    /// Returns the next time that a delivery waits for.
    pub(crate) fn next_us(&mut self) -> Option<u64> {
        while let Some(Reverse((until_us, number))) = self.heap.peek() {
            if self.by_number.contains_key(number) {
                return Some(*until_us);
            }
            self.heap.pop();
        }
        None
    }

    /// Takes the deliveries that are due. Each delivery stays listed in its tree until `remove` is
    /// called.
    pub(crate) fn due(&mut self, now_us: u64) -> Vec<Key> {
        let mut due = Vec::new();
        while self.next_us().is_some_and(|it| it <= now_us) {
            let Some(Reverse((_, number))) = self.heap.pop() else { break };
            due.extend(self.by_number.remove(&number));
        }
        due
    }

    /// Returns the deliveries that wait in a tree, each with its time, in the order in which they
    /// were added.
    pub(crate) fn of(&self, tree: &ThreadId) -> Vec<(u64, Key)> {
        let waiting = self.by_tree.get(tree);
        let mut all: Vec<(u64, u64, Key)> = waiting
            .into_iter()
            .flatten()
            .map(|(key, (number, until_us))| (*number, *until_us, key.clone()))
            .collect();
        all.sort_unstable_by_key(|(number, ..)| *number);
        all.into_iter().map(|(_, until_us, key)| (until_us, key)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(thread: &str, seq: u64) -> Key {
        Key { thread: ThreadId::new(thread), seq, listener: 0 }
    }

    #[test]
    fn what_waits_is_due_in_the_order_of_its_times() {
        let mut waits = Waits::default();
        for (until_us, seq) in [(30, 1), (10, 2), (20, 3), (10, 4), (u64::MAX, 5)] {
            waits.add(Until::Passed(until_us), key("a", seq));
        }
        waits.remove(&key("a", 3));
        assert_eq!(waits.next_us(), Some(10));
        assert_eq!(waits.due(30), [key("a", 2), key("a", 4), key("a", 1)]);
        assert_eq!(waits.next_us(), None);
        assert_eq!(waits.of(&ThreadId::new("a")).len(), 4, "they wait until somebody took them");
        [1, 2, 4, 5].into_iter().for_each(|seq| waits.remove(&key("a", seq)));
        assert!(waits.by_tree.is_empty() && waits.by_number.is_empty());
    }

    #[test]
    fn a_tree_has_what_waits_in_its_threads() {
        let mut waits = Waits::default();
        waits.add(Until::Passed(10), key("a.b", 1));
        waits.add(Until::Passed(10), key("a", 1));
        waits.add(Until::Passed(10), key("b", 1));
        assert_eq!(waits.of(&ThreadId::new("a")), [(10, key("a.b", 1)), (10, key("a", 1))]);
    }
}
