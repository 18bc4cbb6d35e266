//! Whose turn it is: trees that have something to do, in three lines. Pure.
//!
//! Whoever just came stands in a line of its own and goes before those who have more to do after a
//! turn; of those who came, the ones who took little of late stand before the others, and may have
//! a turn beside the line, too. Every second turn is that of who stayed, so that nobody is kept
//! waiting for good.

use std::collections::VecDeque;

use crate::id::ThreadId;

/// Trees that have something to do.
#[derive(Debug, Default)]
pub(crate) struct Turns {
    light: VecDeque<ThreadId>,
    came: VecDeque<ThreadId>,
    stayed: VecDeque<ThreadId>,
    /// Whether the next turn is for who stayed.
    is_theirs: bool,
}

impl Turns {
    /// A tree has something to do and had nothing before; whether it took little of late, or who
    /// pushed into it waits for nothing else.
    pub(crate) fn came(&mut self, tree: ThreadId, is_light: bool) {
        if is_light { self.light.push_back(tree) } else { self.came.push_back(tree) }
    }

    /// A tree has more to do after its turn.
    pub(crate) fn stayed(&mut self, tree: ThreadId) {
        self.stayed.push_back(tree);
    }

    /// Whose turn it is.
    pub(crate) fn next(&mut self) -> Option<ThreadId> {
        let is_theirs = self.is_theirs;
        self.is_theirs = !is_theirs;
        let stayed = is_theirs.then(|| self.stayed.pop_front()).flatten();
        let came = stayed.or_else(|| self.light.pop_front()).or_else(|| self.came.pop_front());
        came.or_else(|| self.stayed.pop_front())
    }

    /// Who took little of late and has something to do.
    pub(crate) fn next_light(&mut self) -> Option<ThreadId> {
        self.light.pop_front()
    }

    /// How many wait for their turn.
    pub(crate) fn len(&self) -> usize {
        self.light.len() + self.came.len() + self.stayed.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Who has a turn, of some who came with little, that came and that stayed.
    fn played(light: &[&str], came: &[&str], stayed: &[&str]) -> String {
        let mut turns = Turns::default();
        light.iter().for_each(|it| turns.came(ThreadId::new(it), true));
        came.iter().for_each(|it| turns.came(ThreadId::new(it), false));
        stayed.iter().for_each(|it| turns.stayed(ThreadId::new(it)));
        assert_eq!(turns.len(), light.len() + came.len() + stayed.len());
        let all: Vec<ThreadId> = std::iter::from_fn(|| turns.next()).collect();
        assert!(turns.is_empty());
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
        let mut turns = Turns::default();
        turns.came(ThreadId::new("a"), false);
        turns.came(ThreadId::new("x"), true);
        turns.stayed(ThreadId::new("1"));
        assert_eq!(turns.next_light(), Some(ThreadId::new("x")));
        assert_eq!(turns.next_light(), None);
        assert_eq!(turns.len(), 2);
    }
}
