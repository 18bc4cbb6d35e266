//! The run queue: which tree runs next. Trees with something to do wait in three lines:
//!
//! - Light trees: they got work just now. If the work is a push from a connection, it is the only
//!   unanswered push of this connection. Otherwise the tree's recent usage is low. The priority
//!   lane serves this line, too.
//!
//! - Added trees: the other trees that got work just now.
//!
//! - Requeued trees: trees that have more to do after a turn.
//!
//! Every second turn goes to a requeued tree, so that no requeued tree waits for ever. The other
//! turns go to the first light tree, else to the first added tree, else to the first requeued tree.

use std::collections::VecDeque;

use crate::id::ThreadId;

/// Trees that have something to do.
#[derive(Debug, Default)]
pub(crate) struct RunQueue {
    light: VecDeque<ThreadId>,
    added: VecDeque<ThreadId>,
    requeued: VecDeque<ThreadId>,
    /// Whether the next turn goes to a requeued tree.
    is_for_requeued: bool,
}

impl RunQueue {
    /// Adds a tree that had nothing to do before.
    pub(crate) fn add(&mut self, tree: ThreadId, is_light: bool) {
        if is_light { self.light.push_back(tree) } else { self.added.push_back(tree) }
    }

    /// Adds a tree that has more to do after its turn.
    pub(crate) fn requeue(&mut self, tree: ThreadId) {
        self.requeued.push_back(tree);
    }

    /// Takes the tree that runs next.
    pub(crate) fn next(&mut self) -> Option<ThreadId> {
        let is_for_requeued = self.is_for_requeued;
        self.is_for_requeued = !is_for_requeued;
        let requeued = is_for_requeued.then(|| self.requeued.pop_front()).flatten();
        let next = requeued.or_else(|| self.light.pop_front()).or_else(|| self.added.pop_front());
        next.or_else(|| self.requeued.pop_front())
    }

    /// Takes the next light tree.
    pub(crate) fn next_light(&mut self) -> Option<ThreadId> {
        self.light.pop_front()
    }

    /// Returns how many trees wait.
    pub(crate) fn len(&self) -> usize {
        self.light.len() + self.added.len() + self.requeued.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the order in which light, added and requeued trees run.
    fn played(light: &[&str], came: &[&str], stayed: &[&str]) -> String {
        let mut queue = RunQueue::default();
        light.iter().for_each(|it| queue.add(ThreadId::new(it), true));
        came.iter().for_each(|it| queue.add(ThreadId::new(it), false));
        stayed.iter().for_each(|it| queue.requeue(ThreadId::new(it)));
        assert_eq!(queue.len(), light.len() + came.len() + stayed.len());
        let all: Vec<ThreadId> = std::iter::from_fn(|| queue.next()).collect();
        assert!(queue.is_empty());
        all.iter().map(ThreadId::as_str).collect()
    }

    #[test]
    fn whoever_came_has_the_next_turn_and_every_second_one() {
        assert_eq!(played(&[], &["a"], &["1", "2", "3"]), "a123");
        assert_eq!(played(&[], &["a", "b", "c"], &["1", "2", "3"]), "a1b2c3");
        assert_eq!(played(&[], &["a", "b"], &[]), "ab");
        assert_eq!(played(&[], &[], &["1", "2"]), "12");
    }

    #[test]
    fn who_took_little_goes_before_who_came() {
        assert_eq!(played(&["x", "y"], &["a"], &["1", "2"]), "x1y2a");
        assert_eq!(played(&["x"], &[], &[]), "x");
    }

    #[test]
    fn only_who_took_little_has_a_turn_beside_the_line() {
        let mut queue = RunQueue::default();
        queue.add(ThreadId::new("a"), false);
        queue.add(ThreadId::new("x"), true);
        queue.requeue(ThreadId::new("1"));
        assert_eq!(queue.next_light(), Some(ThreadId::new("x")));
        assert_eq!(queue.next_light(), None);
        assert_eq!(queue.len(), 2);
    }
}
